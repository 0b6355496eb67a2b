// Dispatch by type class, integers and pred, and the ops that only move bits.
//
// Narrow floats are decoded to f32 in blocks, computed there, and rounded back: the rule "computed
// in f32, rounded after every op" taken literally.
#include "compiler/eval/elementwise.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>

#include "compiler/math/convert.h"

namespace hlojit::eval {
namespace {

template <class T, class R = T, class F>
void map1(int64_t n, const void* const* in, void* out, F f) {
  const T* a = static_cast<const T*>(in[0]);
  R* r = static_cast<R*>(out);
  for (int64_t i = 0; i < n; ++i) r[i] = static_cast<R>(f(a[i]));
}

template <class T, class R = T, class F>
void map2(int64_t n, const void* const* in, void* out, F f) {
  const T* a = static_cast<const T*>(in[0]);
  const T* b = static_cast<const T*>(in[1]);
  R* r = static_cast<R*>(out);
  for (int64_t i = 0; i < n; ++i) r[i] = static_cast<R>(f(a[i], b[i]));
}

// An integer type of `bits` bits kept sign- or zero-extended in T. All arithmetic is done modulo
// 2^64 and cut back, so that nothing is undefined and narrow types need no code of their own.
template <class T>
struct Integer {
  using U = std::make_unsigned_t<T>;
  int bits;

  T cut(uint64_t v) const {
    int shift = 64 - bits;
    if constexpr (std::is_signed_v<T>) return static_cast<T>(static_cast<int64_t>(v << shift) >> shift);
    return static_cast<T>(v << shift >> shift);
  }
  // The same bits read as an unsigned / as a signed number.
  uint64_t raw(T v) const { return static_cast<uint64_t>(v) << (64 - bits) >> (64 - bits); }
  int64_t as_signed(T v) const { return static_cast<int64_t>(static_cast<uint64_t>(v) << (64 - bits)) >> (64 - bits); }

