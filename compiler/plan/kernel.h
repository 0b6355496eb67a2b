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
#include <span>
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

/// backend_config of a fusion of this kind: {"hlojit":{"kernel":"rows"}}.
std::string kernel_config(KernelKind kind);
/// The fusion carries our own backend_config (it was printed by us; plan_kernel still decides).
bool has_kernel_config(const Instruction& fusion);

/// The plan of a computation, or nullopt (with the reason) if no kernel kind admits it.
std::optional<KernelPlan> plan_kernel(const Computation& fused, std::string* why_not = nullptr);

/// The same question about instructions that are not a computation of their own (yet): `members` in
/// execution order, without tuples; what they read from outside stands for parameters. `roots` are the
/// members whose values leave. Members that no root needs are ignored.
std::optional<KernelPlan> plan_kernel(std::span<const Instruction* const> members,
                                      std::span<const Instruction* const> roots,
                                      std::string* why_not = nullptr);

/// Some kernel kind can hold this op (perhaps only alone). False for control, tuples, parameters, and
/// for ops that are not compiled yet.
bool is_kernel_op(const Instruction& instruction);

/// Constants of at most this many bytes live inside fused computations; larger ones are parameters.
inline constexpr int64_t kInlineConstantBytes = 64;
bool is_inline_constant(const Instruction& instruction);

/// The plain copy that alias leaves between a donated parameter and the result made of it in place:
/// entry code runs it only if the caller gave the two different memory.
bool is_donated_copy(const Instruction& instruction);

/// A nest that computes root number `root` reads parameter `parameter` only at the very element it
/// writes, and both have the same sizes, layout and element width: the two may be one buffer.
bool reads_in_place(const Computation& fused, int64_t parameter, int64_t root);
/// Parameter that the fused computation's dynamic-update-slice root updates, or -1: it must be one
/// buffer with the result.
int64_t updated_parameter(const Computation& fused);

}  // namespace hlojit
