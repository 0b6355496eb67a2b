// The same bytes on 1, 2, 3 and 7 threads, for every kind of kernel, in sizes on both sides of where work
// is cut: chunks of 20 us, regions worth waking a worker for, sums cut in parts, slices of a
// contraction. Every program sums or moves values whose order would show.
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "hlojit/hlojit.h"

namespace hlojit {
namespace {

constexpr const char* kTypes[] = {"f32", "bf16", "f64"};

std::string with_sum(std::string_view type, const std::string& entry) {
  return fmt::format(
      "HloModule m\nsum {{ a = {0}[] parameter(0) b = {0}[] parameter(1) ROOT s = {0}[] add(a, b) }}\n"
      "ENTRY e {{\n{1}}}\n",
      type, entry);
}

// Values in [-1, 1) of no pattern, in the bits of the type.
Buffer noise(const Shape& shape, uint64_t seed) {
  Buffer b = Buffer::allocate(shape);
  int64_t n = shape.element_count();
  uint64_t state = seed * 0x9e3779b97f4a7c15;
  for (int64_t i = 0; i < n; ++i) {
    state = state * 6364136223846793005 + 1442695040888963407;
    double value = static_cast<double>(state >> 40) * 0x1p-23 - 1;
    if (shape.type == DType::kF64) {
      static_cast<double*>(b.mutable_raw())[i] = value;
      continue;
    }
    float narrow = static_cast<float>(value);
    if (shape.type == DType::kF32) {
      static_cast<float*>(b.mutable_raw())[i] = narrow;
    } else {
      uint32_t bits;
      std::memcpy(&bits, &narrow, 4);
      static_cast<uint16_t*>(b.mutable_raw())[i] = static_cast<uint16_t>(bits >> 16);
    }
  }
  return b;
}

uint64_t hash(const std::vector<Buffer>& buffers) {
  uint64_t h = 0xcbf29ce484222325;
  for (const Buffer& b : buffers) {
    const size_t n = b.size_bytes();
    for (size_t i = 0; i < n; ++i) h = (h ^ b.data<uint8_t>()[i]) * 0x100000001b3;
  }
  return h;
}

void sweep(const std::string& text) {
  CAPTURE(text);
  const ModulePtr module = parse(text);
  std::vector<Buffer> inputs;
  uint64_t first = 0;
  for (int threads : {1, 2, 3, 7}) {
    Options options;
    options.threads = threads;
    const Executable e = compile(module, options);
    if (inputs.empty()) {
      for (const Shape& s : e.parameter_shapes()) inputs.push_back(noise(s, 1 + inputs.size()));
    }
    // The second call finds the workers awake, so that smaller regions are shared too.
    for (int call = 0; call < 2; ++call) {
      const uint64_t got = hash(e.run(inputs));
      if (threads == 1 && call == 0) first = got;
      CHECK_MESSAGE(got == first, threads << " threads, call " << call);
    }
  }
}

TEST_CASE("nest on any number of threads") {
  for (const char* type : kTypes) {
    for (int64_t n : {1, 15, 14'000, 36'001, 73'000, 146'003, 1'000'003}) {
      sweep(fmt::format(R"(HloModule m
ENTRY e {{
  p = {0}[{1}]{{0}} parameter(0)
  q = {0}[{1}]{{0}} parameter(1)
  x = {0}[{1}]{{0}} multiply(p, q)
  y = {0}[{1}]{{0}} tanh(x)
  ROOT r = {0}[{1}]{{0}} add(y, q)
}}
)",
                        type, n));
    }
    for (int64_t n : {33, 257, 1000}) {
      sweep(fmt::format(R"(HloModule m
ENTRY e {{
  p = {0}[{1},{2}]{{1,0}} parameter(0)
  t = {0}[{2},{1}]{{1,0}} transpose(p), dimensions={{1,0}}
  ROOT r = {0}[{2},{1}]{{1,0}} add(t, t)
}}
)",
                        type, n, n + 5));
    }
  }
}

