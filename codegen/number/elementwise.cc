// Dispatch: an elementwise instruction to the family of its operands' type.
#include "codegen/number/elementwise.h"

#include <fmt/format.h>
#include <llvm/IR/IRBuilder.h>

#include "codegen/number/families.h"
#include "compiler/analysis/signs.h"

namespace hlojit::codegen {

using B = llvm::IRBuilderBase;

Value fma(B& b, const Value& x, const Value& y, const Value& z) {
  return {x.type, b.CreateIntrinsic(llvm::Intrinsic::fma, {x.v->getType()}, {x.v, y.v, z.v})};
}

Value binary(B& b, const NumberOptions& o, Opcode op, const Value& x, const Value& y) {
  if (is_float(x.type)) return float_binary(b, o, op, x, y);
  if (is_complex(x.type)) return complex_binary(b, o, op, x, y);
  return is_pred(x.type) ? pred_binary(b, op, x, y) : round_to_type(b, o, integer_binary(b, o, op, x, y));
}

namespace {

Value unary(B& b, const NumberOptions& o, Opcode op, const Value& x) {
  if (is_float(x.type)) return float_unary(b, o, op, x);
  if (is_complex(x.type)) return complex_unary(b, o, op, x);
  return is_pred(x.type) ? pred_unary(b, op, x) : round_to_type(b, o, integer_unary(b, op, x));
}

// Ops whose exact result f16 and bf16 can hold. (Narrower floats may lack -0, zero or the next integer.)
bool needs_rounding(DType type, Opcode op) {
  if (!is_narrow_float(type)) return false;
  if (type != DType::kF16 && type != DType::kBF16) return true;
  using enum Opcode;
  switch (op) {
    case kAbs:
    case kCeil:
    case kCopy:
    case kFloor:
    case kImag:
    case kMaximum:
    case kMinimum:
    case kNegate:
    case kReal:
    case kRoundAfz:
    case kRoundEven:
    case kSign: return false;
    default: return true;
  }
}

}  // namespace

Value elementwise(B& b, const NumberOptions& o, const Instruction& i, std::span<const Value> x) {
  using enum Opcode;
  Value r;
  switch (i.opcode) {
    case kCompare: return compare(b, i, x[0], x[1]);
    case kComplex: return {i.shape.type, x[0].v, x[1].v};
    case kSelect: return select(b, x[0].v, x[1], x[2]);
    case kClamp: return binary(b, o, kMinimum, binary(b, o, kMaximum, x[0], x[1]), x[2]);
    case kConvert: return convert(b, o, x[0], i.shape.type);
    case kBitcastConvert: r = bitcast_convert(b, i.shape.type, x[0]); break;
    case kReducePrecision: return reduce_precision(b, o, i, x[0]);
    case kStochasticConvert: r = stochastic_convert(b, o, x[0], x[1], i.shape.type); break;
    default:
      if (x.size() == 2)
        r = binary(b, o, i.opcode, x[0], x[1]);
      else if (i.is(kExponential) && is_float(x[0].type) && is_nonpositive(*i.operand(0)))
        r = exp_of_nonpositive(b, o, x[0]);
      else if (x.size() == 1)
        r = unary(b, o, i.opcode, x[0]);
      if (needs_rounding(r.type, i.opcode)) r = round_to_type(b, o, r);
  }
  if (r) return r;
  throw Error(ErrorKind::kUnsupported, i.location,
              fmt::format("{} of {} is not compiled yet", op_name(i.opcode), dtype_name(x[0].type)));
}

}  // namespace hlojit::codegen
