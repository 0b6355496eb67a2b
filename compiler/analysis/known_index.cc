// See known_index.h. Comparisons are told by the ranges of both sides, which is how the branch for negative indices
// that frontends write goes away.
#include "compiler/analysis/known_index.h"

#include <algorithm>
#include <utility>

namespace hlojit {
namespace {

class KnownIndex {
 public:
  explicit KnownIndex(VarSource& vars) : vars_(vars) {}

  std::optional<IndexExpr> at(const Instruction& i, const Coords& where) {
    constexpr int kMostSteps = 256;
    if (!i.shape.is_array() || !(is_integral(i.shape.type) || is_pred(i.shape.type)) || ++steps_ > kMostSteps)
      return std::nullopt;
    std::optional<IndexExpr> e = value(i, where);
    return e && fits(*e, i.shape.type) ? e : std::nullopt;
  }

 private:
  static bool fits(const IndexExpr& e, DType type) {
    const Range range = e.range();
    const int bits = std::min(dtype_bits(type) - (is_signed(type) ? 1 : 0), 48);
    return range.lo >= (is_signed(type) ? -(int64_t{1} << bits) : 0) && range.hi < int64_t{1} << bits;
  }

  std::optional<IndexExpr> value(const Instruction& i, const Coords& where) {
    if (i.is(Opcode::kIota)) return where[static_cast<size_t>(i.attrs.dimensions[0])];
    if (i.is(Opcode::kConstant)) {
      if (i.shape.element_count() != 1 && !i.literal->is_splat()) return std::nullopt;
      return IndexExpr(i.literal->as_int(0));
    }
    if (i.is(Opcode::kConvert)) return at(*i.operand(0), where);
    if (i.is(Opcode::kCompare)) return comparison(i, where);
    if (i.is(Opcode::kSelect)) return choice(i, where);
    if (i.is(Opcode::kScatter)) return std::nullopt;
    if (i.info().op_class == OpClass::kMoves) return moved(i, where);
    return arithmetic(i, where);
  }

  std::optional<IndexExpr> operand(const Instruction& i, size_t k, const Coords& where) {
    return at(*i.operand(k), i.operand(k)->shape.rank() == 0 ? Coords{} : where);
  }

  std::optional<IndexExpr> arithmetic(const Instruction& i, const Coords& where) {
    if (i.operand_count() != 2 || i.info().op_class != OpClass::kElementwise) return std::nullopt;
    auto x = operand(i, 0, where);
    auto y = x ? operand(i, 1, where) : std::nullopt;
    if (!y) return std::nullopt;
    if (i.is(Opcode::kAdd)) return *x + *y;
    if (i.is(Opcode::kSubtract)) return *x - *y;
    const bool either_way = i.is(Opcode::kMultiply) || i.is(Opcode::kAnd) || i.is(Opcode::kXor);
    if (either_way && x->is_constant()) std::swap(x, y);
    return y->is_constant() ? by_number(i.opcode, *x, y->constant(), dtype_bits(i.shape.type)) : std::nullopt;
  }

  /// Rounded down, a quotient of what may be negative is a shift's.
  static std::optional<IndexExpr> by_number(Opcode opcode, const IndexExpr& x, int64_t n, int bits) {
    const Range range = x.range();
    switch (opcode) {
      case Opcode::kMultiply: return x * n;
      case Opcode::kXor: return n == 0 ? std::optional(x) : std::nullopt;
      case Opcode::kAnd:
        if (n < 0 || (n & (n + 1)) != 0) return std::nullopt;
        return range.lo >= 0 && range.hi <= n ? x : mod(x, n + 1);
      case Opcode::kShiftRightArithmetic:
        // (Unsigned, it may have the bit that is taken for a sign.)
        if (n < 0 || n >= bits || range.hi >> (bits - 1) > 0) return std::nullopt;
        // (What fits is a sign already where 62 bits are left out; one more, and the divisor would be negative.)
        return floordiv(x, int64_t{1} << std::min<int64_t>(n, 62));
      case Opcode::kDivide: return n > 0 && range.lo >= 0 ? std::optional(floordiv(x, n)) : std::nullopt;
      case Opcode::kRemainder: return n > 0 && range.lo >= 0 ? std::optional(mod(x, n)) : std::nullopt;
      default: return std::nullopt;
    }
  }

  /// 1 or 0.
  std::optional<IndexExpr> comparison(const Instruction& i, const Coords& where) {
    auto x = operand(i, 0, where);
    auto y = x ? operand(i, 1, where) : std::nullopt;
    if (!y) return std::nullopt;
    const Range apart = (*x - *y).range();
    const bool below = apart.hi < 0, above = apart.lo > 0, same = apart.lo == 0 && apart.hi == 0;
    auto told = [](bool yes, bool no) -> std::optional<IndexExpr> {
      return yes || no ? std::optional(IndexExpr(yes ? 1 : 0)) : std::nullopt;
    };
    switch (i.attrs.direction) {
      case Direction::kEq: return told(same, below || above);
      case Direction::kNe: return told(below || above, same);
      case Direction::kGe: return told(apart.lo >= 0, below);
      case Direction::kGt: return told(above, apart.hi <= 0);
      case Direction::kLe: return told(apart.hi <= 0, above);
      case Direction::kLt: return told(below, apart.lo >= 0);
    }
    return std::nullopt;
  }

  std::optional<IndexExpr> choice(const Instruction& i, const Coords& where) {
    auto condition = operand(i, 0, where);
    if (!condition || !condition->is_constant()) return std::nullopt;
    return operand(i, condition->constant() ? 1 : 2, where);
  }

  /// From the one source that it comes from for sure.
  std::optional<IndexExpr> moved(const Instruction& i, const Coords& where) {
    AccessRelation relation = access_relation(i, where, {}, vars_);
    if (!relation.symbols.empty()) return std::nullopt;
    for (const Read& r : relation.reads) {
      bool always = true, never = false;
      for (const Guard& g : r.guards) always &= g.always(), never |= g.never();
      if (never) continue;
      return always ? at(*i.operand(r.operand), r.coords) : std::nullopt;
    }
    return std::nullopt;
  }

  VarSource& vars_;
  int steps_ = 0;
};

}  // namespace

std::optional<IndexExpr> known_index(const Instruction& value, const Coords& at, VarSource& vars) {
  return KnownIndex(vars).at(value, at);
}

AccessRelation known_relation(const Instruction& i, std::span<const IndexExpr> result,
                              std::span<const IndexExpr> reduced, VarSource& vars) {
  AccessRelation relation = access_relation(i, result, reduced, vars);
  std::vector<IndexExpr::Substitution> known;
  std::erase_if(relation.symbols, [&](const Symbol& s) {
    auto e = known_index(*i.operand(s.operand), s.coords, vars);
    const bool inside = e && e->range().lo >= s.clamp.lo && e->range().hi <= s.clamp.hi;
    if (inside) known.push_back({s.var, *e});
    return inside;
  });
  if (known.empty()) return relation;
  for (Read& r : relation.reads) {
    r.coords = substitute(r.coords, known);
    for (Guard& g : r.guards) g.expr = g.expr.substitute(known);
  }
  return relation;
}

}  // namespace hlojit
