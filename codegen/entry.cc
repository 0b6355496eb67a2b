// Entry fills the lists of buffers (buffer_table.h) and calls the body. The body is one function while it is
// short; long sequences are cut into parts, functions called in order, because LLVM takes more than linear time
// over a function of a hundred thousand calls. What all of them are like: entry_functions.h.
//
// Loops with small kernels are functions of their own, with what loop_state.h found to need neither calls nor
// memory; LLVM then works on them as on any kernel.
#include "codegen/entry.h"

#include <algorithm>
#include <cstddef>
#include <unordered_map>

#include <fmt/format.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include "codegen/buffer_table.h"
#include "codegen/entry_functions.h"
#include "codegen/kernel_abi.h"
#include "codegen/kernels/kernel.h"
#include "codegen/kernels/merge.h"
#include "codegen/loop_state.h"
#include "codegen/regions.h"
#include "codegen/sharing.h"
#include "codegen/target.h"
#include "compiler/analysis/dataflow.h"
#include "compiler/analysis/products.h"
#include "compiler/analysis/steps.h"
#include "compiler/ir/allocation.h"
#include "compiler/ir/module.h"
#include "compiler/passes/rounds.h"
#include "compiler/plan/kernel.h"
#include "compiler/plan/target_info.h"
#include "layout/divide.h"
#include "layout/index.h"

namespace hlojit::codegen {
namespace {

/// HLO instructions a function: each is some five of IR, a parallel one ten.
constexpr int64_t kPart = 1'000;

/// Up to here memcpy on the caller beats a parallel region.
constexpr int64_t kCopyBytes = int64_t{1} << 19;

/// Its memory is all there is of it, or it has none.
bool makes_no_code(const Instruction& i) {
  return forwards(i) || i.is(Opcode::kParameter) || i.is(Opcode::kConstant) || i.is(Opcode::kAfterAll) ||
         is_allocation(i);
}

int64_t aligned(int64_t n) { return round_up(n, kCacheLine); }

class EntryEmitter : EntryFunctions {
 public:
  EntryEmitter(llvm::Module& ir, const Module& module, const BufferPlan& plan, KernelSource& kernels,
               const EmitOptions& options)
      : EntryFunctions(ir), module_(module), plan_(plan), kernels_(kernels), options_(options) {
    for (const Instruction* step : steps(module)) step_number_.emplace(step, step_number_.size());
  }

  EntryFacts run() {
    look_at(*module_.entry(), nullptr, {});
    sharing_.decide();
    llvm::Function* body = function("body", [&] { computation(*module_.entry()); });
    int64_t tables = aligned(plan_.arena_bytes), scratch = aligned(tables + table_.bytes());
    auto* pointer = b_.getPtrTy();
    auto* type = llvm::FunctionType::get(b_.getInt32Ty(), {pointer, pointer, pointer, pointer}, false);
    auto* entry = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, kEntryName, ir_);
    b_.SetInsertPoint(llvm::BasicBlock::Create(context_, "start", entry));
    llvm::Value *call = entry->getArg(0), *params = entry->getArg(1), *results = entry->getArg(2),
                *arena = entry->getArg(3);
    llvm::Value* constants = b_.CreateLoad(pointer, call, "constants");
    llvm::Value* lists = bytes_at(arena, tables);
    table_.fill(b_, lists, params, results, arena, constants);
    b_.CreateRet(b_.CreateCall(body, {call, params, results, arena, lists, bytes_at(arena, scratch)}));
    facts_.arena_bytes = scratch + scratch_bytes_;
    return facts_;
  }

 private:
  // Buffers of an instruction, operands then results, leaf by leaf: as a kernel numbers them.
  std::vector<BufferSlice> buffers_of(const Instruction& i) const {
    std::vector<BufferSlice> slices;
    auto append = [&](const Instruction* from) {
      auto found = plan_.slices.find(from);  // tokens have none
      if (found != plan_.slices.end()) slices.insert(slices.end(), found->second.begin(), found->second.end());
    };
    for (const Instruction* o : i.operands()) append(o);
    append(&i);
    return slices;
  }

  llvm::Value* list_of(const std::vector<BufferSlice>& slices) {
    return bytes_at(frame_.tables(), table_.list(slices));
  }

