// See depth_tile.h. A few columns at a time, as many as leave the sums of all rows in registers; then the next few.
#include "codegen/kernels/depth_tile.h"

#include <functional>

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include "codegen/number/elementwise.h"
#include "codegen/number/parts.h"
#include "codegen/target.h"

namespace hlojit::codegen {
namespace {

using Vectors = std::vector<llvm::Value*>;

/// One vector for a power of two of them: the sum of each one's lanes. Halves of two go side by side and are added, so
/// that the work is shared by all.
llvm::Value* sums_of_lanes(llvm::IRBuilderBase& b, Vectors vectors) {
  const size_t count = vectors.size();
  auto halves = [&](llvm::Value* x, llvm::Value* y, int parts) {  // of each of the parts that x and y consist of
    const auto lanes = static_cast<int>(llvm::cast<llvm::FixedVectorType>(x->getType())->getNumElements());
    const int all = y ? 2 * lanes : lanes, half = all / parts / 2;
    std::vector<int> low, high;
    for (int k = 0; k < all / 2; ++k) {
      low.push_back(k / half * 2 * half + k % half);
      high.push_back(low.back() + half);
    }
    if (!y) y = llvm::PoisonValue::get(x->getType());
    return b.CreateFAdd(b.CreateShuffleVector(x, y, low), b.CreateShuffleVector(x, y, high));
  };
  for (int parts = 2; vectors.size() > 1; parts *= 2) {
    Vectors next;
    for (size_t k = 0; k < vectors.size(); k += 2) next.push_back(halves(vectors[k], vectors[k + 1], parts));
    vectors = std::move(next);
  }
  auto lanes = [&] { return llvm::cast<llvm::FixedVectorType>(vectors[0]->getType())->getNumElements(); };
  while (lanes() > count) vectors[0] = halves(vectors[0], nullptr, static_cast<int>(count));
  return vectors[0];
}

class DepthTile {
 public:
  DepthTile(llvm::Function* f, const MicroKernelShape& shape, const Target& target)
      : f_(f),
        shape_(shape),
        b_(f->getContext()),
        scalar_(storage_type(b_, shape.type, 1)),
        vector_(storage_type(b_, shape.type, shape.lanes)),
        align_(static_cast<uint64_t>(dtype_bytes(shape.type))),
        rows_(shape.rows) {
    const int most = (target.vector_registers() - 2) / (shape.rows + 1);
    while (2 * columns_ <= std::min(most, shape.lanes)) columns_ *= 2;
  }

  void emit() {
    b_.SetInsertPoint(block("entry"));
    const int64_t all = int64_t{shape_.vectors} * shape_.lanes;
    loop("columns", columns_, number(all), {}, [&](llvm::Value* column, const Vectors&) {
      store(sums_of(at(f_->getArg(1), b_.CreateMul(column, number(shape_.panel_stride)))), column);
      return Vectors();
    });
    b_.CreateRetVoid();
  }

 private:
  llvm::ConstantInt* number(int64_t v) { return b_.getInt64(static_cast<uint64_t>(v)); }
  llvm::BasicBlock* block(const char* label) { return llvm::BasicBlock::Create(f_->getContext(), label, f_); }
  llvm::Value* at(llvm::Value* base, llvm::Value* element) { return b_.CreateInBoundsGEP(scalar_, base, element); }

  /// Counts to `end` by `step`, at least once; `body` gets the count and the values, and gives what they become.
  Vectors loop(const char* name, int64_t step, llvm::Value* end, const Vectors& values,
               const std::function<Vectors(llvm::Value*, const Vectors&)>& body) {
    llvm::BasicBlock *before = b_.GetInsertBlock(), *head = block(name);
    b_.CreateBr(head);
    b_.SetInsertPoint(head);
    llvm::PHINode* count = b_.CreatePHI(b_.getInt64Ty(), 2);
    count->addIncoming(number(0), before);
    Vectors carried;
    for (llvm::Value* v : values) {
      llvm::PHINode* phi = b_.CreatePHI(v->getType(), 2);
      phi->addIncoming(v, before);
      carried.push_back(phi);
    }
    const Vectors made = body(count, carried);
    llvm::BasicBlock *last = b_.GetInsertBlock(), *after = block("after");
    llvm::Value* next = b_.CreateAdd(count, number(step));
    count->addIncoming(next, last);
    for (size_t k = 0; k < made.size(); ++k) llvm::cast<llvm::PHINode>(carried[k])->addIncoming(made[k], last);
    b_.CreateCondBr(b_.CreateICmpULT(next, end), head, after);
    b_.SetInsertPoint(after);
    return made;
  }

