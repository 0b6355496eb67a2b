// The passes that are left out are known by the names this LLVM gives them.
#include "codegen/code_passes.h"

#include <doctest/doctest.h>

#include <set>
#include <string>

#include <llvm/IR/LegacyPassManager.h>
#include <llvm/Pass.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

#include "codegen/target.h"

namespace hlojit::codegen {
namespace {

class Names final : public llvm::legacy::PassManagerBase {
 public:
  void add(llvm::Pass* pass) override {
    names.insert(pass->getPassName().str());
    passes_.add(pass);
  }
  std::set<std::string> names;

 private:
  llvm::legacy::PassManager passes_;
};

std::set<std::string> passes_of_llvm() {
  std::set<std::string> all;
  for (bool fast : {false, true}) {
    Names names;
    llvm::raw_null_ostream out;
    REQUIRE_FALSE(Target::get("native").machine(fast)->addPassesToEmitFile(names, out, nullptr,
                                                                           llvm::CodeGenFileType::ObjectFile, true));
    all.merge(names.names);
  }
  return all;
}

TEST_CASE("passes that are left out are LLVM's") {
  const std::set<std::string> known = passes_of_llvm();
  for (std::string_view name : left_out_passes()) {
    CAPTURE(name);
    CHECK(known.contains(std::string(name)));
  }
}

}  // namespace
}  // namespace hlojit::codegen
