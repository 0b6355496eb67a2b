// How a finding is shown to a person.
#pragma once

#include <string>
#include <string_view>

#include "layout/error.h"

namespace hlojit {

/// The lines that follow a diagnostic's first line (`LINE:COLUMN: message`, see Error::what): the
/// source line with a caret under the place, the rule, the details. Long lines are cut around the
/// caret. Empty if the diagnostic has nothing to add; ends in a line end otherwise.
std::string render(const Diagnostic& diagnostic, std::string_view source);

}  // namespace hlojit
