// What the emitters are told besides the program.
#pragma once

namespace hlojit::codegen {

class Target;

struct EmitOptions {
  const Target* target = nullptr;
  bool strict = false;   ///< no contraction
  int parts = 1;         ///< LLVM modules to spread kernels over, to be compiled in parallel; same bits
  int vector_bytes = 0;  ///< 0: the target's vectors; tests force other sizes (4 = scalar code)
};

}  // namespace hlojit::codegen
