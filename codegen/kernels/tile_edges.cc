// See tile_edges.h.
#include "codegen/kernels/tile_edges.h"

#include <algorithm>

#include <fmt/format.h>

#include "codegen/kernels/function.h"
#include "codegen/nest/lane_widths.h"
#include "codegen/number/value.h"
#include "layout/divide.h"
#include "layout/index.h"
#include "layout/lists.h"

namespace hlojit::codegen {
namespace {

/// Of the depth, side by side in a panel.
constexpr int64_t kMostTerms = 4;

/// Of a tiled array's dims: rounded up to what its tiles hold.
Ints padded_sizes(const Shape& shape) {
  Ints sizes = shape.dims;
  const Layout& layout = shape.layout;
  if (!layout.tiled() || layout.tiles[0].dims.size() > sizes.size()) return sizes;
  size_t k = layout.tiles[0].dims.size();
  for (int64_t size : layout.tiles[0].dims) {
    if (size == Tile::kCombine) return shape.dims;
    int64_t& n = sizes[static_cast<size_t>(layout.minor_to_major[--k])];
    n = round_up(n, size);
  }
  return sizes;
}

/// As the columns of a product may lie (panel_layout in compiler/plan/contraction.h).
bool in_panels(const Layout& layout) {
  if (layout.tiles.size() != 1 || layout.tiles[0].dims.size() < 2) return false;
  const auto& tile = layout.tiles[0].dims;
  return tile.back() <= kMostTerms && std::all_of(tile.begin() + 1, tile.end() - 1, [](int64_t n) { return n == 1; });
}

}  // namespace

Ints nest_sizes(const KernelPlan& plan, const std::function<void(AccessWalk&, const Coords&)>& walk, VarSource& vars) {
  const Ints outer = plan.outer_sizes();
  auto whole = std::ranges::find_if(plan.roots, [&](const Instruction* r) { return r->shape.dims == plan.domain; });
  const bool nest = plan.kind == KernelKind::kNest, rows = plan.kind == KernelKind::kRows;
  if (whole == plan.roots.end() || !(nest || rows)) return outer;
  const Ints padded = plan.outer_of(padded_sizes((*whole)->shape));
  auto empty_in_all = [&](const Ints& sizes) {
    if (sizes == outer || 4 * product(sizes) > 5 * product(outer)) return false;
    const bool in_results = std::ranges::all_of(plan.roots, [&](const Instruction* r) {
      return r->shape.dims == plan.domain &&
             std::ranges::equal(sizes, plan.outer_of(padded_sizes(r->shape)), std::less_equal());
    });
    if (!in_results) return false;
    AccessWalk accesses(vars);
    Coords at;
    for (int64_t n : sizes) at.push_back(IndexExpr::var(vars.fresh(), n));
    walk(accesses, at);
    return accesses.within_buffers();
  };
  if (nest && empty_in_all(padded)) return padded;
  // Where others are empty elsewhere, as a transposed operand is, at least small tiles are whole: 885x1427 took five
  // times as long as 888x1427. Of whole rows no more: those of a small tile are then handled together.
  Ints in_part = outer;
  for (size_t d = 0; d < outer.size(); ++d) in_part[d] = std::min(padded[d], round_up(outer[d], kTileRows));
  return empty_in_all(in_part) ? in_part : outer;
}

std::vector<KernelFunction> clear_rest_of_panels(const NextModule& module, const Instruction& fusion,
                                                 const KernelPlan& plan, const Surroundings& around,
                                                 const EmitOptions& options, VarSource& vars) {
  std::vector<KernelFunction> functions;
  const Shape& shape = plan.roots[0]->shape;
  if (!plan.roots[0]->is(Opcode::kCopy) || !is_float(shape.type) || !in_panels(shape.layout)) return functions;
  Shape whole = shape;
  whole.dims = padded_sizes(shape);
  const auto d = static_cast<size_t>(std::ranges::mismatch(shape.dims, whole.dims).in1 - shape.dims.begin());
  if (d == shape.dims.size() || shape.element_count() == 0) return functions;
  Ints rest = whole.dims;
  rest[d] -= shape.dims[d];
  auto place = [&](Coords at) {
    at[d] = at[d] + shape.dims[d];
    return linear_index(whole, at);
  };
  auto walk = [&](AccessWalk& w, const Coords& at) { w.write(shape.type, place(at)); };
  const int lanes =
      std::max<int>(1, options.vector_size() / std::max<int>(4, static_cast<int>(dtype_bytes(shape.type))));
  for (LoopPiece& piece : plan_loops(rest, vars, walk, {.max_lanes = lanes})) {
    KernelBuilder kernel(module(), fusion, plan, around, options, vars, fmt::format(".rest{}", functions.size()));
    ElementEmitter& e = kernel.emitter();
    e.loops(kernel.root(), piece, 0, lane_widths(piece, lanes, lanes, false), {},
            [&](Scope& s, const Coords& at, const Lanes& part, const ElementEmitter::Carried&) {
              e.store(s, kernel.result(0), place(at), constant(s.builder, shape.type, 0, part.count));
              return ElementEmitter::Carried{};
            });
    functions.push_back({.function = kernel.finish()});
  }
  return functions;
}

}  // namespace hlojit::codegen
