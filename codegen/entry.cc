#include "codegen/entry.h"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include "codegen/kernel_abi.h"
#include "codegen/kernels/kernel.h"

namespace hlojit::codegen {
namespace {

constexpr int64_t kAlign = 64;

class EntryEmitter {
 public:
  EntryEmitter(const Module& module, const BufferPlan& plan, const EmitOptions& options)
      : module_(module), plan_(plan), options_(options), code_{IrModule(module.name), {}, plan.arena_bytes, 0},
        context_(*code_.ir.context), b_(context_) {}

  ModuleCode run() {
    auto* pointer = b_.getPtrTy();
    auto* type = llvm::FunctionType::get(b_.getInt32Ty(), {pointer, pointer, pointer, pointer}, false);
    function_ = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, kEntryName, *code_.ir.module);
    // Pointers and buffer lists are set up in `start`; the body follows.
    start_ = llvm::BasicBlock::Create(context_, "start", function_);
    auto* body = llvm::BasicBlock::Create(context_, "body", function_);
    failed_ = llvm::BasicBlock::Create(context_, "failed", function_);
    llvm::IRBuilder<> cold(failed_);
    status_ = cold.CreatePHI(cold.getInt32Ty(), 4, "status");
    cold.CreateRet(status_);
    b_.SetInsertPoint(start_);
    constants_ = b_.CreateLoad(pointer, function_->getArg(0), "constants");
    parallel_for_ = b_.CreateLoad(pointer, b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), function_->getArg(0),
                                                                        offsetof(abi::Context, parallel_for)));
    b_.SetInsertPoint(body);
    computation(*module_.entry());
    b_.CreateRet(b_.getInt32(abi::kOk));
    llvm::IRBuilder<>(start_).CreateBr(body);
    if (status_->getNumIncomingValues() == 0) failed_->eraseFromParent();
    code_.arena_bytes = (plan_.arena_bytes + kAlign - 1) / kAlign * kAlign + scratch_;
    return std::move(code_);
  }

 private:
  llvm::Value* pointer(const BufferSlice& slice) {
    llvm::IRBuilder<> at(start_);
    auto* type = at.getPtrTy();
    auto offset = static_cast<uint64_t>(slice.offset);
    switch (slice.kind) {
      case BufferSlice::Kind::kParameter:
      case BufferSlice::Kind::kResult: {
        bool parameter = slice.kind == BufferSlice::Kind::kParameter;
        auto& known = parameter ? parameters_ : results_;
        auto& p = known[slice.index];
        if (!p) {
          auto* slot = at.CreateConstInBoundsGEP1_64(type, function_->getArg(parameter ? 1 : 2), static_cast<uint64_t>(slice.index));
          p = at.CreateLoad(type, slot, fmt::format("{}{}", parameter ? "param" : "result", slice.index));
        }
        return p;
      }
      case BufferSlice::Kind::kArena: return at.CreateConstInBoundsGEP1_64(at.getInt8Ty(), function_->getArg(3), offset);
      case BufferSlice::Kind::kConstant: return at.CreateConstInBoundsGEP1_64(at.getInt8Ty(), constants_, offset);
    }
    return nullptr;
  }

  // Whether two slices can be the same memory: by the plan, or because a parameter was donated.
  bool overlap(const BufferSlice& a, const BufferSlice& b) const {
    using Kind = BufferSlice::Kind;
    if (a.kind == b.kind) {
      if (a.kind == Kind::kArena || a.kind == Kind::kConstant) {
        return a.offset < b.offset + b.size && b.offset < a.offset + a.size;
      }
      return a.index == b.index || a.kind == Kind::kParameter;  // callers may pass one buffer twice
    }
    bool donation = (a.kind == Kind::kParameter && b.kind == Kind::kResult) ||
                    (a.kind == Kind::kResult && b.kind == Kind::kParameter);
    return donation && !module_.config.input_output_alias.empty();
  }

  void call_status(llvm::Value* status) {
    auto* next = llvm::BasicBlock::Create(context_, "next", function_);
    status_->addIncoming(status, b_.GetInsertBlock());
    b_.CreateCondBr(b_.CreateICmpEQ(status, b_.getInt32(0)), next, failed_);
    b_.SetInsertPoint(next);
  }

  void fusion(const Instruction& i) {
    std::vector<BufferSlice> slices;
    for (const Instruction* o : i.operands()) slices.push_back(plan_.slice(o));
    for (const BufferSlice& s : plan_.slices.at(&i)) slices.push_back(s);
    OverlapMatrix matrix(slices.size(), std::vector<bool>(slices.size()));
    for (size_t x = 0; x < slices.size(); ++x) {
      for (size_t y = 0; y < slices.size(); ++y) matrix[x][y] = overlap(slices[x], slices[y]);
    }
    update_copies(i, slices);
    llvm::Module& home = smallest_part();
    std::vector<KernelFunction> kernels = emit_kernel(home, i, matrix, options_);
    ++code_.kernels;
    if (&home != code_.ir.module.get()) {
      for (KernelFunction& k : kernels) k.function = imported(*k.function);
    }
    auto* list_type = llvm::ArrayType::get(b_.getPtrTy(), slices.size());
    llvm::IRBuilder<> at(start_, start_->begin());
    auto* list = at.CreateAlloca(list_type, nullptr, i.name + ".buffers");
    for (size_t k = 0; k < slices.size(); ++k) {
      llvm::Value* p = pointer(slices[k]);
      llvm::IRBuilder<>(start_).CreateStore(p, llvm::IRBuilder<>(start_).CreateConstInBoundsGEP1_64(b_.getPtrTy(), list, k));
    }
    auto* null = llvm::ConstantPointerNull::get(b_.getPtrTy());
    for (const KernelFunction& k : kernels) {
      if (k.chunks == 1) {
        llvm::Value* scratch = null;
        if (k.scratch_bytes > 0) {
          int64_t base = (plan_.arena_bytes + kAlign - 1) / kAlign * kAlign;
          scratch = b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), function_->getArg(3), static_cast<uint64_t>(base));
          scratch_ = std::max(scratch_, k.scratch_bytes);
        }
        b_.CreateCall(k.function, {list, null, b_.getInt64(0), scratch});
        continue;
      }
      auto* pointer = b_.getPtrTy();
      auto* i64 = b_.getInt64Ty();
      auto* type = llvm::FunctionType::get(b_.getInt32Ty(), {pointer, pointer, pointer, pointer, i64, i64, i64}, false);
      auto number = [&](int64_t v) { return b_.getInt64(static_cast<uint64_t>(v)); };
      call_status(b_.CreateCall(type, parallel_for_, {function_->getArg(0), k.function, list, null, number(k.chunks),
                                                      number(k.scratch_bytes), number(k.cost_ns)}));
    }
  }

  // The LLVM module with least code so far; a new one while fewer than asked for are in use.
  llvm::Module& smallest_part() {
    auto parts = static_cast<size_t>(std::max(1, options_.parts));
    if (code_.kernels > 0 && code_.more.size() + 1 < parts) {
      code_.more.emplace_back(module_.name);
      return *code_.more.back().module;
    }
    llvm::Module* best = code_.ir.module.get();
    for (IrModule& m : code_.more) {
      if (m.module->getInstructionCount() < best->getInstructionCount()) best = m.module.get();
    }
    return *best;
  }

  // A declaration here of a kernel that another part defines.
  llvm::Function* imported(llvm::Function& kernel) {
    kernel.setName(fmt::format("kernel{}.{}", code_.kernels, kernel.getName().str()));
    kernel.setLinkage(llvm::GlobalValue::ExternalLinkage);
    auto* pointer = b_.getPtrTy();
    auto* type = llvm::FunctionType::get(b_.getInt32Ty(), {pointer, pointer, b_.getInt64Ty(), pointer}, false);
    return llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, kernel.getName(), *code_.ir.module);
  }

  // A dynamic-update-slice writes a box only: where its operand is not in the result's memory
  // already, the rest is copied first.
  void update_copies(const Instruction& i, const std::vector<BufferSlice>& slices) {
    const Instruction* root = i.to_apply()->root();
    if (!root->is(Opcode::kDynamicUpdateSlice) || !root->operand(0)->is(Opcode::kParameter)) return;
    const BufferSlice& from = slices[static_cast<size_t>(root->operand(0)->attrs.parameter_number)];
    const BufferSlice& to = slices.back();
    if (!(from == to)) copy_memory(from, to);
  }

  // Skipped at run time when both are the same memory (a donated parameter).
  void copy_memory(const BufferSlice& from, const BufferSlice& to) {
    llvm::Value* source = pointer(from);
    llvm::Value* target = pointer(to);
    auto* copy = llvm::BasicBlock::Create(context_, "copy", function_);
    auto* next = llvm::BasicBlock::Create(context_, "copied", function_);
    b_.CreateCondBr(b_.CreateICmpEQ(source, target), next, copy);
    b_.SetInsertPoint(copy);
    b_.CreateMemCpy(target, llvm::MaybeAlign(1), source, llvm::MaybeAlign(1), static_cast<uint64_t>(to.size));
    b_.CreateBr(next);
    b_.SetInsertPoint(next);
  }

  void while_loop(const Instruction& i) {
    auto* header = llvm::BasicBlock::Create(context_, i.name + ".condition", function_);
    auto* body = llvm::BasicBlock::Create(context_, i.name + ".body", function_);
    auto* exit = llvm::BasicBlock::Create(context_, i.name + ".exit", function_);
    b_.CreateBr(header);
    b_.SetInsertPoint(header);
    computation(*i.while_condition());
    llvm::Value* goes_on = b_.CreateLoad(b_.getInt8Ty(), pointer(plan_.slice(i.while_condition()->root())));
    b_.CreateCondBr(b_.CreateICmpNE(goes_on, b_.getInt8(0)), body, exit);
    b_.SetInsertPoint(body);
    computation(*i.while_body());
    b_.CreateBr(header);
    b_.SetInsertPoint(exit);
  }

  // Index form: out of range takes the last branch. Pred form: {true, false}.
  void conditional(const Instruction& i) {
    const Instruction* selector = i.operand(0);
    auto* exit = llvm::BasicBlock::Create(context_, i.name + ".join", function_);
    std::vector<llvm::BasicBlock*> blocks;
    for (const Computation* c : i.called) blocks.push_back(llvm::BasicBlock::Create(context_, c->name, function_));
    if (is_pred(selector->shape.type)) {
      llvm::Value* p = b_.CreateLoad(b_.getInt8Ty(), pointer(plan_.slice(selector)));
      b_.CreateCondBr(b_.CreateICmpNE(p, b_.getInt8(0)), blocks[0], blocks[1]);
    } else {
      llvm::Value* n = b_.CreateLoad(b_.getInt32Ty(), pointer(plan_.slice(selector)));
      auto* choice = b_.CreateSwitch(n, blocks.back(), static_cast<unsigned>(blocks.size()));
      for (size_t k = 0; k + 1 < blocks.size(); ++k) choice->addCase(b_.getInt32(static_cast<uint32_t>(k)), blocks[k]);
    }
    for (size_t k = 0; k < blocks.size(); ++k) {
      b_.SetInsertPoint(blocks[k]);
      computation(*i.called[k]);
      b_.CreateBr(exit);
    }
    b_.SetInsertPoint(exit);
  }

  void computation(const Computation& c) {
    for (const auto& i : c.instructions()) {
      switch (i->opcode) {
        case Opcode::kParameter:
        case Opcode::kConstant:
        case Opcode::kTuple:
        case Opcode::kGetTupleElement:
        case Opcode::kBitcast:
        case Opcode::kAfterAll:
        case Opcode::kAddDependency:
        case Opcode::kOptBarrier: break;
        case Opcode::kFusion: fusion(*i); break;
        case Opcode::kCopy: copy_memory(plan_.slice(i->operand(0)), plan_.slice(i.get())); break;
        case Opcode::kWhile: while_loop(*i); break;
        case Opcode::kConditional: conditional(*i); break;
        default:
          throw Error(ErrorKind::kUnsupported, i->location, fmt::format("{} is not compiled yet", op_name(i->opcode)));
      }
    }
  }

  const Module& module_;
  const BufferPlan& plan_;
  const EmitOptions& options_;
  ModuleCode code_;
  llvm::LLVMContext& context_;
  llvm::IRBuilder<> b_;
  llvm::Function* function_ = nullptr;
  llvm::BasicBlock* start_ = nullptr;
  llvm::BasicBlock* failed_ = nullptr;
  llvm::PHINode* status_ = nullptr;
  llvm::Value* constants_ = nullptr;
  llvm::Value* parallel_for_ = nullptr;
  std::unordered_map<int64_t, llvm::Value*> parameters_, results_;
  int64_t scratch_ = 0;
};

}  // namespace

ModuleCode emit_module(const Module& module, const BufferPlan& buffers, const EmitOptions& options) {
  return EntryEmitter(module, buffers, options).run();
}

}  // namespace hlojit::codegen
