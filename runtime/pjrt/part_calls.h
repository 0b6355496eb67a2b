// Callbacks that are to see each device's part of an array.
//
// A program without manual regions runs once, on whole arrays. A custom call with the frontend attribute
// hlojit.each_part="true" (jax.debug.callback with partitioned=True) is then made once for each device, in their
// order, with its parts of the operands cut out of the whole ones.
#pragma once

#include "runtime/pjrt/flow.h"

namespace hlojit::pjrt {

/// Makes such calls of the computation, which have tokens for results, into one a device.
void call_for_each_part(Computation& computation, const ShardFlow& flow, int64_t devices);

}  // namespace hlojit::pjrt
