// The meaning of every op on whole arrays, a function each, listed at the end of its file.
//
// All take the instruction (attributes, result shape) and its operand values, and return the value:
// an array, or a tuple literal for ops with several results. Shapes have passed the verifier.
#pragma once

#include <span>
#include <string_view>

#include "compiler/eval/scalar_function.h"
#include "compiler/ir/module.h"
#include "compiler/ir/text_attributes.h"

namespace hlojit::eval {

using Operands = std::span<const Literal* const>;

/// One op to be evaluated.
struct Call {
  const Instruction& op;
  Operands in;
  const RunComputation& run;  ///< for the computation it calls
  bool scatter_oob_window;    ///< scatter: XLA's whole-window rule
};
using Meaning = Literal (*)(const Call&);

struct Row {
  Opcode opcode;
  Meaning meaning;
};

/// The meaning of an op that is in one of the lists; null if it is in none.
Meaning meaning_of(Opcode opcode);

/// Ops that is_element_op holds for.
Literal elementwise(const Instruction& op, Operands in);

/// The ops whose meaning a file holds.
std::span<const Row> elementwise_array_ops();
std::span<const Row> moves_ops();
std::span<const Row> gather_ops();
std::span<const Row> reduce_ops();
std::span<const Row> window_ops();
std::span<const Row> scan_ops();
std::span<const Row> contract_ops();
std::span<const Row> order_ops();
std::span<const Row> random_ops();
std::span<const Row> linalg_ops();
std::span<const Row> fft_ops();
std::span<const Row> norm_ops();

}  // namespace hlojit::eval
