// Elementwise ops on whole arrays, bitcast-convert and map.
#include <algorithm>
#include <cstring>

#include "compiler/eval/ops.h"

namespace hlojit::eval {
namespace {

// n copies of a scalar's element.
std::vector<std::byte> splat(const Literal& scalar, int64_t n) {
  const size_t width = scalar.bytes().size();
  std::vector<std::byte> copies(width * n);
  for (int64_t i = 0; i < n; ++i) std::memcpy(copies.data() + i * width, scalar.bytes().data(), width);
  return copies;
}

}  // namespace

// Scalars stand for full arrays where clamp and select admit them.
Literal elementwise(const Instruction& op, Operands in) {
  Literal result(op.shape);
  const int64_t n = op.shape.element_count();
  std::vector<std::byte> expanded[3];
  const void* inputs[3] = {};
  for (size_t i = 0; i < in.size(); ++i) {
    inputs[i] = in[i]->bytes().data();
    if (in[i]->shape().is_scalar() && !op.shape.is_scalar()) {
      expanded[i] = splat(*in[i], n);
      inputs[i] = expanded[i].data();
    }
  }
  apply(element_op(op), n, inputs, result.bytes().data());
  return result;
}

namespace {

// Element 0 of the new minor dimension holds the low bits. One element a byte is the storage of
// sub-byte types, so that widths that are not whole bytes are packed and unpacked by hand.
Literal bitcast_convert(const Instruction& op, Operands in) {
  const DType from = in[0]->shape().type, to = op.shape.type;
  auto storage_bits = [](DType t) { return is_pred(t) ? 8 : dtype_bits(t); };
  const int from_bits = storage_bits(from), to_bits = storage_bits(to);
  Literal result(op.shape);
  auto truth = [&] {
    if (is_pred(to))
      std::ranges::replace_if(result.bytes(), [](std::byte b) { return b != std::byte{0}; }, std::byte{1});
  };
  if (from_bits >= 8 && to_bits >= 8) {
    std::ranges::copy(in[0]->bytes(), result.bytes().begin());
    truth();
    return result;
  }
  const std::byte* source = in[0]->bytes().data();
  std::byte* target = result.bytes().data();
  const int64_t bits = in[0]->shape().element_count() * from_bits;
  auto position = [](int64_t bit, int width) {  // byte and bit of a bit of the packed stream
    const int64_t element = bit / width, inside = bit % width;
    return std::pair{width >= 8 ? bit / 8 : element, width >= 8 ? bit % 8 : inside};
  };
  for (int64_t bit = 0; bit < bits; ++bit) {
    auto [from_byte, from_shift] = position(bit, from_bits);
    auto [to_byte, to_shift] = position(bit, to_bits);
    target[to_byte] |= (source[from_byte] >> from_shift & std::byte{1}) << to_shift;
  }
  if (is_signed(to) && to_bits < 8) {
    for (std::byte& b : result.bytes()) {
      const int up = 8 - to_bits;
      b = static_cast<std::byte>(static_cast<int8_t>(static_cast<uint8_t>(b) << up) >> up);
    }
  }
  truth();
  return result;
}

Literal map(const Instruction& op, Operands in, const RunComputation& run) {
  Literal result(op.shape);
  ScalarFunction function(*op.to_apply(), run);
  std::vector<const void*> inputs;
  for (const Literal* operand : in) inputs.push_back(operand->bytes().data());
  void* output = result.bytes().data();
  function.run(op.shape.element_count(), inputs.data(), &output);
  return result;
}

constexpr Row kOps[] = {
    {Opcode::kBitcastConvert, [](const Call& c) { return bitcast_convert(c.op, c.in); }},
    {Opcode::kMap, [](const Call& c) { return map(c.op, c.in, c.run); }},
};

}  // namespace

std::span<const Row> elementwise_array_ops() { return kOps; }

}  // namespace hlojit::eval
