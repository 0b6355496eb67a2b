// Rules about counters: whole numbers made of iotas, whose most is known. JAX counts the elements that it draws at
// random in 64 bits, high and low half apart, and spreads what it counts; the high half is 0, and half the width will
// do.
#include <algorithm>
#include <limits>
#include <optional>

#include "compiler/analysis/known_index.h"
#include "compiler/passes/rounds.h"
#include "compiler/passes/simplify_rules.h"

namespace hlojit {
namespace {

using enum Opcode;
using Context = SimplifyContext;

constexpr int kMostSteps = 6;  // asked for again at each step, of two operands each

/// The greatest number of an integral type.
uint64_t most_of(DType t) {
  return std::numeric_limits<uint64_t>::max() >> (64 - dtype_bits(t) + (is_unsigned(t) ? 0 : 1));
}

/// The greatest element of a counter, or a greater number; nullopt if that is not known, or if elements may be below
/// zero, or if it or anything that it is made of may be above `limit`. Nothing wraps around then.
std::optional<uint64_t> most(const Instruction* i, uint64_t limit, int steps = kMostSteps) {
  if (steps == 0 || !i->shape.is_array() || i->shape.has_dynamic_dims() || !is_integral(i->shape.type)) {
    return std::nullopt;
  }
  limit = std::min(limit, most_of(i->shape.type));
  auto within = [&](uint64_t value) { return value <= limit ? std::optional(value) : std::nullopt; };
  if (const Literal* c = splat_value(i)) {
    const int64_t value = c->as_int(0);
    return value < 0 ? std::nullopt : within(static_cast<uint64_t>(value));
  }
  switch (i->opcode) {
    case kIota: {
      const int64_t size = i->shape.dims[static_cast<size_t>(i->attrs.dimensions[0])];
      return size == 0 ? std::nullopt : within(static_cast<uint64_t>(size - 1));
    }
    case kBroadcast:
    case kReshape:
    case kConvert: return most(i->operand(0), limit, steps - 1);
    case kAdd:
    case kMultiply: {
      const auto a = most(i->operand(0), limit, steps - 1);
      const auto b = a ? most(i->operand(1), limit, steps - 1) : std::nullopt;
      uint64_t value;
      if (!b) return std::nullopt;
      const bool wraps = i->is(kAdd) ? __builtin_add_overflow(*a, *b, &value) : __builtin_mul_overflow(*a, *b, &value);
      return wraps ? std::nullopt : within(value);
    }
    default: return std::nullopt;
  }
}

/// A counter shifted by all bits that it has is 0.
Instruction* shifted_away(Context& c, Instruction* i) {
  const Literal* by = splat_value(i->operand(1));
  if (!by || !is_integral(i->shape.type)) return nullptr;
  const int64_t bits = by->as_int(0);
  if (bits <= 0 || bits >= 64 || !most(i->operand(0), (uint64_t{1} << bits) - 1)) return nullptr;
  Instruction* zero = c.b.constant(Literal(Shape::scalar(i->shape.type)));
  return i->shape.rank() == 0 ? zero : c.b.broadcast(zero, i->shape.dims);
}

/// convert(counter) to a narrower type that has all its numbers: what it is made of, converted. It ends at an iota, or
/// at a constant, which is folded.
Instruction* narrow_counter(Context& c, Instruction* i) {
  const Instruction* x = i->operand(0);
  const DType to = i->shape.type;
  if (!is_integral(to) || !is_integral(x->shape.type) || dtype_bits(to) >= dtype_bits(x->shape.type)) return nullptr;
  if (x->is(kConvert) || !most(x, most_of(to))) return nullptr;
  auto narrow = [&](int k) { return c.b.convert(x->operand(static_cast<size_t>(k)), to); };
  switch (x->opcode) {
    case kIota: return c.b.iota(i->shape, x->attrs.dimensions[0]);
    case kBroadcast: return c.b.broadcast_in_dim(narrow(0), x->shape.dims, x->attrs.dimensions);
    case kReshape: return c.b.reshape(narrow(0), x->shape.dims);
    case kAdd:
    case kMultiply: return c.b.binary(x->opcode, narrow(0), narrow(1));
    default: return nullptr;
  }
}

/// What is the same for all numbers counted: JAX asks of each index whether it is negative.
Instruction* same_for_all(Context& c, Instruction* i) {
  if (!i->shape.is_array() || i->shape.has_dynamic_dims() || i->shape.element_count() == 0) return nullptr;
  if (!is_integral(i->operand(0)->shape.type)) return nullptr;
  VarSource vars;
  Coords at;
  for (int64_t n : i->shape.dims) at.push_back(IndexExpr::var(vars.fresh(), n));
  const auto value = known_index(*i, at, vars);
  if (!value || !value->is_constant()) return nullptr;
  Literal scalar(Shape::scalar(i->shape.type));
  scalar.set_int(0, value->constant());
  Instruction* made = c.b.constant(std::move(scalar));
  return i->shape.rank() == 0 ? made : c.b.broadcast(made, i->shape.dims);
}

/// The same of what counts the rounds of a loop, beside a number.
Instruction* same_in_all_rounds(Context& c, Instruction* i) {
  if (!c.loop || i->shape.rank() > 0 || !is_integral(i->operand(0)->shape.type)) return nullptr;
  const auto a = range_in_rounds(*i->operand(0), *c.loop), b = a ? range_in_rounds(*i->operand(1), *c.loop) : a;
  if (!b || (is_unsigned(i->operand(0)->shape.type) && std::min(a->lo, b->lo) < 0)) return nullptr;
  const bool less = a->hi<b->lo, greater = a->lo> b->hi, most = a->hi <= b->lo, least = a->lo >= b->hi;
  auto decided = [&](bool always, bool never) -> Instruction* {
    return always || never ? c.b.constant(DType::kPred, always ? 1 : 0) : nullptr;
  };
  switch (i->attrs.direction) {
    case Direction::kEq: return decided(most && least, less || greater);
    case Direction::kNe: return decided(less || greater, most && least);
    case Direction::kLt: return decided(less, least);
    case Direction::kLe: return decided(most, greater);
    case Direction::kGt: return decided(greater, most);
    case Direction::kGe: return decided(least, less);
  }
  return nullptr;
}

constexpr SimplifyRule kRules[] = {
    {kCompare, same_for_all},           {kCompare, same_in_all_rounds}, {kShiftRightArithmetic, same_for_all},
    {kShiftRightLogical, shifted_away}, {kConvert, narrow_counter},
};

}  // namespace

std::span<const SimplifyRule> counter_rules() { return kRules; }

}  // namespace hlojit
