// Data movement as its access relation says: run-time starts become symbols, the first read whose guards
// hold gives the value, the fill operand does where none holds. Where the loops could be cut at the
// guards' borders their ranges decide; elsewhere lanes select.
//
// A value under a failing guard may be asked for at coordinates outside its array. That is harmless by one
// rule: under a guard every load masks the lanes that are outside its own array, and what is computed from
// the zeros they get is never selected. So does every load that is hoisted out of the way of a branch that a guard
// decides about.
#include <algorithm>

#include "codegen/nest/element_emitter.h"
#include "compiler/analysis/known_index.h"
#include "compiler/ir/narrow.h"

namespace hlojit::codegen {
namespace {

llvm::Value* integer_like(llvm::Value* v, int64_t x) {
  return llvm::ConstantInt::get(v->getType(), static_cast<uint64_t>(x), true);
}

llvm::Value* clamped(llvm::IRBuilder<>& b, llvm::Value* v, bool sign, bool below, bool above, Range range) {
  if (below) v = b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, v, integer_like(v, range.lo));
  const auto min = sign ? llvm::Intrinsic::smin : llvm::Intrinsic::umin;
  return above ? b.CreateBinaryIntrinsic(min, v, integer_like(v, range.hi)) : v;
}

// An index, clamped, as an address has it. A bound that no value of the index's type exceeds is left out, and where
// the others are values of that type it is clamped as it is: vectors of words take half the instructions.
llvm::Value* clamped(llvm::IRBuilder<>& b, const Value& start, Range range) {
  const bool sign = is_signed(start.type);
  llvm::Type* wide = start.v->getType()->getWithNewType(b.getInt64Ty());
  auto widened = [&](llvm::Value* v) { return b.CreateIntCast(v, wide, sign); };
  const int bits = dtype_bits(start.type) - (sign ? 1 : 0);  // of the largest value
  if (bits >= 63) return clamped(b, widened(start.v), sign, sign, true, range);
  const int64_t most = (int64_t{1} << bits) - 1, least = sign ? -most - 1 : 0;
  const bool below = sign && range.lo > least, above = range.hi < most;
  if (range.lo <= most && range.hi >= least) return widened(clamped(b, start.v, sign, below, above, range));
  return clamped(b, widened(start.v), sign, below, above, range);
}

}  // namespace

void align_lanes(llvm::IRBuilderBase& b, std::vector<Value>& values) {
  int lanes = 1;
  for (const Value& v : values) lanes = std::max(lanes, lanes_of(v));
  for (Value& v : values) v = splat(b, v, lanes);
}

Value choose(llvm::IRBuilderBase& b, llvm::Value* condition, const Value& yes, const Value& no) {
  std::vector<Value> all = {{DType::kPred, condition}, yes, no};
  align_lanes(b, all);
  return select(b, all[0].v, all[1], all[2]);
}

std::vector<IndexExpr::Substitution> ElementEmitter::bind_symbols(const Instruction* i, std::span<const Symbol> symbols,
                                                                  Scope& scope) {
  std::vector<IndexExpr::Substitution> known_as;
  for (const Symbol& s : symbols) {
    found_at_[s.var] = {i, s};
    Value start = emit(i->operand(s.operand), s.coords, scope);
    Scope& where = home(s.coords, scope);
    std::vector<Clamped>& same = where.symbols[start.v];
    auto known =
        std::ranges::find_if(same, [&](const Clamped& c) { return c.type == start.type && c.range == s.clamp; });
    if (known != same.end()) {
      bound_[s.var] = bound_.at(known->var);
      known_as.push_back({s.var, IndexExpr::var(known->var, s.clamp)});
      continue;
    }
    int lanes = lanes_of(start);
    bound_[s.var] = {&where, clamped(where.builder, start, s.clamp), lanes > 1 ? lanes : 0};
    same.push_back({start.type, s.clamp, s.var});
  }
  return known_as;
}

llvm::Value* ElementEmitter::holds(std::span<const Guard> guards, Scope& scope) {
  llvm::IRBuilder<>& b = scope.builder;
  llvm::Value* all = nullptr;
  for (const Guard& g : guards) {
    if (g.always()) continue;
    llvm::Value* v = index(g.expr - IndexExpr(g.lo), scope);
    llvm::Value* one = b.CreateICmpULT(v, integer_like(v, g.hi - g.lo));  // below lo is huge unsigned
    if (!all) {
      all = one;
      continue;
    }
    std::vector<Value> both = {{DType::kPred, all}, {DType::kPred, one}};
    align_lanes(b, both);
    all = b.CreateAnd(both[0].v, both[1].v);
  }
  return all;
}