  // Serial scratch: all calls share one stretch behind the lists.
  llvm::Value* scratch(int64_t bytes) {
    if (bytes == 0) return llvm::ConstantPointerNull::get(b_.getPtrTy());
    scratch_bytes_ = std::max(scratch_bytes_, bytes);
    return frame_.scratch();
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
    if (a.kind == Kind::kResult && b.kind == Kind::kParameter) return overlap(b, a);
    return a.kind == Kind::kParameter && b.kind == Kind::kResult && donors_[static_cast<size_t>(b.index)] == a.index;
  }

  // Two buffers that are only read may be one without anybody noticing: such pairs are left out, so that
  // kernels differ by what matters to them.
  Surroundings surroundings(const Instruction& i, const std::vector<BufferSlice>& slices) const {
    const size_t operands = i.operand_count();
    Surroundings around;
    around.products = product_operands(i);
    around.overlap.assign(slices.size(), std::vector<bool>(slices.size()));
    for (size_t x = 0; x < slices.size(); ++x) {
      for (size_t y = 0; y < slices.size(); ++y) {
        bool read_only = x < operands && y < operands;
        around.overlap[x][y] = x == y || (!read_only && overlap(slices[x], slices[y]));
      }
    }
    return around;
  }

  // ---- instructions --------------------------------------------------------------------------------------

  // A value handed on as it is, too small for several threads to copy it faster, and hardly any of it padding.
  static bool is_small_copy(const Instruction& fusion) {
    const Instruction* root = fusion.to_apply()->root();
    return root->is(Opcode::kCopy) && root->operand(0)->is(Opcode::kParameter) && fusion.operand_count() == 1 &&
           fusion.shape == root->shape && root->shape == root->operand(0)->shape &&
           root->shape == fusion.operand(0)->shape && physical_size(root->shape) <= kCopyBytes &&
           physical_size(root->shape) <= root->shape.dense_bytes() * 5 / 4;
  }

  void fusion(const Instruction& i) {
    std::vector<BufferSlice> slices = buffers_of(i);
    if (is_small_copy(i)) {
      copy_memory(slices[static_cast<size_t>(i.to_apply()->root()->operand(0)->attrs.parameter_number)], slices.back());
      return;
    }
    update_copies(i, slices);
    if (frame_.loop && frame_.loop->inlined.contains(&i)) return inlined(i, slices);
    const bool shared = sharing_.hands_out(&i);
    ++facts_.kernels;
    llvm::Value* list = list_of(slices);
    for (const Region& region : regions_of(calls_of(i, slices))) {
      if (shared && region.calls.size() > 1) {
        parallel(region.work, run_part(), list, table_of_parts(region), region.work.cost_ns);
      } else {
        for (const KernelCall& k : region.calls) call_kernel(k, list, shared);
      }
    }
  }

  void call_kernel(const KernelCall& k, llvm::Value* list, bool shared) {
    llvm::Function* kernel = declared(k.symbol);
    auto* null = llvm::ConstantPointerNull::get(b_.getPtrTy());
    if (k.work.chunks == 1)
      check(b_.CreateCall(kernel, {list, null, b_.getInt64(0), scratch(k.work.scratch_bytes)}));
    else
      parallel(k.work, kernel, list, null, shared ? k.work.cost_ns : 0);
  }

  llvm::Value* table_of_parts(const Region& region) {
    llvm::StructType* type = part_type();
    std::vector<llvm::Constant*> parts;
    for (const RegionPart& p : parts_of(region)) {
      parts.push_back(llvm::ConstantStruct::get(
          type, {declared(region.calls[p.call].symbol), b_.getInt64(static_cast<uint64_t>(p.chunk))}));
    }
    auto* table = llvm::ConstantArray::get(llvm::ArrayType::get(type, parts.size()), parts);
    return new llvm::GlobalVariable(ir_, table->getType(), true, llvm::GlobalValue::InternalLinkage, table, "parts");
  }

  const std::vector<KernelCall>& calls_of(const Instruction& i, const std::vector<BufferSlice>& slices) {
    const std::vector<KernelCall>*& known = calls_[&i];
    if (!known) known = &kernels_.kernel(i, surroundings(i, slices));
    return *known;
  }

