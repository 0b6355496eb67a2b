// How many threads a pool may count on. oneTBB ends the process when the system refuses it a thread (a
// limit on processes or memory), so that is tried out beforehand.
#pragma once

namespace hlojit {

/// As many of `wanted` threads, the caller included, as the system grants; at least 1. Has oneTBB
/// allow that many: it stops at the core count unless told otherwise, for the whole process, so it is
/// told only if more than the cores are asked for, or if fewer than those can be had.
int grant_threads(int wanted);

}  // namespace hlojit
