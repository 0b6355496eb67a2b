// What kind of kernel a fused computation is, read off its graph alone: fuse asks before it merges,
// codegen asks before it emits, so neither can believe something the other does not.
//
//   nest         one loop nest over the roots' common dims: elementwise, data movement, gather, iota; a
//                single dynamic-update-slice root (the nest then runs over the update's dims)
//   rows         reductions of the same minor dims of one domain D = kept x reduced, elementwise before,
//                between and after: an outer nest over kept dims, inner stages over the reduced dims
//   columns      reductions of major dims: a nest over the kept dims (lanes on them) with the reduced dims
//                as inner loops and vector accumulators
//   contraction  one dot; producers fold into packing, elementwise consumers into the epilogue
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/module.h"

namespace hlojit {

enum class KernelKind : uint8_t { kNest, kRows, kColumns, kContraction };

/// "nest", "rows", "columns", "contraction": the words in backend_config={"hlojit":{"kernel":...}}.
std::string_view kernel_kind_name(KernelKind kind);

struct KernelPlan {
  KernelKind kind = KernelKind::kNest;
  /// Result values: the root, or the operands of a root tuple (multi-output), in order.
  std::vector<const Instruction*> roots;
  /// rows, columns: the first reduce (all others reduce dims of equal sizes); contraction: the dot.
  const Instruction* hero = nullptr;
  /// Logical sizes the kernel iterates: nest: the roots' dims (update's dims for a
  /// dynamic-update-slice root); rows: dims of the hero's operand; columns: dims of the hero's result;
  /// contraction: dims of the dot's result.
  std::vector<int64_t> domain;
  /// rows, columns: dims of the hero's operand that are reduced, ascending.
  std::vector<int64_t> reduced;
};

/// The plan of a computation, or nullopt (with the reason) if no kernel kind admits it.
std::optional<KernelPlan> plan_kernel(const Computation& fused, std::string* why_not = nullptr);

}  // namespace hlojit
