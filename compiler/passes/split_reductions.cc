// See split_reductions.h.
#include "compiler/passes/split_reductions.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <vector>

#include "compiler/analysis/dataflow.h"
#include "compiler/ir/combining.h"
#include "compiler/ir/instruction_set.h"
#include "compiler/ir/narrow.h"
#include "compiler/passes/equal_parts.h"
#include "compiler/passes/explain.h"
#include "compiler/passes/reduced_arrays.h"

namespace hlojit {
namespace {

constexpr int64_t kMinElements = 1 << 17;  // below, one core is as fast
constexpr int64_t kMaxKept = 8;            // as many results keep the cores busy
constexpr int64_t kFewestSteps = 16;       // of a dim that is cut
constexpr int64_t kFewArrays = 8;          // side by side: one that is as large as such is reduced for itself

/// How a reduction is cut: dim `dim` in equal parts, and what they leave over.
struct Cut {
  int64_t dim, parts;
  std::optional<Reshaped> before = {};  ///< the array that is cut, if it is not the reduction's operand
  int64_t unit = 1;                     ///< of the dim: parts are whole such rows
};

/// What is reduced, and to what.
struct Sizes {
  const Shape &from, &to;
  const Ints& dims;
  bool spread;  ///< what is reduced to is spread over as many elements again
};

/// Reduced dims of size above 1, most major first.
Ints dims_to_cut(const Sizes& sizes) {
  const auto& minor = sizes.from.layout.minor_to_major;
  Ints dims;
  for (auto d = minor.rbegin(); d != minor.rend(); ++d) {
    if (sizes.from.dims[*d] > 1 && std::ranges::count(sizes.dims, *d) > 0) dims.push_back(*d);
  }
  return dims;
}

/// Is what the reduction leaves spread over as much as it was made of, as a softmax's largest values and sums are?
bool is_spread_again(const Instruction& reduce) {
  int looks = 64;
  const int64_t all = reduce.operand(0)->shape.element_count();
  std::vector<const Instruction*> left = {&reduce};
  while (!left.empty() && looks-- > 0) {
    const Instruction* i = left.back();
    left.pop_back();
    if (!i->shape.is_array()) continue;
    if (i->is(Opcode::kBroadcast) && i->shape.element_count() >= all) return true;
    if (i->shape.element_count() < all) left.insert(left.end(), i->users().begin(), i->users().end());
  }
  return false;
}

/// Columns that a second cache holds some of are read once for all that is made of them, where what lies beyond it is
/// far. (Softmax down the columns of floats, a Granite Rapids, one core and two, in parts of rows and not: 1000x2000
/// 1650 and 826 us, 1060 and 523; 1023x1000 826 and 395, 609 and 311; 2048x512 847 and 400, 680 and 455; 4096x256 845
/// and 400, 898 and 530.)
bool stays_near(const Sizes& sizes, const TargetInfo& target) {
  constexpr int64_t kLongRow = 3 << 10;
  return sizes.spread && !target.l2_keeps_up && sizes.to.dense_bytes() >= kLongRow;
}

/// Rows are summed up, into one that is short.
bool sums_columns(const Sizes& sizes, const TargetInfo& target) {
  const Shape& shape = sizes.from;
  Ints order;  // of the dims, minor first
  for (int64_t d : shape.layout.minor_to_major) {
    if (shape.dims[d] > 1) order.push_back(d);
  }
  auto reduced = [&](int64_t d) { return std::ranges::count(sizes.dims, d) > 0; };
  return order.size() > 1 && !reduced(order.front()) && reduced(order.back()) &&
         sums_short_rows(shape, sizes.to.dense_bytes(), target) && !stays_near(sizes, target);
}

/// Along dim d.
int64_t elements_of_step(const Shape& shape, int64_t d) {
  int64_t inner = 1;
  for (auto m = shape.layout.minor_to_major.begin(); *m != d; ++m) inner *= shape.dims[*m];
  return inner;
}

/// So that all cores have some of the few results' work.
std::optional<Cut> cut_for_cores(const Sizes& sizes, const TargetInfo& target) {
  const Shape& shape = sizes.from;
  const bool columns = sums_columns(sizes, target), few = columns || sizes.to.element_count() < kMaxKept;
  if (shape.layout.tiled() || shape.element_count() < kMinElements || !few || is_complex(shape.type)) {
    return std::nullopt;
  }
  // Most major first: parts of a minor dim would be read with gaps. (5234 x 3714 by 619 parts of the columns took 12
  // ms, by some hundreds of the rows and a few left over 2.0.)
  const Ints dims = dims_to_cut(sizes);
  auto at = std::ranges::find_if(dims, [&](int64_t d) { return shape.dims[d] >= kFewestSteps; });
  if (at == dims.end()) return std::nullopt;
  const int64_t n = shape.dims[*at], inner = elements_of_step(shape, *at);
  return Cut{*at, columns && dims.size() == 1 ? parts_of_rows(n, inner) : parts_of(n, std::min(n, kMostParts), inner)};
}

/// In parts of whole rows, where there are many: within a part coordinates wrap at the same places in each. (A running
/// sum of f32[326029] in rows of 128, summed by rows of 1177, one thread of a Zen 4: 239 us, of 1152 20.)
Cut in_whole_rows(Cut cut, const Instruction& value) {
  const int64_t unit = row_length(value, cut.dim), rows = value.shape.dims[cut.dim] / unit;
  if (unit == 1 || rows < kMostParts) return cut;
  cut.unit = unit;
  cut.parts = parts_of(rows, kMostParts, unit * elements_of_step(value.shape, cut.dim));
  return cut;
}

bool is_plain(const Instruction& reduce) {
  return reduce.operand_count() == 2 && reduce.control_predecessors.empty() &&
         !reduce.operand(0)->shape.has_dynamic_dims() && combining_op(*reduce.to_apply());
}

// Once it is cut it shares no loops with others, so that nothing is lost by going over what was reshaped for these.
std::optional<Cut> cut_of(const Instruction& reduce, const TargetInfo& target) {
  if (!is_plain(reduce)) return std::nullopt;
  const bool spread = is_spread_again(reduce);
  auto cut = cut_for_cores({reduce.operand(0)->shape, reduce.shape, reduce.attrs.dimensions, spread}, target);
  std::optional<Reshaped> before = cut ? before_reshape(reduce, true) : std::nullopt;
  auto cut_before =
      before ? cut_for_cores({before->array->shape, reduce.shape, before->dims, spread}, target) : std::nullopt;
  if (!cut_before) return cut ? std::optional(in_whole_rows(*cut, *reduce.operand(0))) : cut;
  cut_before->before = std::move(before);
  return cut_before;
}

/// Part of dim d.
struct Stretch {
  int64_t start, limit;
  bool whole;  ///< in one array