// Those next to the one whose coordinates the guards are about. (Read whole, a block of four beside the border of a
// concatenation's part took up to three elements from before its array or behind it.)
BlockPart ElementEmitter::with_it(std::span<const Guard> guards) const {
  BlockPart part = read_together_;
  for (const Guard& g : guards) {
    size_t k = 0;
    while (k < block_ids_.size() && !g.expr.depends_on(block_ids_[k])) ++k;
    if (k == block_ids_.size()) continue;
    auto holds_of = [&](size_t other) {
      return Guard{g.expr.substitute(block_ids_[k], IndexExpr(block_values_[other])), g.lo, g.hi}.always();
    };
    size_t first = k, end = k + 1;
    while (first > part.first && holds_of(first - 1)) --first;
    while (end < std::min(part.end, block_ids_.size()) && holds_of(end)) ++end;
    part = {first, end};
  }
  return part;
}

llvm::Value* ElementEmitter::inside(std::span<const int64_t> dims, const Coords& coords, Scope& scope) {
  if (!guarded_ && (!way_ || scope.is_in(*way_))) return nullptr;
  std::vector<Guard> guards;
  for (size_t d = 0; d < coords.size(); ++d) {
    Guard g{coords[d], 0, dims[d]};
    if (!g.always()) guards.push_back(std::move(g));
  }
  return holds(guards, scope);
}

// Lanes across rows that are shorter than a vector, some of which lie outside under a guard: they begin the row again.
// Behind a reshape they would be elements of another row, inside of the array or not, and each would be masked and
// gathered. (27007 rows of three floats beside twice these, a Zen 4: 128 us, 10.4 so. Of arrays themselves, constant
// masks and shuffles read no more than is wanted: a rolled s32[17,14,14], repeated, 3.0 us, 14.2 so.)
Coords ElementEmitter::wrapped(const Shape& shape, Coords coords) const {
  const int64_t lanes = vector_bytes() / dtype_bytes(working_type(shape.type));
  for (size_t d = 0; d < coords.size(); ++d) {
    const bool lies_inside = Guard{coords[d], 0, shape.dims[d]}.always();
    // (In a dim of no elements nothing lies, and none is read.)
    const bool is_short = shape.dims[d] > 0 && shape.dims[d] < lanes;
    if (!lies_inside && is_short && lane_var(coords[d]) >= 0) coords[d] = mod(coords[d], shape.dims[d]);
  }
  return coords;
}

Value ElementEmitter::moved(const Instruction* i, const Coords& coords, Scope& scope) {
  const bool crosses = guarded_ && i->is(Opcode::kReshape);
  AccessRelation relation = known_relation(*i, crosses ? wrapped(i->shape, coords) : coords, {}, vars_);
  const auto known_as = bind_symbols(i, relation.symbols, scope);
  for (Read& r : relation.reads) {
    r.coords = substitute(r.coords, known_as);
    for (Guard& g : r.guards) g.expr = g.expr.substitute(known_as);
  }
  struct Choice {
    llvm::Value* condition;  // null: always
    Value value;
  };
  std::vector<Choice> choices;
  for (const Read& r : relation.reads) {
    if (std::any_of(r.guards.begin(), r.guards.end(), [](const Guard& g) { return g.never(); })) continue;
    llvm::Value* condition = holds(r.guards, scope);
    // Blocks of elements have coordinates that are known.
    if (auto* known = llvm::dyn_cast_or_null<llvm::ConstantInt>(condition)) {
      if (known->isZero()) continue;
      condition = nullptr;
    }
    const Instruction* from = i->operand(r.operand);
    auto chosen = [&] { choices.push_back({condition, emit(from, first_of_ones(from->shape, r.coords), scope)}); };
    where(r.guards, [&] { under(condition, chosen); });
    if (!condition) break;
  }
  if (relation.reads.empty()) return constant(scope.builder, kept(i->shape.type), 0, 1);
  if (choices.empty() && !relation.fill) {
    // Asked for outside of the array, by someone who will not use it: any value of its type.
    const Read& r = relation.reads.back();
    llvm::Value* never = scope.builder.getFalse();
    under(never, [&] { choices.push_back({never, emit(i->operand(r.operand), r.coords, scope)}); });
  }
  // Without a fill operand some read always applies: the last one where no other did.
  bool filled = relation.fill && (choices.empty() || choices.back().condition);
  Value result = filled ? emit(i->operand(*relation.fill), {}, scope) : choices.back().value;
  if (!filled) choices.pop_back();
  llvm::IRBuilder<>& b = scope.builder;
  for (size_t k = choices.size(); k-- > 0;) {
    result = choose(b, choices[k].condition, choices[k].value, result);
  }
  return result;
}

}  // namespace hlojit::codegen
