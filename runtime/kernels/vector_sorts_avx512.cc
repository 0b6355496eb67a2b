// vector_sorts.h for AVX-512.
#include "runtime/kernels/vector_sorts_for.h"

static_assert(HWY_TARGET == HWY_AVX3);

namespace hlojit {
constinit const VectorSorts kVectorSortsAvx512 = kVectorSorts;
}
