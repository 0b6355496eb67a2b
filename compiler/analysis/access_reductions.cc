// Relations of ops that combine elements over reduction variables. A window position p reads element
// p / dilation of its dimension where p falls on one; padding is a failing guard. The gaps of a dilated base
// are never visited: of a window's positions every so many falls on an element, from one on that depends on
// the result's index.
#include <numeric>

#include "compiler/analysis/access_rules.h"

namespace hlojit {
namespace access_rules {
namespace {

// N inputs read at the same place.
AccessRelation inputs_at(const Instruction& i, const Read& read) {
  AccessRelation r;
  for (size_t k = 0; k < i.operand_count() / 2; ++k) {
    r.reads.push_back(read);
    r.reads.back().operand = k;
  }
  return r;
}

AccessRelation reduce(const Instruction& i, const Coords& kept, std::span<const IndexExpr> reduced) {
  Read read;
  size_t k = 0, r = 0;
  for (int64_t d = 0; d < i.operand(0)->shape.rank(); ++d) {
    read.coords.push_back(contains(i.attrs.dimensions, d) ? reduced[r++] : kept[k++]);
  }
  return inputs_at(i, read);
}

// Every so many positions of a window fall on an element of the base.
int64_t window_step(const WindowDim& w) { return w.lhs_dilate / std::gcd(w.lhs_dilate, w.rhs_dilate); }

// How many positions may.
int64_t window_terms(const WindowDim& w) {
  int64_t step = window_step(w);
  return (w.size + step - 1) / step;
}

// x with a * x = 1 modulo m, of coprime numbers.
int64_t inverse(int64_t a, int64_t m) {
  for (int64_t x = 1; x < m; ++x) {
    if (a % m * x % m == 1) return x;
  }
  return 0;
}

// One of a window's positions that may fall on an element. Its guards hold where the window reaches so far, and where
// it falls on one, not between two.
struct WindowTerm {
  IndexExpr position;  // in the window
  IndexExpr element;   // of the base, or beyond its ends
  std::vector<Guard> guards;
};

// The one with number `term`, for the result's index `out`. first + position * rhs_dilate is to be a multiple of
// lhs_dilate; `common` must divide `first` already.
WindowTerm window_term(const WindowDim& w, const IndexExpr& out, const IndexExpr& term) {
  const int64_t step = window_step(w), common = w.lhs_dilate / step;
  const IndexExpr first = out * w.stride - IndexExpr(w.pad_low);
  const IndexExpr from = (IndexExpr(0) - floordiv(first, common)) * inverse(w.rhs_dilate / common, step);
  WindowTerm t{.position = mod(from, step) + term * step, .element{}, .guards{}};
  t.element = floordiv(first + t.position * w.rhs_dilate, w.lhs_dilate);
  for (const Guard& g : {Guard{mod(first, common), 0, 1}, Guard{t.position, 0, w.size}}) {
    if (!g.always()) t.guards.push_back(g);
  }
  return t;
}

// Adds its coordinate in the base, of size n.
void add_term(Read& read, const WindowTerm& t, int64_t n) {
  read.coords.push_back(t.element);
  read.guards.insert(read.guards.end(), t.guards.begin(), t.guards.end());
  if (Guard g{t.element, 0, n}; !g.always()) read.guards.push_back(g);
}

AccessRelation reduce_window(const Instruction& i, const Coords& at, std::span<const IndexExpr> reduced) {
  Read read;
  for (size_t d = 0; d < at.size(); ++d) {
    const WindowDim w = d < i.attrs.window.size() ? i.attrs.window[d] : WindowDim{};
    add_term(read, window_term(w, at[d], reduced[d]), i.operand(0)->shape.dims[d]);
  }
  return inputs_at(i, read);
}

// Result dims: batch, free dims of the left side, free dims of the right side.
Coords dot_operand(const Instruction& dot, size_t k, const Coords& result, std::span<const IndexExpr> contracting) {
  const DotDims& d = dot.attrs.dot;
  const Ints &batch = d.batch(k), &contracted = d.contracting(k);
  const Shape& shape = dot.operand(k)->shape;
  size_t lhs_free = dot.operand(0)->shape.dims.size() - d.lhs_batch.size() - d.lhs_contracting.size();
  size_t next = batch.size() + (k == 0 ? 0 : lhs_free);
  Coords c;
  for (int64_t dim = 0; dim < shape.rank(); ++dim) {
    auto b = std::find(batch.begin(), batch.end(), dim);
    auto x = std::find(contracted.begin(), contracted.end(), dim);
    if (b != batch.end())
      c.push_back(result[static_cast<size_t>(b - batch.begin())]);
    else if (x != contracted.end())
      c.push_back(contracting[static_cast<size_t>(x - contracted.begin())]);
    else
      c.push_back(result[next++]);
  }
  return c;
}

AccessRelation dot(const Instruction& i, const Coords& at, std::span<const IndexExpr> contracting) {
  AccessRelation r;
  for (size_t k = 0; k < 2; ++k) r.reads.push_back({k, dot_operand(i, k, at, contracting), {}});
  return r;
}

// Reduction variables: the kernel's spatial positions (those that fall on elements), then its input features.
AccessRelation convolution(const Instruction& i, const Coords& at, std::span<const IndexExpr> reduced) {
  const ConvDims& c = i.attrs.conv;
  const Shape &lhs = i.operand(0)->shape, &rhs = i.operand(1)->shape;
  auto size = [](const Shape& s, int64_t d) { return s.dims[static_cast<size_t>(d)]; };
  const IndexExpr& feature = at[static_cast<size_t>(c.out_feature)];
  int64_t features = size(i.shape, c.out_feature);
  // Group number of an output feature: features of one group are neighbours.
  auto group = [&](int64_t groups) { return floordiv(feature, std::max<int64_t>(features / groups, 1)); };
  Coords x(lhs.dims.size()), w(rhs.dims.size());
  x[static_cast<size_t>(c.lhs_batch)] =
      at[static_cast<size_t>(c.out_batch)] +
      group(i.attrs.batch_group_count) * (size(lhs, c.lhs_batch) / i.attrs.batch_group_count);
  x[static_cast<size_t>(c.lhs_feature)] =
      group(i.attrs.feature_group_count) * size(rhs, c.rhs_input_feature) + reduced[c.lhs_spatial.size()];
  w[static_cast<size_t>(c.rhs_output_feature)] = feature;
  w[static_cast<size_t>(c.rhs_input_feature)] = reduced[c.lhs_spatial.size()];
  // Where there is no tap both sides are nothing, so that products of blocks multiply zero by zero.
  std::vector<Guard> guards, taps;
  for (size_t s = 0; s < c.lhs_spatial.size(); ++s) {
    const WindowDim& d = i.attrs.window[s];
    IndexExpr out = at[static_cast<size_t>(c.out_spatial[s])];
    const WindowTerm t = window_term(d, out, reduced[s]);
    Read along;
    add_term(along, t, size(lhs, c.lhs_spatial[s]));
    x[static_cast<size_t>(c.lhs_spatial[s])] = along.coords[0];
    guards.insert(guards.end(), along.guards.begin(), along.guards.end());
    taps.insert(taps.end(), t.guards.begin(), t.guards.end());
    w[static_cast<size_t>(c.rhs_spatial[s])] = d.reversal ? IndexExpr(d.size - 1) - t.position : t.position;
  }
  AccessRelation r;
  r.reads.push_back({0, std::move(x), std::move(guards)});
  r.reads.push_back({1, std::move(w), std::move(taps)});
  return r;
}

}  // namespace

AccessRelation reduction_relation(const Instruction& i, const Coords& at, std::span<const IndexExpr> reduced,
                                  VarSource&) {
  switch (i.opcode) {
    case Opcode::kConvolution: return convolution(i, at, reduced);
    case Opcode::kDot: return dot(i, at, reduced);
    case Opcode::kReduceWindow: return reduce_window(i, at, reduced);
    default: return reduce(i, at, reduced);
  }
}

}  // namespace access_rules

bool is_reduction(const Instruction& i) {
  switch (i.opcode) {
    case Opcode::kConvolution:
    case Opcode::kDot:
    case Opcode::kReduce:
    case Opcode::kReduceWindow: return true;
    default: return false;
  }
}

std::span<Instruction* const> initial_values(const Instruction& i) {
  if (!i.is(Opcode::kReduce) && !i.is(Opcode::kReduceWindow)) return {};
  return i.operands().subspan(i.operand_count() / 2);
}

Ints reduction_sizes(const Instruction& i) {
  Ints sizes;
  auto add_operand_dims = [&](size_t k, const Ints& dims) {
    for (int64_t d : dims) sizes.push_back(i.operand(k)->shape.dims[static_cast<size_t>(d)]);
  };
  switch (i.opcode) {
    case Opcode::kReduce: {
      Ints dims = i.attrs.dimensions;
      std::sort(dims.begin(), dims.end());
      add_operand_dims(0, dims);
      break;
    }
    case Opcode::kReduceWindow:
      for (size_t d = 0; d < i.operand(0)->shape.dims.size(); ++d) {
        sizes.push_back(d < i.attrs.window.size() ? access_rules::window_terms(i.attrs.window[d]) : 1);
      }
      break;
    case Opcode::kDot: add_operand_dims(0, i.attrs.dot->lhs_contracting); break;
    case Opcode::kConvolution:
      for (size_t s = 0; s < i.attrs.conv->lhs_spatial.size(); ++s)
        sizes.push_back(access_rules::window_terms(i.attrs.window[s]));
      add_operand_dims(1, {i.attrs.conv->rhs_input_feature});
      break;
    default: break;
  }
  return sizes;
}

}  // namespace hlojit
