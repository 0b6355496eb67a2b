// Loops whose number of rounds is known, and rounds written out.
//
// The number is kept where XLA keeps it: backend_config={"known_trip_count":{"n":"20"}} of the while.
#pragma once

#include <cstdint>
#include <optional>

#include "compiler/ir/module.h"
#include "layout/index_expr.h"

namespace hlojit {

/// How often the body runs, if that is plain from the text: a counter from a constant, by a constant step, to a
/// constant bound.
std::optional<int64_t> counted_rounds(const Instruction& loop);

/// A whole number that is `first` in the first round of a loop and `step` more in each that follows.
struct Progress {
  int64_t first, step;
};
/// Of a value of the loop's body that counts its rounds: an element of the state, or what is made of such and of
/// constants by sums, differences and products. nullopt if that is not plain from the text, or for large numbers.
std::optional<Progress> progress_of(const Instruction& value, const Instruction& loop);

/// The least and the greatest of these numbers, of a loop whose rounds are counted; nullopt as above, or if there is no
/// round.
std::optional<Range> range_in_rounds(const Instruction& value, const Instruction& loop);

/// Whether the parts that `rounds` rounds replace of element k of the state are all of it, and no round reads it but to
/// replace parts of it.
bool is_overwritten(const Instruction& loop, int64_t k, int64_t rounds);

/// The number that the loop's backend_config states.
std::optional<int64_t> known_rounds(const Instruction& loop);
void set_known_rounds(Instruction& loop, int64_t rounds);

/// The state after one round of `body` that starts with `state` (a tuple, or what gives one): clones of the body's
/// instructions, appended to `c`, which may be the body itself.
Instruction* paste_round(Computation& c, const Computation& body, Instruction* state);

}  // namespace hlojit
