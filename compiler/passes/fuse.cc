// See fuse.h. One walk in reverse order, so that a consumer's kernel is as large as it gets when its
// producers are asked; each step compares the cost of kernels that exist with that of kernels that
// would. A value read by thousands (a broadcast constant) is looked at once a reader; everything else
// is linear but for the walks that rule out cycles, which stay between the two clusters.
#include "compiler/passes/fuse.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ranges>
#include <span>
#include <unordered_set>

#include "compiler/analysis/access.h"
#include "compiler/analysis/dataflow.h"
#include "compiler/analysis/movement.h"
#include "compiler/ir/module.h"
#include "compiler/passes/cluster_graph.h"
#include "compiler/passes/fusion_builder.h"
#include "compiler/passes/wrap.h"
#include "compiler/plan/contraction.h"
#include "compiler/plan/cost.h"
#include "compiler/plan/op_cost.h"
#include "layout/lists.h"

namespace hlojit {
namespace {

constexpr int64_t kMaxBuffers = 64;
constexpr int64_t kMaxStreams = 24;         // vectors in flight
constexpr int64_t kMaxInstructions = 2000;  // of the loop bodies, roughly
constexpr double kRounding = 1e-3;          // costs this close are equal
constexpr size_t kMaxMembers = 600;         // most joins plan all of a kernel again
constexpr size_t kMaxSiblings = 8;          // kernels ahead that a kernel is compared with
constexpr double kShortNs = 1000;

/// What one kernel is asked to take at most, if several take so long. One instead of short ones is better than priced:
/// none of them waits for what another has just stored. (A step of Runge and Kutta's with 1000 elements, a Zen 4:
/// priced 0.75 us apart and 0.84 in one, it took 0.86 and 0.77; asked to gain a third, other programs lost.)
double bearable(double apart_ns) {
  constexpr double kOfShort = 0.85;
  return apart_ns < kShortNs ? apart_ns / kOfShort : apart_ns;
}

/// Of an elementwise op, at most one operand is more than a scalar: a factor, an offset, a conversion.
bool is_scale(const Instruction* i) {
  int wide = 0;
  for (const Instruction* o : i->operands()) {
    bool scalar = o->shape.rank() == 0 || is_inline_constant(*o) ||
                  (o->is(Opcode::kBroadcast) && o->operand(0)->shape.rank() == 0);
    if (!scalar) ++wide;
  }
  return wide <= 1;
}

/// A matrix that leaves the first cache, for a few rows (or columns) of the dot's other side: reading it takes longer
/// than what is done with it. (4x2048 by bytes 2048x4096, scaled: 2.5 ms -> 0.5. Of 512x1024 bytes, an Emerald Rapids:
/// by one row 122 us -> 26, by four 127 -> 60, by eight 163 -> 76; 256x256 by four 9.6 -> 10.0. A small one is read
/// where it lies: 24x24, a difference, took 1.7 times as long packed.)
bool is_matrix_for_few(const Instruction* dot, size_t operand, int64_t few, Products& products) {
  if (!dot->is(Opcode::kDot) || dot->operand(operand)->shape.dense_bytes() <= products.target().l1_bytes) return false;
  const MatrixProduct& p = products.of(*dot, dot->shape, false).matrices;
  return (operand == p.columns_operand() ? p.m : p.n) <= few;
}
constexpr int64_t kFew = 24;

/// What packing makes of a matrix for few rows saves reading all of it; but who computes an array may as well do that,
/// too. (Four rows by halves of bytes, put together and scaled, 512x512: 38 us, 67 so.)
bool saves_reading(const Instruction* i, const Instruction* read, const InstructionSet& inside) {
  if (inside.contains(read) || read->shape.dense_bytes() < i->shape.dense_bytes()) return true;
  return !is_kernel_op(*read) || is_inline_constant(*read);
}

/// The packing of a dot's operands may be repeated for each block of the other side, so only what is
/// nearly free is put there: moves, conversions, scaling.
bool packs_lightly(const KernelPlan& plan, const std::vector<Instruction*>& members, Products& products) {
  const InstructionSet inside(members);
  InstructionSet packed, packed_once;
  for (const Stage& s : plan.stages) {
    const Instruction* dot = s.product ? s.product : plan.hero;
    for (size_t k = 0; k < 2; ++k) {
      if (static_cast<int>(k) == taken_operand(plan, dot)) continue;
      const bool once = !plan.by_blocks() && is_matrix_for_few(dot, k, s.blocks ? kFew : 1, products);
      (once ? packed_once : packed).insert(dot->operand(k));
    }
  }
  for (const Instruction* i : members | std::views::reverse) {
    if (packed.contains(i)) {
      if (is_elementwise(i->opcode) && !is_scale(i)) return false;
      packed.insert_all(i->operands());
    } else if (packed_once.contains(i)) {
      for (const Instruction* o : i->operands()) {
        if (is_elementwise(i->opcode) && !is_scale(i) && !saves_reading(i, o, inside)) return false;
      }
      packed_once.insert_all(i->operands());
    }
  }
  return true;
}

/// Computing it again for each reader is worth a thought.
bool is_cheap(const Instruction* i) {
  if (i->shape.is_tuple()) return false;
  if (has_trait(*i, op_trait::kUpdates) || is_reduction(*i)) return false;
  // A scalar costs a kernel next to nothing to compute again, but for dear ones code, which takes time to make.
  if (i->shape.rank() == 0) return !is_elementwise(i->opcode) || price_of(*i) <= OpPrice::kCheap;
  switch (i->info().op_class) {
    case OpClass::kElementwise: return price_of(*i) <= OpPrice::kCheap;
    case OpClass::kMoves: return !has_trait(*i, op_trait::kRandomPlaces);
    case OpClass::kSource: return true;
    default: return false;
  }
}

/// A copy that changes the layout was put there for its readers: it stays a buffer.
bool changes_layout(const Instruction* i) {
  return i->is(Opcode::kCopy) && i->shape.layout != i->operand(0)->shape.layout;
}
bool reads_at_random_places(std::span<Instruction* const> members) {
  return std::ranges::any_of(members, [](const Instruction* i) { return has_trait(*i, op_trait::kRandomPlaces); });
}
/// One that only products read may as well be part of their packing.
bool packs(const Instruction* i) {
  auto multiplies = [](const Instruction* user) { return user->is(Opcode::kDot); };
  return changes_layout(i) && std::ranges::all_of(i->users(), multiplies);
}

/// What a single reader has of an array: one of its few places along a dim. Null if it is no such slice.
Instruction* slice_for_one(Instruction* value) {
  auto single = [](const Instruction* i) { return i->users().size() == 1 && !i->is_root(); };
  if (!single(value)) return nullptr;
  if (value->is(Opcode::kReshape)) value = value->operand(0);
  if (!value->is(Opcode::kSlice) || !single(value)) return nullptr;
  constexpr int64_t kFewPlaces = 4;
  const Ints &from = value->operand(0)->shape.dims, &to = value->shape.dims;
  int64_t cut = 0;
  for (size_t d = 0; d < to.size(); ++d) {
    if (from[d] != to[d] && (to[d] != 1 || from[d] > kFewPlaces)) return nullptr;
    cut += from[d] != to[d] ? 1 : 0;
  }
  return cut == 1 && !value->operand(0)->is(Opcode::kParameter) ? value : nullptr;
}

struct Candidate {
  KernelPlan plan;
  KernelCost cost;
  InstructionMap<double> wanted;
};

class Fuser {
 public:
  Fuser(Computation& c, const PipelineOptions& options) : c_(c), options_(options), graph_(c) {}

