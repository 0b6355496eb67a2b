// What somebody who wrote an unknown word may have meant.
#pragma once

#include <string>
#include <string_view>

namespace hlojit {

/// "did you mean 'add'?" of the opcode nearest to the word, or nothing if none is near.
std::string suggest_opcode(std::string_view word);

}  // namespace hlojit
