// See vector_count.h.
#include "codegen/kernels/vector_count.h"

#include <algorithm>

#include "codegen/nest/pass.h"
#include "codegen/nest/reducer.h"
#include "compiler/plan/stages.h"
#include "layout/lists.h"

namespace hlojit::codegen {
namespace {

constexpr int kWideColumns = 8;

}  // namespace

bool VectorCount::keeps_values() const {
  return std::ranges::any_of(plan_.stages, [](const Stage& s) { return !s.keeps.empty(); });
}

// Many where a reduction is pulled or runs along outer lanes, as each is an accumulator; as many as the plan has
// scratch for where values are kept.
int VectorCount::side_by_side(int operations, int places, int64_t step, bool pulls) const {
  int best = vectors_in_flight(operations, places, target_);
  const int fewest = meets_in_sets(operations, step) ? kWideColumns : 2;
  if (keeps_values()) return static_cast<int>(column_vectors(plan_, target_, std::max(best, fewest)));
  if (plan_.kind == KernelKind::kColumns && plan_.stages.size() > 2) return std::max(std::min(best, 4), fewest);
  if (!pulls && plan_.kind != KernelKind::kColumns) return best;
  constexpr int kLittle = 8;
  // What is only added up comes from memory, anything else is a register first: with as many sums as there are
  // registers each step moved most of them on. (AVX2 on a Zen 3, 16 vectors and 8: a vector times 1500x1500 floats 233
  // us, 198, squares of the columns of 128x512 less a number each 5.5, 3.8; sums of 1021x1019 73, 79.)
  const bool adds = plan_.kind == KernelKind::kColumns && operations <= 1;
  const int strip = adds ? kStrip : beside_operands(kStrip);
  const int many = long_columns() && operations <= kLittle && plan_.hero->shape.is_array() ? strip : 2 * best;
  const int each = carried();
  // Sums that are several values each all find a register. (Maxima of the columns of 100x1000, a Zen 4: 4.3 us, 5.1
  // if not.)
  return each == 1 ? many : std::min(many, std::max(fewest, target_.vector_registers / (each + 1)));
}

// Columns whose elements are pages apart find room in few sets of the caches: each stage reads them anew, and of each
// line more at once. (8 vectors instead of 4: softmax of the columns of 1024x1024 0.75 of the time, means and
// variances of 64x4096 0.55; where elements are not as far apart 1.0 to 1.2.) What is quickly done gains half a page
// apart too, and from strips larger than the second cache; log-softmax of 2048x2048 by such took 1.2 times as long.
bool VectorCount::meets_in_sets(int operations, int64_t step) const {
  const bool little = operations <= 16;
  const int64_t strip = kWideColumns * target_.vector_bytes * product(plan_.inner_sizes());
  const bool pages = step > 0 && step % (little ? kPage / 2 : kPage) == 0;
  return plan_.kind == KernelKind::kColumns && pages && (little || strip <= target_.l2_bytes / 2);
}

int VectorCount::carried() const {
  int most = 1;
  for (const auto& i : plan_.roots[0]->parent()->instructions()) {
    if (is_reduction(*i)) most = std::max(most, Reducer::of(*i, number_, Held::kResults).values());
  }
  return most;
}

bool VectorCount::long_columns() const {
  constexpr int kLong = 64;
  return sums_columns() && product(reduction_sizes(*plan_.hero)) >= kLong;
}

}  // namespace hlojit::codegen
