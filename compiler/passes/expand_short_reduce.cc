// Reductions of few terms, such as of coordinates.
//
//   y = f32[n,m] reduce(x), x = f32[n,m,3]
//     ->  y = 0 + x[:,:,0] + x[:,:,1] + x[:,:,2]
//
// What is elementwise belongs to whatever uses it: a kernel reduces along one set of dims, and distances between
// points, sums of their own, would be in memory before they are summed up or compared. (Forces between 1000 bodies:
// 777 us with one thread, a matrix of 4 MB between two kernels; 452 so.)
#include <vector>

#include "compiler/passes/expansions.h"

namespace hlojit {
namespace {

/// Rather stored: elements that are each read many times, as areas of boxes are for each pair of them, and those that
/// are put beside others in rows, where they would be computed one by one.
bool is_stored(const Instruction* value) {
  std::vector<const Instruction*> open = {value};
  while (!open.empty()) {
    const Instruction* i = open.back();
    open.pop_back();
    for (const Instruction* user : i->users()) {
      const bool spreads = user->is(Opcode::kBroadcast) && user->shape.element_count() > i->shape.element_count();
      if (spreads || user->is(Opcode::kConcatenate)) continue;
      if (!user->is(Opcode::kReshape) && !user->is(Opcode::kBroadcast)) return false;
      open.push_back(user);
    }
  }
  return true;
}

}  // namespace

Instruction* expand_short_reduce(Builder& b, const Instruction& op) {
  constexpr int64_t kMostTerms = 4;
  // (Narrow floats are added up as wider ones, and round once.)
  if (op.shape.is_tuple() || op.attrs.dimensions.size() != 1 || is_narrow_float(op.shape.type)) return nullptr;
  Instruction* x = op.operand(0);
  const int64_t d = op.attrs.dimensions[0], terms = x->shape.dims[static_cast<size_t>(d)];
  if (terms < 1 || terms > kMostTerms || x->is(Opcode::kParameter) || op.shape.element_count() < 2 || is_stored(&op))
    return nullptr;
  Instruction* result = b.broadcast(op.operand(1), op.shape.dims);
  for (int64_t k = 0; k < terms; ++k) {
    Instruction* term = b.reshape(b.slice_in_dim(x, k, k + 1, 1, d), op.shape.dims);
    Instruction* const arguments[] = {result, term};
    result = apply_elementwise(b, *op.to_apply(), arguments, op.shape.dims);
    if (!result) return nullptr;
  }
  return result;
}

}  // namespace hlojit
