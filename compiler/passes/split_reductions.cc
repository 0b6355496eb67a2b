// See split_reductions.h.
#include "compiler/passes/split_reductions.h"

#include <algorithm>

#include "compiler/analysis/dataflow.h"

namespace hlojit {
namespace {

constexpr int64_t kMinElements = 1 << 17;  // below, one core is as fast
constexpr int64_t kMaxKept = 8;            // as many results keep the cores busy
constexpr int64_t kFewestParts = 16, kMostParts = 1024, kParts = 256;
constexpr int64_t kAlignedElements = 16;

/// The initial value may be combined with more than once.
bool may_repeat_init(const Instruction* reduce) {
  const Instruction* step = reduce->to_apply()->root();
  for (const Instruction* o : step->operands()) {
    if (!o->is(Opcode::kParameter)) return false;
  }
  if (step->operand_count() != 2 || step->operand(0) == step->operand(1)) return false;
  const Instruction* init = reduce->operand(1);
  auto is_constant = [&](double value) {
    return init->is(Opcode::kConstant) && !is_complex(init->shape.type) &&
           init->literal->as_double(0) == value;
  };
  switch (step->opcode) {
    case Opcode::kMaximum:
    case Opcode::kMinimum:
    case Opcode::kAnd:
    case Opcode::kOr:
      return true;
    case Opcode::kAdd:
      return is_constant(0);
    case Opcode::kMultiply:
      return is_constant(1);
    default:
      return false;
  }
}

/// The divisor of n nearest to kParts within the limits, or 0; one that leaves rows (of `inner`
/// elements a step) that start at a vector's place is preferred.
int64_t parts_of(int64_t n, int64_t inner) {
  auto rank = [&](int64_t d) {
    return std::pair((n / d * inner) % kAlignedElements != 0, std::abs(d - kParts));
  };
  int64_t best = 0;
  for (int64_t d = kFewestParts; d <= std::min(n, kMostParts); ++d) {
    if (n % d == 0 && (best == 0 || rank(d) < rank(best))) best = d;
  }
  return best;
}

/// The most major reduced dim of size above 1, or -1.
int64_t dim_to_cut(const Instruction* reduce) {
  const Shape& shape = reduce->operand(0)->shape;
  const auto& minor = shape.layout.minor_to_major;
  for (auto d = minor.rbegin(); d != minor.rend(); ++d) {
    if (shape.dims[*d] > 1 && std::ranges::count(reduce->attrs.dimensions, *d) > 0) return *d;
  }
  return -1;
}

bool worth_splitting(const Instruction* reduce) {
  const Shape& shape = reduce->operand(0)->shape;
  return reduce->operand_count() == 2 && !shape.has_dynamic_dims() && !shape.layout.tiled() &&
         shape.element_count() >= kMinElements && reduce->shape.element_count() < kMaxKept &&
         may_repeat_init(reduce);
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

bool split(Computation& c, Instruction* reduce) {
  if (!worth_splitting(reduce)) return false;
  int64_t d = dim_to_cut(reduce);
  if (d < 0) return false;
  Instruction* x = reduce->operand(0);
  int64_t inner = 1;
  for (int64_t m : x->shape.layout.minor_to_major) {
    if (m == d) break;
    inner *= x->shape.dims[m];
  }
  int64_t parts = parts_of(x->shape.dims[d], inner);
  if (parts == 0) return false;

  // First all reduced dims but the parts, then these.
  bool whole = parts == x->shape.dims[d];
  Ints reduced;
  for (int64_t r : reduce->attrs.dimensions) {
    if (r != d) {
      reduced.push_back(r > d && !whole ? r + 1 : r);
    } else if (!whole) {
      reduced.push_back(d + 1);
    }
  }
  if (reduced.empty()) return false;  // few rows of a single reduced dim: already split
  std::ranges::sort(reduced);
  if (!whole) x = cut(c, x, d, parts);

  Shape partial;
  partial.type = reduce->shape.type;
  int64_t place = -1;
  for (int64_t k = 0; k < x->shape.rank(); ++k) {
    if (std::ranges::binary_search(reduced, k)) continue;
    if (k == d) place = partial.rank();
    partial.dims.push_back(x->shape.dims[k]);
  }
  partial.layout = Layout::descending(partial.rank());
  Instruction* first = c.clone_instruction(*reduce, {x, reduce->operand(1)});
  first->shape = std::move(partial);
  first->attrs.dimensions = std::move(reduced);
  Instruction* second = c.clone_instruction(*reduce, {first, reduce->operand(1)});
  second->attrs.dimensions = {place};
  reduce->replace_all_uses_with(second);
  return true;
}

}  // namespace

bool split_reductions(Module& module, const PipelineOptions&) {
  bool changed = false;
  for (Computation* c : sequential_computations(module)) {
    bool here = false;
    for (Instruction* i : c->snapshot()) here |= i->is(Opcode::kReduce) && split(*c, i);
    if (here) c->sort_topologically();
    changed |= here;
  }
  return changed;
}

}  // namespace hlojit
