// Programs that are over in about the time that handing them to another thread and waiting for it takes, some 50 us:
// they run on the thread that asks.
//
// What calls Python (a callback's custom call says so: frontend_attributes={hlojit.calls_python="true"}) is handed over
// only if a turn of its loops is work: another thread would wait for the interpreter's lock at every call, and who
// reads what a small program prints expects it after the call, as from XLA:CPU.
#pragma once

#include "compiler/ir/module.h"

namespace hlojit::pjrt {

/// As far as one can tell: no loops but of Python's calls, nothing else called but our own linear algebra, little data.
bool is_brief(const Module& module);

}  // namespace hlojit::pjrt
