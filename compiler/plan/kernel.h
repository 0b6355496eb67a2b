// A kernel as a plan of stages: what a fused computation's loops are and which of them makes which value.
// The plan is made once (by fuse and wrap), printed into the fusion's backend_config, and emitted as it
// says: codegen decides nothing about the order of a kernel.
//
// A kernel runs over a *domain*. Its outer dims are a parallel nest; the *inner* dims are those that
// reductions go along, and every stage with `inner` set is one pass over them:
//
//   softmax over dim 1 of f32[64,1000]        domain [64,1000], inner {1}
//     inner reduce %m                         m = max(x)
//     inner reduce %s keep %e                 e = exp(x - m) into a row of scratch, s = sum(e)
//     inner store %d                          d = e / s, e read back
//
// The lanes of vectors go along the inner dims where these are minor in memory ("rows"), else along an
// outer one ("columns"); a kernel without reductions ("nest") is one stage without inner dims. A
// "scatter" holds one, in place, with light producers of its indices and updates. A
// contraction has a dot in its middle: producers fold into packing, consumers into the epilogue, and its
// blocks are in plan/blocks.h.
//
// A value is in a register unless a stage keeps it (in scratch) or stores it (in a result's buffer) and a
// later one wants it again: then it is made by exactly that stage, and the number of times that a dear op
// is evaluated can be read off the plan.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/module.h"
#include "compiler/plan/blocks.h"
#include "compiler/plan/target_info.h"

namespace hlojit {

enum class KernelKind : uint8_t { kNest, kRows, kColumns, kContraction, kScatter };

/// "nest", "rows", "columns", "contraction", "scatter": the words in backend_config={"hlojit":{"kernel":...}}.
std::string_view kernel_kind_name(KernelKind kind);

/// One pass: over the inner dims, or (not `inner`) once an outer element.
struct Stage {
  bool inner = false;
  std::vector<const Instruction*> reduces;  ///< combined side by side
  std::vector<const Instruction*> keeps;    ///< values of the domain left in scratch for later stages
  std::vector<size_t> stores;               ///< numbers of the roots it stores
  std::vector<size_t> rereads;              ///< of these, the ones that later stages load again
};

struct KernelPlan {
  KernelKind kind = KernelKind::kNest;
  /// Result values: the root, or the operands of a root tuple (multi-output), in order.
  std::vector<const Instruction*> roots;
  /// rows, columns: the first reduce (all others reduce dims of equal sizes); contraction: the dot;
  /// scatter: the scatter.
  const Instruction* hero = nullptr;
  /// Logical sizes the kernel iterates: nest: the roots' dims (update's dims for a
  /// dynamic-update-slice root); rows, columns: dims of the hero's operand; contraction: dims of the
  /// dot's result.
  std::vector<int64_t> domain;
  /// Dims of the domain that are inner, ascending.
  std::vector<int64_t> inner;
  /// In order of execution; empty for a contraction.
  std::vector<Stage> stages;
  /// Of a contraction; none: the dot's sums are pulled by a loop nest over its results.
  std::optional<Blocks> blocks;

  /// Sizes of the domain's dims that are not inner, and of those that are.
  std::vector<int64_t> outer_sizes() const;
  std::vector<int64_t> inner_sizes() const;
  /// Stage that stores root k.
  size_t stage_of_root(size_t k) const;
};

/// backend_config of a fusion with this plan:
/// {"hlojit":{"kernel":"rows","stages":["inner reduce %m","inner reduce %s keep %e","inner store %d"]}} or
/// {"hlojit":{"kernel":"contraction","blocks":"tile 6x16 block 96x512x256"}}.
std::string kernel_config(const KernelPlan& plan);
/// The fusion carries our own backend_config.
bool has_kernel_config(const Instruction& fusion);

/// The plan of a computation, or nullopt (with the reason) if no kernel admits it. `config`: a
/// backend_config whose stages are taken as they stand if they are legal for the computation, refused if
/// not; without stages they are made here.
std::optional<KernelPlan> plan_kernel(const Computation& fused, const TargetInfo& target, std::string_view config = {},
                                      std::string* why_not = nullptr);

/// The same question about instructions that are not a computation of their own (yet): `members` in
/// execution order, without tuples; what they read from outside stands for parameters. `roots` are the
/// members whose values leave. Members that no root needs are ignored.
std::optional<KernelPlan> plan_kernel(std::span<const Instruction* const> members,
                                      std::span<const Instruction* const> roots, const TargetInfo& target,
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
/// A parameter that a result of the fused computation is an update of (dynamic-update-slice, scatter): it
/// must be one buffer with that result.
struct Update {
  int64_t parameter;
  int64_t result;  ///< leaf number
};
std::vector<Update> updated_parameters(const Computation& fused);

/// Tuple-shaped ops whose elements are results of one kernel: variadic reductions and scatters.
bool has_several_results(const Instruction& instruction);

}  // namespace hlojit
