// See small_spectra.h. Which set of instructions this machine takes.
#include "runtime/kernels/small_spectra.h"

#include "runtime/kernels/instruction_set.h"

namespace hlojit {

extern const SmallSpectra<float> kSmallSpectraAvx2F32, kSmallSpectraAvx512F32;
extern const SmallSpectra<double> kSmallSpectraAvx2F64, kSmallSpectraAvx512F64;

template <>
const SmallSpectra<float>& small_spectra() {
  return for_this_machine(kSmallSpectraAvx2F32, kSmallSpectraAvx512F32);
}
template <>
const SmallSpectra<double>& small_spectra() {
  return for_this_machine(kSmallSpectraAvx2F64, kSmallSpectraAvx512F64);
}

}  // namespace hlojit