  struct Around {
    int loops = 0;
    double rounds = 1;  // of all of them
  };
  // Who works on what is decided before any of it is emitted.
  void look_at(const Computation& c, const LoopState* loop, const Around& around) {
    for (const auto& i : c.instructions()) look_at(*i, loop, around);
  }
  void look_at(const Instruction& i, const LoopState* loop, const Around& around) {
    constexpr int kMostTwice = 4;    // loops in loops
    constexpr int64_t kRounds = 16;  // of a loop of which it is not known
    if (makes_no_code(i)) return;
    if (i.is(Opcode::kConditional)) {
      for (const Computation* c : i.called) look_at(*c, loop, around);
      return;
    }
    if (i.is(Opcode::kWhile)) {
      if (!loop) loop = inlining(i);
      const auto rounds = static_cast<double>(std::max<int64_t>(known_rounds(i).value_or(kRounds), 1));
      const Around inside{around.loops + 1, around.rounds * rounds};
      for (int round = 0; round < (around.loops < kMostTwice ? 2 : 1); ++round) {
        look_at(*i.while_condition(), loop, inside);
        look_at(*i.while_body(), loop, inside);
      }
      return;
    }
    const std::vector<BufferSlice> slices = buffers_of(i);
    // A step decides for itself, when it runs; with little to work on it takes one core.
    constexpr int64_t kLittle = 128 << 10;
    auto is_little = [](const BufferSlice& s) { return s.size < kLittle; };
    if (is_step(i) && !std::ranges::all_of(slices, is_little)) return sharing_.forget(slices);
    const auto own = plan_.slices.find(&i);
    const std::span all(slices);
    const size_t operands = all.size() - (own == plan_.slices.end() ? 0 : own->second.size());
    Sharing::Work work{.loops = around.loops, .rounds = around.rounds};
    if (i.is(Opcode::kFusion) && !is_small_copy(i) && !(loop && loop->inlined.contains(&i))) {
      for (const auto& [calls, all] : regions_of(calls_of(i, slices))) {
        work.cost_ns += all.cost_ns;
        work.in_order &= all.in_order && !(work.may && all.chunks > 1);  // of several regions each core has some
        work.may |= all.chunks > 1;
      }
    }
    sharing_.add(&i, all.first(operands), all.subspan(operands), work);
  }

  // The kernel's code in place of a call: in order and by one thread, which is how a call would run it.
  void inlined(const Instruction& i, const std::vector<BufferSlice>& slices) {
    auto* pointers = llvm::ArrayType::get(b_.getPtrTy(), slices.size());
    llvm::IRBuilder<> start(&frame_.function->getEntryBlock(), frame_.function->getEntryBlock().begin());
    llvm::Value* list = start.CreateAlloca(pointers);
    for (size_t k = 0; k < slices.size(); ++k) {
      b_.CreateStore(pointer(slices[k]), b_.CreateConstInBoundsGEP1_64(b_.getPtrTy(), list, k));
    }
    for (const KernelFunction& kernel :
         emit_kernel([&]() -> llvm::Module& { return ir_; }, i, surroundings(i, slices), options_)) {
      // The list is filled here, which a load of what never changes does not expect.
      for (llvm::User* slot : kernel.function->getArg(0)->users()) {
        auto forget = [](llvm::User* u) {
          if (auto* load = llvm::dyn_cast<llvm::LoadInst>(u))
            load->setMetadata(llvm::LLVMContext::MD_invariant_load, nullptr);
        };
        forget(slot);
        for (llvm::User* user : slot->users()) forget(user);
      }
      kernel.function->addFnAttr(llvm::Attribute::AlwaysInline);
      for (int64_t chunk = 0; chunk < kernel.work.chunks; ++chunk) {
        check(b_.CreateCall(kernel.function,
                            {list, llvm::ConstantPointerNull::get(b_.getPtrTy()),
                             b_.getInt64(static_cast<uint64_t>(chunk)), scratch(kernel.work.scratch_bytes)}));
      }
    }
    ++facts_.kernels;
    facts_.inlines = true;
  }

  // A price of nothing keeps all chunks on the caller's core.
  void parallel(const KernelWork& work, llvm::Function* kernel, llvm::Value* list, llvm::Value* scalars,
                int64_t cost_ns) {
    auto* pointer = b_.getPtrTy();
    auto* i64 = b_.getInt64Ty();
    auto* type = llvm::FunctionType::get(b_.getInt32Ty(), {pointer, pointer, pointer, pointer, i64, i64, i64}, false);
    llvm::Value* parallel_for = b_.CreateLoad(pointer, bytes_at(frame_.call(), offsetof(abi::Context, parallel_for)));
    auto number = [&](int64_t v) { return b_.getInt64(static_cast<uint64_t>(v)); };
    check(b_.CreateCall(
        type, parallel_for,
        {frame_.call(), kernel, list, scalars, number(work.chunks), number(work.scratch_bytes), number(cost_ns)}));
  }

