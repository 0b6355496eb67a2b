// See prefix.h.
#include "compiler/analysis/prefix.h"

#include "compiler/analysis/reorder.h"

namespace hlojit {

std::optional<PrefixWindow> prefix_window(const Instruction& op) {
  if (!op.is(Opcode::kReduceWindow) || !op.shape.is_array()) return std::nullopt;
  const Ints &dims = op.operand(0)->shape.dims, &results = op.shape.dims;
  std::optional<PrefixWindow> found;
  for (size_t d = 0; d < op.attrs.window.size(); ++d) {
    const WindowDim& w = op.attrs.window[d];
    if (w.stride != 1 || w.lhs_dilate != 1 || w.rhs_dilate != 1) return std::nullopt;
    if (w.size == 1 && w.pad_low == 0 && w.pad_high == 0) continue;
    bool forwards = w.pad_low == w.size - 1 && w.pad_high == 0, back = w.pad_high == w.size - 1 && w.pad_low == 0;
    if (found || w.size < dims[d] || results[d] != dims[d] || !(forwards || back)) return std::nullopt;
    found = PrefixWindow{static_cast<int64_t>(d), back};
  }
  if (found && found->backwards && !regroups(*op.to_apply())) return std::nullopt;
  return found;
}

}  // namespace hlojit