  bool run() {
    gather_short_sums();
    for (size_t k = 0; k < graph_.size(); ++k) price(static_cast<int>(k));
    for (size_t k = graph_.size(); k-- > 0;) {
      int p = static_cast<int>(k);  // clusters were made in order of position
      if (graph_[p].kernel && graph_[p].alive && !changes_layout(graph_[p].members[0])) join_readers(p);
    }
    // What is computed again and again, or element by element, is asked as a whole. (Step by step each op of a
    // histogram's search, 60 of them, won a little and lost its lanes: 493 us instead of 104. Each of a blur's first
    // pass, 13, saved what it reads, and all of them together are computed seven times, once a tap of the second: 71
    // us, 31.)
    for (size_t k = graph_.size(); k-- > 0;) {
      int p = static_cast<int>(k);
      if (repeats_in_reader(p) && !changes_layout(graph_[p].members[0])) join_readers(p, true);
    }
    // A product takes whole rows, and what makes a matrix for few of them: that is a kernel only now. (A reshape before
    // the product, which alone is free, kept all of a matrix scaled by groups out: 1.17 ms instead of 0.26.)
    for (size_t k = graph_.size(); k-- > 0;) {
      int p = static_cast<int>(k);
      if (graph_[p].kernel && graph_[p].alive &&
          (has_rows(graph_[p]) || makes_operand(graph_[p]) || takes_part(graph_[p])))
        join_readers(p);
    }
    // How often a product would pack is known only now.
    for (size_t k = graph_.size(); k-- > 0;) {
      int p = static_cast<int>(k);
      if (graph_[p].kernel && graph_[p].alive && packs(graph_[p].members.back())) join_readers(p);
    }
    for (const auto& i : c_.instructions()) join_siblings(i.get());
    return build();
  }

