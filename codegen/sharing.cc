// See sharing.h.
#include "codegen/sharing.h"

#include <algorithm>
#include <array>

namespace hlojit::codegen {
namespace {

constexpr int kMostLoops = 3;  // that are told apart

}  // namespace

Sharing::Place Sharing::place(const BufferSlice& slice) {
  return {slice.kind, slice.kind == BufferSlice::Kind::kArena ? slice.offset : slice.index};
}

size_t Sharing::node(const Instruction* i) {
  const auto [at, is_new] = number_.try_emplace(i, nodes_.size());
  if (is_new) nodes_.emplace_back().kernel = i;
  return at->second;
}

const Reading& Sharing::reading(size_t n, size_t operand) {
  std::vector<Reading>& known = nodes_[n].readings;
  if (known.empty()) known = readings(*nodes_[n].kernel);
  return known[operand];
}

bool Sharing::crossed(size_t writer, size_t reader, const Reading& reading) const {
  const Work &w = nodes_[writer].work, &r = nodes_[reader].work;
  return w.may && r.may && !(w.in_order && r.in_order && reading.in_order);
}

// Half of the lines go to the other core and come back when they are written again, one after the other, beside what
// there is to compute. How long that takes differs by the hour on a virtual machine: a line 28 ns on a Zen 4, or next
// to nothing. (Two threads, before it was known who reads in which order, in the slow state: rows of a stencil and
// their transpose 229 us, 36 on one core; updates of rows, scattered, 597 and 157; a small net's gradient 225 and 133.
// Of 52 programs that this changes the mean is 1.09 over both states, 1.07 at a price of nothing. Products hide it: an
// LSTM's steps 24 us, 41 on one core.)
void Sharing::connect(size_t writer, size_t reader, size_t operand, int64_t bytes) {
  constexpr double kReadPerNs = 40, kWrittenPerNs = 10;  // bytes
  // Of a value that thousands read the reader knows sooner.
  const bool fewer = nodes_[reader].edges.size() < nodes_[writer].edges.size();
  const size_t here = fewer ? reader : writer, there = fewer ? writer : reader;
  if (writer == reader || std::ranges::count(nodes_[here].edges, there, &Edge::other) > 0) return;
  const Instruction& kernel = *nodes_[reader].kernel;
  Reading read{true, kernel.operand(operand)->shape.dense_bytes()};
  if (kernel.is(Opcode::kFusion)) read = reading(reader, operand);
  // Each round of a loop that the writer is not in may read another part.
  const double often = std::min(nodes_[writer].work.rounds, nodes_[reader].work.rounds);
  const double parts = nodes_[reader].work.rounds / often;
  const auto most = static_cast<double>(read.bytes) * parts;
  const double moved = std::min(static_cast<double>(bytes), most);
  // What a core's cache does not keep until it is read comes from further away for everybody.
  if (moved > static_cast<double>(most_)) return;
  const double idle = moved / kWrittenPerNs - nodes_[writer].work.cost_ns / 2.0;
  const Edge edge{reader, often * moved / kReadPerNs, often * std::max(idle, 0.0), crossed(writer, reader, read)};
  nodes_[writer].edges.push_back(edge);
  nodes_[reader].edges.push_back(edge);
  nodes_[reader].edges.back().other = writer;
}

void Sharing::touch(const BufferSlice& slice, int loops) {
  Touched& t = touched_[place(slice)];
  t.bytes = std::max(t.bytes, slice.size);
  t.loops = std::max(t.loops, loops);
}

void Sharing::add(const Instruction* i, std::span<const BufferSlice> operands, std::span<const BufferSlice> results,
                  const Work& work) {
  using Kind = BufferSlice::Kind;
  constexpr double kHandOverNs = 500;
  const size_t n = node(i);
  nodes_[n].work = work;
  nodes_[n].saves = work.rounds * (static_cast<double>(work.cost_ns) / 2 - kHandOverNs);
  for (size_t k = 0; k < operands.size(); ++k) {
    const BufferSlice& s = operands[k];
    touch(s, work.loops);
    if (s.kind == Kind::kParameter || s.kind == Kind::kConstant) continue;
    if (const auto known = writer_.find(place(s)); known != writer_.end()) {
      connect(known->second.node, n, k, std::min(s.size, known->second.bytes));
    }
  }
  for (size_t k = 0; k < results.size(); ++k) {
    const BufferSlice& s = results[k];
    touch(s, work.loops);
    int64_t bytes = s.size;
    if (i->is(Opcode::kFusion)) {
      bytes = std::min(bytes, written_elements(*i, k) * dtype_bytes(leaves(i->shape)[k]->type));
    }
    writer_[place(s)] = {n, bytes};
  }
}

/// A line that other data have pushed out of the caches by the time that it is written again comes from further away,
/// but not one after the other.
void Sharing::price() {
  std::array<int64_t, kMostLoops + 1> touched{};  // in loops as deep, or deeper
  for (const auto& [place, t] : touched_) {
    for (int d = 0; d <= std::min(t.loops, kMostLoops); ++d) touched[d] += t.bytes;
  }
  for (Node& n : nodes_) {
    for (Edge& e : n.edges) {
      const int loops = std::min({n.work.loops, nodes_[e.other].work.loops, kMostLoops});
      e.ns = e.read_ns + (touched[loops] <= near_ ? e.write_ns : 0);
    }
  }
}

void Sharing::forget(std::span<const BufferSlice> slices) {
  for (const BufferSlice& s : slices) writer_.erase(place(s));
}

/// Of handing it out (or not), beside its neighbours as they are.
double Sharing::gain(size_t n, bool several) const {
  double ns = several ? nodes_[n].saves : 0;
  for (const Edge& e : nodes_[n].edges) {
    const bool other = nodes_[e.other].several;
    if (several != other || (several && e.crossed)) ns -= e.ns;
  }
  return ns;
}

/// Of two kernels that are handed out each may be best so only because the other is.
bool Sharing::take_back_pairs() {
  bool changed = false;
  for (size_t n = 0; n < nodes_.size(); ++n) {
    for (const Edge& e : nodes_[n].edges) {
      Node &here = nodes_[n], &there = nodes_[e.other];
      if (e.other < n || !e.crossed || !here.several || !there.several) continue;
      const double together = gain(n, true) + gain(e.other, true) + e.ns;
      here.several = there.several = false;
      if (gain(n, false) + gain(e.other, false) > together)
        changed = true;
      else
        here.several = there.several = true;
    }
  }
  return changed;
}

// From all that may be handed out, or from none: each as is best beside its neighbours, until nothing changes. Returns
// what is saved.
double Sharing::settle(bool several) {
  constexpr int kMostRounds = 8;
  for (Node& n : nodes_) n.several = several && n.work.may;
  bool changed = true;
  for (int round = 0; changed && round < kMostRounds; ++round) {
    changed = false;
    for (size_t n = 0; n < nodes_.size(); ++n) {
      if (!nodes_[n].work.may) continue;
      const bool better = gain(n, true) > gain(n, false);
      changed |= nodes_[n].several != better;
      nodes_[n].several = better;
    }
    changed |= take_back_pairs();
  }
  double saved = 0;
  for (const Node& n : nodes_) {
    if (n.several) saved += n.saves;
    for (const Edge& e : n.edges) {
      const bool other = nodes_[e.other].several;
      if (n.several && (!other || e.crossed)) saved -= other ? e.ns / 2 : e.ns;  // told of by both
    }
  }
  return saved;
}

void Sharing::decide() {
  price();
  const double from_none = settle(false), from_all = settle(true);
  if (from_none > from_all) settle(false);
}

}  // namespace hlojit::codegen
