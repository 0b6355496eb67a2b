// The graph that fuse works on: clusters of instructions that will be one kernel each, every other
// instruction a cluster of its own. Merging two clusters must not close a cycle, so the graph keeps its
// clusters in a topological order and repairs it on each merge, touching only the stretch between the
// two (as in the incremental algorithm of Pearce and Kelly).
//
//   a -> b -> c,  a -> c:   a and c cannot merge (b would need and feed the result)
//                           a and b can, then ab and c
//
// A value has at most one home, the cluster that hands it out; cheap values may also be members of the
// clusters that read them, and without a home of their own if all readers do.
#pragma once

#include <optional>
#include <vector>

#include "compiler/ir/instruction_set.h"
#include "compiler/ir/instruction_table.h"
#include "compiler/ir/module.h"
#include "compiler/plan/cost.h"
#include "compiler/plan/kernel.h"

namespace hlojit {

struct Cluster {
  std::vector<Instruction*> members;  ///< execution order
  std::vector<Instruction*> roots;    ///< members read outside
  std::optional<KernelPlan> plan;     ///< kernels only; nullopt: no kernel kind admits it as it is
  KernelCost cost;
  bool rough = false;                            ///< the cost's counts are upper bounds, its times are out of date
  std::optional<InstructionMap<double>> wanted;  ///< of kernel_cost; none if it has grown since
  bool kernel = false;
  bool alive = true;
  size_t order = 0;
};

class ClusterGraph {
 public:
  /// Every kernel op is a cluster, with the elements of a variadic reduce; constants that are copied
  /// into kernels are in none.
  explicit ClusterGraph(const Computation& computation);

  size_t size() const { return clusters_.size(); }
  Cluster& operator[](int c) { return clusters_[c]; }
  const Cluster& operator[](int c) const { return clusters_[c]; }
  /// Position of an instruction in the computation.
  size_t position(const Instruction* i) const { return position_[i]; }
  /// The cluster that hands out the value, or -1.
  int home(const Instruction* value) const;
  /// Clusters that read `value` from outside, ascending by order.
  std::vector<int> readers(const Instruction* value) const;
  /// Control edges tie it to its place: it is not fused.
  bool pinned(const Instruction* i) const { return pinned_.contains(i); }

  /// Members of both, in execution order, each once.
  std::vector<Instruction*> joined(int a, int b) const;
  /// Which of `members` are read outside once a and b (b may be a) are one cluster.
  std::vector<Instruction*> roots_of(const std::vector<Instruction*>& members, int a, int b) const;
  /// There is a way from one to the other through a third.
  bool tied(int a, int b);

  /// Merges a into b or b into a (the later one stays); they are not tied. Returns the one that stays.
  int merge(int a, int b);
  /// Adds the members of `a` to `readers`, which compute them themselves from now on.
  void duplicate(int a, const std::vector<int>& readers);

 private:
  bool contains(int cluster, const Instruction* value) const;
  void add_member(const Instruction* i, int cluster);
  /// Calls f(cluster) for each cluster that must run after `c`.
  template <class F>
  void for_successors(int c, F f) const;
  /// Clusters reachable from `from` without passing `to`, up to to's place; false if `to` is met.
  bool walk(int from, int to);

  std::vector<Cluster> clusters_;
  std::vector<int> sequence_;  // clusters by order; -1 where one was merged away
  InstructionTable<size_t> position_;
  InstructionTable<int> home_;             // -1: none, or none any more
  InstructionTable<std::vector<int>> in_;  // ascending
  InstructionMap<std::vector<const Instruction*>> control_successors_;
  InstructionSet pinned_;
  std::vector<int> seen_;     // cluster -> number of the walk that saw it
  std::vector<int> reached_;  // by the last walk
  int walks_ = 0;
};

}  // namespace hlojit
