// Steps of the runtime that know wide types only (see compiler/analysis/steps.h): their operands are widened,
// which keeps values and order, and what they give is rounded back.
//
//   (v, i) = (u2[3], s32[3]) topk(x)   ->   (w, i) = (u8[3], s32[3]) topk(u8 convert(x));  v = u2 convert(w)
#include "compiler/passes/expansions.h"

namespace hlojit {
namespace {

/// The type that the step works in; the type itself if it needs no other.
DType step_type(Opcode opcode, DType t) {
  if (dtype_bits(t) < 8 && is_integral(t)) return is_signed(t) ? DType::kS8 : DType::kU8;
  bool narrow = is_float(t) && dtype_bits(t) <= (opcode == Opcode::kTopK ? 8 : 16);
  return narrow ? DType::kF32 : t;
}

/// f32 that was eight bits, with one NaN a sign: a selection knows no more.
Instruction* with_one_nan(Builder& b, Instruction* x) {
  auto c = [&](double n) { return b.constant(DType::kS32, n); };
  Instruction* bits = b.bitcast_convert(x, DType::kS32);
  Instruction* size = b.binary(Opcode::kAnd, bits, c(0x7FFFFFFF));
  size = b.binary(Opcode::kMinimum, size, c(0x7FC00000));
  Instruction* sign = b.binary(Opcode::kAnd, bits, c(-0x80000000LL));
  return b.bitcast_convert(b.binary(Opcode::kOr, size, sign), DType::kF32);
}

}  // namespace

Instruction* expand_narrow_step(Builder& b, const Instruction& op) {
  DType own = op.operand(0)->shape.type, wide = step_type(op.opcode, own);
  if (wide == own) return nullptr;
  Builder::Values operands;
  for (Instruction* o : op.operands()) operands.push_back(b.convert(o, wide));
  if (op.is(Opcode::kTopK) && is_float(own)) operands[0] = with_one_nan(b, operands[0]);
  Instruction* made = b.op(op.opcode, operands, op.attrs);
  if (!op.shape.is_tuple()) return b.convert(made, own);
  return b.tuple({b.convert(b.get_tuple_element(made, 0), own), b.get_tuple_element(made, 1)});
}

}  // namespace hlojit