  int64_t size() const { return limit - start; }
};

/// Dim d of n elements as arrays that are much of it, and what lies between these.
std::vector<Stretch> stretches_of(int64_t n, std::vector<int64_t> borders) {
  const int64_t much = std::max<int64_t>(n / kFewArrays, 1);
  borders.push_back(n);
  std::vector<Stretch> found;
  int64_t start = 0, last = 0;
  for (int64_t border : borders) {
    if (border - last >= much && last > start) {
      found.push_back({start, last, false});
      start = last;
    }
    if (border - start >= much || border == n) {
      found.push_back({start, border, start == last});
      start = border;
    }
    last = border;
  }
  return found;
}

/// As many parts as its share of all, of one array.
int64_t parts_of_stretch(const Stretch& s, const Cut& cut, const Shape& shape) {
  const int64_t n = shape.dims[cut.dim], share = cut.parts * s.size() / n;
  if (s.size() == n) return cut.parts;
  return s.whole && share > 1 ? parts_of(s.size(), share, elements_of_step(shape, cut.dim)) : 1;
}

/// A reduction in the making: values are of the type it is computed in.
struct Reduction {
  Computation& c;
  const Instruction* original;  ///< names
  Ints dims;                    ///< that are reduced
  Computation* reducer;
  Instruction* init;     ///< enters once, at the end
  Instruction* neutral;  ///< what partial results start from

  Instruction* reduce(Instruction* x, Instruction* from, Ints dims) const {
    Shape shape;
    shape.type = x->shape.type;
    std::ranges::sort(dims);
    for (int64_t k = 0; k < x->shape.rank(); ++k) {
      if (!std::ranges::binary_search(dims, k)) shape.dims.push_back(x->shape.dims[k]);
    }
    shape.layout = Layout::descending(shape.rank());
    Instruction* made = c.add(Opcode::kReduce, std::move(shape), {x, from}, original->name);
    made->attrs.dimensions = std::move(dims);
    made->attrs.has_dimensions = true;
    made->called = {reducer};
    made->location = original->location;
    return made;
  }

