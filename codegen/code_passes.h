// LLVM's list of passes from IR to machine code, less those that find nothing to do in code of ours, and with long
// blocks cut, and masked lanes frozen, before instructions are selected.
#pragma once

#include <string_view>
#include <vector>

#include <llvm/IR/LegacyPassManager.h>

namespace hlojit::codegen {

/// What LLVM calls the passes that are left out. (A unit test asks whether it still does.)
std::vector<std::string_view> left_out_passes();

/// Hands on what is put into it, but for passes that are left out; what IR needs before instructions are selected comes
/// along.
class CodePasses final : public llvm::legacy::PassManagerBase {
 public:
  explicit CodePasses(llvm::legacy::PassManagerBase& to) : to_(to) {}
  void add(llvm::Pass* pass) override;

 private:
  llvm::legacy::PassManagerBase& to_;
};

}  // namespace hlojit::codegen