 private:
  std::optional<Candidate> evaluate(const std::vector<Instruction*>& members, const std::vector<Instruction*>& roots,
                                    std::string* why) {
    if (members.size() > kMaxMembers) {
      *why = "too many instructions";
      return std::nullopt;
    }
    std::vector<const Instruction*> m(members.begin(), members.end());
    std::vector<const Instruction*> r(roots.begin(), roots.end());
    auto plan = plan_kernel(m, r, products_, why);
    if (!plan) return std::nullopt;
    if (plan->kind == KernelKind::kContraction && !packs_lightly(*plan, members, products_)) {
      *why = "too much work for the packing of a dot";
      return std::nullopt;
    }
    return planned(m, std::move(*plan), why);
  }

  std::optional<Candidate> planned(const std::vector<const Instruction*>& members, KernelPlan plan, std::string* why) {
    InstructionMap<double> wanted;
    KernelCost cost = kernel_cost(members, plan, products_, movements_, wanted);
    if (!admits(cost)) {
      *why = fmt::format("{} buffers, {} streams, {} instructions are too many", cost.buffers, cost.streams,
                         cost.instructions);
      return std::nullopt;
    }
    return Candidate{std::move(plan), cost, std::move(wanted)};
  }

  /// A reader that computes p, which is cheap, itself. A nest is planned by its results alone, but for updates.
  std::optional<Candidate> evaluate_again(int p, int reader, std::string* why) {
    const std::vector<Instruction*> members = graph_.joined(p, reader);
    const Cluster& cluster = graph_[reader];
    const bool nest = cluster.plan && cluster.plan->kind == KernelKind::kNest;
    auto updates = [](const Instruction* i) { return has_trait(*i, op_trait::kUpdates); };
    if (!nest || members.size() > kMaxMembers || std::ranges::any_of(cluster.members, updates))
      return evaluate(members, cluster.roots, why);
    return planned({members.begin(), members.end()}, *cluster.plan, why);
  }

  /// Two clusters as one, if nothing stands between them, which is sooner said than planned.
  std::optional<Candidate> evaluate_joined(int a, int b, std::string* why) {
    if (graph_.tied(a, b)) {
      *why = "another kernel stands between them";
      return std::nullopt;
    }
    // Windows are copied, before or after they lie in rows, because written or read apart each element would be alone
    // (layout_rules.h).
    const Instruction *before = graph_[a].members.back(), *after = graph_[b].members[0];
    const bool reads_copy = changes_layout(before) && reads_at_random_places(graph_[b].members);
    if (reads_copy || (changes_layout(after) && reads_at_random_places(graph_[a].members))) {
      *why = fmt::format("{} copies windows that lie in rows", (reads_copy ? before : after)->name);
      return std::nullopt;
    }
    std::vector<Instruction*> members = graph_.joined(a, b);
    return evaluate(members, graph_.roots_of(members, a, b), why);
  }

  static bool admits(const KernelCost& cost) {
    return cost.buffers <= kMaxBuffers && cost.streams <= kMaxStreams && cost.instructions <= kMaxInstructions;
  }

