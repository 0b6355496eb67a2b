// c64 and c128. Sums and products are the plain formulas in the component type, without recovery of
// infinities; functions follow the principal branches and are computed in f64.
#include <cmath>
#include <complex>
#include <limits>

#include "compiler/eval/elementwise.h"

namespace hlojit::eval {
namespace {

using Z = std::complex<double>;

Z plain_product(Z a, Z b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

// Scaled by the larger part of the divisor, so that squares neither overflow nor vanish.
Z plain_quotient(Z a, Z b) {
  if (b == Z(0)) return {a.real() / std::fabs(b.real()), a.imag() / std::fabs(b.real())};
  if (std::fabs(b.real()) >= std::fabs(b.imag())) {
    const double r = b.imag() / b.real(), d = b.real() + b.imag() * r;
    return {(a.real() + a.imag() * r) / d, (a.imag() - a.real() * r) / d};
  }
  const double r = b.real() / b.imag(), d = b.real() * r + b.imag();
  return {(a.real() * r + a.imag()) / d, (a.imag() * r - a.real()) / d};
}

double modulus(Z z) {
  if (std::isnan(z.real()) || std::isnan(z.imag())) return std::numeric_limits<double>::quiet_NaN();
  return std::hypot(z.real(), z.imag());
}

// (e^x - 1) cos y + (cos y - 1) + i e^x sin y: no cancellation near 0.
Z expm1(Z z) {
  const double half = std::sin(z.imag() / 2);
  const double real = std::expm1(z.real()) * std::cos(z.imag()) - 2 * half * half;
  return {real, std::exp(z.real()) * std::sin(z.imag())};
}

// log|1 + z| = log1p(x (2 + x) + y^2) / 2 near zero.
Z log1p(Z z) {
  const double x = z.real(), y = z.imag();
  const double argument = std::atan2(y, 1 + x);
  if (std::fabs(x) < 0.5 && std::fabs(y) < 0.5)
    return {std::log1p(x * (2 + x) + y * y) / 2, argument};
  return {std::log(std::hypot(1 + x, y)), argument};
}

Z sign(Z z) {
  if (z == Z(0)) return z;
  const double r = modulus(z);
  return {z.real() / r, z.imag() / r};
}

Z atan2(Z y, Z x) {
  // -i log((x + i y) / sqrt(x^2 + y^2))
  const Z i(0, 1);
  return -i * std::log((x + i * y) / std::sqrt(x * x + y * y));
}

Z power(Z base, Z exponent) {
  if (base == Z(0)) {
    if (exponent == Z(0)) return 1;
    if (exponent.real() > 0) return 0;
  }
  return std::exp(plain_product(exponent, std::log(base)));
}

Z function(Opcode opcode, Z z) {
  switch (opcode) {
    case Opcode::kNegate: return -z;
    case Opcode::kSign: return sign(z);
    case Opcode::kSqrt: return std::sqrt(z);
    case Opcode::kRsqrt: return plain_quotient(1, std::sqrt(z));
    case Opcode::kExponential: return std::exp(z);
    case Opcode::kExponentialMinusOne: return expm1(z);
    case Opcode::kLog: return std::log(z);
    case Opcode::kLogPlusOne: return log1p(z);
    case Opcode::kLogistic: return plain_quotient(1, Z(1) + std::exp(-z));
    case Opcode::kSine: return std::sin(z);
    case Opcode::kCosine: return std::cos(z);
    case Opcode::kTan: return std::tan(z);
    case Opcode::kTanh: return std::tanh(z);
    case Opcode::kAcos: return std::acos(z);
    case Opcode::kAcosh: return std::acosh(z);
    case Opcode::kAsin: return std::asin(z);
    case Opcode::kAsinh: return std::asinh(z);
    case Opcode::kAtanh: return std::atanh(z);
    case Opcode::kCosh: return std::cosh(z);
    case Opcode::kSinh: return std::sinh(z);
    default:
      throw Error(ErrorKind::kUnsupported,
                  std::string(op_name(opcode)) + " of complex numbers has no meaning");
  }
}

bool before(Z a, Z b) {  // lexicographic
  return a.real() != b.real() ? a.real() < b.real() : a.imag() < b.imag();
}

bool holds(Direction direction, Z a, Z b) {
  switch (direction) {
    case Direction::kEq: return a == b;
    case Direction::kNe: return a != b;
    case Direction::kGe: return !before(a, b);
    case Direction::kGt: return before(b, a);
    case Direction::kLe: return !before(b, a);
    case Direction::kLt: return before(a, b);
  }
  return false;
}

template <class T>
std::complex<T> binary(Opcode opcode, std::complex<T> a, std::complex<T> b) {
  switch (opcode) {
    case Opcode::kAdd: return a + b;
    case Opcode::kSubtract: return a - b;
    case Opcode::kMultiply:
      return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
    case Opcode::kDivide: return std::complex<T>(plain_quotient(a, b));
    case Opcode::kPower: return std::complex<T>(power(a, b));
    case Opcode::kAtan2: return std::complex<T>(atan2(a, b));
    case Opcode::kMaximum: return before(a, b) ? b : a;
    case Opcode::kMinimum: return before(b, a) ? b : a;
    default:
      throw Error(ErrorKind::kUnsupported,
                  std::string(op_name(opcode)) + " of complex numbers has no meaning");
  }
}

template <class T>
void complexes(const ElementOp& op, int64_t n, const void* const* in, void* out) {
  const auto* a = static_cast<const std::complex<T>*>(in[0]);
  switch (op.opcode) {
    case Opcode::kAbs:
      for (int64_t i = 0; i < n; ++i) static_cast<T*>(out)[i] = static_cast<T>(modulus(a[i]));
      return;
    case Opcode::kReal:
      for (int64_t i = 0; i < n; ++i) static_cast<T*>(out)[i] = a[i].real();
      return;
    case Opcode::kImag:
      for (int64_t i = 0; i < n; ++i) static_cast<T*>(out)[i] = a[i].imag();
      return;
    case Opcode::kCompare: {
      const auto* b = static_cast<const std::complex<T>*>(in[1]);
      for (int64_t i = 0; i < n; ++i)
        static_cast<uint8_t*>(out)[i] = holds(op.direction, a[i], b[i]);
      return;
    }
    default: break;
  }
  auto* r = static_cast<std::complex<T>*>(out);
  if (op_info(op.opcode).arity == 1) {
    for (int64_t i = 0; i < n; ++i) r[i] = std::complex<T>(function(op.opcode, Z(a[i])));
    return;
  }
  const auto* b = static_cast<const std::complex<T>*>(in[1]);
  for (int64_t i = 0; i < n; ++i) r[i] = binary<T>(op.opcode, a[i], b[i]);
}

}  // namespace

void apply_complex(const ElementOp& op, int64_t n, const void* const* in, void* out) {
  if (op.type == DType::kC64) return complexes<float>(op, n, in, out);
  complexes<double>(op, n, in, out);
}

}  // namespace hlojit::eval
