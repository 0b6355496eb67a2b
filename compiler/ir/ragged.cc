// See ragged.h.
#include "compiler/ir/ragged.h"

#include "compiler/ir/text_attributes.h"
#include "layout/lists.h"

namespace hlojit {

int64_t ragged_dim(const Attributes& a) { return numbers_in(text_attribute(a, "lhs_ragged_dims")).at(0); }

Ints dims_before_ragged(const Attributes& a) {
  const DotDims& dims = a.dot;
  const int64_t ragged = ragged_dim(a);
  auto is_free = [&](int64_t d) { return !contains(dims.lhs_batch, d) && !contains(dims.lhs_contracting, d); };
  Ints before;
  auto take = [&](const Ints& list) { before.insert(before.end(), list.begin(), std::ranges::find(list, ragged)); };
  take(dims.lhs_batch);
  if (contains(dims.lhs_contracting, ragged)) take(dims.lhs_contracting);
  for (int64_t d = 0; is_free(ragged) && d < ragged; ++d) {
    if (is_free(d)) before.push_back(d);
  }
  return before;
}

}  // namespace hlojit
