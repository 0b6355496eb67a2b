// The probe must move the bytes that it claims and must finish whatever it is asked; how fast it is
// is the machine's matter.
#include "bench/roof/roof.h"

#include <doctest/doctest.h>

#include <cstring>
#include <vector>

#include "bench/roof/kernels.h"

namespace hlojit::roof {
namespace {

constexpr size_t kBytes = 4 * kBlockBytes;
constexpr size_t kFloats = kBytes / sizeof(float);

struct alignas(64) Stream {
  float values[kFloats + 16];  // what follows must stay as it is
};

void check_stream(StreamKernel kernel, int reads, int writes) {
  std::vector<Stream> from(kMaxReads), to(kMaxWrites);
  std::vector<const char*> read_from;
  std::vector<char*> write_to;
  for (int k = 0; k < reads; ++k) {
    for (size_t i = 0; i < kFloats; ++i) from[k].values[i] = static_cast<float>((i % 97) << (2 * k));
    read_from.push_back(reinterpret_cast<const char*>(from[k].values));
  }
  for (int k = 0; k < writes; ++k) {
    for (float& value : to[k].values) value = -1;
    write_to.push_back(reinterpret_cast<char*>(to[k].values));
  }
  kernel(read_from.data(), write_to.data(), kBytes);
  for (int k = 0; k < writes; ++k) {
    for (size_t i = 0; i < kFloats && reads > 0; ++i) {
      float sum = 0;
      for (int r = 0; r < reads; ++r) sum += from[r].values[i];
      REQUIRE(to[k].values[i] == sum);
    }
    for (size_t i = 0; i < kFloats; ++i) REQUIRE(to[k].values[i] != -1);
    for (size_t i = kFloats; i < kFloats + 16; ++i) REQUIRE(to[k].values[i] == -1);
  }
}

TEST_CASE("every mix reads all its streams and writes all of them, with both kinds of stores") {
  for (int reads = 0; reads <= kMaxReads; ++reads) {
    for (int writes = reads == 0 ? 1 : 0; writes <= kMaxWrites; ++writes) {
      CAPTURE(reads);
      CAPTURE(writes);
      check_stream(kernels().normal[reads][writes], reads, writes);
      if (writes > 0) check_stream(kernels().streaming[reads][writes], reads, writes);
    }
  }
}

TEST_CASE("sizes and thread counts that divide nothing") {
  for (const int64_t bytes : {int64_t{1}, int64_t{12345}, int64_t{3} << 20}) {
    for (const int threads : {1, 2, 7}) {
      const Bandwidth rate = measure_bandwidth(2, 1, bytes, threads, 1e-3);
      CHECK(rate.normal > 0);
      CHECK(rate.streaming > 0);
    }
  }
}

TEST_CASE("answers are kept, and nothing has no bandwidth") {
  Roof roof(1);
  CHECK(roof.bandwidth(0, 0) == 0);
  CHECK(roof.bandwidth(1 << 16, 1 << 16) == roof.bandwidth(1 << 16, 1 << 16));
  CHECK(roof.flops(DType::kF32) == roof.flops(DType::kF32));
}

TEST_CASE("the slower of traffic and arithmetic is the roof") {
  Roof roof(1);
  const double moving = roof.seconds(1 << 20, 1 << 20, 0, DType::kF32);
  CHECK(moving > 0);
  CHECK(roof.seconds(1 << 20, 1 << 20, 1, DType::kF32) == moving);
  CHECK(roof.seconds(1 << 20, 1 << 20, 1e12, DType::kF32) == 1e12 / roof.flops(DType::kF32));
}

TEST_CASE("f64 arithmetic is slower than f32") { CHECK(measure_flops(DType::kF64, 1) < measure_flops(DType::kF32, 1)); }

}  // namespace
}  // namespace hlojit::roof
