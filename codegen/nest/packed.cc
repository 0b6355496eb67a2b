// Elements whose layout gives them a width of their own, E(n). Wider than their type they are every so many of
// its elements. Narrower than a byte they share bytes: lanes that fill whole bytes are taken apart and put
// together in registers; any other store changes its own bits of a byte and no others, by two atomic
// operations, because neighbours in a byte may belong to different tasks.
#include "codegen/nest/packed.h"

#include <llvm/IR/Instructions.h>

namespace hlojit::codegen {
namespace {

// The same memory, seen as plain elements.
BufferRef plain(BufferRef buffer, int64_t elements) {
  buffer.elements = elements;
  buffer.element_bits = 0;
  return buffer;
}

llvm::Value* byte_like(llvm::Value* v, int64_t c) {
  return llvm::ConstantInt::get(v->getType(), static_cast<uint64_t>(c) & 0xFF);
}

}  // namespace

// Do the lanes follow each other from the beginning of a byte on and fill all they touch?
bool ElementEmitter::fills_bytes(const IndexExpr& address, int64_t per_byte) const {
  int lane = lane_var(address);
  if (lane < 0 || vector_bound(address) || address.coefficient(lane) != 1) return false;
  if (lane_count(address) % per_byte != 0) return false;
  IndexExpr phase = mod(address.substitute(lane, 0), per_byte);
  return phase.is_constant() && phase.constant() == 0;
}

Value ElementEmitter::load_packed(Scope& scope, const BufferRef& buffer, DType type, const IndexExpr& address,
                                  llvm::Value* mask) {
  llvm::IRBuilder<>& b = scope.builder;
  int64_t bits = buffer.element_bits;
  if (bits >= 8) return load(scope, plain(buffer, 0), type, address * (bits / (8 * dtype_bytes(type))), mask);
  int64_t per_byte = 8 / bits;
  int lanes = lane_count(address);
  llvm::Value *bytes, *shift;
  const bool run = !mask && fills_bytes(address, per_byte);
  if (run) {
    auto* run = llvm::FixedVectorType::get(b.getInt8Ty(), static_cast<unsigned>(lanes / per_byte));
    IndexExpr first = floordiv(address.substitute(lane_var(address), 0), per_byte);
    auto* l = b.CreateAlignedLoad(run, address_of(scope, buffer, b.getInt8Ty(), first), llvm::Align(1));
    annotate(l, buffer);
    std::vector<int> repeat;
    std::vector<llvm::Constant*> shifts;
    for (int k = 0; k < lanes; ++k) {
      repeat.push_back(k / static_cast<int>(per_byte));
      shifts.push_back(b.getInt8(static_cast<uint8_t>(k % per_byte * bits)));
    }
    bytes = b.CreateShuffleVector(l, repeat);
    shift = llvm::ConstantVector::get(shifts);
  } else {
    Value byte = load(scope, plain(buffer, 0), DType::kU8, floordiv(address, per_byte), mask);
    llvm::Value* phase = index(mod(address, per_byte) * bits, scope);
    phase = b.CreateTrunc(phase, phase->getType()->getWithNewType(b.getInt8Ty()));
    int widest = std::max(lanes_of(byte), lanes);
    bytes = splat(b, byte, widest).v;
    shift = splat(b, {DType::kU8, phase}, widest).v;
  }
  llvm::Value* code = b.CreateLShr(bytes, shift);
  return from_storage(b, type, b.CreateAnd(code, byte_like(code, (1 << bits) - 1)), run ? pairs_along(address) : 0);
}

void ElementEmitter::store_packed(Scope& scope, const BufferRef& buffer, const IndexExpr& address, const Value& value,
                                  llvm::Value* mask) {
  llvm::IRBuilder<>& b = scope.builder;
  int64_t bits = buffer.element_bits;
  if (bits >= 8) return store(scope, plain(buffer, 0), address * (bits / (8 * dtype_bytes(value.type))), value, mask);
  int64_t per_byte = 8 / bits;
  int lanes = lanes_of(value);
  const bool run = lanes > 1 && !mask && fills_bytes(address, per_byte);
  llvm::Value* raw = to_storage(b, value, {.pairs = run ? pairs_along(address) : 0});
  raw = b.CreateAnd(raw, byte_like(raw, (1 << bits) - 1));
  if (run) {
    llvm::Value* bytes = nullptr;
    for (int64_t k = 0; k < per_byte; ++k) {
      std::vector<int> every;
      for (int l = 0; l < lanes; l += static_cast<int>(per_byte)) every.push_back(l + static_cast<int>(k));
      llvm::Value* part = b.CreateShuffleVector(raw, every);
      part = b.CreateShl(part, byte_like(part, k * bits));
      bytes = bytes ? b.CreateOr(bytes, part) : part;
    }
    IndexExpr first = floordiv(address.substitute(lane_var(address), 0), per_byte);
    auto* s = b.CreateAlignedStore(bytes, address_of(scope, buffer, b.getInt8Ty(), first), llvm::Align(1));
    return annotate(s, buffer);
  }
  llvm::Value* places = index(address, scope);
  for (int l = 0; l < lanes; ++l) {
    auto lane = [&](llvm::Value* v) {
      return v->getType()->isVectorTy() ? b.CreateExtractElement(v, static_cast<uint64_t>(l)) : v;
    };
    llvm::Value *place = lane(places), *code = lane(raw), *stored = mask ? lane(mask) : b.getTrue();
    place = b.CreateSelect(stored, place, b.getInt64(0));
    llvm::Value* pointer =
        b.CreateGEP(b.getInt8Ty(), buffer.pointer, b.CreateUDiv(place, b.getInt64(static_cast<uint64_t>(per_byte))));
    llvm::Value* shift = b.CreateURem(place, b.getInt64(static_cast<uint64_t>(per_byte)));
    shift = b.CreateMul(b.CreateTrunc(shift, b.getInt8Ty()), b.getInt8(static_cast<uint8_t>(bits)));
    // The last element clears what is left of its byte.
    llvm::Value* last = b.CreateICmpEQ(place, b.getInt64(static_cast<uint64_t>(buffer.elements - 1)));
    llvm::Value* own = b.CreateSelect(last, b.getInt8(0xFF), b.getInt8(static_cast<uint8_t>((1 << bits) - 1)));
    auto change = [&](llvm::AtomicRMWInst::BinOp op, llvm::Value* operand) {
      annotate(b.CreateAtomicRMW(op, pointer, operand, llvm::MaybeAlign(1), llvm::AtomicOrdering::Monotonic), buffer);
    };
    change(llvm::AtomicRMWInst::And, b.CreateSelect(stored, b.CreateNot(b.CreateShl(own, shift)), b.getInt8(0xFF)));
    change(llvm::AtomicRMWInst::Or, b.CreateSelect(stored, b.CreateShl(code, shift), b.getInt8(0)));
  }
}

}  // namespace hlojit::codegen
