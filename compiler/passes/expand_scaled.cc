// scaled-dot as a dot of its operands, each element multiplied by its block's scale. The products are those of
// the types that the oracle has, up to rounding: narrow elements and scales are exact in f32.
#include "compiler/passes/expansions.h"

namespace hlojit {
namespace {

/// A single bf16 scale stands for none.
bool is_no_scale(const Shape& scale) { return scale.type == DType::kBF16 && scale.element_count() == 1; }

Instruction* dequantised(Builder& b, Instruction* x, Instruction* scale, DType type) {
  const Ints dims = x->shape.dims;
  Instruction* wide = b.convert(x, type);
  if (is_no_scale(scale->shape) || x->shape.element_count() == 0) return wide;
  Ints split, blocks;
  for (size_t d = 0; d < dims.size(); ++d) {
    int64_t n = scale->shape.dims[d];
    blocks.push_back(static_cast<int64_t>(split.size()));
    split.push_back(n);
    split.push_back(dims[d] / n);
  }
  Instruction* factors = b.broadcast_in_dim(b.convert(scale, type), split, blocks);
  return b.binary(Opcode::kMultiply, wide, b.reshape(factors, dims));
}

}  // namespace

Instruction* expand_scaled_dot(Builder& b, const Instruction& op, const TargetInfo& target) {
  if (!is_float(op.shape.type)) return nullptr;
  DType type = op.shape.type == DType::kF64 ? DType::kF64 : DType::kF32;
  for (const Instruction* o : op.operands()) {
    if (!is_float(o->shape.type)) return nullptr;
    if (o->shape.type == DType::kF64) type = DType::kF64;
  }
  Attributes a;
  a.dot = op.attrs.dot;
  Instruction* x = dequantised(b, op.operand(0), op.operand(2), type);
  Instruction* y = dequantised(b, op.operand(1), op.operand(3), type);
  // Summed in the wider type, rounded once.
  Instruction* dot = b.op(Opcode::kDot, Shape::array(type, op.shape.dims), {x, y}, std::move(a));
  auto plain = [&](Builder& at, const Instruction& made) { return expand_dot(at, made, target); };
  return b.convert(expanded(b, dot, plain), op.shape.type);
}

}  // namespace hlojit
