// See batch_rounds.h.
#include "compiler/passes/batch_rounds.h"

#include <algorithm>
#include <optional>

#include "compiler/analysis/dataflow.h"
#include "compiler/analysis/invariant.h"
#include "compiler/builder.h"
#include "compiler/passes/loop_state.h"
#include "compiler/passes/replace_ops.h"
#include "compiler/passes/rounds.h"
#include "layout/divide.h"
#include "layout/lists.h"

namespace hlojit {
namespace {

// Rows of a round from which on a product of its own is as fast, and bytes of what they are multiplied by up to which
// the first cache keeps it.
constexpr int64_t kManyRows = 128, kNear = 16 << 10;

// The products of all rounds take at most so many times the memory of their operands.
constexpr int64_t kMostMemory = 4;

/// An operand of a product that is a part of an array: that of a round along dim `dim`, which may be gone.
struct Part {
  size_t side = 0;
  const Instruction* slice = nullptr;
  int64_t dim = -1;
  bool dropped = false;

  Instruction* whole() const { return slice->operand(0); }
  int64_t size() const { return slice->shape.dims[static_cast<size_t>(dim)]; }
  int64_t whole_size() const { return whole()->shape.dims[static_cast<size_t>(dim)]; }
  /// Dims of the operand as those of the whole.
  Ints of_whole(Ints dims) const {
    for (int64_t& d : dims) d += dropped && d >= dim ? 1 : 0;
    return dims;
  }
};

std::optional<Part> part_of_round(const Instruction& dot, size_t side, const Instruction& loop) {
  const Instruction* operand = dot.operand(side);
  Part p{.side = side, .slice = operand, .dropped = operand->is(Opcode::kReshape)};
  if (p.dropped) p.slice = operand->operand(0);
  if (!p.slice->is(Opcode::kDynamicSlice)) return std::nullopt;
  const Ints &from = p.whole()->shape.dims, &to = p.slice->shape.dims;
  if (p.slice->operand_count() != from.size() + 1) return std::nullopt;  // one vector of starts
  for (size_t d = 0; d < from.size(); ++d) {
    if (from[d] == to[d]) continue;
    if (p.dim >= 0 || !progress_of(*p.slice->operand(d + 1), loop)) return std::nullopt;
    p.dim = static_cast<int64_t>(d);
  }
  if (p.dim < 0 || p.size() == 0) return std::nullopt;
  Ints rest = to;
  if (p.dropped) rest.erase(rest.begin() + p.dim);
  if (rest != operand->shape.dims || (p.dropped && p.size() != 1)) return std::nullopt;
  const DotDims& dims = *dot.attrs.dot;
  const bool summed = contains(dims.contracting(side), p.dim) || contains(dims.batch(side), p.dim);
  return summed && !p.dropped ? std::nullopt : std::optional(p);
}

/// Few rows a round, most of the array in all, and not much more memory than there is.
bool pays(const Instruction& dot, const Part& p, int64_t rounds) {
  const Shape &part = dot.operand(p.side)->shape, &other = dot.operand(1 - p.side)->shape;
  if (rounds < std::max<int64_t>(2, ceil_div(p.whole_size(), 2 * p.size()))) return false;
  int64_t depth = 1;
  for (int64_t d : dot.attrs.dot->contracting(p.side)) depth *= part.dims[static_cast<size_t>(d)];
  if (depth == 0 || part.element_count() / depth >= kManyRows || other.dense_bytes() < kNear) return false;
  const int64_t products = dot.shape.dense_bytes() / p.size() * p.whole_size();
  return products <= kMostMemory * (p.whole()->shape.dense_bytes() + other.dense_bytes());
}

/// Of the whole, and of that the part.
Instruction* of_all_rounds(Builder& b, const Instruction& dot, const Part& p) {
  DotDims dims = *dot.attrs.dot;
  Ints &summed = dims.contracting(p.side), &shared = dims.batch(p.side);
  summed = p.of_whole(summed);
  shared = p.of_whole(shared);
  // Where the dim stands in the result: behind batches, the other side's dims and its own side's before it.
  int64_t at = std::ssize(shared);
  if (p.side == 1) at += dot.operand(0)->shape.rank() - std::ssize(dims.lhs_batch) - std::ssize(dims.lhs_contracting);
  for (int64_t d = 0; d < p.dim; ++d) at += contains(summed, d) || contains(shared, d) ? 0 : 1;
  Ints sizes = dot.shape.dims;
  if (p.dropped) sizes.insert(sizes.begin() + at, 1);
  Ints all = sizes;
  all[static_cast<size_t>(at)] = p.whole_size();
  Builder::Values operands(dot.operands().begin(), dot.operands().end());
  operands[p.side] = p.whole();
  Attributes attributes = dot.attrs;
  attributes.dot = dims;
  Instruction* products = b.op(Opcode::kDot, Shape::array(dot.shape.type, all), operands, attributes);
  Instruction* round = p.slice->operand(static_cast<size_t>(p.dim) + 1);
  Builder::Values starts(all.size(), b.constant(round->shape.type, 0));
  starts[static_cast<size_t>(at)] = round;
  Instruction* part = b.dynamic_slice(products, starts, sizes);
  return p.dropped ? b.reshape(part, dot.shape.dims) : part;
}

class Batcher {
 public:
  Batcher(const Instruction& loop, int64_t rounds)
      : loop_(loop), rounds_(rounds), b_(loop.while_body()), invariant_(invariant_values(*loop.while_body())) {}

