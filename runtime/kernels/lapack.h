// LAPACK and BLAS from the system's OpenBLAS, loaded when the first program needs one of its
// functions: most do not, and the library is larger than all of ours. One thread a call: work is
// split by us, by shape, so that results do not depend on how many threads there are.
//
// Functions are Fortran's: column-major matrices, every argument by address. (The hidden lengths of
// the one-letter strings are left out: nothing reads them.)
#pragma once

#include <string_view>

#include "layout/dtype.h"

namespace hlojit {

/// The function for an element type: ("potrf", kC64) is cpotrf. Throws Error(kUnsupported) if there
/// is no library, or it lacks the function, or the type is none of f32, f64, c64, c128.
void* lapack_function(std::string_view name, DType type);

template <class F>
F* lapack(std::string_view name, DType type) {
  return reinterpret_cast<F*>(lapack_function(name, type));
}

}  // namespace hlojit
