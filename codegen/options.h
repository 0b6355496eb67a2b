// What the emitters are told besides the program.
#pragma once

namespace hlojit {

class Target;

struct EmitOptions {
  const Target* target = nullptr;
  bool strict = false;   ///< no contraction
  int vector_bytes = 0;  ///< 0: the target's vectors; tests force other sizes (4 = scalar code)
};

}  // namespace hlojit
