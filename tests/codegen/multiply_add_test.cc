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
#include "codegen/kernels/matrix_tile.h"

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

// ---- tiles -----------------------------------------------------------------------------------------------

struct CompiledTile {
  JitCode code;
  void (*f)(const void* a, const void* b, void* c, int64_t groups, bool accumulate);
};

CompiledTile compiled_tile(const MicroKernelShape& shape, const Target& target, bool twin) {
  IrModule ir("tile");
  llvm::IRBuilder<> b(*ir.context);
  llvm::Type *pointer = b.getPtrTy(), *i64 = b.getInt64Ty(), *i1 = b.getInt1Ty();
  auto* type = llvm::FunctionType::get(b.getVoidTy(), {pointer, pointer, pointer, i64, i64, i1, pointer, i64}, false);
  auto* tile = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage, "tile", *ir.module);
  emit_matrix_tile(tile, shape, target, twin);
  auto* outer = llvm::FunctionType::get(b.getVoidTy(), {pointer, pointer, pointer, i64, i1}, false);
  auto* f = llvm::Function::Create(outer, llvm::GlobalValue::ExternalLinkage, "f", *ir.module);
  b.SetInsertPoint(llvm::BasicBlock::Create(*ir.context, "", f));
  if (!twin) begin_tiles(b, *ir.module, shape, target);
  llvm::Value* stride = b.getInt64(static_cast<uint64_t>(shape.vectors) * static_cast<uint64_t>(shape.lanes));
  b.CreateCall(tile, {f->getArg(0), f->getArg(1), f->getArg(2), stride, f->getArg(3), f->getArg(4),
                      llvm::ConstantPointerNull::get(b.getPtrTy()), b.getInt64(0)});
  if (!twin) end_tiles(b, shape.multiply_add, target);
  b.CreateRetVoid();
  optimize(*ir.module, target);
  CompiledTile c;
  c.code = link_objects({compile_object(*ir.module, target, Effort::kFull)}, {});
  c.f = reinterpret_cast<decltype(c.f)>(c.code.lookup("f"));
  return c;
}

/// A sum as a step's instruction makes it of the groups of a row and of a column.
uint32_t step_one_by_one(MultiplyAdd kind, const Words& x, const Words& y, uint32_t sum) {
  auto term = [](uint32_t v, int t) { return flushed(std::bit_cast<float>(t == 0 ? v << 16 : v & 0xffff0000)); };
  if (kind == MultiplyAdd::kBfloatTiles) {
    float sums[2] = {0, 0};
    for (size_t k = 0; k < x.size(); ++k) {
      for (int t : {0, 1}) sums[t] = flushed(std::fma(term(x[k], t), term(y[k], t), sums[t]));
    }
    return std::bit_cast<uint32_t>(flushed(flushed(std::bit_cast<float>(sum)) + flushed(sums[0] + sums[1])));
  }
  for (size_t k = 0; k < x.size(); ++k) {
    for (int t = 0; t < 4; ++t) {
      auto byte = [&](uint32_t v) { return static_cast<int32_t>(static_cast<int8_t>(v >> (8 * t))); };
      sum += static_cast<uint32_t>(byte(x[k]) * byte(y[k]));
    }
  }
  return sum;
}

void check_tile(MultiplyAdd kind, int rows, int vectors, const Target& target, bool twin) {
  constexpr size_t kGroups = 32, kStride = 35;
  const size_t columns = static_cast<size_t>(vectors) * kLanes;
  const MicroKernelShape shape{.type = form_of(kind).sums,
                               .rows = rows,
                               .vectors = vectors,
                               .lanes = kLanes,
                               .last_lanes = kLanes,
                               .left = {.row_stride = kStride},
                               .panel_stride = static_cast<int64_t>(columns),
                               .multiply_add = kind,
                               .accumulates = true};
  CompiledTile c = compiled_tile(shape, target, twin);
  std::mt19937 random(11);
  const bool floats = kind == MultiplyAdd::kBfloatTiles;
  for (int round = 0; round < 24; ++round) {
    auto draw = [&](size_t n, uint32_t exponents) {
      Words words(n);
      for (uint32_t& w : words) {
        w = static_cast<uint32_t>(random());
        // Products around the smallest normal number, then ordinary ones, then any bits.
        if (floats && round % 3 < 2) w = (w & 0x81ff81ff) | exponents;
      }
      return words;
    };
    const uint32_t small = round % 3 == 0 ? 0x1f801f80 : 0x3e003e00;
    const Words a = draw(static_cast<size_t>(rows) * kStride, small), b = draw(kGroups * columns, small);
    Words sums = draw(static_cast<size_t>(rows) * columns, round % 3 == 0 ? 0 : small), result = sums;
    const bool accumulate = round % 2 == 0;
    c.f(a.data(), b.data(), result.data(), kGroups, accumulate);
    for (size_t i = 0; i < static_cast<size_t>(rows); ++i) {
      for (size_t j = 0; j < columns; ++j) {
        uint32_t expected = accumulate ? sums[i * columns + j] : 0;
        for (size_t k = 0; k < kGroups; k += kTileSide) {
          Words x, y;
          for (size_t g = k; g < k + kTileSide; ++g) {
            x.push_back(a[i * kStride + g]);
            y.push_back(b[g * columns + j]);
          }
          expected = step_one_by_one(kind, x, y, expected);
        }
        const uint32_t got = result[i * columns + j];
        if (floats && is_nan(expected) && is_nan(got)) continue;
        INFO(form_of(kind).name, twin ? " twin" : " instruction", " at ", i, ",", j, " in round ", round);
        REQUIRE(got == expected);
      }
    }
  }
}

TEST_CASE("tiles: instruction and twin") {
  const Target& target = Target::get("native");
  for (MultiplyAdd kind : {MultiplyAdd::kByteTiles, MultiplyAdd::kBfloatTiles}) {
    for (auto [rows, vectors] : {std::pair{32, 2}, {17, 2}, {16, 3}, {5, 1}, {45, 1}}) {
      check_tile(kind, rows, vectors, target, true);
      if (has_instruction(kind, target)) check_tile(kind, rows, vectors, target, false);
    }
    if (!has_instruction(kind, target)) MESSAGE("this machine has no instruction for " << form_of(kind).name);
  }
}

TEST_CASE("several products a lane: instruction and twin") {
  const Target& target = Target::get("native");
  for (const MultiplyAddForm& form : multiply_add_forms()) {
    if (form.kind == MultiplyAdd::kOne || form.tiles()) continue;
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
