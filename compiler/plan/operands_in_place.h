// Operands of a product that are read where they lie, and what is known of how they lie: what need not be packed, and
// what has its blocks cut otherwise because it comes from far away.
#pragma once

#include "compiler/plan/blocks.h"

namespace hlojit {

/// Neighbours along the depth are neighbours in memory.
bool lies_along_depth(const Instruction& contraction, const MatrixProduct& product, size_t operand);
/// So are groups of as many terms as a lane of the sums takes.
bool lies_in_groups(const Instruction& contraction, const MatrixProduct& product, size_t operand,
                    const MultiplyAddForm& form);

/// How the rows' operand, an array, is read where it lies; by default it is packed.
struct RowsInPlace {
  /// Each element at constant strides. (Rows a page or more apart share few cache sets and need an entry of the TLB
  /// each, and are packed; so are steps of the depth, where many columns read them.)
  bool at_strides = false;
  /// At strides, and a row's elements follow each other, however far rows are apart: 2048x1024 by 1024x32 takes 0.9 of
  /// the time so, by 2048x32 0.73 (Zen 4).
  bool along_depth = false;
  /// > 0: so many elements of a row lie together, and a pointer leads to them for each position of the window. As deep
  /// a slice as the panel of columns allows costs nothing more then: a convolution of 3x3 by 128 features took 0.91 of
  /// the time, one in three dims of 32 features 0.72. So is a dot's row in a tiled array, where the last stretch may be
  /// a part, or of two dims that do not follow each other (1024x1024 by 1024x1024 in T(8,128) 0.97, 512 0.96, Zen 4).
  int64_t stretch = 0;
  /// > 1: so many rows lie together, tiles are parts of them, and a pointer leads to them for each step of the depth. A
  /// gradient of a convolution's weights took 0.5 to 0.6 of the time. Where they share out no better, tiles have as few
  /// as two rows (14 or 22 features with AVX2, whose tiles have six at most): packing took 1.5 times as long even so.
  int64_t together = 1;
  /// > 1: registers of so many rows are read at once (MultiplyAddForm::tiles()), a pointer leads to the first, for each
  /// stretch, and the others follow `apart` elements from one to the next: positions in a line of an image that has its
  /// padding. A convolution of 3x3 by 128 features took 0.77 of the time of packing each position's window (Granite
  /// Rapids).
  int64_t in_line = 1, apart = 0;
  bool packed() const { return !at_strides && !pointed(); }
  bool pointed() const { return stretch > 0 || together > 1; }
  /// Slices of this depth are made of whole stretches, or stretches of whole slices, where there are any.
  bool whole_stretches(int64_t depth, int64_t all) const {
    return stretch == 0 || stretch % depth == 0 || depth % stretch == 0 || all <= depth;
  }
};
RowsInPlace rows_in_place(const Instruction& contraction, const MatrixProduct& product, MultiplyAdd kind,
                          int64_t tile_columns);

/// The array whose elements a reshape or a slice has, from some place on, in the order in which it would have them
/// itself; null if there is none. (The weights of a layer, by its number.)
const Instruction* array_of_piece(const Instruction& value);

/// Whether the columns' operand is read as well where it lies as from packed panels. Its columns are neighbours in
/// memory, and a panel's part of it finds room in the second cache, where strides of whole pages share few sets. In
/// place, a product of 512 takes 0.93 of the time (AVX-512 of a Zen 5); with AVX2's narrow panels, one of 1024 would
/// take 1.35. Of more than the second cache holds, panels that many rows read are packed. On Sapphire Rapids, whose
/// second cache does not keep up, 2048 takes 1.15 of the time, an odd 1019 1.23, and 128 0.95.
bool columns_in_place(const Instruction& contraction, const MatrixProduct& product, const Blocks& blocks,
                      const TargetInfo& target);

/// The columns' operand is packed for a second cache that does not keep up with panels where they lie: it is large, or
/// read for many of a dot's rows.
bool packs_for_second_cache(const Instruction& contraction, const MatrixProduct& product, const TargetInfo& target);

/// How deep a slice of the columns' operand may be to be read in place; 0: it is packed.
int64_t depth_in_place(const Instruction& contraction, const MatrixProduct& product, const Blocks& blocks,
                       const TargetInfo& target);

/// The columns' operand is more than what the cores would keep of it in the last cache, all batches together. (Eight
/// products of eight rows by 586x1522 take 0.38 of the time as one by so much would be done.)
bool from_memory(const Instruction& contraction, const MatrixProduct& product, const TargetInfo& target);

/// The right side is larger than a core's caches, and read for a few tiles of rows: its rows are walked along, for deep
/// panels would touch a page for each few elements. (24 rows by 67 MB took 0.65 of the time of packing them.)
bool walks_rows(const Instruction& contraction, const MatrixProduct& product, const Blocks& blocks,
                const TargetInfo& target);

/// Slices are a few rows of a right side that comes from memory, or pieces of its columns: no prefetcher gets far in
/// them.
bool walks_memory(const Instruction& contraction, const MatrixProduct& product, const Blocks& blocks,
                  const TargetInfo& target);

}  // namespace hlojit
