// ragged-dot: the entries of one dim of the left side belong to consecutive groups whose sizes are known at
// run time, the same everywhere or of their own for each entry of the dims before it. The group of each entry follows
// from the running sums of the sizes; then, by the ragged dim's role,
//
//   free         the products with all groups' matrices, of which each row keeps its own group's
//   contracting  each group is a batch of its own, both sides zero outside of it
//   batch        a plain dot, zero behind the last group
#include <algorithm>
#include <numeric>

#include "compiler/ir/ragged.h"
#include "compiler/ir/text_attributes.h"
#include "compiler/passes/expansions.h"
#include "layout/lists.h"

namespace hlojit {
namespace {

using enum Opcode;

int64_t position(const Ints& list, int64_t x) { return std::find(list.begin(), list.end(), x) - list.begin(); }

class RaggedDot {
 public:
  RaggedDot(Builder& b, const Instruction& op, const TargetInfo& target)
      : b_(b), op_(op), target_(target), dims_(op.attrs.dot) {
    ragged_ = ragged_dim(op.attrs);
    group_dims_ = numbers_in(text_attribute(op.attrs, "rhs_group_dims"));
    groups_ = op.operand(2)->shape.dims.back();
    size_ = lhs()->shape.dims[static_cast<size_t>(ragged_)];
    if (op.operand(2)->shape.rank() > 1) grouped_ = dims_before_ragged(op.attrs);
    grouped_.push_back(ragged_);
  }

  Instruction* run() {
    if (contains(dims_.lhs_contracting, ragged_)) return contracting();
    if (contains(dims_.lhs_batch, ragged_)) return batch();
    return free();
  }

 private:
  Instruction* lhs() const { return op_.operand(0); }
  Instruction* rhs() const { return op_.operand(1); }

  bool is_free(int64_t d) const { return !contains(dims_.lhs_batch, d) && !contains(dims_.lhs_contracting, d); }

  static Ints counted(int64_t first, int64_t n) {
    Ints list(static_cast<size_t>(n));
    std::iota(list.begin(), list.end(), first);
    return list;
  }

  // Group of each entry of the ragged dim: the number of groups that end at or before it. s32 of the grouped dims.
  Instruction* group_of() {
    Instruction* sizes = b_.convert(op_.operand(2), DType::kS64);
    auto everywhere = [&](Instruction* x) { return b_.broadcast(x, sizes->shape.dims); };
    Instruction* most = b_.constant(DType::kS64, static_cast<double>(size_));
    sizes = b_.op(kClamp, {everywhere(b_.constant(DType::kS64, 0)), sizes, everywhere(most)});
    const int64_t last = sizes->shape.rank() - 1;
    std::vector<WindowDim> running(static_cast<size_t>(last) + 1);
    running.back().size = std::max<int64_t>(groups_, 1);
    running.back().pad_low = running.back().size - 1;
    Instruction* ends =
        b_.reduce_window({sizes}, {b_.constant(DType::kS64, 0)}, b_.combiner(kAdd, DType::kS64), running);
    Ints table = sizes->shape.dims, of = counted(0, last + 1);
    table.insert(table.end() - 1, size_);
    of.back() = last + 1;
    Instruction* entry = b_.iota(Shape::array(DType::kS64, table), last);
    Instruction* behind = b_.compare(Direction::kLe, b_.broadcast_in_dim(ends, table, of), entry);
    return b_.reduce({b_.convert(behind, DType::kS32)}, {b_.constant(DType::kS32, 0)}, b_.combiner(kAdd, DType::kS32),
                     {last + 1});
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
                      b_.broadcast(b_.constant(DType::kS32, static_cast<double>(groups_)), group->shape.dims));
  }

  Instruction* dot(Instruction* x, Instruction* y, DotDims dims, const Ints& sizes) {
    Attributes a;
    a.dot = std::move(dims);
    a.dot_algorithm = op_.attrs.dot_algorithm;
    a.operand_precision = op_.attrs.operand_precision;
    return expanded(b_, b_.op(kDot, Shape::array(op_.shape.type, sizes), {x, y}, std::move(a)),
                    [&](Builder& b, const Instruction& plain) { return expand_dot(b, plain, target_); });
  }

