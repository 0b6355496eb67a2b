// select-and-scatter: each window of x picks an element, to which its element of the source is added.
//
//   select-and-scatter(x, source, init)
//     -> n = number of each element of x
//        v, i = reduce-window(x, n; 0, -1), (v, i), (w, j) -> i < 0 or not select(v, w) ? (w, j) : (v, i)
//
// i is what each window picks; windows that hold padding alone have -1. If an element is in a few windows at most it
// looks at what these have picked, which any number of cores can do, with lanes along anything. Of windows of three
// every two positions, along one dim:
//
//        y = init
//        y = i[p / 2 - 1] == n ? y + source[p / 2 - 1] : y
//        y = i[p / 2]     == n ? y + source[p / 2]     : y
//
// Else the windows are gone through one by one:
//
//        scatter(broadcast(init), i, source)      flat; -1 is dropped
//
// Elements of windows are taken in order, and so are updates: ties and sums come out as the op says.
#include <limits>

#include "compiler/passes/expansions.h"
#include "compiler/passes/inline_calls.h"
#include "layout/divide.h"
#include "layout/lists.h"
#include "layout/tiling.h"

namespace hlojit {
namespace {

using enum Opcode;

// (value, number) pairs: the second replaces the first where nothing is picked yet or select says so.
Computation* picks(Computation& caller, const Computation& select, DType type, DType number) {
  Module& module = *caller.parent();
  Builder b(module.add_computation_before("pick", &caller));
  Shape value = Shape::scalar(type), index = Shape::scalar(number);
  Instruction* v = b.parameter(value, "value");
  Instruction* i = b.parameter(index, "number");
  Instruction* w = b.parameter(value, "next_value");
  Instruction* j = b.parameter(index, "next_number");
  Instruction* arguments[] = {v, w};
  Instruction* keeps = paste(*b.computation(), select, arguments);
  Instruction* none = b.compare(Direction::kLt, i, b.constant(number, 0));
  Instruction* takes = b.binary(kOr, none, b.unary(kNot, keeps));
  return b.build(b.tuple({b.select(takes, w, v), b.select(takes, j, i)}));
}

/// Along one dim of x, of n elements: element p is in the windows first + p' / stride - o, o = 0, ..., count - 1, where
/// p' = p + skipped.
struct Positions {
  int64_t n, stride, count, first, skipped;

  Positions(int64_t n, const WindowDim& w)
      : n(n),
        stride(w.stride),
        count(ceil_div(w.size, w.stride)),
        first(floordiv(w.pad_low, w.stride)),
        skipped(mod(w.pad_low, w.stride)) {}
  /// Neighbours that are in the same windows, counted.
  int64_t groups() const { return ceil_div(n + skipped, stride); }
};

/// Of each element of x what `windows`, an array of all, has for the window that lies `back` in front of its last one;
/// `none` where there is no such window.
Instruction* of_window(Builder& b, Instruction* windows, Instruction* none, const std::vector<Positions>& positions,
                       const Ints& back) {
  std::vector<PadDim> borders;
  Ints groups, repeated, all, starts, limits;
  for (size_t d = 0; d < positions.size(); ++d) {
    const Positions& p = positions[d];
    const int64_t low = back[d] - p.first;
    borders.push_back({low, p.groups() - low - windows->shape.dims[d], 0});
    groups.push_back(static_cast<int64_t>(repeated.size()));
    repeated.insert(repeated.end(), {p.groups(), p.stride});
    all.push_back(p.groups() * p.stride);
    starts.push_back(p.skipped);
    limits.push_back(p.skipped + p.n);
  }
  Instruction* padded = b.pad(windows, none, std::move(borders));
  return b.slice(b.reshape(b.broadcast_in_dim(padded, repeated, groups), all), starts, limits);
}

/// What each element of x gets from its windows; nullptr if these are many, or `scatter` is no step of arithmetic.
/// `picked`: their numbers, as `numbers` has them of elements.
Instruction* pulled(Builder& b, const Instruction& op, Instruction* picked, Instruction* numbers) {
  constexpr int64_t kMostWindows = 9;
  const Ints& dims = op.shape.dims;
  std::vector<Positions> positions;
  Ints counts;
  int64_t windows = 1;
  for (size_t d = 0; d < dims.size(); ++d) {
    positions.emplace_back(dims[d], op.attrs.window[d]);
    counts.push_back(positions.back().count);
    if (counts.back() > kMostWindows / windows) return nullptr;  // their product may be beyond any integer
    windows *= counts.back();
  }
  if (op.shape.element_count() == 0 || picked->shape.element_count() == 0) return nullptr;
  Instruction* none = b.constant(picked->shape.type, -1);
  Instruction* nothing = b.constant(Literal(Shape::scalar(op.shape.type)));
  Instruction* sum = b.broadcast(op.operand(2), dims);
  for (int64_t k = windows - 1; k >= 0; --k) {  // the first window has the largest distances
    Ints back(counts.size());
    int64_t rest = k;
    for (size_t d = counts.size(); d-- > 0; rest /= counts[d]) back[d] = rest % counts[d];
    Instruction* hit = b.compare(Direction::kEq, of_window(b, picked, none, positions, back), numbers);
    Instruction* arguments[] = {sum, of_window(b, op.operand(1), nothing, positions, back)};
    Instruction* next = apply_elementwise(b, *op.called.at(1), arguments, dims);
    if (!next) return nullptr;
    sum = b.select(hit, next, sum);
  }
  return sum;
}

}  // namespace

Instruction* expand_select_and_scatter(Builder& b, const Instruction& op) {
  Instruction *x = op.operand(0), *source = op.operand(1), *init = op.operand(2);
  int64_t total = x->shape.element_count(), windows = source->shape.element_count();
  DType number = total <= std::numeric_limits<int32_t>::max() ? DType::kS32 : DType::kS64;
  Computation* pick = picks(*b.computation(), *op.called.at(0), x->shape.type, number);
  Instruction* numbers = b.reshape(b.iota(Shape::array(number, {total}), 0), x->shape.dims);
  Instruction* zero = b.constant(Literal(Shape::scalar(x->shape.type)));
  Instruction* pairs = expanded(b, b.reduce_window({x, numbers}, {zero, b.constant(number, -1)}, pick, op.attrs.window),
                                expand_windows_in_turn);
  Instruction* picked = b.get_tuple_element(pairs, 1);
  if (Instruction* sums = pulled(b, op, picked, numbers)) return sums;
  Attributes flat;
  ScatterDims& dims = flat.scatter.edit();
  dims.inserted_window_dims = {0};
  dims.scatter_dims_to_operand_dims = {0};
  dims.index_vector_dim = 1;
  Instruction* places = b.reshape(picked, Ints{windows});
  Instruction* sums =
      b.op(kScatter, {b.broadcast(init, {total}), places, b.reshape(source, Ints{windows})}, flat, {op.called.at(1)});
  return b.reshape(expanded(b, sums, expand_scatter_in_turn), x->shape.dims);
}

}  // namespace hlojit
