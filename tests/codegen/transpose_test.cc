// The functions that turn squares of memory, at any distances between rows, and one in place.
#include "codegen/number/transpose.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include <doctest/doctest.h>

#include "codegen/jit.h"
#include "codegen/number/machine_code.h"

namespace hlojit::codegen {
namespace {

using Turn = void (*)(const void* from, void* to, int64_t from_stride, int64_t to_stride, int64_t squares);

void check_squares(Isa isa) {
  const auto side = static_cast<size_t>(square_side(isa));
  const JitCode code = link_objects({object_of("turn", square_code(isa))});
  const auto turn = reinterpret_cast<Turn>(code.lookup("turn"));
  for (const auto [from_stride, to_stride, squares] :
       {std::array<size_t, 3>{side, side, 1}, {16, 61, 1}, {100, 17, 1}, {16, 61, 3}, {19, 32, 2}}) {
    const size_t rows = squares * side;
    std::vector<uint32_t> from(rows * from_stride), to(side * to_stride + rows, 7), expected = to;
    for (size_t k = 0; k < from.size(); ++k) from[k] = static_cast<uint32_t>(k * 2654435761);
    for (size_t i = 0; i < rows; ++i) {
      for (size_t j = 0; j < side; ++j) expected[j * to_stride + i] = from[i * from_stride + j];
    }
    auto call = [&](const uint32_t* source, uint32_t* target) {
      turn(source, target, static_cast<int64_t>(4 * from_stride), static_cast<int64_t>(4 * to_stride),
           static_cast<int64_t>(squares));
    };
    call(from.data(), to.data());
    CHECK(to == expected);
    if (from_stride != to_stride) continue;
    call(from.data(), from.data());
    CHECK(std::equal(from.begin(), from.end(), expected.begin()));
  }
}

TEST_CASE("squares of memory are transposed") {
  check_squares(Isa::kAvx2);
  if (Target::get("native").isa() == Isa::kAvx512) check_squares(Isa::kAvx512);
}

}  // namespace
}  // namespace hlojit::codegen
