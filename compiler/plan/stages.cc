// See stages.h. The order follows from dependence alone: a reduction's stage is the length of the longest
// chain of reductions below it. What is left to decide is where full-size results are stored (in the
// first pass that computes them anyway) and which values are worth a row of scratch: those that two
// passes need and that cost more to compute again than to store and load.
#include "compiler/plan/stages.h"

#include <algorithm>
#include <ranges>

#include "compiler/analysis/access.h"
#include "compiler/ir/narrow.h"
#include "compiler/plan/op_cost.h"
#include "layout/lists.h"

namespace hlojit {
namespace {

// Cycles a vector for computing a value of the domain, in the unit of cost.cc; beyond this a store and
// the loads that follow are cheaper.
constexpr double kDear = 4;
constexpr int64_t kFewestColumnVectors = 2;

/// Of an element in scratch: narrow floats are kept as the f32 their register holds.
int64_t kept_bytes(const Instruction* i) { return dtype_bytes(working_type(i->shape.type)); }

Stage inner_pass(std::vector<size_t> stores = {}) {
  Stage s;
  s.inner = true;
  s.stores = std::move(stores);
  return s;
}

class Stager {
 public:
  Stager(const KernelGraph& g, const TargetInfo& target, const BlockParts& parts, KernelPlan& plan)
      : g_(g), target_(target), parts_(parts), plan_(plan) {}

  void run() {
    if (plan_.kind == KernelKind::kNest) {
      Stage only;
      for (size_t k = 0; k < plan_.roots.size(); ++k) only.stores.push_back(k);
      plan_.stages = {std::move(only)};
      return;
    }
    for (const Instruction* r : g_.reduces) {
      size_t s = level(r);
      if (plan_.stages.size() <= s) plan_.stages.resize(s + 1, inner_pass());
      plan_.stages[s].reduces.push_back(r);
    }
    place_results();
    place_operands();
    find_needs();
    keep_dear_values();
  }

 private:
  /// Stages that must be complete before the value can be computed; of a reduce, its own stage.
  size_t level(const Instruction* i) {
    if (const size_t* known = levels_.find(i)) return *known;
    // Operands come first in execution order, so one sweep over the members fills the table.
    for (const Instruction* m : g_.members) {
      size_t most = 0;
      for (const Instruction* o : m->operands()) {
        if (const size_t* at = levels_.find(o)) most = std::max(most, *at + (o->is(Opcode::kReduce) ? 1 : 0));
      }
      levels_[m] = most;
    }
    return levels_.at(i);
  }

  bool is_full(const Instruction* value) const { return !plan_.inner.empty() && dims_of(value) == plan_.domain; }

  /// Adds the values of the domain that computing `from` at an element computes at that same element.
  // Without recursion: chains may be long.
  void add_aligned(const Instruction* from, InstructionSet& set) const {
    std::vector<const Instruction*> open = {from};
    while (!open.empty()) {
      const Instruction* i = open.back();
      open.pop_back();
      if (!g_.has(i) || i->is(Opcode::kReduce) || dims_of(i) != plan_.domain || !set.insert(i)) continue;
      for (size_t k = 0; k < i->operand_count(); ++k) {
        if (reads_own_element(*i, k)) open.push_back(i->operand(k));
      }
    }
  }

  std::vector<const Instruction*> outputs(const Stage& stage) const {
    std::vector<const Instruction*> all;
    for (const Instruction* r : stage.reduces) {
      for (size_t k = 0; k < r->operand_count() / 2; ++k) all.push_back(r->operand(k));
    }
    for (size_t k : stage.stores) all.push_back(plan_.roots[k]);
    all.insert(all.end(), stage.keeps.begin(), stage.keeps.end());
    return all;
  }

  bool is_made(const Instruction* i) const { return std::ranges::find(parts_.making, i) != parts_.making.end(); }

  void place_results() {
    size_t reduce_stages = plan_.stages.size();
    std::vector<size_t> narrow, last, early;
    for (size_t k = 0; k < plan_.roots.size(); ++k) {
      const Instruction* root = plan_.roots[k];
      if (std::ranges::find(parts_.later, k) != parts_.later.end()) continue;
      if (!is_full(root))
        narrow.push_back(k);
      else
        (level(root) >= reduce_stages ? last : early).push_back(k);
    }
    for (size_t k : early) {
      // The first pass that computes it anyway; else the last one there is.
      size_t at = last.empty() ? reduce_stages - 1 : reduce_stages;
      for (size_t s = level(plan_.roots[k]); s < reduce_stages && s < at; ++s) {
        InstructionSet set;
        for (const Instruction* o : outputs(plan_.stages[s])) add_aligned(o, set);
        if (set.contains(plan_.roots[k])) at = s;
      }
      if (at < reduce_stages)
        plan_.stages[at].stores.push_back(k);
      else
        last.push_back(k);
    }
    std::ranges::sort(last);
    if (!last.empty()) plan_.stages.push_back(inner_pass(last));
    if (!narrow.empty()) {
      plan_.stages.emplace_back();
      plan_.stages.back().stores = narrow;
    }
  }

  /// What later products take is kept by the first pass that computes it anyway, or by a last one.
  void place_operands() {
    for (const Instruction* v : parts_.operands) {
      if (is_made(v) || kept_.contains(v)) continue;
      size_t at = level(v), last = plan_.stages.size();
      for (; at < last; ++at) {
        InstructionSet set;
        for (const Instruction* o : outputs(plan_.stages[at])) add_aligned(o, set);
        if (plan_.stages[at].inner && set.contains(v)) break;
      }
      if (at == last) {
        bool joins = last > 0 && level(v) < last && plan_.stages.back().inner;
        if (!joins) plan_.stages.push_back(inner_pass());
        at = plan_.stages.size() - 1;
      }
      plan_.stages[at].keeps.push_back(v);
      kept_.insert(v);
    }
  }

