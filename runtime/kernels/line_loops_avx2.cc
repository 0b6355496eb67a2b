// line_loops.h for AVX2 with fma, which every machine that code is made for has.
#include "compiler/math/trig.h"
#include "runtime/kernels/line_loops_for.h"

namespace hlojit {

extern const LineLoops<float> kLineLoopsAvx2F32;
extern const LineLoops<double> kLineLoopsAvx2F64;
constinit const LineLoops<float> kLineLoopsAvx2F32 = loops_for<xsimd::fma3<xsimd::avx2>, float>();
constinit const LineLoops<double> kLineLoopsAvx2F64 = loops_for<xsimd::fma3<xsimd::avx2>, double>();

void cosines_and_sines(const double* angles, int64_t count, double* cosine, double* sine) {
  over_lanes<xsimd::fma3<xsimd::avx2>, double>(count, [&]<class F>(F, int64_t k) {
    const F x = lanes_at<F>(angles + k);
    store_lanes(cosine + k, math::cos(x));
    store_lanes(sine + k, math::sin(x));
  });
}

}  // namespace hlojit
