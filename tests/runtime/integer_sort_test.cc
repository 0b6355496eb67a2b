// Sorts of integers whatever this machine would choose: what is kept for another one is run here, too.
#include "runtime/kernels/integer_sort.h"

#include <algorithm>
#include <random>
#include <vector>

#include <doctest/doctest.h>

namespace hlojit {

TEST_CASE("words sorted by AVX2's instructions are sorted") {
  std::mt19937 random(1);
  for (size_t n : {0, 1, 7, 33, 100, 1000, 4097, 100003}) {
    for (uint32_t most : {0u, 3u, ~0u}) {
      std::vector<uint32_t> keys(n);
      for (uint32_t& k : keys) k = static_cast<uint32_t>(random()) & most;
      std::vector<uint32_t> wanted = keys;
      std::ranges::sort(wanted);
      sort_words_avx2(keys.data(), n);
      CHECK(keys == wanted);
    }
  }
}

}  // namespace hlojit