  /// Steps between an array's few places (expand_short_reduce) are one cluster from the beginning, as the sum was that
  /// they are: some of them alone in a kernel would leave the array, several times as large, to others. (Mixtures of
  /// eight Gaussians in space: 22.6 us, 28.6.)
  void gather_short_sums() {
    InstructionMap<const Instruction*> summed;  // so far: what the places are of
    for (const auto& i : c_.instructions()) {
      if (!is_elementwise(i->opcode) || i->operand_count() != 2) continue;
      Instruction *left = i->operand(0), *right = slice_for_one(i->operand(1));
      if (!right || graph_.home(i.get()) < 0) continue;
      const Instruction* x = right->operand(0);
      std::vector<Instruction*> parts = {right, i->operand(1)};
      if (Instruction* other = slice_for_one(left); other && other->operand(0) == x) {
        parts.insert(parts.end(), {other, left});
      } else if (const auto* sum = summed.find(left); sum && *sum == x && left->opcode == i->opcode) {
        parts.push_back(left);
      } else if (!left->is(Opcode::kBroadcast)) {
        continue;
      }
      summed[i.get()] = x;
      for (Instruction* part : parts) {
        const int from = graph_.home(part), to = graph_.home(i.get());
        if (from < 0 || from == to || part->users().size() != 1) continue;
        if (fusable(from) && fusable(to)) graph_.merge(from, to);
      }
    }
  }

  void price(int c) {
    Cluster& cluster = graph_[c];
    if (!cluster.alive || !cluster.kernel || cluster.roots.empty()) return;
    const Instruction* only = cluster.members[0];
    if (only->operand_count() == 1 && keeps_memory(*only)) free_.insert(only);
    std::string why;
    auto own = evaluate(cluster.members, cluster.roots, &why);
    if (!own) return;
    set(c, std::move(*own));
  }

  void set(int c, Candidate candidate) {
    graph_[c].plan = std::move(candidate.plan);
    graph_[c].wanted = std::move(candidate.wanted);
    set(c, candidate.cost);
  }
  void set(int c, const KernelCost& cost) {
    graph_[c].cost = cost;
    graph_[c].rough = false;
  }

  static bool has_rows(const Cluster& cluster) {
    return cluster.plan && (cluster.plan->kind == KernelKind::kRows || cluster.plan->by_blocks());
  }

  /// Several ops that make a matrix for products with few rows, which may be moved on the way.
  bool makes_operand(const Cluster& cluster) {
    return cluster.members.size() > 1 && cluster.roots.size() == 1 && is_for_few(cluster.roots[0]);
  }
  /// What a round takes of an array, one layer's weights, for products: which reshape it for nothing, but only if that
  /// is all there is.
  static bool takes_part(const Cluster& cluster) {
    if (cluster.roots.size() != 1) return false;
    const Instruction* part = cluster.roots[0];
    if (!std::ranges::all_of(part->users(), [](const Instruction* user) { return user->is(Opcode::kDot); }))
      return false;
    while (moves_by_fixed_map(*part)) part = part->operand(0);
    return part->is(Opcode::kDynamicSlice) && contains(cluster.members, part);
  }
  bool is_for_few(const Instruction* matrix) {
    return !matrix->is_root() && std::ranges::all_of(matrix->users(), [&](const Instruction* user) {
      if (moves_by_fixed_map(*user)) return is_for_few(user);
      return user->is(Opcode::kDot) && is_matrix_for_few(user, user->operand(0) == matrix ? 0 : 1, kFew, products_);
    });
  }

  KernelCost priced(Cluster& cluster) {
    std::vector<const Instruction*> members(cluster.members.begin(), cluster.members.end());
    return kernel_cost(members, *cluster.plan, products_, movements_, cluster.wanted.emplace());
  }

  /// What a cluster costs as it stands. Alone, an op that leaves the bytes where they are is free: it
  /// becomes a bitcast.
  double cost(int c) {
    Cluster& cluster = graph_[c];
    if (is_free(c)) return 0;
    if (cluster.rough) set(c, priced(cluster));
    return cluster.plan ? cluster.cost.total_ns() : std::numeric_limits<double>::infinity();
  }
  bool is_free(int c) const {
    const std::vector<Instruction*>& members = graph_[c].members;
    return members.size() == 1 && free_.contains(members[0]);
  }

  /// Nothing is gained where a reader loads it: it is free, or numbers, or repeats rows or an element along them, but
  /// not a few times. (Who finds the largest of rows may take elements in any order if it sees that they are numbered.
  /// Tokens drawn from the likeliest of 57x437, whose numbers a sort reads too: 456 us, 57 so. Softmax of 1444 values,
  /// each twice: 1 us, 2 where each lane looked for its own.)
  bool costs_nothing(int p) const {
    constexpr int64_t kFewTimes = 8;
    const Instruction* only = graph_[p].members[0];
    if (is_free(p) || graph_[p].members.size() > 1) return is_free(p);
    if (!only->is(Opcode::kBroadcast) || only->shape.rank() == 0) return only->is(Opcode::kIota);
    const int64_t last = only->shape.layout.minor_to_major[0];
    return contains(only->attrs.dimensions, last) || only->shape.dims[static_cast<size_t>(last)] > kFewTimes;
  }