  Instruction* batch() {
    Instruction* all = dot(lhs(), rhs(), dims_, op_.shape.dims);
    Ints at;
    for (int64_t d : grouped_) at.push_back(position(dims_.lhs_batch, d));
    return where(in_some_group(group_of()), at, all);
  }

  // Whether an entry is of a group: pred[groups] + the grouped dims.
  Instruction* belongs(Instruction* group) {
    Ints sizes = group->shape.dims;
    sizes.insert(sizes.begin(), groups_);
    Instruction* number = b_.iota(Shape::array(DType::kS32, sizes), 0);
    return b_.compare(Direction::kEq, number, b_.broadcast_in_dim(group, sizes, counted(1, group->shape.rank())));
  }

  // [groups] + the operand, zero outside of the group; `at`: its dims that are the grouped ones.
  Instruction* by_group(Instruction* x, const Ints& at, Instruction* group) {
    Ints sizes = x->shape.dims, place = {0};
    sizes.insert(sizes.begin(), groups_);
    for (int64_t d : at) place.push_back(d + 1);
    Instruction* spread = b_.broadcast_in_dim(x, sizes, counted(1, x->shape.rank()));
    return where(belongs(group), place, spread);
  }

  Instruction* contracting() {
    Instruction* group = group_of();
    Ints right;
    for (int64_t d : grouped_) {
      bool batch = contains(dims_.lhs_batch, d);
      const Ints &from = batch ? dims_.lhs_batch : dims_.lhs_contracting,
                 &to = batch ? dims_.rhs_batch : dims_.rhs_contracting;
      right.push_back(to[static_cast<size_t>(position(from, d))]);
    }
    DotDims inner = dims_;
    for (Ints* list : {&inner.lhs_batch, &inner.rhs_batch, &inner.lhs_contracting, &inner.rhs_contracting}) {
      for (int64_t& d : *list) ++d;
    }
    inner.lhs_batch.insert(inner.lhs_batch.begin(), 0);
    inner.rhs_batch.insert(inner.rhs_batch.begin(), 0);
    return dot(by_group(lhs(), grouped_, group), by_group(rhs(), right, group), std::move(inner), op_.shape.dims);
  }

  Instruction* free() {
    // Where the left side's dims stand in the result, and the groups in that of all products.
    Ints free_dims;
    for (int64_t d = 0; d < lhs()->shape.rank(); ++d) {
      if (is_free(d)) free_dims.push_back(d);
    }
    const int64_t batches = std::ssize(dims_.lhs_batch);
    int64_t groups_at = batches + std::ssize(free_dims);
    for (int64_t d = 0; d < group_dims_.at(0); ++d) {
      groups_at += !contains(dims_.rhs_batch, d) && !contains(dims_.rhs_contracting, d);
    }
    Ints at = {groups_at}, sizes = op_.shape.dims;
    for (int64_t d : grouped_) {
      at.push_back(is_free(d) ? batches + position(free_dims, d) : position(dims_.lhs_batch, d));
    }
    sizes.insert(sizes.begin() + groups_at, groups_);
    Instruction* own = where(belongs(group_of()), at, dot(lhs(), rhs(), dims_, sizes));
    const DType type = op_.shape.type;
    return b_.reduce({own}, {b_.constant(Literal(Shape::scalar(type)))}, b_.combiner(kAdd, type), {groups_at});
  }

  Builder& b_;
  const Instruction& op_;
  const TargetInfo& target_;
  const DotDims& dims_;
  Ints group_dims_;
  Ints grouped_;  // the left side's dims whose entries have a group: the ragged one, behind those with sizes of their
                  // own
  int64_t ragged_ = 0, groups_ = 0, size_ = 0;
};

}  // namespace

Instruction* expand_ragged_dot(Builder& b, const Instruction& op, const TargetInfo& target) {
  if (op.operand(2)->shape.dims.back() == 0)
    return b.broadcast(b.constant(Literal(Shape::scalar(op.shape.type))), op.shape.dims);
  return RaggedDot(b, op, target).run();
}

}  // namespace hlojit
