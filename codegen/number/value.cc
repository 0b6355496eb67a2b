// Values by lanes and parts: types, splats, selects, constants.
#include "codegen/number/value.h"

#include <complex>
#include <limits>

#include <llvm/IR/IRBuilder.h>

#include "codegen/number/parts.h"
#include "codegen/options.h"
#include "codegen/target.h"
#include "compiler/math/convert.h"

namespace hlojit::codegen {
namespace {

using B = llvm::IRBuilderBase;

llvm::Type* register_scalar(B& b, DType type) {
  if (type == DType::kPred) return b.getInt1Ty();
  if (is_complex(type)) type = component_type(type);
  if (type == DType::kF64) return b.getDoubleTy();
  if (is_float(type)) return b.getFloatTy();
  return b.getIntNTy(static_cast<unsigned>(8 * dtype_bytes(type)));
}

double largest_float(DType type) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  if (!is_narrow_float(type)) return inf;
  math::NarrowFormat f = math::narrow_format(type);
  return f.overflow == math::Overflow::kInfinity ? inf : math::decode_narrow(0.0, {f.max_code}, f);
}

}  // namespace

NumberOptions NumberOptions::of(const EmitOptions& options) {
  return {options.target->isa() == Isa::kAvx512, !options.strict, options.target};
}

void append_parts(std::vector<llvm::Value*>& parts, const Value& x) {
  parts.push_back(x.v);
  if (x.imag) parts.push_back(x.imag);
}

Value take_parts(DType type, std::span<llvm::Value* const> parts, size_t& at) {
  Value x = {type, parts[at++]};
  if (is_complex(type)) x.imag = parts[at++];
  return x;
}

llvm::Type* register_type(B& b, DType type, int lanes) { return vector_of(register_scalar(b, type), lanes); }

int lanes_of(const Value& x) {
  auto* t = llvm::dyn_cast<llvm::FixedVectorType>(x.v->getType());
  return t ? static_cast<int>(t->getNumElements()) : 1;
}

Value splat(B& b, const Value& x, int lanes) {
  if (lanes == 1 || x.v->getType()->isVectorTy()) return x;
  return map_parts(x, [&](llvm::Value* v) { return b.CreateVectorSplat(static_cast<unsigned>(lanes), v); });
}

Value select(B& b, llvm::Value* condition, const Value& x, const Value& y) {
  return {x.type, b.CreateSelect(condition, x.v, y.v), x.imag ? b.CreateSelect(condition, x.imag, y.imag) : nullptr};
}

Value constant(B& b, const Literal& literal, int64_t index) {
  DType type = literal.shape().type;
  llvm::Type* t = register_scalar(b, type);
  if (is_complex(type)) {
    std::complex<double> z = literal.as_complex(index);
    return {type, llvm::ConstantFP::get(t, z.real()), llvm::ConstantFP::get(t, z.imag())};
  }
  if (is_float(type)) return {type, llvm::ConstantFP::get(t, literal.as_double(index))};
  return {type, llvm::ConstantInt::get(t, static_cast<uint64_t>(literal.as_int(index)), is_signed(type))};
}

Value constant(B& b, DType type, double value, int lanes) {
  llvm::Type* t = register_type(b, type, lanes);
  if (is_complex(type)) return {type, llvm::ConstantFP::get(t, value), llvm::ConstantFP::get(t, 0.0)};
  if (is_float(type)) return {type, llvm::ConstantFP::get(t, value)};
  return {type, llvm::ConstantInt::get(t, static_cast<uint64_t>(static_cast<int64_t>(value)), is_signed(type))};
}

Value extreme(B& b, DType type, bool largest) {
  llvm::Type* t = register_scalar(b, type);
  if (is_complex(type)) {
    llvm::Value* part = llvm::ConstantFP::getInfinity(t, !largest);
    return {type, part, part};
  }
  if (type == DType::kF8E8M0FNU) return {type, llvm::ConstantFP::get(t, largest ? 0x1p127 : 0x1p-127)};
  if (is_float(type)) {
    double top = largest_float(type);
    return {type, llvm::ConstantFP::get(t, largest ? top : -top)};
  }
  if (is_pred(type)) return {type, b.getInt1(largest)};
  auto bits = static_cast<unsigned>(dtype_bits(type)), width = t->getIntegerBitWidth();
  if (is_signed(type)) {
    llvm::APInt n = largest ? llvm::APInt::getSignedMaxValue(bits) : llvm::APInt::getSignedMinValue(bits);
    return {type, llvm::ConstantInt::get(t, n.sext(width))};
  }
  return {type,
          llvm::ConstantInt::get(t, (largest ? llvm::APInt::getMaxValue(bits) : llvm::APInt(bits, 0)).zext(width))};
}

}  // namespace hlojit::codegen
