// fft: FFT, IFFT, RFFT and IRFFT over the last one to three dimensions, of any length.
#pragma once

#include "runtime/steps.h"

namespace hlojit {

StepFunction fft_step(const Instruction& fft);

}  // namespace hlojit
