// See kernel.h. A plan is found in three looks at the graph:
//
//   1. which values depend on a reduction (or on the dot): one forward sweep;
//   2. whether those values only meet the domain the way a row meets its elements: one backward sweep
//      that carries, for each value, which domain dim each of its dims is (-1 for a dim of size 1);
//   3. what else is in the way (ops no kernel admits, results of different sizes).
//
// Values that do not depend on the hero need no second look: a kernel recomputes them wherever it
// wants them, through any index map.
#include "compiler/plan/kernel.h"

#include <algorithm>
#include <bit>
#include <unordered_map>

#include "compiler/analysis/access.h"
#include "compiler/analysis/movement.h"
#include "compiler/analysis/prefix.h"
#include "compiler/analysis/reorder.h"
#include "compiler/ir/combining.h"
#include "compiler/ir/module.h"
#include "compiler/plan/contraction.h"
#include "compiler/plan/dim_maps.h"
#include "compiler/plan/graph.h"
#include "compiler/plan/op_cost.h"
#include "compiler/plan/stages.h"
#include "layout/index.h"
#include "layout/lists.h"

namespace hlojit {
namespace {

using Instructions = std::span<const Instruction* const>;
using Graph = KernelGraph;

/// Data movement that kernels do: bitcasts are names, sizes known at run time only are gone by now.
bool is_movement(const Instruction& i) {
  return i.info().op_class == OpClass::kMoves && !has_trait(i, op_trait::kForwards | op_trait::kRuntimeSizes);
}

// ---- nest ------------------------------------------------------------------------------------------

/// Elements of one width lie at the same places in memory: the shapes are one, or differ in dims of size 1.
bool lie_alike(const Shape& a, const Shape& b) {
  if (!a.is_array() || !b.is_array() || a.has_dynamic_dims() || b.has_dynamic_dims()) return false;
  if (a.dims == b.dims && a.layout == b.layout) return true;
  if (!has_plain_layout(a) || !has_plain_layout(b)) return false;
  const Shape x = without_unit_dims(a), y = without_unit_dims(b);
  return x.dims == y.dims && x.layout == y.layout;
}

/// Of operand k this reads the element that lies where its own does, by the same coordinates but for dims of size 1.
bool reads_own_place(const Instruction& i, size_t k) {
  return reads_own_element(i, k) || (i.is(Opcode::kReshape) && lie_alike(i.shape, i.operand(k)->shape));
}

/// Values that those which are wanted `here`, at the element at hand, need of other elements.
InstructionSet wanted_elsewhere(Instructions members, InstructionSet here) {
  InstructionSet elsewhere;
  for (auto at = members.rbegin(); at != members.rend(); ++at) {
    const Instruction* i = *at;
    for (size_t k = 0; k < i->operand_count(); ++k) {
      if (here.contains(i)) (reads_own_place(*i, k) ? here : elsewhere).insert(i->operand(k));
      if (elsewhere.contains(i)) elsewhere.insert(i->operand(k));
    }
  }
  return elsewhere;
}

/// The target of an update is memory of its own that nothing else in the kernel reads, but for elements as they are
/// replaced.
void check_target(const Graph& g, const Instruction* update, const Instruction* target) {
  if (g.has(target) || is_inline_constant(*target)) {
    refuse(quoted(update) + " updates a value of the kernel itself");
  }
  // Of an update the element at hand is that of what it puts in place.
  InstructionSet here;
  for (const Instruction* r : g.roots) here.insert(r->is(Opcode::kDynamicUpdateSlice) ? r->operand(1) : r);
  const InstructionSet elsewhere = wanted_elsewhere(g.members, std::move(here));
  for (const Instruction* i : g.members) {
    if (takes_updated_box(*i, *update) && !elsewhere.contains(i)) continue;
    int64_t reads = std::ranges::count(i->operands(), target);
    if (reads > (i == update ? 1 : 0)) refuse("what " + update->name + " updates is read elsewhere");
  }
}

KernelPlan plan_nest(const Graph& g) {
  KernelPlan plan;
  plan.kind = KernelKind::kNest;
  plan.roots = g.roots;
  // An update that leaves writes its box only; the loops run over that.
  auto is_update = [](const Instruction* r) { return r->is(Opcode::kDynamicUpdateSlice); };
  auto written = [&](const Instruction* r) { return is_update(r) ? update_sizes(*r) : dims_of(r); };
  plan.domain = written(g.roots[0]);
  for (const Instruction* r : g.roots) {
    if (written(r) != plan.domain) refuse("results of different sizes");
    if (is_update(r)) check_target(g, r, r->operand(0));
  }
  for (const Instruction* update : g.updates) {
    bool leaves = std::ranges::find(g.roots, update) != g.roots.end();
    bool is_read = std::ranges::any_of(g.members, [&](const Instruction* i) {
      return std::ranges::find(i->operands(), update) != i->operands().end();
    });
    if (leaves && is_read) refuse(quoted(update) + " leaves and is read in the kernel");
  }
  return plan;
}

// ---- scatter ---------------------------------------------------------------------------------------

/// Several tasks may compute it, each for all indices.
bool folds_into_scatter(const Instruction* i) {
  if (i->info().op_class == OpClass::kSource) return true;
  if (is_movement(*i)) return !has_trait(*i, op_trait::kRandomPlaces);
  return is_elementwise(i->opcode) && price_of(*i) <= OpPrice::kCheap;
}

KernelPlan plan_scatter(const Graph& g) {
  const Instruction* scatter = g.scatters[0];
  KernelPlan plan;
  plan.kind = KernelKind::kScatter;
  plan.roots = g.roots;
  plan.hero = scatter;
  plan.domain = update_sizes(*scatter);
  if (g.scatters.size() > 1) refuse("two scatters");
  size_t count = update_count(*scatter);
  if (g.roots.size() != count) refuse(quoted(scatter) + " has a result that does not leave");
  for (size_t k = 0; k < count; ++k) check_target(g, scatter, scatter->operand(k));
  for (const Instruction* i : g.members) {
    if (i == scatter || (is_result_element(i) && i->operand(0) == scatter)) continue;
    if (!folds_into_scatter(i)) refuse(quoted(i) + " does not fold into a scatter");
    if (std::ranges::find(i->operands(), scatter) != i->operands().end()) refuse(quoted(i) + " reads a scatter");
  }
  for (const Instruction* r : g.roots) {
    if (r != scatter && !is_result_element(r)) refuse("result " + r->name + " beside a scatter");
  }
  return plan;
}

// ---- scan ------------------------------------------------------------------------------------------

/// A prefix window over whatever its elements are computed from.
KernelPlan plan_scan(const Graph& g) {
  const Instruction* scan = g.scans[0];
  if (g.scans.size() > 1) refuse("two scans");
  if (g.roots.size() > 1 || g.roots[0] != scan) refuse("results beside a scan");
  if (!g.reduces.empty()) refuse("a reduction before a scan");
  KernelPlan plan;
  plan.kind = KernelKind::kScan;
  plan.roots = g.roots;
  plan.hero = scan;
  plan.domain = scan->shape.dims;
  const PrefixWindow prefix = *prefix_window(*scan);
  plan.inner = {prefix.dim};
  plan.backwards = prefix.backwards;
  Stage& all = plan.stages.emplace_back();
  all.inner = true;
  all.stores = {0};
  return plan;
}

// ---- rows and columns ------------------------------------------------------------------------------

/// The physically most minor dim of size above 1 is reduced, in the largest operand read in the domain.
bool reduces_minor(const Graph& g, const KernelPlan& plan) {
  const Shape* widest = nullptr;
  for (const Instruction* i : g.members) {
    for (const Instruction* o : i->operands()) {
      if (g.has(o) || o->shape.dims != plan.domain) continue;
      if (!widest || dtype_bits(o->shape.type) > dtype_bits(widest->type)) widest = &o->shape;
    }
  }
  if (!widest) widest = &plan.hero->operand(0)->shape;
  const int64_t minor = minor_dim(*widest);
  return minor < 0 || std::ranges::binary_search(plan.inner, minor);
}

/// Which dim of an operand runs along dim d of the value.
std::optional<int64_t> dim_in_operand(const Instruction* i, const Instruction* operand, int64_t d) {
  if (!i->is(Opcode::kBroadcast)) return dims_of(operand) == dims_of(i) ? std::optional(d) : std::nullopt;
  const auto at = std::ranges::find(i->attrs.dimensions, d);
  if (at == i->attrs.dimensions.end()) return std::nullopt;
  return at - i->attrs.dimensions.begin();
}

/// The narrowest element that is read along the rows of the domain.
struct NarrowRead {
  int64_t bits = 64;
  bool spread = false;  ///< its rows are the same for others of the domain
};

NarrowRead narrowest_read(const Graph& g, const KernelPlan& plan) {
  std::unordered_map<const Instruction*, int64_t> along;  // of values: which of their dims is the row's
  NarrowRead least;
  for (auto m = g.members.rbegin(); m != g.members.rend(); ++m) {
    if ((*m)->shape.is_array() && dims_of(*m) == plan.domain) along[*m] = plan.inner.back();
    const auto row = along.find(*m);
    if (row == along.end()) continue;
    const int64_t dim = row->second;
    for (const Instruction* o : (*m)->operands()) {
      const auto d = o->shape.is_array() ? dim_in_operand(*m, o, dim) : std::nullopt;
      if (!d) continue;
      if (g.has(o))
        along[o] = *d;
      else if (element_bits(o->shape) < least.bits)
        least = {element_bits(o->shape), dims_of(o) != plan.domain};
    }
  }
  return least;
}

/// Elements of rows found by index up to which lanes across them are best: each is loaded on its own. (Differences of
/// two, squared and summed: 12 elements of 3000 rows 9.5 us so, 12.7 along the rows, 16 elements 12.3 and 6.3.)
constexpr int64_t kFewFound = 15;

bool finds_rows(const Instruction* i) {
  if (!has_trait(*i, op_trait::kRandomPlaces) || has_trait(*i, op_trait::kUpdates)) return false;
  if (i->shape.rank() == 0) return false;
  VarSource vars;
  Coords at;
  for (int64_t n : i->shape.dims) at.push_back(IndexExpr::var(vars.fresh(), n));
  const AccessRelation relation = access_relation(*i, at, {}, vars);
  return std::ranges::any_of(relation.reads, [&](const Read& r) {
    const Shape& from = i->operand(r.operand)->shape;
    return i->shape.dims.back() > 1 && linear_index(from, r.coords).coefficient(at.back().variables()[0]) == 1;
  });
}

/// Rows so short that putting their lanes together at the end takes longer than what is before, and nothing of their
/// size leaves: lanes go across them. Several words of each row are loaded at once; vectors of narrower elements hold
/// longer rows.
bool has_short_rows(const Graph& g, const KernelPlan& plan, const TargetInfo& target) {
  if (std::ranges::any_of(plan.roots, [&](const Instruction* r) { return dims_of(r) == plan.domain; })) return false;
  const NarrowRead read = narrowest_read(g, plan);
  const int64_t lanes = target.vector_bytes / 4, bits = read.bits;
  const auto length = product(plan.inner_sizes()), rows = product(plan.outer_sizes());
  // A row of bytes that is an integer is one load; of others each element is, which short rows that have to be spread
  // first are worth. (Hamming distances of rows of 32 bytes 38 us by columns, 4.2 by rows; of 13 6.5 and 9.7; sums of
  // 13 that lie as they are read 4.8 and 1.9.)
  const bool integer = std::has_single_bit(static_cast<uint64_t>(length)) && length * bits <= 64;
  // As many rows as a vector has lanes are enough. (8x8 of a step of 1783, AVX2: 68 us by rows, 31 so.)
  int64_t few = bits < 16              ? (read.spread ? lanes - 1 : 0)
                : bits < 32            ? 5 * lanes / 4
                : g.reduces.size() > 1 ? 4 * lanes
                                       : 5 * lanes / 2;
  if (std::ranges::any_of(g.members, finds_rows)) few = std::min(few, kFewFound);
  return (length <= 4 && rows > 4) || ((integer || length <= few) && rows >= lanes);
}

/// Reductions of a stage take their elements together: where one depends on their order, sums of many terms beside it
/// would be made in one accumulator.
void refuse_sums_in_order(const Graph& g, const KernelPlan& plan) {
  constexpr int64_t kFewTerms = 128;
  if (g.reduces.size() < 2 || product(plan.inner_sizes()) <= kFewTerms) return;
  auto sums = [](const Instruction* r) {
    auto op = combining_op(*r->to_apply());
    return op && !has_trait(*op, op_trait::kIdempotent) && (is_float(r->shape.type) || is_complex(r->shape.type));
  };
  if (std::ranges::none_of(g.reduces, sums)) return;
  for (const Instruction* r : g.reduces) {
    if (!combining_op(*r->to_apply()) && !selection_order(*r).allowed) refuse(r->name + " in order beside a long sum");
  }
}

/// Lanes across rows lie beside each other in what is read, of which there is more, or in what is written.
void refuse_written_across(const Graph& g, const KernelPlan& plan) {
  if (product(plan.inner_sizes()) < kWorthReadingAlong) return;
  const Shape& reduced = plan.hero->shape.is_tuple() ? plan.hero->shape.elements[0] : plan.hero->shape;
  for (const Instruction* r : g.roots) {
    const bool kept = r->shape.is_array() && !r->is(Opcode::kReduce) && r->shape.dims == reduced.dims;
    if (kept && minor_dim(r->shape) != minor_dim(reduced)) refuse("result " + r->name + " lies across what is reduced");
  }
}

KernelPlan plan_reduction(const Graph& g, const TargetInfo& target) {
  KernelPlan plan;
  plan.kind = KernelKind::kRows;
  plan.roots = g.roots;
  plan.hero = g.reduces[0];
  plan.domain = plan.hero->operand(0)->shape.dims;
  plan.inner = plan.hero->attrs.dimensions;
  std::ranges::sort(plan.inner);
  if (g.updates_results()) refuse("an update beside a reduction");
  for (const Instruction* r : g.reduces) {
    Ints reduced = r->attrs.dimensions;
    std::ranges::sort(reduced);
    if (r->operand(0)->shape.dims != plan.domain || reduced != plan.inner) {
      refuse(r->name + " and " + plan.hero->name + " reduce different dims");
    }
  }

  refuse_sums_in_order(g, plan);
  const RowMaps rows(plan.domain, plan.inner);
  auto dependent = g.dependents(g.reduces);
  DimMaps maps(g, dependent);
  for (const Instruction* r : g.roots) maps.reach_result(r, rows);
  for (auto at = g.members.rbegin(); at != g.members.rend(); ++at) {
    if ((*at)->is(Opcode::kReduce))
      maps.step_reduce(*at, rows);
    else
      maps.step(*at);
  }

  plan.kind = reduces_minor(g, plan) && !has_short_rows(g, plan, target) ? KernelKind::kRows : KernelKind::kColumns;
  if (plan.kind == KernelKind::kColumns) refuse_written_across(g, plan);
  return plan;
}

// ---- contraction -----------------------------------------------------------------------------------

/// Dots, and the convolutions that are worth blocks or sums of their own; others are values like any.
std::vector<const Instruction*> contractions(const Graph& g, Products& products) {
  std::vector<const Instruction*> found = g.dots;
  for (const Instruction* c : g.convolutions) {
    const bool blocks = products.blocks(products.of(*c, c->shape, false), {}).has_value();
    if (blocks || sums_features(*c, sum_lanes(*c, products.target().vector_bytes))) found.push_back(c);
  }
  return found;
}

}  // namespace

std::string_view kernel_kind_name(KernelKind kind) {
  switch (kind) {
    case KernelKind::kNest: return "nest";
    case KernelKind::kRows: return "rows";
    case KernelKind::kColumns: return "columns";
    case KernelKind::kContraction: return "contraction";
    case KernelKind::kScatter: return "scatter";
    case KernelKind::kScan: return "scan";
  }
  return "nest";
}

bool is_donated_copy(const Instruction& i) {
  return i.is(Opcode::kCopy) && i.attrs.backend_config.find(R"("donated":)") != std::string::npos;
}

bool is_inline_constant(const Instruction& i) {
  return i.is(Opcode::kConstant) && i.shape.is_array() && i.shape.dense_bytes() <= kInlineConstantBytes;
}

bool is_kernel_op(const Instruction& i) {
  if (i.shape.has_dynamic_dims()) return false;
  if (is_reduction(i)) return true;
  if (is_result_element(&i) || has_trait(i, op_trait::kUpdates)) return true;
  if (!i.shape.is_array() || i.is(Opcode::kMap)) return false;
  if (i.is(Opcode::kConstant)) return is_inline_constant(i);
  if (i.is(Opcode::kCopy)) return !is_donated_copy(i);
  if (i.is(Opcode::kStochasticConvert)) return is_signed(i.shape.type);  // what other targets do is nowhere defined
  return is_elementwise(i.opcode) || is_movement(i) || i.is(Opcode::kIota);
}

namespace {

KernelPlan plan_graph(const Graph& g, Products& products, std::string_view config) {
  const TargetInfo& target = products.target();
  if (!g.scatters.empty()) return plan_scatter(g);
  if (auto dots = contractions(g, products); !dots.empty()) return plan_contraction(g, dots, products, config);
  if (!g.scans.empty()) return plan_scan(g);
  KernelPlan plan = g.reduces.empty() ? plan_nest(g) : plan_reduction(g, target);
  auto given = stages_in(config);
  if (!given || !read_stages(g, *given, target, plan)) make_stages(g, target, plan);
  return plan;
}

/// A nest has results of one size. Asked first: of a large kernel the graph takes long to make, and most of the results
/// that are tried together differ.
void check_sizes(Instructions members, Instructions roots) {
  const Instruction* first = roots[0];
  auto is_same = [&](const Instruction* r) { return r->shape.is_array() && r->shape.dims == first->shape.dims; };
  if (!first->shape.is_array() || std::ranges::all_of(roots, is_same)) return;
  auto is_plain = [](const Instruction* i) {
    return i->shape.is_array() &&
           (is_elementwise(i->opcode) || is_movement(*i) || i->is(Opcode::kIota) || i->is(Opcode::kConstant) ||
            i->is(Opcode::kCopy)) &&
           !is_reduction(*i) && !has_trait(*i, op_trait::kUpdates);
  };
  if (std::ranges::all_of(members, is_plain)) refuse("results of different sizes");
}

std::optional<KernelPlan> plan_or_reason(Instructions members, Instructions roots, Products& products,
                                         std::string_view config, std::string* why_not) {
  try {
    if (roots.empty()) refuse("no result");
    check_sizes(members, roots);
    return plan_graph(Graph(members, roots), products, config);
  } catch (const Refused& refused) {
    if (why_not) *why_not = refused.why;
    return std::nullopt;
  }
}

}  // namespace

std::optional<KernelPlan> plan_kernel(Instructions members, Instructions roots, Products& products,
                                      std::string* why_not) {
  return plan_or_reason(members, roots, products, {}, why_not);
}

std::optional<KernelPlan> plan_kernel(const Computation& fused, const TargetInfo& target, std::string_view config,
                                      std::string* why_not) {
  const Instruction* root = fused.root();
  std::vector<const Instruction*> members, roots = {root};
  if (root->is(Opcode::kTuple)) {
    roots.assign(root->operands().begin(), root->operands().end());
    for (size_t k = 0; k < roots.size(); ++k) {
      if (root->shape.elements[k] == roots[k]->shape) continue;
      if (why_not) *why_not = "a result has another layout in the tuple";
      return std::nullopt;
    }
  }
  for (const auto& i : fused.instructions()) {
    if (!i->is(Opcode::kParameter) && !(i.get() == root && root->is(Opcode::kTuple))) {
      members.push_back(i.get());
    }
  }
  Products products(target);
  return plan_or_reason(members, roots, products, config, why_not);
}

std::vector<int64_t> KernelPlan::outer_of(std::span<const int64_t> sizes) const {
  std::vector<int64_t> outer;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (!std::ranges::binary_search(inner, static_cast<int64_t>(d))) outer.push_back(sizes[d]);
  }
  return outer;
}

