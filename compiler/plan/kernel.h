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
// "scatter" holds one, in place, with light producers of its indices and updates. A "scan" is one pass along
// the dim of a prefix window, whose running value is stored at each step.
//
// A "contraction" has stages that are products: dots by a micro-kernel, cut up as plan/blocks.h says, whose
// producers fold into packing. A product that stores sends its tiles through an elementwise epilogue. One
// that does not leaves a block of rows of sums in scratch, over whose rows the next stages go one by one; what
// these keep for all rows may be an operand of another product:
//
//   attention                                 domain [8,1024,1024], inner {2}; for each block of 48 rows
//     product %s tile 6x16 block 48x1024x64   s = q.k
//     inner reduce %m
//     inner reduce %l keep %e
//     inner keep %p                           p = e / l, all rows of the block
//     product %y tile 6x16 block 48x64x256 store %y
//
// A value is in a register unless a stage keeps it (in scratch) or stores it (in a result's buffer) and a
// later one wants it again: then it is made by exactly that stage, and the number of times that a dear op
// is evaluated can be read off the plan.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/module.h"
#include "compiler/plan/products.h"
#include "compiler/plan/target_info.h"

namespace hlojit {

enum class KernelKind : uint8_t { kNest, kRows, kColumns, kContraction, kScatter, kScan };

/// "nest", "rows", "columns", "contraction", "scatter", "scan": the words in backend_config={"hlojit":{"kernel":...}}.
std::string_view kernel_kind_name(KernelKind kind);

/// Parts of a concatenation that are met in one loop of a nest, if they share what they read. (A row of the inverse of
/// a 3x3 matrix, nine of them, takes 0.63 of the time so; columns of 12 sorted by exchanges 0.26, of 25 0.25.)
constexpr int kMostPartsTogether = 32;
/// The same in any kernel.
constexpr int kMostPartsAnywhere = 9;

/// One pass: over the inner dims, or (not `inner`) once an outer element.
struct Stage {
  bool inner = false;
  const Instruction* product = nullptr;     ///< a dot, for the whole block of rows; then nothing but stores
  std::optional<Blocks> blocks = {};        ///< of the product
  std::vector<const Instruction*> reduces;  ///< combined side by side
  std::vector<const Instruction*> keeps;    ///< values of the domain left in scratch for later stages
  std::vector<size_t> stores;               ///< numbers of the roots it stores
  std::vector<size_t> rereads;              ///< of these, the ones that later stages load again
};

/// A value that the stages of a block of rows leave in scratch for each other.
struct ScratchTile {
  const Instruction* value = nullptr;
  size_t first = 0, last = 0;  ///< the stage that makes it, the last one that reads it
  bool whole = false;          ///< all rows of the block; else those at hand
  int64_t stride = 0;          ///< elements from one row to the next
  int64_t offset = 0;          ///< bytes in scratch; values that do not live together share memory
};

struct KernelPlan {
  KernelKind kind = KernelKind::kNest;
  /// Result values: the root, or the operands of a root tuple (multi-output), in order.
  std::vector<const Instruction*> roots;
  /// rows, columns: the first reduce (all others reduce dims of equal sizes); contraction: the first dot;
  /// scatter, scan: the scatter, the prefix window.
  const Instruction* hero = nullptr;
  /// Logical sizes the kernel iterates: nest: the roots' dims (update's dims for a
  /// dynamic-update-slice root); rows, columns: dims of the hero's operand; contraction: dims of the
  /// dot's result, or of the values that its rows' stages see.
  std::vector<int64_t> domain;
  /// Dims of the domain that are inner, ascending.
  std::vector<int64_t> inner;
  /// scan: the running value begins at the inner dim's last element.
  bool backwards = false;
  /// In order of execution. A contraction without a product stage pulls the dot's sums in a loop nest over its
  /// results.
  std::vector<Stage> stages;
  /// Of a contraction whose stages go through blocks of rows.
  std::vector<ScratchTile> tiles;
  int64_t tile_bytes = 0;     ///< of scratch that they take together
  int64_t rows_together = 1;  ///< of a block, that go through a stage before the next

  /// Sizes of the domain's dims that are not inner, and of those that are.
  std::vector<int64_t> outer_sizes() const;
  /// Of sizes of the domain's dims those of the outer ones.
  std::vector<int64_t> outer_of(std::span<const int64_t> sizes) const;
  std::vector<int64_t> inner_sizes() const;
  bool has_products() const {
    return std::ranges::any_of(stages, [](const Stage& s) { return s.product != nullptr; });
  }
  /// The stages go through blocks of rows: there are row stages beside the products.
  bool by_blocks() const { return kind == KernelKind::kContraction && !inner.empty(); }
  /// Rows of a block; has_products() only.
  int64_t block_rows() const;
};

/// backend_config of a fusion with this plan:
/// {"hlojit":{"kernel":"rows","stages":["inner reduce %m","inner reduce %s keep %e","inner store %d"]}} or
/// {"hlojit":{"kernel":"contraction","stages":["product %y tile 6x16 block 96x512x256 store %y"]}}.
std::string kernel_config(const KernelPlan& plan);
/// The fusion carries our own backend_config.
bool has_kernel_config(const Instruction& fusion);
/// The kind of kernel that it names; empty if it does not.
std::string_view planned_kind(const Instruction& fusion);

/// The plan of a computation, or nullopt (with the reason) if no kernel admits it. `config`: a
/// backend_config whose stages are taken as they stand if they are legal for the computation, refused if
/// not; without stages they are made here.
std::optional<KernelPlan> plan_kernel(const Computation& fused, const TargetInfo& target, std::string_view config = {},
                                      std::string* why_not = nullptr);

/// The same question about instructions that are not a computation of their own (yet): `members` in
/// execution order, without tuples; what they read from outside stands for parameters. `roots` are the
/// members whose values leave. Members that no root needs are ignored. `products`: of the instructions about which it
/// is asked.
std::optional<KernelPlan> plan_kernel(std::span<const Instruction* const> members,
                                      std::span<const Instruction* const> roots, Products& products,
                                      std::string* why_not = nullptr);

/// Some kernel kind can hold this op (perhaps only alone). False for control, tuples, parameters, and
/// for ops that are not compiled yet.
bool is_kernel_op(const Instruction& instruction);

/// Constants of at most this many bytes live inside fused computations; larger ones are parameters.
inline constexpr int64_t kInlineConstantBytes = 64;
/// Elements reduced to one from which on they are taken as they lie, and a result that lies otherwise is copied.
inline constexpr int64_t kWorthReadingAlong = 4;
bool is_inline_constant(const Instruction& instruction);

/// The plain copy that alias leaves between a donated parameter and the result made of it in place:
/// entry code runs it only if the caller gave the two different memory.
bool is_donated_copy(const Instruction& instruction);

/// A nest or a product that computes root number `root` reads parameter `parameter` only at the very element it
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
