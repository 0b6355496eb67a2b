// Elementwise ops on runs of elements: the meaning of one op for one type, as a loop over n dense
// elements. Whole arrays, the scalar computations of reduce and sort, and folding all end here.
#pragma once

#include <cstdint>

#include "compiler/ir/module.h"
#include "compiler/math/convert.h"

namespace hlojit::eval {

/// An elementwise op with its types: all that its loop depends on.
struct ElementOp {
  Opcode opcode = Opcode::kCopy;
  DType type = DType::kInvalid;  ///< of the operands (select: of the values)
  DType result = DType::kInvalid;
  Direction direction = Direction::kEq;
  bool total_order = false;
  math::Precision precision{};
};

/// True for the ops that `apply` knows: result[i] depends on operand[i] alone and the widths of
/// operand and result elements do not matter. Not: map, bitcast-convert.
bool is_element_op(Opcode opcode);
/// The description of an instruction for which is_element_op holds.
ElementOp element_op(const Instruction& instruction);

/// out[i] = op(in[0][i], in[1][i], ...) for i in [0, n). Operands and result are dense, of the
/// op's types (select: in[0] is pred), and do not overlap unless they are the same pointer.
void apply(const ElementOp& op, int64_t n, const void* const* in, void* out);

/// Element conversion (`convert`) of n elements.
void convert(DType from, DType to, int64_t n, const void* in, void* out);
/// `stochastic-convert` to signed integers: |x| is rounded up where the random bits, unsigned and
/// as wide as x, lie below its fraction. Throws Error(kUnsupported) for other targets.
void stochastic_convert(DType from, DType to, int64_t n, const void* in, const void* random, void* out);
/// Narrow floats (below 32 bits) to f32, exact, and back with one rounding.
void decode_narrow(DType type, int64_t n, const void* in, float* out);
void encode_narrow(DType type, int64_t n, const float* in, void* out);

/// x DIRECTION y.
template <class T>
bool holds(Direction direction, T x, T y) {
  switch (direction) {
    case Direction::kEq: return x == y;
    case Direction::kNe: return x != y;
    case Direction::kGe: return x >= y;
    case Direction::kGt: return x > y;
    case Direction::kLe: return x <= y;
    case Direction::kLt: return x < y;
  }
  return false;
}

// The loops by class of type; called by apply only.
void apply_integer(const ElementOp& op, int64_t n, const void* const* in, void* out);
void apply_float(const ElementOp& op, int64_t n, const void* const* in, void* out);
void apply_complex(const ElementOp& op, int64_t n, const void* const* in, void* out);

}  // namespace hlojit::eval
