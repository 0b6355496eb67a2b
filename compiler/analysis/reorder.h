// May a reduction's elements be combined in another order than their own? Sums may by decree, maxima by
// algebra. Argmax and its kin are computations of comparisons and selections on several values, and may
// or may not: (a, b) -> b selects, too. What such a computation does depends on how its arguments
// compare and on nothing else, so that trying three values a type, NaN, and all triples of them is a proof.
//
// JAX's argmax is commutative but for several NaNs, of which it keeps the first; its indices are those of
// the elements, so they say which is first, wherever the two come from. That is tried out the same way.
#pragma once

#include "compiler/ir/module.h"

namespace hlojit {

struct Reorder {
  bool allowed = false;
  /// Where the order of two partial results matters, that goes first whose value number `position` is
  /// less; -1 if it never does.
  int position = -1;
  /// The value that numbers the elements: of those that are met in their order, each may be taken to have a greater one
  /// than what was met before. -1 if there is none.
  int numbers = -1;
};

/// Values may be combined from their last to their first, and in groups: by one op that combines, or by arithmetic on
/// floats that proves to be commutative and, but for rounding, associative on a few numbers, as log(exp(a) + exp(b))
/// does. It is no proof where arithmetic jumps or has numbers of its own: (a, b) -> b != 7 is 1 for all others.
bool regroups(const Computation& c);

/// Of arithmetic on floats that may be regrouped: a few numbers stay what they are when combined with this one.
bool is_neutral(const Literal& number, const Computation& regrouped);

/// Of a reduce whose computation is made of comparisons and selections; any other is not allowed.
Reorder selection_order(const Instruction& reduce);

}  // namespace hlojit
