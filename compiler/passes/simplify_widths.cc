// Integers of a word that 16 bits hold: what bytes and numbers make between a conversion to words and one back, or to a
// comparison. Pictures and quantised values are worked on in s32 by those who write programs; a vector holds twice as
// many of s16, and these need no unpacking twice. Exact: nothing that is computed on the way may leave the range.
//
//   u8 convert((s32 convert(x) + s32 convert(y)) >> 1)   ->   u8 convert((u16 convert(x) + u16 convert(y)) >> 1)
#include <algorithm>
#include <cstdlib>
#include <optional>
#include <span>

#include "compiler/ir/instruction_set.h"
#include "compiler/passes/simplify_rules.h"

namespace hlojit {
namespace {

using enum Opcode;
using Context = SimplifyContext;

struct Limits {
  int64_t lo, hi;

  Limits joined(const Limits& o) const { return {std::min(lo, o.lo), std::max(hi, o.hi)}; }
};

/// The whole numbers of a type of at most 16 bits; nullopt for other types.
std::optional<Limits> all_of(DType t) {
  if (is_pred(t)) return Limits{0, 1};
  if (!is_integral(t) || dtype_bits(t) > 16) return std::nullopt;
  const int64_t count = int64_t{1} << dtype_bits(t);
  return is_signed(t) ? Limits{-count / 2, count / 2 - 1} : Limits{0, count - 1};
}

/// Something reads it: what other rules have replaced is still there. Or there may be, many steps on.
bool wanted(const Instruction* i, int steps = 6) {
  return steps == 0 || i->is_root() ||
         std::ranges::any_of(i->users(), [&](const Instruction* u) { return wanted(u, steps - 1); });
}

/// A value and all that it is made of, to be made of 16 bits.
class Narrowing {
 public:
  /// Whether `i` can be one of the values: words whose limits are known, as are those of what makes it.
  bool add(const Instruction* i) { return limits(i).has_value(); }

  int64_t least(const Instruction* i) const { return known_.at(i).limits.lo; }

  /// The type that holds them all: none if there is none, or if what is made on the way is wanted elsewhere as well,
  /// but for `reader`.
  std::optional<DType> type(const Instruction* reader) const {
    if (computed_ == 0) return std::nullopt;
    for (const Instruction* i : known_.keys()) {
      if (known_.at(i).moved) continue;  // costs nothing to be there twice
      if (i->is_root()) return std::nullopt;
      for (const Instruction* u : i->users()) {
        if (u != reader && !known_.contains(u) && wanted(u)) return std::nullopt;
      }
    }
    for (DType t : {DType::kS16, DType::kU16}) {
      const Limits fits = *all_of(t);
      if (fits.lo <= all_.lo && all_.hi <= fits.hi) return t;
    }
    return std::nullopt;
  }

  Instruction* made(Context& c, const Instruction* i, DType to) {
    if (Instruction** known = made_.find(i)) return *known;
    Instruction* value = narrowed(c, i, to);
    return made_[i] = value;
  }

 private:
  static constexpr int kMostValues = 64;

  struct Known {
    Limits limits;
    bool moved;  ///< converted or constant, and no more than moved since
  };

  /// What only moves its operands' elements.
  static bool moves(const Instruction* i) {
    constexpr Opcode kMoves[] = {kBroadcast, kReshape, kTranspose, kSlice, kReverse, kConcatenate, kPad};
    return std::ranges::find(kMoves, i->opcode) != std::end(kMoves);
  }

