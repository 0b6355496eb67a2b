// See split_scatters.h.
#include "compiler/passes/split_scatters.h"

#include <algorithm>
#include <optional>

#include "compiler/analysis/dataflow.h"
#include "compiler/builder.h"
#include "compiler/ir/combining.h"
#include "compiler/passes/explain.h"
#include "layout/lists.h"

namespace hlojit {
namespace {

constexpr int64_t kMinIndices = 1 << 16;  // below, one core is as fast
constexpr int64_t kMostParts = 16;
constexpr int64_t kUpdatesPerElement = 4;        // at least, of all parts' targets
constexpr int64_t kMostTargetBytes = 256 << 10;  // that a core's own cache has room for
constexpr int64_t kLineBytes = 64;               // wider windows are shared out by the kernel

/// Dim `dim` of the indices in `parts` parts of `per` each, and perhaps a rest; `update_dim` is the same of the
/// updates.
struct Cut {
  size_t dim, update_dim;
  int64_t parts, per;
};

bool may_regroup(const Instruction& s) {
  const DType type = s.shape.type;
  return s.operand_count() == 3 && combining_op(*s.to_apply()) && !is_narrow_float(type) && !is_complex(type) &&
         dtype_bits(type) >= 8 && s.attrs.scatter->input_batching_dims.empty() && s.control_predecessors.empty() &&
         std::ranges::all_of(s.operands(), [](const Instruction* x) { return !x->shape.has_dynamic_dims(); });
}

std::optional<Cut> cut_of(const Instruction& s) {
  if (!s.is(Opcode::kScatter) || !may_regroup(s)) return std::nullopt;
  const Shape &target = s.shape, &indices = s.operand(1)->shape, &updates = s.operand(2)->shape;
  const ScatterDims& dims = s.attrs.scatter;
  Cut cut{};
  int64_t count = 1, batch = 0;
  for (size_t d = 0, u = 0; u < updates.dims.size(); ++u) {
    if (contains(dims.update_window_dims, static_cast<int64_t>(u))) continue;
    if (static_cast<int64_t>(d) == dims.index_vector_dim) ++d;
    count *= indices.dims[d];
    if (indices.dims[d] > batch) {
      batch = indices.dims[d];
      cut.dim = d;
      cut.update_dim = u;
    }
    ++d;
  }
  const int64_t bytes = dtype_bytes(target.type), elements = target.element_count();
  if (count < kMinIndices || updates.element_count() / count * bytes > kLineBytes) return std::nullopt;
  if (elements * bytes > kMostTargetBytes) return std::nullopt;
  const int64_t most = std::min(batch, updates.element_count() / kUpdatesPerElement / std::max<int64_t>(1, elements));
  cut.parts = kMostParts;
  while (cut.parts > most) cut.parts /= 2;
  if (cut.parts < 2) return std::nullopt;
  cut.per = batch / cut.parts;
  return cut;
}

/// Entries [start, limit) of dim d.
Instruction* part_of(Builder& b, Instruction* x, size_t d, int64_t start, int64_t limit) {
  if (start == 0 && limit == x->shape.dims[d]) return x;
  return b.slice_in_dim(x, start, limit, 1, static_cast<int64_t>(d));
}

/// The parts of dim d as a dim in front of it.
Instruction* in_parts(Builder& b, Instruction* x, size_t d, const Cut& cut) {
  x = part_of(b, x, d, 0, cut.parts * cut.per);
  Ints sizes = x->shape.dims;
  sizes[d] = cut.per;
  sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(d), cut.parts);
  return b.reshape(x, sizes);
}

/// The numbers of dims behind a new dim `at`.
void make_room(Ints& dims, int64_t at) {
  for (int64_t& d : dims) d += d >= at ? 1 : 0;
}

/// A target for each part: what is combined there must not be seen in the result twice.
Instruction* scatter_parts(Builder& b, const Instruction& s, const Cut& cut) {
  Instruction* target = s.operand(0);
  Ints sizes = target->shape.dims, kept;
  for (int64_t d = 0; d < target->shape.rank(); ++d) kept.push_back(d + 1);
  sizes.insert(sizes.begin(), cut.parts);
  auto neutral = neutral_number(*combining_op(*s.to_apply()), s.shape.type);
  Instruction* from =
      neutral ? b.broadcast(b.constant(std::move(*neutral)), sizes) : b.broadcast_in_dim(target, sizes, kept);
  Attributes a = s.attrs;
  ScatterDims& dims = a.scatter.edit();
  make_room(dims.update_window_dims, static_cast<int64_t>(cut.update_dim));
  make_room(dims.inserted_window_dims, 0);
  make_room(dims.scatter_dims_to_operand_dims, 0);
  dims.index_vector_dim += dims.index_vector_dim > static_cast<int64_t>(cut.dim) ? 1 : 0;
  dims.input_batching_dims = {0};
  dims.scatter_indices_batching_dims = {static_cast<int64_t>(cut.dim)};
  Builder::Values operands{from, in_parts(b, s.operand(1), cut.dim, cut),
                           in_parts(b, s.operand(2), cut.update_dim, cut)};
  return b.op(Opcode::kScatter, std::move(operands), std::move(a), {s.to_apply()});
}

/// All parts in one: pairs, then pairs of these.
Instruction* joined(Builder& b, Opcode step, Instruction* parts) {
  Ints sizes(parts->shape.dims.begin() + 1, parts->shape.dims.end());
  std::vector<Instruction*> left;
  for (int64_t k = 0; k < parts->shape.dims[0]; ++k) left.push_back(b.reshape(part_of(b, parts, 0, k, k + 1), sizes));
  for (; left.size() > 1; left.resize(left.size() / 2)) {
    for (size_t k = 0; k < left.size() / 2; ++k) left[k] = b.binary(step, left[2 * k], left[2 * k + 1]);
  }
  return left[0];
}

void split(Computation& c, Instruction* s, const Cut& cut) {
  Builder b(&c);
  const Opcode step = *combining_op(*s->to_apply());
  Instruction* made = b.binary(step, s->operand(0), joined(b, step, scatter_parts(b, *s, cut)));
  const int64_t n = s->operand(1)->shape.dims[cut.dim], even = cut.parts * cut.per;
  if (even < n) {
    Instruction* indices = part_of(b, s->operand(1), cut.dim, even, n);
    Instruction* updates = part_of(b, s->operand(2), cut.update_dim, even, n);
    made = b.op(Opcode::kScatter, {made, indices, updates}, s->attrs, {s->to_apply()});
  }
  made->shape.layout = s->shape.layout;
  made->location = s->location;
  s->replace_all_uses_with(made);
}

}  // namespace

bool split_scatters(Module& module, const PipelineOptions& options) {
  bool changed = false;
  for (Computation* c : sequential_computations(module)) {
    bool here = false;
    for (Instruction* i : c->snapshot()) {
      const std::optional<Cut> cut = cut_of(*i);
      if (!cut) continue;
      explain(options, "split_scatters", *c, "{}: {} parts along dimension {} of its indices", i->name, cut->parts,
              cut->dim);
      split(*c, i, *cut);
      here = true;
    }
    if (here) c->sort_topologically();
    changed |= here;
  }
  return changed;
}

}  // namespace hlojit
