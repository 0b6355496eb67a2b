// See fork.h.
#include "runtime/fork.h"

#include "layout/error.h"

namespace hlojit {

const char* const kForkedOff =
    "this process was forked off one that had started to compute, and does not have its threads; start it by other "
    "means (multiprocessing: the start method \"spawn\"), or before the first computation";

void ThreadHome::require() const {
  if (lost()) throw Error(ErrorKind::kFailed, kForkedOff);
}

}  // namespace hlojit
