// Names for things that are looked up by what they hold, code above all: BLAKE3, so that nobody can make two
// inputs of one name.
#pragma once

#include <string>
#include <string_view>

namespace hlojit::codegen {

/// 32 bytes as 64 hexadecimal digits.
std::string digest(std::string_view bytes);

}  // namespace hlojit::codegen
