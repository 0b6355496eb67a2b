// f32 and f64: the functions of compiler/math, one lane at a time.
#include <bit>
#include <cmath>
#include <type_traits>

#include "compiler/eval/elementwise.h"
#include "compiler/math/convert.h"
#include "compiler/math/functions.h"

namespace hlojit::eval {
namespace {

template <class T, class R = T, class F>
void map1(int64_t n, const void* const* in, void* out, F f) {
  const T* a = static_cast<const T*>(in[0]);
  R* r = static_cast<R*>(out);
  for (int64_t i = 0; i < n; ++i) r[i] = f(a[i]);
}

template <class T, class R = T, class F>
void map2(int64_t n, const void* const* in, void* out, F f) {
  const T* a = static_cast<const T*>(in[0]);
  const T* b = static_cast<const T*>(in[1]);
  R* r = static_cast<R*>(out);
  for (int64_t i = 0; i < n; ++i) r[i] = f(a[i], b[i]);
}

template <class T>
using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
template <class T>
using SignedBits = std::make_signed_t<Bits<T>>;

// Order on bits: -NaN < -inf < ... < -0 < +0 < ... < +NaN.
template <class T>
SignedBits<T> total_order_key(T x) {
  auto bits = std::bit_cast<SignedBits<T>>(x);
  return bits < 0 ? bits ^ std::numeric_limits<SignedBits<T>>::max() : bits;
}

template <class T>
void floats(const ElementOp& op, int64_t n, const void* const* in, void* out) {
  switch (op.opcode) {
    case Opcode::kAdd: return map2<T>(n, in, out, [](T a, T b) { return a + b; });
    case Opcode::kSubtract: return map2<T>(n, in, out, [](T a, T b) { return a - b; });
    case Opcode::kMultiply: return map2<T>(n, in, out, [](T a, T b) { return a * b; });
    case Opcode::kDivide: return map2<T>(n, in, out, [](T a, T b) { return a / b; });
    case Opcode::kRemainder: return map2<T>(n, in, out, [](T a, T b) { return math::remainder(a, b); });
    case Opcode::kPower: return map2<T>(n, in, out, [](T a, T b) { return math::pow(a, b); });
    case Opcode::kAtan2: return map2<T>(n, in, out, [](T a, T b) { return math::atan2(a, b); });
    case Opcode::kMaximum: return map2<T>(n, in, out, [](T a, T b) { return math::maximum(a, b); });
    case Opcode::kMinimum: return map2<T>(n, in, out, [](T a, T b) { return math::minimum(a, b); });
    case Opcode::kNegate: return map1<T>(n, in, out, [](T a) { return -a; });
    case Opcode::kAbs: return map1<T>(n, in, out, [](T a) { return math::abs_(a); });
    case Opcode::kSign: return map1<T>(n, in, out, [](T a) { return math::sign(a); });
    case Opcode::kFloor: return map1<T>(n, in, out, [](T a) { return math::floor_(a); });
    case Opcode::kCeil: return map1<T>(n, in, out, [](T a) { return -math::floor_(-a); });
    case Opcode::kRoundAfz: return map1<T>(n, in, out, [](T a) { return math::round_afz(a); });
    case Opcode::kRoundEven: return map1<T>(n, in, out, [](T a) { return math::round_even_(a); });
    case Opcode::kSqrt: return map1<T>(n, in, out, [](T a) { return math::sqrt_(a); });
    case Opcode::kRsqrt: return map1<T>(n, in, out, [](T a) { return math::rsqrt(a); });
    case Opcode::kCbrt: return map1<T>(n, in, out, [](T a) { return math::cbrt(a); });
    case Opcode::kExponential: return map1<T>(n, in, out, [](T a) { return math::exp(a); });
    case Opcode::kExponentialMinusOne: return map1<T>(n, in, out, [](T a) { return math::expm1(a); });
    case Opcode::kLog: return map1<T>(n, in, out, [](T a) { return math::log(a); });
    case Opcode::kLogPlusOne: return map1<T>(n, in, out, [](T a) { return math::log1p(a); });
    case Opcode::kLogistic: return map1<T>(n, in, out, [](T a) { return math::logistic(a); });
    case Opcode::kSine: return map1<T>(n, in, out, [](T a) { return math::sin(a); });
    case Opcode::kCosine: return map1<T>(n, in, out, [](T a) { return math::cos(a); });
    case Opcode::kTan: return map1<T>(n, in, out, [](T a) { return math::tan(a); });
    case Opcode::kTanh: return map1<T>(n, in, out, [](T a) { return math::tanh(a); });
    case Opcode::kErf: return map1<T>(n, in, out, [](T a) { return math::erf(a); });
    case Opcode::kAcos: return map1<T>(n, in, out, [](T a) { return math::acos(a); });
    case Opcode::kAcosh: return map1<T>(n, in, out, [](T a) { return math::acosh(a); });
    case Opcode::kAsin: return map1<T>(n, in, out, [](T a) { return math::asin(a); });
    case Opcode::kAsinh: return map1<T>(n, in, out, [](T a) { return math::asinh(a); });
    case Opcode::kAtanh: return map1<T>(n, in, out, [](T a) { return math::atanh(a); });
    case Opcode::kCosh: return map1<T>(n, in, out, [](T a) { return math::cosh(a); });
    case Opcode::kSinh: return map1<T>(n, in, out, [](T a) { return math::sinh(a); });
    case Opcode::kReal: return map1<T>(n, in, out, [](T a) { return a; });
    case Opcode::kImag: return map1<T>(n, in, out, [](T) { return T{0}; });
    case Opcode::kIsFinite: return map1<T, uint8_t>(n, in, out, [](T a) { return std::isfinite(a); });
    case Opcode::kReducePrecision:
      return map1<T>(n, in, out, [&](T a) { return math::reduce_precision(a, op.precision); });
    case Opcode::kCompare:
      if (op.total_order) {
        return map2<T, uint8_t>(n, in, out,
                                [&](T a, T b) { return holds(op.direction, total_order_key(a), total_order_key(b)); });
      }
      return map2<T, uint8_t>(n, in, out, [&](T a, T b) { return holds(op.direction, a, b); });
    case Opcode::kClamp: {
      const T *low = static_cast<const T*>(in[0]), *x = static_cast<const T*>(in[1]),
              *high = static_cast<const T*>(in[2]);
      T* r = static_cast<T*>(out);
      for (int64_t i = 0; i < n; ++i) r[i] = math::minimum(math::maximum(low[i], x[i]), high[i]);
      return;
    }
    case Opcode::kComplex: {
      const T *re = static_cast<const T*>(in[0]), *im = static_cast<const T*>(in[1]);
      T* r = static_cast<T*>(out);
      for (int64_t i = 0; i < n; ++i) {
        r[2 * i] = re[i];
        r[2 * i + 1] = im[i];
      }
      return;
    }
    default: throw Error(ErrorKind::kUnsupported, std::string(op_name(op.opcode)) + " of floats has no meaning");
  }
}

}  // namespace

void apply_float(const ElementOp& op, int64_t n, const void* const* in, void* out) {
  if (op.type == DType::kF32) return floats<float>(op, n, in, out);
  floats<double>(op, n, in, out);
}

}  // namespace hlojit::eval
