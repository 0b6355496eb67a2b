// See stored_padding.h.
#include "codegen/kernels/stored_padding.h"

#include <algorithm>
#include <limits>
#include <span>
#include <unordered_set>

#include "codegen/number/multiply_add.h"
#include "compiler/plan/blocks.h"
#include "compiler/plan/operands_in_place.h"
#include "layout/divide.h"
#include "layout/index.h"

namespace hlojit::codegen {
namespace {

// Positions along a dim that memory has in all that is read to make a value, elementwise, of what lies there and of
// sums. 0: not known.
class Storage {
 public:
  Storage(const Instruction& dot, size_t dim) : dot_(dot), dim_(dim) {}

  int64_t behind(const Instruction* value) {
    visit(value);
    return least_;
  }

 private:
  void visit(const Instruction* i) {
    if (i == &dot_ || i->shape.is_scalar() || !seen_.insert(i).second) return;
    if (i->is(Opcode::kParameter)) {
      least_ = std::min(least_, stored_extent(i->shape, dim_));
      return;
    }
    const bool splat = i->is(Opcode::kBroadcast) && i->operand(0)->shape.is_scalar();
    if (i->operands().empty()) least_ = 0;
    for (size_t k = 0; k < i->operands().size() && !splat && least_ > 0; ++k) {
      if (!reads_own_element(*i, k)) least_ = 0;
      visit(i->operand(k));
    }
  }

  const Instruction& dot_;
  const size_t dim_;
  int64_t least_ = std::numeric_limits<int64_t>::max();
  std::unordered_set<const Instruction*> seen_;
};

// Of a dot: positions that memory has in an operand along what is a dim of the result, or, counted behind those, a
// contracted dim. 0: not known.
int64_t stored_in_operand(const Instruction& dot, size_t side, size_t number) {
  VarSource vars;
  Coords all;
  for (int64_t n : dot.shape.dims) all.push_back(IndexExpr::var(vars.fresh(), n));
  for (int64_t n : reduction_sizes(dot)) all.push_back(IndexExpr::var(vars.fresh(), n));
  const std::span<const IndexExpr> each = all;
  const auto rank = dot.shape.dims.size();
  const std::optional<Coords> read = operand_coords(dot, side, each.first(rank), each.subspan(rank));
  if (!read) return 0;
  const auto at = std::ranges::find(*read, all[number]);
  if (at == read->end()) return 0;
  return Storage(dot, static_cast<size_t>(at - read->begin())).behind(dot.operand(side));
}

// Rows or columns, the factors of `size`, up to a multiple of `unit`.
void fill_up(int64_t& size, std::vector<Factor>& factors, int64_t unit, size_t operand, const KernelPlan& plan,
             const Stage& stage) {
  const int64_t filled = round_up(size, unit);
  if (filled == size || factors.size() != 1) return;
  const Instruction& dot = *stage.product;
  const size_t dim = factors[0].dim;
  if (stored_in_operand(dot, operand, dim) < filled) return;
  for (size_t k : stage.stores) {
    const Instruction* root = plan.roots[k];
    if (std::min(stored_extent(root->shape, dim), Storage(dot, dim).behind(root)) < filled) return;
  }
  size = factors[0].size = filled;
}

}  // namespace

MatrixProduct with_stored_rest(MatrixProduct product, const KernelPlan& plan, const Stage& stage) {
  if (!stage.product->is(Opcode::kDot) || stage.stores.empty()) return product;
  std::vector<Factor>& rows = product.swapped ? product.rhs_free : product.lhs_free;
  std::vector<Factor>& columns = product.swapped ? product.lhs_free : product.rhs_free;
  fill_up(product.m, rows, product.rows_beside, product.rows_operand(), plan, stage);
  fill_up(product.n, columns, stage.blocks->tile_columns, product.columns_operand(), plan, stage);
  return product;
}

MatrixProduct with_stored_depth(MatrixProduct product, const Stage& stage) {
  const Instruction& dot = *stage.product;
  const int64_t slice = stage.blocks->depth, slices = round_up(product.k, slice);
  if (!dot.is(Opcode::kDot) || product.k < slice || slices == product.k || product.contracting.size() != 1)
    return product;
  // Where several terms are added at once, zeros fill up the last.
  const MultiplyAdd kind = stage.blocks->multiply_add;
  const bool pointed = rows_in_place(dot, product, kind, stage.blocks->tile_columns).pointed();
  if (form_of(kind).terms > 1 || pointed) return product;
  const size_t contracted = dot.shape.dims.size();
  for (size_t side : {0, 1}) {
    if (stored_in_operand(dot, side, contracted) < slices) return product;
  }
  product.k = product.contracting[0] = slices;
  return product;
}

}  // namespace hlojit::codegen
