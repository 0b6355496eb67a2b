// Data movement: each op is one strided copy, or a few.
#include <algorithm>
#include <cstring>

#include "compiler/eval/ops.h"
#include "compiler/eval/strided.h"
#include "layout/index.h"

namespace hlojit::eval {
namespace {

int width_of(const Literal& literal) { return dtype_bytes(literal.shape().type); }

// Calls f(element, bit, bits): row-major number of an element, where it lies in the buffer of the
// shape's layout, how many bits it takes there.
template <class F>
void walk_memory(const Shape& shape, F f) {
  const int64_t bits = element_bits(shape);
  const Ints strides = row_major_strides(shape.dims);
  for_each_in_memory_order(shape, [&](std::span<const int64_t> index, int64_t position) {
    int64_t element = 0;
    for (size_t d = 0; d < index.size(); ++d) element += index[d] * strides[d];
    f(element, 8 * shape.layout.metadata_prefix_bytes + position * bits, static_cast<int>(bits));
  });
}

void copy_bits(const std::byte* from, int64_t from_bit, std::byte* to, int64_t to_bit, int bits) {
  if (bits % 8 == 0) {
    std::memcpy(to + to_bit / 8, from + from_bit / 8, bits / 8);
    return;
  }
  for (int i = 0; i < bits; ++i, ++from_bit, ++to_bit) {
    const std::byte bit = from[from_bit / 8] >> from_bit % 8 & std::byte{1};
    to[to_bit / 8] |= bit << to_bit % 8;
  }
}

// result[index] = operand[base + index . strides]
Literal view(const Instruction& op, const Literal& operand, int64_t base, const Ints& strides) {
  Literal result(op.shape);
  copy_strided(width_of(operand), op.shape.dims, {result.bytes().data(), 0, row_major_strides(op.shape.dims)},
               {operand.bytes().data(), base, strides});
  return result;
}

// Start indices, one scalar operand a dimension or one vector, clamped so that the box fits.
Ints clamped_starts(Operands indices, std::span<const int64_t> dims, std::span<const int64_t> box) {
  Ints starts(dims.size());
  for (size_t d = 0; d < dims.size(); ++d) {
    const bool vector = indices.size() == 1 && indices[0]->shape().rank() == 1;
    const Literal& index = vector ? *indices[0] : *indices[d];
    int64_t start = index.as_int(vector ? static_cast<int64_t>(d) : 0);
    // as_int wraps u64 values above 2^63: they lie beyond any dimension.
    if (index.shape().type == DType::kU64 && start < 0) start = dims[d];
    starts[d] = std::clamp<int64_t>(start, 0, dims[d] - box[d]);
  }
  return starts;
}

int64_t offset_of(const Ints& index, const Ints& strides) {
  int64_t offset = 0;
  for (size_t d = 0; d < index.size(); ++d) offset += index[d] * strides[d];
  return offset;
}

// Counted in integers, then converted (bf16 rounds 299 to 300, u8 wraps at 256).
Literal iota(const Instruction& op) {
  const int64_t along = op.attrs.dimensions.at(0);
  const int64_t n = op.shape.dims[along];
  Literal counts(Shape::array(DType::kS64, {n}));
  for (int64_t i = 0; i < n; ++i) counts.data<int64_t>()[i] = i;
  Literal values(Shape::array(op.shape.type, {n}));
  convert(DType::kS64, op.shape.type, n, counts.bytes().data(), values.bytes().data());
  Ints strides(op.shape.dims.size(), 0);
  strides[along] = 1;
  return view(op, values, 0, strides);
}

// An operand dimension of size 1 may stand for a larger result dimension.
Literal broadcast(const Instruction& op, Operands in) {
  const Shape& from = in[0]->shape();
  const Ints strides = row_major_strides(from.dims);
  Ints result_strides(op.shape.dims.size(), 0);
  for (size_t i = 0; i < from.dims.size(); ++i) {
    if (from.dims[i] != 1) result_strides[op.attrs.dimensions[i]] = strides[i];
  }
  return view(op, *in[0], 0, result_strides);
}

Literal reshape(const Instruction& op, Operands in) {
  Literal result(op.shape);
  std::ranges::copy(in[0]->bytes(), result.bytes().begin());
  return result;
}

// The bytes of the operand in its layout, read under the result's shape and layout. Padding that
// the operand does not define reads as zero.
Literal bitcast(const Instruction& op, Operands in) {
  const Shape& from = op.operand(0)->shape;
  std::vector<std::byte> memory(std::max(physical_size(from), physical_size(op.shape)));
  const Literal& operand = *in[0];
  Literal result(op.shape);
  walk_memory(from, [&](int64_t element, int64_t bit, int bits) {
    copy_bits(operand.bytes().data() + element * width_of(operand), 0, memory.data(), bit, bits);
  });
  walk_memory(op.shape, [&](int64_t element, int64_t bit, int bits) {
    copy_bits(memory.data(), bit, result.bytes().data() + element * width_of(result), 0, bits);
  });
  if (is_signed(op.shape.type) && dtype_bits(op.shape.type) < 8) {
    const int up = 8 - dtype_bits(op.shape.type);
    for (int8_t& v : result.data<int8_t>()) v = static_cast<int8_t>(static_cast<int8_t>(v << up) >> up);
  }
  return result;
}

Literal transpose(const Instruction& op, Operands in) {
  const Ints strides = row_major_strides(in[0]->shape().dims);
  Ints permuted(strides.size());
  for (size_t i = 0; i < strides.size(); ++i) permuted[i] = strides[op.attrs.dimensions[i]];
  return view(op, *in[0], 0, permuted);
}

Literal slice(const Instruction& op, Operands in) {
  Ints strides = row_major_strides(in[0]->shape().dims);
  int64_t base = 0;
  for (size_t d = 0; d < strides.size(); ++d) {
    base += op.attrs.slice[d].start * strides[d];
    strides[d] *= op.attrs.slice[d].stride;
  }
  return view(op, *in[0], base, strides);
}

Literal reverse(const Instruction& op, Operands in) {
  Ints strides = row_major_strides(op.shape.dims);
  int64_t base = 0;
  for (int64_t d : op.attrs.dimensions) {
    base += (op.shape.dims[d] - 1) * strides[d];
    strides[d] = -strides[d];
  }
  return view(op, *in[0], base, strides);
}

Literal concatenate(const Instruction& op, Operands in) {
  const int64_t along = op.attrs.dimensions.at(0);
  const Ints strides = row_major_strides(op.shape.dims);
  Literal result(op.shape);
  int64_t at = 0;
  for (const Literal* piece : in) {
    const Ints& dims = piece->shape().dims;
    copy_strided(width_of(*piece), dims, {result.bytes().data(), at * strides[along], strides},
                 {piece->bytes().data(), 0, row_major_strides(dims)});
    at += dims[along];
  }
  return result;
}

// Operand element i lands at low + i * (interior + 1); negative edges cut elements off.
Literal pad(const Instruction& op, Operands in) {
  const Literal& operand = *in[0];
  const Ints& dims = operand.shape().dims;
  Literal result(op.shape);
  const int width = width_of(operand);
  const Ints none(op.shape.dims.size(), 0);
  Ints to_strides = row_major_strides(op.shape.dims);
  copy_strided(width, op.shape.dims, {result.bytes().data(), 0, to_strides}, {in[1]->bytes().data(), 0, none});
  const Ints from_strides = row_major_strides(dims);
  Ints box(dims.size());
  int64_t to = 0, from = 0;
  for (size_t d = 0; d < dims.size(); ++d) {
    const PadDim& p = op.attrs.padding[d];
    const int64_t step = p.interior + 1;
    const int64_t first = p.low >= 0 ? 0 : (-p.low + step - 1) / step;
    const int64_t room = op.shape.dims[d] - p.low;  // positions before the end of the result
    const int64_t last = room <= 0 ? 0 : std::min(dims[d], (room + step - 1) / step);
    box[d] = std::max<int64_t>(last - first, 0);
    to += (p.low + first * step) * to_strides[d];
    from += first * from_strides[d];
    to_strides[d] *= step;
  }
  copy_strided(width, box, {result.bytes().data(), to, to_strides}, {operand.bytes().data(), from, from_strides});
  return result;
}

Literal dynamic_slice(const Instruction& op, Operands in) {
  const Ints& dims = in[0]->shape().dims;
  const Ints strides = row_major_strides(dims);
  const Ints starts = clamped_starts(in.subspan(1), dims, op.attrs.dynamic_slice_sizes);
  return view(op, *in[0], offset_of(starts, strides), strides);
}

Literal dynamic_update_slice(const Instruction& op, Operands in) {
  const Ints& box = in[1]->shape().dims;
  const Ints strides = row_major_strides(op.shape.dims);
  const Ints starts = clamped_starts(in.subspan(2), op.shape.dims, box);
  Literal result = reshape(op, in);
  copy_strided(width_of(result), box, {result.bytes().data(), offset_of(starts, strides), strides},
               {in[1]->bytes().data(), 0, row_major_strides(box)});
  return result;
}

// ragged-all-to-all of a device with itself: slices of dimension 0 of the input, by offset and size, land at their
// output offsets. As XLA's decomposition has it, offsets in front of an array are 0, rows behind the input are zeros,
// and rows behind the result are left out.
Literal ragged_all_to_all_alone(const Instruction& op, Operands in) {
  const Literal& input = *in[0];
  Literal result = reshape(op, in.subspan(1));
  const int64_t rows_in = input.shape().dims.at(0), rows_out = op.shape.dims.at(0);
  if (rows_out == 0) return result;
  const size_t row = result.bytes().size() / rows_out;
  for (int64_t slice = 0; slice < in[2]->shape().element_count(); ++slice) {
    const int64_t size = in[3]->as_int(slice), to = in[4]->as_int(slice), first = std::max<int64_t>(to, 0);
    const int64_t from = std::max<int64_t>(in[2]->as_int(slice), 0);
    for (int64_t r = first; r < rows_out && r - to < size; ++r) {
      std::byte* at = result.bytes().data() + r * row;
      if (from < rows_in - (r - first))
        std::memcpy(at, input.bytes().data() + (from + r - first) * row, row);
      else
        std::memset(at, 0, row);
    }
  }
  return result;
}

constexpr Row kOps[] = {
    {Opcode::kBitcast, [](const Call& c) { return bitcast(c.op, c.in); }},
    {Opcode::kBroadcast, [](const Call& c) { return broadcast(c.op, c.in); }},
    {Opcode::kConcatenate, [](const Call& c) { return concatenate(c.op, c.in); }},
    {Opcode::kDynamicSlice, [](const Call& c) { return dynamic_slice(c.op, c.in); }},
    {Opcode::kDynamicUpdateSlice, [](const Call& c) { return dynamic_update_slice(c.op, c.in); }},
    {Opcode::kIota, [](const Call& c) { return iota(c.op); }},
    {Opcode::kPad, [](const Call& c) { return pad(c.op, c.in); }},
    {Opcode::kRaggedAllToAll, [](const Call& c) { return ragged_all_to_all_alone(c.op, c.in); }},
    {Opcode::kReshape, [](const Call& c) { return reshape(c.op, c.in); }},
    {Opcode::kReverse, [](const Call& c) { return reverse(c.op, c.in); }},
    {Opcode::kSlice, [](const Call& c) { return slice(c.op, c.in); }},
    {Opcode::kTranspose, [](const Call& c) { return transpose(c.op, c.in); }},
};

}  // namespace

std::span<const Row> moves_ops() { return kOps; }

}  // namespace hlojit::eval
