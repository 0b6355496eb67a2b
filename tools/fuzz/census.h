// What the generator draws, counted: ops, the element types they were drawn with, kinds of layout.
#pragma once

#include <cstdint>
#include <string>

namespace hlojit::tools::fuzz {

/// A line an op and a line a kind of layout, from `count` modules of the seeds from `first` on; then the ops
/// and types that are never drawn, with the reason. Throws Error(kFailed) if one of those has no reason.
std::string census(uint64_t first, int64_t count);

}  // namespace hlojit::tools::fuzz
