// scan as a while loop over the slices of its inputs.
//
//   (ys.., c) = scan(xs.., c0), f     ->   while (i < n) { (y.., c) = f(xs[i].., c);  ys[i] = y.. }
//
// A reduction whose computation branches or loops is a scan over the rows of a scan over a row's elements.
#include <algorithm>
#include <charconv>
#include <iterator>

#include "compiler/ir/combining.h"
#include "compiler/ir/text_attributes.h"
#include "compiler/passes/expansions.h"
#include "compiler/passes/inline_calls.h"

namespace hlojit {
namespace {

using enum Opcode;

std::vector<Instruction*> elements(Builder& b, Instruction* value) {
  if (!value->shape.is_tuple()) return {value};
  std::vector<Instruction*> all;
  for (int64_t k = 0; k < std::ssize(value->shape.elements); ++k) all.push_back(b.get_tuple_element(value, k));
  return all;
}

// A scan, and the loop it becomes: with a counter, stacked outputs, carries and inputs as its state.
class ScanLoop {
 public:
  ScanLoop(Builder& b, const Instruction& op) : b_(b), op_(op), along_(static_cast<size_t>(op.attrs.dimensions.at(0))) {
    const std::string_view count = text_attribute(op.attrs, "num_carries");
    std::from_chars(count.data(), count.data() + count.size(), carries_);
    inputs_ = op.operand_count() - carries_;
    steps_ = op.operand(0)->shape.dims[along_];
    results_ = op.shape.is_tuple() ? op.shape.elements : std::vector{op.shape};
    outputs_ = results_.size() - carries_;
  }

  Instruction* build() {
    Builder::Values start;
    for (size_t k = 0; k < outputs_; ++k) {
      start.push_back(b_.broadcast(b_.constant(Literal(Shape::scalar(results_[k].type))), results_[k].dims));
    }
    for (size_t k = 0; k < carries_; ++k) start.push_back(op_.operand(inputs_ + k));
    if (steps_ == 0) return result(start);  // no slice to look at, not even one that is never read
    start.insert(start.begin(), b_.constant(DType::kS64, 0));
    for (size_t k = 0; k < inputs_; ++k) start.push_back(op_.operand(k));
    Instruction* state = b_.tuple(start);
    Computation* condition = make_condition(state->shape);
    Instruction* done = b_.while_loop(condition, make_body(state->shape), state);
    Builder::Values parts;
    for (size_t k = 0; k < results_.size(); ++k) parts.push_back(b_.get_tuple_element(done, number(1 + k)));
    return result(parts);
  }

 private:
  static int64_t number(size_t k) { return static_cast<int64_t>(k); }

  Instruction* result(const Builder::Values& parts) { return op_.shape.is_tuple() ? b_.tuple(parts) : parts[0]; }

  Computation* add(std::string_view name) {
    return b_.computation()->parent()->add_computation_before(std::string(name), b_.computation());
  }

  Computation* make_condition(const Shape& state) {
    Builder c(add("scan_condition"));
    Instruction* p = c.parameter(state);
    c.build(c.compare(Direction::kLt, c.get_tuple_element(p, 0), c.constant(DType::kS64, static_cast<double>(steps_))));
    return c.computation();
  }

