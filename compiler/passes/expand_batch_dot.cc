// Products of few rows or columns where the elements of a batch lie side by side, as vmap over a last dim leaves them.
//
//   r = f32[31,416] dot(x, y), x = f32[416,42,31], y = f32[42,31], over the last dims as a batch
//     ->  the sum of x * y along 42, each of 31 in a lane of its own
//
// Blocks are of a matrix after the other, whose elements lie a batch apart: each is picked out of a line of its own
// (that one took 523 us, 35 so; 1000 products of 8x8 matrices 80 and 38).
#include <algorithm>
#include <ranges>
#include <vector>

#include "compiler/passes/expansions.h"
#include "layout/lists.h"

namespace hlojit {
namespace {

using enum Opcode;

/// The dim of which neighbours lie side by side in memory, as far as the program tells; -1: there is a single element.
int64_t dim_side_by_side(const Instruction& x) {
  std::vector<const Instruction*> transposes;
  const Instruction* made = &x;
  for (; made->is(kTranspose); made = made->operand(0)) transposes.push_back(made);
  Shape shape = made->shape;
  if (!made->is(kParameter)) shape.layout = Layout::descending(shape.rank());
  int64_t dim = minor_dim(shape);
  if (dim < 0) return -1;
  for (const Instruction* t : transposes | std::views::reverse)
    dim = std::ranges::find(t->attrs.dimensions, dim) - t->attrs.dimensions.begin();
  return dim;
}

struct Side {
  Instruction* x;
  Ints batch, contracting, free;
};

Side side_of(const Instruction& dot, size_t k) {
  const DotDims& d = dot.attrs.dot;
  Side side{.x = dot.operand(k), .batch = d.batch(k), .contracting = d.contracting(k), .free = {}};
  for (int64_t dim = 0; dim < side.x->shape.rank(); ++dim) {
    if (std::ranges::count(side.batch, dim) + std::ranges::count(side.contracting, dim) == 0) side.free.push_back(dim);
  }
  return side;
}

int64_t elements(const Side& side, const Ints& dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= side.x->shape.dims[static_cast<size_t>(d)];
  return n;
}

}  // namespace

Instruction* expand_batch_dot(Builder& b, const Instruction& op, const TargetInfo& target) {
  const DType t = op.shape.type;
  const bool plain = (t == DType::kF32 || t == DType::kF64) && op.attrs.dot_algorithm->empty();
  if (!plain || op.operand(0)->shape.type != t || op.operand(1)->shape.type != t) return nullptr;
  Side large = side_of(op, 0), small = side_of(op, 1);
  const bool swapped = elements(large, large.free) < elements(small, small.free);
  if (swapped) std::swap(large, small);
  if (large.batch.empty() || large.contracting.empty() || op.shape.element_count() == 0) return nullptr;
  const int64_t minor = dim_side_by_side(*large.x);
  // Of three a product's rows are as good, unless it has one. (Three columns of 60300 floats by three, one core of a
  // Granite Rapids: 45 us, 17 so.)
  const int64_t fewest = large.free.empty() ? 2 : 4;
  if (std::ranges::count(large.batch, minor) == 0 || elements(large, {minor}) < fewest) return nullptr;
  // Each row is gone through for each column, which has to be little beside what lanes gain.
  const int64_t lanes = std::min<int64_t>(target.vector_bytes / dtype_bytes(t), elements(large, {minor}));
  if (elements(small, small.free) > lanes) return nullptr;

  // The small side's free dims, then those of the large one as they are.
  const int64_t more = std::ssize(small.free);
  Ints sizes, of_large, of_small(static_cast<size_t>(small.x->shape.rank())), summed;
  for (int64_t d : small.free) sizes.push_back(small.x->shape.dims[static_cast<size_t>(d)]);
  for (int64_t d = 0; d < large.x->shape.rank(); ++d) of_large.push_back(more + d);
  sizes.insert(sizes.end(), large.x->shape.dims.begin(), large.x->shape.dims.end());
  for (size_t k = 0; k < small.free.size(); ++k) of_small[static_cast<size_t>(small.free[k])] = static_cast<int64_t>(k);
  for (size_t k = 0; k < small.batch.size(); ++k) of_small[static_cast<size_t>(small.batch[k])] = more + large.batch[k];
  for (size_t k = 0; k < small.contracting.size(); ++k) {
    of_small[static_cast<size_t>(small.contracting[k])] = more + large.contracting[k];
    summed.push_back(more + large.contracting[k]);
  }
  std::ranges::sort(summed);
  Instruction* factors[] = {b.broadcast_in_dim(large.x, sizes, of_large), b.broadcast_in_dim(small.x, sizes, of_small)};
  Instruction* product = b.binary(kMultiply, factors[swapped ? 1 : 0], factors[swapped ? 0 : 1]);
  Instruction* sums = b.reduce({product}, {b.constant(t, 0)}, b.combiner(kAdd, t), summed);

  // The batch, the left side's free dims, the right side's.
  auto place = [&](int64_t dim) { return dim - std::ranges::count_if(summed, [&](int64_t s) { return s < dim; }); };
  Ints of_batch, of_rows, of_columns, order;
  for (int64_t d : large.batch) of_batch.push_back(place(more + d));
  for (int64_t d : large.free) of_rows.push_back(place(more + d));
  for (int64_t k = 0; k < more; ++k) of_columns.push_back(k);
  if (swapped) std::swap(of_rows, of_columns);
  for (const Ints& dims : {of_batch, of_rows, of_columns}) order.insert(order.end(), dims.begin(), dims.end());
  return b.transpose(sums, order);
}

}  // namespace hlojit
