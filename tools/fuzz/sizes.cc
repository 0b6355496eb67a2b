// Sizes known at run time only: an array is given such a size, or comes as a parameter with one; ops carry it on; in
// the end something is made of it that has none, or it is a result. Arrays of such sizes stay inside of here, as most
// other ops would ask for equal sizes and get equal bounds.
#include <algorithm>

#include "tools/fuzz/draft.h"

namespace hlojit::tools::fuzz {
namespace {

using enum Opcode;

// An array and the one dimension of it whose size is `size`, at most the bound.
struct Sized {
  Instruction* x;
  int64_t dim;
  Instruction* size;

  DType type() const { return x->shape.type; }
  int64_t bound() const { return x->shape.dims[static_cast<size_t>(dim)]; }
};

Attributes along(int64_t dim) {
  Attributes a;
  a.dimensions = {dim};
  a.has_dimensions = true;
  return a;
}

Instruction* resized(Draft& s, Instruction* x, int64_t dim, Instruction* size) {
  return s.b.op(kSetDimensionSize, {x, size}, along(dim));
}

std::optional<Sized> start(Draft& s) {
  if (s.draw.depth == 0 && s.draw.devices == 1 && s.random.chance(0.4)) {
    Shape shape = Shape::array(s.type(), s.shape(1, 3));
    int64_t d = s.random.below(shape.rank());
    if (s.random.chance(0.2)) shape.dims[static_cast<size_t>(d)] = 1;
    shape.dynamic.assign(shape.dims.size(), false);
    shape.dynamic[static_cast<size_t>(d)] = true;
    Instruction* p = s.b.parameter(shape);
    return Sized{p, d, s.b.op(kGetDimensionSize, {p}, along(d))};
  }
  Instruction* x = s.any([](const Shape& v) { return v.rank() >= 1 && v.rank() <= 4; });
  if (!x) return std::nullopt;
  int64_t d = s.random.below(x->shape.rank()), bound = x->shape.dims[static_cast<size_t>(d)];
  auto number = [&](int64_t n) { return s.b.constant(DType::kS32, static_cast<double>(n)); };
  Instruction* size = s.random.chance(0.4) ? number(s.random.between(0, bound))
                                           : s.b.op(kClamp, {number(0), s.of(DType::kS32, {}), number(bound)});
  return Sized{resized(s, x, d, size), d, size};
}

// Another array whose dimension `dim` has the same size.
Instruction* like(Draft& s, const Sized& v, DType type, Ints sizes, int64_t dim) {
  sizes[static_cast<size_t>(dim)] = v.bound();
  return resized(s, s.of(type, sizes), dim, v.size);
}
Instruction* like(Draft& s, const Sized& v) { return like(s, v, v.type(), v.x->shape.dims, v.dim); }

// Says of a value that its size is known at run time only.
Instruction* marked(Instruction* x, int64_t dim) {
  x->shape.dynamic.assign(x->shape.dims.size(), false);
  x->shape.dynamic[static_cast<size_t>(dim)] = true;
  return x;
}

// Small integers, of which sums are exact in any order.
Instruction* summable(Draft& s, Instruction* x, int64_t dim) {
  DType t = x->shape.type;
  if (!is_float(t)) return x;
  x = s.b.op(kClamp, {s.b.constant(t, -2), x, s.b.constant(t, 2)});
  return marked(s.b.unary(kRoundEven, marked(x, dim)), dim);
}

// ---- ops that carry the size on ----------------------------------------------------------------------

// With an array of the same size, or of one of its own: the result has the lesser.
void elementwise(Draft& s, Sized& v) {
  Sized other = v;
  if (s.random.chance(0.5)) other.size = s.b.constant(DType::kS32, static_cast<double>(s.random.between(0, v.bound())));
  Instruction* y = like(s, other);
  if (other.size != v.size) v.size = s.b.binary(kMinimum, v.size, other.size);
  DType t = v.type();
  if (is_pred(t))
    v.x = s.b.op(kXor, {v.x, y});
  else if (is_complex(t) || s.random.chance(0.5))
    v.x = s.b.op(s.random.chance(0.5) ? kAdd : kSubtract, {v.x, y});
  else
    v.x = s.b.op(kSelect, {marked(s.b.compare(Direction::kLt, v.x, y), v.dim), y, v.x});
}

void transposed(Draft& s, Sized& v) {
  Ints order = s.permutation(v.x->shape.rank());
  v.x = s.b.transpose(v.x, order);
  v.dim = std::ranges::find(order, v.dim) - order.begin();
}

void reversed(Draft& s, Sized& v) {
  Ints dims = s.some(v.x->shape.rank());
  v.x = s.b.rev(v.x, dims.empty() ? Ints{v.dim} : dims);
}

void renew_size(Draft& s, Sized& v) { v.size = s.b.op(kGetDimensionSize, {marked(v.x, v.dim)}, along(v.dim)); }

void padded(Draft& s, Sized& v) {
  std::vector<PadDim> padding(v.x->shape.dims.size());
  for (PadDim& p : padding) {
    if (s.random.chance(0.5)) p = {s.random.between(0, 2), s.random.between(0, 2), s.random.between(0, 1)};
  }
  v.x = s.b.pad(v.x, s.of(v.type(), {}), padding);
  renew_size(s, v);
}

void joined(Draft& s, Sized& v) {
  int64_t d = s.random.chance(0.6) ? v.dim : s.random.below(v.x->shape.rank());
  Instruction* y = d == v.dim && s.random.chance(0.5) ? s.of(v.type(), v.x->shape.dims) : like(s, v);
  v.x = s.b.concat_in_dim(s.random.chance(0.5) ? Builder::Values{v.x, y} : Builder::Values{y, v.x}, d);
  renew_size(s, v);
}

void sorted(Draft& s, Sized& v) {
  if (is_complex(v.type())) return;
  Builder b(s.draw.module, "less");
  Instruction* p = b.parameter(Shape::scalar(v.type()));
  Instruction* q = b.parameter(Shape::scalar(v.type()));
  b.build(b.compare(Direction::kLt, p, q, is_float(v.type()) ? CompareType::kTotalOrder : CompareType::kDefault));
  v.x = s.b.sort({v.x}, b.computation(), s.random.below(v.x->shape.rank()), true);
}

// Over other dimensions than the sized one.
void reduced_beside(Draft& s, Sized& v) {
  Ints dims = s.some(v.x->shape.rank());
  std::erase(dims, v.dim);
  DType t = v.type();
  Computation* c = combiner(s, is_pred(t) ? kOr : kAdd, t);
  v.x = s.b.reduce({summable(s, v.x, v.dim)}, {s.b.constant(t, 0)}, c, dims);
  v.dim -= std::ranges::count_if(dims, [&](int64_t d) { return d < v.dim; });
}

void windowed(Draft& s, Sized& v) {
  std::vector<WindowDim> window(v.x->shape.dims.size());
  for (WindowDim& w : window) {
    w.size = s.random.between(1, 3);
    w.stride = s.random.between(1, 2);
    w.pad_low = s.random.between(0, w.size - 1);
    w.pad_high = s.random.between(0, w.size - 1);
  }
  DType t = v.type();
  v.x = s.b.reduce_window({summable(s, v.x, v.dim)}, {s.b.constant(t, 0)}, combiner(s, is_pred(t) ? kOr : kAdd, t),
                          window);
  renew_size(s, v);
}

// A part of each dimension; of the sized one all or several elements, of which some or none are there.
int64_t part_of(Draft& s, const Sized& v, int64_t d) {
  int64_t bound = v.x->shape.dims[static_cast<size_t>(d)];
  if (s.random.chance(d == v.dim ? 0.2 : 0.5) || (d == v.dim && bound <= 2)) return bound;
  return s.random.between(d == v.dim ? 2 : 0, bound);
}

void cut(Draft& s, Sized& v) {
  Ints starts, limits, strides;
  for (int64_t d = 0; d < v.x->shape.rank(); ++d) {
    int64_t part = part_of(s, v, d), room = v.x->shape.dims[static_cast<size_t>(d)] - part;
    starts.push_back(s.random.between(0, room));
    limits.push_back(starts.back() + part);
    strides.push_back(part > 3 && s.random.chance(0.3) ? s.random.between(1, part - 2) : 1);
  }
  v.x = s.b.slice(v.x, starts, limits, strides);
  renew_size(s, v);
}

void cut_somewhere(Draft& s, Sized& v) {
  std::vector<Instruction*> starts;
  Ints parts;
  DType t = s.random.pick(std::vector{DType::kS32, DType::kS64, DType::kU8});
  for (int64_t d = 0; d < v.x->shape.rank(); ++d) {
    parts.push_back(part_of(s, v, d));
    starts.push_back(s.index(t, v.x->shape.dims[static_cast<size_t>(d)]));
  }
  v.x = s.b.dynamic_slice(v.x, starts, parts);
  renew_size(s, v);
}

// Rows of an array beside the sized dimension; or as many rows of another array as there are indices.
void rows(Draft& s, Sized& v) {
  const bool many = s.random.chance(0.5);
  if (!many && v.dim == 0) return;
  Instruction* x = v.x;
  if (many) x = s.any([](const Shape& x) { return x.rank() >= 1 && x.rank() <= 3; });
  if (!x || x->shape.dims[0] == 0) return;
  GatherDims g;
  g.index_vector_dim = 1;
  g.collapsed_slice_dims = g.start_index_map = {0};
  g.slice_sizes = x->shape.dims;
  g.slice_sizes[0] = 1;
  for (int64_t d = 1; d < x->shape.rank(); ++d) g.offset_dims.push_back(d);
  const Ints count = {s.random.pick(s.draw.sizes)};
  v.x = s.b.gather(x, many ? like(s, v, DType::kS32, count, 0) : s.of(DType::kS32, count), std::move(g));
  if (many) v.dim = 0;
}

// Two dimensions become one.
void merged(Draft& s, Sized& v) {
  if (v.x->shape.rank() < 2) return;
  int64_t d = s.random.below(v.x->shape.rank() - 1);
  Shape shape = v.x->shape;
  shape.dynamic.clear();
  auto at = static_cast<size_t>(d);
  shape.dims[at] *= shape.dims[at + 1];
  shape.dims.erase(shape.dims.begin() + d + 1);
  shape.layout = Layout::descending(shape.rank());
  if (v.dim > d) --v.dim;
  v.x = s.b.op(kReshape, shape, {v.x});
  renew_size(s, v);
}

// Dimensions of one element go and come.
void with_other_units(Draft& s, Sized& v) {
  Ints dims;
  int64_t dim = 0;
  auto unit = [&] {
    if (dims.size() < 4 && s.random.chance(0.4)) dims.push_back(1);
  };
  for (int64_t d = 0; d < v.x->shape.rank(); ++d) {
    unit();
    if (d == v.dim) dim = std::ssize(dims);
    const int64_t n = v.x->shape.dims[static_cast<size_t>(d)];
    if (n != 1 || d == v.dim || s.random.chance(0.5)) dims.push_back(n);
  }
  unit();
  v.dim = dim;
  v.x = s.b.op(kReshape, Shape::array(v.type(), dims), {v.x});
}

void called(Draft& s, Sized& v) {
  Builder b(s.draw.module, "sized");
  Instruction* p = b.parameter(v.x->shape);
  b.build(marked(is_pred(v.type()) ? b.unary(kNot, p) : b.op(kAdd, {p, p}), v.dim));
  v.x = s.b.call(b.computation(), {v.x});
}

// ---- ends --------------------------------------------------------------------------------------------

Instruction* total(Draft& s, const Sized& v) {
  Ints dims = s.some(v.x->shape.rank());
  if (std::ranges::find(dims, v.dim) == dims.end()) dims.push_back(v.dim);
  DType t = v.type();
  Opcode op = is_pred(t) ? kAnd : is_complex(t) || s.random.chance(0.6) ? kAdd : kMaximum;
  return s.b.reduce({summable(s, v.x, v.dim)}, {s.b.constant(t, op == kAdd ? 0 : 1)}, combiner(s, op, t), dims);
}

Instruction* contracted(Draft& s, const Sized& v) {
  DotDims dims;
  dims.lhs_contracting = {v.dim};
  dims.rhs_contracting = {0};
  Instruction* y = like(s, v, v.type(), {v.bound(), s.random.pick(s.draw.sizes)}, 0);
  return s.b.dot_general(summable(s, v.x, v.dim), summable(s, y, 0), dims);
}

Instruction* sized(Draft& s) {
  std::optional<Sized> v = start(s);
  if (!v) return nullptr;
  static constexpr void (*kSteps[])(Draft&, Sized&) = {
      elementwise, elementwise,   transposed, reversed,       padded, joined,           sorted, windowed,
      cut,         cut_somewhere, rows,       reduced_beside, merged, with_other_units, called};
  for (int64_t n = s.random.between(0, 4); n > 0; --n) {
    Sized before = *v;
    s.random.pick(std::vector(std::begin(kSteps), std::end(kSteps)))(s, *v);
    marked(v->x, v->dim);
    if (!s.fits(v->x->shape.dims)) v = before;
  }
  if (s.draw.depth == 0 && s.random.chance(0.4)) s.draw.sized.push_back(v->x);
  if (s.random.chance(0.15)) return s.b.op(kGetDimensionSize, {v->x}, along(v->dim));
  return s.random.chance(0.7) ? total(s, *v) : contracted(s, *v);
}

}  // namespace

Family size_family() { return {"sizes at run time", {{sized, 3}}, 0.04}; }

}  // namespace hlojit::tools::fuzz
