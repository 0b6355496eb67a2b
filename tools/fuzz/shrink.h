// The smallest module that still fails.
#pragma once

#include <functional>
#include <string>

namespace hlojit::tools::fuzz {

/// Cuts `text` down as long as `fails` holds: fewer results, instructions and computations, plain layouts,
/// smaller sizes. At most `tries` questions, none after `seconds`. Every module asked about is valid.
std::string shrink(const std::string& text, const std::function<bool(const std::string&)>& fails, int tries,
                   double seconds);

}  // namespace hlojit::tools::fuzz