std::vector<int64_t> KernelPlan::outer_sizes() const { return outer_of(domain); }

std::vector<int64_t> KernelPlan::inner_sizes() const {
  std::vector<int64_t> sizes;
  for (int64_t d : inner) sizes.push_back(domain[static_cast<size_t>(d)]);
  return sizes;
}

int64_t KernelPlan::block_rows() const {
  return std::ranges::find_if(stages, [](const Stage& s) { return s.blocks.has_value(); })->blocks->rows;
}

bool reads_in_place(const Computation& fused, int64_t parameter, int64_t root) {
  auto plan = plan_kernel(fused, {});
  if (!plan || !updated_parameters(fused).empty()) return false;
  const bool one_product = plan->kind == KernelKind::kContraction && plan->stages.size() == 1;
  if (plan->kind != KernelKind::kNest && !one_product) return false;
  // Which of several products have blocks, and with them stages of their own, depends on the target.
  const auto contracts = [](const auto& i) { return i->is(Opcode::kDot) || i->is(Opcode::kConvolution); };
  if (std::ranges::count_if(fused.instructions(), contracts) > 1) return false;
  const Instruction* read = fused.parameters().at(parameter);
  const Shape& from = read->shape;
  const Shape& to = plan->roots.at(root)->shape;
  if (!lie_alike(from, to) || element_bits(from) != element_bits(to)) return false;
  std::vector<const Instruction*> all;
  for (const auto& i : fused.instructions()) all.push_back(i.get());
  return !wanted_elsewhere(all, InstructionSet(plan->roots)).contains(read);
}

std::vector<Update> updated_parameters(const Computation& fused) {
  const Instruction* root = fused.root();
  std::vector<const Instruction*> results = {root};
  if (root->is(Opcode::kTuple)) results.assign(root->operands().begin(), root->operands().end());
  std::vector<Update> updates;
  for (size_t r = 0; r < results.size(); ++r) {
    const Instruction* i = results[r];
    size_t k = i->is(Opcode::kGetTupleElement) ? static_cast<size_t>(i->attrs.tuple_index) : 0;
    if (i->is(Opcode::kGetTupleElement)) i = i->operand(0);
    if (!has_trait(*i, op_trait::kUpdates)) continue;
    if (!i->operand(k)->is(Opcode::kParameter)) continue;
    updates.push_back({i->operand(k)->attrs.parameter_number, static_cast<int64_t>(r)});
  }
  return updates;
}

bool has_several_results(const Instruction& i) {
  return i.shape.is_tuple() && (is_reduction(i) || has_trait(i, op_trait::kUpdates));
}

}  // namespace hlojit
