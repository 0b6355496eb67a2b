// Sorts of integers in vectors, for each set of instructions that this machine has.
#include "runtime/kernels/integer_sort.h"

#include <algorithm>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include "codegen/target.h"
#include "runtime/parallel.h"

namespace hlojit {
namespace {

template <class Key>
Key key(uint64_t bits) {
  return static_cast<Key>(bits);
}
template <>
Wide key(uint64_t bits) {
  return {bits * 0x9e3779b97f4a7c15, bits >> 60};
}

template <class Key>
void check(void (*sort)(Key*, size_t)) {
  auto bits = [](const Key& a, const Key& b) { return !(a < b) && !(b < a); };
  std::mt19937_64 random(1);
  for (size_t n : {0, 1, 7, 33, 100, 1000, 4097, 100003}) {
    for (uint64_t most : {0ull, 3ull, ~0ull}) {
      std::vector<Key> keys;
      for (size_t k = 0; k < n; ++k) keys.push_back(key<Key>(random() & most));
      std::vector<Key> wanted = keys;
      std::sort(wanted.begin(), wanted.end());
      sort(keys.data(), n);
      CHECK(std::ranges::equal(keys, wanted, bits));
    }
  }
}

void check_all(const VectorSorts& sorts) {
  check(sorts.of_16);
  check(sorts.of_32);
  check(sorts.of_64);
  check(sorts.of_128);
}

// In parts that are merged: also where one of two is all less than the other, or all is equal.
template <class Key>
void check_merged(int threads) {
  const auto pool = ThreadPool::get(threads);
  std::mt19937_64 random(2);
  for (size_t n : {65537, 100003, 300007}) {
    for (int kind = 0; kind < 5; ++kind) {
      std::vector<Key> keys, scratch(n);
      for (size_t k = 0; k < n; ++k) {
        const uint64_t kinds[] = {random(), random() & 3, k, n - k, k < n / 2 ? k + n : k};
        keys.push_back(key<Key>(kinds[kind]));
      }
      std::vector<Key> wanted = keys;
      std::sort(wanted.begin(), wanted.end());
      const Key* sorted = sort_integers(*pool, keys.data(), scratch.data(), n);
      CHECK(std::equal(wanted.begin(), wanted.end(), sorted,
                       [](const Key& x, const Key& y) { return !(x < y) && !(y < x); }));
    }
  }
}

}  // namespace

TEST_CASE("parts that threads have sorted are merged") {
  for (int threads : {2, 3, 7}) {
    check_merged<uint16_t>(threads);
    check_merged<uint32_t>(threads);
    check_merged<uint64_t>(threads);
    check_merged<Wide>(threads);
  }
}

TEST_CASE("keys of all widths are sorted by each set of instructions") {
  check_all(kVectorSortsAvx2);
  if (codegen::Target::get("native").isa() == codegen::Isa::kAvx512) check_all(kVectorSortsAvx512);
  check_all(vector_sorts());
}

}  // namespace hlojit
