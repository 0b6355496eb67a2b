// Reducers: what a reduce's computation does to accumulators, as vector IR. A computation that is a
// single associative op (add, max, or, ...) has an identity, so accumulators can be split over lanes and
// summed in a tree; any other is inlined, and its elements are taken in order unless that is proven not to
// matter (argmax and its kin, compiler/analysis/reorder.h).
#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "codegen/number/elementwise.h"
#include "compiler/analysis/access.h"

namespace hlojit::codegen {

class ElementEmitter;
struct Scope;

/// Results of a scalar computation applied to values (all of one lane count). `plain`: it is (ir/combining.h), and
/// nothing is rounded. `less` >= 0: of a computation on two results, value number `less` of the first is known to be
/// less than the second's.
std::vector<Value> inline_computation(llvm::IRBuilderBase& b, const NumberOptions& options,
                                      const Computation& computation, std::span<const Value> arguments,
                                      bool plain = false, int less = -1);

/// A maximum or minimum of f16 or bf16: these are compared as integers as wide as they are stored, unless their lanes
/// are parts of one result and bf16.
bool compares_stored(const Instruction& reduction);

/// What the accumulators of a reduction are.
enum class Held {
  kParts,    ///< their lanes, if they have any, are parts of one result
  kResults,  ///< of results of their own
  kAsOne,    ///< the same, of which each is one value: it is moved from lane to lane, or kept in memory
};

class Reducer {
 public:
  /// Of any is_reduction instruction.
  static Reducer of(const Instruction& reduction, const NumberOptions& options, Held held);

  bool has_identity() const { return op_.has_value(); }
  bool reorderable() const { return reorderable_; }
  /// Partial results may be combined in any order, but elements must be met from the first to the last.
  bool ascends() const { return position_ >= 0 || numbers_ >= 0; }
  /// Of an accumulator.
  int values() const { return as_bits_ ? 3 : as_numbers_ ? 2 : 1; }
  bool idempotent() const { return op_ && has_trait(*op_, op_trait::kIdempotent); }
  /// Combining rounds: the order of terms is seen in the result, and their number in its error.
  bool rounds() const;
  std::vector<Value> identity(llvm::IRBuilderBase& b) const;  ///< scalars
  /// Scalars in all of so many lanes.
  std::vector<Value> of_lanes(llvm::IRBuilderBase& b, std::vector<Value> values, int lanes) const;

  /// Values of the relation's reads (contractions, sums of products: both factors; of contractions converted).
  std::vector<Value> operands(ElementEmitter& emitter, Scope& scope, const Instruction& reduction,
                              const AccessRelation& relation) const;
  /// Values as accumulators hold them. A vector of conditions that a loop carries is taken apart, a register each:
  /// they are added up as bytes. Extrema of floats are those of integers (number/extrema.h): of their bits, three, or
  /// of a key, where each is to be one value, and of f64, whose long integers take longer. (Maxima of the columns of 23
  /// slices of 57x67, a Zen 4: 5.1 us by keys, 3.8 by three; of 3x3 windows of f64 43 and 65.) AVX-512 has an
  /// instruction for floats that only leaves NaNs out: where lanes are parts of one result, whether there were any is
  /// asked of two vectors at once and kept for a register's lanes. (Maxima of 23 slices of 57x67, one core of a Zen 5:
  /// 2.04 us, 1.66.)
  std::vector<Value> accumulated(llvm::IRBuilderBase& b, std::span<const Value> values) const;
  /// Accumulators after one more element: of those that must be met in order, the next.
  std::vector<Value> step(llvm::IRBuilderBase& b, const NumberOptions& options, std::span<const Value> accumulators,
                          std::span<const Value> values) const;
  /// Two partial results, of whichever elements.
  std::vector<Value> combine(llvm::IRBuilderBase& b, const NumberOptions& options, std::span<const Value> left,
                             std::span<const Value> right) const;
  /// Vector accumulators to scalars: halves combined until one lane is left.
  std::vector<Value> across_lanes(llvm::IRBuilderBase& b, const NumberOptions& options, std::vector<Value> parts) const;
  /// Accumulators to results: the one rounding of narrow floats.
  std::vector<Value> finish(llvm::IRBuilderBase& b, const NumberOptions& options, std::vector<Value> totals) const;

 private:
  /// The computation on what came first and what came later. `less`: as of inline_computation.
  std::vector<Value> apply(llvm::IRBuilderBase& b, const NumberOptions& options, std::span<const Value> left,
                           std::span<const Value> right, int less = -1) const;
  std::vector<Value> apply_in_parts(llvm::IRBuilderBase& b, const NumberOptions& options,
                                    std::span<const Value> arguments, int less) const;

  std::optional<Opcode> op_;
  bool reorderable_ = false;
  int position_ = -1, numbers_ = -1;     // Reorder's
  bool as_bytes_ = false;                // accumulators are bytes of equal bits
  bool as_keys_ = false;                 // accumulators are integers in the order of floats
  bool as_bits_ = false;                 // they are the extrema of floats' bits, signed and unsigned
  bool as_numbers_ = false;              // they are a number, and whether all were numbers
  bool contracts_ = false;               // sums products of two factors
  bool sums_ = false;                    // terms, of which some may be products
  bool plain_ = false;                   // is_plain_float: rounded at the end
  DType accumulator_ = DType::kInvalid;  // of a single-op reducer
  DType result_ = DType::kInvalid;
  const Computation* computation_ = nullptr;
};

}  // namespace hlojit::codegen
