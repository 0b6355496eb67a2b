// Dots with any dimensions in any role, and convolutions.
#include <algorithm>

#include "tools/fuzz/scope.h"

namespace hlojit::tools::fuzz {
namespace {

using enum Opcode;

// Operands of which the products' sums are exact, unless the module is tame anyway.
Instruction* factor(Scope& s, Instruction* x) {
  if (!is_float(x->shape.type) || (s.draw.tame && s.random.chance(0.6))) return x;
  return s.small(x, dtype_bits(x->shape.type) == 16 ? 1 : 4);
}

Instruction* dot(Scope& s) {
  Instruction* x = s.any([](const Shape& v) { return v.rank() <= 4 && !is_pred(v.type); });
  if (!x) return nullptr;
  DotDims dims;
  struct Dim {
    int64_t size, role;  // role: lhs dimension that it is paired with, or -1: free
    bool batch;
  };
  std::vector<Dim> other;
  int64_t elements = 1;
  for (int64_t d = 0; d < x->shape.rank(); ++d) {
    int64_t size = x->shape.dims[static_cast<size_t>(d)];
    int64_t role = s.random.below(5);
    if (role == 0)
      other.push_back({size, d, true});
    else if (role <= 2)
      other.push_back({size, d, false});
    if (role == 0 || role > 2) elements *= std::max<int64_t>(size, 1);
  }
  for (int64_t n = s.random.between(0, 2); n > 0; --n) {
    int64_t size = s.random.pick(s.draw.sizes);
    if (elements * std::max<int64_t>(size, 1) > 4 * s.draw.most_elements) continue;
    elements *= std::max<int64_t>(size, 1);
    other.push_back({size, -1, false});
  }
  s.random.shuffle(other);
  Ints sizes;
  for (size_t k = 0; k < other.size(); ++k) {
    sizes.push_back(other[k].size);
    if (other[k].role < 0) continue;
    (other[k].batch ? dims.lhs_batch : dims.lhs_contracting).push_back(other[k].role);
    (other[k].batch ? dims.rhs_batch : dims.rhs_contracting).push_back(static_cast<int64_t>(k));
  }
  if (!s.fits(sizes) || elements > 4 * s.draw.most_elements) return nullptr;
  Instruction* y = s.of(x->shape.type, sizes);
  bool swap = s.random.chance(0.3);
  Instruction* l = factor(s, x);
  Instruction* r = factor(s, y);
  if (swap) {
    std::swap(l, r);
    std::swap(dims.lhs_batch, dims.rhs_batch);
    std::swap(dims.lhs_contracting, dims.rhs_contracting);
  }
  return s.b.dot_general(l, r, dims);
}

// Plain matrix product of odd sizes, what the micro-kernels are for.
Instruction* matmul(Scope& s) {
  Instruction* x = s.any([](const Shape& v) { return v.rank() == 2 && is_float(v.type); });
  if (!x) return nullptr;
  int64_t k = s.random.below(2);
  Ints sizes = {x->shape.dims[static_cast<size_t>(k)], s.random.pick(s.draw.sizes)};
  int64_t at = s.random.below(2);
  if (at == 1) std::swap(sizes[0], sizes[1]);
  if (!s.fits(sizes)) return nullptr;
  DotDims dims;
  dims.lhs_contracting = {k};
  dims.rhs_contracting = {at};
  Instruction* y = s.of(x->shape.type, sizes);
  Instruction* product = s.b.dot_general(factor(s, x), factor(s, y), dims);
  if (s.random.chance(0.4)) product = s.b.op(kAdd, {product, s.of(product->shape)});
  return product;
}

Instruction* convolution(Scope& s) {
  DType t = s.any()->shape.type;
  if (is_pred(t) || is_complex(t)) t = DType::kF32;
  int64_t space = s.random.between(1, 2);
  int64_t groups = s.random.chance(0.3) ? 2 : 1, features = groups * s.random.between(1, 3);
  Ints x_sizes = {s.random.between(1, 3), features}, k_sizes = {groups * s.random.between(1, 3), features / groups};
  std::vector<WindowDim> window;
  for (int64_t d = 0; d < space; ++d) {
    WindowDim w;
    int64_t size = s.random.between(3, 9);
    w.size = s.random.between(1, 3);
    w.stride = s.random.between(1, 2);
    w.pad_low = s.random.between(0, 2);
    w.pad_high = s.random.between(-1, 2);
    if (s.random.chance(0.2)) w.lhs_dilate = 2;
    if (s.random.chance(0.2)) w.rhs_dilate = 2;
    w.reversal = s.random.chance(0.1);
    x_sizes.push_back(size);
    k_sizes.push_back(w.size);
    window.push_back(w);
  }
  Instruction* x = factor(s, s.of(t, x_sizes));
  Instruction* k = factor(s, s.of(t, k_sizes));
  return s.b.conv(x, k, window, Builder::default_conv_dims(2 + space), groups);
}

}  // namespace

Family dot_family() { return {"dots", {{dot, 3}, {matmul, 3}}}; }
Family convolution_family() { return {"convolution", {{convolution, 5}}}; }

}  // namespace hlojit::tools::fuzz
