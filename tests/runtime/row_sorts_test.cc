// Sorts of many short rows at once.
#include "runtime/kernels/row_sorts.h"

#include <algorithm>
#include <random>
#include <vector>

#include <doctest/doctest.h>

namespace hlojit {
namespace {

// Of few different keys each order occurs that exchanges may have to put right.
template <class Key>
void check(int64_t n, int64_t count, uint64_t most) {
  std::mt19937_64 random(static_cast<uint64_t>(n));
  std::vector<Key> rows;
  for (int64_t k = 0; k < n * count; ++k) rows.push_back(static_cast<Key>(random() & most));
  std::vector<Key> wanted = rows;
  for (auto row = wanted.begin(); row != wanted.end(); row += n) std::sort(row, row + n);
  sort_rows(rows.data(), n, count);
  CHECK(rows == wanted);
}

}  // namespace

TEST_CASE("rows of all lengths are sorted") {
  for (int64_t n = 1; n <= kMostInColumns; ++n) {
    for (int64_t count : {1, 2, 63, 130}) {
      for (uint64_t most : {1ull, ~0ull}) {
        check<uint8_t>(n, count, most);
        check<uint16_t>(n, count, most);
        check<uint32_t>(n, count, most);
        check<uint64_t>(n, count, most);
      }
    }
  }
}

}  // namespace hlojit
