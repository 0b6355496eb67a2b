// The part of a computation that one kernel would hold, as the planners ask about it.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "compiler/ir/instruction_set.h"
#include "compiler/ir/module.h"

namespace hlojit {

/// Why there is no plan. Thrown and caught inside plan/ only.
struct Refused {
  std::string why;
};
[[noreturn]] void refuse(std::string why);

/// "add sum.3", for reasons.
std::string quoted(const Instruction* instruction);

/// One of the results of an op that has several.
bool is_result_element(const Instruction* instruction);

/// The members that some root needs, in execution order.
struct KernelGraph {
  using Instructions = std::span<const Instruction* const>;
  /// Refuses what no kernel holds.
  KernelGraph(Instructions members, Instructions roots);

  std::vector<const Instruction*> members;
  std::vector<const Instruction*> roots;
  std::vector<const Instruction*> reduces, dots, convolutions, updates, scatters;
  std::vector<const Instruction*> scans;  ///< prefix windows (analysis/prefix.h)

  bool has(const Instruction* i) const {
    const Given* given = given_.find(i);
    return given && given->needed;
  }
  /// Some update leaves, and is made in place; one that is read here only is a choice between what is read.
  bool updates_results() const {
    return std::ranges::any_of(updates, [&](auto* u) { return std::ranges::find(roots, u) != roots.end(); });
  }
  /// Members that depend on one of `sources` (themselves included).
  InstructionSet dependents(Instructions sources) const;

 private:
  struct Given {
    bool needed = false;  ///< by a root: it is a member
  };
  InstructionMap<Given> given_;
};

/// Sizes of a value; of a variadic reduce those of each of its results.
const std::vector<int64_t>& dims_of(const Instruction* value);

}  // namespace hlojit
