// Long windows that hold everything up to (or from) each element: cumulative sums and their kin. One running
// value would be one thread's, and its error would grow with n; in blocks, with the blocks' totals summed the
// same way, each element takes two steps:
//
//   y[i] = x[0] + ... + x[i]      n = 1000
//     ->  inside blocks of 128      b = reduce-window of f32[8,128], a kernel that runs along (plan/kernel.h)
//         before each block         t = y of the blocks' last sums, moved on by one
//         y = b + t
//
// A few elements are slices, combined one after the other and put side by side again.
//
// Blocks are parallel, and the error grows with their size and the number of levels, not with n. The step must be one
// that may be regrouped; the initial value enters once, in the end, unless it may enter many times.
#include "compiler/analysis/prefix.h"
#include "compiler/analysis/reorder.h"
#include "compiler/ir/combining.h"
#include "compiler/ir/narrow.h"
#include "compiler/passes/expansions.h"
#include "layout/lists.h"

namespace hlojit {
namespace {

using enum Opcode;

constexpr int64_t kBlock = 128;
constexpr int64_t kDirect = 256;  // up to this size one running value does
// So few are written out: lanes go along other dims, all of which one value waits for otherwise. Rows that lie in
// memory are loaded and stored by vectors of several, unless each is one. (116,760 sums of two neighbours, a Zen 4: 111
// us, 20 so; of three and four 102 and 141, 22 and 27; of five to seven bytes 36 to 43, 2.3 to 3.5, words 11 to 16.5, 9
// to 14.5; of eight halves 4.3, 8.9.)
constexpr int64_t kFew = 4, kFewInRow = 7, kFewBytes = 8;

int64_t most_written_out(const Shape& shape, int64_t dim) {
  const bool in_row = product(std::span(shape.dims).subspan(static_cast<size_t>(dim) + 1)) == 1;
  return in_row ? std::max(kFewInRow, kFewBytes / dtype_bytes(shape.type)) : kFew;
}

class PrefixSums {
 public:
  /// `neutral`: instead of the initial value, which enters in the end.
  PrefixSums(Builder& b, Computation* step, std::optional<Literal> neutral, Instruction* init, int64_t dim)
      : b_(b), step_(step), dim_(dim), init_enters_last_(neutral.has_value()) {
    neutral_ = neutral ? b.constant(std::move(*neutral)) : init;
  }

  Instruction* made(Instruction* x, bool backwards) {
    if (backwards) x = b_.rev(x, {dim_});
    Instruction* y = x->shape.dims[at()] <= kDirect ? written_out(x) : of(x);
    return backwards ? b_.rev(y, {dim_}) : y;
  }

 private:
  Instruction* combined(Instruction* x, Instruction* y) {
    return apply_elementwise(b_, *step_, Builder::Values{x, y}, y->shape.dims);
  }

  Instruction* written_out(Instruction* x) {
    Builder::Values sums;
    for (int64_t k = 0; k < x->shape.dims[at()]; ++k) {
      Instruction* part = b_.slice_in_dim(x, k, k + 1, 1, dim_);
      if (k == 0 && init_enters_last_)
        sums.push_back(part);
      else
        sums.push_back(combined(k == 0 ? b_.broadcast(neutral_, part->shape.dims) : sums.back(), part));
    }
    return b_.concat_in_dim(sums, dim_);
  }

  Instruction* of(Instruction* x) {
    int64_t n = x->shape.dims[at()];
    if (n <= kDirect) return windows(x, at());
    int64_t blocks = (n + kBlock - 1) / kBlock;
    if (blocks * kBlock != n) x = padded(x, 0, blocks * kBlock - n);
    Ints cut = x->shape.dims;
    cut[at()] = blocks;
    cut.insert(cut.begin() + dim_ + 1, kBlock);
    Instruction* inside = windows(b_.reshape(x, cut), at() + 1);
    Ints one = cut;
    one.erase(one.begin() + dim_ + 1);
    Instruction* totals = b_.reshape(b_.slice_in_dim(inside, kBlock - 1, kBlock, 1, dim_ + 1), one);
    Instruction* before = padded(of(totals), 1, -1);
    Ints kept;
    for (int64_t d = 0; d < static_cast<int64_t>(cut.size()); ++d) {
      if (d != dim_ + 1) kept.push_back(d);
    }
    Instruction* sums = combined(b_.broadcast_in_dim(before, cut, kept), inside);
    Ints joined = cut;
    joined.erase(joined.begin() + dim_ + 1);
    joined[at()] = blocks * kBlock;
    sums = b_.reshape(sums, joined);
    return blocks * kBlock == n ? sums : b_.slice_in_dim(sums, 0, n, 1, dim_);
  }

  size_t at() const { return static_cast<size_t>(dim_); }

  Instruction* windows(Instruction* x, size_t along) {
    std::vector<WindowDim> window(x->shape.dims.size());
    int64_t n = x->shape.dims[along];
    window[along].size = n;
    window[along].pad_low = n - 1;
    return b_.reduce_window({x}, {neutral_}, step_, std::move(window));
  }

  Instruction* padded(Instruction* x, int64_t low, int64_t high) {
    std::vector<PadDim> padding(x->shape.dims.size());
    padding[at()] = {low, high, 0};
    return b_.pad(x, neutral_, std::move(padding));
  }

  Builder& b_;
  Computation* step_;
  int64_t dim_;
  bool init_enters_last_;
  Instruction* neutral_;
};

// Arithmetic, which stays as wide as it is written.
Instruction* expand_arithmetic(Builder& b, const Instruction& op, const PrefixWindow& prefix) {
  Instruction *x = op.operand(0), *init = op.operand(1);
  Computation* step = op.to_apply();
  if (!init->is(kConstant) || !regroups(*step) || !is_neutral(*init->literal, *step)) return nullptr;
  return PrefixSums(b, step, std::nullopt, init, prefix.dim).made(x, prefix.backwards);
}

Instruction* expand_one_op(Builder& b, const Instruction& op, const PrefixWindow& prefix, Opcode step) {
  Instruction *x = op.operand(0), *init = op.operand(1);
  const DType type = x->shape.type, wide = working_type(type);
  if (wide != type) {
    x = b.convert(x, wide);
    init = b.convert(init, wide);
  }
  std::optional<Literal> neutral = neutral_number(step, wide);
  const bool init_enters_last = neutral.has_value();
  PrefixSums sums(b, b.combiner(step, wide), std::move(neutral), init, prefix.dim);
  Instruction* y = sums.made(x, prefix.backwards);
  if (init_enters_last) y = b.binary(step, b.broadcast(init, y->shape.dims), y);
  return wide == type ? y : b.convert(y, type);
}

}  // namespace

Instruction* expand_prefix_window(Builder& b, const Instruction& op) {
  const std::optional<PrefixWindow> prefix = prefix_window(op);
  if (!prefix) return nullptr;
  const int64_t n = op.shape.dims[static_cast<size_t>(prefix->dim)];
  if (n == 0 || (n > most_written_out(op.shape, prefix->dim) && n <= kDirect)) return nullptr;
  const std::optional<Opcode> step = combining_op(*op.to_apply());
  return step ? expand_one_op(b, op, *prefix, *step) : expand_arithmetic(b, op, *prefix);
}

}  // namespace hlojit
