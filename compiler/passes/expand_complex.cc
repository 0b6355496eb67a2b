// A dot of complex numbers that is large enough for blocks: one of real numbers, which have a micro-kernel. Rows
// and depth double:
//
//   [ Cr ]   [ Ar  -Ai ]   [ Br ]
//   [ Ci ] = [ Ai   Ar ] * [ Bi ]
//
// that is as many products as the complex ones consist of. The halves are new dims in front, so that whatever
// dims the dot has stay as they are.
#include "compiler/passes/expansions.h"
#include "compiler/plan/blocks.h"

namespace hlojit {
namespace {

using enum Opcode;

void shift(Ints& dims, int64_t by) {
  for (int64_t& d : dims) d += by;
}

// [count] + dims of the parts.
Instruction* stack(Builder& b, Builder::Values parts) {
  Ints sizes = parts[0]->shape.dims;
  sizes.insert(sizes.begin(), 1);
  for (Instruction*& p : parts) p = b.reshape(p, sizes);
  return b.concat_in_dim(std::move(parts), 0);
}

}  // namespace

Instruction* expand_complex_dot(Builder& b, const Instruction& op, const TargetInfo& target) {
  Instruction *x = op.operand(0), *y = op.operand(1);
  if (!is_complex(op.shape.type) || x->shape.type != op.shape.type || y->shape.type != op.shape.type) return nullptr;
  int64_t lanes = sum_lanes(op, target.vector_bytes);
  const MatrixProduct product(op, op.shape, lanes);
  if (product.n < lanes || !worth_blocks(op, product, lanes)) return nullptr;

  Instruction *xr = b.unary(kReal, x), *xi = b.unary(kImag, x);
  Instruction* left = stack(b, {xr, b.unary(kNegate, xi), xi, xr});
  Ints sizes = x->shape.dims;
  sizes.insert(sizes.begin(), {2, 2});
  left = b.reshape(left, sizes);
  Instruction* right = stack(b, {b.unary(kReal, y), b.unary(kImag, y)});

  DotDims dims = op.attrs.dot;
  shift(dims.lhs_batch, 2), shift(dims.lhs_contracting, 2);
  shift(dims.rhs_batch, 1), shift(dims.rhs_contracting, 1);
  dims.lhs_contracting.insert(dims.lhs_contracting.begin(), 1);
  dims.rhs_contracting.insert(dims.rhs_contracting.begin(), 0);
  auto batches = static_cast<int64_t>(dims.lhs_batch.size());
  Instruction* both = b.dot_general(left, right, std::move(dims));  // batch, which half, free dims
  auto half = [&](int64_t k) { return b.reshape(b.slice_in_dim(both, k, k + 1, 1, batches), op.shape.dims); };
  return b.binary(kComplex, half(0), half(1));
}

}  // namespace hlojit
