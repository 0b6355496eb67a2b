// ragged-dot: the entries of one dim of the left side belong to consecutive groups whose sizes are known at
// run time. The group of each entry follows from the running sums of the sizes; then, by the ragged dim's role,
//
//   free         each row meets its group's matrix: a gather of the right side, then a dot batched by rows
//   contracting  each group is a batch of its own, both sides zero outside of it
//   batch        a plain dot, zero behind the last group
#include <algorithm>

#include "compiler/ir/text_attributes.h"
#include "compiler/passes/expansions.h"
#include "layout/lists.h"

namespace hlojit {
namespace {

using enum Opcode;

int64_t position(const Ints& list, int64_t x) { return std::find(list.begin(), list.end(), x) - list.begin(); }

class RaggedDot {
 public:
  RaggedDot(Builder& b, const Instruction& op) : b_(b), op_(op), dims_(op.attrs.dot) {
    ragged_ = numbers_in(text_attribute(op.attrs, "lhs_ragged_dims")).at(0);
    group_dims_ = numbers_in(text_attribute(op.attrs, "rhs_group_dims"));
    groups_ = op.operand(2)->shape.dims[0];
    size_ = lhs()->shape.dims[static_cast<size_t>(ragged_)];
  }

  Instruction* run() {
    if (contains(dims_.lhs_contracting, ragged_)) return contracting();
    if (contains(dims_.lhs_batch, ragged_)) return batch();
    return free();
  }

 private:
  Instruction* lhs() const { return op_.operand(0); }
  Instruction* rhs() const { return op_.operand(1); }

  // Group of each entry of the ragged dim: the number of groups that end at or before it. s32[size].
  Instruction* group_of() {
    Instruction* sizes = b_.convert(op_.operand(2), DType::kS64);
    auto everywhere = [&](Instruction* x) { return b_.broadcast(x, {groups_}); };
    Instruction* most = b_.constant(DType::kS64, static_cast<double>(size_));
    sizes = b_.op(kClamp, {everywhere(b_.constant(DType::kS64, 0)), sizes, everywhere(most)});
    std::vector<WindowDim> running(1);
    running[0].size = std::max<int64_t>(groups_, 1);
    running[0].pad_low = running[0].size - 1;
    Instruction* ends = b_.reduce_window({sizes}, {b_.constant(DType::kS64, 0)}, adder(DType::kS64), running);
    Instruction* entry = b_.iota(Shape::array(DType::kS64, {size_, groups_}), 0);
    Instruction* behind = b_.compare(Direction::kLe, b_.broadcast_in_dim(ends, {size_, groups_}, {1}), entry);
    return b_.reduce({b_.convert(behind, DType::kS32)}, {b_.constant(DType::kS32, 0)}, adder(DType::kS32), {1});
  }

  Computation* adder(DType type) {
    Builder a(b_.computation()->parent()->add_computation_before("add", b_.computation()));
    Instruction* x = a.parameter(Shape::scalar(type));
    return a.build(a.binary(kAdd, x, a.parameter(Shape::scalar(type))));
  }

  Instruction* zeros(DType type, const Ints& sizes) {
    return b_.broadcast(b_.constant(Literal(Shape::scalar(type))), sizes);
  }
  // x where `holds` (of x's dims `at`), else zero.
  Instruction* where(Instruction* holds, const Ints& at, Instruction* x) {
    return b_.select(b_.broadcast_in_dim(holds, x->shape.dims, at), x, zeros(x->shape.type, x->shape.dims));
  }
  Instruction* in_some_group(Instruction* group) {
    return b_.compare(Direction::kLt, group,
                      b_.broadcast(b_.constant(DType::kS32, static_cast<double>(groups_)), {size_}));
  }

  Instruction* dot(Instruction* x, Instruction* y, DotDims dims, const Ints& sizes) {
    Attributes a;
    a.dot = std::move(dims);
    a.dot_algorithm = op_.attrs.dot_algorithm;
    a.operand_precision = op_.attrs.operand_precision;
    return b_.op(kDot, Shape::array(op_.shape.type, sizes), {x, y}, std::move(a));
  }