TEST_CASE("rows on any number of threads") {
  for (const char* type : kTypes) {
    for (auto [rows, length] : {std::pair{1, 1031}, {7, 130}, {40, 1031}, {300, 1031}, {3000, 33}, {17, 9000}}) {
      sweep(with_sum(type, fmt::format(R"(  p = {0}[{1},{2}]{{1,0}} parameter(0)
  x = {0}[{1},{2}]{{1,0}} exponential(p)
  z = {0}[] constant(0)
  s = {0}[{1}]{{0}} reduce(x, z), dimensions={{1}}, to_apply=sum
  b = {0}[{1},{2}]{{1,0}} broadcast(s), dimensions={{0}}
  ROOT r = {0}[{1},{2}]{{1,0}} divide(x, b)
)",
                                       type, rows, length)));
    }
  }
}

TEST_CASE("columns on any number of threads") {
  for (const char* type : kTypes) {
    for (auto [major, kept] : {std::pair{1031, 1}, {130, 7}, {16'385, 8}, {16'385, 9}, {1031, 300}, {33, 9000}}) {
      sweep(with_sum(type, fmt::format(R"(  p = {0}[{1},{2}]{{1,0}} parameter(0)
  x = {0}[{1},{2}]{{1,0}} multiply(p, p)
  z = {0}[] constant(0)
  ROOT r = {0}[{2}]{{0}} reduce(x, z), dimensions={{0}}, to_apply=sum
)",
                                       type, major, kept)));
    }
  }
}

TEST_CASE("sums of everything on any number of threads") {
  for (const char* type : kTypes) {
    for (int64_t n : {1, 1000, (1 << 17) - 1, 1 << 17, (1 << 17) + 5, 1'000'003}) {
      sweep(with_sum(type, fmt::format(R"(  p = {0}[{1}]{{0}} parameter(0)
  z = {0}[] constant(0)
  ROOT r = {0}[] reduce(p, z), dimensions={{0}}, to_apply=sum
)",
                                       type, n)));
    }
  }
}

TEST_CASE("vectors wider than the machine's") {
  // A part of such a vector may be of no element: run of 9 columns, the last of which only padding is.
  const ModulePtr module = parse(R"(HloModule m
ENTRY e {
  w = f32[1,8,2,2] parameter(0)
  x = f32[2,1,3,8] parameter(1)
  ROOT r = f32[1,8,4,9] convolution(x, w), window={size=2x2 pad=1_1x-1_3}, dim_labels=bf01_io01->bf01,
    batch_group_count=2
}
)");
  Options options;
  options.isa = "avx2";
  std::vector<Buffer> inputs;
  std::vector<uint64_t> got;
  for (int bytes : {32, 64}) {
    options.vector_bytes = bytes;
    const Executable e = compile(module, options);
    if (inputs.empty()) {
      for (const Shape& s : e.parameter_shapes()) inputs.push_back(noise(s, 1 + inputs.size()));
    }
    got.push_back(hash(e.run(inputs)));
  }
  CHECK(got[0] == got[1]);
}

TEST_CASE("contractions on any number of threads") {
  struct Sizes {
    int m, k, n;
  };
  for (const char* type : kTypes) {
    for (Sizes s : {Sizes{5, 7, 3},
                    {64, 64, 64},
                    {129, 384, 65},
                    {129, 385, 130},
                    {257, 1000, 100},
                    {1, 700, 900},
                    {900, 700, 1}}) {
      sweep(fmt::format(R"(HloModule m
ENTRY e {{
  a = {0}[{1},{2}]{{1,0}} parameter(0)
  b = {0}[{2},{3}]{{1,0}} parameter(1)
  c = {0}[{3}]{{0}} parameter(2)
  d = {0}[{1},{3}]{{1,0}} dot(a, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  w = {0}[{1},{3}]{{1,0}} broadcast(c), dimensions={{1}}
  ROOT r = {0}[{1},{3}]{{1,0}} add(d, w)
}}
)",
                        type, s.m, s.k, s.n));
    }
  }
}

}  // namespace
}  // namespace hlojit
