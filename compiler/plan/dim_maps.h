// Where the dims of a value lie in a kernel's domain, carried backwards from results to operands: whether the
// values that depend on a reduction or a product only meet the domain the way a row meets its elements.
#pragma once

#include <vector>

#include "compiler/plan/graph.h"

namespace hlojit {

/// For each dim of a value: the domain dim it is, or -1 (a dim of size 1).
using DimMap = std::vector<int>;

/// Rows of a domain, along its `inner` dims: the dims of what has their elements' sizes, and of what has theirs.
struct RowMaps {
  RowMaps(const std::vector<int64_t>& domain, const std::vector<int64_t>& inner);
  std::vector<int64_t> all_dims, kept_dims;
  DimMap all, kept;
};

class DimMaps {
 public:
  /// `dependent`: the values it is about; others are computed anew wherever they are wanted.
  DimMaps(const KernelGraph& g, const InstructionSet& dependent) : g_(g), dependent_(dependent) {}

  /// `map` says where the dims of `value` lie. Refuses a value read at two places of a row.
  void reach(const Instruction* value, DimMap map);
  /// Carries the map of `i`, if it has one, to its operands. Refuses what moves elements.
  void step(const Instruction* i);

  /// A result has the sizes of the rows or of their elements. Refuses others.
  void reach_result(const Instruction* result, const RowMaps& rows);
  /// A reduction of rows: read row by row, reading elements.
  void step_reduce(const Instruction* reduce, const RowMaps& rows);

  const DimMap& map(const Instruction* value) const { return maps_.at(value); }
  bool reached(const Instruction* value) const { return maps_.contains(value); }

 private:
  const KernelGraph& g_;
  const InstructionSet& dependent_;
  InstructionMap<DimMap> maps_;
};

}  // namespace hlojit