  Instruction* batch() {
    Instruction* all = dot(lhs(), rhs(), dims_, op_.shape.dims);
    return where(in_some_group(group_of()), {position(dims_.lhs_batch, ragged_)}, all);
  }

  // [groups] + the operand, zero outside of the group.
  Instruction* by_group(Instruction* x, int64_t dim, Instruction* group) {
    Ints sizes = x->shape.dims;
    sizes.insert(sizes.begin(), groups_);
    Ints kept;
    for (int64_t d = 1; d <= x->shape.rank(); ++d) kept.push_back(d);
    Instruction* spread = b_.broadcast_in_dim(x, sizes, kept);
    Instruction* number = b_.iota(Shape::array(DType::kS32, {groups_, size_}), 0);
    Instruction* own = b_.compare(Direction::kEq, number, b_.broadcast_in_dim(group, {groups_, size_}, {1}));
    return where(own, {0, dim + 1}, spread);
  }

  Instruction* contracting() {
    Instruction* group = group_of();
    int64_t right = dims_.rhs_contracting[static_cast<size_t>(position(dims_.lhs_contracting, ragged_))];
    DotDims inner = dims_;
    for (Ints* list : {&inner.lhs_batch, &inner.rhs_batch, &inner.lhs_contracting, &inner.rhs_contracting}) {
      for (int64_t& d : *list) ++d;
    }
    inner.lhs_batch.insert(inner.lhs_batch.begin(), 0);
    inner.rhs_batch.insert(inner.rhs_batch.begin(), 0);
    return dot(by_group(lhs(), ragged_, group), by_group(rhs(), right, group), std::move(inner), op_.shape.dims);
  }

  Instruction* free() {
    Instruction* group = group_of();
    const int64_t group_dim = group_dims_.at(0);
    const Ints& from = rhs()->shape.dims;
    // The right side's matrix of each row: [rows] + the right side without its groups.
    GatherDims g;
    g.collapsed_slice_dims = {group_dim};
    g.start_index_map = {group_dim};
    g.index_vector_dim = 1;
    g.slice_sizes = from;
    g.slice_sizes[static_cast<size_t>(group_dim)] = 1;
    for (int64_t d = 1; d < rhs()->shape.rank(); ++d) g.offset_dims.push_back(d);
    Instruction* matrices = b_.gather(rhs(), group, std::move(g));

    DotDims inner = dims_;
    inner.lhs_batch.push_back(ragged_);
    for (Ints* list : {&inner.rhs_batch, &inner.rhs_contracting}) {
      for (int64_t& d : *list) d = d < group_dim ? d + 1 : d;  // groups are gone, rows come first
    }
    inner.rhs_batch.push_back(0);
    // Result dims of the inner dot: batch, rows, the left side's other free dims, the right side's.
    Ints sizes, order;
    auto batches = static_cast<int64_t>(dims_.lhs_batch.size());
    int64_t rows = batches;
    for (int64_t d = 0; d < ragged_; ++d) rows += !contains(dims_.lhs_batch, d) && !contains(dims_.lhs_contracting, d);
    for (int64_t d = 0; d < op_.shape.rank(); ++d) {
      bool moved = d >= batches && d <= rows;
      order.push_back(!moved ? d : d == rows ? batches : d + 1);
    }
    sizes.resize(order.size());
    for (size_t d = 0; d < order.size(); ++d) sizes[static_cast<size_t>(order[d])] = op_.shape.dims[d];
    Instruction* product = b_.transpose(dot(lhs(), matrices, std::move(inner), sizes), order);
    return where(in_some_group(group), {rows}, product);
  }

  Builder& b_;
  const Instruction& op_;
  const DotDims& dims_;
  Ints group_dims_;
  int64_t ragged_ = 0, groups_ = 0, size_ = 0;
};

}  // namespace

Instruction* expand_ragged_dot(Builder& b, const Instruction& op) {
  if (op.operand(2)->shape.rank() != 1) return nullptr;
  const Ints& sizes = op.operand(2)->shape.dims;
  if (sizes[0] == 0) return b.broadcast(b.constant(Literal(Shape::scalar(op.shape.type))), op.shape.dims);
  return RaggedDot(b, op).run();
}

}  // namespace hlojit
