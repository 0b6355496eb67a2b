// See small_spectra.h. Which set of instructions this machine takes.
#include "runtime/kernels/small_spectra.h"

#include "codegen/target.h"

namespace hlojit {

extern const SmallSpectra<float> kSmallSpectraAvx2F32, kSmallSpectraAvx512F32;
extern const SmallSpectra<double> kSmallSpectraAvx2F64, kSmallSpectraAvx512F64;

namespace {
bool has_avx512() { return codegen::Target::get("native").isa() == codegen::Isa::kAvx512; }
}  // namespace

template <>
const SmallSpectra<float>& small_spectra<float>() {
  return has_avx512() ? kSmallSpectraAvx512F32 : kSmallSpectraAvx2F32;
}
template <>
const SmallSpectra<double>& small_spectra<double>() {
  return has_avx512() ? kSmallSpectraAvx512F64 : kSmallSpectraAvx2F64;
}

}  // namespace hlojit
