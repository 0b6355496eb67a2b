// scatter and reduce-window by a computation that is more than arithmetic on scalars: it branches on arrays, loops, or
// reduces, so that no kernel can apply it to the lanes of a vector. It is run for one element after the other.
//
//   scatter(x, i, u), f            ->  p = place in x of each element of u, or -1      index vectors in order
//                                      scan over (p, u) with x carried:  x[p] = f(x[p], u) where p >= 0
//   reduce-window(x, init), f      ->  p = place in x of each element of each window, or -1 outside
//                                      reduce(x[p], p >= 0; init), f or nothing       whose steps are expand_reduce's
#include <algorithm>
#include <numeric>

#include "compiler/ir/combining.h"
#include "compiler/passes/expansions.h"
#include "compiler/passes/inline_calls.h"
#include "layout/lists.h"

namespace hlojit {
namespace {

using enum Opcode;

constexpr DType kPlace = DType::kS64;

std::vector<Instruction*> results_of(Builder& b, Instruction* value) {
  if (!value->shape.is_tuple()) return {value};
  std::vector<Instruction*> all;
  for (int64_t k = 0; k < std::ssize(value->shape.elements); ++k) all.push_back(b.get_tuple_element(value, k));
  return all;
}

Instruction* flat(Builder& b, Instruction* x) { return b.reshape(x, Ints{x->shape.element_count()}); }

// Numbers of elements of an array, in row-major order, from their coordinates; -1 where one of these is outside.
class PlaceSum {
 public:
  PlaceSum(Builder& b, Ints dims) : b_(b), dims_(std::move(dims)), sum_(number(0)) {}

  Instruction* number(int64_t n) { return b_.broadcast(b_.constant(kPlace, static_cast<double>(n)), dims_); }
  Instruction* along(size_t d) { return b_.iota(Shape::array(kPlace, dims_), static_cast<int64_t>(d)); }
  Instruction* scaled(Instruction* x, int64_t by) { return by == 1 ? x : b_.binary(kMultiply, x, number(by)); }

  /// The coordinate in a dim of so many elements, `step` apart in the array.
  void add(Instruction* at, int64_t elements, int64_t step) {
    require(b_.compare(Direction::kGe, at, number(0)));
    require(b_.compare(Direction::kLt, at, number(elements)));
    sum_ = b_.binary(kAdd, sum_, scaled(at, step));
  }
  void require(Instruction* inside) { inside_ = inside_ ? b_.binary(kAnd, inside_, inside) : inside; }

  Instruction* places() { return inside_ ? b_.select(inside_, sum_, number(-1)) : sum_; }

 private:
  Builder& b_;
  const Ints dims_;
  Instruction *sum_, *inside_ = nullptr;
};

Ints steps_of(const Ints& dims) {
  Ints steps(dims.size(), 1);
  for (size_t d = dims.size(); d-- > 1;) steps[d - 1] = steps[d] * dims[d];
  return steps;
}

// ---- scatter -----------------------------------------------------------------------------------------

class ScatterInTurn {
 public:
  ScatterInTurn(Builder& b, const Instruction& op)
      : b_(b), op_(op), s_(op.attrs.scatter), count_(op.operand_count() / 2), target_(op.operand(0)->shape.dims) {
    const Ints& updates = op.operand(count_ + 1)->shape.dims;
    for (int64_t d = 0; d < std::ssize(updates); ++d) {
      if (!contains(s_.update_window_dims, d)) order_.push_back(d);
    }
    batch_rank_ = order_.size();
    order_.insert(order_.end(), s_.update_window_dims.begin(), s_.update_window_dims.end());
    for (int64_t d : order_) sizes_.push_back(updates[static_cast<size_t>(d)]);
  }

  Instruction* build() {
    Builder::Values targets, in = {flat(b_, places())};
    for (size_t k = 0; k < count_; ++k) targets.push_back(op_.operand(k));
    if (product<int64_t>(sizes_) == 0 || product<int64_t>(target_) == 0) return result(targets);
    for (size_t k = 0; k < count_; ++k) in.push_back(flat(b_, b_.transpose(op_.operand(count_ + 1 + k), order_)));
    for (Instruction* t : targets) in.push_back(flat(b_, t));
    const auto carries = in.end() - static_cast<std::ptrdiff_t>(count_);
    Instruction* scan = b_.scan({in.begin(), carries}, {carries, in.end()}, make_step(in), 0);
    Builder::Values made = results_of(b_, expand_scan(b_, *scan));
    b_.computation()->remove(scan);
    for (Instruction*& m : made) m = b_.reshape(m, target_);
    return result(made);
  }

