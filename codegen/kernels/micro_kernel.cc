// See micro_kernel.h.
#include "codegen/kernels/micro_kernel.h"

#include <fmt/format.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/Module.h>

#include "codegen/number/elementwise.h"

namespace hlojit::codegen {

namespace {

// Sums of products of the 16-bit pairs in each 32-bit lane, by instructions of `lanes` lanes.
llvm::Value* multiply_pairs(llvm::IRBuilder<>& b, llvm::Value* x, llvm::Value* y, int lanes) {
  auto total = static_cast<int>(llvm::cast<llvm::FixedVectorType>(x->getType())->getNumElements());
  if (total > lanes) {
    std::vector<int> low, high, all;
    for (int n = 0; n < total; ++n) (n < total / 2 ? low : high).push_back(n), all.push_back(n);
    auto half = [&](const std::vector<int>& part) {
      return multiply_pairs(b, b.CreateShuffleVector(x, part), b.CreateShuffleVector(y, part), lanes);
    };
    return b.CreateShuffleVector(half(low), half(high), all);
  }
  auto* words = llvm::FixedVectorType::get(b.getInt16Ty(), static_cast<unsigned>(2 * lanes));
  auto id = lanes == 16 ? llvm::Intrinsic::x86_avx512_pmaddw_d_512 : llvm::Intrinsic::x86_avx2_pmadd_wd;
  return b.CreateIntrinsic(id, {}, {b.CreateBitCast(x, words), b.CreateBitCast(y, words)});
}

}  // namespace

std::string micro_kernel_name(const MicroKernelShape& shape) {
  return fmt::format("tile.{}.{}x{}x{}.{}.{}.{}.{}.{}{}", dtype_name(shape.type), shape.rows, shape.vectors,
                     shape.lanes, shape.row_stride, shape.k_stride, shape.panel_stride, shape.unroll, shape.pair_lanes,
                     shape.accumulates ? "+" : "");
}

llvm::Function* micro_kernel(llvm::Module& module, const MicroKernelShape& shape, const EmitOptions& options) {
  std::string name = micro_kernel_name(shape);
  if (llvm::Function* known = module.getFunction(name)) return known;
  auto& context = module.getContext();
  llvm::IRBuilder<> b(context);
  auto* pointer = b.getPtrTy();
  auto* i64 = b.getInt64Ty();
  auto* type = llvm::FunctionType::get(b.getVoidTy(), {pointer, pointer, pointer, i64, i64, b.getInt1Ty()}, false);
  auto linkage = options.micro_kernels ? llvm::GlobalValue::ExternalLinkage : llvm::GlobalValue::InternalLinkage;
  auto* f = llvm::Function::Create(type, linkage, name, module);
  for (unsigned k = 0; k < 3; ++k) f->addParamAttr(k, llvm::Attribute::NoAlias);
  if (options.micro_kernels) {
    options.micro_kernels->push_back(shape);
    return f;
  }
  llvm::Value *a = f->getArg(0), *panel = f->getArg(1), *c = f->getArg(2), *c_stride = f->getArg(3),
              *count = f->getArg(4), *accumulate = f->getArg(5);

  llvm::Type* scalar = storage_type(b, shape.type, 1);
  llvm::Type* vector = storage_type(b, shape.type, shape.lanes);
  llvm::Align align(static_cast<uint64_t>(dtype_bytes(shape.type)));
  bool floating = is_float(shape.type);
  auto rows = static_cast<size_t>(shape.rows), vectors = static_cast<size_t>(shape.vectors);
  auto number = [&](int64_t v) { return b.getInt64(static_cast<uint64_t>(v)); };
  auto block = [&](const char* label) { return llvm::BasicBlock::Create(context, label, f); };
  auto *entry = block("entry"), *loop = block("k");
  auto c_address = [&](size_t i, size_t v) {
    llvm::Value* at = b.CreateMul(number(static_cast<int64_t>(i)), c_stride);
    return b.CreateInBoundsGEP(scalar, c, b.CreateAdd(at, number(static_cast<int64_t>(v) * shape.lanes)));
  };
  using Tile = std::vector<llvm::Value*>;
  auto phis = [&] {
    std::vector<llvm::PHINode*> p;
    for (size_t k = 0; k < rows * vectors; ++k) p.push_back(b.CreatePHI(vector, 2));
    return p;
  };
  auto step = [&](Tile tile, llvm::Value* k) {
    std::vector<llvm::Value*> bv;
    for (size_t v = 0; v < vectors; ++v) {
      llvm::Value* at =
          b.CreateAdd(b.CreateMul(k, number(shape.panel_stride)), number(static_cast<int64_t>(v) * shape.lanes));
      bv.push_back(b.CreateAlignedLoad(vector, b.CreateInBoundsGEP(scalar, panel, at), align));
    }
    llvm::Value* along = shape.k_stride == 1 ? k : b.CreateMul(k, number(shape.k_stride));
    for (size_t i = 0; i < rows; ++i) {
      llvm::Value* at = b.CreateAdd(along, number(static_cast<int64_t>(i) * shape.row_stride));
      llvm::Value* x = b.CreateAlignedLoad(scalar, b.CreateInBoundsGEP(scalar, a, at), align);
      if (shape.lanes > 1) x = b.CreateVectorSplat(static_cast<unsigned>(shape.lanes), x);
      for (size_t v = 0; v < vectors; ++v) {
        llvm::Value*& t = tile[i * vectors + v];
        if (shape.pair_lanes) {
          t = b.CreateAdd(multiply_pairs(b, x, bv[v], shape.pair_lanes), t);
          continue;
        }
        t = floating ? b.CreateIntrinsic(llvm::Intrinsic::fma, {vector}, {x, bv[v], t})
                     : b.CreateAdd(b.CreateMul(x, bv[v]), t);
      }
    }
    return tile;
  };

  // What is added to comes last, on its way into the cache all along.
  b.SetInsertPoint(entry);
  if (shape.accumulates) {
    const size_t line = 64 / static_cast<size_t>(dtype_bytes(shape.type) * shape.lanes);
    for (size_t i = 0; i < rows * vectors; i += std::max<size_t>(line, 1)) {
      b.CreateIntrinsic(llvm::Intrinsic::prefetch, {pointer},
                        {c_address(i / vectors, i % vectors), b.getInt32(1), b.getInt32(3), b.getInt32(1)});
    }
  }
  b.CreateBr(loop);

  b.SetInsertPoint(loop);
  auto* k = b.CreatePHI(i64, 2);
  auto sums = phis();
  Tile tile(sums.begin(), sums.end());
  for (int64_t u = 0; u < shape.unroll; ++u) tile = step(tile, u == 0 ? k : b.CreateAdd(k, number(u)));
  llvm::Value* next = b.CreateAdd(k, number(shape.unroll));
  k->addIncoming(number(0), entry);
  k->addIncoming(next, loop);
  for (size_t n = 0; n < sums.size(); ++n) {
    sums[n]->addIncoming(llvm::Constant::getNullValue(vector), entry);
    sums[n]->addIncoming(tile[n], loop);
  }
  auto* store = block("store");
  llvm::Value* again = b.CreateICmpULT(next, count);
  if (shape.accumulates) {
    auto *done = block("done"), *add = block("add");
    b.CreateCondBr(again, loop, done);
    b.SetInsertPoint(done);
    b.CreateCondBr(accumulate, add, store);
    b.SetInsertPoint(add);
    Tile total;
    for (size_t i = 0; i < rows; ++i) {
      for (size_t v = 0; v < vectors; ++v) {
        llvm::Value* old = b.CreateAlignedLoad(vector, c_address(i, v), align);
        llvm::Value* sum = tile[i * vectors + v];
        total.push_back(floating ? b.CreateFAdd(old, sum) : b.CreateAdd(old, sum));
      }
    }
    b.CreateBr(store);
    b.SetInsertPoint(store);
    auto out = phis();
    for (size_t n = 0; n < out.size(); ++n) {
      out[n]->addIncoming(tile[n], done);
      out[n]->addIncoming(total[n], add);
    }
    tile.assign(out.begin(), out.end());
  } else {
    b.CreateCondBr(again, loop, store);
    b.SetInsertPoint(store);
  }
  for (size_t i = 0; i < rows; ++i) {
    for (size_t v = 0; v < vectors; ++v) b.CreateAlignedStore(tile[i * vectors + v], c_address(i, v), align);
  }
  b.CreateRetVoid();
  return f;
}

}  // namespace hlojit::codegen