  Instruction* narrowed(Context& c, const Instruction* i, DType to) {
    auto operand = [&](size_t k) { return made(c, i->operand(k), to); };
    if (i->is(kConvert)) return c.b.convert(i->operand(0), to);
    if (i->is(kConstant)) {
      Literal l(Shape::scalar(to));
      l.set_int(0, i->literal->as_int(0));
      return c.b.constant(std::move(l));
    }
    if (i->is(kBroadcast)) return c.b.broadcast_in_dim(operand(0), i->shape.dims, i->attrs.dimensions);
    if (i->is(kReshape)) return c.b.reshape(operand(0), i->shape.dims);
    if (i->is(kSelect)) return c.b.select(i->operand(0), operand(1), operand(2));
    if (i->is(kClamp)) return c.b.binary(kMinimum, c.b.binary(kMaximum, operand(0), operand(1)), operand(2));
    // Without a sign the upper bit is a number's, of what is never below zero.
    if (i->is(kAbs) && is_unsigned(to)) return operand(0);
    const bool logical = i->is(kShiftRightArithmetic) && is_unsigned(to);
    Builder::Values operands;
    for (size_t k = 0; k < i->operand_count(); ++k) operands.push_back(operand(k));
    return c.b.op(logical ? kShiftRightLogical : i->opcode, operands, i->attrs);
  }

  std::optional<Limits> limits(const Instruction* i) {
    if (const Known* known = known_.find(i)) return known->limits;
    const DType t = i->shape.type;
    if (++asked_ > kMostValues || !i->shape.is_array() || !is_integral(t) || dtype_bits(t) < 32) return std::nullopt;
    if (!i->control_predecessors.empty()) return std::nullopt;
    const auto found = computed(i);
    if (!found || (is_unsigned(t) && found->lo < 0)) return std::nullopt;  // it would have wrapped
    all_ = all_.joined(*found);
    if (all_.lo < INT16_MIN || all_.hi > UINT16_MAX) return std::nullopt;
    const bool moved = i->is(kConstant) || i->is(kConvert) ||
                       (moves(i) && std::ranges::all_of(i->operands(), [&](auto* o) { return known_.at(o).moved; }));
    if (!moved) ++computed_;
    known_[i] = {*found, moved};
    return found;
  }

  std::optional<Limits> computed(const Instruction* i) {
    if (i->is(kConvert)) return all_of(i->operand(0)->shape.type);
    if (moves(i)) return of_any(i->operands());
    if (i->is(kConstant)) {
      if (i->shape.rank() > 0) return std::nullopt;
      const int64_t value = i->literal->as_int(0);
      return Limits{value, value};
    }
    if (i->is(kSelect)) return of_any(i->operands().subspan(1));
    if (!is_elementwise(i->opcode) || i->operand_count() == 0) return std::nullopt;
    const auto x = limits(i->operand(0)), y = x && i->operand_count() > 1 ? limits(i->operand(1)) : std::nullopt;
    if (x && i->is(kNegate)) return Limits{-x->hi, -x->lo};
    if (x && i->is(kAbs)) return Limits{0, std::max(std::abs(x->lo), std::abs(x->hi))};
    if (y && i->operand_count() == 2) return of_two(i->opcode, *x, *y);
    const auto z = y && i->is(kClamp) ? limits(i->operand(2)) : std::nullopt;
    return z ? of_two(kMinimum, *of_two(kMaximum, *x, *y), *z) : std::nullopt;
  }

  /// One of these.
  std::optional<Limits> of_any(std::span<Instruction* const> values) {
    std::optional<Limits> all;
    for (const Instruction* v : values) {
      const auto one = limits(v);
      if (!one) return std::nullopt;
      all = all ? all->joined(*one) : *one;
    }
    return all;
  }

