// Attributes of an instruction's proto as HLO text.
//
// The op table of compiler/text says which attributes an op takes and reads each from text, with all
// checks. So the importer writes what the proto says in that notation and lets the same rules read it:
// a module means the same whichever way it came in.
#pragma once

#include <string>

#include "compiler/ir/module.h"
#include "compiler/proto/wire.h"

namespace hlojit::proto {

/// `, name=value`... for `instruction`, whose opcode, operands and shape are set. The proto's called
/// computation 3 is written as `k3`, its control predecessor 3 as `p3`.
std::string attribute_text(const Message& proto, const Instruction& instruction);

/// True if every attribute key of the op table is known here (for tests).
bool knows_attribute(std::string_view key);

}  // namespace hlojit::proto
