// What a kernel's code depends on, as a name: fusions with one key are one native function.
//
// Nothing of the program around a fusion may show in its code, so nothing of it is in the key: no names,
// no metadata, no place in a buffer, no value of a constant that the kernel reads from memory.
#pragma once

#include <string>
#include <string_view>

#include "codegen/options.h"
#include "compiler/ir/module.h"

namespace hlojit::codegen {

/// The part of options and target that code depends on: ISA features and cache sizes, not the CPU's name,
/// which only tunes.
std::string option_text(const EmitOptions& options);

/// `around` as emit_kernel takes it, `options` from option_text. Some microseconds a fused op.
std::string kernel_key(const Instruction& fusion, const Surroundings& around, std::string_view options);

}  // namespace hlojit::codegen