  T divide(T a, T b) const {
    if (b == 0) return cut(~uint64_t{0});
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return cut(-static_cast<uint64_t>(a));
    return cut(static_cast<uint64_t>(a / b));
  }
  T remainder(T a, T b) const {
    if (b == 0) return a;
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return 0;
    return static_cast<T>(a % b);
  }
  /// The upper half of the product of twice as many bits.
  T high_product(T a, T b) const {
    using Wide = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
    return cut(static_cast<uint64_t>(static_cast<Wide>(a) * static_cast<Wide>(b) >> bits));
  }
  T power(T base, T exponent) const {
    if (std::is_signed_v<T> && exponent < 0) {
      if (base == 1) return 1;
      if (base == static_cast<T>(-1)) return exponent & 1 ? base : T{1};
      return 0;
    }
    uint64_t result = 1, square = static_cast<uint64_t>(base);
    for (uint64_t e = raw(exponent); e != 0; e >>= 1, square *= square) {
      if (e & 1) result *= square;
    }
    return cut(result);
  }
  T shift_left(T a, T b) const {
    uint64_t by = raw(b);
    return by >= static_cast<uint64_t>(bits) ? T{0} : cut(static_cast<uint64_t>(a) << by);
  }
  T shift_right_logical(T a, T b) const {
    uint64_t by = raw(b);
    return by >= static_cast<uint64_t>(bits) ? T{0} : cut(raw(a) >> by);
  }
  T shift_right_arithmetic(T a, T b) const {
    uint64_t by = std::min<uint64_t>(raw(b), bits - 1);
    return cut(static_cast<uint64_t>(as_signed(a) >> by));
  }
};

[[noreturn]] void no_meaning(const ElementOp& op) {
  throw Error(ErrorKind::kUnsupported,
              std::string(op_name(op.opcode)) + " of " + std::string(dtype_name(op.type)) + " has no meaning");
}

template <class T>
void integers(const ElementOp& op, int64_t n, const void* const* in, void* out) {
  // pred is an integer here: its extrema are or / and, its order is that of 0 and 1.
  const Integer<T> k{is_pred(op.type) ? 8 : dtype_bits(op.type)};
  auto wide = [](T v) { return static_cast<uint64_t>(v); };
  switch (op.opcode) {
    case Opcode::kAdd:
      if (is_pred(op.type)) return map2<T>(n, in, out, [](T a, T b) { return a | b; });
      return map2<T>(n, in, out, [&](T a, T b) { return k.cut(wide(a) + wide(b)); });
    case Opcode::kSubtract: return map2<T>(n, in, out, [&](T a, T b) { return k.cut(wide(a) - wide(b)); });
    case Opcode::kMultiply: return map2<T>(n, in, out, [&](T a, T b) { return k.cut(wide(a) * wide(b)); });
    case Opcode::kDivide: return map2<T>(n, in, out, [&](T a, T b) { return k.divide(a, b); });
    case Opcode::kRemainder: return map2<T>(n, in, out, [&](T a, T b) { return k.remainder(a, b); });
    case Opcode::kPower: return map2<T>(n, in, out, [&](T a, T b) { return k.power(a, b); });
    case Opcode::kMulHi: return map2<T>(n, in, out, [&](T a, T b) { return k.high_product(a, b); });
    case Opcode::kMaximum: return map2<T>(n, in, out, [](T a, T b) { return std::max(a, b); });
    case Opcode::kMinimum: return map2<T>(n, in, out, [](T a, T b) { return std::min(a, b); });
    case Opcode::kAnd: return map2<T>(n, in, out, [](T a, T b) { return a & b; });
    case Opcode::kOr: return map2<T>(n, in, out, [](T a, T b) { return a | b; });
    case Opcode::kXor: return map2<T>(n, in, out, [](T a, T b) { return a ^ b; });
    case Opcode::kNot:
      if (is_pred(op.type)) return map1<T>(n, in, out, [](T a) { return a == 0; });
      return map1<T>(n, in, out, [&](T a) { return k.cut(~wide(a)); });
    case Opcode::kShiftLeft: return map2<T>(n, in, out, [&](T a, T b) { return k.shift_left(a, b); });
    case Opcode::kShiftRightLogical: return map2<T>(n, in, out, [&](T a, T b) { return k.shift_right_logical(a, b); });
    case Opcode::kShiftRightArithmetic:
      return map2<T>(n, in, out, [&](T a, T b) { return k.shift_right_arithmetic(a, b); });
    case Opcode::kNegate: return map1<T>(n, in, out, [&](T a) { return k.cut(-wide(a)); });
    case Opcode::kAbs: return map1<T>(n, in, out, [&](T a) { return k.as_signed(a) < 0 ? k.cut(-wide(a)) : a; });
    case Opcode::kSign: return map1<T>(n, in, out, [&](T a) { return static_cast<T>((a > 0) - (a < T{0})); });
    case Opcode::kPopcnt:
      return map1<T>(n, in, out, [&](T a) { return k.cut(static_cast<uint64_t>(std::popcount(k.raw(a)))); });
    case Opcode::kClz:
      return map1<T>(n, in, out,
                     [&](T a) { return k.cut(static_cast<uint64_t>(std::countl_zero(k.raw(a)) - (64 - k.bits))); });
    case Opcode::kClamp: {
      const T *low = static_cast<const T*>(in[0]), *x = static_cast<const T*>(in[1]),
              *high = static_cast<const T*>(in[2]);
      T* r = static_cast<T*>(out);
      for (int64_t i = 0; i < n; ++i) r[i] = std::min(std::max(low[i], x[i]), high[i]);
      return;
    }
    case Opcode::kCompare: return map2<T, uint8_t>(n, in, out, [&](T a, T b) { return holds(op.direction, a, b); });
    default: no_meaning(op);
  }
}

template <class T>
void select(int64_t n, const void* const* in, void* out) {
  const uint8_t* p = static_cast<const uint8_t*>(in[0]);
  const T *t = static_cast<const T*>(in[1]), *f = static_cast<const T*>(in[2]);
  T* r = static_cast<T*>(out);
  for (int64_t i = 0; i < n; ++i) r[i] = p[i] ? t[i] : f[i];
}

struct Bits128 {
  uint64_t low, high;
};

void select_by_width(DType type, int64_t n, const void* const* in, void* out) {
  switch (dtype_bytes(type)) {
    case 1: return select<uint8_t>(n, in, out);
    case 2: return select<uint16_t>(n, in, out);
    case 4: return select<uint32_t>(n, in, out);
    case 8: return select<uint64_t>(n, in, out);
    default: return select<Bits128>(n, in, out);
  }
}

// Total order of 16-bit floats on their bits; the 8-bit formats keep theirs when decoded.
void total_order_16(Direction direction, int64_t n, const void* const* in, void* out) {
  auto key = [](uint16_t bits) {
    int16_t b = static_cast<int16_t>(bits);
    return b < 0 ? static_cast<int16_t>(b ^ 0x7FFF) : b;
  };
  map2<uint16_t, uint8_t>(n, in, out,
                          [&](uint16_t a, uint16_t b) { return holds<int16_t>(direction, key(a), key(b)); });
}

void apply_narrow(const ElementOp& op, int64_t n, const void* const* in, void* out) {
  constexpr int64_t kBlock = 256;
  float buffers[3][kBlock], result[kBlock];
  ElementOp wide = op;
  wide.type = DType::kF32;
  const bool narrow_result = is_narrow_float(op.result);
  if (narrow_result) wide.result = DType::kF32;
  const int width = dtype_bytes(op.type), result_width = dtype_bytes(op.result);
  const int arity = op_info(op.opcode).arity;
  for (int64_t at = 0; at < n; at += kBlock) {
    const int64_t count = std::min(kBlock, n - at);
    const void* inputs[3] = {};
    for (int i = 0; i < arity; ++i) {
      decode_narrow(op.type, count, static_cast<const std::byte*>(in[i]) + at * width, buffers[i]);
      inputs[i] = buffers[i];
    }
    std::byte* target = static_cast<std::byte*>(out) + at * result_width;
    apply_float(wide, count, inputs, narrow_result ? static_cast<void*>(result) : target);
    if (narrow_result) encode_narrow(op.result, count, result, target);
  }
}

}  // namespace

bool is_element_op(Opcode opcode) {
  switch (opcode) {
    case Opcode::kMap:
    case Opcode::kBitcastConvert: return false;
    case Opcode::kCopy: return true;
    default: return is_elementwise(opcode);
  }
}

ElementOp element_op(const Instruction& instruction) {
  ElementOp op;
  op.opcode = instruction.opcode;
  op.type = instruction.operand(instruction.is(Opcode::kSelect) ? 1 : 0)->shape.type;
  op.result = instruction.shape.type;
  op.direction = instruction.attrs.direction;
  op.total_order = instruction.attrs.compare_type == CompareType::kTotalOrder;
  if (op.opcode == Opcode::kReducePrecision) {
    op.precision = math::reduced_precision(op.type, instruction.attrs.exponent_bits, instruction.attrs.mantissa_bits);
  }
  return op;
}

void apply_integer(const ElementOp& op, int64_t n, const void* const* in, void* out) {
  const bool sign = is_signed(op.type);
  switch (dtype_bytes(op.type)) {
    case 1: return sign ? integers<int8_t>(op, n, in, out) : integers<uint8_t>(op, n, in, out);
    case 2: return sign ? integers<int16_t>(op, n, in, out) : integers<uint16_t>(op, n, in, out);
    case 4: return sign ? integers<int32_t>(op, n, in, out) : integers<uint32_t>(op, n, in, out);
    default: return sign ? integers<int64_t>(op, n, in, out) : integers<uint64_t>(op, n, in, out);
  }
}

void apply(const ElementOp& op, int64_t n, const void* const* in, void* out) {
  switch (op.opcode) {
    case Opcode::kCopy:
      if (out != in[0] && n > 0) std::memcpy(out, in[0], n * dtype_bytes(op.type));
      return;
    case Opcode::kSelect: return select_by_width(op.type, n, in, out);
    case Opcode::kConvert: return convert(op.type, op.result, n, in[0], out);
    case Opcode::kStochasticConvert: return stochastic_convert(op.type, op.result, n, in[0], in[1], out);
    default: break;
  }
  if (is_complex(op.type)) return apply_complex(op, n, in, out);
  if (op.opcode == Opcode::kCompare && op.total_order && is_half(op.type)) {
    return total_order_16(op.direction, n, in, out);
  }
  if (is_narrow_float(op.type)) return apply_narrow(op, n, in, out);
  if (is_float(op.type)) return apply_float(op, n, in, out);
  apply_integer(op, n, in, out);
}

}  // namespace hlojit::eval