  /// Where dim d of what is reduced stands among those that are kept.
  int64_t place_of(int64_t d) const {
    return d - std::ranges::count_if(dims, [&](int64_t r) { return r < d; });
  }

  /// x, reduced but for `parts` equal parts of dim d, so many whole `unit`s each, and what these leave over.
  void in_parts(Instruction* x, int64_t d, int64_t parts, int64_t unit, std::vector<Instruction*>& made) const {
    const int64_t n = x->shape.dims[d], even = n / (parts * unit) * parts * unit;
    if (even < n) {
      in_parts(slice_along(c, x, d, 0, even), d, parts, unit, made);
      return in_parts(slice_along(c, x, d, even, n), d, 1, 1, made);
    }
    Ints rest = dims;
    if (parts == 1) {
      x = reduce(x, neutral, std::move(rest));
      Shape shape = x->shape;
      shape.dims.insert(shape.dims.begin() + place_of(d), 1);
      shape.layout = Layout::descending(shape.rank());
      return made.push_back(c.add(Opcode::kReshape, std::move(shape), {x}, x->name));
    }
    if (parts == n) {
      std::erase(rest, d);
    } else {
      x = split_dim(c, x, d, parts);
      for (int64_t& r : rest) r += r >= d ? 1 : 0;
    }
    made.push_back(reduce(x, neutral, std::move(rest)));
  }

