// See line_loops.h. Which set of loops this machine takes.
#include "runtime/kernels/line_loops.h"

#include "codegen/target.h"

namespace hlojit {

extern const LineLoops<float> kLineLoopsAvx2F32, kLineLoopsAvx512F32;
extern const LineLoops<double> kLineLoopsAvx2F64, kLineLoopsAvx512F64;

namespace {

bool has_avx512() {
  static const bool has = codegen::Target::get("native").isa() == codegen::Isa::kAvx512;
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