 private:
  Instruction* result(const Builder::Values& all) { return op_.shape.is_tuple() ? b_.tuple(all) : all[0]; }

  // Of each element of an update, batches first.
  Instruction* places() {
    PlaceSum sum(b_, sizes_);
    std::vector<Instruction*> at(target_.size());
    for (size_t k = 0; k < s_.scatter_dims_to_operand_dims.size(); ++k)
      at[static_cast<size_t>(s_.scatter_dims_to_operand_dims[k])] = start(static_cast<int64_t>(k));
    for (size_t k = 0; k < s_.input_batching_dims.size(); ++k) {
      int64_t d = s_.scatter_indices_batching_dims[k];
      if (d > s_.index_vector_dim) --d;
      at[static_cast<size_t>(s_.input_batching_dims[k])] = sum.along(static_cast<size_t>(d));
    }
    const Ints steps = steps_of(target_);
    size_t window = batch_rank_;
    for (size_t d = 0; d < target_.size(); ++d) {
      const auto n = static_cast<int64_t>(d);
      const bool single = contains(s_.inserted_window_dims, n) || contains(s_.input_batching_dims, n);
      Instruction* inside = single ? nullptr : sum.along(window++);
      if (at[d] && inside)
        at[d] = b_.binary(kAdd, at[d], inside);
      else if (inside)
        at[d] = inside;
      sum.add(at[d] ? at[d] : sum.number(0), target_[d], steps[d]);
    }
    return sum.places();
  }

  // Component k of the index vectors, for all elements.
  Instruction* start(int64_t k) {
    Instruction* indices = b_.convert(op_.operand(count_), kPlace);
    const Ints batch(sizes_.begin(), sizes_.begin() + static_cast<std::ptrdiff_t>(batch_rank_));
    if (s_.index_vector_dim < indices->shape.rank())
      indices = b_.slice_in_dim(indices, k, k + 1, 1, s_.index_vector_dim);
    Ints dims(batch_rank_);
    std::iota(dims.begin(), dims.end(), 0);
    return b_.broadcast_in_dim(b_.reshape(indices, batch), sizes_, dims);
  }

  // (place, updates, targets) -> targets
  Computation* make_step(const Builder::Values& in) {
    Builder c(b_.computation()->parent()->add_computation_before("scatter_step", b_.computation()));
    Instruction* place = c.parameter(Shape::scalar(kPlace));
    Builder::Values updates, targets, arguments, made;
    for (size_t k = 0; k < count_; ++k) updates.push_back(c.parameter(Shape::scalar(in[1 + k]->shape.type)));
    for (size_t k = 0; k < count_; ++k) targets.push_back(c.parameter(in[1 + count_ + k]->shape));
    Instruction* zero = c.constant(kPlace, 0);
    Instruction* at = c.binary(kMaximum, place, zero);
    for (Instruction* t : targets) arguments.push_back(c.reshape(c.dynamic_slice(t, {at}, {1}), Ints{}));
    const Builder::Values old = arguments;
    arguments.insert(arguments.end(), updates.begin(), updates.end());
    Instruction* inside = c.compare(Direction::kGe, place, zero);
    const Builder::Values fresh = results_of(c, paste(*c.computation(), *op_.to_apply(), arguments));
    for (size_t k = 0; k < count_; ++k) {
      Instruction* kept = c.reshape(c.select(inside, fresh[k], old[k]), {1});
      made.push_back(c.dynamic_update_slice(targets[k], kept, {at}));
    }
    return c.build(count_ == 1 ? made[0] : c.tuple(made));
  }

