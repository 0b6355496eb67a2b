// Digits: how a loop dimension is cut so that every address in the loop is affine.
//
// An operand's address breaks where one of the digits of its layout wraps. Where all breaks of a
// dimension nest (each width divides the next, offsets are multiples) they become nested loops, one
// a digit. Where they do not nest they repeat with a period P (the lcm of the wrap lengths) and cut
// it into runs; each run is a piece of its own with an outer loop over periods and an inner loop
// over the run. Tiles 8 and 12: P = 24, runs 8,4,4,8.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "layout/index_expr.h"

namespace hlojit {

/// One loop of a piece: contributes `stride * v` to the dimension, v in [0, extent).
/// `extent` is the largest trip count; when `clipped`, iterations whose dimension value (sum over
/// this and all outer digits of the dimension, plus the piece's start) reaches `limit` do not
/// exist: trip = min(extent, ceildiv(limit - value_so_far, stride)).
struct Digit {
  int64_t stride = 1;
  int64_t extent = 1;
  bool clipped = false;
};

/// A set of values of one dimension: start + sum digit.stride * v, cut off at limit.
/// Digits are outermost first.
struct DimPiece {
  int64_t start = 0;
  int64_t limit = 0;  ///< exclusive bound of the dimension's value in this piece
  std::vector<Digit> digits;
};

/// How one loop dimension of size n is cut: pieces together cover [0, n) exactly once.
struct DimCut {
  std::vector<DimPiece> pieces;
};

/// A break pattern of one dimension: in iterations i, something wraps where
/// (i + offset) is a multiple of width (width > 0; offset may be any integer). With `within` > 0
/// the count restarts at every multiple of it: something wraps where (i + offset) mod within is a
/// multiple of width. (A reshape that merges a dimension of 130 tiled by 8: width 8 within 130.)
struct Break {
  int64_t width = 1;
  int64_t offset = 0;
  int64_t within = 0;
  bool moves = false;  ///< one of several offsets that other variables choose between
  bool operator==(const Break&) const = default;
};

/// Cuts a dimension of size n for the given breaks, and at the given edges (interior boundaries
/// such as those of concatenate and pad, each in (0, n); others are ignored). `max_runs`: at most
/// that many pieces between two edges; breaks that would need more are left uncut, coarsest first
/// (addresses keep floordiv/mod for them: slow, still right).
DimCut cut_dimension(int64_t n, std::span<const Break> breaks, std::span<const int64_t> edges, int max_runs = 8);

/// Breaks of variable `id` that the floordiv/mod atoms of an expression ask for, nested atoms
/// included. Where the other terms of an atom's operand can shift the break, there is one `moves`
/// break for each shift; atoms that would need more than a few dozen are left out (they stay as
/// they are).
std::vector<Break> breaks_of(const IndexExpr& expr, int id);

}  // namespace hlojit