  Computation* make_body(const Shape& state) {
    Builder c(add("scan_body"));
    Instruction* p = c.parameter(state);
    Builder::Values old;
    for (size_t k = 0; k < state.elements.size(); ++k) old.push_back(c.get_tuple_element(p, number(k)));
    const auto stacked = std::span(old).subspan(1, outputs_), carried = std::span(old).subspan(1 + outputs_, carries_),
               inputs = std::span(old).subspan(1 + outputs_ + carries_);
    Instruction* at = old[0];
    if (text_attribute(op_.attrs, "is_reverse") == "true")
      at = c.binary(kSubtract, c.constant(DType::kS64, static_cast<double>(steps_ - 1)), at);
    Instruction* zero = c.constant(DType::kS64, 0);
    auto starts = [&](size_t rank) {
      Builder::Values all(rank, zero);
      all[along_] = at;
      return all;
    };
    auto slice_of = [&](Ints dims) {
      dims[along_] = 1;
      return dims;
    };

    Builder::Values arguments;
    for (size_t k = 0; k < inputs_; ++k) {
      const Ints box = slice_of(inputs[k]->shape.dims);
      Instruction* slice = c.dynamic_slice(inputs[k], starts(box.size()), box);
      arguments.push_back(c.reshape(slice, op_.to_apply()->parameters()[k]->shape.dims));
    }
    arguments.insert(arguments.end(), carried.begin(), carried.end());
    const Builder::Values made = elements(c, paste(*c.computation(), *op_.to_apply(), arguments));

    Builder::Values next = {c.binary(kAdd, old[0], c.constant(DType::kS64, 1))};
    for (size_t k = 0; k < outputs_; ++k) {
      const Ints box = slice_of(results_[k].dims);
      next.push_back(c.dynamic_update_slice(stacked[k], c.reshape(made[k], box), starts(box.size())));
    }
    next.insert(next.end(), made.begin() + static_cast<std::ptrdiff_t>(outputs_), made.end());
    next.insert(next.end(), inputs.begin(), inputs.end());
    c.build(c.tuple(next));
    return c.computation();
  }

  Builder& b_;
  const Instruction& op_;
  const size_t along_;
  size_t carries_ = 0, inputs_ = 0, outputs_ = 0;
  int64_t steps_ = 0;
  std::vector<Shape> results_;
};

}  // namespace

Instruction* expand_scan(Builder& b, const Instruction& op) { return ScanLoop(b, op).build(); }

Instruction* expand_reduce(Builder& b, const Instruction& op) {
  if (is_scalar_code(*op.to_apply())) return nullptr;
  const size_t arrays = op.operand_count() / 2;
  const Shape& from = op.operand(0)->shape;
  const Ints& kept = op.shape.is_tuple() ? op.shape.elements.at(0).dims : op.shape.dims;
  Ints order;
  for (int64_t d = 0; d < from.rank(); ++d) {
    if (std::ranges::find(op.attrs.dimensions, d) == op.attrs.dimensions.end()) order.push_back(d);
  }
  Ints reduced = op.attrs.dimensions;
  std::ranges::sort(reduced);
  order.insert(order.end(), reduced.begin(), reduced.end());
  int64_t rows = 1, length = 1;
  for (size_t k = 0; k < order.size(); ++k) (k < kept.size() ? rows : length) *= from.dims[order[k]];
  Builder::Values operands;
  for (size_t k = 0; k < arrays; ++k) {
    operands.push_back(b.reshape(b.transpose(op.operand(k), order), {rows, length}));
  }
  for (size_t k = 0; k < arrays; ++k) operands.push_back(op.operand(arrays + k));

  auto scanned = [&](Builder& at, const Builder::Values& in, Computation* body) {
    const auto carries = in.end() - static_cast<std::ptrdiff_t>(arrays);
    Instruction* scan = at.scan({in.begin(), carries}, {carries, in.end()}, body, 0);
    std::vector<Instruction*> results = elements(at, expand_scan(at, *scan));
    at.computation()->remove(scan);
    return results;
  };

  Module& module = *b.computation()->parent();
  Builder row(module.add_computation_before("reduce_row", b.computation()));
  Builder step(module.add_computation_before("reduce_step", row.computation()));
  Builder::Values terms, sums, in_row;
  for (Instruction* o : operands) terms.push_back(step.parameter(Shape::scalar(o->shape.type)));
  std::ranges::rotate_copy(terms, terms.begin() + static_cast<std::ptrdiff_t>(arrays), std::back_inserter(sums));
  step.build(paste(*step.computation(), *op.to_apply(), sums));
  for (Instruction* o : operands) {
    in_row.push_back(row.parameter(o->shape.is_scalar() ? o->shape : Shape::array(o->shape.type, {length})));
  }
  Builder::Values results = scanned(row, in_row, step.computation());
  results.insert(results.end(), in_row.begin() + static_cast<std::ptrdiff_t>(arrays), in_row.end());
  row.build(row.tuple(results));

  results = scanned(b, operands, row.computation());
  results.resize(arrays);
  for (Instruction*& r : results) r = b.reshape(r, kept);
  return op.shape.is_tuple() ? b.tuple(results) : results[0];
}

}  // namespace hlojit
