// What the generator draws, counted: ops, the element types they were drawn with, kinds of layout.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hlojit::tools::fuzz {

/// A line an op and a line a kind of layout, from `count` modules of the seeds from `first` on (as generate draws them
/// with `always`); then the ops and types that are never drawn, with the reason. Throws Error(kFailed) if one of those
/// has no reason.
std::string census(uint64_t first, int64_t count, const std::vector<std::string>& always);

}  // namespace hlojit::tools::fuzz