  void find_needs() {
    for (const Stage& s : plan_.stages) {
      InstructionSet set;
      if (s.inner) {
        for (const Instruction* o : outputs(s)) add_aligned(o, set);
      }
      needs_.push_back(std::move(set));
    }
    // What is computed at other elements reads its operands there, too; users come first. Products read tiles.
    for (const Instruction* i : g_.members | std::views::reverse) {
      if (plan_.kind == KernelKind::kContraction && i->is(Opcode::kDot)) continue;
      for (size_t k = 0; k < i->operand_count(); ++k) {
        const bool away = elsewhere_.contains(i) || !reads_own_element(*i, k);
        if (away && !i->is(Opcode::kReduce)) elsewhere_.insert(i->operand(k));
      }
    }
  }

  /// Of a result element its operand's is computed once, be it another one: what is moved, not repeated.
  static bool costs_an_element(const Instruction& i, size_t k) {
    if (reads_own_element(i, k)) return true;
    const bool moves = i.info().op_class == OpClass::kMoves && i.operand(k)->shape.is_array();
    return moves && 2 * i.operand(k)->shape.element_count() >= i.shape.element_count();
  }

  /// Cycles to compute a value from what the kernel reads.
  double cone(const Instruction* i) {
    if (cones_.empty()) {
      for (const Instruction* m : g_.members) {
        double sum = cycles_per_vector(*m);
        if (m->is(Opcode::kReduce) || is_made(m))
          sum = 0;
        else
          for (size_t k = 0; k < m->operand_count(); ++k) {
            const double* at = cones_.find(m->operand(k));
            if (at && costs_an_element(*m, k)) sum += *at;
          }
        cones_[m] = std::min(sum, 1e6);
      }
    }
    return cones_.at(i);
  }

  void reread(size_t stage, const Instruction* root) {
    size_t k = 0;
    while (plan_.roots[k] != root) ++k;
    plan_.stages[stage].rereads.push_back(k);
  }

  void keep_dear_values() {
    const int64_t count = product(plan_.inner_sizes());
    int64_t used = 0, most = target_.l2_bytes / 2;
    InstructionSet made = kept_;  // or stored as a result, by an earlier stage
    made.insert_all(parts_.making);
    auto first_stage = [&](const Instruction* v) {
      size_t s = 0;
      while (!needs_[s].contains(v)) ++s;
      return s;
    };
    // Results can be read back for nothing but the load.
    InstructionMap<size_t> stored;
    for (size_t s = 0; s < plan_.stages.size(); ++s) {
      for (size_t k : plan_.stages[s].stores) {
        if (plan_.stages[s].inner) stored[plan_.roots[k]] = s;
      }
    }
    for (size_t s = 1; s < plan_.stages.size(); ++s) {
      if (!plan_.stages[s].inner) continue;
      InstructionSet seen;
      std::vector<const Instruction*> open = outputs(plan_.stages[s]);
      std::ranges::reverse(open);
      while (!open.empty()) {
        const Instruction* i = open.back();
        open.pop_back();
        if (!g_.has(i) || i->is(Opcode::kReduce) || dims_of(i) != plan_.domain || !seen.insert(i)) continue;
        bool kept_here = std::ranges::find(plan_.stages[s].keeps, i) != plan_.stages[s].keeps.end();
        if (made.contains(i) && !kept_here) continue;
        size_t first = first_stage(i);
        bool again = !kept_here && first < s && !elsewhere_.contains(i) && cone(i) > kDear;
        if (again && stored.contains(i)) {
          made.insert(i);
          reread(stored.at(i), i);
          continue;
        }
        int64_t rows =
            plan_.kind == KernelKind::kColumns ? kFewestColumnVectors * std::max(1, target_.vector_bytes / 4) : 1;
        int64_t bytes = count * kept_bytes(i) * rows;
        if (again && used + bytes <= most) {
          used += bytes;
          made.insert(i);
          plan_.stages[first].keeps.push_back(i);
          continue;
        }
        for (size_t k = i->operand_count(); k-- > 0;) {
          if (reads_own_element(*i, k)) open.push_back(i->operand(k));
        }
      }
    }
  }

  const KernelGraph& g_;
  const TargetInfo& target_;
  const BlockParts& parts_;
  KernelPlan& plan_;
  InstructionSet kept_;  // operands of later products
  InstructionMap<size_t> levels_;
  InstructionMap<double> cones_;
  std::vector<InstructionSet> needs_;
  InstructionSet elsewhere_;  // read at other elements than those of the results
};

}  // namespace

int64_t column_vectors(const KernelPlan& plan, const TargetInfo& target, int64_t wanted) {
  int64_t bytes = target.vector_bytes / 4;
  for (int64_t n : plan.inner_sizes()) bytes *= n;
  int64_t kept = 0;
  for (const Stage& s : plan.stages) {
    for (const Instruction* v : s.keeps) kept += kept_bytes(v);
  }
  while (wanted > kFewestColumnVectors && wanted * bytes * kept > target.l2_bytes / 2) wanted /= 2;
  return std::max(wanted, kFewestColumnVectors);
}

void make_stages(const KernelGraph& graph, const TargetInfo& target, KernelPlan& plan) {
  BlockParts none;
  Stager(graph, target, none, plan).run();
}

void make_row_stages(const KernelGraph& graph, const TargetInfo& target, const BlockParts& parts, KernelPlan& plan) {
  Stager(graph, target, parts, plan).run();
}

}  // namespace hlojit
