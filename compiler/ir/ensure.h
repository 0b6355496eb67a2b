// What an edit of the IR must be given. A pass that breaks it would corrupt memory, so this is asked in
// every build; it costs a comparison.
#pragma once

#include "layout/error.h"

namespace hlojit {

inline void ensure(bool holds, const char* what) {
  if (!holds) throw Error(ErrorKind::kFailed, std::string("internal error: ") + what);
}

}  // namespace hlojit
