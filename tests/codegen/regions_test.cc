// Which of a kernel's functions are handed out together, and in which order their chunks are.
#include "codegen/regions.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace hlojit::codegen {
namespace {

KernelCall piece(int64_t chunks, int64_t begin, int64_t end, bool in_order = true) {
  return {"",
          {.chunks = chunks, .scratch_bytes = begin, .cost_ns = 100, .in_order = in_order, .begin = begin, .end = end}};
}

std::string order_of(const Region& region) {
  std::string order;
  for (const RegionPart& p : parts_of(region)) {
    order += static_cast<char>('a' + p.call);
    order += std::to_string(p.chunk) + " ";
  }
  return order;
}

TEST_CASE("pieces are one region, other functions each their own") {
  const std::vector<KernelCall> calls{piece(2, 0, 50), piece(3, 50, 100, false), {"rest", {.cost_ns = 7}}, {"more"}};
  const auto regions = regions_of(calls);
  REQUIRE(regions.size() == 3);
  CHECK(regions[0].calls.size() == 2);
  const KernelWork& all = regions[0].work;
  CHECK(all.chunks == 5);
  CHECK(all.cost_ns == 200);
  CHECK(all.scratch_bytes == 50);
  CHECK_FALSE(all.in_order);
  CHECK(all.begin == 0);
  CHECK(all.end == 100);
  CHECK(regions[1].calls[0].symbol == "rest");
  CHECK(regions[1].work.cost_ns == 7);
  CHECK(regions[2].calls[0].symbol == "more");
  CHECK(regions_of({}).empty());
}

TEST_CASE("chunks stand in the order in which they write") {
  // Planes behind each other, told in another order.
  const std::vector<KernelCall> planes{piece(2, 200, 400), piece(1, 0, 200), piece(2, 400, 600)};
  CHECK(order_of(regions_of(planes)[0]) == "b0 a0 a1 c0 c1 ");
  // A row in front, columns on both sides of what lies inside, a row behind.
  const std::vector<KernelCall> border{piece(1, 0, 10), piece(2, 10, 81), piece(2, 11, 89), piece(2, 19, 90),
                                       piece(1, 90, 100)};
  CHECK(order_of(regions_of(border)[0]) == "a0 b0 c0 d0 b1 c1 d1 e0 ");
}

}  // namespace
}  // namespace hlojit::codegen
