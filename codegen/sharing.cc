// See sharing.h.
#include "codegen/sharing.h"

#include <algorithm>
#include <cmath>

namespace hlojit::codegen {
namespace {

// A loop goes round so often, as far as is known.
constexpr double kRounds = 16;
constexpr int kMostLoops = 3;

double times(int loops) { return std::pow(kRounds, std::min(loops, kMostLoops)); }

}  // namespace

Sharing::Place Sharing::place(const BufferSlice& slice) {
  return {slice.kind, slice.kind == BufferSlice::Kind::kArena ? slice.offset : slice.index};
}

size_t Sharing::node(const Instruction* i) {
  const auto [at, is_new] = number_.try_emplace(i, nodes_.size());
  if (is_new) nodes_.emplace_back();
  return at->second;
}

// Half of the bytes go to the other core, and the lines come back when they are written again.
void Sharing::connect(size_t writer, size_t reader, int64_t bytes) {
  constexpr double kBytesPerNs = 13;  // from core to core
  // What a core's cache does not keep until it is read comes from further away for everybody.
  if (writer == reader || bytes > most_) return;
  // Of a value that thousands read the reader knows sooner.
  const bool fewer = nodes_[reader].edges.size() < nodes_[writer].edges.size();
  const size_t here = fewer ? reader : writer, there = fewer ? writer : reader;
  if (std::ranges::count(nodes_[here].edges, there, &Edge::other) > 0) return;
  const double often = times(std::min(nodes_[writer].loops, nodes_[reader].loops));
  const double ns = often * static_cast<double>(bytes) / kBytesPerNs;
  nodes_[writer].edges.push_back({reader, ns});
  nodes_[reader].edges.push_back({writer, ns});
}

void Sharing::add(const Instruction* i, std::span<const BufferSlice> operands, std::span<const BufferSlice> results,
                  int64_t cost_ns, bool may, int loops) {
  using Kind = BufferSlice::Kind;
  constexpr double kHandOverNs = 500;
  const size_t n = node(i);
  nodes_[n].may = may;
  nodes_[n].loops = loops;
  nodes_[n].saves = times(loops) * (static_cast<double>(cost_ns) / 2 - kHandOverNs);
  for (const BufferSlice& s : operands) {
    if (s.kind == Kind::kParameter || s.kind == Kind::kConstant) continue;
    if (const auto known = writer_.find(place(s)); known != writer_.end()) connect(known->second, n, s.size);
  }
  for (const BufferSlice& s : results) writer_[place(s)] = n;
}

void Sharing::forget(std::span<const BufferSlice> slices) {
  for (const BufferSlice& s : slices) writer_.erase(place(s));
}

// From all that may be handed out, or from none: each as is best beside its neighbours, until nothing changes. Returns
// what is saved.
double Sharing::settle(bool several) {
  constexpr int kMostRounds = 8;
  for (Node& n : nodes_) n.several = several && n.may;
  bool changed = true;
  for (int round = 0; changed && round < kMostRounds; ++round) {
    changed = false;
    for (Node& n : nodes_) {
      if (!n.may) continue;
      double gain = n.saves;
      for (const Edge& e : n.edges) gain += nodes_[e.other].several ? e.ns : -e.ns;
      changed |= n.several != (gain > 0);
      n.several = gain > 0;
    }
  }
  double saved = 0;
  for (const Node& n : nodes_) {
    if (n.several) saved += n.saves;
    for (const Edge& e : n.edges) saved -= n.several && !nodes_[e.other].several ? e.ns : 0;
  }
  return saved;
}

void Sharing::decide() {
  const double from_none = settle(false), from_all = settle(true);
  if (from_none > from_all) settle(false);
}

}  // namespace hlojit::codegen
