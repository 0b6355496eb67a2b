// The host's side of a program that exchanges values with it: what it has ready (the same for every device) and what it
// is handed, for runs and for the oracle alike. Transfers stand in the entry, one after the other.
#pragma once

#include <map>
#include <vector>

#include "compiler/ir/module.h"
#include "hlojit/hlojit.h"

namespace hlojit::tools {

struct HostSide {
  std::vector<Literal> infeed;                       ///< leaves, in the order of the entry's infeeds
  std::map<int64_t, std::vector<Literal>> received;  ///< by channel: what its recvs get, in their order
  std::vector<int64_t> sent;                         ///< channels of sends, ascending

  /// All that the entry asks for, with random values.
  static HostSide random(const Module& module, uint64_t seed);
  HostQueues queues(int64_t devices) const;
  /// What a device handed over in a run: leaves of outfeeds, then of sends by channel.
  std::vector<Buffer> taken(HostQueues& queues, int64_t device) const;
};

/// The channel of a send or recv with the host, or of what ends it. Throws Error(kUnsupported) if it is with another
/// device.
int64_t host_channel(const Instruction& i);

}  // namespace hlojit::tools
