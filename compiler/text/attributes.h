// The `name=value` list behind an instruction's operands, by op.
//
// One table says which attributes an op takes, in printing order, and which of them it must have;
// one rule an attribute says how it is read into Attributes and printed back. Attributes that no
// pass reads stay text, but only text of the right form.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/module.h"
#include "compiler/text/lexer.h"

namespace hlojit {

/// What attributes may refer to.
class References {
 public:
  virtual ~References() = default;
  /// A computation's name, or a body in braces.
  virtual Computation* read_computation() = 0;
  /// The name of an instruction that is already defined.
  virtual Instruction* read_instruction_name() = 0;
};

/// Reads `, name=value`... at the cursor into `to`, whose opcode and operands are set.
void read_attributes(Cursor& in, References& names, Instruction& to);

/// Appends `, name=value`... in canonical order; nothing for values that are the default.
void append_attributes(const Instruction& instruction, std::string& out);
/// Only what the op computes by: no names of computations, nothing that every op may carry.
void append_own_attributes(const Instruction& instruction, std::string& out);

/// The attributes that an instruction's op takes, in printing order, by their key in the table: the
/// name, and `:form` behind it where one name has several forms (`algorithm:dot`, `algorithm:rng`).
std::vector<std::string_view> attribute_keys(const Instruction& instruction);

}  // namespace hlojit
