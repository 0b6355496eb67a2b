// The meaning of every op on whole arrays, a function each; evaluator.cc dispatches to them.
//
// All take the instruction (attributes, result shape) and its operand values, and return the value:
// an array, or a tuple literal for ops with several results. Shapes have passed the verifier.
#pragma once

#include <span>
#include <string_view>

#include "compiler/eval/scalar_function.h"
#include "compiler/ir/module.h"

namespace hlojit::eval {

using Operands = std::span<const Literal* const>;

/// Text of an attribute that has no field of its own; empty if absent.
std::string_view other_attribute(const Instruction& op, std::string_view name);

// elementwise_array.cc
Literal elementwise(const Instruction& op, Operands in);
Literal bitcast_convert(const Instruction& op, Operands in);
Literal map(const Instruction& op, Operands in, const RunComputation& run);

// moves.cc
Literal iota(const Instruction& op);
Literal broadcast(const Instruction& op, Operands in);
Literal reshape(const Instruction& op, Operands in);
Literal bitcast(const Instruction& op, Operands in);
Literal transpose(const Instruction& op, Operands in);
Literal slice(const Instruction& op, Operands in);
Literal reverse(const Instruction& op, Operands in);
Literal concatenate(const Instruction& op, Operands in);
Literal pad(const Instruction& op, Operands in);
Literal dynamic_slice(const Instruction& op, Operands in);
Literal dynamic_update_slice(const Instruction& op, Operands in);
Literal ragged_all_to_all_alone(const Instruction& op, Operands in);

// gather.cc
Literal gather(const Instruction& op, Operands in);
Literal scatter(const Instruction& op, Operands in, bool oob_window, const RunComputation& run);

// reduce.cc, window.cc, scan.cc
Literal reduce(const Instruction& op, Operands in, const RunComputation& run);
Literal reduce_window(const Instruction& op, Operands in, const RunComputation& run);
Literal select_and_scatter(const Instruction& op, Operands in, const RunComputation& run);
Literal scan(const Instruction& op, Operands in, const RunComputation& run);

// contract.cc
Literal dot(const Instruction& op, Operands in);
Literal convolution(const Instruction& op, Operands in);
Literal ragged_dot(const Instruction& op, Operands in);
Literal scaled_dot(const Instruction& op, Operands in);

// order.cc
Literal sort(const Instruction& op, Operands in, const RunComputation& run);
Literal top_k(const Instruction& op, Operands in);

// random.cc
Literal rng_bit_generator(const Instruction& op, Operands in);

// linalg.cc, fft.cc, norm.cc
Literal cholesky(const Instruction& op, Operands in);
Literal triangular_solve(const Instruction& op, Operands in);
Literal fft(const Instruction& op, Operands in);
Literal batch_norm_training(const Instruction& op, Operands in);
Literal batch_norm_inference(const Instruction& op, Operands in);
Literal batch_norm_grad(const Instruction& op, Operands in);

}  // namespace hlojit::eval
