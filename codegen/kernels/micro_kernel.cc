// See micro_kernel.h.
#include "codegen/kernels/micro_kernel.h"

#include <functional>
#include <utility>

#include <fmt/format.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include "codegen/kernels/depth_tile.h"
#include "codegen/number/elementwise.h"

namespace hlojit::codegen {

namespace {

using Tile = std::vector<llvm::Value*>;  // vectors of sums, row by row

/// The body of a micro-kernel: a loop over k that adds to a tile in registers, then the tile's way to memory.
class TileBody {
 public:
  TileBody(llvm::Function* f, const MicroKernelShape& shape, const Target& target)
      : f_(f),
        shape_(shape),
        target_(target),
        b_(f->getContext()),
        scalar_(storage_type(b_, shape.type, 1)),
        vector_(storage_type(b_, shape.type, shape.lanes)),
        align_(static_cast<uint64_t>(dtype_bytes(shape.type))),
        rows_(static_cast<size_t>(shape.rows)),
        vectors_(static_cast<size_t>(shape.vectors)) {}

  void emit() {
    b_.SetInsertPoint(block("entry"));
    if (shape_.accumulates) prefetch();
    Tile tile(rows_ * vectors_, llvm::Constant::getNullValue(vector_));
    llvm::Value* panel = f_->getArg(1);
    if (shape_.left.stretch > 0 && !shape_.left.shares_pointers())
      along_pointers(tile, panel);
    else
      steps(tile, panel, f_->getArg(4), {});
    if (shape_.takes_off) take_off_bias(tile);
    if (shape_.accumulates) add_earlier(tile);
    for (size_t n = 0; n < tile.size(); ++n) b_.CreateAlignedStore(tile[n], sum_address(n), align_);
    b_.CreateRetVoid();
  }

 private:
  llvm::ConstantInt* number(int64_t v) { return b_.getInt64(static_cast<uint64_t>(v)); }
  llvm::BasicBlock* block(const char* label) { return llvm::BasicBlock::Create(f_->getContext(), label, f_); }
  bool floating() const { return is_float(shape_.type); }

  std::vector<llvm::PHINode*> phis(size_t count) {
    std::vector<llvm::PHINode*> p;
    for (size_t n = 0; n < count; ++n) p.push_back(b_.CreatePHI(vector_, 2));
    return p;
  }

  /// A loop of which `tile` and `panel` are carried: begins with what they are, ends with what `body` makes of them.
  /// `body` gets the number of steps of k that were made before.
  void loop(const char* name, int64_t step, llvm::Value* count, Tile& tile, llvm::Value*& panel,
            const std::function<void(llvm::PHINode*)>& body) {
    llvm::BasicBlock *before = b_.GetInsertBlock(), *head = block(name);
    b_.CreateBr(head);
    b_.SetInsertPoint(head);
    auto *k = b_.CreatePHI(b_.getInt64Ty(), 2), *at = b_.CreatePHI(b_.getPtrTy(), 2);
    std::vector<llvm::PHINode*> sums = phis(tile.size());
    k->addIncoming(number(0), before);
    at->addIncoming(panel, before);
    for (size_t n = 0; n < sums.size(); ++n) sums[n]->addIncoming(std::exchange(tile[n], sums[n]), before);
    panel = at;
    body(k);
    llvm::BasicBlock *end = b_.GetInsertBlock(), *after = block("after");
    llvm::Value* next = b_.CreateAdd(k, number(step));
    k->addIncoming(next, end);
    at->addIncoming(panel, end);
    for (size_t n = 0; n < sums.size(); ++n) sums[n]->addIncoming(tile[n], end);
    b_.CreateCondBr(b_.CreateICmpULT(next, count), head, after);
    b_.SetInsertPoint(after);
  }

  /// So many steps of k. `pointers`: to each row's first element, none where rows lie at strides.
  void steps(Tile& tile, llvm::Value*& panel, llvm::Value* count, const std::vector<llvm::Value*>& pointers) {
    const RowsForm& form = shape_.left;
    llvm::BasicBlock* before = b_.GetInsertBlock();
    loop("k", shape_.unroll, count, tile, panel, [&](llvm::PHINode* k) {
      // A pointer that moves on, not an index times a stride.
      llvm::PHINode* left = nullptr;
      if (pointers.empty()) left = llvm::PHINode::Create(b_.getPtrTy(), 2, "", k->getIterator());
      llvm::Value* step = nullptr;
      auto row_at = [&](size_t i, int64_t u) {
        if (form.shares_pointers()) {
          if (i == 0) step = b_.CreateLoad(b_.getPtrTy(), b_.CreateInBoundsGEP(b_.getPtrTy(), left, number(u)));
          return b_.CreateInBoundsGEP(scalar_, b_.CreateInBoundsGEP(scalar_, step, f_->getArg(7)),
                                      number(static_cast<int64_t>(i)));
        }
        if (!left) return b_.CreateInBoundsGEP(scalar_, b_.CreateInBoundsGEP(scalar_, pointers[i], k), number(u));
        return b_.CreateInBoundsGEP(scalar_, left,
                                    number(u * form.k_stride + static_cast<int64_t>(i) * form.row_stride));
      };
      if (shape_.looks_ahead) look_ahead(k);
      for (int64_t u = 0; u < shape_.unroll; ++u) add_products(tile, panel, u, row_at);
      panel = b_.CreateInBoundsGEP(scalar_, panel, number(shape_.unroll * shape_.panel_stride));
      if (!left) return;
      left->addIncoming(f_->getArg(0), before);
      llvm::Type* moved = form.shares_pointers() ? b_.getPtrTy() : scalar_;
      left->addIncoming(b_.CreateInBoundsGEP(moved, left, number(shape_.unroll * form.k_stride)), b_.GetInsertBlock());
    });
  }

