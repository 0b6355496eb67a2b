// A few long windows, a reduction each:
//
//   y = reduce-window(x)          f32[n,514] -> f32[n,3], windows of 512
//     ->  concatenate(reduce(slice(x, 0:512)), reduce(slice(x, 1:513)), reduce(slice(x, 2:514)))
//
// As windows their lanes lie along the starts, 3 of 16, and each waits for one sum; a reduction has them along the
// window, and several sums. With other elements side by side within the dimension the lanes lie there, and all is well.
// One operation that may be regrouped is needed.
#include "compiler/ir/combining.h"
#include "compiler/passes/expansions.h"
#include "layout/lists.h"

namespace hlojit {
namespace {

constexpr int64_t kFew = 4;
constexpr int64_t kLong = 100;  // with 128 elements two to eleven times as fast, with 64 of bf16 slower

// The one dimension that windows go along, unpadded; nullopt if they are others, or short, or many, or elements lie
// within it.
std::optional<size_t> long_dimension(const Instruction& op) {
  std::optional<size_t> found;
  for (size_t d = 0; d < op.attrs.window.size(); ++d) {
    const WindowDim& w = op.attrs.window[d];
    if (w.pad_low != 0 || w.pad_high != 0 || w.lhs_dilate != 1 || w.rhs_dilate != 1) return std::nullopt;
    if (w.size == 1 && w.stride == 1) {
      if (found && op.shape.dims[d] != 1) return std::nullopt;
      continue;
    }
    if (found || w.size < kLong || op.shape.dims[d] < 2 || op.shape.dims[d] > kFew) return std::nullopt;
    found = d;
  }
  return found;
}

}  // namespace

Instruction* expand_few_windows(Builder& b, const Instruction& op) {
  if (!op.shape.is_array() || !combining_op(*op.to_apply())) return nullptr;
  const std::optional<size_t> found = long_dimension(op);
  if (!found) return nullptr;
  const auto dim = static_cast<int64_t>(*found);
  const WindowDim& w = op.attrs.window[*found];
  Ints one = op.shape.dims;
  one[*found] = 1;
  Builder::Values sums;
  for (int64_t k = 0; k < op.shape.dims[*found]; ++k) {
    Instruction* part = b.slice_in_dim(op.operand(0), k * w.stride, k * w.stride + w.size, 1, dim);
    sums.push_back(b.reshape(b.reduce({part}, {op.operand(1)}, op.to_apply(), {dim}), one));
  }
  return b.concat_in_dim(sums, dim);
}

}  // namespace hlojit
