// Literals as text: what stands in the parentheses of constant(...).
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "compiler/ir/literal.h"
#include "compiler/text/lexer.h"

namespace hlojit {

/// `1.5`, `{1, 2}`, `{ { 1, 2 }, { 3, 4 } }`, `(1, {2, 3})`, `(1, -2)` for complex; always in
/// logical order and in full. Fewest digits that read back to the same bits; NaNs keep sign and
/// payload.
std::string literal_to_string(const Literal& literal);
void append_literal(const Literal& literal, std::string& out);

/// Makes the values of an array whose own were left out when it was printed, `{...}`: called in the
/// order of the text, gives a literal of that shape. None: such text is an error.
using ElidedValues = std::function<Literal(const Shape& shape)>;

/// Inverse of the above; the whole text. Throws Error(kInvalid) with a location in `text`.
Literal parse_literal(const Shape& shape, std::string_view text);
/// Reads a literal of the given shape at the cursor.
Literal read_literal(Cursor& in, const Shape& shape, const ElidedValues& elided = {});

/// With the shape in front of each array: `s32[2]{0} {1, 2}`, `( f32[] 1, ( u8[1]{0} {3} ) )`.
void append_shaped_literal(const Literal& literal, std::string& out);
Literal read_shaped_literal(Cursor& in, int depth = 0);

}  // namespace hlojit
