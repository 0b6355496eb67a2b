// Computes before a loop what each of its rounds would compute anew: copies into another layout, products and the
// matrices that are cut or put together for them, sums, functions, what is scattered or gathered by elements, and what
// the library makes (factors, sorted rows) of values that no round changes. They become elements of the loop's state,
// which the body hands on. (An LSTM's weights, four matrices side by side, 64 steps of 64 features, an Emerald Rapids:
// 374 us -> 219.)
//
//   body: x, w = state;  y = dot(x, w.panels = copy(w));  root (y, w)
//     ->  w.panels = copy(w), before the loop;  body: x, w, w.panels = state;  y = dot(x, w.panels);  root (y, w,
//     w.panels)
//
// What is cheap stays: it would be read from memory instead. Test: tests/hlo/opt/hoist.hlo.
#pragma once

#include "compiler/pipeline.h"

namespace hlojit {

bool hoist(Module& module, const PipelineOptions& options);

}  // namespace hlojit
