// Says collectives in terms of four that move whole blocks between devices; what is done to the
// blocks is plain HLO, so that it is compiled, fused and ordered like everything else:
//
//   all-gather        of [1, block], dimensions={0}: everyone's block, in the group's order
//   all-to-all        of [n, block], dimensions={0}: row k goes to member k, row k comes from it
//   collective-permute, collective-broadcast: one block, from one device or from none (zeros)
//
//   s = f32[8] all-reduce(x), to_apply=f              n = f32[1,8] reshape(x)
//                                                     g = f32[2,8] all-gather(n), dimensions={0}
//                                             ->      a = f32[8] reshape(f32[1,8] slice(g),
//                                             slice={[0:1], [0:8]})
//                                                     b = f32[8] reshape(f32[1,8] slice(g),
//                                                     slice={[1:2], [0:8]}) s = f32[8] f(a, b)
//
// Contributions are combined in the order of the group on every device, so the bits depend neither
// on who comes first nor on who asks. The groups of what remains are written in device numbers.
// Among one device nothing remains.
// Test: tests/hlo/opt/devices.hlo.
#pragma once

#include "compiler/pipeline.h"

namespace hlojit {

bool devices(Module& module, const PipelineOptions& options);

}  // namespace hlojit
