// See cluster_graph.h.
#include "compiler/passes/cluster_graph.h"

#include <algorithm>

namespace hlojit {
namespace {

/// What control edges put before `i`: a constant that is copied into kernels never runs, so those before it count.
InstructionSet run_before(const Instruction& i) {
  InstructionSet found, seen;
  std::vector<const Instruction*> open(i.control_predecessors.begin(), i.control_predecessors.end());
  while (!open.empty()) {
    const Instruction* p = open.back();
    open.pop_back();
    if (!seen.insert(p)) continue;
    if (is_inline_constant(*p))
      open.insert(open.end(), p->control_predecessors.begin(), p->control_predecessors.end());
    else
      found.insert(p);
  }
  return found;
}

}  // namespace

ClusterGraph::ClusterGraph(const Computation& computation)
    : position_(computation), home_(computation, -1), in_(computation) {
  for (size_t position = 0; const auto& owned : computation.instructions()) {
    Instruction* i = owned.get();
    position_[i] = position++;
    if (is_inline_constant(*i) && i->control_predecessors.empty()) continue;
    for (const Instruction* p : run_before(*i)) {
      control_successors_[p].push_back(i);
      pinned_.insert(p);
      pinned_.insert(i);
    }
    if (i->is(Opcode::kGetTupleElement) && is_kernel_op(*i)) {
      int c = home_[i->operand(0)];
      clusters_[c].members.push_back(i);
      home_[i] = c;
      in_[i] = {c};
      continue;
    }
    int c = static_cast<int>(clusters_.size());
    Cluster& cluster = clusters_.emplace_back();
    cluster.members = {i};
    cluster.kernel = is_kernel_op(*i);
    cluster.order = sequence_.size();
    sequence_.push_back(c);
    home_[i] = c;
    in_[i] = {c};
  }
  seen_.resize(clusters_.size(), 0);
  for (size_t c = 0; c < clusters_.size(); ++c) {
    int id = static_cast<int>(c);
    clusters_[c].roots = roots_of(clusters_[c].members, id, id);
  }
}

int ClusterGraph::home(const Instruction* value) const { return home_[value]; }

bool ClusterGraph::contains(int cluster, const Instruction* value) const {
  return std::ranges::binary_search(in_[value], cluster);
}

std::vector<int> ClusterGraph::readers(const Instruction* value) const {
  std::vector<int> found;
  for (const Instruction* user : value->users()) {
    for (int c : in_[user]) {
      if (!contains(c, value)) found.push_back(c);
    }
  }
  auto by_order = [&](int c) { return clusters_[c].order; };
  std::ranges::sort(found, {}, by_order);
  auto repeated = std::ranges::unique(found);
  found.erase(repeated.begin(), repeated.end());
  return found;
}

std::vector<Instruction*> ClusterGraph::joined(int a, int b) const {
  std::vector<Instruction*> all;
  auto by_position = [&](const Instruction* i) { return position_[i]; };
  std::ranges::set_union(clusters_[a].members, clusters_[b].members, std::back_inserter(all), {}, by_position,
                         by_position);
  return all;
}

std::vector<Instruction*> ClusterGraph::roots_of(const std::vector<Instruction*>& members, int a, int b) const {
  std::vector<Instruction*> roots;
  for (Instruction* m : members) {
    int at = home(m);
    if (at != a && at != b) continue;  // handed out by another cluster
    bool outside = m->is_root();
    for (const Instruction* user : m->users()) {
      if (outside) break;
      outside = std::ranges::any_of(in_[user], [&](int c) { return c != a && c != b && !contains(c, m); });
    }
    if (outside) roots.push_back(m);
  }
  return roots;
}

template <class F>
void ClusterGraph::for_successors(int c, F f) const {
  const Cluster& cluster = clusters_[c];
  auto visit = [&](const Instruction* i) {
    for (const Instruction* user : i->users()) {
      for (int next : in_[user]) {
        if (next != c && !contains(next, i)) f(next);
      }
    }
  };
  for (const Instruction* r : cluster.roots) visit(r);
  for (const Instruction* m : cluster.members) {
    const auto* at = control_successors_.find(m);
    if (!at) continue;
    for (const Instruction* next : *at) {
      for (int n : in_[next]) f(n);
    }
  }
}

bool ClusterGraph::walk(int from, int to) {
  ++walks_;
  reached_.clear();
  size_t limit = clusters_[to].order;
  bool met = false;
  for_successors(from, [&](int next) {
    if (next == to || clusters_[next].order > limit || seen_[next] == walks_) return;
    seen_[next] = walks_;
    reached_.push_back(next);
  });
  for (size_t k = 0; k < reached_.size() && !met; ++k) {
    for_successors(reached_[k], [&](int next) {
      if (next == to) met = true;
      if (clusters_[next].order >= limit || seen_[next] == walks_) return;
      seen_[next] = walks_;
      reached_.push_back(next);
    });
  }
  return !met;
}

bool ClusterGraph::tied(int a, int b) {
  if (clusters_[a].order > clusters_[b].order) std::swap(a, b);
  return !walk(a, b);
}

void ClusterGraph::add_member(const Instruction* i, int cluster) {
  std::vector<int>& list = in_[i];
  auto at = std::ranges::lower_bound(list, cluster);
  if (at == list.end() || *at != cluster) list.insert(at, cluster);
}

int ClusterGraph::merge(int a, int b) {
  if (clusters_[a].order > clusters_[b].order) std::swap(a, b);
  walk(a, b);  // what depends on a moves behind the merged cluster

  std::vector<Instruction*> members = joined(a, b);
  std::vector<Instruction*> roots = roots_of(members, a, b);
  for (Instruction* m : clusters_[a].members) {
    std::erase(in_[m], a);
    add_member(m, b);
    if (home(m) == a) home_[m] = b;
  }
  clusters_[b].members = std::move(members);
  clusters_[b].wanted.reset();
  clusters_[b].roots = std::move(roots);
  clusters_[a].alive = false;

  size_t first = clusters_[a].order, last = clusters_[b].order;
  std::vector<int> before, after;
  for (size_t k = first; k <= last; ++k) {
    int c = sequence_[k];
    if (c < 0 || c == a || c == b) continue;
    (seen_[c] == walks_ ? after : before).push_back(c);
  }
  size_t at = first;
  auto place = [&](int c) {
    sequence_[at] = c;
    clusters_[c].order = at++;
  };
  for (int c : before) place(c);
  place(b);
  for (int c : after) place(c);
  while (at <= last) sequence_[at++] = -1;
  return b;
}

void ClusterGraph::duplicate(int a, const std::vector<int>& readers) {
  for (int r : readers) {
    clusters_[r].members = joined(a, r);
    clusters_[r].wanted.reset();
  }
  for (Instruction* m : clusters_[a].members) {
    std::vector<int>& in = in_[m];
    in.insert(in.end(), readers.begin(), readers.end());
    std::ranges::sort(in);
    auto repeated = std::ranges::unique(in);
    in.erase(repeated.begin(), repeated.end());
  }
  Cluster& source = clusters_[a];
  source.roots = roots_of(source.members, a, a);
  if (!source.roots.empty()) return;
  for (Instruction* m : source.members) {
    std::erase(in_[m], a);
    home_[m] = -1;
  }
  source.alive = false;
  sequence_[source.order] = -1;
}

}  // namespace hlojit
