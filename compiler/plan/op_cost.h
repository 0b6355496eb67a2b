// What one op takes: time for a vector of its results, and instructions of the code that one place of it is made into.
#pragma once

#include "compiler/ir/module.h"

namespace hlojit {

/// What an op takes of its kind; whole numbers divided by 2^k are shifted. (20,000 of s32, a Zen 4: added to 1.7 us,
/// divided by 8 1.6, by 7 2.1, by as many others 6.7. By 7 as cheap as a shift, where rows lie was computed in every
/// kernel that looks them up, 1.4 us and 1.8.)
OpPrice price_of(const Instruction& instruction);

/// What an op of a price takes.
struct OpCost {
  double cycles;        ///< for a vector of results
  double instructions;  ///< of real numbers' code, at one place
  int operations;       ///< of a loop body, which are as many additions or moves
};
const OpCost& op_cost(OpPrice price);

/// What the instruction itself takes: op_cost of its price, of a power as much as of four functions. (A Zen 4, vectors
/// of f32: an exponential is 27 instructions and 10 cycles, a logarithm 37 and 16, a tangent 62 and 36, a power 149
/// and 70.)
OpCost cost_of(const Instruction& instruction);

/// Cycles for a vector of results of one instruction, its operands being there. Of a reduction: as it is
/// pulled, all terms of each result anew.
double cycles_per_vector(const Instruction& instruction);

/// Instructions for lanes that are read one by one.
inline constexpr double kOneByOne = 10;
/// Instructions of the code of one place of it.
double code_size(const Instruction& instruction);
/// Instructions that round what is computed to a type, or make of its bits what is computed with: of floats that no
/// instruction knows, many. (Twelve levels of products of f4e2m1fn and paddings became 66,000 in one loop body.)
double conversion_code(DType type);

}  // namespace hlojit
