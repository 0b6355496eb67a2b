// The loops of one box of a domain while they are planned: digits made, merged, brought into order, lanes and blocks
// chosen among them, by what they do to every access. loop_plan.h says what comes of it.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "codegen/nest/loop_plan.h"

namespace hlojit::codegen {

/// Operations an element from which on they outweigh how it is moved.
inline constexpr int kManyOperations = 8;
/// Elements of a row found by index that are blocks; of longer ones it is half as many.
inline constexpr int64_t kFoundRow = 8;
/// Short rows that lie side by side in an operand and are met one after the other.
inline constexpr int64_t kRowsOfLines = 8;

struct LoopOrder {
  /// One digit a loop, dimension by dimension, outermost digit first: pieces[d] is the box's part of the dimension that
  /// the accesses know as dim_vars[d].
  LoopOrder(std::span<const DimPiece* const> pieces, std::span<const int> dim_vars, std::span<const Access> accesses,
            VarSource& vars);

  /// Neighbours that every address passes evenly become one loop.
  void merge_digits();
  /// Outer to inner by the memory order of the first write, else of the widest read.
  void order();
  /// Moves the digit that is best for vectors innermost; false if none is good. `block`: how many values of another
  /// digit may be handled together. `moves`: an element is moved more than worked on.
  bool choose_lanes(const LoopPlanOptions& options, int block, bool moves);
  /// Would lanes be put together of elements one by one, for so few operations that nothing is gained?
  bool scattered(int operations) const;
  /// Do elements of a vector have to be moved one by one?
  bool lanes_apart(int operations) const;
  /// Does some element of a vector lie where another one says?
  bool lanes_looked_up() const;
  /// Is there more of bf16 side by side in the lanes than of other elements, which would be shuffled?
  bool lanes_in_pairs() const;
  /// Takes a block out of a digit along which some access is contiguous that strides along the lanes.
  Unroll choose_unroll(int block, const LoopPlanOptions& options);
  /// Values of a transposing block, of so many operations in all, to be worked on at a time: all, where more is touched
  /// than so many bytes.
  int64_t part_of(const Unroll& block, int64_t operations, int64_t most_bytes) const;
  /// Takes a block out of a digit: all of a short one that the result alternates along beside the lanes, else so many
  /// of one along which reductions read the same elements, which are then loaded once for all of the block.
  Unroll choose_shared(const LoopPlanOptions& options);
  /// Takes out all of a short digit that the result alternates along beside the lanes.
  Unroll choose_interleaved();
  /// Takes out a small digit along which some access is contiguous, of loops without lanes; else one of up to so many
  /// rows that alternate in memory.
  Unroll choose_group(int64_t alternating);

  /// The digit outside of short rows of which a few values are to be gone through before the next row: an operand lies
  /// along it, and the loop between would leave its lines. `overlap`: some values may be met twice. Before lanes are
  /// chosen; keep_lines, after that, makes these few a loop around the lanes.
  std::optional<int> digit_of_lines(bool overlap) const;
  void keep_lines(int var);

  /// Lanes along what the result fills without gaps, across its rows: `vectors` of so many hold `rows` rows, of all
  /// digits inside of number `row_digits` of those that the result lies along. `left` rows behind the last of these
  /// periods are for others, where none may be computed twice. `price`: of an element.
  struct Across {
    std::vector<size_t> digits;
    size_t row_digits;
    int64_t lanes, vectors, rows, left;
    double price;
  };
  /// Null where rows are no shorter than `native` lanes or some vector's elements do not lie in few runs of an operand.
  /// `walk`: how much is done with the accesses, and what they are guarded by.
  std::optional<Across> across_rows(int native, bool overlap, const AccessWalk& walk) const;
  /// The loops of the rows that are left; those before them are what remains here.
  LoopOrder split_off_left(const Across& across);
  /// A block of the vectors; the innermost digit is their lanes.
  Unroll lay_across(const Across& across);

  int in_turn = 0;  ///< so many values that alternate in the result may be a block, not fewer than a transposed one has
  bool guarded = false;  ///< some element is read where a guard holds
  std::vector<LoopDigit> loops;
  Coords coords;
  std::vector<Access> accesses;

 private:
  std::vector<size_t> filled_digits() const;
  std::optional<double> price_across(const Across& across, double choices) const;
  bool sums_along(int var) const;
  bool tells_apart(const Across& across) const;
  bool interleaves_better(const Across& across, int64_t row, double price) const;
  bool asks_alike(const Across& across, std::span<const Edge> edges) const;
  void substitute_all(std::span<const IndexExpr::Substitution> values);
  bool mergeable(const LoopDigit& outer, const LoopDigit& inner) const;
  const Access* leader() const;
  bool can_be_innermost(const LoopDigit& digit) const;
  bool interleaves(const Access& write, int64_t stride, int block) const;
  std::vector<size_t> filling_digits(const Access& write, int64_t stride) const;
  void merge_filling_digits();
  void merge(size_t outer, size_t inner);
  bool reads_again(const Access& a, const LoopDigit& digit, bool all) const;
  bool windows_overlap(const LoopDigit& digit) const;
  bool alternates(const Access& a, const LoopDigit& digit) const;
  std::optional<size_t> interleaved_digit() const;
  bool fills_in_turn(const Access& a, const LoopDigit& l) const;
  std::optional<size_t> digit_of_squares(const Access& a, int side, bool overlap) const;
  bool leaves_lines(const Access& a, const LoopDigit& outer, const LoopDigit& inner) const;
  Unroll take_block(size_t k, int64_t block);
  const LoopDigit* found_row(const Access& access, const LoopDigit& lanes, int block) const;
  bool reads_rows(const Access& access, int64_t apart) const;
  bool one_by_one(const Access& access, const LoopDigit& lanes, std::optional<int64_t> step, int block) const;
  bool finds_elements() const;
  double share(const Access& access, int max_lanes, int block, bool light) const;
  double lane_score(const LoopDigit& digit, const LoopPlanOptions& options, int block, double apart) const;

  VarSource& vars_;
  std::vector<IndexExpr::Substitution> dims_;  // what the accesses' dims are in terms of the loops
};

/// Does each element along the variable lie where another one says?
bool looks_up(const Access& access, int var);
/// Do elements along the variable follow each other, wherever an index says that they begin?
bool side_by_side(const Access& access, int var);

/// Lanes a digit of this extent gets: the largest power of two <= both.
int lanes_for(int64_t extent, int max_lanes);

/// Lanes for a digit of `extent` whose last vector may overlap the one before: the fewest elements computed in all, a
/// vector of many lanes costing a little less than its parts; `side_by_side` (of LoopPiece) hardly less, where these
/// are few and long. (Softmax of rows of 97 floats, AVX-512 of a Zen 4: twice 64 lanes 27.5 us, seven times 16 24.0;
/// but thirteen times 16 for 200 elements took 1.1 times as long as four times 64, and AVX2's tanh of rows of 49 by 8
/// lanes instead of 32 1.13 times.)
int overlapping_lanes(int64_t extent, int wide, int native, bool side_by_side = false);

/// Replaces variables in what digits say of outer ones.
void substitute_in(std::vector<LoopDigit>& loops, std::span<const IndexExpr::Substitution> values);

}  // namespace hlojit::codegen
