// What lies in front of a reduction whose order is free: it goes over arrays as they are in memory, not over what they
// were made to look like.
//
//   r = f32[6000] reshape(x)                     x: f32[3,2000]
//   s = f32[] reduce(r, zero), dimensions={0}    ->  reduce(x, zero), dimensions={0,1}
//
//   v = f32[9000] concatenate(y, z)
//   e = f32[9000] exponential(v)                 of a stretch in y: exponential(y)
#pragma once

#include <optional>
#include <vector>

#include "compiler/ir/instruction_set.h"
#include "compiler/ir/module.h"

namespace hlojit {

struct Reshaped {
  const Instruction* array;  ///< that was reshaped
  Ints dims;                 ///< of it, which are reduced
  bool shared;               ///< others read the reshape, too
};

/// What the reduction's operand is a reshape of, elementwise at most, if whole dims of it are reduced and the others
/// stay as they are; nullopt if it is none, or one by dims of size 1 alone. `shared`: the reshape of an array that was
/// moved may have other readers.
std::optional<Reshaped> before_reshape(const Instruction& reduce, bool shared);

/// The reduction's operand in the sizes, and with the layout, of the array that it is a reshape of.
Instruction* in_sizes_of(Computation& c, Instruction* operand, const Instruction& array);

/// Of the rows that dim d of the value has one behind the other, as a reshape put them and elementwise ops and slices
/// from the first on left them; 1 if it has none.
int64_t row_length(const Instruction& value, int64_t d);

/// A value, one reduction's operand, by stretches of one of its dims: of what is put side by side there.
class Concatenated {
 public:
  /// `shared`: others read what the value is made of, too.
  Concatenated(Instruction* value, int64_t dim, bool shared) : value_(value), dim_(dim) { follow(value, 0, shared); }

  /// Where another array begins: ascending, without 0 and the dim's size.
  std::vector<int64_t> borders() const;
  /// Elements [start, limit) of the dim.
  Instruction* stretch(Computation& c, int64_t start, int64_t limit) const { return of(c, value_, start, limit); }

 private:
  void follow(Instruction* value, int64_t at, bool shared);
  Instruction* of(Computation& c, Instruction* value, int64_t start, int64_t limit) const;

  Instruction* value_;
  int64_t dim_;
  int looks_ = 64;  ///< at so many values
  std::vector<int64_t> borders_;
  InstructionSet followed_;
};

}  // namespace hlojit
