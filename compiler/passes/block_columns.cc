// See block_columns.h.
#include "compiler/passes/block_columns.h"

#include <algorithm>

#include "compiler/analysis/dataflow.h"
#include "compiler/builder.h"
#include "compiler/ir/combining.h"
#include "compiler/passes/explain.h"

namespace hlojit {
namespace {

constexpr int64_t kCached = 32 << 20;   // bytes that some cache may hold
constexpr int64_t kRowBytes = 4 << 10;  // of shorter rows a strip is most
constexpr int64_t kFewest = 8, kRows = 16, kMost = 32;

/// Rows of a block: the divisor of n nearest to kRows, or 0.
int64_t rows_of(int64_t n) {
  int64_t best = 0;
  for (int64_t d = kFewest; d <= std::min(n / 2, kMost); ++d) {
    if (n % d == 0 && (best == 0 || std::abs(d - kRows) < std::abs(best - kRows))) best = d;
  }
  return best;
}

/// A matrix in memory order, of words, too large for the caches, whose rows are summed.
bool has_long_columns(const Shape& x) {
  if (!x.is_array() || x.rank() != 2 || x.has_dynamic_dims() || x.layout != Layout::descending(2)) return false;
  const int64_t bytes = dtype_bytes(x.type);
  return (bytes == 4 || bytes == 8) && x.dense_bytes() >= kCached && x.dims[1] * bytes >= kRowBytes &&
         rows_of(x.dims[0]) > 0;
}

Instruction* in_blocks(Builder& b, Instruction* x) {
  const Ints& dims = x->shape.dims;
  const int64_t rows = rows_of(dims[0]);
  Ints sizes = {dims[0] / rows, rows};
  sizes.insert(sizes.end(), dims.begin() + 1, dims.end());
  return b.reshape(x, sizes);
}

Instruction* blocked_reduce(Builder& b, const Instruction& reduce) {
  if (reduce.operand_count() != 2 || reduce.attrs.dimensions != Ints{0}) return nullptr;
  Instruction* x = reduce.operand(0);
  auto step = combining_op(*reduce.to_apply());
  auto neutral = step ? neutral_number(*step, x->shape.type) : std::nullopt;
  if (!neutral || !has_long_columns(x->shape)) return nullptr;
  Instruction* blocks = b.reduce({in_blocks(b, x)}, {b.constant(std::move(*neutral))}, reduce.to_apply(), {1});
  return b.reduce({blocks}, {reduce.operand(1)}, reduce.to_apply(), {0});
}

Instruction* blocked_dot(Builder& b, const Instruction& dot) {
  const DotDims& d = dot.attrs.dot;
  const bool plain = d.lhs_batch.empty() && d.lhs_contracting == Ints{0} && d.rhs_contracting == Ints{0};
  Instruction *x = dot.operand(0), *y = dot.operand(1);
  const DType type = dot.shape.type;
  if (!plain || x->shape.type != type || y->shape.type != type || !is_float(type)) return nullptr;
  if (x->shape.rank() + y->shape.rank() != 3 || !has_long_columns(x->shape.rank() == 2 ? x->shape : y->shape)) {
    return nullptr;
  }
  Attributes a;
  a.dot = {{0}, {0}, {1}, {1}};
  a.dot_algorithm = dot.attrs.dot_algorithm;
  a.operand_precision = dot.attrs.operand_precision;
  Instruction *p = in_blocks(b, x), *q = in_blocks(b, y);
  Instruction* blocks = b.op(Opcode::kDot, Shape::array(type, {p->shape.dims[0], dot.shape.dims[0]}), {p, q}, a);
  return b.reduce({blocks}, {b.constant(type, 0)}, b.combiner(Opcode::kAdd, type), {0});
}

}  // namespace

bool block_columns(Module& module, const PipelineOptions& options) {
  bool changed = false;
  for (Computation* c : sequential_computations(module)) {
    bool here = false;
    for (Instruction* i : c->snapshot()) {
      if (!i->control_predecessors.empty()) continue;
      Builder b(c);
      Instruction* made = i->is(Opcode::kReduce) ? blocked_reduce(b, *i)
                          : i->is(Opcode::kDot)  ? blocked_dot(b, *i)
                                                 : nullptr;
      if (!made) continue;
      explain(options, "block_columns", *c, "{}: blocks of {} rows", i->name, rows_of(i->operand(0)->shape.dims[0]));
      made->shape.layout = i->shape.layout;
      made->location = i->location;
      i->replace_all_uses_with(made);
      here = true;
    }
    if (here) c->sort_topologically();
    changed |= here;
  }
  return changed;
}

}  // namespace hlojit
