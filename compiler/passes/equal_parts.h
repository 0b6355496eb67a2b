// Dims of arrays in equal parts, of which each is a task or a lane of its own: what the passes that cut reductions and
// contractions share. How many depends on sizes alone.
#pragma once

#include "compiler/ir/module.h"
#include "compiler/plan/target_info.h"

namespace hlojit {

constexpr int64_t kMostParts = 256;

/// About `wanted` parts of n steps, of `inner` elements each: a number without a rest (one core's, at the end) if there
/// is such, or with a small one; then one whose parts begin at a vector's place; then an even one.
int64_t parts_of(int64_t n, int64_t wanted, int64_t inner);

/// The same of n rows that are summed up, into one of `inner` elements.
int64_t parts_of_rows(int64_t n, int64_t inner);

/// So many elements of rows that are summed up into one of `row_bytes` are worth cutting in parts of rows; of longer
/// rows the columns are cut.
bool sums_short_rows(const Shape& rows, int64_t row_bytes, const TargetInfo& target);

/// Elements [start, limit) of dim d.
Instruction* slice_along(Computation& c, Instruction* x, int64_t d, int64_t start, int64_t limit);

/// x with dim d as dims d and d + 1 of sizes [parts, size / parts]: where it lies.
Instruction* split_dim(Computation& c, Instruction* x, int64_t d, int64_t parts);

/// A convolution's spatial dim whose place p of the result reads place p of both operands, each of which has `parts`.
WindowDim window_of_parts(int64_t parts);
/// Whether it is one, of a result with so many places along it.
bool is_window_of_parts(const WindowDim& window, int64_t places);

/// Whether the next dim's elements lie between those of dim d, and no others.
bool lies_beside_next(const Shape& shape, int64_t d);
/// The two as one: a bitcast.
Instruction* join_with_next(Computation& c, Instruction* x, int64_t d);

}  // namespace hlojit
