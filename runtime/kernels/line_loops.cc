// See line_loops.h. Which set of loops this machine takes.
#include "runtime/kernels/line_loops.h"

#include "runtime/kernels/instruction_set.h"

namespace hlojit {

extern const LineLoops<float> kLineLoopsAvx2F32, kLineLoopsAvx512F32;
extern const LineLoops<double> kLineLoopsAvx2F64, kLineLoopsAvx512F64;

template <>
const LineLoops<float>& line_loops() {
  return for_this_machine(kLineLoopsAvx2F32, kLineLoopsAvx512F32);
}
template <>
const LineLoops<double>& line_loops() {
  return for_this_machine(kLineLoopsAvx2F64, kLineLoopsAvx512F64);
}

}  // namespace hlojit