  /// It is another name for the bytes that it reads, and no kernel's operand: those are the result then. (As part of a
  /// kernel it would be in the way of rows: f32[1,4096,768] is what a softmax of [4096,768] is returned as.)
  bool names_result(int c) const {
    return is_free(c) &&
           std::ranges::none_of(graph_.readers(graph_[c].members[0]), [&](int reader) { return fusable(reader); });
  }

  bool fusable(int c) const {
    return graph_[c].kernel && graph_[c].alive &&
           std::ranges::none_of(graph_[c].members, [&](auto* m) { return graph_.pinned(m); });
  }

  // ---- a producer and its readers -------------------------------------------------------------------

  /// A kernel that reads it would compute it element by element, as a scatter does, or each element several times. (Of
  /// what short kernels read, only what computes more than a few elements: where rows go round, edges are slices of
  /// slices of what was put side by side, and a kernel each asked apart. Steps of five-point stencils on 16x10x16 and
  /// smaller grids, one core of a Zen 4: 29 us, 11.8; 3.1, 1.5; 3.8, 2.0. A blur of 3x15x26 pixels 3.3, 0.8.)
  bool repeats_in_reader(int p) {
    constexpr double kSeveral = 3;
    constexpr int64_t kFewElements = 8;
    const Cluster& cluster = graph_[p];
    if (!cluster.kernel || !cluster.alive || cluster.roots.size() != 1 || cluster.roots[0]->is_root()) return false;
    const Instruction* root = cluster.roots[0];
    const bool asks_of_short = is_elementwise(root->opcode) && root->shape.element_count() > kFewElements;
    return std::ranges::any_of(graph_.readers(root), [&](int r) {
      Cluster& reader = graph_[r];
      if (!reader.plan) return false;
      if (reader.plan->kind == KernelKind::kScatter) return true;
      if (reader.cost.once || (!asks_of_short && reader.cost.total_ns() < kShortNs)) return false;
      if (!reader.wanted) priced(reader);
      const double* times = reader.wanted->find(root);
      return times && *times >= kSeveral;
    });
  }

  /// `whole`: its cluster grows no more.
  void join_readers(int p, bool whole = false) {
    if (!fusable(p) || (!whole && repeats_in_reader(p))) return;
    // Computing a scalar again is free, but chains of scalars that each reader computes again grow with every reader.
    if (const Instruction* only = graph_[p].members[0]; graph_[p].members.size() == 1 && only->shape.rank() == 0) {
      merge_siblings(graph_.readers(only), only);
    }
    std::vector<int> readers;
    bool leaves = false;
    for (const Instruction* m : graph_[p].roots) {
      leaves |= m->is_root();
      for (int r : graph_.readers(m)) {
        if (!fusable(r) || names_result(r)) {
          leaves = true;
        } else if (std::ranges::find(readers, r) == readers.end()) {
          readers.push_back(r);
        }
      }
    }
    if (readers.empty()) return;
    bool alone = readers.size() == 1 && !leaves;
    if (alone && join_freely(p, readers[0])) return;
    const bool cheap = std::ranges::all_of(graph_[p].members, is_cheap) && (whole || graph_[p].members.size() == 1);

    std::vector<std::optional<Candidate>> again(readers.size());
    double again_gain = alone || !cheap ? 0 : try_again(p, readers, leaves, again);
    auto [best, one, one_gain] = try_one(p, readers, alone, whole);
    if (best >= 0 && (alone || one_gain > again_gain + kRounding * cost(p))) {  // a tie: compute it again
      set(graph_.merge(p, best), std::move(*one));
      return;
    }
    std::vector<int> own;
    for (size_t k = 0; k < readers.size(); ++k) {
      if (again[k]) own.push_back(readers[k]);
    }
    if (!own.empty()) graph_.duplicate(p, own);
    for (size_t k = 0; k < readers.size(); ++k) {
      if (again[k]) set(readers[k], std::move(*again[k]));
    }
  }

