// Places for values that do not all live at once.
#include "compiler/plan/arena.h"

#include <random>
#include <vector>

#include <doctest/doctest.h>

namespace hlojit::test {
namespace {

bool apart(const std::vector<Tenant>& tenants) {
  for (const Tenant& a : tenants) {
    for (const Tenant& b : tenants) {
      const bool meet = a.begin <= b.end && b.begin <= a.end;
      if (&a != &b && meet && a.offset < b.offset + b.size && b.offset < a.offset + a.size) return false;
    }
  }
  return true;
}

TEST_CASE("what comes late and large finds room") {
  // As they come the second lies above the first, and the third above both.
  std::vector<Tenant> tenants = {{64, 0, 1}, {64, 0, 3}, {128, 2, 3}};
  CHECK(place_tenants(tenants) == 192);
  CHECK(apart(tenants));
}

TEST_CASE("nobody's place is another's while both live") {
  std::mt19937 random(1);
  auto below = [&](int n) { return static_cast<int64_t>(random() % static_cast<unsigned>(n)); };
  for (int round = 0; round < 300; ++round) {
    std::vector<Tenant> tenants;
    int64_t now = 0, all = 0;
    for (int64_t n = below(40); n > 0; --n) {
      now += below(3);
      tenants.push_back({64 * (1 + below(9)), now, now + below(8)});
      all += tenants.back().size;
    }
    const int64_t bytes = place_tenants(tenants);
    CHECK(apart(tenants));
    CHECK(bytes <= all);
    for (const Tenant& t : tenants) CHECK(t.offset + t.size <= bytes);
  }
}

}  // namespace
}  // namespace hlojit::test
