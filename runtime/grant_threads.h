// How many threads a pool may count on. oneTBB ends the process when the system refuses it a thread (a
// limit on processes or memory), so that is tried out beforehand.
#pragma once

namespace hlojit {

/// `wanted`, the caller's thread included, if the system grants as many as oneTBB would start for them; else 1. oneTBB
/// itself starts no more than the process has cores, or its user allows (tbb::global_control, which is theirs alone).
int grant_threads(int wanted);
/// So many of `threads` that work at a time: oneTBB complains of an arena for more.
int working_threads(int threads);

}  // namespace hlojit
