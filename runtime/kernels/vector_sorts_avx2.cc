// vector_sorts.h for AVX2.
#include "runtime/kernels/vector_sorts_for.h"

static_assert(HWY_TARGET == HWY_AVX2);

namespace hlojit {
constinit const VectorSorts kVectorSortsAvx2 = kVectorSorts;
}
