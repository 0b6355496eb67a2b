// See scope.h.
#include "codegen/nest/scope.h"

#include <bit>

#include <llvm/IR/MDBuilder.h>

namespace hlojit::codegen {
namespace {

// Numbers that fit a word, and may be as large as the divisor, are multiplied by its reciprocal instead: LLVM, which
// does not know that they do, takes the upper half of a product of 128 bits, and a fifth of a convolution's time to
// compile for what it asks of those; lanes of 64 bits are divided in five times the time. What LLVM shifts or masks
// stays a division.
bool has_reciprocal(int64_t most, int64_t divisor) {
  return divisor <= most && most <= INT32_MAX && !std::has_single_bit(static_cast<uint64_t>(divisor));
}

}  // namespace

llvm::Value* ceil_quotient(llvm::IRBuilderBase& b, llvm::Value* x, llvm::Value* y) {
  return b.CreateUDiv(b.CreateAdd(x, b.CreateSub(y, b.getInt64(1))), y);
}

llvm::Value* Scope::binary(llvm::Instruction::BinaryOps op, llvm::Value* x, llvm::Value* y) {
  llvm::Value*& known = numbers[{op, nullptr, x, y}];
  return known ? known : known = builder.CreateBinOp(op, x, y);
}

llvm::Value* Scope::sum(llvm::Value* x, llvm::Value* y) { return binary(llvm::Instruction::Add, x, y); }

llvm::Value* Scope::product(llvm::Value* x, int64_t factor) {
  if (factor == 1) return x;
  return binary(llvm::Instruction::Mul, x, llvm::ConstantInt::get(x->getType(), static_cast<uint64_t>(factor), true));
}

llvm::Value* Scope::quotient(llvm::Value* x, int64_t most, int64_t divisor) {
  auto number = [&](uint64_t n) { return llvm::ConstantInt::get(x->getType(), n); };
  const auto width = static_cast<uint64_t>(divisor);
  if (!has_reciprocal(most, divisor)) return binary(llvm::Instruction::UDiv, x, number(width));
  // Rounded up, with a shift so large that the error of all multiples is less than 2^shift.
  const auto shift = static_cast<uint64_t>(std::bit_width(static_cast<uint64_t>(most)) + std::bit_width(width));
  // Machines multiply lanes that are seen to be words to twice their bits.
  if (x->getType()->isVectorTy()) x = binary(llvm::Instruction::And, x, number(UINT32_MAX));
  llvm::Value* multiple = binary(llvm::Instruction::Mul, x, number((uint64_t{1} << shift) / width + 1));
  return binary(llvm::Instruction::LShr, multiple, number(shift));
}

llvm::Value* Scope::remainder(llvm::Value* x, int64_t most, int64_t divisor) {
  if (!has_reciprocal(most, divisor))
    return binary(llvm::Instruction::URem, x, llvm::ConstantInt::get(x->getType(), static_cast<uint64_t>(divisor)));
  return binary(llvm::Instruction::Sub, x, product(quotient(x, most, divisor), divisor));
}

llvm::Value* Scope::moved_on(llvm::Type* element, llvm::Value* pointer, llvm::Value* steps) {
  llvm::Value*& known = numbers[{llvm::Instruction::GetElementPtr, element, pointer, steps}];
  return known ? known : known = builder.CreateGEP(element, pointer, steps);
}

std::unique_ptr<Scope> open_loop(Scope& parent, llvm::Value* trip, int64_t step, std::string_view name,
                                 std::vector<llvm::Value*> initial) {
  auto& context = parent.builder.getContext();
  llvm::Function* f = parent.builder.GetInsertBlock()->getParent();
  auto* header = llvm::BasicBlock::Create(context, llvm::StringRef(name.data(), name.size()), f);
  auto scope = std::make_unique<Scope>(header, &parent);
  scope->header = header;
  scope->trip = trip;
  scope->step = step;
  scope->counter = scope->builder.CreatePHI(scope->builder.getInt64Ty(), 2, llvm::StringRef(name.data(), name.size()));
  for (llvm::Value* v : initial) scope->carried.push_back(scope->builder.CreatePHI(v->getType(), 2, "carried"));
  scope->initial = std::move(initial);
  return scope;
}

std::vector<llvm::Value*> close_loop(Scope& parent, std::unique_ptr<Scope> loop,
                                     const std::vector<llvm::Value*>& next) {
  auto& context = parent.builder.getContext();
  llvm::Function* f = loop->header->getParent();
  llvm::IRBuilder<>& b = loop->builder;
  auto* exit = llvm::BasicBlock::Create(context, "exit", f);
  llvm::BasicBlock* latch = b.GetInsertBlock();
  llvm::Value* advanced = nullptr;
  auto* known = llvm::dyn_cast<llvm::ConstantInt>(loop->trip);
  if (loop->once || (known && known->getSExtValue() <= loop->step)) {
    b.CreateBr(exit);
  } else {
    // Said to be without wrap, a known trip would make LLVM compare the counter of this turn, and keep both.
    advanced = b.CreateAdd(loop->counter, b.getInt64(static_cast<uint64_t>(loop->step)), "next", !known);
    b.CreateCondBr(b.CreateICmpULT(advanced, loop->trip), loop->header, exit);
  }

  llvm::BasicBlock* before = parent.builder.GetInsertBlock();
  const bool always = loop->enters || (known && !known->isZero());
  if (always) {
    parent.builder.CreateBr(loop->header);
  } else {
    llvm::Value* enters = parent.builder.CreateICmpNE(loop->trip, parent.builder.getInt64(0));
    llvm::MDNode* weights = loop->likely ? llvm::MDBuilder(context).createLikelyBranchWeights() : nullptr;
    parent.builder.CreateCondBr(enters, loop->header, exit, weights);
  }
  loop->counter->addIncoming(parent.builder.getInt64(0), before);
  if (advanced) loop->counter->addIncoming(advanced, latch);
  parent.builder.SetInsertPoint(exit);
  std::vector<llvm::Value*> finals;
  for (size_t k = 0; k < loop->carried.size(); ++k) {
    loop->carried[k]->addIncoming(loop->initial[k], before);
    if (advanced) loop->carried[k]->addIncoming(next[k], latch);
    if (always) {
      finals.push_back(next[k]);
      continue;
    }
    llvm::PHINode* merged = parent.builder.CreatePHI(next[k]->getType(), 2);
    merged->addIncoming(loop->initial[k], before);
    merged->addIncoming(next[k], latch);
    finals.push_back(merged);
  }
  return finals;
}

}  // namespace hlojit::codegen
