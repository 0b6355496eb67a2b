// See attributes.h.
#include "compiler/ir/attributes.h"

namespace hlojit {

bool same_but_for_source(const Attributes& x, const Attributes& y) {
  if (x.metadata == y.metadata && x.origin == y.origin && x.statistics == y.statistics) return x == y;
  Attributes a = x, b = y;
  for (Attributes* each : {&a, &b}) each->metadata = each->origin = each->statistics = {};
  return a == b;
}

}  // namespace hlojit
