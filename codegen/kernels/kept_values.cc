// See kept_values.h.
#include "codegen/kernels/kept_values.h"

#include <algorithm>

#include "compiler/ir/narrow.h"
#include "layout/divide.h"
#include "layout/index.h"
#include "layout/lists.h"

namespace hlojit::codegen {
namespace {

Placed in_scratch(ElementEmitter& e, const Instruction* v, const KernelPlan& plan, const Stages& stages,
                  Scratch& scratch, const RowBlock& block, const AtHand& at_hand) {
  const Ints inner = plan.inner_sizes();
  const int64_t count = product(inner), rows = at_hand.rows, tile = at_hand.tile;
  Placed place;
  place.stored = working_type(v->shape.type);
  const int64_t row = block.count() > 1 ? round_up(count, kCacheLine / dtype_bytes(place.stored)) : 0;
  place.buffer.pointer = scratch.take(std::max(rows * count * tile, block.count() * row) * dtype_bytes(place.stored));
  place.address = [&e, &stages, &block, &lane = at_hand.lane, inner, count, rows, tile, row](const Coords& coords) {
    auto [outer, along] = stages.apart(coords);
    IndexExpr at = linearize(inner, along) * tile + lane + block.row() * row;
    // Rows of a block lie one after the other.
    for (size_t k = 0; rows > 1 && k < e.block().size(); ++k) {
      const int var = e.block_id(k);
      const bool here = std::ranges::any_of(outer, [&](const IndexExpr& x) { return x.depends_on(var); });
      if (here) at = at + IndexExpr(static_cast<int64_t>(k) * count * tile);
    }
    return at;
  };
  return place;
}

}  // namespace

void place_kept_values(KernelBuilder& kernel, const KernelPlan& plan, const Stages& stages, Scratch& scratch,
                       const RowBlock& block, const AtHand& at_hand) {
  ElementEmitter& e = kernel.emitter();
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    for (const Instruction* v : plan.stages[s].keeps) {
      Placed place = in_scratch(e, v, plan, stages, scratch, block, at_hand);
      place.stage = s;
      e.place(v, std::move(place));
    }
  }
  place_reread_results(kernel, plan);
}

void place_reread_results(KernelBuilder& kernel, const KernelPlan& plan) {
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    for (size_t k : plan.stages[s].rereads) {
      const Shape& shape = plan.roots[k]->shape;
      Placed place{kernel.result(k), s, false, shape.type,
                   [&shape](const Coords& c) { return linear_index(shape, c); }};
      kernel.emitter().place(plan.roots[k], std::move(place));
    }
  }
}

}  // namespace hlojit::codegen