  Builder& b_;
  const Instruction& op_;
  const ScatterDims& s_;
  const size_t count_;
  const Ints& target_;
  Ints order_, sizes_;  // of updates, dims of index vectors first
  size_t batch_rank_ = 0;
};

// ---- reduce-window -----------------------------------------------------------------------------------

// [results..., window...]
Instruction* window_places(Builder& b, const std::vector<WindowDim>& window, const Ints& from, const Ints& to) {
  Ints all = to;
  for (const WindowDim& w : window) all.push_back(w.size);
  PlaceSum sum(b, all);
  const Ints steps = steps_of(from);
  for (size_t d = 0; d < to.size(); ++d) {
    const WindowDim& w = window[d];
    Instruction* inside = sum.along(to.size() + d);
    if (w.reversal) inside = b.binary(kSubtract, sum.number(w.size - 1), inside);
    Instruction* at = b.binary(kAdd, sum.scaled(sum.along(d), w.stride), sum.scaled(inside, w.rhs_dilate));
    at = b.binary(kSubtract, at, sum.number(w.pad_low));
    if (w.lhs_dilate > 1) {  // other places are gaps
      sum.require(b.compare(Direction::kEq, b.binary(kRemainder, at, sum.number(w.lhs_dilate)), sum.number(0)));
      sum.require(b.compare(Direction::kGe, at, sum.number(0)));
      at = b.binary(kDivide, at, sum.number(w.lhs_dilate));
    }
    sum.add(at, from[d], steps[d]);
  }
  return sum.places();
}

// (sums, true), (elements, whether there is one) -> by the computation, or the sums as they are
Computation* where_there_is_one(Builder& b, Computation& computation, const Builder::Values& inits) {
  Builder c(b.computation()->parent()->add_computation_before("inside", b.computation()));
  Builder::Values arguments, made;
  for (Instruction* i : inits) arguments.push_back(c.parameter(i->shape));
  Instruction* always = c.parameter(Shape::scalar(DType::kPred));
  const Builder::Values old = arguments;
  for (Instruction* i : inits) arguments.push_back(c.parameter(i->shape));
  Instruction* inside = c.parameter(Shape::scalar(DType::kPred));
  const Builder::Values fresh = results_of(c, paste(*c.computation(), computation, arguments));
  for (size_t k = 0; k < old.size(); ++k) made.push_back(c.select(inside, fresh[k], old[k]));
  made.push_back(always);
  return c.build(c.tuple(made));
}

Instruction* windows_in_turn(Builder& b, const Instruction& op) {
  const size_t count = op.operand_count() / 2;
  const Ints &from = op.operand(0)->shape.dims, to = op.shape.is_tuple() ? op.shape.elements[0].dims : op.shape.dims;
  std::vector<WindowDim> window = op.attrs.window;
  window.resize(to.size());
  const auto operands = op.operands();
  Builder::Values inits(operands.begin() + static_cast<std::ptrdiff_t>(count), operands.end()), in, made;
  auto result = [&](const Builder::Values& all) { return op.shape.is_tuple() ? b.tuple(all) : all[0]; };
  if (product<int64_t>(from) == 0 || product<int64_t>(to) == 0) {
    for (Instruction* i : inits) made.push_back(b.broadcast(i, to));
    return result(made);
  }
  Instruction* places = window_places(b, window, from, to);
  const Ints rows = {product<int64_t>(to), places->shape.element_count() / product<int64_t>(to)};
  places = b.reshape(places, rows);
  Instruction* zero = b.broadcast(b.constant(kPlace, 0), rows);
  Instruction* at = b.binary(kMaximum, places, zero);
  for (size_t k = 0; k < count; ++k) in.push_back(b.take(flat(b, op.operand(k)), at));
  in.push_back(b.compare(Direction::kGe, places, zero));
  Computation* step = where_there_is_one(b, *op.to_apply(), inits);
  inits.push_back(b.constant(DType::kPred, 1));
  Instruction* reduce = b.reduce(in, inits, step, {1});
  made = results_of(b, expand_reduce(b, *reduce));
  b.computation()->remove(reduce);
  made.pop_back();
  for (Instruction*& m : made) m = b.reshape(m, to);
  return result(made);
}

}  // namespace

Instruction* expand_scatter_in_turn(Builder& b, const Instruction& op) {
  return is_scalar_code(*op.to_apply()) ? nullptr : ScatterInTurn(b, op).build();
}

Instruction* expand_windows_in_turn(Builder& b, const Instruction& op) {
  return is_scalar_code(*op.to_apply()) ? nullptr : windows_in_turn(b, op);
}

}  // namespace hlojit
