// small_spectra.h for AVX2 with fma, which every machine that code is made for has.
#include "runtime/kernels/small_spectra_for.h"

namespace hlojit {

extern const SmallSpectra<float> kSmallSpectraAvx2F32;
extern const SmallSpectra<double> kSmallSpectraAvx2F64;
constinit const SmallSpectra<float> kSmallSpectraAvx2F32 = spectra_for<xsimd::fma3<xsimd::avx2>, float>();
constinit const SmallSpectra<double> kSmallSpectraAvx2F64 = spectra_for<xsimd::fma3<xsimd::avx2>, double>();

}  // namespace hlojit
