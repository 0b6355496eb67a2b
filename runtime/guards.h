// What a caller gives is looked at before anything stands on it.
#pragma once

#include "hlojit/hlojit.h"

namespace hlojit {

/// The program behind a caller's pointer. Throws Error(kInput) for a null one.
const Module& program(const ModulePtr& module);
/// Throws Error(kInput) that names the first option out of its range.
void check_options(const Options& options);

}  // namespace hlojit