  /// What stands for an instruction of the body; null if it stays.
  Instruction* instead(const Instruction& i) {
    if (!i.is(Opcode::kDot)) return nullptr;
    for (size_t side = 0; side < 2; ++side) {
      if (!invariant_.contains(i.operand(1 - side))) continue;
      if (Instruction* made = at_once(i, side)) return made;
      if (Instruction* made = term_by_term(i, side)) return made;
    }
    return nullptr;
  }

 private:
  Instruction* at_once(const Instruction& dot, size_t side) {
    const auto part = part_of_round(dot, side, loop_);
    const bool same = part && invariant_.contains(part->whole());
    return same && pays(dot, *part, rounds_) ? of_all_rounds(b_, dot, *part) : nullptr;
  }

  static bool is_taken(const Instruction* i) {
    return (i->is(Opcode::kReshape) ? i->operand(0) : i)->is(Opcode::kDynamicSlice);
  }

  /// What is put together along the depth is multiplied apart, if some of it is a part of a round: the input beside the
  /// state.
  Instruction* term_by_term(const Instruction& dot, size_t side) {
    const Instruction* joined = dot.operand(side);
    const Ints along = dot.attrs.dot->contracting(side), of_other = dot.attrs.dot->contracting(1 - side);
    if (!joined->is(Opcode::kConcatenate) || along.size() != 1 || joined->attrs.dimensions != along) return nullptr;
    if (dtype_bits(dot.shape.type) < 32 || std::ranges::none_of(joined->operands(), is_taken)) return nullptr;
    Instruction* sum = nullptr;
    bool any = false;
    int64_t from = 0;
    for (Instruction* o : joined->operands()) {
      const int64_t depth = o->shape.dims[static_cast<size_t>(along[0])];
      Builder::Values operands = {o, b_.slice_in_dim(dot.operand(1 - side), from, from + depth, 1, of_other[0])};
      if (side == 1) std::swap(operands[0], operands[1]);
      Instruction* term = b_.op(Opcode::kDot, dot.shape, operands, dot.attrs);
      if (Instruction* made = at_once(*term, side)) {
        term = made;
        any = true;
      }
      sum = sum ? b_.op(Opcode::kAdd, {sum, term}) : term;
      from += depth;
    }
    return any ? sum : nullptr;
  }

  const Instruction& loop_;
  const int64_t rounds_;
  Builder b_;
  const InstructionSet invariant_;
};

bool batch_in(const Instruction& loop, const PipelineOptions& options) {
  const auto counted = counted_rounds(loop), rounds = counted ? counted : known_rounds(loop);
  if (!rounds || !is_taken_apart(loop)) return false;
  Batcher batcher(loop, *rounds);
  auto instead = [&](const Instruction& i) { return batcher.instead(i); };
  return replace_ops(*loop.while_body(), "batch_rounds", options, instead);
}

}  // namespace

bool batch_rounds(Module& module, const PipelineOptions& options) {
  bool changed = false;
  for (Computation* c : sequential_computations(module)) {
    for (const Instruction* i : c->snapshot()) {
      if (i->is(Opcode::kWhile)) changed |= batch_in(*i, options);
    }
  }
  return changed;
}

}  // namespace hlojit
