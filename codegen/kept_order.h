// Functions whose instructions stay in the order that they were written in. LLVM's scheduler goes through the vectors
// that a loop has in flight one after the other where that needs fewer registers. A core that looks some two hundred
// instructions ahead then sees one long chain, or two, of operations that wait for each other. As they were written,
// each operation stands beside the same one of the other vectors.
#pragma once

#include <string>
#include <vector>

#include <llvm/IR/OptBisect.h>

#include "codegen/target.h"

namespace llvm {
class Function;
class LLVMContext;
class Module;
}  // namespace llvm

namespace hlojit::codegen {

/// What LLVM calls the pass that these functions are spared. (A unit test asks whether it still does.)
inline constexpr char kScheduler[] = "Machine Instruction Scheduler";

/// Most of the function is a loop with four of the target's vectors in flight, of long chains of arithmetic on floats
/// made of little that is read, of which few values are wanted at once.
bool has_long_chains(const llvm::Function& function, int vector_bytes);

/// While it lives, functions of the module with long chains are not scheduled anew, if the target has few registers.
/// Made before the module is compiled; the module's context is told.
class KeptOrder final : public llvm::OptPassGate {
 public:
  KeptOrder(const llvm::Module& module, const Target& target);
  ~KeptOrder() override;
  KeptOrder(const KeptOrder&) = delete;
  KeptOrder& operator=(const KeptOrder&) = delete;

  bool isEnabled() const override { return !kept_.empty(); }
  bool shouldRunPass(llvm::StringRef pass, llvm::StringRef of) override;

 private:
  llvm::LLVMContext& context_;
  llvm::OptPassGate& before_;
  std::vector<std::string> kept_;  // as LLVM describes functions to a gate
};

}  // namespace hlojit::codegen
