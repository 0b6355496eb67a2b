// Memory that nobody may read beyond: where an array is touched at elements that it does not have, the process ends.
#pragma once

#include <memory>
#include <vector>

#include "hlojit/hlojit.h"

namespace hlojit::tools {

/// A copy of an array between two pages that cannot be touched.
class Fenced {
 public:
  /// `at_end`: its last byte is the last before a page, else its first is the first behind one.
  Fenced(const Buffer& array, bool at_end);
  /// Borrowed: `this` must outlive it.
  const Buffer& buffer() const { return buffer_; }

 private:
  std::shared_ptr<void> pages_;
  Buffer buffer_;
};

/// At which end values of this seed lie: `check` repeats what `fuzz` has found.
inline bool at_end(uint64_t seed) { return seed % 2 == 1; }

/// A device's arguments, but for those that results take over each between fences, which are added to `fences` and must
/// outlive them.
std::vector<Buffer> between_fences(const Executable& executable, std::vector<Buffer> arguments, bool at_end,
                                   std::vector<Fenced>& fences);

}  // namespace hlojit::tools