  static std::optional<Limits> of_two(Opcode op, const Limits& x, const Limits& y) {
    const bool positive = x.lo >= 0 && y.lo >= 0, shifts = y.lo == y.hi && 0 <= y.lo && y.lo < 16;
    switch (op) {
      case kAdd: return Limits{x.lo + y.lo, x.hi + y.hi};
      case kSubtract: return Limits{x.lo - y.hi, x.hi - y.lo};
      case kMultiply: {
        const auto [least, most] = std::minmax({x.lo * y.lo, x.lo * y.hi, x.hi * y.lo, x.hi * y.hi});
        return Limits{least, most};
      }
      case kMaximum: return Limits{std::max(x.lo, y.lo), std::max(x.hi, y.hi)};
      case kMinimum: return Limits{std::min(x.lo, y.lo), std::min(x.hi, y.hi)};
      case kDivide: return y.lo == y.hi && y.lo > 0 ? std::optional(Limits{x.lo / y.lo, x.hi / y.lo}) : std::nullopt;
      case kRemainder:
        if (y.lo != y.hi || y.lo <= 0) return std::nullopt;
        return Limits{x.lo < 0 ? 1 - y.lo : 0, x.hi > 0 ? y.lo - 1 : 0};
      case kAnd: return positive ? std::optional(Limits{0, std::min(x.hi, y.hi)}) : std::nullopt;
      case kShiftLeft: return positive && shifts ? std::optional(Limits{x.lo << y.lo, x.hi << y.lo}) : std::nullopt;
      case kShiftRightLogical:
        return positive && shifts ? std::optional(Limits{x.lo >> y.lo, x.hi >> y.lo}) : std::nullopt;
      case kShiftRightArithmetic: return shifts ? std::optional(Limits{x.lo >> y.lo, x.hi >> y.lo}) : std::nullopt;
      default: return std::nullopt;
    }
  }

  InstructionMap<Known> known_;
  InstructionMap<Instruction*> made_;
  Limits all_{0, 0};
  int asked_ = 0, computed_ = 0;
};

// How far two bytes lie apart is a byte: every machine has the larger and the smaller one of bytes.
Instruction* distance_of_bytes(Context& c, Instruction* i) {
  const Instruction* difference = i->operand(0);
  if (!difference->is(kSubtract) || !difference->control_predecessors.empty()) return nullptr;
  const Instruction *x = difference->operand(0), *y = difference->operand(1);
  auto from_byte = [](const Instruction* v) {
    return v->is(kConvert) && v->operand(0)->shape.type == DType::kU8 && v->control_predecessors.empty();
  };
  const DType type = i->shape.type;
  if (!from_byte(x) || !from_byte(y) || !is_integral(type) || !is_signed(type) || dtype_bits(type) < 16) return nullptr;
  Instruction *a = x->operand(0), *b = y->operand(0);
  return c.b.convert(c.b.binary(kSubtract, c.b.binary(kMaximum, a, b), c.b.binary(kMinimum, a, b)), type);
}

Instruction* narrow_conversion(Context& c, Instruction* i) {
  const Instruction* x = i->operand(0);
  if (!all_of(i->shape.type) || is_pred(i->shape.type) || i->shape.rank() == 0) return nullptr;
  Narrowing narrowing;
  const auto to = narrowing.add(x) ? narrowing.type(i) : std::nullopt;
  return to ? c.b.convert(narrowing.made(c, x, *to), i->shape.type) : nullptr;
}

Instruction* narrow_comparison(Context& c, Instruction* i) {
  if (i->shape.rank() == 0) return nullptr;
  Narrowing narrowing;
  const bool both = narrowing.add(i->operand(0)) && narrowing.add(i->operand(1));
  const auto to = both ? narrowing.type(i) : std::nullopt;
  if (!to) return nullptr;
  Instruction* x = narrowing.made(c, i->operand(0), *to);
  return c.b.compare(i->attrs.direction, x, narrowing.made(c, i->operand(1), *to));
}

constexpr SimplifyRule kRules[] = {
    {kAbs, distance_of_bytes},
    {kConvert, narrow_conversion},
    {kCompare, narrow_comparison},
};

}  // namespace

std::span<const SimplifyRule> width_rules() { return kRules; }

bool never_below_zero(const Instruction* i) {
  Narrowing narrowing;
  return narrowing.add(i) && narrowing.least(i) >= 0;
}

}  // namespace hlojit
