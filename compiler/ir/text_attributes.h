// Attributes that no pass needs as data stay text (Attributes::other); these read it.
#pragma once

#include <string_view>

#include "compiler/ir/attributes.h"

namespace hlojit {

/// The text behind `name=`; empty if it is absent. It lives as long as `attributes`.
std::string_view text_attribute(const Attributes& attributes, std::string_view name);
/// Its first number.
int64_t int_attribute(const Attributes& attributes, std::string_view name, int64_t otherwise);
/// `{0,1}` as numbers: anything that is neither a digit nor a minus separates. Throws Error(kInvalid) for a
/// number beyond 63 bits.
Ints numbers_in(std::string_view text);

}  // namespace hlojit
