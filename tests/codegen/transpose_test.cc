// The function that turns a square of memory, at any distances between rows, and in place.
#include "codegen/number/transpose.h"

#include <array>
#include <cstring>
#include <vector>

#include <doctest/doctest.h>

#include "codegen/jit.h"
#include "codegen/number/machine_code.h"

namespace hlojit::codegen {
namespace {

using Turn = void (*)(const void* from, void* to, int64_t from_stride, int64_t to_stride);

TEST_CASE("a square of memory is transposed") {
  if (Target::get("native").isa() != Isa::kAvx512) return;
  const JitCode code = link_objects({object_of("turn", square_code())});
  const auto turn = reinterpret_cast<Turn>(code.lookup("turn"));
  for (const auto [from_stride, to_stride] : {std::array<size_t, 2>{16, 16}, {16, 61}, {100, 17}}) {
    std::vector<uint32_t> from(16 * from_stride), to(16 * to_stride, 7), expected = to;
    for (size_t k = 0; k < from.size(); ++k) from[k] = static_cast<uint32_t>(k * 2654435761);
    for (size_t i = 0; i < 16; ++i) {
      for (size_t j = 0; j < 16; ++j) expected[j * to_stride + i] = from[i * from_stride + j];
    }
    turn(from.data(), to.data(), static_cast<int64_t>(4 * from_stride), static_cast<int64_t>(4 * to_stride));
    CHECK(to == expected);
    if (from_stride != to_stride) continue;
    turn(from.data(), from.data(), static_cast<int64_t>(4 * from_stride), static_cast<int64_t>(4 * to_stride));
    CHECK(from == expected);
  }
}

}  // namespace
}  // namespace hlojit::codegen
