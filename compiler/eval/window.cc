// reduce-window and select-and-scatter.
//
// A window position p = out * stride + k * rhs_dilate - low reads operand element p / lhs_dilate if
// p lies on one, else nothing: padding contributes nothing, the initial value enters once.
#include <algorithm>
#include <cstring>
#include <optional>

#include "compiler/eval/ops.h"
#include "compiler/eval/strided.h"

namespace hlojit::eval {
namespace {

constexpr int64_t kBlock = 256;

// Operand index along one dimension that output o sees at window position k.
std::optional<int64_t> window_index(const WindowDim& w, int64_t n, int64_t o, int64_t k) {
  const int64_t p = o * w.stride + k * w.rhs_dilate - w.pad_low;
  if (p < 0 || p % w.lhs_dilate != 0 || p / w.lhs_dilate >= n) return std::nullopt;
  return p / w.lhs_dilate;
}

// The one dimension along which every window begins at element 0 and grows by one element an
// output (cumulative sums), all other windows being single elements. Each result is then the one
// before it combined with the next element: the same operations in the same order, n of them.
std::optional<int64_t> prefix_dim(const std::vector<WindowDim>& window, const Ints& dims, const Ints& result_dims) {
  std::optional<int64_t> found;
  for (size_t d = 0; d < dims.size(); ++d) {
    const WindowDim& w = window[d];
    if (w.stride != 1 || w.lhs_dilate != 1 || w.rhs_dilate != 1) return std::nullopt;
    if (w.size == 1 && w.pad_low == 0 && w.pad_high == 0) continue;
    const int64_t n = dims[d];
    if (found || w.size != n || w.pad_low != n - 1 || w.pad_high != 0 || result_dims[d] != n) {
      return std::nullopt;
    }
    found = static_cast<int64_t>(d);
  }
  return found;
}

// Inputs in the reducer's types.
std::vector<std::vector<std::byte>> converted(Operands in, const ScalarFunction& combine) {
  std::vector<std::vector<std::byte>> arrays(in.size());
  for (size_t i = 0; i < in.size(); ++i) {
    const int64_t n = in[i]->shape().element_count();
    const DType type = combine.parameter_type(i);
    arrays[i].resize(n * dtype_bytes(type));
    convert(in[i]->shape().type, type, n, in[i]->bytes().data(), arrays[i].data());
  }
  return arrays;
}

struct Problem {
  const std::vector<WindowDim>& window;
  const Ints& dims;
  const Ints& result_dims;
  size_t count;
  ScalarFunction& combine;
  const std::vector<std::vector<std::byte>>& inputs;  // arrays, in the reducer's types
  const std::vector<std::vector<std::byte>>& inits;
  std::vector<std::vector<std::byte>>& sums;
  int width(size_t i) const { return dtype_bytes(combine.result_type(i)); }
};

void prefix(const Problem& p, int64_t along) {
  const Ints strides = row_major_strides(p.dims);
  const int64_t step = strides[along];
  std::vector<const void*> arguments(2 * p.count);
  std::vector<void*> targets(p.count);
  const int64_t total = product(p.dims);
  for (int64_t at = 0; at < total; ++at) {
    const bool first = at / step % p.dims[along] == 0;
    for (size_t i = 0; i < p.count; ++i) {
      targets[i] = p.sums[i].data() + at * p.width(i);
      arguments[i] = first ? p.inits[i].data() : p.sums[i].data() + (at - step) * p.width(i);
      arguments[p.count + i] = p.inputs[i].data() + at * p.width(i);
    }
    p.combine.run(1, arguments.data(), targets.data());
  }
}

// All windows of a block of outputs side by side; lanes whose window position lies in padding are
// left out of the step.
void blocks(const Problem& p) {
  const Ints strides = row_major_strides(p.dims);
  const int64_t total = product(p.result_dims);
  Ints window_sizes;
  for (const WindowDim& w : p.window) window_sizes.push_back(w.size);
  std::vector<Ints> outputs;
  std::vector<std::vector<std::byte>> sums(p.count), values(p.count);
  std::vector<const void*> arguments(2 * p.count);
  std::vector<void*> targets(p.count);
  for (size_t i = 0; i < p.count; ++i) {
    sums[i].resize(kBlock * 16);
    values[i].resize(kBlock * 16);
    arguments[i] = targets[i] = sums[i].data();
    arguments[p.count + i] = values[i].data();
  }
  int64_t first = 0;
  auto run_block = [&] {
    const int64_t lanes = static_cast<int64_t>(outputs.size());
    for (size_t i = 0; i < p.count; ++i) {
      for (int64_t lane = 0; lane < lanes; ++lane) {
        std::memcpy(p.sums[i].data() + (first + lane) * p.width(i), p.inits[i].data(), p.width(i));
      }
    }
    for_each_index(window_sizes, [&](std::span<const int64_t> k) {
      Ints active, source;
      for (int64_t lane = 0; lane < lanes; ++lane) {
        int64_t offset = 0;
        bool inside = true;
        for (size_t d = 0; d < p.dims.size() && inside; ++d) {
          auto index = window_index(p.window[d], p.dims[d], outputs[lane][d], k[d]);
          inside = index.has_value();
          if (inside) offset += *index * strides[d];
        }
        if (!inside) continue;
        active.push_back(first + lane);
        source.push_back(offset);
      }
      if (active.empty()) return;
      for (size_t i = 0; i < p.count; ++i) {
        const int w = p.width(i);
        for (size_t a = 0; a < active.size(); ++a) {
          std::memcpy(sums[i].data() + a * w, p.sums[i].data() + active[a] * w, w);
          std::memcpy(values[i].data() + a * w, p.inputs[i].data() + source[a] * w, w);
        }
      }
      p.combine.run(static_cast<int64_t>(active.size()), arguments.data(), targets.data());
      for (size_t i = 0; i < p.count; ++i) {
        const int w = p.width(i);
        for (size_t a = 0; a < active.size(); ++a) {
          std::memcpy(p.sums[i].data() + active[a] * w, sums[i].data() + a * w, w);
        }
      }
    });
    first += lanes;
    outputs.clear();
  };
  if (total == 0) return;
  for_each_index(p.result_dims, [&](std::span<const int64_t> o) {
    outputs.emplace_back(o.begin(), o.end());
    if (static_cast<int64_t>(outputs.size()) == kBlock) run_block();
  });
  if (!outputs.empty()) run_block();
}

Literal reduce_window(const Instruction& op, Operands in, const RunComputation& run) {
  const size_t count = in.size() / 2;
  const Shape& first = op.shape.is_tuple() ? op.shape.elements[0] : op.shape;
  ScalarFunction combine(*op.to_apply(), run);
  if (combine.is_plain_float()) combine.widen_to_f64();
  const auto inputs = converted(in.first(count), combine);
  const auto inits = converted(in.subspan(count), combine);

  std::vector<WindowDim> window = op.attrs.window;
  window.resize(first.dims.size());  // no window at all for rank 0
  std::vector<std::vector<std::byte>> sums(count);
  Problem problem{window, in[0]->shape().dims, first.dims, count, combine, inputs, inits, sums};
  for (size_t i = 0; i < count; ++i) sums[i].resize(first.element_count() * problem.width(i));
  if (auto along = prefix_dim(window, problem.dims, problem.result_dims)) {
    prefix(problem, *along);
  } else {
    blocks(problem);
  }

  std::vector<Literal> results;
  for (size_t i = 0; i < count; ++i) {
    results.emplace_back(op.shape.is_tuple() ? op.shape.elements[i] : op.shape);
    convert(combine.result_type(i), results[i].shape().type, first.element_count(), sums[i].data(),
            results[i].bytes().data());
  }
  return op.shape.is_tuple() ? Literal::tuple(std::move(results)) : std::move(results[0]);
}

// Each window picks one element: the first in bounds, replaced by every later v for which
// select(candidate, v) is false. The source value is scattered onto it.
Literal select_and_scatter(const Instruction& op, Operands in, const RunComputation& run) {
  const Literal &operand = *in[0], &source = *in[1], &init = *in[2];
  const Ints& dims = operand.shape().dims;
  const Ints strides = row_major_strides(dims);
  const int width = dtype_bytes(op.shape.type);
  ScalarFunction select(*op.called.at(0), run), combine(*op.called.at(1), run);
  std::vector<WindowDim> window = op.attrs.window;
  window.resize(dims.size());
  Ints window_sizes;
  for (const WindowDim& w : window) window_sizes.push_back(w.size);

  Literal result(op.shape);
  const int64_t n = op.shape.element_count();
  for (int64_t i = 0; i < n; ++i) {
    std::memcpy(result.bytes().data() + i * width, init.bytes().data(), width);
  }
  int64_t next_source = 0;
  for_each_index(source.shape().dims, [&](std::span<const int64_t> out) {
    int64_t candidate = -1;
    for_each_index(window_sizes, [&](std::span<const int64_t> k) {
      int64_t offset = 0;
      for (size_t d = 0; d < dims.size(); ++d) {
        auto index = window_index(window[d], dims[d], out[d], k[d]);
        if (!index) return;
        offset += *index * strides[d];
      }
      if (candidate >= 0) {
        const void* pair[] = {operand.bytes().data() + candidate * width, operand.bytes().data() + offset * width};
        uint8_t keep = 0;
        void* answer = &keep;
        select.run(1, pair, &answer);
        if (keep) return;
      }
      candidate = offset;
    });
    const std::byte* update = source.bytes().data() + next_source++ * width;
    if (candidate < 0) return;
    void* target = result.bytes().data() + candidate * width;
    const void* pair[] = {target, update};
    combine.run(1, pair, &target);
  });
  return result;
}

constexpr Row kOps[] = {
    {Opcode::kReduceWindow, [](const Call& c) { return reduce_window(c.op, c.in, c.run); }},
    {Opcode::kSelectAndScatter, [](const Call& c) { return select_and_scatter(c.op, c.in, c.run); }},
};

}  // namespace

std::span<const Row> window_ops() { return kOps; }

}  // namespace hlojit::eval
