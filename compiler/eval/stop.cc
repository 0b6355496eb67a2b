// See stop.h.
#include "compiler/eval/stop.h"

#include <utility>

#include "layout/error.h"

namespace hlojit::eval {
namespace {

thread_local const std::atomic<bool>* stop_here = nullptr;

}  // namespace

Stoppable::Stoppable(const std::atomic<bool>* stop) : outer_(std::exchange(stop_here, stop)) {}
Stoppable::~Stoppable() { stop_here = outer_; }

void check_stop() {
  if (stop_here && *stop_here) throw Error(ErrorKind::kFailed, "stopped while evaluating");
}

}  // namespace hlojit::eval
