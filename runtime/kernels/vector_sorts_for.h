// The sorts of vector_sorts.h for the instructions that the including file is compiled for; included once by each.
#pragma once

#include <hwy/contrib/sort/traits-inl.h>
#include <hwy/contrib/sort/traits128-inl.h>
#include <hwy/contrib/sort/vqsort-inl.h>

#include "runtime/kernels/vector_sorts.h"

namespace hlojit {
namespace {  // its own in each file: code for other instructions must not take its place

namespace hn = hwy::HWY_NAMESPACE;

// `Traits` compare keys of `lanes` elements of type T each. Scratch is on the stack, as vectors have a fixed size.
template <class Traits, class T>
void sort_lanes(T* elements, size_t count) {
  hn::Sort(hn::SortTag<T>(), hn::detail::SharedTraits<Traits>(), elements, count, static_cast<T*>(nullptr));
}

template <class T>
void sort_keys(T* keys, size_t n) {
  sort_lanes<hn::detail::TraitsLane<hn::detail::OrderAscending<T>>>(keys, n);
}

void sort_pairs(Wide* keys, size_t n) {
  static_assert(sizeof(Wide) == 2 * sizeof(uint64_t));
  sort_lanes<hn::detail::Traits128<hn::detail::OrderAscending128>>(reinterpret_cast<uint64_t*>(keys), 2 * n);
}

constexpr VectorSorts kVectorSorts = {&sort_keys<uint16_t>, &sort_keys<uint32_t>, &sort_keys<uint64_t>, &sort_pairs};

}  // namespace
}  // namespace hlojit
