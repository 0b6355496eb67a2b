// What an op makes of a layout: the layout of a result whose elements come in the order of an operand's
// memory, and the other way round. Between two such layouts data is read as it is written; a transpose
// or reshape with one of them moves nothing and becomes a bitcast.
#pragma once

#include <optional>

#include "compiler/ir/module.h"

namespace hlojit {

/// The layout of `i`'s result that goes along with operand `k` in `layout`; nullopt if the op has no
/// opinion (a scalar, a contraction, a tuple). Tiles stay where whole tiles stay.
std::optional<Layout> along_operand(const Instruction& i, size_t k, const Layout& layout);

/// The layout of operand `k` that goes along with the result in `layout`.
std::optional<Layout> along_result(const Instruction& i, size_t k, const Layout& layout);

/// Layouts of a convolution's operands and result.
struct ConvolutionLayouts {
  Layout lhs, rhs, result;
};
/// Those in which what a window reads of a position lies together, and so do the features that are made of it; nullopt
/// where others do as well: no vector of features, or a window of one element. Of a gradient of weights, whose window
/// are the positions, features of the input take the place of the batch.
std::optional<ConvolutionLayouts> layouts_by_features(const Instruction& convolution, int64_t lanes);

/// The layout of what is read at places known at run time only (a gather's operand) in which the elements of a window
/// lie in a row, as they are written if that is in rows, too: what is copied once is gone through in rows by each
/// window. nullopt where they lie so already, are not written in a row and are few or bytes, or are fewer than the
/// operand's. (f64[6,364], 50,000 columns: 160 us, 60 so. f32[25,9,3], 3883 columns of 8 side by side: 10.3 us, 7.6.)
std::optional<Layout> layout_by_windows(const Instruction& gather);

/// Whether a gather written so reads its operand in rows at the price of a copy of it, if need be.
bool copies_by_windows(const Instruction& gather, const Layout& result);

/// The layout of running values (analysis/prefix.h) in which they lie beside each other, where a vector cannot take
/// several steps at once: the computation is no single op, and those along its dim come first. nullopt where they are
/// few.
std::optional<Layout> layout_by_steps(const Instruction& window, int64_t lanes);

/// Layouts of a scatter's targets (and results) and of its updates.
struct UpdateLayouts {
  Layout target, updates;
};
/// Those in which the elements of a window lie in a row in both; nullopt where they do already or are few, and where
/// copies of the targets would be dearer than the updates.
std::optional<UpdateLayouts> layouts_of_updates(const Instruction& scatter);

/// The layout of an element of a loop's state, of which each turn reads a part, in which these lie together: what is
/// copied once is read in rows by each turn. nullopt where they do already or are short, and where anyone else reads
/// it. (A scan over the transpose of u32[622,34]: 14.4 us, 4.5 so; of u32[622,1000] 426, 108; of f32[128,1000] 78, 55.
/// Where the body does little, parts of 64 gain nothing and parts of 32 lose a fifth.)
std::optional<Layout> layout_by_turns(const Instruction& loop, size_t element);

/// Whether a gather's windows, of bytes, are long enough and would lie so far apart in such a result that they are
/// better put together first and copied then. (Rows of words are transposed as they are read: f32[441,513], 515 rows as
/// columns, 70 us by rows and a copy, 30 so.)
bool scatters_windows(const Instruction& gather, const Layout& result);

/// The layout of a reduction's results that goes along with its first operand.
Layout along_reduced(const Instruction& reduce);

/// Whether a reduction written so would read elements apart that lie side by side, several for each that it makes:
/// better made as they lie and copied then. (f32[161,102,10] down its first dim, the others transposed: 64 us, 8.7 so.)
bool reduces_across(const Instruction& reduce, const Layout& result);

/// How much dearer an element is where data in one layout is read in the order of the other (same sizes):
/// 0 if they are the same, little if vectors still lie in a row, more if each element is apart.
double mismatch(const Ints& dims, const Layout& a, const Layout& b);

}  // namespace hlojit