  /// Of all rows with the columns that begin at `right`.
  Vectors sums_of(llvm::Value* right) {
    llvm::Value *depth = f_->getArg(4), *whole = b_.CreateAnd(depth, number(-shape_.lanes));
    auto whole_vectors = [&](const Vectors& sums) {
      return loop("k", shape_.lanes, whole, sums,
                  [&](llvm::Value* k, const Vectors& carried) { return with_products(carried, right, k, false); });
    };
    const Vectors none(static_cast<size_t>(rows_ * columns_), llvm::Constant::getNullValue(vector_));
    if (shape_.last_lanes == shape_.lanes) return whole_vectors(none);
    // Of several slices the last may be shorter than a vector.
    Vectors sums = shape_.accumulates ? under(b_.CreateICmpNE(whole, number(0)), "whole", none, whole_vectors)
                                      : whole_vectors(none);
    return under(b_.CreateICmpULT(whole, depth), "rest", sums,
                 [&](const Vectors& before) { return with_products(before, right, whole, true); });
  }

  void store(const Vectors& sums, llvm::Value* column) {
    for (int64_t i = 0; i < rows_; ++i) {
      const auto first = sums.begin() + static_cast<std::ptrdiff_t>(i * columns_);
      llvm::Value* row = sums_of_lanes(b_, Vectors(first, first + static_cast<std::ptrdiff_t>(columns_)));
      llvm::Value* to = at(f_->getArg(2), b_.CreateAdd(b_.CreateMul(number(i), f_->getArg(3)), column));
      if (shape_.accumulates) {
        llvm::Value* old = b_.CreateAlignedLoad(row->getType(), to, align_);
        row = b_.CreateSelect(f_->getArg(5), b_.CreateFAdd(old, row), row);
      }
      b_.CreateAlignedStore(row, to, align_);
    }
  }

  llvm::Value* load(llvm::Value* from, bool part) {
    if (!part) return b_.CreateAlignedLoad(vector_, from, align_);
    std::vector<llvm::Constant*> there;
    for (int k = 0; k < shape_.lanes; ++k) there.push_back(b_.getInt1(k < shape_.last_lanes));
    return b_.CreateMaskedLoad(vector_, from, align_, llvm::ConstantVector::get(there),
                               llvm::Constant::getNullValue(vector_));
  }

  /// A line of the columns that come next: no prefetcher gets far in pieces of a page.
  void look_ahead(llvm::Value* line) {
    b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {b_.getPtrTy()},
                       {line, b_.getInt32(0), b_.getInt32(2), b_.getInt32(1)});
  }

  /// The sums with the products of a vector's worth of the depth, from `k` on; `part`: of what it leaves of a vector.
  Vectors with_products(Vectors sums, llvm::Value* right, llvm::Value* k, bool part) {
    Vectors columns;
    for (int64_t j = 0; j < columns_; ++j)
      columns.push_back(load(at(at(right, k), number(j * shape_.panel_stride)), part));
    for (int64_t j = 0; shape_.looks_down > 0 && !part && j < columns_; ++j)
      look_ahead(b_.CreateGEP(scalar_, at(right, k), number((columns_ + j) * shape_.panel_stride)));
    for (int64_t i = 0; i < rows_; ++i) {
      llvm::Value* row = load(at(at(f_->getArg(0), k), number(i * shape_.left.row_stride)), part);
      for (int64_t j = 0; j < columns_; ++j) {
        llvm::Value*& sum = sums[static_cast<size_t>(i * columns_ + j)];
        sum = b_.CreateIntrinsic(llvm::Intrinsic::fma, {vector_}, {row, columns[static_cast<size_t>(j)], sum});
      }
    }
    return sums;
  }

  /// What `body` makes of values where the condition holds, else the values.
  Vectors under(llvm::Value* condition, const char* name, const Vectors& values,
                const std::function<Vectors(const Vectors&)>& body) {
    llvm::BasicBlock *before = b_.GetInsertBlock(), *then = block(name), *after = block("after");
    b_.CreateCondBr(condition, then, after);
    b_.SetInsertPoint(then);
    const Vectors made = body(values);
    llvm::BasicBlock* last = b_.GetInsertBlock();
    b_.CreateBr(after);
    b_.SetInsertPoint(after);
    Vectors joined;
    for (size_t k = 0; k < values.size(); ++k) {
      llvm::PHINode* phi = b_.CreatePHI(vector_, 2);
      phi->addIncoming(values[k], before);
      phi->addIncoming(made[k], last);
      joined.push_back(phi);
    }
    return joined;
  }

  // (left, right, sums, stride of the sums, depth, whether to add to them, -, -): see micro_kernel
  llvm::Function* f_;
  const MicroKernelShape& shape_;
  llvm::IRBuilder<> b_;
  llvm::Type *scalar_, *vector_;
  llvm::Align align_;
  int64_t rows_, columns_ = 1;
};

}  // namespace

void emit_depth_tile(llvm::Function* f, const MicroKernelShape& shape, const Target& target) {
  DepthTile(f, shape, target).emit();
}

}  // namespace hlojit::codegen
