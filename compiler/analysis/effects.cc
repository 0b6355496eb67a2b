// See effects.h.
#include "compiler/analysis/effects.h"

#include <algorithm>

namespace hlojit {

Effects::Effects(const Module& module) {
  for (const auto& c : module.computations()) {  // callees first
    if (std::ranges::any_of(c->instructions(), [&](const auto& i) { return has(*i); })) computations_.insert(c.get());
  }
}

bool Effects::has(const Instruction& i) const {
  if (i.info().op_class != OpClass::kControl) return has_side_effect(i);
  return std::ranges::any_of(i.called, [&](const Computation* c) { return in(*c); });
}

}  // namespace hlojit
