// LAPACK and BLAS from the system's OpenBLAS, loaded when the first program needs one of its
// functions: most do not, and the library is larger than all of ours. One thread a call: work is
// split by us, by shape, so that results do not depend on how many threads there are.
//
// Of Debian's builds the serial one has no locks: two calls at a time, of whatever executables, work in the same
// memory, and give wrong results (one strsm of 16x16 in some thousands). With that one calls follow each other.
//
// Functions are Fortran's: column-major matrices, every argument by address. (The hidden lengths of
// the one-letter strings are left out: nothing reads them.)
#pragma once

#include <algorithm>
#include <mutex>
#include <string_view>

#include "layout/dtype.h"
#include "runtime/parallel.h"

namespace hlojit {

/// The function for an element type: ("potrf", kC64) is cpotrf. Throws Error(kUnsupported) if there
/// is no library, or it lacks the function, or the type is none of f32, f64, c64, c128.
void* lapack_function(std::string_view name, DType type);

/// Held by the one caller at a time that the library bears; of nothing if it bears more, or none has asked for it yet.
std::unique_lock<std::mutex> lapack_turn();

template <class F>
F* lapack(std::string_view name, DType type) {
  return reinterpret_cast<F*>(lapack_function(name, type));
}

/// f(k) for k in [0, count), each a call or some of functions above: on the pool, or one at a time in all of the
/// process where the library bears no more; and where they are short, for each of BLAS's calls takes a lock. (Solving
/// 50 systems of 16: 17 us, 48 by two threads.)
template <class F>
void run_lapack(ThreadPool& pool, int64_t count, double cost_ns, F&& f) {
  constexpr double kShortNs = 500, kMostNs = 1e15;
  if (const auto turn = lapack_turn(); turn.owns_lock() || cost_ns < static_cast<double>(count) * kShortNs) {
    for (int64_t k = 0; k < count; ++k) f(k);
  } else {
    run_chunks(pool, count, static_cast<int64_t>(std::min(cost_ns, kMostNs)), f);
  }
}

}  // namespace hlojit
