// See nest_facts.h.
#include "codegen/kernels/nest_facts.h"

#include <algorithm>
#include <span>

#include "codegen/nest/lines.h"
#include "compiler/analysis/movement.h"
#include "layout/index.h"

namespace hlojit::codegen {

NestFacts::NestFacts(const Computation& fused, const KernelPlan& plan, const Stages& stages, const Target& target,
                     VarSource& vars)
    : plan_(plan), stages_(stages), target_(target), vars_(vars) {
  for (const Instruction* r : plan.roots) {
    if (!r->shape.is_array()) continue;
    shares_bytes |= element_bits(r->shape) < 8;
    gives_masks |= is_pred(r->shape.type);
  }
  // What is made for a later stage may be kept in another type.
  const bool one_stage = plan.kind == KernelKind::kNest && plan.stages.size() == 1 && plan.stages[0].keeps.empty();
  if (one_stage) in_bits = moved_types(fused);
}

// each(the stage's accesses, variable of the innermost dimension or -1)
template <class Each>
void NestFacts::over_stages(AccessWalk& walk, const Coords& at, const Each& each) const {
  walk.move_in_bits(in_bits);
  walk.lanes_outside();
  for (const Stage& stage : plan_.stages) {
    const size_t before = walk.accesses().size();
    Coords along;
    int last = -1;
    for (int64_t n : plan_.inner_sizes()) along.push_back(IndexExpr::var(last = vars_.fresh(), n));
    stages_.walk(walk, stage, stage.inner ? stages_.joined(at, along) : at);
    each(std::span(walk.accesses()).subspan(before), last);
  }
}

void NestFacts::visit(AccessWalk& walk, const Coords& at) const {
  over_stages(walk, at, [](std::span<const Access>, int) {});
}

void NestFacts::learn(AccessWalk& walk, const Coords& at) {
  int gathers_here = 0;
  over_stages(walk, at, [&](std::span<const Access> accesses, int last) {
    for (const Access& a : accesses) {
      const int64_t apart = a.address.coefficient(last).value_or(0);
      inner_step = std::max(inner_step, a.bytes * apart);
      finds_rows |= a.random && apart == 1;
      gathers_here += a.random && a.parameter && gathers_each(target_, a.parameter->shape);
    }
  });
  gathers = std::max(gathers, gathers_here);
  widest = std::max(widest, walk.lane_bytes());
  operations = std::max(operations, walk.operations());
  places = std::max(places, walk.places());
  pulls |= walk.has_reduction();
  masks |= walk.combines_masks();
  waits &= waits_for_memory(walk);
}

}  // namespace hlojit::codegen
