// select-and-scatter and scatter's other rule for windows partly out of bounds, as simpler ops.
//
//   select-and-scatter(x, source, init)
//     -> n = number of each element of x
//        v, i = reduce-window(x, n; 0, -1), (v, i), (w, j) -> i < 0 or not select(v, w) ? (w, j) : (v, i)
//        scatter(broadcast(init), i, source)      flat; windows that pick nothing have -1, which is dropped
//
// Elements of windows are taken in order, and so are updates: ties and sums come out as the op says.
#include <limits>

#include "compiler/passes/expansions.h"
#include "compiler/passes/inline_calls.h"
#include "layout/lists.h"

namespace hlojit {
namespace {

using enum Opcode;

// (value, number) pairs: the second replaces the first where nothing is picked yet or select says so.
Computation* picks(Computation& caller, const Computation& select, DType type, DType number) {
  Module& module = *caller.parent();
  Builder b(module.add_computation_before("pick", &caller));
  Shape value = Shape::scalar(type), index = Shape::scalar(number);
  Instruction* v = b.parameter(value, "value");
  Instruction* i = b.parameter(index, "number");
  Instruction* w = b.parameter(value, "next_value");
  Instruction* j = b.parameter(index, "next_number");
  Instruction* arguments[] = {v, w};
  Instruction* keeps = paste(*b.computation(), select, arguments);
  Instruction* none = b.compare(Direction::kLt, i, b.constant(number, 0));
  Instruction* takes = b.binary(kOr, none, b.unary(kNot, keeps));
  return b.build(b.tuple({b.select(takes, w, v), b.select(takes, j, i)}));
}

}  // namespace

Instruction* expand_select_and_scatter(Builder& b, const Instruction& op) {
  Instruction *x = op.operand(0), *source = op.operand(1), *init = op.operand(2);
  int64_t total = x->shape.element_count(), windows = source->shape.element_count();
  DType number = total <= std::numeric_limits<int32_t>::max() ? DType::kS32 : DType::kS64;
  Computation* pick = picks(*b.computation(), *op.called.at(0), x->shape.type, number);
  Instruction* numbers = b.reshape(b.iota(Shape::array(number, {total}), 0), x->shape.dims);
  Instruction* zero = b.constant(Literal(Shape::scalar(x->shape.type)));
  Instruction* picked = expanded(
      b, b.reduce_window({x, numbers}, {zero, b.constant(number, -1)}, pick, op.attrs.window), expand_windows_in_turn);
  Attributes flat;
  ScatterDims& dims = flat.scatter.edit();
  dims.inserted_window_dims = {0};
  dims.scatter_dims_to_operand_dims = {0};
  dims.index_vector_dim = 1;
  Instruction* places = b.reshape(b.get_tuple_element(picked, 1), Ints{windows});
  Instruction* sums =
      b.op(kScatter, {b.broadcast(init, {total}), places, b.reshape(source, Ints{windows})}, flat, {op.called.at(1)});
  return b.reshape(expanded(b, sums, expand_scatter_in_turn), x->shape.dims);
}

Instruction* expand_whole_windows(Builder& b, const Instruction& op) {
  const ScatterDims& s = op.attrs.scatter;
  size_t count = op.operand_count() / 2;
  const Shape& operand = op.operand(0)->shape;
  const Ints& updates = op.operand(count + 1)->shape.dims;
  // Largest start at which each window fits.
  Ints last(operand.dims.size());
  size_t next = 0;
  for (size_t d = 0; d < last.size(); ++d) {
    auto n = static_cast<int64_t>(d);
    bool single = contains(s.inserted_window_dims, n) || contains(s.input_batching_dims, n);
    last[d] = operand.dims[d] - (single ? 1 : updates[static_cast<size_t>(s.update_window_dims[next++])]);
  }
  bool partial = false;
  Literal limits(Shape::array(DType::kS64, {static_cast<int64_t>(s.scatter_dims_to_operand_dims.size())}));
  for (size_t k = 0; k < s.scatter_dims_to_operand_dims.size(); ++k) {
    auto d = static_cast<size_t>(s.scatter_dims_to_operand_dims[k]);
    partial |= last[d] != operand.dims[d] - 1;
    limits.data<int64_t>()[k] = last[d];
  }
  if (!partial || product(op.operand(count)->shape.dims) == 0) return nullptr;

  Instruction* starts = b.convert(op.operand(count), DType::kS64);
  const Ints& dims = starts->shape.dims;
  bool vectors = s.index_vector_dim < starts->shape.rank();
  Instruction* most = b.constant(std::move(limits));
  most = vectors ? b.broadcast_in_dim(most, dims, {s.index_vector_dim}) : b.broadcast(b.reshape(most, Ints{}), dims);
  auto everywhere = [&](double v) { return b.broadcast(b.constant(DType::kS64, v), dims); };
  Instruction* fits =
      b.binary(kAnd, b.compare(Direction::kGe, starts, everywhere(0)), b.compare(Direction::kLe, starts, most));
  if (vectors) {
    Computation* both = b.combiner(kAnd, DType::kPred);
    Instruction* all = b.reduce({fits}, {b.constant(DType::kPred, 1)}, both, {s.index_vector_dim});
    Ints kept;
    for (int64_t d = 0; d < starts->shape.rank(); ++d) {
      if (d != s.index_vector_dim) kept.push_back(d);
    }
    fits = b.broadcast_in_dim(all, dims, kept);
  }
  // Far outside every array.
  Instruction* moved = b.select(fits, starts, everywhere(-1e15));
  std::vector<Instruction*> operands(op.operands().begin(), op.operands().end());
  operands[count] = moved;
  return b.computation()->clone_instruction(op, std::move(operands));
}

}  // namespace hlojit
