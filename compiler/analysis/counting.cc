// See counting.h.
#include "compiler/analysis/counting.h"

#include <algorithm>
#include <iterator>

namespace hlojit {
namespace {

// Where a dim of a reshape is in what it reads, if both have the same dims but for some of size 1; -1 if not.
int64_t dim_before(const Instruction& reshape, int64_t dim) {
  auto others = [](const Ints& dims) {
    Ints wide;
    std::ranges::copy_if(dims, std::back_inserter(wide), [](int64_t n) { return n != 1; });
    return wide;
  };
  const Ints &to = reshape.shape.dims, &from = reshape.operand(0)->shape.dims;
  if (to[static_cast<size_t>(dim)] == 1 || others(to) != others(from)) return -1;
  auto number = std::ranges::count_if(to.begin(), to.begin() + dim, [](int64_t n) { return n != 1; });
  for (int64_t d = 0;; ++d) {
    if (from[static_cast<size_t>(d)] != 1 && number-- == 0) return d;
  }
}

}  // namespace

bool counts_along(const Instruction& value, int64_t dim) {
  const Instruction* i = &value;
  while (i->is(Opcode::kBroadcast) || i->is(Opcode::kReshape)) {
    if (i->is(Opcode::kReshape)) {
      dim = dim_before(*i, dim);
      if (dim < 0) return false;
      i = i->operand(0);
      continue;
    }
    auto at = std::ranges::find(i->attrs.dimensions, dim);
    if (at == i->attrs.dimensions.end()) return false;
    dim = at - i->attrs.dimensions.begin();
    i = i->operand(0);
  }
  return i->is(Opcode::kIota) && i->attrs.dimensions[0] == dim && is_integral(i->shape.type) &&
         dtype_bits(i->shape.type) >= 32;
}

}  // namespace hlojit
