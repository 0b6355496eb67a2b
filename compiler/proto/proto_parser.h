// Binary HLO to IR: the protos that XLA and JAX serialise.
//
// Accepts HloModuleProto, and HloProto and HloSnapshot around one. What is kept is what HLO text
// would say of the module: devices' assignments, profiles and stack frames are not.
#pragma once

#include <memory>
#include <string_view>

#include "compiler/ir/module.h"

namespace hlojit {

/// True if the bytes cannot be text but may be a proto: how a reader of either tells them apart.
bool is_hlo_proto(std::string_view bytes);

/// Builds the module; no verification beyond what parse_module does. Throws Error(kInvalid), with the
/// instruction's name where one is at fault; never crashes, whatever the bytes.
std::unique_ptr<Module> parse_module_proto(std::string_view bytes);

}  // namespace hlojit
