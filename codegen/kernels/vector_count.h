// How many vectors a turn of a kernel's outer loop computes side by side, of a plan without products.
#pragma once

#include <algorithm>
#include <cstdint>

#include "codegen/number/value.h"
#include "compiler/plan/kernel.h"
#include "compiler/plan/target_info.h"

namespace hlojit::codegen {

class VectorCount {
 public:
  /// Keeps references to the plan and the target.
  VectorCount(const KernelPlan& plan, const TargetInfo& target, const NumberOptions& number)
      : plan_(plan), target_(target), number_(number) {}

  /// Of a strip of columns whose sums come from far memory: wide strips come faster, even if not all sums find a
  /// register. (A vector times a matrix of 2,048 rows and columns took 280 us by strips of 8 vectors, 199 by 16; sums
  /// of its columns 296 and 187, with AVX2 391 and 254. By 32 odd strides take 1.2 times as long.)
  static constexpr int kStrip = 16;

  /// `operations`, `places`: what an element takes, and the buffers it is read from and written to; `step`: most bytes
  /// from one element to the next along the inner dims; `pulls`: a reduction is pulled.
  int side_by_side(int operations, int places, int64_t step, bool pulls) const;
  /// Of sums that are values of their own, as a block's are: what is added to them needs registers, too. (13
  /// conjunctions on AVX2's 16 took 1.3 times as long as five passes.)
  int beside_operands(int vectors) const { return std::min(vectors, target_.vector_registers / 2); }

  bool keeps_values() const;
  bool sums_columns() const { return plan_.kind == KernelKind::kColumns || plan_.kind == KernelKind::kContraction; }

 private:
  bool meets_in_sets(int operations, int64_t step) const;
  bool long_columns() const;
  /// Values that an accumulator is, of the most of any reduction.
  int carried() const;

  const KernelPlan& plan_;
  const TargetInfo& target_;
  NumberOptions number_;
};

}  // namespace hlojit::codegen
