// The single expansions of the pass `expand`. Each appends the simpler ops to the builder's
// computation and returns the value that stands for the instruction, or nullptr if it has none.
#pragma once

#include <functional>
#include <span>

#include "compiler/builder.h"
#include "compiler/ir/module.h"
#include "compiler/plan/target_info.h"

namespace hlojit {

/// The computation's scalar ops on arrays of sizes `dims`, in place of a call an element;
/// `arguments` by parameter number. nullptr if the computation holds more than elementwise ops on
/// scalars, tuples of them and maps of the same.
Instruction* apply_elementwise(Builder& b, const Computation& computation, std::span<Instruction* const> arguments,
                               const Ints& dims);

/// What an expansion has made, `made`, expanded by another if that has something to do.
using Expansion = std::function<Instruction*(Builder&, const Instruction&)>;
Instruction* expanded(Builder& b, Instruction* made, const Expansion& expansion);

/// rng-bit-generator: (new state, data), or the data alone if that is its shape.
Instruction* expand_random_bits(Builder& b, const Instruction& op);

/// rng, on rng-get-and-update-state.
Instruction* expand_rng(Builder& b, const Instruction& op);

/// batch-norm-inference (an array), -training and -grad (tuples of three). `count`, a scalar of the type computed
/// in (f64 or f32): how many elements a feature has; nullptr for as many as the sizes say.
Instruction* expand_batch_norm(Builder& b, const Instruction& op, Instruction* count = nullptr);

/// A reduce-window whose windows hold everything up to (or from) each element, in blocks, or written out if there are
/// few. nullptr if it is none of those, or one running value does, or its computation may not be regrouped.
Instruction* expand_prefix_window(Builder& b, const Instruction& op);

/// A reduce-window of a few long windows, as reductions. nullptr if it is none, or its computation may not be
/// regrouped.
Instruction* expand_few_windows(Builder& b, const Instruction& op);

/// A conditional in a computation that is applied to elements, as selects. nullptr if a branch is more than
/// elementwise ops on scalars.
Instruction* expand_branches(Builder& b, const Instruction& op);

/// Loops over the rows and their elements. nullptr if kernels can apply the computation.
Instruction* expand_reduce(Builder& b, const Instruction& op);

/// Loops over the updates, and over the elements of windows. nullptr if kernels can apply the computation.
Instruction* expand_scatter_in_turn(Builder& b, const Instruction& op);
Instruction* expand_windows_in_turn(Builder& b, const Instruction& op);

/// A scatter of elements into an array of one dim. nullptr if it is none, or of few.
Instruction* expand_flat_scatter(Builder& b, const Instruction& op);

/// A loop over the steps of a sorting network. nullptr if merges can ask the computation.
Instruction* expand_sort_in_turn(Builder& b, const Instruction& op);

/// A while loop.
Instruction* expand_scan(Builder& b, const Instruction& op);

/// Dots, by the role of the ragged dim. nullptr for sizes that differ by batch.
Instruction* expand_ragged_dot(Builder& b, const Instruction& op, const TargetInfo& target);

/// A dot of the scaled operands. nullptr for types that are not float.
Instruction* expand_scaled_dot(Builder& b, const Instruction& op, const TargetInfo& target);

/// A dot of operands of one type; a large one of complex numbers as one of real ones, one of few terms as their sum.
Instruction* expand_dot(Builder& b, const Instruction& op, const TargetInfo& target);

/// A dot of real numbers. nullptr if it is not one of complex numbers, or too small to be worth it.
Instruction* expand_complex_dot(Builder& b, const Instruction& op, const TargetInfo& target);

/// Sums of elementwise products. nullptr if it has more than a few terms, or the right side's rows fill no vector.
Instruction* expand_short_dot(Builder& b, const Instruction& op, const TargetInfo& target);

/// Products elementwise, and their sums. nullptr if the elements of a batch do not lie side by side, or neither side
/// has few rows.
Instruction* expand_batch_dot(Builder& b, const Instruction& op, const TargetInfo& target);

/// Steps between its terms, elementwise. nullptr if it has more than a few, or they lie in memory as they are.
Instruction* expand_short_reduce(Builder& b, const Instruction& op);

/// LAPACK's function in place of XLA's custom calls Qr, Eigh and ProductOfElementaryHouseholderReflectors. nullptr for
/// other calls.
Instruction* expand_factors(Builder& b, const Instruction& call);

/// A convolution without gaps in its input. nullptr if it has none, or they are not worth it.
Instruction* expand_dilated(Builder& b, const Instruction& op, const TargetInfo& target);

/// A product for all taps of the window, and a sum of what they see. nullptr if it is not one to a few features, or its
/// products leave the caches.
Instruction* expand_few_features(Builder& b, const Instruction& op, const TargetInfo& target);

/// Floats that are equal, and all NaNs, as one each: what SortOrder::canonical compares.
Instruction* canonical_form(Builder& b, Instruction* x);

/// A topk, filled up. nullptr if more than a few first elements of rows are read, or the order is not one of keys.
Instruction* expand_leading_sort(Builder& b, const Instruction& op);

/// Exchanges of elements, in all rows at once. nullptr if these are few or long, or the order is not one of keys.
Instruction* expand_short_sort(Builder& b, const Instruction& op);

/// Reductions, two for each of the best. nullptr if these are many, the rows few or long, or the order not one of keys.
Instruction* expand_short_top_k(Builder& b, const Instruction& op);

/// A reduce-window that picks, and a scatter.
Instruction* expand_select_and_scatter(Builder& b, const Instruction& op);

/// A scatter that drops windows partly out of bounds whole: starts of such windows move far outside. nullptr
/// if no window can be partly out of bounds.
Instruction* expand_whole_windows(Builder& b, const Instruction& op);

/// topk, cholesky or triangular-solve of a type that its step does not know: the same in a wider one. nullptr if
/// it does.
Instruction* expand_narrow_step(Builder& b, const Instruction& op);

}  // namespace hlojit
