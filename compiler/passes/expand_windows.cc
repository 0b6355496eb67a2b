// Scatter's other rule for windows partly out of bounds, as a select of places.
#include "compiler/passes/expansions.h"
#include "layout/lists.h"

namespace hlojit {

using enum Opcode;

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