  /// What a kernel updates is not for it to read elsewhere: a plan says whether this is.
  static bool reads_target(const Instruction* i, const KernelPlan& plan) {
    return std::ranges::any_of(plan.roots, [&](const Instruction* r) {
      return has_trait(*r, op_trait::kUpdates) && contains(i->operands(), r->operand(0));
    });
  }

  /// An elementwise op whose one reader is a nest that evaluates everything once: nothing is computed again and a
  /// buffer is saved, so neither a plan nor a price is asked for. Else a body of n ops would be planned n times.
  bool join_freely(int p, int r) {
    const Instruction* i = graph_[p].members[0];
    Cluster& reader = graph_[r];
    bool spreads = i->is(Opcode::kBroadcast) && i->operand(0)->shape.rank() == 0;
    if (graph_[p].members.size() > 1 || !(is_elementwise(i->opcode) || spreads) || !i->shape.is_array()) return false;
    if (!graph_[p].plan || !reader.plan || reader.plan->kind != KernelKind::kNest || !reader.cost.once) return false;
    if (reader.members.size() >= kMaxMembers || reads_target(i, *reader.plan)) return false;
    for (const Instruction* user : i->users()) {
      if (!is_elementwise(user->opcode)) return false;
    }
    KernelCost more = reader.cost, own = graph_[p].cost;  // its result is neither written nor read any more
    more.instructions += own.instructions;
    more.buffers += own.buffers - 2;
    more.streams += own.streams - std::min<int64_t>(own.streams, 2);
    if (!admits(more)) return false;
    // Explaining must not change what is decided later: prices are asked for aside.
    double apart = options_.explain ? own.total_ns() + priced(reader).total_ns() : 0;
    graph_.merge(p, r);
    reader.cost = more;
    reader.rough = true;
    if (options_.explain) explain("join", p, r, apart, priced(reader).total_ns(), true, "nothing is computed again");
    return true;
  }

  /// Every reader computes p itself; returns what is won. Entries of `again` stay for readers that do.
  double try_again(int p, const std::vector<int>& readers, bool leaves, std::vector<std::optional<Candidate>>& again) {
    double more = 0;
    bool all = !leaves;
    for (size_t k = 0; k < readers.size(); ++k) {
      std::string why;
      again[k] = evaluate_again(p, readers[k], &why);
      if (!again[k]) {
        all = false;
        explain("again", p, readers[k], 0, 0, false, why);
        continue;
      }
      more += again[k]->cost.total_ns() - cost(readers[k]);
    }
    if (all && more <= cost(p) + kRounding * std::abs(more)) {
      explain("again", p, readers[0], cost(p), more, true, fmt::format("{} readers", readers.size()));
      return cost(p) - more;
    }
    // p stays a buffer: only those go their own way whose own way is shorter.
    double gain = 0;
    for (size_t k = 0; k < readers.size(); ++k) {
      if (!again[k]) continue;
      double apart = cost(readers[k]), together = again[k]->cost.total_ns();
      bool better = together < apart || (costs_nothing(p) && together <= apart);
      explain("again", p, readers[k], apart, together, better, "");
      if (better) gain += apart - together;
      if (!better) again[k].reset();
    }
    return gain;
  }

  /// Why kernels are one in spite of their prices.
  static std::string bearing(double apart, const Candidate& together) {
    return together.cost.total_ns() > apart * (1 + kRounding) ? "short kernels" : "";
  }

  struct One {
    int reader = -1;
    std::optional<Candidate> candidate;
    double gain = 0;
  };

  /// p joins the one reader where that wins most; other readers take it as a result from there. `whole`: p is all that
  /// it could be.
  One try_one(int p, const std::vector<int>& readers, bool alone, bool whole) {
    One best;
    for (int r : readers) {
      std::string why;
      auto together = evaluate_joined(p, r, &why);
      if (!together) {
        explain("join", p, r, 0, 0, false, why);
        continue;
      }
      double apart = cost(p) + cost(r);
      double gain = (whole ? bearable(apart) : apart) - together->cost.total_ns();
      if (alone && is_free(p) && gain > -kRounding * apart) gain = std::max(gain, 0.0);
      bool better = gain > best.gain || (gain == 0 && alone);
      explain("join", p, r, apart, together->cost.total_ns(), better, better ? bearing(apart, *together) : "");
      if (better) best = {r, std::move(together), gain};
    }
    return best;
  }

  // ---- kernels that read, or make and read, the same value ------------------------------------------

