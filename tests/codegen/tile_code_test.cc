// Tiles written as machine code against what LLVM makes of the same shapes: the same bits, and nothing else written.
#include "codegen/kernels/tile_code.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include <doctest/doctest.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include "codegen/jit.h"
#include "codegen/kernels/micro_kernel.h"
#include "codegen/number/machine_code.h"
#include "codegen/number/multiply_add.h"

namespace hlojit::codegen {
namespace {

using Tile = void (*)(const void* a, const void* b, void* c, int64_t c_stride, int64_t k, bool accumulate,
                      const void* bias, int64_t from, int64_t k_stride, int64_t panel_stride, int64_t row_stride);

struct Linked {
  JitCode code;
  Tile f;
};

Linked linked(const std::string& object, const std::string& name) {
  Linked l{link_objects({object}), nullptr};
  l.f = reinterpret_cast<Tile>(l.code.lookup(name));
  return l;
}

Linked by_llvm(const MicroKernelShape& shape, const Target& target) {
  IrModule ir("tile");
  EmitOptions options;
  options.target = &target;
  llvm::Function* f = micro_kernel(*ir.module, shape, options);
  f->setLinkage(llvm::GlobalValue::ExternalLinkage);
  const std::string name = f->getName().str();
  return linked(compile_object(*ir.module, target, Effort::kFull), name);
}

class Draw {
 public:
  explicit Draw(unsigned seed) : random_(seed) {}
  int operator()(int least, int most) { return std::uniform_int_distribution(least, most)(random_); }
  bool coin() { return (*this)(0, 1) == 1; }

  MicroKernelShape shape(const Target& target) {
    Draw& draw = *this;
    const bool avx512 = target.isa() == Isa::kAvx512;
    MicroKernelShape s;
    s.multiply_add = std::vector{MultiplyAdd::kOne, MultiplyAdd::kWords, MultiplyAdd::kBytes,
                                 MultiplyAdd::kBfloats}[static_cast<size_t>(avx512 ? draw(0, 3) : 0)];
    s.type = form_of(s.multiply_add).sums;
    if (s.multiply_add == MultiplyAdd::kOne) s.type = coin() ? DType::kF32 : DType::kF64;
    s.lanes = static_cast<int>((coin() ? target.vector_bytes() : 32) / dtype_bytes(s.type));
    s.vectors = draw(1, 4);
    s.rows = draw(1, (target.vector_registers() - 1) / s.vectors - 1);
    s.moves_back = !avx512 && s.vectors > 1 && coin();
    s.last_lanes = avx512 ? (coin() ? s.lanes : draw(1, s.lanes)) : s.moves_back ? draw(1, s.lanes) : s.lanes;
    s.stored_lanes = coin() || !avx512 ? 0 : draw(1, s.last_halved() ? s.lanes / 2 : s.lanes);
    s.left = {.row_stride = draw(1, 300), .k_stride = draw(1, 40)};
    s.panel_stride = s.vectors * s.lanes + draw(0, 5);
    s.unroll = coin() ? 1 : 4;
    s.accumulates = coin();
    s.takes_off = s.multiply_add == MultiplyAdd::kBytes && coin();
    if (draw(0, 3) == 0) s.looks_ahead = coin() ? Cache::kFirst : Cache::kSecond;
    if (draw(0, 3) == 0) s.looks_down = draw(1, 40);
    if (draw(0, 2) == 0) find_by_pointers(s);
    s.strides_are_arguments = s.left.stretch == 0 && s.unroll == 1 && s.looks_down == 0 && coin();
    return s;
  }

  /// A pointer to each row's next elements, or to all rows' next one.
  void find_by_pointers(MicroKernelShape& s) {
    const bool shared = coin();
    if (shared) s.looks_ahead.reset();
    s.left = {.row_stride = shared ? 0 : (*this)(1, 9), .k_stride = shared ? 1 : (*this)(1, 9)};
    s.left.stretch = s.unroll * (*this)(1, 5);
    if (!shared) s.rows = std::min(s.rows, 13);
    s.left.skips = !shared && coin();
  }

