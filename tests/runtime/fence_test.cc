// Arrays between pages that cannot be touched: nothing is read that they do not have, though it would not be used.
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include <doctest/doctest.h>

#include "hlojit/hlojit.h"

namespace hlojit {
namespace {

// One page of memory, and one each before and behind it.
class Fence {
 public:
  Fence() : size_(static_cast<size_t>(sysconf(_SC_PAGESIZE))) {
    all_ = static_cast<char*>(mmap(nullptr, 3 * size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    REQUIRE(all_ != MAP_FAILED);
    REQUIRE(mprotect(all_ + size_, size_, PROT_READ | PROT_WRITE) == 0);
  }
  Fence(const Fence&) = delete;
  Fence& operator=(const Fence&) = delete;
  ~Fence() { munmap(all_, 3 * size_); }

  // Of ones, from the page's first byte on, or up to its last.
  Buffer ones(const Shape& shape, bool at_end) {
    const auto n = static_cast<size_t>(shape.element_count());
    const std::vector<float> values(n, 1.0f);
    char* at = all_ + size_ + (at_end ? size_ - n * sizeof(float) : 0);
    std::memcpy(at, values.data(), n * sizeof(float));
    return Buffer::borrow(at, shape);
  }

 private:
  size_t size_;
  char* all_;
};

}  // namespace

TEST_CASE("what windows have in common is read where it is there") {
  // Rows of x, each of which all elements of a window share: some are in front of the array or behind it.
  const ModulePtr module = parse(R"(HloModule m
ENTRY e {
  x = f32[8] parameter(0)
  rows = f32[1,8,8,8] broadcast(x), dimensions={1}
  taps = f32[1,2,1,1] broadcast(f32[] constant(1)), dimensions={}
  ROOT r = f32[6,5,8,1] convolution(rows, taps), window={size=2x1 stride=1x2 pad=0_1x2_-1 rhs_dilate=3x1 rhs_reversal=1x0},
    dim_labels=f01b_i01o->01bf
}
)");
  for (const char* isa : {"avx2", "native"}) {
    Options options;
    options.isa = isa;
    const Executable e = compile(module, options);
    for (bool at_end : {false, true}) {
      Fence fence;
      const std::vector<Buffer> got = e.run({fence.ones(e.parameter_shapes()[0], at_end)});
      CHECK(got[0].data<float>()[0] == 0);  // of columns in front of the first
    }
  }
}

}  // namespace hlojit