  /// Stretch by stretch, each at its rows' pointers.
  void along_pointers(Tile& tile, llvm::Value*& panel) {
    const RowsForm& form = shape_.left;
    llvm::BasicBlock* before = b_.GetInsertBlock();
    loop("stretch", form.stretch, f_->getArg(4), tile, panel, [&](llvm::PHINode* k) {
      auto* table = llvm::PHINode::Create(b_.getPtrTy(), 2, "", k->getIterator());
      std::vector<llvm::Value*> pointers;
      for (size_t i = 0; i < rows_; ++i) {
        llvm::Value* at = b_.CreateInBoundsGEP(b_.getPtrTy(), table, number(static_cast<int64_t>(i) * form.row_stride));
        pointers.push_back(b_.CreateInBoundsGEP(scalar_, b_.CreateLoad(b_.getPtrTy(), at), f_->getArg(7)));
      }
      steps(tile, panel, number(form.stretch), pointers);
      table->addIncoming(f_->getArg(0), before);
      table->addIncoming(b_.CreateInBoundsGEP(b_.getPtrTy(), table, number(form.k_stride)), b_.GetInsertBlock());
    });
  }

  /// Where vector n of the tile lies in memory.
  llvm::Value* sum_address(size_t n) {
    auto row = static_cast<int64_t>(n / vectors_), vector = static_cast<int64_t>(n % vectors_);
    llvm::Value* at = b_.CreateMul(number(row), f_->getArg(3));
    return b_.CreateInBoundsGEP(scalar_, f_->getArg(2), b_.CreateAdd(at, number(vector * shape_.lanes)));
  }

  /// What is added to comes last, on its way into the cache all along.
  void prefetch() {
    const size_t line = 64 / static_cast<size_t>(dtype_bytes(shape_.type) * shape_.lanes);
    for (size_t n = 0; n < rows_ * vectors_; n += std::max<size_t>(line, 1)) {
      b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {b_.getPtrTy()},
                         {sum_address(n), b_.getInt32(1), b_.getInt32(3), b_.getInt32(1)});
    }
  }

  llvm::Value* load_columns(llvm::Value* at, bool last) {
    if (!last || shape_.last_lanes == shape_.lanes) return b_.CreateAlignedLoad(vector_, at, align_);
    std::vector<llvm::Constant*> there;
    for (int k = 0; k < shape_.lanes; ++k) there.push_back(b_.getInt1(k < shape_.last_lanes));
    return b_.CreateMaskedLoad(vector_, at, align_, llvm::ConstantVector::get(there),
                               llvm::Constant::getNullValue(vector_));
  }

  /// A's lines one tile on, as many a turn as a tile takes. In rows side by side no prefetcher sees them come.
  void look_ahead(llvm::Value* k) {
    llvm::Value* at = b_.CreateMul(b_.CreateAdd(k, f_->getArg(4)), number(shape_.rows));
    b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {b_.getPtrTy()},
                       {b_.CreateGEP(scalar_, f_->getArg(0), at), b_.getInt32(0), b_.getInt32(3), b_.getInt32(1)});
  }

