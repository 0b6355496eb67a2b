// Complex numbers: the templates of compiler/math/complex.h on pairs of parts.
#include <llvm/IR/IRBuilder.h>

#include "codegen/number/families.h"
#include "codegen/number/ir_number.h"
#include "compiler/math/complex.h"

namespace hlojit::codegen {
namespace {

using B = llvm::IRBuilderBase;

// f(Cx<F>...) -> Cx<F>, or -> F where the result is a part.
template <class F, class... X>
Value complex(B& b, const NumberOptions& o, F f, const Value& x, const X&... more) {
  ir::Recording recording(static_cast<llvm::IRBuilder<>&>(b), o.avx512);
  auto run = [&]<class Float>(Float) -> Value {
    auto z = f(math::Cx<Float>{{x.v}, {x.imag}}, math::Cx<Float>{{more.v}, {more.imag}}...);
    if constexpr (requires { z.re; }) {
      return {x.type, z.re.v, z.im.v};
    } else {
      return {component_type(x.type), z.v};
    }
  };
  return x.type == DType::kC128 ? run(ir::F64{}) : run(ir::F32{});
}

}  // namespace

llvm::Value* complex_order(B& b, unsigned predicate, const Value& x, const Value& y) {
  auto p = static_cast<llvm::CmpInst::Predicate>(predicate);
  llvm::Value* differ = b.CreateFCmpUNE(x.v, y.v);
  return b.CreateSelect(differ, b.CreateFCmp(p, x.v, y.v), b.CreateFCmp(p, x.imag, y.imag));
}

Value complex_binary(B& b, const NumberOptions& o, Opcode op, const Value& x, const Value& y) {
  using enum Opcode;
  switch (op) {
    case kAdd: return complex(b, o, [](auto p, auto q) { return p + q; }, x, y);
    case kSubtract: return complex(b, o, [](auto p, auto q) { return p - q; }, x, y);
    case kMultiply: return complex(b, o, [](auto p, auto q) { return p * q; }, x, y);
    case kDivide: return complex(b, o, [](auto p, auto q) { return p / q; }, x, y);
    case kPower: return complex(b, o, [](auto p, auto q) { return math::pow(p, q); }, x, y);
    case kAtan2: return complex(b, o, [](auto p, auto q) { return math::atan2(p, q); }, x, y);
    case kMaximum: return select(b, complex_order(b, llvm::CmpInst::FCMP_OLT, x, y), y, x);
    case kMinimum: return select(b, complex_order(b, llvm::CmpInst::FCMP_OLT, y, x), y, x);
    default: return {};
  }
}

Value complex_unary(B& b, const NumberOptions& o, Opcode op, const Value& x) {
#define HLOJIT_FN(name) complex(b, o, [](auto z) { return math::name(z); }, x)
  using enum Opcode;
  switch (op) {
    case kCopy: return x;
    case kReal: return {component_type(x.type), x.v};
    case kImag: return {component_type(x.type), x.imag};
    case kNegate: return map_parts(x, [&](llvm::Value* v) { return b.CreateFNeg(v); });
    case kAbs: return HLOJIT_FN(abs);
    case kSign: return HLOJIT_FN(sign);
    case kSqrt: return HLOJIT_FN(sqrt);
    case kRsqrt: return HLOJIT_FN(rsqrt);
    case kExponential: return HLOJIT_FN(exp);
    case kExponentialMinusOne: return HLOJIT_FN(expm1);
    case kLog: return HLOJIT_FN(log);
    case kLogPlusOne: return HLOJIT_FN(log1p);
    case kLogistic: return HLOJIT_FN(logistic);
    case kSine: return HLOJIT_FN(sin);
    case kCosine: return HLOJIT_FN(cos);
    case kTan: return HLOJIT_FN(tan);
    case kTanh: return HLOJIT_FN(tanh);
    case kSinh: return HLOJIT_FN(sinh);
    case kCosh: return HLOJIT_FN(cosh);
    case kAsin: return HLOJIT_FN(asin);
    case kAcos: return HLOJIT_FN(acos);
    case kAsinh: return HLOJIT_FN(asinh);
    case kAcosh: return HLOJIT_FN(acosh);
    case kAtanh: return HLOJIT_FN(atanh);
    default: return {};
  }
#undef HLOJIT_FN
}

}  // namespace hlojit::codegen