  // A step: a call through the runtime's table in Context, by number.
  void step(const Instruction& i) {
    auto* pointer = b_.getPtrTy();
    auto field = [&](llvm::Value* base, size_t offset) {
      return b_.CreateLoad(pointer, bytes_at(base, static_cast<int64_t>(offset)));
    };
    llvm::Value* kernel = llvm::ConstantPointerNull::get(pointer);
    if (has_step_kernel(i)) kernel = declared(kernels_.kernel(i, {}).at(0).symbol);
    llvm::Value* table = field(frame_.call(), offsetof(abi::Context, steps));
    size_t at = step_number_.at(&i) * sizeof(abi::Step);
    llvm::Value* run = field(table, at + offsetof(abi::Step, run));
    llvm::Value* state = field(table, at + offsetof(abi::Step, state));
    auto* type = llvm::FunctionType::get(b_.getInt32Ty(), {pointer, pointer, pointer, pointer}, false);
    check(b_.CreateCall(type, run, {frame_.call(), state, list_of(buffers_of(i)), kernel}));
  }

  llvm::Function* declared(const std::string& symbol) {
    if (llvm::Function* known = ir_.getFunction(symbol)) return known;
    auto* pointer = b_.getPtrTy();
    auto* type = llvm::FunctionType::get(b_.getInt32Ty(), {pointer, pointer, b_.getInt64Ty(), pointer}, false);
    return llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, symbol, ir_);
  }

  // An update writes part of its result: where its operand is not in the result's memory already, it is
  // copied there first.
  void update_copies(const Instruction& i, const std::vector<BufferSlice>& slices) {
    for (const Update& u : updated_parameters(*i.to_apply())) {
      const BufferSlice& from = slices[static_cast<size_t>(u.parameter)];
      const BufferSlice& to = slices[i.operand_count() + static_cast<size_t>(u.result)];
      if (!(from == to)) copy_memory(from, to);
    }
  }

  void copy_memory(const BufferSlice& from, const BufferSlice& to) {
    llvm::Value* source = pointer(from);
    llvm::Value* target = pointer(to);
    if (!overlap(from, to)) return copy_bytes(source, target, to.size);
    // A donated parameter: nothing to do if the caller did give its memory.
    auto* copy = llvm::BasicBlock::Create(context_, "copy", frame_.function);
    auto* next = llvm::BasicBlock::Create(context_, "copied", frame_.function);
    b_.CreateCondBr(b_.CreateICmpEQ(source, target), next, copy);
    b_.SetInsertPoint(copy);
    copy_bytes(source, target, to.size);
    b_.CreateBr(next);
    b_.SetInsertPoint(next);
  }

  // What of a loop in the entry's own sequence is inlined; null: nothing.
  const LoopState* inlining(const Instruction& loop) {
    if (size_of(loop) > kPart) return nullptr;
    const auto [at, is_new] = loop_states_.try_emplace(&loop);
    if (is_new) {
      const bool donates = !module_.config.input_output_alias.empty();
      at->second = loop_state(loop, plan_, options_.target_info(), donates);
    }
    return at->second.inlined.empty() ? nullptr : &at->second;
  }

  void while_loop(const Instruction& i) {
    const LoopState* state = frame_.loop ? nullptr : inlining(i);
    if (!state) return while_blocks(i);
    llvm::Function* loop = function(fmt::format("loop{}", parts_++), [&] {
      frame_.loop = state;
      load_slots();
      auto* begin = llvm::BasicBlock::Create(context_, "begin", frame_.function);
      b_.CreateBr(begin);
      b_.SetInsertPoint(begin);
      while_blocks(i);
      store_slots();
    });
    call(loop);
  }

  void while_blocks(const Instruction& i) {
    auto* header = llvm::BasicBlock::Create(context_, i.name + ".condition", frame_.function);
    auto* body = llvm::BasicBlock::Create(context_, i.name + ".body", frame_.function);
    auto* exit = llvm::BasicBlock::Create(context_, i.name + ".exit", frame_.function);
    b_.CreateBr(header);
    b_.SetInsertPoint(header);
    computation(*i.while_condition());
    llvm::Value* goes_on = b_.CreateLoad(b_.getInt8Ty(), pointer(plan_.slice(i.while_condition()->root())));
    b_.CreateCondBr(b_.CreateICmpNE(goes_on, b_.getInt8(0)), body, exit);
    b_.SetInsertPoint(body);
    computation(*i.while_body());
    stop_if_asked();
    b_.CreateBr(header);
    b_.SetInsertPoint(exit);
  }

