// Several products a lane at once: the machine's instruction and its portable twin give the bits that arithmetic one
// term after the other gives. Where the machine has no such instruction its twin is held to that alone.
#include "codegen/number/multiply_add.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <random>
#include <vector>

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include "codegen/jit.h"

namespace hlojit::codegen {
namespace {

constexpr int kLanes = 16;
using Words = std::vector<uint32_t>;

struct Compiled {
  JitCode code;
  void (*f)(const void* x, const void* y, const void* sums, void* result);
};

// On vectors of kLanes lanes in memory.
Compiled compiled(MultiplyAdd kind, const Target& target, bool twin) {
  IrModule ir("multiply_add");
  llvm::IRBuilder<> b(*ir.context);
  llvm::Type* pointer = b.getPtrTy();
  auto* type = llvm::FunctionType::get(b.getVoidTy(), {pointer, pointer, pointer, pointer}, false);
  auto* f = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, "f", *ir.module);
  b.SetInsertPoint(llvm::BasicBlock::Create(*ir.context, "", f));
  auto* words = llvm::FixedVectorType::get(b.getInt32Ty(), kLanes);
  bool is_float = form_of(kind).sums == DType::kF32;
  auto* sums = is_float ? llvm::FixedVectorType::get(b.getFloatTy(), kLanes) : words;
  auto load = [&](llvm::Type* t, unsigned k) { return b.CreateAlignedLoad(t, f->getArg(k), llvm::Align(4)); };
  llvm::Value* result = multiply_add(b, kind, load(words, 0), load(words, 1), load(sums, 2), target, twin);
  b.CreateAlignedStore(result, f->getArg(3), llvm::Align(4));
  b.CreateRetVoid();
  optimize(*ir.module, target);
  Compiled c;
  c.code = link_objects({compile_object(*ir.module, target, Effort::kFull)}, {});
  c.f = reinterpret_cast<decltype(c.f)>(c.code.lookup("f"));
  return c;
}

float flushed(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x; }

uint32_t one_by_one(MultiplyAdd kind, uint32_t x, uint32_t y, uint32_t sum) {
  auto byte = [](uint32_t v, int t) { return static_cast<uint8_t>(v >> (8 * t)); };
  auto half = [](uint32_t v, int t) { return static_cast<uint16_t>(v >> (16 * t)); };
  auto bfloat = [&](uint32_t v, int t) { return flushed(std::bit_cast<float>(uint32_t{half(v, t)} << 16)); };
  if (kind == MultiplyAdd::kBfloats) {
    float s = std::bit_cast<float>(sum);
    for (int t : {1, 0}) s = flushed(std::fma(bfloat(x, t), bfloat(y, t), flushed(s)));
    return std::bit_cast<uint32_t>(s);
  }
  for (int t = 0; t < form_of(kind).terms; ++t) {
    int32_t a = 0, b = 0;
    if (kind == MultiplyAdd::kWords) a = static_cast<int16_t>(half(x, t)), b = static_cast<int16_t>(half(y, t));
    if (kind == MultiplyAdd::kBytes) a = byte(x, t), b = static_cast<int8_t>(byte(y, t));
    sum += static_cast<uint32_t>(a * b);
  }
  return sum;
}

bool is_nan(uint32_t bits) { return std::isnan(std::bit_cast<float>(bits)); }

void check(MultiplyAdd kind, const Target& target, bool twin) {
  Compiled c = compiled(kind, target, twin);
  std::mt19937 random(7);
  bool is_float = form_of(kind).sums == DType::kF32;
  // Any bits; then the ends of the integers' ranges, or bfloats near the smallest normal number and near each other.
  const uint32_t ends[] = {0x80808080, 0x7f7f7f7f, 0xffffffff, 0x80008000, 0x7fff7fff, 0, 0x00800080, 0x00ff8001};
  for (int round = 0; round < 2000; ++round) {
    Words x(kLanes), y(kLanes), sums(kLanes), result(kLanes);
    for (int k = 0; k < kLanes; ++k) {
      auto any = [&] { return round % 2 == 0 ? static_cast<uint32_t>(random()) : ends[random() % std::size(ends)]; };
      x[k] = any(), y[k] = any(), sums[k] = any();
      if (is_float && round % 4 < 2) {
        // Exponents whose products lie around the smallest normal number.
        x[k] = (x[k] & 0x807f807f) | (0x20002000 + ((random() % 2) << 30 >> 3));
        y[k] = (y[k] & 0x807f807f) | 0x1f801f80;
        sums[k] = (sums[k] & 0x80ffffff);
      }
    }
    c.f(x.data(), y.data(), sums.data(), result.data());
    for (int k = 0; k < kLanes; ++k) {
      uint32_t expected = one_by_one(kind, x[k], y[k], sums[k]);
      if (is_float && is_nan(expected) && is_nan(result[k])) continue;
      INFO(form_of(kind).name, twin ? " twin of " : " instruction on ", x[k], " ", y[k], " ", sums[k]);
      REQUIRE(result[k] == expected);
    }
  }
}

TEST_CASE("several products a lane: instruction and twin") {
  const Target& target = Target::get("native");
  for (const MultiplyAddForm& form : multiply_add_forms()) {
    if (form.kind == MultiplyAdd::kOne) continue;
    check(form.kind, target, true);
    if (has_instruction(form.kind, target)) {
      check(form.kind, target, false);
    } else {
      MESSAGE("this machine has no instruction for " << form.name);
    }
  }
}

}  // namespace
}  // namespace hlojit::codegen
