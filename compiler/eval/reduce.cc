// reduce: for a block of results at a time, one after the other along the reduced dimensions, in
// row-major order of the operand.
//
// That order is the one non-associative and index-tracking reducers are defined by. Sums, products
// and extrema of floats, whose order is free, are kept in f64 and rounded once at the end; f64 itself, which nothing is
// wider than, drifts less as they are made in parts.
#include <algorithm>
#include <cstring>

#include "compiler/eval/ops.h"
#include "compiler/eval/strided.h"
#include "compiler/ir/combining.h"

namespace hlojit::eval {
namespace {

constexpr int64_t kBlock = 256;
constexpr int64_t kPart = 128;  // terms

/// A computation that combines one set of arrays with another, in place.
struct Step {
  std::vector<const void*> arguments;
  std::vector<void*> targets;

  using Arrays = std::vector<std::vector<std::byte>>;
  Step(Arrays& into, const Arrays& with) {
    for (auto& a : into) arguments.push_back(a.data()), targets.push_back(a.data());
    for (const auto& a : with) arguments.push_back(a.data());
  }
};

// lane l of out = element source[base[l] + offset], bytes as they are.
void collect(int width, const std::byte* source, std::span<const int64_t> base, int64_t offset, std::byte* out) {
  auto go = [&]<class T>(T) {
    const T* from = reinterpret_cast<const T*>(source) + offset;
    T* to = reinterpret_cast<T*>(out);
    for (size_t lane = 0; lane < base.size(); ++lane) to[lane] = from[base[lane]];
  };
  switch (width) {
    case 1: return go(uint8_t{});
    case 2: return go(uint16_t{});
    case 4: return go(uint32_t{});
    case 8: return go(uint64_t{});
    default:
      for (size_t lane = 0; lane < base.size(); ++lane) {
        std::memcpy(out + lane * width, source + (base[lane] + offset) * width, width);
      }
  }
}

Literal reduce(const Instruction& op, Operands in, const RunComputation& run) {
  const size_t count = in.size() / 2;
  const Ints& dims = in[0]->shape().dims;
  const Ints strides = row_major_strides(dims);

  Ints kept_dims, kept_strides, reduced_dims, reduced_strides;
  for (size_t d = 0; d < dims.size(); ++d) {
    const bool reduced = std::ranges::find(op.attrs.dimensions, static_cast<int64_t>(d)) != op.attrs.dimensions.end();
    (reduced ? reduced_dims : kept_dims).push_back(dims[d]);
    (reduced ? reduced_strides : kept_strides).push_back(strides[d]);
  }

  ScalarFunction combine(*op.to_apply(), run);
  const bool wide = combine.is_plain_float();
  if (wide) combine.widen_to_f64();
  const bool in_parts = wide && combining_op(*op.to_apply());

  std::vector<Literal> results;
  for (size_t i = 0; i < count; ++i) {
    results.emplace_back(op.shape.is_tuple() ? op.shape.elements[i] : op.shape);
  }

  Ints base;
  int64_t first = 0;
  Step::Arrays sums(count), parts(count), values(count), raw(count);
  for (auto* arrays : {&sums, &parts, &values, &raw}) {
    for (auto& a : *arrays) a.resize(kBlock * 16);
  }
  const Step next(sums, values), next_of_part(parts, values), add_part(sums, parts);
  auto combined = [&](const Step& step) { combine.run(std::ssize(base), step.arguments.data(), step.targets.data()); };
  auto run_block = [&] {
    const int64_t n = static_cast<int64_t>(base.size());
    for (size_t i = 0; i < count; ++i) {
      const Literal& init = *in[count + i];
      const int width = dtype_bytes(combine.result_type(i));
      convert(init.shape().type, combine.result_type(i), 1, init.bytes().data(), sums[i].data());
      for (int64_t lane = 1; lane < n; ++lane) {
        std::memcpy(sums[i].data() + lane * width, sums[i].data(), width);
      }
    }
    const Ints none(reduced_dims.size(), 0);
    int64_t in_part = 0;
    for_each_offset(reduced_dims, reduced_strides, none, [&](int64_t offset, int64_t) {
      for (size_t i = 0; i < count; ++i) {
        const DType type = in[i]->shape().type;
        const DType parameter = combine.parameter_type(count + i);
        std::byte* gathered = type == parameter ? values[i].data() : raw[i].data();
        collect(dtype_bytes(type), in[i]->bytes().data(), base, offset, gathered);
        if (type != parameter) convert(type, parameter, n, gathered, values[i].data());
      }
      if (!in_parts) return combined(next);
      if (in_part == 0)
        std::ranges::copy(values, parts.begin());
      else
        combined(next_of_part);
      if (++in_part < kPart) return;
      combined(add_part);
      in_part = 0;
    });
    if (in_part > 0) combined(add_part);
    for (size_t i = 0; i < count; ++i) {
      const DType type = results[i].shape().type;
      convert(combine.result_type(i), type, n, sums[i].data(), results[i].bytes().data() + first * dtype_bytes(type));
    }
    first += n;
    base.clear();
  };
  const Ints none(kept_dims.size(), 0);
  for_each_offset(kept_dims, kept_strides, none, [&](int64_t offset, int64_t) {
    base.push_back(offset);
    if (static_cast<int64_t>(base.size()) == kBlock) run_block();
  });
  if (!base.empty()) run_block();
  return op.shape.is_tuple() ? Literal::tuple(std::move(results)) : std::move(results[0]);
}

constexpr Row kOps[] = {
    {Opcode::kReduce, [](const Call& c) { return reduce(c.op, c.in, c.run); }},
};

}  // namespace

std::span<const Row> reduce_ops() { return kOps; }

}  // namespace hlojit::eval
