// The forms that values of attributes take in text, each read and written.
//
// Reading happens at the cursor and fails there; writing appends the canonical form, without the
// attribute's name.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/attributes.h"
#include "compiler/text/lexer.h"

namespace hlojit {

using Words = std::span<const std::string_view>;

/// Index of the word that is next; the error lists those allowed.
size_t read_word(Cursor& in, Words words, std::string_view attribute, bool any_case = false);

void append_int(int64_t value, std::string& out);
/// `{1,2}`
Ints read_ints(Cursor& in);
void append_ints(const Ints& values, std::string& out);
/// `{{0,1},{2,3}}` or `{}`, as text without spaces.
std::string read_int_lists(Cursor& in);
/// `[2,2]<=[4]T(1,0)`: device groups as a reshaped and transposed count, as text without spaces.
std::string read_iota_groups(Cursor& in);
/// What follows `mesh` in `mesh['a'=2,'b'=4] {'b'}`, as lists: `{{0,1,2,3},{4,5,6,7}}`.
std::string read_mesh_groups(Cursor& in);

/// `0_1x2_-3`, with a third number an entry if `interior`; nothing for a scalar.
std::vector<PadDim> read_padding(Cursor& in, bool interior);
void append_padding(const std::vector<PadDim>& dims, std::string& out);
/// `{size=3x3 stride=2x2 pad=1_1x0_2}`
std::vector<WindowDim> read_window(Cursor& in);
void append_window(const std::vector<WindowDim>& window, std::string& out);
/// `b01f_01io->b01f`
ConvDims read_dim_labels(Cursor& in);
void append_dim_labels(const ConvDims& dims, std::string& out);
/// `{[0:4], [1:9:2]}`
std::vector<SliceRange> read_slice(Cursor& in);
void append_slice(const std::vector<SliceRange>& ranges, std::string& out);
/// `{{1}: (0, {}, may-alias)}`, of the module header and of output_to_operand_aliasing.
std::vector<Alias> read_aliases(Cursor& in);
std::string aliases_to_string(const std::vector<Alias>& aliases);

}  // namespace hlojit
