// See function.h.
#include "codegen/kernels/function.h"

#include <algorithm>

#include <fmt/format.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>

#include "layout/index.h"

namespace hlojit::codegen {

namespace {

// A result is gone from the last level before anyone reads it if it, or all the kernel touches, is larger
// than that. Results updated in place are in the cache already, and what a later stage loads again is to stay there.
bool is_streamed(const Instruction& fusion, const KernelPlan& plan, size_t result, const Surroundings& around,
                 const EmitOptions& options) {
  auto rereads = [&](const Stage& s) { return std::ranges::find(s.rereads, result) != s.rereads.end(); };
  if (std::ranges::any_of(plan.stages, rereads)) return false;
  const std::vector<bool>& row = around.overlap[fusion.operand_count() + result];
  if (std::count(row.begin(), row.end(), true) > 1) return false;
  int64_t traffic = 0, llc = options.target_info().llc_bytes;
  for (const Instruction* o : fusion.operands()) traffic += physical_size(o->shape);
  for (const Shape* leaf : leaves(fusion.shape)) traffic += physical_size(*leaf);
  int64_t size = physical_size(*leaves(fusion.shape)[result]);
  return size >= llc || (traffic >= 3 * llc && size >= llc / 4);
}

}  // namespace

bool KernelBuilder::streams(const Instruction& fusion, const KernelPlan& plan, const Surroundings& around,
                            const EmitOptions& options) {
  for (size_t r = 0; r + fusion.operand_count() < around.overlap.size(); ++r) {
    if (is_streamed(fusion, plan, r, around, options)) return true;
  }
  return false;
}

KernelBuilder::KernelBuilder(llvm::Module& module, const Instruction& fusion, const KernelPlan& plan,
                             const Surroundings& around, const EmitOptions& options, VarSource& vars,
                             std::string_view suffix) {
  auto& context = module.getContext();
  llvm::IRBuilder<> types(context);
  auto* pointer = types.getPtrTy();
  auto* type = llvm::FunctionType::get(types.getInt32Ty(), {pointer, pointer, types.getInt64Ty(), pointer}, false);
  function_ = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage, fmt::format("{}{}", fusion.name, suffix),
                                     module);
  function_->getArg(0)->setName("buffers");
  function_->getArg(2)->setName("chunk");
  function_->getArg(3)->setName("scratch");
  auto* entry = llvm::BasicBlock::Create(context, "entry", function_);
  done_ = llvm::BasicBlock::Create(context, "done", function_);
  llvm::IRBuilder<>(done_).CreateRet(types.getInt32(0));
  root_ = std::make_unique<Scope>(entry, nullptr);
  emitter_ = std::make_unique<ElementEmitter>(*root_, options, vars);

  in_place_ = around.in_place();
  // Buffers that cannot overlap get disjoint alias scopes.
  operands_ = fusion.operand_count();
  size_t count = operands_ + static_cast<size_t>(leaf_count(fusion.shape));
  llvm::MDBuilder metadata(context);
  llvm::MDNode* domain = metadata.createAnonymousAliasScopeDomain(fusion.name);
  std::vector<llvm::MDNode*> scopes;
  for (size_t k = 0; k < count; ++k) scopes.push_back(metadata.createAnonymousAliasScope(domain));
  llvm::IRBuilder<>& b = root_->builder;
  for (size_t k = 0; k < count; ++k) {
    std::vector<llvm::Metadata*> apart;
    for (size_t j = 0; j < count; ++j) {
      if (j != k && !around.overlap[k][j]) apart.push_back(scopes[j]);
    }
    auto* slot = b.CreateConstInBoundsGEP1_64(pointer, function_->getArg(0), k);
    auto* load = b.CreateLoad(pointer, slot, k < operands_ ? fusion.operand(k)->name : "result");
    load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(context, {}));
    buffers_.push_back({load, llvm::MDNode::get(context, {scopes[k]}), llvm::MDNode::get(context, apart)});
    const Shape& shape = k < operands_ ? fusion.operand(k)->shape : *leaves(fusion.shape)[k - operands_];
    buffers_.back().elements = physical_elements(shape);
    buffers_.back().element_bits = element_bits(shape);
    const auto results = around.overlap[k].begin() + static_cast<std::ptrdiff_t>(operands_);
    buffers_.back().read_only =
        k < operands_ && std::find(results, around.overlap[k].end(), true) == around.overlap[k].end();
    buffers_.back().streaming = k >= operands_ && is_streamed(fusion, plan, k - operands_, around, options);
    streams_ |= buffers_.back().streaming;
  }
  for (const Instruction* p : fusion.to_apply()->parameters()) {
    auto k = static_cast<size_t>(p->attrs.parameter_number);
    emitter_->bind_parameter(p, buffers_[k], around.products[k]);
  }
}

llvm::Value* KernelBuilder::chunk() const { return function_->getArg(2); }
llvm::Value* KernelBuilder::scratch() const { return function_->getArg(3); }

int64_t KernelBuilder::bind_chunks(const LoopPiece& piece, size_t count) {
  int64_t total = 1;
  for (size_t k = 0; k < count; ++k) total *= piece.loops[k].extent;
  int64_t below = total;
  for (size_t k = 0; k < count; ++k) {
    const LoopDigit& loop = piece.loops[k];
    llvm::IRBuilder<>& b = root_->builder;
    below /= loop.extent;
    llvm::Value* v = chunk();
    if (below > 1) v = b.CreateUDiv(v, b.getInt64(static_cast<uint64_t>(below)));
    if (k > 0) v = b.CreateURem(v, b.getInt64(static_cast<uint64_t>(loop.extent)));
    emitter_->bind(loop.var, *root_, emitter_->digit_value(loop, v, *root_));
    if (!loop.clip) continue;
    llvm::Value* trip = emitter_->trip_count(loop, loop.clip->so_far, *root_);
    auto* inside = llvm::BasicBlock::Create(b.getContext(), "inside", function_);
    b.CreateCondBr(b.CreateICmpULT(v, trip), inside, done_);
    b.SetInsertPoint(inside);
  }
  return total;
}

llvm::Function* KernelBuilder::finish() {
  // Streaming stores are not ordered with what tells other threads that the chunk is done.
  if (streams_) root_->builder.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {}, {});
  root_->builder.CreateBr(done_);
  return function_;
}

}  // namespace hlojit::codegen
