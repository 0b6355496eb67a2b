// scan: the computation runs once for each slice along a dimension, handing its carries on; its
// other results are stacked along the same dimension.
#include <charconv>
#include <cstring>

#include "compiler/eval/ops.h"
#include "compiler/eval/strided.h"

namespace hlojit::eval {
namespace {

// Copies between slice number `at` of `whole` along `along` and `part`, whichever way.
void copy_slice(const Shape& shape, int64_t along, int64_t at, std::byte* to, const std::byte* from, bool into_whole) {
  const Ints strides = row_major_strides(shape.dims);
  Ints box = shape.dims;
  box[along] = 1;
  const Ints part = row_major_strides(box);
  const int64_t base = at * strides[along];
  const int width = dtype_bytes(shape.type);
  if (into_whole) {
    copy_strided(width, box, {to, base, strides}, {from, 0, part});
  } else {
    copy_strided(width, box, {to, 0, part}, {from, base, strides});
  }
}

Literal scan(const Instruction& op, Operands in, const RunComputation& run) {
  const int64_t along = op.attrs.dimensions.at(0);
  const int64_t length = in[0]->shape().dims[along];
  const std::string_view count = text_attribute(op.attrs, "num_carries");
  size_t carries = 0;
  std::from_chars(count.data(), count.data() + count.size(), carries);
  const bool reverse = text_attribute(op.attrs, "is_reverse") == "true";
  const size_t inputs = in.size() - carries;
  const Computation& body = *op.to_apply();

  std::vector<Literal> results;
  if (op.shape.is_tuple()) {
    for (const Shape& shape : op.shape.elements) results.emplace_back(shape);
  } else {
    results.emplace_back(op.shape);
  }
  const size_t outputs = results.size() - carries;
  std::vector<Literal> arguments;
  for (const Instruction* parameter : body.parameters()) arguments.emplace_back(parameter->shape);
  for (size_t c = 0; c < carries; ++c) arguments[inputs + c] = *in[inputs + c];

  for (int64_t step = 0; step < length; ++step) {
    const int64_t at = reverse ? length - 1 - step : step;
    for (size_t i = 0; i < inputs; ++i) {
      copy_slice(in[i]->shape(), along, at, arguments[i].bytes().data(), in[i]->bytes().data(), false);
    }
    Literal value = run(body, arguments);
    const bool tuple = value.shape().is_tuple();
    auto part = [&](size_t i) -> Literal& { return tuple ? value.elements()[i] : value; };
    for (size_t o = 0; o < outputs; ++o) {
      copy_slice(results[o].shape(), along, at, results[o].bytes().data(), part(o).bytes().data(), true);
    }
    for (size_t c = 0; c < carries; ++c) arguments[inputs + c] = std::move(part(outputs + c));
  }
  for (size_t c = 0; c < carries; ++c) {
    std::memcpy(results[outputs + c].bytes().data(), arguments[inputs + c].bytes().data(),
                results[outputs + c].bytes().size());
  }
  return op.shape.is_tuple() ? Literal::tuple(std::move(results)) : std::move(results[0]);
}

constexpr Row kOps[] = {
    {Opcode::kScan, [](const Call& c) { return scan(c.op, c.in, c.run); }},
};

}  // namespace

std::span<const Row> scan_ops() { return kOps; }

}  // namespace hlojit::eval
