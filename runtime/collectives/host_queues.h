// The runtime's side of HostQueues (hlojit.h).
#pragma once

#include "hlojit/hlojit.h"

namespace hlojit {

struct HostQueueAccess {
  static HostQueues::Impl& of(HostQueues& queues) { return *queues.impl_; }
};

}  // namespace hlojit
