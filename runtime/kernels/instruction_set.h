// Functions that are compiled once for each set of instructions, each time in a file of its own.
#pragma once

#include "codegen/target.h"

namespace hlojit {

/// Those of the best set that this machine has.
template <class Functions>
const Functions& for_this_machine(const Functions& avx2, const Functions& avx512) {
  static const bool has_avx512 = codegen::Target::get("native").isa() == codegen::Isa::kAvx512;
  return has_avx512 ? avx512 : avx2;
}

}  // namespace hlojit