  /// What has been made of several stretches, one behind the other.
  Instruction* joined(const std::vector<Instruction*>& parts, int64_t place) const {
    if (parts.size() == 1) return parts[0];
    Shape shape = parts[0]->shape;
    for (size_t k = 1; k < parts.size(); ++k) shape.dims[place] += parts[k]->shape.dims[place];
    Instruction* all = c.add(Opcode::kConcatenate, std::move(shape), parts, original->name);
    all->attrs.dimensions = {place};
    all->attrs.has_dimensions = true;
    return all;
  }
};

/// What may enter any number of times without being seen in the result; `init` itself if it may.
Instruction* neutral_value(Computation& c, Opcode step, Instruction* init) {
  std::optional<Literal> neutral = neutral_number(step, init->shape.type);
  if (!neutral) return init;
  // A sum that starts from 0 anyway may do so twice.
  bool is_neutral = init->is(Opcode::kConstant) && init->literal->as_double(0) == neutral->as_double(0);
  return is_neutral ? init : c.add_constant(std::move(*neutral), "neutral");
}

/// The reducer on f32: sums and products of narrow floats are rounded once, at the end.
Computation* widened(const Computation& reducer) {
  Computation* wide = reducer.parent()->clone_computation(reducer, reducer.name);
  for (const auto& i : wide->instructions()) i->shape = Shape::scalar(DType::kF32);
  return wide;
}

Instruction* converted(Computation& c, Instruction* value, DType type) {
  Shape shape = value->shape;
  shape.type = type;
  shape.layout.element_size_in_bits = 0;
  return c.add(Opcode::kConvert, std::move(shape), {value}, value->name);
}

bool widens(const Instruction& reduce) {
  return is_narrow_float(reduce.shape.type) && !has_trait(*combining_op(*reduce.to_apply()), op_trait::kIdempotent);
}

/// Of the reduction, over `dims` of something in front of it; what it is made of has to be widened.
Reduction reduction_of(Computation& c, const Instruction& old, const Ints& dims) {
  Reduction r{c, &old, dims, old.to_apply(), old.operand(1), nullptr};
  if (widens(old)) {
    r.reducer = widened(*r.reducer);
    r.init = converted(c, r.init, DType::kF32);
  }
  r.neutral = neutral_value(c, *combining_op(*old.to_apply()), r.init);
  return r;
}

Instruction* split_reduce(Computation& c, const Instruction& old, const Cut& cut) {
  Instruction* x = old.operand(0);
  if (cut.before) x = in_sizes_of(c, x, *cut.before->array);
  const Reduction r = reduction_of(c, old, cut.before ? cut.before->dims : old.attrs.dimensions);
  const Concatenated arrays(x, cut.dim, cut.before && cut.before->shared);
  std::vector<Instruction*> parts;
  for (const Stretch& s : stretches_of(x->shape.dims[cut.dim], arrays.borders())) {
    Instruction* part = arrays.stretch(c, s.start, s.limit);
    if (widens(old)) part = converted(c, part, DType::kF32);
    const bool all = s.size() == x->shape.dims[cut.dim];
    r.in_parts(part, cut.dim, parts_of_stretch(s, cut, x->shape), all ? cut.unit : 1, parts);
  }
  const int64_t place = r.place_of(cut.dim);
  Instruction* made = r.reduce(r.joined(parts, place), r.init, {place});
  return widens(old) ? converted(c, made, old.shape.type) : made;
}

/// Reduced dims of a few elements that lie innermost, beside one that is kept: lanes would be these few, or apart. (Of
/// eight they are half a vector: groups of so many of 64 channels, normalised, a Zen 4, 33 us, 45 apart.)
Ints few_innermost(const Instruction& reduce) {
  constexpr int64_t kFew = 8, kRows = 8, kLeastElements = 1 << 13;
  const Shape& shape = reduce.operand(0)->shape;
  if (!is_plain(reduce) || shape.layout.tiled() || shape.element_count() < kLeastElements) return {};
  Ints few;
  int64_t elements = 1, rows = 1;
  bool kept = false;
  for (int64_t d : shape.layout.minor_to_major) {
    const bool reduced = std::ranges::count(reduce.attrs.dimensions, d) > 0;
    kept |= !reduced && shape.dims[d] > 1;
    if (reduced && !kept) few.push_back(d), elements *= shape.dims[d];
    if (reduced && kept) rows *= shape.dims[d];
  }
  const bool apart = kept && 1 < elements && elements < kFew && rows >= kRows;
  return apart ? few : Ints{};
}

/// Rows and what is left of them to be reduced: dims of `x`.
struct Rows {
  Instruction* x;
  Ints dims, left;
};

/// First the rows, lanes along what is kept and what is left, then that. Returns also the rows' reduction.
std::pair<Instruction*, Instruction*> split_rows(const Reduction& reduction, const Rows& of) {
  Reduction r = reduction;
  r.dims = of.dims;
  Ints left;
  for (int64_t d : of.left) left.push_back(r.place_of(d));
  Instruction* rows = r.reduce(of.x, r.neutral, of.dims);
  rows->shape.layout.minor_to_major.clear();
  for (int64_t d : of.x->shape.layout.minor_to_major) {
    if (std::ranges::count(of.dims, d) == 0) rows->shape.layout.minor_to_major.push_back(r.place_of(d));
  }
  return {r.reduce(rows, r.init, left), rows};
}

std::pair<Instruction*, Instruction*> split_few(Computation& c, const Instruction& old, const Ints& few) {
  Rows of{old.operand(0), {}, few};
  for (int64_t d : old.attrs.dimensions) {
    if (std::ranges::count(few, d) == 0) of.dims.push_back(d);
  }
  if (widens(old)) of.x = converted(c, of.x, DType::kF32);
  auto [made, rows] = split_rows(reduction_of(c, old, of.dims), of);
  return {widens(old) ? converted(c, made, old.shape.type) : made, rows};
}

/// What is computed element by element goes through an array of as many elements, not only through what is repeated.
bool goes_through_array(const Instruction& value) {
  InstructionSet seen;
  std::vector<const Instruction*> left = {&value};
  while (!left.empty()) {
    const Instruction* i = left.back();
    left.pop_back();
    if (!seen.insert(i)) continue;
    if (is_elementwise(i->opcode))
      left.insert(left.end(), i->operands().begin(), i->operands().end());
    else if (!i->is(Opcode::kBroadcast) && !i->is(Opcode::kIota) && !i->is(Opcode::kConstant))
      return true;
  }
  return false;
}

/// So many steps of dim `dim` that lanes go along them and what lies inside of them.
struct Steps {
  int64_t dim, count;
};

/// Where what is kept innermost is less than a vector, such as the colours of pixels. (Not where all pairs of bodies
/// are summed, whose coordinates are a block: 738 us, 321 without. Sums of the columns of f32[93,290,3],
/// [16,784,7], [32,800,12] and [4,50176,3], one thread of a Zen 4: 11.6, 8.2, 17.6 and 130 us; 3.7, 3.4, 13.2 and 25
/// so.)
std::optional<Steps> few_kept(const Instruction& reduce, const TargetInfo& target) {
  constexpr int64_t kLeastElements = 1 << 12, kVectors = 2, kRows = 6;
  const Instruction* x = reduce.operand(0);
  if (!is_plain(reduce) || x->shape.layout.tiled() || is_complex(x->shape.type)) return std::nullopt;
  if (x->is(Opcode::kConcatenate) || x->shape.element_count() < kLeastElements) return std::nullopt;
  const int64_t lanes = target.vector_bytes / dtype_bytes(working_type(x->shape.type));
  int64_t inner = 1, dim = -1, rows = 1;
  for (int64_t d : x->shape.layout.minor_to_major) {
    const bool reduced = std::ranges::count(reduce.attrs.dimensions, d) > 0;
    if (dim < 0 && reduced && x->shape.dims[d] > 1) dim = d;
    if (dim < 0) inner *= x->shape.dims[d];
    if (reduced) rows *= x->shape.dims[d];
  }
  if (dim < 0 || inner < 2 || inner >= lanes) return std::nullopt;
  if (!goes_through_array(*x)) return std::nullopt;
  const int64_t n = x->shape.dims[dim], most = std::min({n, 2 * kVectors * lanes / inner, rows / kRows});
  auto rank = [&](int64_t count) {
    return std::tuple(n % count != 0, count * inner % lanes != 0, std::abs(count * inner - kVectors * lanes));
  };
  int64_t best = most;
  for (int64_t count = std::max<int64_t>(lanes / inner, 2); count < most; ++count) {
    if (rank(count) < rank(best)) best = count;
  }
  if (best < 2 || (n % best != 0 && n / best < kRows * 2)) return std::nullopt;
  return Steps{dim, best};
}

/// The steps next to each other are kept until what lies in front of them is reduced; those beyond the last of them are
/// reduced for themselves.
std::pair<Instruction*, Instruction*> split_steps(Computation& c, const Instruction& old, const Steps& steps) {
  const Reduction r = reduction_of(c, old, old.attrs.dimensions);
  Instruction* x = widens(old) ? converted(c, old.operand(0), DType::kF32) : old.operand(0);
  const int64_t n = x->shape.dims[steps.dim], even = n / steps.count * steps.count;
  Rows of{even < n ? slice_along(c, x, steps.dim, 0, even) : x, {}, {}};
  const bool whole = even == steps.count;
  if (!whole) of.x = split_dim(c, of.x, steps.dim, even / steps.count);
  for (int64_t d : old.attrs.dimensions) {
    if (!whole || d != steps.dim) of.dims.push_back(!whole && d > steps.dim ? d + 1 : d);
  }
  of.left = {whole ? steps.dim : steps.dim + 1};
  auto [made, rows] = split_rows(r, of);
  if (even < n) {
    Instruction* rest = r.reduce(slice_along(c, x, steps.dim, even, n), r.neutral, r.dims);
    made = c.add(r.reducer->root()->opcode, made->shape, {made, rest}, old.name);
  }
  return {widens(old) ? converted(c, made, old.shape.type) : made, rows};
}

void replace(Computation& c, Instruction* old, Instruction* made) {
  made->shape.layout = old->shape.layout;
  made->location = old->location;
  old->replace_all_uses_with(made);
  c.remove(old);  // not a reader of what it read any more
}

bool split(Computation& c, Instruction* old, const PipelineOptions& options) {
  if (!old->is(Opcode::kReduce)) return false;
  if (const auto steps = few_kept(*old, options.target)) {
    explain(options, "split_reductions", c, "{}: by {} steps of dimension {}", old->name, steps->count, steps->dim);
    const auto [made, rows] = split_steps(c, *old, *steps);
    replace(c, old, made);
    split(c, rows, options);
    return true;
  }
  if (const auto cut = cut_of(*old, options.target)) {
    const Shape& shape = cut->before ? cut->before->array->shape : old->operand(0)->shape;
    explain(options, "split_reductions", c, "{}: {} parts along dimension {}{}", old->name, cut->parts, cut->dim,
            shape.dims[cut->dim] % cut->parts != 0 ? " and a rest" : "");
    replace(c, old, split_reduce(c, *old, *cut));
    return true;
  }
  const Ints few = few_innermost(*old);
  if (few.empty()) return false;
  explain(options, "split_reductions", c, "{}: apart from its rows, dimension {}", old->name, few[0]);
  const auto [made, rows] = split_few(c, *old, few);
  replace(c, old, made);
  split(c, rows, options);
  return true;
}

}  // namespace

bool split_reductions(Module& module, const PipelineOptions& options) {
  bool changed = false;
  for (Computation* c : sequential_computations(module)) {
    bool here = false;
    for (Instruction* i : c->snapshot()) here |= split(*c, i, options);
    if (here) c->sort_topologically();
    changed |= here;
  }
  return changed;
}

}  // namespace hlojit
