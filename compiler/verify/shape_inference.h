// Shape inference: the shape an op gives its result, from its operands, attributes and called
// computations. It is at the same time the op's rule: whatever does not fit is an error here, so
// that the parser (for omitted shapes), the builder, the passes and the verifier cannot disagree.
#pragma once

#include <span>

#include "compiler/ir/attributes.h"
#include "compiler/ir/module.h"
#include "compiler/ir/ops.h"
#include "layout/shape.h"

namespace hlojit {

/// Shape of the result. Sizes follow from the operands; layouts are those of an operand where the
/// result is that operand's like (elementwise, tuples, control flow), else the default.
///
/// Returns a Shape of type kInvalid where operands and attributes do not determine the result
/// (convert, reshape, iota, broadcast, parameter, constant, custom-call, ...: it must be declared).
/// Throws Error(kInvalid) with rule, message and details, but without a location, when the operands
/// do not fit. Operand shapes must themselves be valid (shape_errors); called computations need
/// their root and parameters set. `declared`, if not null, chooses where operands allow several results (the
/// type in which a dot adds up).
Shape infer_shape(Opcode opcode, std::span<const Shape* const> operands, const Attributes& attrs,
                  std::span<Computation* const> called, const Shape* declared = nullptr);

/// Whether HLO text may leave out the result shape of this op.
bool shape_may_be_omitted(Opcode opcode);

/// The attributes that this op takes besides those that all do (rules.h).
std::string_view own_attributes(Opcode opcode);

/// Bits of an element as bitcast-convert counts them: a pred's are 8.
int bitcast_bits(DType type);

}  // namespace hlojit
