#include "codegen/kernels/micro_kernel.h"

#include <fmt/format.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include "codegen/number/elementwise.h"
#include "codegen/target.h"

namespace hlojit {

RegisterTile register_tile(const Target& target, int vector_bytes, DType type) {
  RegisterTile t;
  t.lanes = std::max(1, vector_bytes / dtype_bytes(type));
  // 16 registers: 6x2 accumulators, 2 of B, 1 broadcast. 32 registers: 12x2, and room to spare.
  t.rows = target.vector_registers() >= 32 ? 12 : 6;
  return t;
}

llvm::Function* micro_kernel(llvm::Module& module, const MicroKernelShape& shape) {
  std::string name = fmt::format("tile.{}.{}x{}x{}.{}.{}", dtype_name(shape.type), shape.rows, shape.vectors, shape.lanes,
                                 shape.row_stride, shape.k_stride);
  if (llvm::Function* known = module.getFunction(name)) return known;
  auto& context = module.getContext();
  llvm::IRBuilder<> b(context);
  auto* pointer = b.getPtrTy();
  auto* i64 = b.getInt64Ty();
  auto* type = llvm::FunctionType::get(b.getVoidTy(), {pointer, pointer, pointer, i64, b.getInt1Ty()}, false);
  auto* f = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage, name, module);
  for (unsigned k = 0; k < 3; ++k) f->addParamAttr(k, llvm::Attribute::NoAlias);
  llvm::Value *a = f->getArg(0), *panel = f->getArg(1), *c = f->getArg(2), *count = f->getArg(3), *accumulate = f->getArg(4);

  llvm::Type* scalar = storage_type(b, shape.type, 1);
  llvm::Type* vector = storage_type(b, shape.type, shape.lanes);
  llvm::Align align(static_cast<uint64_t>(dtype_bytes(shape.type)));
  bool floating = is_float(shape.type);
  auto rows = static_cast<size_t>(shape.rows), vectors = static_cast<size_t>(shape.vectors);
  auto number = [&](int64_t v) { return b.getInt64(static_cast<uint64_t>(v)); };
  auto block = [&](const char* label) { return llvm::BasicBlock::Create(context, label, f); };
  auto *entry = block("entry"), *load = block("load"), *start = block("start"), *quad = block("k4"), *rest = block("rest"),
       *one = block("k1"), *store = block("store");
  auto c_address = [&](size_t i, size_t v) {
    return b.CreateInBoundsGEP(scalar, c, number(static_cast<int64_t>((i * vectors + v)) * shape.lanes));
  };

  b.SetInsertPoint(entry);
  b.CreateCondBr(accumulate, load, start);
  b.SetInsertPoint(load);
  std::vector<llvm::Value*> old;
  for (size_t i = 0; i < rows; ++i) {
    for (size_t v = 0; v < vectors; ++v) old.push_back(b.CreateAlignedLoad(vector, c_address(i, v), align));
  }
  b.CreateBr(start);

  using Tile = std::vector<llvm::Value*>;
  auto phis = [&](size_t incoming) {
    std::vector<llvm::PHINode*> p;
    for (size_t k = 0; k < rows * vectors; ++k) p.push_back(b.CreatePHI(vector, static_cast<unsigned>(incoming)));
    return p;
  };
  auto step = [&](Tile tile, llvm::Value* k) {
    std::vector<llvm::Value*> bv;
    for (size_t v = 0; v < vectors; ++v) {
      llvm::Value* at = b.CreateAdd(b.CreateMul(k, number(static_cast<int64_t>(vectors) * shape.lanes)), number(static_cast<int64_t>(v) * shape.lanes));
      bv.push_back(b.CreateAlignedLoad(vector, b.CreateInBoundsGEP(scalar, panel, at), align));
    }
    llvm::Value* along = shape.k_stride == 1 ? k : b.CreateMul(k, number(shape.k_stride));
    for (size_t i = 0; i < rows; ++i) {
      llvm::Value* at = b.CreateAdd(along, number(static_cast<int64_t>(i) * shape.row_stride));
      llvm::Value* x = b.CreateAlignedLoad(scalar, b.CreateInBoundsGEP(scalar, a, at), align);
      if (shape.lanes > 1) x = b.CreateVectorSplat(static_cast<unsigned>(shape.lanes), x);
      for (size_t v = 0; v < vectors; ++v) {
        llvm::Value*& t = tile[i * vectors + v];
        t = floating ? b.CreateIntrinsic(llvm::Intrinsic::fma, {vector}, {x, bv[v], t}) : b.CreateAdd(b.CreateMul(x, bv[v]), t);
      }
    }
    return tile;
  };

  // Four k at a time, then one by one.
  b.SetInsertPoint(start);
  auto first = phis(2);
  for (size_t k = 0; k < first.size(); ++k) {
    first[k]->addIncoming(llvm::Constant::getNullValue(vector), entry);
    first[k]->addIncoming(old[k], load);
  }
  llvm::Value* quads = b.CreateAnd(count, number(~int64_t{3}));
  b.CreateCondBr(b.CreateICmpEQ(quads, number(0)), rest, quad);

  b.SetInsertPoint(quad);
  auto* k4 = b.CreatePHI(i64, 2);
  auto in4 = phis(2);
  Tile tile(in4.begin(), in4.end());
  for (int64_t u = 0; u < 4; ++u) tile = step(tile, u == 0 ? k4 : b.CreateAdd(k4, number(u)));
  llvm::Value* next4 = b.CreateAdd(k4, number(4));
  b.CreateCondBr(b.CreateICmpULT(next4, quads), quad, rest);
  k4->addIncoming(number(0), start);
  k4->addIncoming(next4, quad);
  for (size_t k = 0; k < in4.size(); ++k) {
    in4[k]->addIncoming(first[k], start);
    in4[k]->addIncoming(tile[k], quad);
  }

  b.SetInsertPoint(rest);
  auto middle = phis(2);
  for (size_t k = 0; k < middle.size(); ++k) {
    middle[k]->addIncoming(first[k], start);
    middle[k]->addIncoming(tile[k], quad);
  }
  b.CreateCondBr(b.CreateICmpEQ(quads, count), store, one);

  b.SetInsertPoint(one);
  auto* k1 = b.CreatePHI(i64, 2);
  auto in1 = phis(2);
  Tile last = step(Tile(in1.begin(), in1.end()), k1);
  llvm::Value* next1 = b.CreateAdd(k1, number(1));
  b.CreateCondBr(b.CreateICmpULT(next1, count), one, store);
  k1->addIncoming(quads, rest);
  k1->addIncoming(next1, one);
  for (size_t k = 0; k < in1.size(); ++k) {
    in1[k]->addIncoming(middle[k], rest);
    in1[k]->addIncoming(last[k], one);
  }

  b.SetInsertPoint(store);
  auto out = phis(2);
  for (size_t k = 0; k < out.size(); ++k) {
    out[k]->addIncoming(middle[k], rest);
    out[k]->addIncoming(last[k], one);
  }
  for (size_t i = 0; i < rows; ++i) {
    for (size_t v = 0; v < vectors; ++v) b.CreateAlignedStore(out[i * vectors + v], c_address(i, v), align);
  }
  b.CreateRetVoid();
  return f;
}

}  // namespace hlojit
