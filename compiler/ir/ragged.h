// What ragged-dot's attributes say of its left side.
#pragma once

#include "compiler/ir/attributes.h"

namespace hlojit {

/// The dim whose entries belong to consecutive groups.
int64_t ragged_dim(const Attributes& ragged_dot);
/// The dims of the left side for whose entries groups may have sizes of their own, in the order in which these are
/// given: batch dims, then those of the ragged dim's kind, each up to that dim.
Ints dims_before_ragged(const Attributes& ragged_dot);

}  // namespace hlojit