  // A loop may have no end of its own: each time round it asks whether somebody has had enough.
  void stop_if_asked() {
    llvm::Value* stop = b_.CreateLoad(b_.getPtrTy(), bytes_at(frame_.call(), offsetof(abi::Context, stop)), "stop");
    llvm::Value* asked = b_.CreateLoad(b_.getInt8Ty(), stop, /*isVolatile=*/true);
    check(b_.CreateSelect(b_.CreateICmpEQ(asked, b_.getInt8(0)), b_.getInt32(abi::kOk), b_.getInt32(abi::kStopped)));
  }

  // Index form: out of range takes the last branch. Pred form: {true, false}.
  void conditional(const Instruction& i) {
    const Instruction* selector = i.operand(0);
    auto* exit = llvm::BasicBlock::Create(context_, i.name + ".join", frame_.function);
    std::vector<llvm::BasicBlock*> blocks;
    for (const Computation* c : i.called)
      blocks.push_back(llvm::BasicBlock::Create(context_, c->name, frame_.function));
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

  void instruction(const Instruction& i) {
    if (makes_no_code(i)) return;
    if (i.is(Opcode::kFusion)) return fusion(i);
    if (i.is(Opcode::kCopy)) return copy_memory(plan_.slice(i.operand(0)), plan_.slice(&i));
    if (i.is(Opcode::kWhile)) return while_loop(i);
    if (i.is(Opcode::kConditional)) return conditional(i);
    if (is_step(i)) return step(i);
    throw Error(ErrorKind::kUnsupported, i.location, fmt::format("{} is not compiled yet", op_name(i.opcode)));
  }

  // ---- sequences -----------------------------------------------------------------------------------------

  // Instructions that become code, those of nested computations included.
  int64_t size_of(const Instruction& i) {
    int64_t n = i.is(Opcode::kFusion) || i.is(Opcode::kCopy) || is_step(i) ? 1 : 0;
    if (has_trait(i, op_trait::kRuns)) {
      for (const Computation* c : i.called) n += 1 + size_of(*c);
    }
    return n;
  }
  int64_t size_of(const Computation& c) {
    auto known = sizes_.find(&c);
    if (known != sizes_.end()) return known->second;
    int64_t n = 0;
    for (const auto& i : c.instructions()) n += size_of(*i);
    return sizes_[&c] = n;
  }

  // A short sequence stands where it is. A long one is cut: runs of instructions become parts; an instruction
  // that is too long by itself (a loop with a long body) stays, and its body is cut in turn.
  void computation(const Computation& c) {
    std::vector<const Instruction*> run;
    int64_t length = 0;
    const bool cut = size_of(c) > kPart;
    auto flush = [&] {
      if (run.empty()) return;
      llvm::Function* part = function(fmt::format("part{}", parts_++), [&] {
        for (const Instruction* i : run) instruction(*i);
      });
      call(part);
      run.clear();
      length = 0;
    };
    for (const auto& i : c.instructions()) {
      int64_t n = size_of(*i);
      if (cut && length + n > kPart) flush();
      if (!cut || n > kPart) {
        instruction(*i);
      } else {
        run.push_back(i.get());
        length += n;
      }
    }
    flush();
  }

  const Module& module_;
  const BufferPlan& plan_;
  KernelSource& kernels_;
  const EmitOptions& options_;
  const std::vector<int64_t> donors_ = donors(module_);
  BufferTable table_;
  Sharing sharing_{options_.target_info()};
  EntryFacts facts_;
  int64_t scratch_bytes_ = 0, parts_ = 0;
  std::unordered_map<const Instruction*, size_t> step_number_;
  std::unordered_map<const Computation*, int64_t> sizes_;
  std::unordered_map<const Instruction*, const std::vector<KernelCall>*> calls_;
  std::unordered_map<const Instruction*, LoopState> loop_states_;
};

}  // namespace

EntryFacts emit_entry(llvm::Module& ir, const Module& module, const BufferPlan& buffers, KernelSource& kernels,
                      const EmitOptions& options) {
  return EntryEmitter(ir, module, buffers, kernels, options).run();
}

}  // namespace hlojit::codegen
