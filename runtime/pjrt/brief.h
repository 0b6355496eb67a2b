// Which programs run on the thread that asks: those that are over in about the time that handing them to another thread
// and waiting for it takes, some 50 us, and those that call Python. A function that is called may start threads that
// start programs and wait for them, which stood in the queue behind the one that waits; and who reads what it has left
// behind does so right after the call, as with XLA:CPU.
#pragma once

#include "compiler/ir/module.h"

namespace hlojit::pjrt {

/// As far as one can tell: no loops, nothing called but our own linear algebra, little data.
bool is_brief(const Module& module);

/// A callback's custom call says so: frontend_attributes={hlojit.calls_python="true"}.
bool calls_python(const Module& module);

}  // namespace hlojit::pjrt
