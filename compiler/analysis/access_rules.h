// What the parts of the access relation share: symbols, index vectors, dilation. Private to access*.cc.
#pragma once

#include <algorithm>
#include <utility>

#include "compiler/analysis/access.h"
#include "layout/lists.h"

namespace hlojit::access_rules {

/// A fresh symbol's variable.
inline IndexExpr symbol(std::vector<Symbol>& symbols, size_t operand, Coords coords, Range clamp, VarSource& vars) {
  symbols.push_back({vars.fresh(), operand, std::move(coords), clamp});
  return IndexExpr::var(symbols.back().var, clamp);
}

/// Appends the coordinate of a dim of size n whose elements lie `dilation` apart: read where `position`
/// falls on one of them.
inline void add_dilated(Read& read, const IndexExpr& position, int64_t dilation, int64_t n) {
  IndexExpr c = position;
  if (dilation > 1) {
    IndexExpr between = mod(position, dilation);
    if (!Guard{between, 0, 1}.always()) read.guards.push_back({between, 0, 1});
    c = floordiv(position, dilation);
  }
  read.coords.push_back(c);
  if (!Guard{c, 0, n}.always()) read.guards.push_back({c, 0, n});
}

/// The index array of a gather or scatter: index vectors lie along index_vector_dim (or are single numbers
/// where that is the array's rank), one for each element of the batch dims.
struct IndexVectors {
  const Shape& shape;
  size_t operand;
  int64_t index_vector_dim;
  const Coords& batch;  ///< coordinates in the other dims, in order

  Coords coords(size_t component) const {
    Coords c = batch;
    if (index_vector_dim < shape.rank())
      c.insert(c.begin() + index_vector_dim, IndexExpr(static_cast<int64_t>(component)));
    return c;
  }
  /// Batch coordinate along dimension d of the array.
  const IndexExpr& batch_at(int64_t d) const { return batch[static_cast<size_t>(d > index_vector_dim ? d - 1 : d)]; }
};

/// access_relation for ops that are is_reduction.
AccessRelation reduction_relation(const Instruction& instruction, const Coords& result,
                                  std::span<const IndexExpr> reduced, VarSource& vars);

}  // namespace hlojit::access_rules