  /// Lanes along the depth, of which the last are not all there. Returns the depth.
  int64_t along_depth(MicroKernelShape& s, const Target& target) {
    s.multiply_add = (*this)(0, 2) == 0 ? MultiplyAdd::kBfloats : MultiplyAdd::kOne;
    s.type = s.multiply_add == MultiplyAdd::kOne && coin() ? DType::kF64 : DType::kF32;
    s.lanes = static_cast<int>(target.vector_bytes() / dtype_bytes(s.type));
    s.along_depth = true;
    s.vectors = (*this)(1, 2);
    s.rows = (*this)(1, 8);
    s.last_lanes = (*this)(1, s.lanes);
    s.stored_lanes = coin() ? 0 : (*this)(1, s.lanes - 1);
    s.accumulates = coin();
    const int64_t depth = s.lanes * (*this)(s.accumulates ? 0 : 1, 4) + s.last_lanes;
    s.left.row_stride = depth + (*this)(0, 9);
    s.panel_stride = depth + (*this)(0, 9);
    if (coin()) s.looks_down = 1;
    return depth;
  }

  /// Ordinary floats of 4 or 8 bytes, pairs of bf16, or any bits.
  std::vector<char> data(size_t bytes, const MicroKernelShape& s) {
    std::vector<char> all(bytes);
    if (s.multiply_add == MultiplyAdd::kOne && s.type == DType::kF64) {
      for (size_t k = 0; k + 8 <= bytes; k += 8) put(all, k, (*this)(-1000, 1000) / 64.0);
      return all;
    }
    for (size_t k = 0; k + 4 <= bytes; k += 4) {
      if (is_float(s.type) && s.multiply_add == MultiplyAdd::kOne)
        put(all, k, static_cast<float>((*this)(-1000, 1000)) / 7);
      else
        put(all, k, static_cast<uint32_t>(random_()) & (is_float(s.type) ? 0xBFFFBFFF : 0xFFFFFFFF));
    }
    return all;
  }

