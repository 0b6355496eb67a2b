// Decides which values share memory, and writes the decision into the HLO. Afterwards these pairs are
// one buffer, without any later conflict:
//
//   - a while's initial state, the parameter of its condition and body, its body's root, its result;
//   - the target of a dynamic-update-slice fusion and its result;
//   - a branch's root and the result of its conditional, and an operand that all branches update in
//     place or hand on (branch_sharing.h);
//   - each leaf of the entry's root and the caller's result buffer: it has an instruction of its own.
//
// Where two live values would share, a copy fusion is inserted; where a reader of the old value only
// has to run before the writer of the new one, a control predecessor says so.
//
//   body { p = (f32[8], f32[8]) ...  ROOT r = tuple(p.1, p.0) }      a swap
//     ->  t = copy(p.1)   u = copy(p.0)   v = copy(t), after u       ROOT r = tuple(v, u)
//
// Donated parameters (input_output_alias): the result made in place from a donated parameter starts
// with a plain `copy` whose backend_config names both leaves, {"hlojit":{"donated":P,"result":R}}; entry
// code skips it when the caller gave one memory for both. Since the caller may do so for any aliased
// pair, every other reader of the parameter comes before the first writer of the result.
// Test: tests/hlo/opt/alias.hlo.
#pragma once

#include "compiler/pipeline.h"

namespace hlojit {

bool alias(Module& module, const PipelineOptions& options);

}  // namespace hlojit
