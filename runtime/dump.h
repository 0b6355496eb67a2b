// What a program becomes on its way to code, written where people can read it (Options::dump_dir): NN_PASS.hlo after
// each pass that changed something, then module.ll, module.s and buffers.txt.
#pragma once

#include <functional>
#include <string>

#include "runtime/lower.h"

namespace hlojit {

/// Makes the folder; what is returned writes the program after each pass. Throws Error(kFailed) where it cannot.
std::function<void(const std::string& pass, const std::string& hlo)> dump_passes(const std::string& folder);
/// The code that is to be made of it, and its memory. Nothing if no folder is asked for.
void dump_code(const Lowered& planned, const Options& options, const codegen::Target& target);

}  // namespace hlojit
