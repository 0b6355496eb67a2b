// sort by a computation that is more than arithmetic on scalars, so that no merge can ask it: a network of comparisons,
// which are the same whatever the elements are. Batcher's bitonic one, on rows of a power of two; k and j go
//   2 1    4 2    4 1    8 4    8 2    8 1   ...
// and element i of a row changes places with element i xor j, if they are not in order, or, where bit k of i is set, if
// they are. A loop asks for the order of all pairs, one after the other.
//
// Elements carry where they were: of two that are equal the first stays first, and what fills a row up goes to its end.
#include <bit>
#include <numeric>

#include "compiler/ir/combining.h"
#include "compiler/passes/expansions.h"
#include "layout/lists.h"

namespace hlojit {
namespace {

using enum Opcode;

constexpr DType kPlace = DType::kS64;

class SortNetwork {
 public:
  SortNetwork(Builder& b, const Instruction& op) : b_(b), op_(op), dims_(op.operand(0)->shape.dims) {
    const int64_t along = op.attrs.dimensions.at(0);
    for (int64_t d = 0; d < std::ssize(dims_); ++d) {
      if (d != along) order_.push_back(d);
    }
    order_.push_back(along);
    length_ = dims_[static_cast<size_t>(along)];
    rows_ = product<int64_t>(dims_) / length_;
    filled_ = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(length_)));
    total_ = rows_ * filled_;
  }

  Instruction* build() {
    Builder::Values state = {b_.constant(kPlace, 2), b_.constant(kPlace, 1)};
    Instruction* was = b_.iota(Shape::array(kPlace, {rows_, filled_}), 1);
    state.push_back(b_.reshape(was, Ints{total_}));
    for (Instruction* o : op_.operands()) state.push_back(in_rows(o));
    Instruction* start = b_.tuple(state);
    Computation* condition = make_condition(start->shape);
    Instruction* done = b_.while_loop(condition, make_body(start->shape), start);
    Builder::Values sorted;
    for (size_t k = 0; k < op_.operand_count(); ++k)
      sorted.push_back(as_it_was(b_.get_tuple_element(done, static_cast<int64_t>(kFirst + k))));
    return op_.shape.is_tuple() ? b_.tuple(sorted) : sorted[0];
  }

 private:
  static constexpr size_t kFirst = 3;  // in the state, behind k, j and where elements were

  Instruction* in_rows(Instruction* x) {
    Instruction* zero = b_.constant(Literal(Shape::scalar(x->shape.type)));
    x = b_.reshape(b_.transpose(x, order_), {rows_, length_});
    return b_.reshape(b_.pad(x, zero, {{0, 0, 0}, {0, filled_ - length_, 0}}), Ints{total_});
  }

  Instruction* as_it_was(Instruction* x) {
    x = b_.slice(b_.reshape(x, {rows_, filled_}), {0, 0}, {rows_, length_});
    Ints ordered, back(order_.size());
    for (size_t k = 0; k < order_.size(); ++k) {
      ordered.push_back(dims_[static_cast<size_t>(order_[k])]);
      back[static_cast<size_t>(order_[k])] = static_cast<int64_t>(k);
    }
    return b_.transpose(b_.reshape(x, ordered), back);
  }

  Computation* add(std::string_view name) {
    return b_.computation()->parent()->add_computation_before(std::string(name), b_.computation());
  }

  Computation* make_condition(const Shape& state) {
    Builder c(add("sort_condition"));
    Instruction* k = c.get_tuple_element(c.parameter(state), 0);
    return c.build(c.compare(Direction::kLe, k, c.constant(kPlace, static_cast<double>(filled_))));
  }

  // less(x, y) for all pairs.
  Instruction* compare(Builder& c, const Builder::Values& x, const Builder::Values& y) {
    Builder::Values pairs;
    for (size_t k = 0; k < x.size(); ++k) pairs.insert(pairs.end(), {x[k], y[k]});
    Attributes along;
    along.dimensions = {0};
    along.has_dimensions = true;
    Instruction* scan = c.op(kScan, pairs, std::move(along), {op_.to_apply()});
    Instruction* made = expand_scan(c, *scan);
    c.computation()->remove(scan);
    return made;
  }

  Computation* make_body(const Shape& state) {
    Builder c(add("sort_body"));
    Instruction* p = c.parameter(state);
    Builder::Values own, other;
    for (size_t k = 0; k < state.elements.size(); ++k) own.push_back(c.get_tuple_element(p, static_cast<int64_t>(k)));
    Instruction *k = own[0], *j = own[1];
    own.erase(own.begin(), own.begin() + 2);
    auto all = [&](Instruction* x) { return c.broadcast(x, {total_}); };
    auto number = [&](int64_t n) { return c.constant(kPlace, static_cast<double>(n)); };

    Instruction* i = c.iota(Shape::array(kPlace, {total_}), 0);
    Instruction* partner = c.binary(kXor, i, all(j));
    auto at_partner = [&](Instruction* x) { return c.take(x, partner); };
    for (Instruction* x : own) other.push_back(at_partner(x));

    // Both of a pair come to the same answer, whatever the computation says.
    Instruction* first = c.compare(Direction::kLt, i, partner);
    const Builder::Values mine(own.begin() + 1, own.end()), its(other.begin() + 1, other.end());
    Instruction* less = compare(c, mine, its);
    Instruction* more = at_partner(less);
    Instruction *front = c.select(first, less, more), *back = c.select(first, more, less);
    Instruction *was_front = c.select(first, own[0], other[0]), *was_back = c.select(first, other[0], own[0]);
    Instruction* earlier = c.compare(Direction::kLt, was_front, was_back);
    Instruction* in_order = c.binary(kOr, front, c.binary(kAnd, c.unary(kNot, back), earlier));
    Instruction* length = all(number(length_));
    in_order = c.binary(kOr, in_order, c.compare(Direction::kGe, was_back, length));
    in_order = c.binary(kAnd, in_order, c.compare(Direction::kLt, was_front, length));
    Instruction* place = c.binary(kAnd, i, all(number(filled_ - 1)));
    Instruction* up = c.compare(Direction::kEq, c.binary(kAnd, place, all(k)), all(number(0)));
    Instruction* stays = c.compare(Direction::kEq, in_order, up);

    Instruction* ends = c.compare(Direction::kEq, j, number(1));
    Builder::Values next = {c.select(ends, c.binary(kMultiply, k, number(2)), k),
                            c.select(ends, k, c.binary(kDivide, j, number(2)))};
    for (size_t n = 0; n < own.size(); ++n) next.push_back(c.select(stays, own[n], other[n]));
    return c.build(c.tuple(next));
  }

  Builder& b_;
  const Instruction& op_;
  const Ints dims_;
  Ints order_;  // of dims, what is sorted along last
  int64_t length_ = 0, rows_ = 0, filled_ = 0, total_ = 0;
};

}  // namespace

Instruction* expand_sort_in_turn(Builder& b, const Instruction& op) {
  if (is_scalar_code(*op.to_apply())) return nullptr;
  const Shape& shape = op.operand(0)->shape;
  if (shape.element_count() > 0) return SortNetwork(b, op).build();
  const Builder::Values same(op.operands().begin(), op.operands().end());
  return op.shape.is_tuple() ? b.tuple(same) : same[0];
}

}  // namespace hlojit
