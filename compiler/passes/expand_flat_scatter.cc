// Scatters of single elements into arrays of several dims: where each goes is one number, which vectors compute for
// many at once; what is left to be done one by one finds its place as it is.
//
//   scatter(x, i, u)     x: f32[322,35], i: s32[58000,2], of elements
//     ->  n = i[:,0] * 35 + i[:,1], or -1 where either lies outside
//         scatter(x as f32[11270], n, u)
#include <algorithm>
#include <cstdint>
#include <limits>

#include "compiler/passes/expansions.h"
#include "layout/lists.h"

namespace hlojit {
namespace {

using enum Opcode;

int64_t largest(DType type) {
  const int bits = static_cast<int>(dtype_bits(type)) - (is_signed(type) ? 1 : 0);
  return bits >= 63 ? std::numeric_limits<int64_t>::max() : (int64_t{1} << bits) - 1;
}

/// The index vectors of a scatter, `count` of them, component by component.
struct Indices {
  Builder& b;
  Instruction* all;
  int64_t vector_dim, count;

  Instruction* everywhere(DType type, int64_t value) const {
    return b.broadcast(b.constant(type, static_cast<double>(value)), {count});
  }
  Instruction* component(int64_t k) const {
    const bool vectors = vector_dim < all->shape.rank();
    return b.reshape(vectors ? b.slice_in_dim(all, k, k + 1, 1, vector_dim) : all, {count});
  }
  /// Where x lies in a dim of `size`; nullptr: always.
  Instruction* inside(Instruction* x, int64_t size) const {
    const DType type = x->shape.type;
    Instruction *from = nullptr, *to = nullptr;
    if (is_signed(type)) from = b.compare(Direction::kGe, x, everywhere(type, 0));
    if (largest(type) >= size) to = b.compare(Direction::kLt, x, everywhere(type, size));
    return from && to ? b.binary(kAnd, from, to) : from ? from : to;
  }
};

bool is_row_major(const Shape& shape) {
  return !shape.layout.tiled() && shape.layout == Layout::descending(shape.rank());
}

bool is_of_elements(const Instruction& op, size_t count) {
  const ScatterDims& dims = op.attrs.scatter;
  const Shape& updates = op.operand(count + 1)->shape;
  return dims.input_batching_dims.empty() && std::ranges::all_of(dims.update_window_dims, [&](int64_t d) {
           return updates.dims[static_cast<size_t>(d)] == 1;
         });
}

}  // namespace

Instruction* expand_flat_scatter(Builder& b, const Instruction& op) {
  constexpr int64_t kFewest = 256;  // elements: of fewer another kernel takes longer
  const size_t count = op.operand_count() / 2;
  const Shape &target = op.operand(0)->shape, &indices = op.operand(count)->shape;
  const int64_t elements = target.element_count(), updates = op.operand(count + 1)->shape.element_count();
  const ScatterDims& dims = op.attrs.scatter;
  if (dims.scatter_dims_to_operand_dims.size() < 2 || !is_of_elements(op, count) || updates < kFewest) return nullptr;
  if (elements == 0 || elements > INT32_MAX || dtype_bits(indices.type) < 8) return nullptr;
  for (size_t k = 0; k < count; ++k) {
    if (!is_row_major(op.operand(k)->shape)) return nullptr;
  }
  const Indices at{b, op.operand(count), dims.index_vector_dim, updates};
  Instruction *sum = nullptr, *inside = nullptr;
  for (size_t k = 0; k < dims.scatter_dims_to_operand_dims.size(); ++k) {
    const auto d = static_cast<size_t>(dims.scatter_dims_to_operand_dims[k]);
    Instruction* x = at.component(static_cast<int64_t>(k));
    Instruction* here = at.inside(x, target.dims[d]);
    if (here) inside = inside ? b.binary(kAnd, inside, here) : here;
    if (x->shape.type != DType::kS32) x = b.convert(x, DType::kS32);
    const int64_t step = product(std::span(target.dims).subspan(d + 1));
    x = b.binary(kMultiply, x, at.everywhere(DType::kS32, step));
    sum = sum ? b.binary(kAdd, sum, x) : x;
  }
  if (inside) sum = b.select(inside, sum, at.everywhere(DType::kS32, -1));
  Builder::Values operands;
  for (size_t k = 0; k < count; ++k) operands.push_back(b.reshape(op.operand(k), {elements}));
  operands.push_back(sum);
  for (size_t k = 0; k < count; ++k) operands.push_back(b.reshape(op.operand(count + 1 + k), {updates}));
  Attributes a = op.attrs;
  a.scatter.edit() = {.update_window_dims = {},
                      .inserted_window_dims = {0},
                      .scatter_dims_to_operand_dims = {0},
                      .input_batching_dims = {},
                      .scatter_indices_batching_dims = {},
                      .index_vector_dim = 1};
  a.indices_are_sorted = false;
  Instruction* made = b.op(kScatter, std::move(operands), std::move(a), op.called);
  if (!op.shape.is_tuple()) return b.reshape(made, target.dims);
  Builder::Values results;
  for (size_t k = 0; k < count; ++k)
    results.push_back(b.reshape(b.get_tuple_element(made, static_cast<int64_t>(k)), target.dims));
  return b.tuple(std::move(results));
}

}  // namespace hlojit
