// The grammar of shapes as a cursor over a longer text, shared with the HLO parser.
#pragma once

#include <string_view>

#include "layout/shape.h"

namespace hlojit {

/// Reads a shape (tuple shapes included, comments allowed) from text[pos...],
/// advances pos past it; throws Error(kInvalid) whose location is computed from the whole text.
/// Implements the lookahead rule for '{' (a layout only if an int or ':' follows).
/// validate = false leaves layout and size rules to the verifier.
Shape parse_shape_at(std::string_view text, size_t& pos, bool validate = false);

}  // namespace hlojit