  void join_siblings(const Instruction* value) {
    if (!value->shape.is_array() || is_inline_constant(*value)) return;
    std::vector<int> kernels = graph_.readers(value);
    if (int h = graph_.home(value); h >= 0) kernels.insert(kernels.begin(), h);
    merge_siblings(std::move(kernels), value);
  }

  void merge_siblings(std::vector<int> kernels, const Instruction* value) {
    std::erase_if(kernels, [&](int c) { return !streams(c, value); });
    for (size_t a = 0; a < kernels.size(); ++a) {
      size_t last = std::min(kernels.size(), a + 1 + kMaxSiblings);
      for (size_t b = a + 1; b < last; ++b) {
        if (kernels[a] < 0 || kernels[b] < 0) continue;
        int stays = try_siblings(kernels[a], kernels[b]);
        if (stays < 0) continue;
        // Going on with the merged kernel from b's place keeps the list in order.
        kernels[a] = -1;
        kernels[b] = stays;
        break;
      }
    }
  }

  /// The kernel runs over at most as many elements as `value` has: reading it once is worth something.
  bool streams(int c, const Instruction* value) const {
    if (!fusable(c) || !graph_[c].plan || is_free(c)) return false;
    if (graph_[c].plan->kind == KernelKind::kContraction) return false;  // has one result
    return value->shape.element_count() >= product(graph_[c].plan->domain);
  }

  int try_siblings(int a, int b) {
    // Lanes would lie along one result, and be stored one by one in the other. (Weights of 512x10 packed for two
    // products, as rows and as columns: 2.4 us and 170 ms to compile, 1.5 and 13 apart; of 700x900 490 us and 153.)
    const Instruction *x = graph_[a].members.back(), *y = graph_[b].members.back();
    if ((changes_layout(x) || changes_layout(y)) && x->shape.layout != y->shape.layout) {
      explain("siblings", a, b, 0, 0, false, "a copy to another layout");
      return -1;
    }
    std::string why;
    auto together = evaluate_joined(a, b, &why);
    if (!together) {
      explain("siblings", a, b, 0, 0, false, why);
      return -1;
    }
    double apart = cost(a) + cost(b);
    bool better = together->cost.total_ns() < bearable(apart);
    explain("siblings", a, b, apart, together->cost.total_ns(), better, better ? bearing(apart, *together) : "");
    if (!better) return -1;
    int stays = graph_.merge(a, b);
    set(stays, std::move(*together));
    return stays;
  }

  // ---- result -------------------------------------------------------------------------------------

  /// Clusters of several instructions become fusions; single ones are left for `wrap`, and so is what
  /// only renames bytes.
  bool build() {
    std::vector<KernelGroup> groups;
    for (size_t k = 0; k < graph_.size(); ++k) {
      const Cluster& cluster = graph_[static_cast<int>(k)];
      if (!cluster.alive || !cluster.kernel || cluster.members.size() < 2 || !cluster.plan) continue;
      bool renames = std::ranges::all_of(cluster.members, [&](auto* m) { return free_.contains(m); });
      if (renames) continue;
      groups.push_back({cluster.members, cluster.roots, *cluster.plan});
    }
    if (groups.empty()) return false;
    build_fusions(c_, groups);
    return true;
  }

  void explain(std::string_view what, int a, int b, double apart, double together, bool yes, const std::string& why) {
    if (!options_.explain) return;
    auto name = [&](int c) { return graph_[c].members.back()->name; };
    std::string text = fmt::format("fuse {}: {} {} {}", c_.name, what, name(a), name(b));
    if (apart > 0 || together > 0) {
      text += fmt::format(": apart {:.1f} ns, together {:.1f} ns", apart, together);
    }
    text += yes ? ": yes" : ": no";
    if (!why.empty()) text += ", " + why;
    options_.explain(text);
  }

  Computation& c_;
  const PipelineOptions& options_;
  ClusterGraph graph_;
  Movements movements_;
  Products products_{options_.target};
  std::unordered_set<const Instruction*> free_;  // alone, these become bitcasts
};

}  // namespace

bool fuse(Module& module, const PipelineOptions& options) {
  bool changed = false;
  for (Computation* c : sequential_computations(module)) {
    changed |= split_variadic_results(*c);
    changed |= Fuser(*c, options).run();
  }
  if (changed) module.remove_unreachable();
  return changed;
}

}  // namespace hlojit
