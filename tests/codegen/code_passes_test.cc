// The passes that are left out, for all functions or for some, are known by the names this LLVM gives them; blocks are
// cut before the one that selects instructions.
#include "codegen/code_passes.h"

#include <doctest/doctest.h>

#include <set>
#include <string>

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Pass.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

#include "codegen/kept_order.h"
#include "codegen/long_blocks.h"
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
  CHECK(known.contains(kScheduler));
}

// Four vectors of AVX2 and so many multiply-adds in a row, of so many loaded values.
TEST_CASE("long chains of floats stay as they are written") {
  auto chains = [](int operations, int loads, int lanes) {
    llvm::LLVMContext context;
    llvm::Module module("chains", context);
    llvm::IRBuilder<> b(context);
    auto* lane = llvm::FixedVectorType::get(b.getFloatTy(), static_cast<unsigned>(lanes));
    auto* type = llvm::FunctionType::get(b.getVoidTy(), {b.getPtrTy()}, false);
    auto* f = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, "f", module);
    b.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", f));
    llvm::Value* v = b.CreateLoad(lane, f->getArg(0));
    for (int k = 1; k < loads; ++k)
      v = b.CreateFAdd(v, b.CreateLoad(lane, b.CreateConstGEP1_64(lane, f->getArg(0), k)));
    for (int k = loads; k <= operations; ++k) v = b.CreateIntrinsic(llvm::Intrinsic::fma, {lane}, {v, v, v});
    b.CreateStore(v, f->getArg(0));
    b.CreateRetVoid();
    const Target& avx2 = Target::get("avx2");
    const bool chains = has_long_chains(*f, avx2.vector_bytes());
    KeptOrder order(module, avx2);
    CHECK(order.isEnabled() == chains);
    CHECK(order.shouldRunPass(kScheduler, "function (f)") == !chains);
    CHECK(order.shouldRunPass("Greedy Register Allocator", "function (f)"));
    CHECK_FALSE(KeptOrder(module, Target::get("avx512")).isEnabled());
    return chains;
  };
  CHECK(chains(20, 1, 32));
  CHECK_FALSE(chains(19, 1, 32));
  CHECK_FALSE(chains(20, 1, 16));
  CHECK_FALSE(chains(20, 3, 32));
}

TEST_CASE("long blocks are cut where LLVM selects instructions") {
  struct Order final : llvm::legacy::PassManagerBase {
    void add(llvm::Pass* pass) override { names.push_back(pass->getPassName().str()), passes.add(pass); }
    std::vector<std::string> names;
    llvm::legacy::PassManager passes;
  } order;
  CodePasses to(order);
  llvm::raw_null_ostream out;
  auto machine = Target::get("native").machine(false);
  REQUIRE_FALSE(machine->addPassesToEmitFile(to, out, nullptr, llvm::CodeGenFileType::ObjectFile, true));
  const auto at = std::ranges::find(order.names, "Cut long blocks");
  REQUIRE(at != order.names.end());
  CHECK(*std::next(at) == "X86 DAG->DAG Instruction Selection");
}

TEST_CASE("no block is longer than a thousand instructions") {
  constexpr int kSteps = 5000;
  llvm::LLVMContext context;
  llvm::Module module("long", context);
  llvm::IRBuilder<> b(context);
  auto* type = llvm::FunctionType::get(b.getInt32Ty(), {b.getInt32Ty()}, false);
  auto* f = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, "f", module);
  auto* entry = llvm::BasicBlock::Create(context, "entry", f);
  auto* loop = llvm::BasicBlock::Create(context, "loop", f);
  auto* end = llvm::BasicBlock::Create(context, "end", f);
  b.SetInsertPoint(entry);
  b.CreateBr(loop);
  b.SetInsertPoint(loop);
  llvm::PHINode* x = b.CreatePHI(b.getInt32Ty(), 2);
  llvm::Value* v = x;
  for (int k = 0; k < kSteps; ++k) v = b.CreateMul(v, v);
  b.CreateCondBr(b.CreateICmpEQ(v, b.getInt32(0)), loop, end);
  x->addIncoming(f->getArg(0), entry);
  x->addIncoming(v, loop);
  b.SetInsertPoint(end);
  b.CreateRet(v);
  llvm::legacy::PassManager passes;
  passes.add(cut_long_blocks());
  passes.run(module);
  CHECK_FALSE(llvm::verifyModule(module));
  size_t instructions = 0;
  for (const llvm::BasicBlock& block : *f) {
    CHECK(block.size() <= 1000);
    for (const llvm::Instruction& i : block) instructions += i.isTerminator() ? 0 : 1;
  }
  CHECK(instructions == kSteps + 2);
}

}  // namespace
}  // namespace hlojit::codegen
