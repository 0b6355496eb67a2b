// See vector_sorts.h. Which set of sorts this machine takes.
#include "runtime/kernels/vector_sorts.h"

#include <cstring>

#include <hwy/contrib/sort/vqsort.h>

#include "runtime/kernels/instruction_set.h"

// Highway's headers ask its library for this alone: where from to draw the elements among which pivots are looked for.
// The same each time will do, for the order of equal keys is nobody's concern.
void hwy::Sorter::Fill24Bytes(const void*, size_t, void* bytes) { std::memset(bytes, 0x5a, 24); }

namespace hlojit {
namespace {

// Keys are parted by vpcompress to memory with AVX-512, which is microcode on Zen 4. A million keys of 32 bits: 37 ms,
// by AVX2's permutations 5.1. (Of 64 bits 8.5 and 12.)
VectorSorts fastest() {
  VectorSorts sorts = for_this_machine(kVectorSortsAvx2, kVectorSortsAvx512);
  if (codegen::Target::get("native").cpu() == "znver4") sorts.of_32 = kVectorSortsAvx2.of_32;
  return sorts;
}

}  // namespace

const VectorSorts& vector_sorts() {
  static const VectorSorts sorts = fastest();
  return sorts;
}

}  // namespace hlojit
