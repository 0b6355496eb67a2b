// Highway's sort of 32-bit words for AVX2, from its source: the packaged library takes AVX-512 wherever there is some,
// and stores parts of vectors there by vpcompressd to memory, which is microcode on Zen 4 (see integer_sort.cc).
#include <hwy/contrib/sort/traits-inl.h>
#include <hwy/contrib/sort/vqsort-inl.h>

#include "runtime/kernels/integer_sort.h"

static_assert(HWY_TARGET == HWY_AVX2);

namespace hlojit {

void sort_words_avx2(uint32_t* keys, size_t n) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::SortTag<uint32_t> tag;
  const hn::detail::SharedTraits<hn::detail::TraitsLane<hn::detail::OrderAscending<uint32_t>>> ascending;
  hn::Sort(tag, ascending, keys, n, static_cast<uint32_t*>(nullptr));  // fixed vectors: scratch is on the stack
}

}  // namespace hlojit
