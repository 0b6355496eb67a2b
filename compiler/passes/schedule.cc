// See schedule.h. The list schedule keeps the ready instructions in a set ordered by how much memory
// running one would take (results minus operands that die), and looks again at those whose last fellow
// reader of an operand has run. O((n + edges) log n).
#include "compiler/passes/schedule.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "compiler/analysis/dataflow.h"
#include "compiler/passes/explain.h"
#include "layout/index.h"

namespace hlojit {
namespace {

class Scheduler {
 public:
  Scheduler(const Computation& c, const Dataflow& flow) : order_(c.snapshot()) {
    for (size_t k = 0; k < order_.size(); ++k) nodes_[order_[k]].position = k;
    for (const ArrayValue& v : flow.values(c.root())) values_[v].leaves = true;
    for (const Instruction* i : order_) {
      Node& node = nodes_[i];
      for (const Instruction* p : i->operands()) nodes_[p].successors.push_back(i);
      for (const Instruction* p : i->control_predecessors) nodes_[p].successors.push_back(i);
      if (forwards(*i)) continue;
      std::span<const ArrayValue> own = flow.values(i);
      std::vector<const Shape*> shapes = leaves(i->shape);
      for (size_t k = 0; k < own.size(); ++k) {
        // A while writes into the memory of its state; parameters and constants have their own.
        bool allocates = own[k].def == i && makes_arrays(*i);
        if (!allocates || values_[own[k]].leaves) continue;
        values_[own[k]].bytes = physical_size(*shapes[k]);
        node.results.push_back(own[k]);
      }
      for (const ArrayValue& v : flow.reads(i)) {
        if (std::ranges::find(node.reads, v) != node.reads.end()) continue;
        node.reads.push_back(v);
        values_[v].readers.push_back(i);
      }
    }
  }

  const std::vector<Instruction*>& original() const { return order_; }

  std::vector<Instruction*> list_schedule() {
    reset();
    for (const Instruction* i : order_) {
      for (const Instruction* s : nodes_.at(i).successors) ++nodes_.at(s).waiting;
    }
    std::set<std::pair<int64_t, size_t>> ready;  // (bytes taken, original position)
    auto enter = [&](const Instruction* i) {
      Node& node = nodes_.at(i);
      node.price = price(i, node);
      node.is_ready = true;
      ready.insert({node.price, node.position});
    };
    for (const Instruction* i : order_) {
      if (nodes_.at(i).waiting == 0) enter(i);
    }
    std::vector<Instruction*> list;
    while (!ready.empty()) {
      Instruction* i = order_[ready.begin()->second];
      ready.erase(ready.begin());
      Node& node = nodes_.at(i);
      node.is_ready = false;
      list.push_back(i);
      for (const ArrayValue& v : node.reads) {
        Use& use = values_.at(v);
        if (--use.remaining != 1) continue;
        for (const Instruction* other : use.readers) {
          Node& n = nodes_.at(other);
          if (!n.is_ready) continue;
          ready.erase({n.price, n.position});
          enter(other);
        }
      }
      for (const Instruction* s : node.successors) {
        if (--nodes_.at(s).waiting == 0) enter(s);
      }
    }
    return list;
  }

  int64_t peak(std::span<Instruction* const> order) {
    reset();
    int64_t now = 0, most = 0;
    for (const Instruction* i : order) {
      Node& node = nodes_.at(i);
      for (const ArrayValue& v : node.results) now += values_.at(v).bytes;
      most = std::max(most, now);
      for (const ArrayValue& v : node.reads) {
        if (--values_.at(v).remaining == 0) now -= values_.at(v).bytes;
      }
    }
    return most;
  }

 private:
  struct Use {
    int64_t bytes = 0;    // 0: not temporary memory
    bool leaves = false;  // a result of the computation
    std::vector<const Instruction*> readers;
    size_t remaining = 0;
  };
  struct Node {
    size_t position = 0;
    std::vector<const Instruction*> successors;  // with repetitions, as operands repeat
    std::vector<ArrayValue> results, reads;
    size_t waiting = 0;
    int64_t price = 0;
    bool is_ready = false;
  };

  void reset() {
    for (auto& [value, use] : values_) use.remaining = use.readers.size();
  }

  int64_t price(const Instruction* i, const Node& node) const {
    // What only forwards or names memory goes first: it delays nothing and may free its readers.
    if (node.results.empty() && node.reads.empty()) return std::numeric_limits<int64_t>::min();
    int64_t bytes = 0;
    for (const ArrayValue& v : node.results) bytes += values_.at(v).bytes;
    for (const ArrayValue& v : node.reads) {
      const Use& use = values_.at(v);
      if (use.remaining == 1 && v.def != i) bytes -= use.bytes;
    }
    return bytes;
  }

  std::vector<Instruction*> order_;
  std::unordered_map<const Instruction*, Node> nodes_;
  std::unordered_map<ArrayValue, Use, ArrayValueHash> values_;
};

}  // namespace

bool schedule(Module& module, const PipelineOptions& options) {
  if (module.config.is_scheduled) return false;
  Dataflow flow(module);
  for (Computation* c : sequential_computations(module)) {
    Scheduler scheduler(*c, flow);
    std::vector<Instruction*> list = scheduler.list_schedule();
    int64_t given = scheduler.peak(scheduler.original()), best = scheduler.peak(list);
    explain(options, "schedule", *c, "at most {} temporary bytes at a time in this order, {} in the text's", best,
            given);
    if (best < given) c->set_order(list);
  }
  module.remove_unreachable();  // computations in the order of their callers
  module.config.is_scheduled = true;
  return true;
}

}  // namespace hlojit
