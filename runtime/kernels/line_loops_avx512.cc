// line_loops.h for AVX-512.
#include "runtime/kernels/line_loops_for.h"

namespace hlojit {

extern const LineLoops<float> kLineLoopsAvx512F32;
extern const LineLoops<double> kLineLoopsAvx512F64;
constinit const LineLoops<float> kLineLoopsAvx512F32 = loops_for<xsimd::avx512f, float>();
constinit const LineLoops<double> kLineLoopsAvx512F64 = loops_for<xsimd::avx512f, double>();

}  // namespace hlojit
