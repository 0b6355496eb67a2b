// Elements of a loop's state that come and go. The state is one tuple in four places: what the loop starts with, what
// its condition and its body take, what the body hands on, and what comes of it.
#pragma once

#include <span>
#include <vector>

#include "compiler/ir/module.h"

namespace hlojit {

/// Body and condition read the state element by element alone, and nothing but the loop reads what the body hands on:
/// elements can be added to it.
bool is_taken_apart(const Instruction& loop);

/// What the loop starts with as element k, which may be an instruction made for it.
Instruction* first_of_state(Instruction& loop, size_t k);

/// Adds elements that start as `first` and that no round changes. Whoever takes all of the result gets what it had.
/// Gives what reads each of them in the body, made in front of `readers`, as many.
std::vector<Instruction*> add_elements(Instruction& loop, std::span<Instruction* const> first,
                                       std::span<Instruction* const> readers);

/// Drops the elements that are not kept, a flag each, of which the body makes nothing but each other, and what it makes
/// of them. Nobody else reads them; the loop starts with a tuple, its body's root is one, and its result is read by
/// elements.
void drop_elements(Instruction& loop, const std::vector<bool>& kept);

}  // namespace hlojit
