// small_spectra.h for AVX-512.
#include "runtime/kernels/small_spectra_for.h"

namespace hlojit {

extern const SmallSpectra<float> kSmallSpectraAvx512F32;
extern const SmallSpectra<double> kSmallSpectraAvx512F64;
constinit const SmallSpectra<float> kSmallSpectraAvx512F32 = spectra_for<xsimd::avx512f, float>();
constinit const SmallSpectra<double> kSmallSpectraAvx512F64 = spectra_for<xsimd::avx512f, double>();

}  // namespace hlojit
