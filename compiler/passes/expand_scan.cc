// scan as a while loop over the slices of its inputs.
//
//   (ys.., c) = scan(xs.., c0), f     ->   while (i < n) { (y.., c) = f(xs[i].., c);  ys[i] = y.. }
#include <charconv>

#include "compiler/ir/text_attributes.h"
#include "compiler/passes/expansions.h"

#include <unordered_map>

namespace hlojit {
namespace {

using enum Opcode;

// The computation's instructions once more at the end of the builder's; its results.
std::vector<Instruction*> pasted(Builder& b, const Computation& f, std::span<Instruction* const> arguments) {
  std::unordered_map<const Instruction*, Instruction*> copies;
  for (const auto& i : f.instructions()) {
    Instruction*& copy = copies[i.get()];
    if (i->is(kParameter)) {
      copy = arguments[static_cast<size_t>(i->attrs.parameter_number)];
      continue;
    }
    std::vector<Instruction*> operands;
    for (Instruction* o : i->operands()) operands.push_back(copies.at(o));
    copy = b.computation()->clone_instruction(*i, std::move(operands));
  }
  Instruction* root = copies.at(f.root());
  if (!root->shape.is_tuple()) return {root};
  std::vector<Instruction*> results;
  for (size_t k = 0; k < root->shape.elements.size(); ++k) {
    results.push_back(b.get_tuple_element(root, static_cast<int64_t>(k)));
  }
  return results;
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
  std::vector<Instruction*> made = pasted(body, f, arguments);
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

}  // namespace hlojit
