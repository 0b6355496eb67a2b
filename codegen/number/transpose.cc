// See transpose.h.
#include "codegen/number/transpose.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include "codegen/number/machine_code.h"

namespace hlojit::codegen {

void copy_square_transposed(llvm::IRBuilderBase& b, llvm::Value* from, int64_t from_stride, llvm::Value* to,
                            int64_t to_stride) {
  llvm::Module& module = *b.GetInsertBlock()->getModule();
  const llvm::StringRef name(kSquareName.data(), kSquareName.size());
  llvm::Function* f = module.getFunction(name);
  if (!f) {
    llvm::Type *pointer = b.getPtrTy(), *number = b.getInt64Ty();
    auto* type = llvm::FunctionType::get(b.getVoidTy(), {pointer, pointer, number, number}, false);
    f = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, name, module);
    f->setDoesNotThrow();
    f->setOnlyAccessesArgMemory();
  }
  auto bytes = [&](int64_t n) { return b.getInt64(static_cast<uint64_t>(n)); };
  b.CreateCall(f, {from, to, bytes(from_stride), bytes(to_stride)});
}

// Groups of four registers hold, for a half of the columns, rows i and i + 4, or i + 8 and i + 12. Interleaved twice
// within 16 bytes, number k of a group has four elements of column k, of column k + 4, and the same of the other row;
// every second of these, of two groups, are a column.
std::string square_code() {
  using enum Register;
  constexpr VectorOp kLoad{0, 1, 0, 0x10}, kStore{0, 1, 0, 0x11};  // vmovups
  constexpr VectorOp kLoadUpper{1, 3, 1, 0x1A};                    // vinsertf64x4
  constexpr VectorOp kZip[] = {{0, 1, 0, 0x14}, {0, 1, 0, 0x15}};  // vunpcklps, vunpckhps
  constexpr VectorOp kEverySecond{1, 3, 0, 0x23};                  // vshuff32x4
  constexpr uint8_t kFirst = 0x88, kSecond = 0xDD;
  constexpr int kVector = 64, kHalf = 32;
  constexpr Register kFrom = kRdi, kTo = kRsi, kFromStride = kRdx, kToStride = kRcx;
  constexpr Register kRows[] = {kFrom, kRax, kR8, kR9};  // four, eight and twelve further down
  MachineCode c(true);
  c.address(kRax, {kFrom, 0, 4, kFromStride});
  c.address(kR8, {kFrom, 0, 8, kFromStride});
  c.address(kR9, {kRax, 0, 8, kFromStride});
  for (int i = 0; i < 4; ++i) {
    for (int n = 0; n < 4; ++n) {
      const int half = n / 2, group = n % 2, vector = 8 * half + 4 * group + i;
      c.vector(kLoad, kHalf, vector, 0, Place{kRows[2 * group], half * kHalf});
      c.shuffle(kLoadUpper, kVector, vector, vector, Place{kRows[2 * group + 1], half * kHalf}, 1);
    }
    for (Register row : kRows) c.add(row, kFromStride);
  }
  for (int from : {0, 16}) {
    for (int n = 0; n < 16; ++n) {
      const int first = from + n / 4 * 4 + n % 4 / 2;
      c.vector(kZip[n % 2], kVector, 16 - from + n, first, first + 2);
    }
  }
  for (int n = 0; n < 16; ++n) {
    const int first = n / 8 * 8 + n % 4;
    c.shuffle(kEverySecond, kVector, 16 + n, first, first + 4, n % 8 < 4 ? kFirst : kSecond);
    c.vector(kStore, kVector, 16 + n, 0, Place{kTo});
    c.add(kTo, kToStride);
  }
  c.end();
  return c.code();
}

}  // namespace hlojit::codegen
