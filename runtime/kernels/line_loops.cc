// See line_loops.h. Which set of loops this machine takes.
#include "runtime/kernels/line_loops.h"

namespace hlojit {

extern const LineLoops<float> kLineLoopsAvx2F32, kLineLoopsAvx512F32;
extern const LineLoops<double> kLineLoopsAvx2F64, kLineLoopsAvx512F64;

namespace {

bool has_avx512() {
  static const bool has = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512cd") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512vl");
  return has;
}

}  // namespace

template <>
const LineLoops<float>& line_loops() {
  return has_avx512() ? kLineLoopsAvx512F32 : kLineLoopsAvx2F32;
}
template <>
const LineLoops<double>& line_loops() {
  return has_avx512() ? kLineLoopsAvx512F64 : kLineLoopsAvx2F64;
}

}  // namespace hlojit
