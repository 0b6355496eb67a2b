// Joins instructions into kernels where the cost model says that it pays.
//
//   e = exp(x)  s = reduce(e, zero)  b = broadcast(s)  y = divide(e, b)
//     ->  y = fusion(x), kind=kInput, calls=fused, backend_config={"hlojit":{"kernel":"rows"}}
//
// A producer joins its consumer if some kernel kind admits the two together (plan_kernel) and one
// kernel costs less than both. If it has several consumers, the cheaper of two ways is taken: every
// consumer computes it again (cheap values only), or it joins one consumer and is handed out as a
// further result. Last, kernels that read the same large value are joined.
// With options.explain every decision is told with both costs. Test: tests/hlo/opt/fuse.hlo.
#pragma once

#include "compiler/pipeline.h"

namespace hlojit {

bool fuse(Module& module, const PipelineOptions& options);

}  // namespace hlojit
