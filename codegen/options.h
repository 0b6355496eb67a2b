// What the emitters are told besides the program.
#pragma once

#include <vector>

#include "compiler/plan/target_info.h"

namespace hlojit::codegen {

class Target;
struct MicroKernelShape;

struct EmitOptions {
  const Target* target = nullptr;
  bool strict = false;      ///< no contraction
  bool fast = false;        ///< compile quickly, run slower; same bits
  int vector_bytes = 0;     ///< 0: the target's vectors; tests force other sizes (4 = scalar code)
  int64_t smaller = 1;      ///< tests: than the machine is, in its caches and in what work is shared out
  int vector_size() const;  ///< of the vectors to be used, in bytes
  /// What plans may depend on. Vectors wider than the machine's stand for a machine that has them, with all that
  /// comes with them: instructions run as their twins then.
  TargetInfo target_info() const;
  /// Not null: micro-kernels are only declared, and listed here for whoever compiles them for themselves.
  std::vector<MicroKernelShape>* micro_kernels = nullptr;
};

/// What the program around a fusion says of its operands and results, as far as the kernel's code depends on it.
struct Surroundings {
  /// [a][b]: buffers a and b of the operands, then the results, may overlap.
  std::vector<std::vector<bool>> overlap;
  /// Of each operand: it is a product (compiler/analysis/products.h).
  std::vector<bool> products;

  /// A result lies in an operand's memory: no element may be computed twice, its second reading would be of itself.
  bool in_place() const {
    for (size_t result = products.size(); result < overlap.size(); ++result) {
      for (size_t operand = 0; operand < products.size(); ++operand) {
        if (overlap[result][operand]) return true;
      }
    }
    return false;
  }
};

}  // namespace hlojit::codegen
