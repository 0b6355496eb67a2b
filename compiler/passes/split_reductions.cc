// See split_reductions.h.
#include "compiler/passes/split_reductions.h"

#include <algorithm>
#include <optional>

#include "compiler/analysis/dataflow.h"
#include "compiler/ir/combining.h"
#include "compiler/passes/explain.h"

namespace hlojit {
namespace {

constexpr int64_t kMinElements = 1 << 17;  // below, one core is as fast
constexpr int64_t kMaxKept = 8;            // as many results keep the cores busy
constexpr int64_t kFewestParts = 16, kMostParts = 1024, kParts = 256;
constexpr int64_t kAlignedElements = 16;

/// The divisor of n nearest to kParts within the limits, or 0; one that leaves rows (of `inner`
/// elements a step) that start at a vector's place is preferred.
int64_t parts_of(int64_t n, int64_t inner) {
  auto rank = [&](int64_t d) { return std::pair((n / d * inner) % kAlignedElements != 0, std::abs(d - kParts)); };
  int64_t best = 0;
  for (int64_t d = kFewestParts; d <= std::min(n, kMostParts); ++d) {
    if (n % d == 0 && (best == 0 || rank(d) < rank(best))) best = d;
  }
  return best;
}

/// Reduced dims of size above 1, most major first.
Ints dims_to_cut(const Instruction* reduce) {
  const Shape& shape = reduce->operand(0)->shape;
  const auto& minor = shape.layout.minor_to_major;
  Ints dims;
  for (auto d = minor.rbegin(); d != minor.rend(); ++d) {
    if (shape.dims[*d] > 1 && std::ranges::count(reduce->attrs.dimensions, *d) > 0) dims.push_back(*d);
  }
  return dims;
}

bool worth_splitting(const Instruction* reduce) {
  if (reduce->operand_count() != 2 || !reduce->control_predecessors.empty()) return false;
  const Shape& shape = reduce->operand(0)->shape;
  return !shape.has_dynamic_dims() && !shape.layout.tiled() && shape.element_count() >= kMinElements &&
         reduce->shape.element_count() < kMaxKept && !is_complex(reduce->shape.type) &&
         combining_op(*reduce->to_apply());
}

/// Elements [start, limit) of dim d.
Instruction* part_of(Computation& c, Instruction* x, int64_t d, int64_t start, int64_t limit) {
  Shape shape = x->shape;
  shape.dims[d] = limit - start;
  Instruction* part = c.add(Opcode::kSlice, std::move(shape), {x}, x->name);
  for (int64_t n : x->shape.dims) part->attrs.slice.push_back({0, n, 1});
  part->attrs.slice[d] = {start, limit, 1};
  return part;
}

/// x with dim d as [parts, rest].
Instruction* cut(Computation& c, Instruction* x, int64_t d, int64_t parts) {
  Shape shape = x->shape;
  int64_t rest = shape.dims[d] / parts;
  shape.dims[d] = parts;
  shape.dims.insert(shape.dims.begin() + d + 1, rest);
  std::vector<int64_t> minor;
  for (int64_t m : x->shape.layout.minor_to_major) {
    if (m == d) minor.push_back(d + 1);
    minor.push_back(m > d ? m + 1 : m);
  }
  shape.layout.minor_to_major = std::move(minor);
  return c.add(Opcode::kReshape, std::move(shape), {x}, x->name);
}

/// A reduction in the making: values are of the type it is computed in.
struct Reduction {
  Computation& c;
  const Instruction* original;  ///< dims and names
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

  /// In two steps: first all reduced dims but `parts` parts of dim d, then these.
  Instruction* in_parts(Instruction* x, int64_t d, int64_t parts) const {
    bool whole = parts == x->shape.dims[d];
    Ints first, second = {0};
    for (int64_t r : original->attrs.dimensions) {
      if (r == d && whole) continue;
      first.push_back(r >= d && !whole ? r + 1 : r);
    }
    for (int64_t k = 0; k < d; ++k) second[0] += std::ranges::count(first, k) == 0;
    if (!whole) x = cut(c, x, d, parts);
    return reduce(reduce(x, neutral, std::move(first)), init, second);
  }

  /// The same where no number of parts divides the dim: what is left over is added at the end.
  Instruction* with_rest(Instruction* x, int64_t d) const {
    int64_t n = x->shape.dims[d], even = n / kParts * kParts;
    Instruction* most = in_parts(part_of(c, x, d, 0, even), d, kParts);
    Instruction* rest = reduce(part_of(c, x, d, even, n), neutral, original->attrs.dimensions);
    return c.add(reducer->root()->opcode, most->shape, {most, rest}, original->name);
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

bool split(Computation& c, Instruction* old, const PipelineOptions& options) {
  if (!worth_splitting(old)) return false;
  Instruction* x = old->operand(0);
  Ints dims = dims_to_cut(old);
  auto parts_in = [&](int64_t d) {
    int64_t inner = 1;
    for (int64_t m : x->shape.layout.minor_to_major) {
      if (m == d) break;
      inner *= x->shape.dims[m];
    }
    return parts_of(x->shape.dims[d], inner);
  };
  auto divides = [&](int64_t d) {
    int64_t parts = parts_in(d);
    return parts > 0 && (parts < x->shape.dims[d] || old->attrs.dimensions.size() > 1);
  };
  auto even = std::ranges::find_if(dims, divides);
  auto largest = std::ranges::max_element(dims, {}, [&](int64_t d) { return x->shape.dims[d]; });
  if (even == dims.end() && (largest == dims.end() || x->shape.dims[*largest] < 4 * kParts)) return false;

  explain(options, "split_reductions", c, "{} of {} elements: {} parts along dimension {}{}", old->name,
          x->shape.element_count(), even != dims.end() ? parts_in(*even) : kParts,
          even != dims.end() ? *even : *largest, even != dims.end() ? "" : " and a rest");
  Opcode step = *combining_op(*old->to_apply());
  Reduction r{c, old, old->to_apply(), old->operand(1), nullptr};
  bool narrow = is_narrow_float(old->shape.type) && !has_trait(step, op_trait::kIdempotent);
  auto converted = [&](Instruction* value, DType type) {
    Shape shape = value->shape;
    shape.type = type;
    shape.layout.element_size_in_bits = 0;
    return c.add(Opcode::kConvert, std::move(shape), {value}, value->name);
  };
  if (narrow) {
    r.reducer = widened(*r.reducer);
    r.init = converted(r.init, DType::kF32);
    x = converted(x, DType::kF32);
  }
  r.neutral = neutral_value(c, step, r.init);
  Instruction* made = even != dims.end() ? r.in_parts(x, *even, parts_in(*even)) : r.with_rest(x, *largest);
  if (narrow) made = converted(made, old->shape.type);
  made->shape.layout = old->shape.layout;
  made->location = old->location;
  old->replace_all_uses_with(made);
  return true;
}

}  // namespace

bool split_reductions(Module& module, const PipelineOptions& options) {
  bool changed = false;
  for (Computation* c : sequential_computations(module)) {
    bool here = false;
    for (Instruction* i : c->snapshot()) here |= i->is(Opcode::kReduce) && split(*c, i, options);
    if (here) c->sort_topologically();
    changed |= here;
  }
  return changed;
}

}  // namespace hlojit