 private:
  template <class T>
  static void put(std::vector<char>& all, size_t at, T value) {
    std::memcpy(all.data() + at, &value, sizeof(value));
  }
  std::mt19937 random_;
};

/// What a table of pointers to elements here and there would hold, where the shape wants one.
std::vector<const char*> pointers(Draw& draw, const MicroKernelShape& s, int64_t k, const std::vector<char>& a) {
  std::vector<const char*> table;
  const int64_t count = s.left.stretch > 0 ? s.rows * s.left.row_stride + (k + 1) * s.left.k_stride : 0;
  const auto size = static_cast<int>(dtype_bytes(s.type));
  for (int64_t n = 0; n < count; ++n) table.push_back(a.data() + size * draw(0, 50));
  return table;
}

void check_same(Draw& draw, const Target& target) {
  const MicroKernelShape s = draw.shape(target);
  const std::string name = micro_kernel_name(s);
  CAPTURE(name);
  const auto code = tile_code(s, target);
  REQUIRE(code);
  const Linked ours = linked(object_of("tile", *code), "tile"), theirs = by_llvm(s, target);
  const int64_t size = dtype_bytes(s.type), k = std::max<int64_t>(s.unroll, s.left.stretch) * draw(1, 9),
                c_stride = s.vectors * s.lanes + draw(0, 9),
                steps = s.left.skips ? draw(1, (1 << k / s.left.stretch) - 1) : k;
  auto bytes = [&](int64_t elements) { return static_cast<size_t>(elements * size); };
  const int64_t beyond = 200, from = s.left.stretch > 0 ? draw(0, 20) : 0;
  const auto a = draw.data(bytes(s.rows * s.left.row_stride + k * s.left.k_stride + beyond), s);
  const auto b = draw.data(bytes(k * s.panel_stride + beyond), s);
  const auto bias = draw.data(bytes(s.vectors * s.lanes), s);
  const auto before = draw.data(bytes(s.rows * c_stride + beyond), s);
  const auto table = pointers(draw, s, k, a);
  const void* left = table.empty() ? static_cast<const void*>(a.data()) : table.data();
  for (bool accumulate : {false, true}) {
    if (accumulate && !s.accumulates) continue;
    auto c = before, expected = before;
    auto call = [&](const Linked& tile, void* sums) {
      tile.f(left, b.data(), sums, c_stride, steps, accumulate, s.takes_off ? bias.data() : nullptr, from,
             s.left.k_stride, s.panel_stride, s.left.row_stride);
    };
    call(ours, c.data());
    call(theirs, expected.data());
    CHECK(c == expected);
  }
}

TEST_CASE("tiles as machine code give the bits of LLVM's") {
  Draw draw(7);
  for (int n = 0; n < 200; ++n) check_same(draw, Target::get("avx2"));
  const Target& target = Target::get("native");
  if (target.isa() != Isa::kAvx512 || !target.has("avx512bf16") || !target.has("avx512vnni")) return;
  for (int n = 0; n < 300; ++n) check_same(draw, target);
}

void check_along_depth(Draw& draw, const Target& target) {
  MicroKernelShape s;
  const int64_t k = draw.along_depth(s, target), size = dtype_bytes(s.type);
  const std::string name = micro_kernel_name(s);
  CAPTURE(name);
  const auto code = tile_code(s, target);
  REQUIRE(code);
  const Linked ours = linked(object_of("tile", *code), "tile"), theirs = by_llvm(s, target);
  const int64_t columns = s.vectors * s.lanes, c_stride = columns + draw(0, 9);
  auto bytes = [&](int64_t elements) { return static_cast<size_t>(elements * size); };
  const auto a = draw.data(bytes(s.rows * s.left.row_stride), s), b = draw.data(bytes(columns * s.panel_stride), s);
  const auto before = draw.data(bytes(s.rows * c_stride), s);
  for (bool accumulate : {false, true}) {
    if (accumulate && !s.accumulates) continue;
    auto c = before, expected = before;
    ours.f(a.data(), b.data(), c.data(), c_stride, k, accumulate, nullptr, 0, 0, 0, 0);
    theirs.f(a.data(), b.data(), expected.data(), c_stride, k, accumulate, nullptr, 0, 0, 0, 0);
    CHECK(c == expected);
  }
}

TEST_CASE("tiles along the depth do too") {
  Draw draw(8);
  const Target& target = Target::get("native");
  if (target.isa() != Isa::kAvx512 || !target.has("avx512bf16")) return;
  for (int n = 0; n < 200; ++n) check_along_depth(draw, target);
}

TEST_CASE("what no such code is for") {
  const MicroKernelShape plain{.lanes = 16, .last_lanes = 16, .left = {.row_stride = 16}};
  CHECK(!tile_code(plain, Target::get("avx2")));
  const Target& target = Target::get("native");
  if (target.isa() != Isa::kAvx512) return;
  CHECK(tile_code(plain, target));
  for (auto change :
       {+[](MicroKernelShape& s) { s.along_depth = true, s.lanes = 8; }, +[](MicroKernelShape& s) { s.lanes = 32; },
        +[](MicroKernelShape& s) { s.rows = 31; }, +[](MicroKernelShape& s) { s.type = DType::kS32; },
        +[](MicroKernelShape& s) { s.left.row_stride = int64_t{1} << 40; },
        +[](MicroKernelShape& s) { s.rows = 14, s.left.row_stride = 1, s.left.stretch = 3; },
        +[](MicroKernelShape& s) { s.left.stretch = 3, s.left.ends_within = true; }}) {
    MicroKernelShape s = plain;
    change(s);
    CHECK(!tile_code(s, target));
  }
}

}  // namespace
}  // namespace hlojit::codegen
