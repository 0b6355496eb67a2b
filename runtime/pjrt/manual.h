// Programs that speak of one device's part themselves (shard_map, pmap).
//
// Between "xla.sdy.GlobalToLocalShape" and "xla.sdy.LocalToGlobalShape" values are one device's parts, and
// collectives join them; around it they are whole arrays. Such a program becomes one that every device
// runs on its own thread: whole arrays are computed by every device alike, a device takes its part where
// a region begins, and the parts are gathered where it ends. Parameters and results are the device's
// parts; where a region takes a parameter in the parts in which it comes, or gives a result in those in
// which it goes, nothing is gathered.
#pragma once

#include <vector>

#include "compiler/ir/module.h"
#include "runtime/pjrt/shards.h"

namespace hlojit::pjrt {

/// A manual region, or anything else that tells or joins devices.
bool tells_devices_apart(const Module& module);

/// Turns the partitioned program, whose calls have been inlined, into that of one device. `parameters` and `results`:
/// who has which part, a leaf each. The entry's layout becomes that of its new parameters and result. Throws
/// Error(kUnsupported).
void make_program_of_one_device(Module& module, const std::vector<Shards>& parameters,
                                const std::vector<Shards>& results);

}  // namespace hlojit::pjrt
