// Elements taken apart into narrower ones, or put together from these: bitcast-convert between shapes of other ranks.
#include <algorithm>
#include <ranges>
#include <vector>

#include <llvm/IR/IRBuilder.h>

#include "codegen/nest/element_emitter.h"
#include "codegen/number/parts.h"
#include "compiler/analysis/access.h"

namespace hlojit::codegen {
namespace {

// Elements narrower than a byte travel in one; what is above their bits is cut when they are read.
unsigned container_bits(DType t) { return static_cast<unsigned>(8 * dtype_bytes(t)); }

llvm::Value* as_integers(llvm::IRBuilder<>& b, const Value& x) {
  llvm::Value* v = to_storage(b, x);
  return b.CreateBitCast(v, v->getType()->getWithNewType(b.getIntNTy(container_bits(x.type))));
}

}  // namespace

// If each so many lanes of these coordinates of parts are all of one element: which part each of them is. Else none.
std::vector<int> ElementEmitter::parts_of_wholes(const Coords& coords, int parts) const {
  const int lane = lane_var(coords.back());
  if (lane < 0 || line_lane_ >= 0) return {};
  if (std::ranges::any_of(coords, [&](const IndexExpr& c) { return vector_bound(c); })) return {};
  const Bound& bound = bound_.at(lane);
  if (bound.pairs > 0 || bound.lanes % parts != 0) return {};
  const IndexExpr whole = IndexExpr::var(lane, bound.lanes / parts) * parts;
  auto at = [&](const IndexExpr& c, int k) { return c.substitute(lane, whole + IndexExpr(k)); };
  std::vector<int> order;
  for (int k = 0; k < parts; ++k) {
    const IndexExpr part = at(coords.back(), k);
    if (!part.is_constant()) return {};
    order.push_back(static_cast<int>(part.constant()));
    for (size_t d = 0; d + 1 < coords.size(); ++d) {
      if (!(at(coords[d], k) == at(coords[d], 0))) return {};
    }
  }
  return order;
}

// Lanes that are the parts of elements are the bits of these as they are, if in turn; else moved within them. (7070
// words as bytes, a Zen 4 limited to AVX2: 2.7 us by shifts, which need each word in four lanes.)
std::optional<Value> ElementEmitter::parts_as_bits(const Instruction* i, Coords coords, Scope& scope) {
  llvm::IRBuilder<>& b = scope.builder;
  for (IndexExpr& c : coords) c = of_block_values(c);
  const DType from = i->operand(0)->shape.type, to = i->shape.type;
  const auto parts = static_cast<int>(bitcast_bits(from) / bitcast_bits(to));
  if (bitcast_bits(to) != container_bits(to)) return std::nullopt;
  const std::vector<int> order = parts_of_wholes(coords, parts);
  if (order.empty()) return std::nullopt;
  const int lane = lane_var(coords.back());
  const Bound bound = bound_.at(lane);
  const int wholes = bound.lanes / parts;
  Coords at = access_relation(*i, coords, {}, vars_).reads[0].coords;
  at = substitute(at, lane, lanes_in(*bound.scope, 0, wholes).number * parts);
  llvm::Value* bits = as_integers(b, splat(b, emit(i->operand(0), at, scope), wholes));
  bits = b.CreateBitCast(bits, vector_of(storage_type(b, to, 1), bound.lanes));
  if (std::ranges::equal(order, std::views::iota(0, parts))) return from_storage(b, to, bits);
  std::vector<int> moved;
  for (int l = 0; l < bound.lanes; ++l) moved.push_back(l / parts * parts + order[static_cast<size_t>(l % parts)]);
  return from_storage(b, to, b.CreateShuffleVector(bits, moved));
}

// The same for parts that are put together, which lie in turn.
std::optional<Value> ElementEmitter::wholes_as_bits(const Instruction* i, const Coords& coords, Scope& scope) {
  llvm::IRBuilder<>& b = scope.builder;
  const DType from = i->operand(0)->shape.type, to = i->shape.type;
  const auto parts = static_cast<int>(bitcast_bits(to) / bitcast_bits(from));
  if (bitcast_bits(from) != container_bits(from) || line_lane_ >= 0) return std::nullopt;
  int lane = -1;
  for (const IndexExpr& c : coords) {
    if (vector_bound(c)) return std::nullopt;
    lane = std::max(lane, lane_var(c));
  }
  if (lane < 0) return std::nullopt;
  const Bound bound = bound_.at(lane);
  if (bound.pairs > 0) return std::nullopt;
  const IndexExpr number = lanes_in(*bound.scope, 0, bound.lanes * parts).number;
  Coords at = substitute(coords, lane, floordiv(number, parts));
  at.push_back(mod(number, parts));
  llvm::Value* bits = as_integers(b, splat(b, emit(i->operand(0), at, scope), bound.lanes * parts));
  return from_storage(b, to, b.CreateBitCast(bits, vector_of(storage_type(b, to, 1), bound.lanes)));
}

// Wide to narrow: the part of the element the minor coordinate names. Narrow to wide: parts joined.
Value ElementEmitter::bitcast_convert(const Instruction* i, const Coords& coords, Scope& scope) {
  llvm::IRBuilder<>& b = scope.builder;
  DType from = i->operand(0)->shape.type, to = i->shape.type;
  unsigned from_bits = bitcast_bits(from), to_bits = bitcast_bits(to);
  auto resized = [&](llvm::Value* v, unsigned bits) {
    return b.CreateZExtOrTrunc(v, v->getType()->getWithNewType(b.getIntNTy(bits)));
  };
  auto finish = [&](llvm::Value* v) {
    v = resized(v, container_bits(to));
    return from_storage(b, to, b.CreateBitCast(v, v->getType()->getWithNewType(storage_type(b, to, 1))));
  };
  if (const auto value = from_bits > to_bits ? parts_as_bits(i, coords, scope) : wholes_as_bits(i, coords, scope))
    return *value;
  AccessRelation relation = access_relation(*i, coords, {}, vars_);
  if (from_bits > to_bits) {
    llvm::Value* whole = as_integers(b, emit(i->operand(0), relation.reads[0].coords, scope));
    llvm::Value* part = index(coords.back(), scope);
    std::vector<Value> both = {{from, whole}, {from, resized(part, container_bits(from))}};
    align_lanes(b, both);
    llvm::Value* shift = b.CreateMul(both[1].v, llvm::ConstantInt::get(both[1].v->getType(), to_bits));
    return finish(b.CreateLShr(both[0].v, shift));
  }
  llvm::Value* joined = nullptr;
  for (unsigned k = 0; k < to_bits / from_bits; ++k) {
    llvm::Value* v = as_integers(b, emit(i->operand(0), relation.reads[k].coords, scope));
    if (from_bits < container_bits(from))
      v = b.CreateAnd(v, llvm::ConstantInt::get(v->getType(), (1u << from_bits) - 1));
    v = resized(v, container_bits(to));
    if (k > 0) v = b.CreateShl(v, llvm::ConstantInt::get(v->getType(), uint64_t{k} * from_bits));
    joined = joined ? b.CreateOr(joined, v) : v;
  }
  return finish(joined);
}

}  // namespace hlojit::codegen
