// gather and scatter: boxes of an operand at starting points read from an index array.
#include <algorithm>

#include "compiler/eval/ops.h"
#include "compiler/eval/strided.h"
#include "layout/lists.h"

namespace hlojit::eval {
namespace {

// Sizes of the index array without the dimension that holds the index vectors.
Ints batch_dims(const Shape& indices, int64_t index_vector_dim) {
  Ints dims;
  for (int64_t d = 0; d < indices.rank(); ++d) {
    if (d != index_vector_dim) dims.push_back(indices.dims[d]);
  }
  return dims;
}

// Where the box of batch position `batch` starts in the operand; not clamped.
Ints start_of(const Literal& indices, std::span<const int64_t> batch, int64_t index_vector_dim, const Ints& index_map,
              const Ints& operand_batching, const Ints& indices_batching, int64_t operand_rank) {
  const Shape& shape = indices.shape();
  const Ints strides = row_major_strides(shape.dims);
  int64_t base = 0;
  size_t next = 0;
  for (int64_t d = 0; d < shape.rank(); ++d) {
    if (d != index_vector_dim) base += batch[next++] * strides[d];
  }
  const int64_t step = index_vector_dim < shape.rank() ? strides[index_vector_dim] : 0;
  Ints start(operand_rank, 0);
  for (size_t k = 0; k < index_map.size(); ++k) {
    const int64_t at = base + static_cast<int64_t>(k) * step;
    int64_t value = indices.as_int(at);
    // Unsigned indices beyond the signed range lie past every dimension.
    if (shape.type == DType::kU64 && value < 0) value = std::numeric_limits<int64_t>::max() / 2;
    start[index_map[k]] = value;
  }
  for (size_t b = 0; b < operand_batching.size(); ++b) {
    // Positions in start_indices count its dimensions with the index vector's left out.
    const int64_t d = indices_batching[b];
    start[operand_batching[b]] = batch[d < index_vector_dim ? d : d - 1];
  }
  return start;
}

Literal gather(const Instruction& op, Operands in) {
  const GatherDims& g = op.attrs.gather;
  const Literal& operand = *in[0];
  const Ints& dims = operand.shape().dims;
  const Ints strides = row_major_strides(dims);
  const Ints result_strides = row_major_strides(op.shape.dims);
  Literal result(op.shape);

  // Strides of the box's dimensions in the result; collapsed and batching ones have size 1.
  Ints box_strides(dims.size(), 0);
  size_t next = 0;
  for (size_t d = 0; d < dims.size(); ++d) {
    const int64_t dim = static_cast<int64_t>(d);
    if (contains(g.collapsed_slice_dims, dim) || contains(g.operand_batching_dims, dim)) continue;
    box_strides[d] = result_strides[g.offset_dims[next++]];
  }
  Ints batch_strides;
  for (int64_t d = 0; d < op.shape.rank(); ++d) {
    if (!contains(g.offset_dims, d)) batch_strides.push_back(result_strides[d]);
  }

  for_each_index(batch_dims(in[1]->shape(), g.index_vector_dim), [&](std::span<const int64_t> batch) {
    const Ints start = start_of(*in[1], batch, g.index_vector_dim, g.start_index_map, g.operand_batching_dims,
                                g.start_indices_batching_dims, operand.shape().rank());
    int64_t from = 0, to = 0;
    for (size_t d = 0; d < dims.size(); ++d) {
      from += std::clamp<int64_t>(start[d], 0, dims[d] - g.slice_sizes[d]) * strides[d];
    }
    for (size_t d = 0; d < batch.size(); ++d) to += batch[d] * batch_strides[d];
    copy_strided(dtype_bytes(op.shape.type), g.slice_sizes, {result.bytes().data(), to, box_strides},
                 {operand.bytes().data(), from, strides});
  });
  return result;
}

// Updates are applied in their row-major order, current value first, update second.
Literal scatter(const Instruction& op, Operands in, bool oob_window, const RunComputation& run) {
  const ScatterDims& s = op.attrs.scatter;
  const size_t count = in.size() / 2;
  const Literal& indices = *in[count];
  const Ints& dims = in[0]->shape().dims;
  const Ints strides = row_major_strides(dims);
  const Shape& updates = in[count + 1]->shape();
  const Ints update_strides = row_major_strides(updates.dims);

  std::vector<Literal> results;
  for (size_t i = 0; i < count; ++i) results.push_back(*in[i]);

  // The box of operand dimensions that a window covers, and its strides in the updates.
  Ints box(dims.size(), 1), box_strides(dims.size(), 0);
  size_t next = 0;
  for (size_t d = 0; d < dims.size(); ++d) {
    const int64_t dim = static_cast<int64_t>(d);
    if (contains(s.inserted_window_dims, dim) || contains(s.input_batching_dims, dim)) continue;
    const int64_t window = s.update_window_dims[next++];
    box[d] = updates.dims[window];
    box_strides[d] = update_strides[window];
  }
  Ints batch_strides;
  for (int64_t d = 0; d < updates.rank(); ++d) {
    if (!contains(s.update_window_dims, d)) batch_strides.push_back(update_strides[d]);
  }

  ScalarFunction combine(*op.to_apply(), run);
  std::vector<const void*> arguments(2 * count);
  std::vector<void*> targets(count);
  for_each_index(batch_dims(indices.shape(), s.index_vector_dim), [&](std::span<const int64_t> batch) {
    const Ints start =
        start_of(indices, batch, s.index_vector_dim, s.scatter_dims_to_operand_dims, s.input_batching_dims,
                 s.scatter_indices_batching_dims, static_cast<int64_t>(dims.size()));
    int64_t from = 0;
    for (size_t d = 0; d < batch.size(); ++d) from += batch[d] * batch_strides[d];
    if (oob_window) {
      for (size_t d = 0; d < dims.size(); ++d) {
        if (start[d] < 0 || start[d] > dims[d] - box[d]) return;
      }
    }
    for_each_index(box, [&](std::span<const int64_t> at) {
      int64_t target = 0, update = from;
      for (size_t d = 0; d < dims.size(); ++d) {
        // start may be anything; compare before adding so that nothing overflows.
        if (start[d] < -at[d] || start[d] >= dims[d] - at[d]) return;
        target += (start[d] + at[d]) * strides[d];
        update += at[d] * box_strides[d];
      }
      for (size_t i = 0; i < count; ++i) {
        const int width = dtype_bytes(results[i].shape().type);
        targets[i] = results[i].bytes().data() + target * width;
        arguments[i] = targets[i];
        arguments[count + i] = in[count + 1 + i]->bytes().data() + update * width;
      }
      combine.run(1, arguments.data(), targets.data());
    });
  });
  if (count == 1) return std::move(results[0]);
  return Literal::tuple(std::move(results));
}

constexpr Row kOps[] = {
    {Opcode::kGather, [](const Call& c) { return gather(c.op, c.in); }},
    {Opcode::kScatter, [](const Call& c) { return scatter(c.op, c.in, c.scatter_oob_window, c.run); }},
};

}  // namespace

std::span<const Row> gather_ops() { return kOps; }

}  // namespace hlojit::eval
