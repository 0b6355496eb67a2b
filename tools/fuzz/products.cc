// Products large enough for micro-kernels, of what was moved there: read in place, packed, or computed on the way.
#include <algorithm>

#include "layout/lists.h"
#include "tools/fuzz/draft.h"

namespace hlojit::tools::fuzz {

using enum Opcode;

namespace {

constexpr int64_t kMostWork = 400'000;  // multiplications, which the evaluator does one by one

Instruction* transposed(Draft& s, DType t, const Ints& sizes) {
  Ints order = s.permutation(std::ssize(sizes)), from(sizes.size());
  for (size_t d = 0; d < sizes.size(); ++d) from[static_cast<size_t>(order[d])] = sizes[d];
  return s.b.transpose(moved(s, t, from), order);
}

Instruction* stretched(Draft& s, DType t, const Ints& sizes) {
  Ints dims = s.some(std::ssize(sizes), 0.6), from;
  for (int64_t d : dims) from.push_back(sizes[static_cast<size_t>(d)]);
  return s.b.broadcast_in_dim(moved(s, t, from), sizes, dims);
}

Instruction* cut(Draft& s, DType t, const Ints& sizes) {
  Ints from, starts, limits, strides;
  for (int64_t n : sizes) {
    const int64_t stride = s.random.chance(0.15) ? 2 : 1, start = s.random.chance(0.5) ? 0 : s.random.between(0, 5);
    starts.push_back(start);
    strides.push_back(stride);
    limits.push_back(start + std::max<int64_t>(0, (n - 1) * stride + 1));
    from.push_back(limits.back() + (s.random.chance(0.5) ? 0 : s.random.between(0, 5)));
  }
  return s.b.slice(moved(s, t, from), starts, limits, strides);
}

Instruction* padded(Draft& s, DType t, const Ints& sizes) {
  Ints from;
  std::vector<PadDim> padding;
  for (int64_t n : sizes) {
    const int64_t m = s.random.chance(0.5) ? n : s.random.between(std::max<int64_t>(1, n / 2), n + 2);
    PadDim p{s.random.between(-1, 2), 0, s.random.chance(0.1) ? 1 : 0};
    p.high = n - p.low - std::max<int64_t>(0, (m - 1) * (p.interior + 1) + 1);
    from.push_back(m);
    padding.push_back(p);
  }
  return s.b.pad(moved(s, t, from), s.of(t, {}), padding);
}

Instruction* joined(Draft& s, DType t, const Ints& sizes) {
  const int64_t d = s.random.below(std::ssize(sizes));
  Ints first = sizes, second = sizes;
  first[static_cast<size_t>(d)] = s.random.between(0, sizes[static_cast<size_t>(d)]);
  second[static_cast<size_t>(d)] -= first[static_cast<size_t>(d)];
  return s.b.concat_in_dim({moved(s, t, first), moved(s, t, second)}, d);
}

// Two dimensions out of one, or one out of two.
Instruction* regrouped(Draft& s, DType t, const Ints& sizes) {
  Ints from = sizes;
  auto at = from.begin() + s.random.below(std::ssize(from));
  if (at + 1 != from.end() && s.random.chance(0.5)) {
    *at *= *(at + 1);
    from.erase(at + 1);
  } else {
    const int64_t factor = *at % 4 == 0 ? 4 : *at % 3 == 0 ? 3 : 1;
    *at /= factor;
    from.insert(at + s.random.below(2), factor);
  }
  return s.b.reshape(moved(s, t, from), sizes);
}

Instruction* converted(Draft& s, DType t, const Ints& sizes) {
  using enum DType;
  if (is_complex(t) || is_pred(t)) return s.of(t, sizes);
  return s.b.convert(moved(s, s.random.pick(std::vector{kF32, kBF16, kF16, kS8, kU8, kS32}), sizes), t);
}

Instruction* computed(Draft& s, DType t, const Ints& sizes) {
  if (is_pred(t)) return s.b.unary(kNot, moved(s, t, sizes));
  return s.b.op(s.random.chance(0.5) ? kAdd : kSubtract, {moved(s, t, sizes), moved(s, t, sizes)});
}

// What a dimension is for; a batch's and a contracted one are of both sides.
struct Role {
  int64_t size;
  bool left, right, batch;
};

std::vector<Role> draw_roles(Draft& s) {
  static const Ints kLarge = {1, 2, 3, 5, 8, 15, 16, 17, 24, 31, 33, 48, 64, 65, 100};
  static const Ints kDeep = {129, 300, 1363, 1400, 2051, 2830}, kFew = {2, 3, 5, 7, 8, 17};
  const bool deep = s.random.chance(0.15);
  std::vector<Role> roles;
  auto add = [&](int64_t count, const Ints& sizes, Role role) {
    for (; count > 0; --count) {
      role.size = s.random.pick(sizes);
      roles.push_back(role);
    }
  };
  add(s.random.chance(0.5) ? 0 : s.random.between(1, 2), {1, 2, 3, 4, 7}, {1, true, true, true});
  add(deep || s.random.chance(0.7) ? 1 : 2, deep ? kDeep : kLarge, {1, true, true, false});
  add(s.random.chance(0.7) ? 1 : s.random.between(0, 2), deep ? kFew : kLarge, {1, true, false, false});
  add(s.random.chance(0.7) ? 1 : s.random.between(0, 2), deep ? kFew : kLarge, {1, false, true, false});
  auto work = [&] {
    int64_t all = 1;
    for (const Role& r : roles) all *= r.size;
    return all;
  };
  while (work() > kMostWork) {
    auto most = std::ranges::max_element(roles, {}, &Role::size);
    most->size = (most->size + 1) / 2;
  }
  s.random.shuffle(roles);
  return roles;
}

// One side of a product: its sizes, in any order, and which dimension each role has.
struct Side {
  Ints sizes, dims;
};

Side draw_side(Draft& s, const std::vector<Role>& roles, bool Role::* of) {
  Side side{{}, Ints(roles.size(), -1)};
  for (int64_t k : s.permutation(std::ssize(roles))) {
    const Role& r = roles[static_cast<size_t>(k)];
    if (!(r.*of)) continue;
    side.dims[static_cast<size_t>(k)] = std::ssize(side.sizes);
    side.sizes.push_back(r.size);
  }
  return side;
}

Instruction* moved_product(Draft& s) {
  using enum DType;
  if (s.draw.depth > 0) return nullptr;
  const DType t =
      s.random.chance(0.3) ? s.type() : s.random.pick(std::vector{kF32, kF32, kF32, kF64, kF16, kBF16, kS8, kU8, kS32});
  const std::vector<Role> roles = draw_roles(s);
  const Side left = draw_side(s, roles, &Role::left), right = draw_side(s, roles, &Role::right);
  DotDims dims;
  for (size_t k = 0; k < roles.size(); ++k) {
    if (!roles[k].left || !roles[k].right) continue;
    (roles[k].batch ? dims.lhs_batch : dims.lhs_contracting).push_back(left.dims[k]);
    (roles[k].batch ? dims.rhs_batch : dims.rhs_contracting).push_back(right.dims[k]);
  }
  Instruction* x = factor(s, moved(s, t, left.sizes));
  Instruction* product = s.b.dot_general(x, factor(s, moved(s, t, right.sizes)), dims);
  if (s.random.chance(0.3)) widen(s, product);
  if (s.random.chance(0.4)) {
    product = s.b.op(is_pred(product->shape.type) ? kOr : kAdd,
                     {product, moved(s, product->shape.type, product->shape.dims)});
  }
  if (s.random.chance(0.3)) product = s.b.transpose(product, s.permutation(product->shape.rank()));
  return product;
}

// Few rows, some of which lie side by side in the result's memory, so that tiles hold whole numbers of these: more than
// there are. Whole numbers are read where they lie, maybe in front of a page that cannot be touched.
Instruction* rows_apart(Draft& s) {
  using enum DType;
  const DType t = s.random.pick(std::vector{kS32, kS32, kF32, kF64});
  const int64_t m = s.random.between(2, 13), k = s.random.pick(Ints{3, 8, 13, 33}), n = s.random.pick(Ints{9, 17, 45});
  DotDims dims;
  dims.lhs_contracting = {1};
  dims.rhs_contracting = {0};
  Instruction* product = s.b.dot_general(factor(s, s.of(t, {m, k})), factor(s, s.of(t, {k, n})), dims);
  Tile tile;
  tile.dims = {s.random.pick(Ints{2, 3, 4, 4, 8}), 1};
  product->shape.layout = Layout::descending(2);
  product->shape.layout.tiles = {tile};
  s.draw.pinned.insert(product);
  return product;
}

// A few rows by columns along whose depth both lie: lanes go along it, of bf16 in pairs where these are whole.
Instruction* rows_by_long_columns(Draft& s) {
  using enum DType;
  const DType t = s.random.pick(std::vector{kBF16, kBF16, kBF16, kF16, kF32, kF64});
  const int64_t k = s.random.pick(Ints{128, 130, 257, 258, 300, 510, 1026, 2050, 6000});
  const int64_t m = s.random.pick(Ints{1, 2, 3, 5, 6, 7, 11, 13, 25}), n = s.random.pick(Ints{2, 3, 5, 8, 15, 17, 40});
  const Ints batch = s.random.chance(0.3) ? Ints{s.random.between(2, 3)} : Ints{};
  auto side = [&](int64_t size) {
    Ints sizes = batch;
    sizes.insert(sizes.end(), {size, k});
    return factor(s, s.random.chance(0.7) ? s.of(t, sizes) : cut(s, t, sizes));
  };
  DotDims dims;
  const int64_t depth = std::ssize(batch) + 1;
  if (!batch.empty()) dims.lhs_batch = dims.rhs_batch = {0};
  dims.lhs_contracting = dims.rhs_contracting = {depth};
  Instruction* product = s.b.dot_general(side(m), side(n), dims);
  if (s.random.chance(0.3)) widen(s, product);
  return s.random.chance(0.4) ? s.b.op(kAdd, {product, s.of(product->shape.type, product->shape.dims)}) : product;
}

// By one layer of several, or by a part of a matrix, where indices say.
Instruction* product_of_part(Draft& s) {
  using enum DType;
  const DType t = s.random.pick(std::vector{kF32, kF32, kF32, kF64, kBF16, kS32});
  const int64_t rows = s.random.pick(Ints{1, 1, 2, 4, 17, 40}), depth = s.random.pick(Ints{17, 64, 130});
  const Ints part = {s.random.pick(Ints{16, 67, 128}), depth};
  const Ints order = s.permutation(3);  // of columns, depth and layers
  Ints from(3), sizes(3), rest;
  Builder::Values starts(3);
  for (size_t d = 0; d < 3; ++d) {
    const bool layers = order[d] == 2;
    sizes[d] = layers ? 1 : part[static_cast<size_t>(order[d])];
    from[d] = sizes[d] + (layers || s.random.chance(0.2) ? s.random.between(0, 3) : 0);
    starts[d] = s.index(kS32, from[d] - sizes[d]);
    if (!layers) rest.push_back(sizes[d]);
  }
  Instruction* w = s.b.reshape(s.b.dynamic_slice(factor(s, s.of(t, from)), starts, sizes), rest);
  const bool depth_first = std::ranges::find(order, 1) < std::ranges::find(order, 0);
  DotDims dims;
  dims.lhs_contracting = {1};
  dims.rhs_contracting = {depth_first ? 0 : 1};
  return s.b.dot_general(factor(s, s.of(t, {rows, depth})), w, dims);
}

}  // namespace

Instruction* moved(Draft& s, DType type, const Ints& sizes) {
  static constexpr Instruction* (*kMoves[])(Draft&, DType, const Ints&) = {transposed, stretched, cut,       padded,
                                                                           joined,     regrouped, converted, computed};
  if (sizes.empty() || product(sizes) == 0 || s.random.chance(0.5)) return s.of(type, sizes);
  return s.random.pick(std::vector(std::begin(kMoves), std::end(kMoves)))(s, type, sizes);
}

Family rows_apart_family() { return {"rows apart", {{rows_apart, 20}}, 0.03}; }
Family rows_by_long_columns_family() { return {"rows by long columns", {{rows_by_long_columns, 20}}, 0.03}; }
Family part_product_family() { return {"products of parts", {{product_of_part, 20}}, 0.04}; }
Family moved_product_family() { return {"products of what was moved", {{moved_product, 20}}, 0.06}; }

}  // namespace hlojit::tools::fuzz