  /// A line of B some rows on, into the second cache: more than the rows at hand would not stay in the first.
  void look_down(llvm::Value* panel, int64_t k, size_t v) {
    const int64_t at = (k + shape_.looks_down) * shape_.panel_stride + static_cast<int64_t>(v) * shape_.lanes;
    if (static_cast<int64_t>(v) * shape_.lanes * dtype_bytes(shape_.type) % 64 != 0) return;
    b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {b_.getPtrTy()},
                       {b_.CreateGEP(scalar_, panel, number(at)), b_.getInt32(0), b_.getInt32(2), b_.getInt32(1)});
  }

  /// The products at depth k behind what the pointers are at. `row_at`: where a row's element lies there.
  void add_products(Tile& tile, llvm::Value* panel, int64_t k,
                    const std::function<llvm::Value*(size_t, int64_t)>& row_at) {
    Tile columns;
    for (size_t v = 0; v < vectors_; ++v) {
      llvm::Value* at = number(k * shape_.panel_stride + static_cast<int64_t>(v) * shape_.lanes);
      columns.push_back(load_columns(b_.CreateInBoundsGEP(scalar_, panel, at), v + 1 == vectors_));
      if (shape_.looks_down > 0) look_down(panel, k, v);
    }
    for (size_t i = 0; i < rows_; ++i) {
      llvm::Value* x = b_.CreateAlignedLoad(scalar_, row_at(i, k), align_);
      if (shape_.lanes > 1) x = b_.CreateVectorSplat(static_cast<unsigned>(shape_.lanes), x);
      for (size_t v = 0; v < vectors_; ++v) {
        llvm::Value*& sum = tile[i * vectors_ + v];
        if (shape_.multiply_add != MultiplyAdd::kOne)
          sum = multiply_add(b_, shape_.multiply_add, x, columns[v], sum, target_);
        else if (floating())
          sum = b_.CreateIntrinsic(llvm::Intrinsic::fma, {vector_}, {x, columns[v], sum});
        else
          sum = b_.CreateAdd(b_.CreateMul(x, columns[v]), sum);
      }
    }
  }

  void take_off_bias(Tile& tile) {
    Tile bias;
    for (size_t v = 0; v < vectors_; ++v) {
      llvm::Value* at = b_.CreateInBoundsGEP(scalar_, f_->getArg(6), number(static_cast<int64_t>(v) * shape_.lanes));
      bias.push_back(b_.CreateAlignedLoad(vector_, at, align_));
    }
    for (size_t n = 0; n < tile.size(); ++n) tile[n] = b_.CreateSub(tile[n], bias[n % vectors_]);
  }

  /// The tile is added to what an earlier slice of k left, if there was one.
  void add_earlier(Tile& tile) {
    llvm::BasicBlock* done = b_.GetInsertBlock();
    auto *add = block("add"), *store = block("store");
    b_.CreateCondBr(f_->getArg(5), add, store);
    b_.SetInsertPoint(add);
    Tile total;
    for (size_t n = 0; n < tile.size(); ++n) {
      llvm::Value* old = b_.CreateAlignedLoad(vector_, sum_address(n), align_);
      total.push_back(floating() ? b_.CreateFAdd(old, tile[n]) : b_.CreateAdd(old, tile[n]));
    }
    b_.CreateBr(store);
    b_.SetInsertPoint(store);
    std::vector<llvm::PHINode*> out = phis(tile.size());
    for (size_t n = 0; n < out.size(); ++n) {
      out[n]->addIncoming(tile[n], done);
      out[n]->addIncoming(total[n], add);
    }
    tile.assign(out.begin(), out.end());
  }

  // (left, panel of the right, sums, stride of the sums, depth, whether to add to them, bias, first of a stretch)
  llvm::Function* f_;
  const MicroKernelShape& shape_;
  const Target& target_;
  llvm::IRBuilder<> b_;
  llvm::Type *scalar_, *vector_;
  llvm::Align align_;
  size_t rows_, vectors_;
};

}  // namespace

std::string micro_kernel_name(const MicroKernelShape& shape) {
  return fmt::format("tile.{}.{}x{}x{}{}.{}.{}.{}.{}.{}{}{}{}{}{}{}", dtype_name(shape.type), shape.rows, shape.vectors,
                     shape.lanes, shape.last_lanes < shape.lanes ? fmt::format("m{}", shape.last_lanes) : "",
                     shape.left.row_stride, shape.left.k_stride, shape.panel_stride, shape.unroll,
                     form_of(shape.multiply_add).name, shape.accumulates ? "+" : "", shape.takes_off ? "-" : "",
                     shape.looks_ahead ? ">" : "", shape.looks_down > 0 ? fmt::format("v{}", shape.looks_down) : "",
                     shape.left.stretch > 0 ? fmt::format("@{}", shape.left.stretch) : "",
                     shape.along_depth ? "d" : "");
}

llvm::Function* micro_kernel(llvm::Module& module, const MicroKernelShape& shape, const EmitOptions& options) {
  std::string name = micro_kernel_name(shape);
  if (llvm::Function* known = module.getFunction(name)) return known;
  llvm::IRBuilder<> b(module.getContext());
  llvm::Type *pointer = b.getPtrTy(), *i64 = b.getInt64Ty();
  auto* type =
      llvm::FunctionType::get(b.getVoidTy(), {pointer, pointer, pointer, i64, i64, b.getInt1Ty(), pointer, i64}, false);
  auto linkage = options.micro_kernels ? llvm::GlobalValue::ExternalLinkage : llvm::GlobalValue::InternalLinkage;
  auto* f = llvm::Function::Create(type, linkage, name, module);
  for (unsigned k = 0; k < 3; ++k) f->addParamAttr(k, llvm::Attribute::NoAlias);
  if (options.micro_kernels)
    options.micro_kernels->push_back(shape);
  else if (shape.along_depth)
    emit_depth_tile(f, shape, *options.target);
  else
    TileBody(f, shape, *options.target).emit();
  return f;
}

}  // namespace hlojit::codegen
