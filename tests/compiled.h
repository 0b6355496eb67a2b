// Compiled execution as the text tests see it: one function between the runner and the public API.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "compiler/ir/module.h"

namespace hlojit::test {

struct CompiledOptions {
  std::string isa = "native";  ///< "avx2", "avx512", "native", or a CPU by LLVM's name for it
  int threads = 1;
  bool strict = false;
  bool scatter_oob_window = false;
  int smaller = 1;  ///< as if caches were so many times smaller
};

/// Ways of compiling that this machine can run: of another maker's CPU (or natively, if none's code runs here) and in
/// several widths. Where one is enough it is the third, with tiled layouts the last.
std::vector<std::string> compiled_isas();

/// LLVM IR of the module as compiled, with vectors of `vector_bytes` (0: the machine's).
std::string emit_llvm(const Module& module, const CompiledOptions& options, int vector_bytes);

/// Compiles the module as it stands (entry layouts included) and runs it. `inputs` are the leaves
/// of the entry parameters, depth first, dense; the results are the leaves of the entry's result,
/// dense again whatever their layout. Throws what the public API throws.
std::vector<Literal> run_compiled(const Module& module, std::span<const Literal> inputs,
                                  const CompiledOptions& options);

}  // namespace hlojit::test
