// sort and topk.
//
// A merge sort of positions: stable, and it terminates with a permutation inside bounds whatever
// the comparator answers.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "compiler/eval/elementwise.h"
#include "compiler/eval/ops.h"
#include "compiler/eval/strided.h"

namespace hlojit::eval {
namespace {

// Sorts positions so that less(a, b) goes first; bottom-up, merging runs of doubling length.
template <class Less>
void merge_sort(Ints& order, Less&& less) {
  Ints merged(order.size());
  const size_t n = order.size();
  for (size_t run = 1; run < n; run *= 2) {
    for (size_t begin = 0; begin < n; begin += 2 * run) {
      const size_t middle = std::min(begin + run, n), end = std::min(begin + 2 * run, n);
      size_t a = begin, b = middle;
      for (size_t at = begin; at < end; ++at) {
        const bool right = b < end && (a == middle || less(order[b], order[a]));
        merged[at] = right ? order[b++] : order[a++];
      }
    }
    order.swap(merged);
  }
}

Literal sort(const Instruction& op, Operands in, const RunComputation& run) {
  const Ints& dims = in[0]->shape().dims;
  const int64_t along = op.attrs.dimensions.at(0);
  const int64_t n = dims[along];
  const Ints strides = row_major_strides(dims);
  const int64_t step = strides[along];

  std::vector<Literal> results;
  for (size_t i = 0; i < in.size(); ++i) {
    results.emplace_back(op.shape.is_tuple() ? op.shape.elements[i] : op.shape);
  }
  ScalarFunction comparator(*op.to_apply(), run);
  std::vector<const void*> arguments(2 * in.size());
  Ints others = dims;
  others[along] = 1;
  const Ints none(dims.size(), 0);
  for_each_offset(others, strides, none, [&](int64_t base, int64_t) {
    Ints order(n);
    std::iota(order.begin(), order.end(), 0);
    merge_sort(order, [&](int64_t a, int64_t b) {
      for (size_t i = 0; i < in.size(); ++i) {
        const int width = dtype_bytes(in[i]->shape().type);
        arguments[2 * i] = in[i]->bytes().data() + (base + a * step) * width;
        arguments[2 * i + 1] = in[i]->bytes().data() + (base + b * step) * width;
      }
      uint8_t answer = 0;
      void* target = &answer;
      comparator.run(1, arguments.data(), &target);
      return answer != 0;
    });
    for (size_t i = 0; i < in.size(); ++i) {
      const int width = dtype_bytes(in[i]->shape().type);
      for (int64_t k = 0; k < n; ++k) {
        std::memcpy(results[i].bytes().data() + (base + k * step) * width,
                    in[i]->bytes().data() + (base + order[k] * step) * width, width);
      }
    }
  });
  return op.shape.is_tuple() ? Literal::tuple(std::move(results)) : std::move(results[0]);
}

// The k largest (or smallest) along the last dimension; ties keep the lower index first. Floats in total order, as
// their bits are: a NaN is greater than all others or, with its sign set, less, and by its payload; 0 is greater than
// -0.
Literal top_k(const Instruction& op, Operands in) {
  const Literal& operand = *in[0];
  const Shape& shape = operand.shape();
  const int64_t n = shape.dims.back(), k = op.attrs.k;
  const int64_t rows = product(std::span(shape.dims).first(shape.dims.size() - 1));
  const int width = dtype_bytes(shape.type);
  Literal values(op.shape.elements.at(0)), places(op.shape.elements.at(1));
  const bool largest = op.attrs.largest;
  ElementOp compare{
      .opcode = Opcode::kCompare, .type = shape.type, .result = DType::kPred, .direction = Direction::kGt};
  compare.total_order = is_float(shape.type);
  auto greater = [&](int64_t a, int64_t b) {
    const void* both[] = {operand.bytes().data() + a * width, operand.bytes().data() + b * width};
    uint8_t answer = 0;
    apply(compare, 1, both, &answer);
    return answer != 0;
  };
  for (int64_t row = 0; row < rows; ++row) {
    Ints order(n);
    std::iota(order.begin(), order.end(), row * n);
    merge_sort(order, [&](int64_t a, int64_t b) { return largest ? greater(a, b) : greater(b, a); });
    for (int64_t i = 0; i < k; ++i) {
      std::memcpy(values.bytes().data() + (row * k + i) * width, operand.bytes().data() + order[i] * width, width);
      places.set_int(row * k + i, order[i] - row * n);
    }
  }
  std::vector<Literal> both;
  both.push_back(std::move(values));
  both.push_back(std::move(places));
  return Literal::tuple(std::move(both));
}

constexpr Row kOps[] = {
    {Opcode::kSort, [](const Call& c) { return sort(c.op, c.in, c.run); }},
    {Opcode::kTopK, [](const Call& c) { return top_k(c.op, c.in); }},
};

}  // namespace

std::span<const Row> order_ops() { return kOps; }

}  // namespace hlojit::eval
