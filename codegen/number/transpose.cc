// See transpose.h.
#include "codegen/number/transpose.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include "codegen/number/machine_code.h"

namespace hlojit::codegen {

namespace {

constexpr Register kFrom = Register::kRdi, kTo = Register::kRsi, kFromStride = Register::kRdx,
                   kToStride = Register::kRcx, kSquares = Register::kR8, kColumn = Register::kR9;
constexpr VectorOp kLoad{0, 1, 0, 0x10}, kStore{0, 1, 0, 0x11};  // vmovups
constexpr VectorOp kZip[] = {{0, 1, 0, 0x14}, {0, 1, 0, 0x15}};  // vunpcklps, vunpckhps

// Two vectors of every two that are two apart of four, interleaved within 16 bytes: `from` on become those `to` on.
// Twice, and number k of four has the elements k of all.
void zip(MachineCode& c, int count, int bytes, int from, int to) {
  for (int n = 0; n < count; ++n) {
    const int first = from + n / 4 * 4 + n % 4 / 2;
    c.vector(kZip[n % 2], bytes, to + n, first, first + 2);
  }
}

// 16 bytes of a row and, beside them, the same of the row four further down are loaded as one vector: all that is left
// is within 16 bytes.
void turn_square_of_8(MachineCode& c) {
  constexpr VectorOp kLoadUpper{1, 3, 0, 0x18};  // vinsertf128
  constexpr int kVector = 32, kHalf = 16;
  constexpr Register kFurther = Register::kRax;
  c.address(kFurther, {kFrom, 0, 4, kFromStride});
  for (int i = 0; i < 4; ++i) {
    for (int half : {0, 1}) {
      c.vector(kLoad, kHalf, 4 * half + i, 0, Place{kFrom, half * kHalf});
      c.shuffle(kLoadUpper, kVector, 4 * half + i, 4 * half + i, Place{kFurther, half * kHalf}, 1);
    }
    c.add(kFrom, kFromStride);
    c.add(kFurther, kFromStride);
  }
  zip(c, 8, kVector, 0, 8);
  zip(c, 8, kVector, 8, 0);
  for (int n = 0; n < 8; ++n) {
    c.vector(kStore, kVector, n, 0, Place{kColumn});
    c.add(kColumn, kToStride);
  }
  c.address(kFrom, {kFurther});
}

// Groups of four registers hold, for a half of the columns, rows i and i + 4, or i + 8 and i + 12. Interleaved twice
// within 16 bytes, number k of a group has four elements of column k, of column k + 4, and the same of the other row;
// every second of these, of two groups, are a column: 48 shuffles instead of the 64 of whole rows.
void turn_square_of_16(MachineCode& c) {
  constexpr VectorOp kLoadUpper{1, 3, 1, 0x1A};    // vinsertf64x4
  constexpr VectorOp kEverySecond{1, 3, 0, 0x23};  // vshuff32x4
  constexpr uint8_t kFirst = 0x88, kSecond = 0xDD;
  constexpr int kVector = 64, kHalf = 32;
  // Four, eight and twelve further down.
  constexpr Register kRows[] = {kFrom, Register::kRax, Register::kR10, Register::kR11};
  c.address(kRows[1], {kFrom, 0, 4, kFromStride});
  c.address(kRows[2], {kFrom, 0, 8, kFromStride});
  c.address(kRows[3], {kRows[1], 0, 8, kFromStride});
  for (int i = 0; i < 4; ++i) {
    for (int n = 0; n < 4; ++n) {
      const int half = n / 2, group = n % 2, vector = 8 * half + 4 * group + i;
      c.vector(kLoad, kHalf, vector, 0, Place{kRows[2 * group], half * kHalf});
      c.shuffle(kLoadUpper, kVector, vector, vector, Place{kRows[2 * group + 1], half * kHalf}, 1);
    }
    for (Register row : kRows) c.add(row, kFromStride);
  }
  zip(c, 16, kVector, 0, 16);
  zip(c, 16, kVector, 16, 0);
  for (int n = 0; n < 16; ++n) {
    const int first = n / 8 * 8 + n % 4;
    c.shuffle(kEverySecond, kVector, 16 + n, first, first + 4, n % 8 < 4 ? kFirst : kSecond);
    c.vector(kStore, kVector, 16 + n, 0, Place{kColumn});
    c.add(kColumn, kToStride);
  }
  c.address(kFrom, {kRows[3]});
}

}  // namespace

void copy_squares_transposed(llvm::IRBuilderBase& b, Isa isa, int64_t squares, llvm::Value* from, int64_t from_stride,
                             llvm::Value* to, int64_t to_stride) {
  llvm::Module& module = *b.GetInsertBlock()->getModule();
  const llvm::StringRef name(square_name(isa).data(), square_name(isa).size());
  llvm::Function* f = module.getFunction(name);
  if (!f) {
    llvm::Type *pointer = b.getPtrTy(), *number = b.getInt64Ty();
    auto* type = llvm::FunctionType::get(b.getVoidTy(), {pointer, pointer, number, number, number}, false);
    f = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, name, module);
    f->setDoesNotThrow();
    f->setOnlyAccessesArgMemory();
  }
  auto number = [&](int64_t n) { return b.getInt64(static_cast<uint64_t>(n)); };
  b.CreateCall(f, {from, to, number(from_stride), number(to_stride), number(squares)});
}

std::string_view square_name(Isa isa) {
  return isa == Isa::kAvx512 ? "hlojit_squares_of_16_transposed" : "hlojit_squares_of_8_transposed";
}

std::string square_code(Isa isa) {
  const bool avx512 = isa == Isa::kAvx512;
  MachineCode c(avx512);
  const size_t square = c.here();
  c.address(kColumn, {kTo});
  avx512 ? turn_square_of_16(c) : turn_square_of_8(c);
  c.add(kTo, static_cast<int32_t>(4 * square_side(isa)));
  c.subtract(kSquares, 1);
  c.jump_if_more(square);
  c.end();
  return c.code();
}

}  // namespace hlojit::codegen
