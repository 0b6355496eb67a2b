#include "tests/layout/many_layouts.h"

namespace hlojit {

std::vector<Shape> many_layouts() {
  std::vector<Shape> out;
  for (const char* text : {
           // untiled, any order
           "f32[]",
           "f32[7]",
           "f32[3,5]{1,0}",
           "f32[3,5]{0,1}",
           "f32[2,3,4]{1,2,0}",
           "f32[2,3,4]{0,1,2}",
           "f32[2,3,4]{2,0,1}",
           "f32[1,3,1]{0,2,1}",
           // one tile, full and partial
           "f32[16]{0:T(8)}",
           "f32[13]{0:T(4)}",
           "f32[16,12]{1,0:T(8,4)}",
           "f32[10,13]{1,0:T(8,4)}",
           "f32[10,13]{0,1:T(8,4)}",
           "f32[3,5]{1,0:T(2,2)}",
           "f32[24,10]{1,0:T(12,5)}",
           "f32[1,9]{1,0:T(8,4)}",
           // fewer and more dims than the array
           "f32[5,3,4]{2,1,0:T(2,2)}",
           "f32[5,3,4]{0,2,1:T(4)}",
           "f32[3,5]{1,0:T(1,1,2)}",
           "f32[3,5]{1,0:T(2,2,2)}",
           "f32[]{:T(4)}",
           "f32[5]{0:T(2,4)}",
           // repeated tiles, with and without padding of their own
           "bf16[4,8]{1,0:T(2,4)(2,1)}",
           "bf16[10,13]{1,0:T(8,4)(2,1)}",
           "s8[9,6]{1,0:T(8,4)(4,1)}",
           "bf16[10,13]{0,1:T(8,4)(2,1)}",
           "f32[4,8]{1,0:T(2,4)(2,2,1)}",
           "f32[4,8]{1,0:T(2,4)(2,2,4)}",
           "f32[4,8]{1,0:T(2,4)(2,1,4)}",
           "f32[5,9]{1,0:T(2,4)(2,2,4)}",
           "f32[9,6]{1,0:T(8,4)(3,1)}",
           "f32[16,6]{1,0:T(8,4)(3,3)}",
           "f32[20]{0:T(8)(3)}",
           "f32[33]{0:T(16)(8)(2)}",
           "pred[9,5]{1,0:T(8,4)(8,1)E(1)}",
           "f32[3,6,10]{2,1,0:T(4,8)(2,1)}",
           "f32[6,3,10]{2,0,1:T(4,8)(2,1)}",
           // combined dims
           "f32[2,3,4,3,5]{4,3,2,1,0:T(*,*,2,*,3)}",
           "f32[11,10]{1,0:T(*,3)}",
           "f32[4,6]{1,0:T(*,4)}",
           "f32[3,4,5]{2,1,0:T(*,*,7)}",
           "f32[3,4,5]{0,1,2:T(*,4,2)}",
           "f32[4,6]{1,0:T(*,8)(2)}",
           "f32[6,10]{1,0:T(2,5)(*,4)}",
           // tail padding, sub-byte elements, no elements at all
           "f32[3,5]{1,0:T(2,2)L(32)}",
           "f32[3,5]{1,0:L(8)}",
           "s4[3,3]{1,0:E(4)}",
           "u2[9]{0:T(4)E(2)}",
           "f32[0,5]{1,0:T(2,2)}",
       }) {
    out.push_back(Shape::parse(text));
  }
  return out;
}

void for_each_index(std::span<const int64_t> dims, const std::function<void(std::span<const int64_t>)>& f) {
  for (int64_t n : dims) {
    if (n == 0) return;
  }
  std::vector<int64_t> index(dims.size(), 0);
  for (;;) {
    f(index);
    size_t d = dims.size();
    while (d-- > 0 && ++index[d] == dims[d]) index[d] = 0;
    if (d == static_cast<size_t>(-1)) return;
  }
}

}  // namespace hlojit
