// c64 and c128: the complex functions of compiler/math. Products are the plain formula, without
// recovery of infinities.
#include "compiler/eval/elementwise.h"
#include "compiler/math/complex.h"

namespace hlojit::eval {
namespace {

template <class T>
using Cx = math::Cx<T>;

[[noreturn]] void no_meaning(Opcode opcode) {
  throw Error(ErrorKind::kUnsupported, std::string(op_name(opcode)) + " of complex numbers has no meaning");
}

template <class T>
Cx<T> unary(Opcode opcode, Cx<T> z) {
  switch (opcode) {
    case Opcode::kNegate: return -z;
    case Opcode::kSign: return math::sign(z);
    case Opcode::kSqrt: return math::sqrt(z);
    case Opcode::kRsqrt: return math::rsqrt(z);
    case Opcode::kExponential: return math::exp(z);
    case Opcode::kExponentialMinusOne: return math::expm1(z);
    case Opcode::kLog: return math::log(z);
    case Opcode::kLogPlusOne: return math::log1p(z);
    case Opcode::kLogistic: return math::logistic(z);
    case Opcode::kSine: return math::sin(z);
    case Opcode::kCosine: return math::cos(z);
    case Opcode::kTan: return math::tan(z);
    case Opcode::kTanh: return math::tanh(z);
    case Opcode::kSinh: return math::sinh(z);
    case Opcode::kCosh: return math::cosh(z);
    case Opcode::kAcos: return math::acos(z);
    case Opcode::kAcosh: return math::acosh(z);
    case Opcode::kAsin: return math::asin(z);
    case Opcode::kAsinh: return math::asinh(z);
    case Opcode::kAtanh: return math::atanh(z);
    default: no_meaning(opcode);
  }
}

template <class T>
bool before(Cx<T> a, Cx<T> b) {  // lexicographic
  return a.re != b.re ? a.re < b.re : a.im < b.im;
}

template <class T>
bool holds(Direction direction, Cx<T> a, Cx<T> b) {
  switch (direction) {
    case Direction::kEq: return a.re == b.re && a.im == b.im;
    case Direction::kNe: return a.re != b.re || a.im != b.im;
    case Direction::kGe: return !before(a, b);
    case Direction::kGt: return before(b, a);
    case Direction::kLe: return !before(b, a);
    case Direction::kLt: return before(a, b);
  }
  return false;
}

template <class T>
Cx<T> binary(Opcode opcode, Cx<T> a, Cx<T> b) {
  switch (opcode) {
    case Opcode::kAdd: return a + b;
    case Opcode::kSubtract: return a - b;
    case Opcode::kMultiply: return a * b;
    case Opcode::kDivide: return a / b;
    case Opcode::kPower: return math::pow(a, b);
    case Opcode::kAtan2: return math::atan2(a, b);
    case Opcode::kMaximum: return before(a, b) ? b : a;
    case Opcode::kMinimum: return before(b, a) ? b : a;
    default: no_meaning(opcode);
  }
}

template <class T>
void complexes(const ElementOp& op, int64_t n, const void* const* in, void* out) {
  static_assert(sizeof(Cx<T>) == 2 * sizeof(T));
  const auto* a = static_cast<const Cx<T>*>(in[0]);
  const auto* b = op_info(op.opcode).arity > 1 ? static_cast<const Cx<T>*>(in[1]) : nullptr;
  T* parts = static_cast<T*>(out);
  auto* wholes = static_cast<Cx<T>*>(out);
  for (int64_t i = 0; i < n; ++i) {
    switch (op.opcode) {
      case Opcode::kAbs: parts[i] = math::abs(a[i]); break;
      case Opcode::kReal: parts[i] = a[i].re; break;
      case Opcode::kImag: parts[i] = a[i].im; break;
      case Opcode::kCompare: static_cast<uint8_t*>(out)[i] = holds(op.direction, a[i], b[i]); break;
      default: wholes[i] = b ? binary(op.opcode, a[i], b[i]) : unary(op.opcode, a[i]);
    }
  }
}

}  // namespace

void apply_complex(const ElementOp& op, int64_t n, const void* const* in, void* out) {
  if (op.type == DType::kC64) return complexes<float>(op, n, in, out);
  complexes<double>(op, n, in, out);
}

}  // namespace hlojit::eval
