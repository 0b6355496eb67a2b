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

}  // namespace

Instruction* expand_scan(Builder& b, const Instruction& op) {
  const auto along = static_cast<size_t>(op.attrs.dimensions.at(0));
  const std::string_view count = text_attribute(op.attrs, "num_carries");
  size_t carries = 0;
  std::from_chars(count.data(), count.data() + count.size(), carries);
  const bool reverse = text_attribute(op.attrs, "is_reverse") == "true";
  const size_t inputs = op.operand_count() - carries;
  const int64_t n = op.operand(0)->shape.dims[along];
  std::vector<Shape> results;
  if (op.shape.is_tuple())
    results = op.shape.elements;
  else
    results = {op.shape};
  const size_t outputs = results.size() - carries;

  if (n == 0) {  // no slice to look at, not even one that is never read
    std::vector<Instruction*> parts;
    for (size_t k = 0; k < outputs; ++k) {
      parts.push_back(b.broadcast(b.constant(Literal(Shape::scalar(results[k].type))), results[k].dims));
    }
    for (size_t k = 0; k < carries; ++k) parts.push_back(op.operand(inputs + k));
    return op.shape.is_tuple() ? b.tuple(parts) : parts[0];
  }

  // State: counter, stacked outputs, carries, inputs.
  std::vector<Instruction*> init = {b.constant(DType::kS64, 0)};
  for (size_t k = 0; k < outputs; ++k) {
    init.push_back(b.broadcast(b.constant(Literal(Shape::scalar(results[k].type))), results[k].dims));
  }
  for (size_t k = 0; k < carries; ++k) init.push_back(op.operand(inputs + k));
  for (size_t k = 0; k < inputs; ++k) init.push_back(op.operand(k));
  Instruction* state = b.tuple(init);

  Module& module = *b.computation()->parent();
  Builder goes_on(module.add_computation_before("scan_condition", b.computation()));
  Instruction* seen = goes_on.parameter(state->shape);
  goes_on.build(goes_on.compare(Direction::kLt, goes_on.get_tuple_element(seen, 0),
                                goes_on.constant(DType::kS64, static_cast<double>(n))));

  Builder body(module.add_computation_before("scan_body", b.computation()));
  Instruction* p = body.parameter(state->shape);
  Instruction* i = body.get_tuple_element(p, 0);
  Instruction* at = reverse ? body.binary(kSubtract, body.constant(DType::kS64, static_cast<double>(n - 1)), i) : i;
  Instruction* zero = body.constant(DType::kS64, 0);
  auto starts = [&](size_t rank) {
    std::vector<Instruction*> all(rank, zero);
    all[along] = at;
    return all;
  };
  const Computation& f = *op.to_apply();
  std::vector<Instruction*> arguments;
  for (size_t k = 0; k < inputs; ++k) {
    Ints box = op.operand(k)->shape.dims;
    box[along] = 1;
    Instruction* x = body.get_tuple_element(p, static_cast<int64_t>(1 + outputs + carries + k));
    arguments.push_back(body.reshape(body.dynamic_slice(x, starts(box.size()), box), f.parameters()[k]->shape.dims));
  }
  for (size_t k = 0; k < carries; ++k)
    arguments.push_back(body.get_tuple_element(p, static_cast<int64_t>(1 + outputs + k)));
  std::vector<Instruction*> made = elements(body, paste(*body.computation(), f, arguments));
  std::vector<Instruction*> next = {body.binary(kAdd, i, body.constant(DType::kS64, 1))};
  for (size_t k = 0; k < outputs; ++k) {
    Ints box = results[k].dims;
    box[along] = 1;
    Instruction* stacked = body.get_tuple_element(p, static_cast<int64_t>(1 + k));
    next.push_back(body.dynamic_update_slice(stacked, body.reshape(made[k], box), starts(box.size())));
  }
  for (size_t k = 0; k < carries; ++k) next.push_back(made[outputs + k]);
  for (size_t k = 0; k < inputs; ++k)
    next.push_back(body.get_tuple_element(p, static_cast<int64_t>(1 + outputs + carries + k)));
  body.build(body.tuple(next));

  Instruction* done = b.while_loop(goes_on.computation(), body.computation(), state);
  std::vector<Instruction*> parts;
  for (size_t k = 0; k < results.size(); ++k) parts.push_back(b.get_tuple_element(done, static_cast<int64_t>(1 + k)));
  return op.shape.is_tuple() ? b.tuple(parts) : parts[0];
}

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

  Attributes along;
  along.dimensions = {0};
  along.has_dimensions = true;
  along.other = {{"num_carries", std::to_string(arrays)}};
  auto scanned = [&](Builder& at, const Builder::Values& in, Computation* body) {
    Instruction* scan = at.op(kScan, in, along, {body});
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
