// See merge.h. One loop a pair of runs: both heads are loaded, the comparator picks one, and an
// element of every operand is moved. The pick is data (a select), not a branch: which run is next
// is as good as random. Indices are clamped into the line where a run is used up, so that what is
// loaded in vain is memory of ours, and the loop ends whatever the comparator answers.
#include "codegen/kernels/merge.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include "codegen/nest/reducer.h"
#include "codegen/nest/scope.h"
#include "codegen/target.h"
#include "compiler/analysis/sort_order.h"

namespace hlojit::codegen {
namespace {

class MergeEmitter {
 public:
  MergeEmitter(llvm::Module& module, const Instruction& sort, const EmitOptions& options)
      : sort_(sort), number_(NumberOptions::of(options)), types_(module.getContext()) {
    auto* pointer = types_.getPtrTy();
    auto* type = llvm::FunctionType::get(types_.getInt32Ty(), {pointer, pointer, types_.getInt64Ty(), pointer}, false);
    function_ = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage, "merge", module);
  }

  llvm::Function* run() {
    auto* entry = llvm::BasicBlock::Create(function_->getContext(), "entry", function_);
    Scope root(entry, nullptr);
    llvm::IRBuilder<>& b = root.builder;
    size_t count = sort_.operand_count();
    for (size_t k = 0; k < 2 * count; ++k) {
      auto* slot = b.CreateConstInBoundsGEP1_64(b.getPtrTy(), function_->getArg(0), k);
      lines_.push_back(b.CreateLoad(b.getPtrTy(), slot, k < count ? "source" : "target"));
    }
    auto scalar = [&](uint64_t k, const char* name) {
      return b.CreateLoad(b.getInt64Ty(), b.CreateConstInBoundsGEP1_64(b.getInt64Ty(), function_->getArg(1), k), name);
    };
    llvm::Value *n = scalar(0, "n"), *run = scalar(1, "run"), *block = scalar(2, "block");
    llvm::Value* begin = b.CreateMul(function_->getArg(2), block);
    llvm::Value* end = least(b, n, b.CreateAdd(begin, block));
    llvm::Value* pair = b.CreateShl(run, 1);
    llvm::Value* last = b.CreateSub(n, b.getInt64(1));
    llvm::Value* pairs = ceil_quotient(b, b.CreateSub(end, begin), pair);
    auto outer = open_loop(root, pairs, 1, "pairs");
    {
      llvm::IRBuilder<>& o = outer->builder;
      llvm::Value* first = o.CreateAdd(begin, o.CreateMul(outer->counter, pair));
      llvm::Value* middle = least(o, n, o.CreateAdd(first, run));
      llvm::Value* stop = least(o, n, o.CreateAdd(first, pair));
      auto inner = open_loop(*outer, o.CreateSub(stop, first), 1, "merge", {first, middle});
      llvm::IRBuilder<>& i = inner->builder;
      llvm::Value *a = inner->carried[0], *c = inner->carried[1];
      llvm::Value* left = least(i, a, last);
      llvm::Value* right = least(i, c, last);
      llvm::Value* smaller = compare(i, right, left);
      llvm::Value* takes_right =
          i.CreateAnd(i.CreateICmpULT(c, stop), i.CreateOr(i.CreateICmpUGE(a, middle), smaller), "right");
      llvm::Value* from = i.CreateSelect(takes_right, right, left);
      llvm::Value* to = i.CreateAdd(first, inner->counter);
      for (size_t k = 0; k < count; ++k) move(i, k, from, to);
      llvm::Value* step = i.CreateZExt(takes_right, i.getInt64Ty());
      close_loop(*outer, std::move(inner), {i.CreateAdd(a, i.CreateSub(i.getInt64(1), step)), i.CreateAdd(c, step)});
    }
    close_loop(root, std::move(outer));
    b.CreateRet(b.getInt32(0));
    return function_;
  }

 private:
  static llvm::Value* least(llvm::IRBuilder<>& b, llvm::Value* x, llvm::Value* y) {
    return b.CreateSelect(b.CreateICmpULT(x, y), x, y);
  }

  DType type(size_t operand) const { return sort_.operand(operand)->shape.type; }

  llvm::Value* address(llvm::IRBuilder<>& b, llvm::Value* line, size_t operand, llvm::Value* index) const {
    return b.CreateGEP(element(operand), line, index);
  }
  llvm::Type* element(size_t operand) const {
    return llvm::ArrayType::get(llvm::Type::getInt8Ty(function_->getContext()),
                                static_cast<uint64_t>(dtype_bytes(type(operand))));
  }

  /// The comparator on the elements at two positions.
  llvm::Value* compare(llvm::IRBuilder<>& b, llvm::Value* x, llvm::Value* y) const {
    std::vector<Value> arguments;
    const auto& parameters = sort_.to_apply()->parameters();
    for (size_t k = 0; k < sort_.operand_count(); ++k) {
      for (llvm::Value* index : {x, y}) {
        if (parameters[arguments.size()]->users().empty()) {
          arguments.push_back({type(k), b.getFalse()});  // never looked at
          continue;
        }
        auto* raw = b.CreateAlignedLoad(storage_type(b, type(k), 1), address(b, lines_[k], k, index), llvm::Align(1));
        arguments.push_back(from_storage(b, type(k), raw));
      }
    }
    return inline_computation(b, number_, *sort_.to_apply(), arguments)[0].v;
  }

  void move(llvm::IRBuilder<>& b, size_t k, llvm::Value* from, llvm::Value* to) const {
    auto* bits = b.getIntNTy(static_cast<unsigned>(8 * dtype_bytes(type(k))));
    auto* value = b.CreateAlignedLoad(bits, address(b, lines_[k], k, from), llvm::Align(1));
    b.CreateAlignedStore(value, address(b, lines_[sort_.operand_count() + k], k, to), llvm::Align(1));
  }

  const Instruction& sort_;
  NumberOptions number_;
  llvm::IRBuilder<> types_;
  llvm::Function* function_ = nullptr;
  std::vector<llvm::Value*> lines_;
};

}  // namespace

bool has_step_kernel(const Instruction& step) {
  return step.is(Opcode::kSort) && integer_order(*step.to_apply()).empty();
}

llvm::Function* emit_step_kernel(llvm::Module& module, const Instruction& step, const EmitOptions& options) {
  return MergeEmitter(module, step, options).run();
}

}  // namespace hlojit::codegen
