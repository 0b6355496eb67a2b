// The part of dynamic_rules.h that works on whole lines and matrices: sort, topk, fft, cholesky, triangular-solve,
// batch normalisation.
// Lines of dynamic size are ordered with their padding last; a matrix goes on as an identity where it ends,
//
//     A  ->  | A 0 |        whose factors and solutions have A's own in their place.
//            | 0 I |
#include <algorithm>
#include <limits>

#include "compiler/ir/combining.h"
#include "compiler/passes/dynamic_fft.h"
#include "compiler/passes/dynamic_rules.h"
#include "compiler/passes/expansions.h"

namespace hlojit {

using enum Opcode;

// Elements beyond the size go behind all others: validity is one more operand, compared first.
Instruction* DynamicRules::sort(Instruction* i) {
  const Instruction* first = *std::ranges::find_if(i->operands(), [&](auto* o) { return is_dynamic(o); });
  DimSizes sizes = dims(first);
  const int64_t d = i->attrs.dimensions.at(0);
  if (!sizes[d]) {
    set_dims(i, std::move(sizes));
    return i;
  }
  Builder::Values operands(i->operands().begin(), i->operands().end());
  operands.push_back(inside(first->shape, sizes, {d}));
  Module& module = *b_.computation()->parent();
  Computation* compare = module.clone_computation(*i->to_apply(), i->to_apply()->name);
  Builder c(compare);
  Instruction* left = c.parameter(Shape::scalar(DType::kPred));
  Instruction* right = c.parameter(Shape::scalar(DType::kPred));
  Instruction* both = c.binary(kAnd, left, right);
  Instruction* less = c.binary(kAnd, both, compare->root());
  c.build(c.binary(kOr, less, c.binary(kAnd, left, c.unary(kNot, right))));
  Instruction* sorted = b_.op(kSort, std::move(operands), i->attrs, {compare});
  sorted->attrs.is_stable = i->attrs.is_stable;
  Builder::Values results;
  for (size_t k = 0; k < i->operand_count(); ++k) {
    results.push_back(b_.get_tuple_element(sorted, static_cast<int64_t>(k)));
  }
  Instruction* made = results.size() == 1 ? results[0] : b_.tuple(results);
  set_dims(made, std::move(sizes));
  return made;
}

// Padding stands behind all elements and is the least (or greatest) of all, so any element goes before it. Of fewer
// elements than are asked for there are only so many.
void DynamicRules::top_k(Instruction* i) {
  Instruction* x = i->operand(0);
  DimSizes sizes = dims(x);
  const int64_t last = x->shape.rank() - 1;
  if (Instruction*& n = sizes[last]) {
    i->set_operand(0, masked(x, {last}, b_.constant(extreme_number(x->shape.type, !i->attrs.largest, true))));
    n = b_.binary(kMinimum, n, s32(i->attrs.k));
  }
  set_dims(i, std::move(sizes));
}

Instruction* DynamicRules::fft(Instruction* i) {
  DimSizes sizes = dims(i->operand(0));
  Instruction* made = i;
  if (std::ranges::any_of(sizes.end() - std::ssize(i->attrs.fft_length), sizes.end(), [](auto* n) { return n; })) {
    made = expand_dynamic_fft(b_, *i, sizes);
    made->shape.layout = i->shape.layout;
  }
  set_dims(made, std::move(sizes));
  return made;
}

// As the ops that it consists of. Means are over the elements that there are.
Instruction* DynamicRules::batch_norm(Instruction* i) {
  const Instruction* x = i->operand(0);
  const DType type = x->shape.type == DType::kF64 ? DType::kF64 : DType::kF32;
  Instruction* count = b_.constant(type, 1);
  for (int64_t d = 0; d < x->shape.rank(); ++d) {
    if (d != i->attrs.feature_index) count = b_.binary(kMultiply, count, b_.convert(runtime_size(x, d), type));
  }
  const size_t before = b_.computation()->instructions().size();
  Instruction* made = expand_batch_norm(b_, *i, count);
  std::vector<Instruction*> parts;
  for (size_t k = before; k < b_.computation()->instructions().size(); ++k) {
    parts.push_back(b_.computation()->instructions()[k].get());
  }
  for (Instruction* part : parts) apply(part);
  return made;
}

// The matrices of `a`, its last two dimensions, each going on as an identity.
Instruction* DynamicRules::continued(Instruction* a) {
  const int64_t row = a->shape.rank() - 2, column = row + 1;
  Instruction* valid = inside(a->shape, dims(a), {row, column});
  if (!valid) return a;
  auto at = [&](int64_t d) { return b_.iota(Shape::array(DType::kS32, a->shape.dims), d); };
  Instruction* identity = b_.convert(b_.compare(Direction::kEq, at(row), at(column)), a->shape.type);
  Instruction* made = b_.select(valid, a, identity);
  made->shape.layout = a->shape.layout;
  set(made, sizes(a));
  return made;
}

void DynamicRules::cholesky(Instruction* i) {
  DimSizes sizes = dims(i->operand(0));
  i->set_operand(0, continued(i->operand(0)));
  set_dims(i, std::move(sizes));
}

// A right side that goes on beside its matrix goes on as zeros: zero times what lies there could be NaN.
void DynamicRules::triangular_solve(Instruction* i) {
  Instruction *a = i->operand(0), *b = i->operand(1);
  DimSizes matrix = dims(a), sizes = dims(b);
  const int64_t row = b->shape.rank() - 2, solved = i->attrs.left_side ? row : row + 1;
  for (int64_t d = 0; d < row; ++d) sizes[d] = sizes[d] ? sizes[d] : matrix[d];
  for (Instruction* n : {matrix[row], matrix[row + 1]}) sizes[solved] = sizes[solved] ? sizes[solved] : n;
  matrix[row] = matrix[row + 1] = sizes[solved];
  set_dims(a, std::move(matrix));
  i->set_operand(0, continued(a));
  i->set_operand(1, masked(b, sizes, {solved}, zero(b->shape.type)));
  set_dims(i, std::move(sizes));
}

}  // namespace hlojit
