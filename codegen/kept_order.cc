// See kept_order.h. With the 32 registers of AVX-512 a scheduler has no need to go one by one: estimates for a Zen 4
// differ by 2 to 5 % either way. With the 16 of AVX2 as written is faster, with what spills cost, where chains are
// long (one core of a Zen 3, us): Black-Scholes of 2,048 17.8 -> 12.6, mish of 14,804 36.5 -> 24.8, floats of 64 bits
// 56 -> 37, gelu of 65,536 38.4 -> 34.2, normals 2.90 -> 2.68 ms. Shorter chains, or between them what is rearranged,
// overlap anyway and spill for nothing: softmax 539 -> 580, the gradient of a maximum's pool 900 -> 2,430.
#include "codegen/kept_order.h"

#include <algorithm>

#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/IR/DerivedTypes.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/InstrTypes.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

namespace hlojit::codegen {
namespace {

constexpr int kInFlight = 4;

// Arithmetic on floats, of four vectors at a time. (Gelu has 23, an exponential and what softmax does with it 15.)
constexpr int kLong = 20;
// Of these for each value that comes from memory or from single lanes.
constexpr int kOfOneRead = 8;
// And for each two that are wanted later, of which four times as many find no register. (Gelu by a hyperbolic tangent,
// 24 with 8 of them: 42.4 us, as written 43.7, on two cores 22 and 25.)
constexpr size_t kOfTwoLive = 7;

struct Work {
  int floats = 0;     // arithmetic on vectors of floats
  int others = 0;     // any other on vectors
  int reads = 0;      // loads, and lanes put in or taken out
  int64_t bytes = 0;  // of the widest vector
};

// A vector that takes registers: neither conditions nor what only says where lanes come from.
bool is_held(const llvm::Value& v) {
  const auto* type = llvm::dyn_cast<llvm::FixedVectorType>(v.getType());
  return type && !type->getElementType()->isIntegerTy(1) && llvm::isa<llvm::Instruction>(v) &&
         !llvm::isa<llvm::ShuffleVectorInst>(v);
}

size_t most_live(const llvm::BasicBlock& block) {
  llvm::SmallPtrSet<const llvm::Value*, 32> wanted;
  size_t most = 0;
  for (const llvm::Instruction& i : llvm::reverse(block)) {
    wanted.erase(&i);
    for (const llvm::Value* v : i.operand_values()) {
      if (is_held(*v)) wanted.insert(v);
    }
    most = std::max<size_t>(most, wanted.size());
  }
  return most;
}

Work work_of(const llvm::BasicBlock& block) {
  Work w;
  for (const llvm::Instruction& i : block) {
    if (llvm::isa<llvm::LoadInst, llvm::InsertElementInst, llvm::ExtractElementInst>(i)) ++w.reads;
    if (!is_held(i) || i.mayReadFromMemory() || llvm::isa<llvm::PHINode, llvm::BitCastInst>(i)) continue;
    w.bytes = std::max<int64_t>(w.bytes, i.getType()->getPrimitiveSizeInBits().getFixedValue() / 8);
    const bool arithmetic = i.isBinaryOp() || llvm::isa<llvm::CallBase>(i);
    ++(i.getType()->isFPOrFPVectorTy() && arithmetic ? w.floats : w.others);
  }
  return w;
}

}  // namespace

bool has_long_chains(const llvm::Function& function, int vector_bytes) {
  Work most;
  const llvm::BasicBlock* heaviest = nullptr;
  for (const llvm::BasicBlock& block : function) {
    const Work w = work_of(block);
    if (w.floats + w.others >= most.floats + most.others) most = w, heaviest = &block;
  }
  if (most.floats < kLong || kOfOneRead * most.reads > most.floats || most.bytes < kInFlight * vector_bytes)
    return false;
  return kOfTwoLive * most_live(*heaviest) <= 2 * static_cast<size_t>(most.floats);
}

KeptOrder::KeptOrder(const llvm::Module& module, const Target& target)
    : context_(module.getContext()), before_(context_.getOptPassGate()) {
  if (!target.info().many_registers()) {
    for (const llvm::Function& f : module) {
      if (has_long_chains(f, target.vector_bytes())) kept_.push_back("function (" + f.getName().str() + ")");
    }
  }
  context_.setOptPassGate(*this);
}

KeptOrder::~KeptOrder() { context_.setOptPassGate(before_); }

bool KeptOrder::shouldRunPass(llvm::StringRef pass, llvm::StringRef of) {
  return pass != kScheduler || std::ranges::find(kept_, of.str()) == kept_.end();
}

}  // namespace hlojit::codegen
