// A plan without products is an outer nest over which its stages run; this file decides which loops that is and how
// much of it is a task.
#include "codegen/kernels/nest_kernel.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>

#include <fmt/format.h>
#include <llvm/IR/Module.h>

#include "codegen/kernels/column_strips.h"
#include "codegen/kernels/function.h"
#include "codegen/kernels/kept_values.h"
#include "codegen/kernels/look_ahead.h"
#include "codegen/kernels/nest_facts.h"
#include "codegen/kernels/nest_widths.h"
#include "codegen/kernels/row_block.h"
#include "codegen/kernels/stages.h"
#include "codegen/kernels/tile_edges.h"
#include "codegen/kernels/vector_count.h"
#include "codegen/nest/lines.h"
#include "codegen/nest/loop_merge.h"
#include "codegen/nest/loop_split.h"
#include "codegen/nest/row_parts.h"
#include "layout/index.h"
#include "layout/lists.h"

namespace hlojit::codegen {
namespace {

class NestKernel {
 public:
  NestKernel(const NextModule& module, const Instruction& fusion, const KernelPlan& plan, const Surroundings& around,
             const EmitOptions& options, VarSource& vars, int64_t cost_ns)
      : module_(module),
        fusion_(fusion),
        plan_(plan),
        around_(around),
        options_(options),
        vars_(vars),
        vector_bytes_(options.vector_size()),
        cost_ns_(cost_ns),
        joined_(plan.kind == KernelKind::kNest && !count_.keeps_values() && chunks_for(cost_ns) == 1) {}

  // The stages run in order at each element.
  std::vector<KernelFunction> run() {
    auto learn = [&](AccessWalk& w, const Coords& at) { facts_.learn(w, at); };
    const Ints outer = nest_sizes(plan_, learn, vars_);
    const bool rows = plan_.kind == KernelKind::kRows, nest = plan_.kind == KernelKind::kNest;
    const bool lanes = !rows && (plan_.kind != KernelKind::kContraction || lanes_on_result());
    std::vector<LoopPiece> pieces = plan_loops(outer, vars_, learn, loop_options(lanes));
    if (nest && overlap_) pieces = merge_pieces(std::move(pieces), visit_, vars_);
    count_inner_steps(pieces, lanes);
    native_ = std::max(1, vector_bytes_ / facts_.widest);
    side_by_side_ = count_.side_by_side(facts_.operations, facts_.places, facts_.inner_step, facts_.pulls);
    const double total = volume(pieces);
    for (LoopPiece& piece : pieces) piece.side_by_side = nest && !facts_.pulls;
    const bool maps = nest && !facts_.pulls && !count_.keeps_values();
    std::vector<RowParts> groups = parts_of_rows(std::move(pieces), maps && bytes_of_all() > target_.l1_bytes);
    const std::vector<Stretch> writes = stretches(groups);
    for (size_t g = 0; g < groups.size(); ++g) {
      const int64_t ns = share_of_cost(groups[g].parts, total);
      const Place place{g, groups.size(), ns, tasks_of(writes, g, ns), writes[g]};
      if (groups[g].parts.size() > 1)
        emit_rows(groups[g], place);
      else
        emit_piece(groups[g].parts[0], place);
    }
    return std::move(functions_);
  }

 private:
  // A dot as a reduction (matrix times vector): do most of its bytes lie contiguous along the result's
  // dims, or along the contracting ones, which then take the lanes?
  bool lanes_on_result() {
    // Fewer terms than lanes: all of a vector would be added up for each result.
    if (product<double>(reduction_sizes(*plan_.hero)) < vector_bytes_ / 4) return true;
    Coords coords;
    std::vector<int> result_vars;
    for (int64_t n : plan_.domain) {
      result_vars.push_back(vars_.fresh());
      coords.push_back(IndexExpr::var(result_vars.back(), n));
    }
    AccessWalk walk(vars_);
    stages_.walk_roots(walk, coords, {0});
    double along_result = 0, along_contracted = 0;
    for (const Access& a : walk.accesses()) {
      if (a.write || a.bytes == 0 || a.random) continue;
      for (int v : a.address.variables()) {
        if (a.address.coefficient(v) != 1) continue;
        bool result = std::find(result_vars.begin(), result_vars.end(), v) != result_vars.end();
        (result ? along_result : along_contracted) += a.bytes * static_cast<double>(a.address.range().hi + 1);
      }
    }
    return along_result >= along_contracted;
  }

  // What the stages do along the inner sizes is inside of the outer loops. (Not where there are guards: written out,
  // the steps of a loop know which they need, and the blocks of a running sum over rows of 1019 are twice as fast so.)
  void count_inner_steps(std::vector<LoopPiece>& pieces, bool outer_lanes) const {
    const int64_t steps = std::max<int64_t>(1, product(plan_.inner_sizes()) / (outer_lanes ? 1 : vector_bytes_ / 4));
    for (LoopPiece& p : pieces) {
      if (!p.guarded) p.operations = static_cast<int>(std::min<int64_t>(p.operations * steps, 1 << 20));
    }
  }

  // Neighbouring vectors and tasks may compute some elements both. (Where vectors begin anywhere, elements that share
  // bytes are stored one by one: 300x1002 of s4 in 3.3 ms. Stores past the cache must be aligned, which vectors moved
  // back to a digit's end are not.)
  bool overlaps() const {
    return !around_.in_place() && !facts_.shares_bytes && !KernelBuilder::streams(fusion_, plan_, around_, options_);
  }

  LoopPlanOptions loop_options(bool lanes) const {
    constexpr int kMostInTurn = 32;  // none was seen to be too many
    const bool nest = plan_.kind == KernelKind::kNest, inner = !plan_.inner_sizes().empty();
    LoopPlanOptions options{.lanes = lanes, .max_lanes = vector_bytes_ / 4, .overlap = overlap_ && nest};
    if (nest || inner) options.unroll = plan_.kind == KernelKind::kRows ? 2 : vector_bytes_ / 4;
    if (plan_.kind == KernelKind::kColumns || plan_.kind == KernelKind::kScan) options.unroll = 0;
    if (nest) options.in_turn = kMostInTurn;
    options.scattered = nest;
    options.across = nest && !facts_.shares_bytes;
    options.pairs = !facts_.shares_bytes;
    options.in_parts = target_.l2_bytes / 2;
    options.shared = inner ? 0 : kShared;
    options.interleaves = plan_.kind == KernelKind::kColumns && !count_.keeps_values();
    options.alternating = count_.keeps_values() ? 0 : kTileRows;
    return options;
  }

  // A step of the outer nest: the stages of each of its elements, whose coordinates follow each other.
  void step_of(KernelBuilder& kernel, Scope& scope, const Coords& at, const LoopPiece& piece, RowBlock& rows) const {
    if (rows.count() > 1) return rows.run(kernel, scope, at, 0, plan_.stages.size(), overlap_);
    for (int n = 0; n < piece.together; ++n) {
      kernel.emitter().in_parts(scope, piece.element(at, n), piece.unroll,
                                [&](Scope& in, const Coords& c, const Unroll& block) {
                                  for (size_t k = 0; k < plan_.stages.size(); ++k)
                                    stages_.run(kernel, in, k, c, block, overlap_);
                                });
    }
  }

  int64_t bytes_of_all() const {
    int64_t bytes = 0;
    for (const Instruction* o : fusion_.operands()) bytes += physical_size(o->shape);
    for (const Instruction* r : plan_.roots) bytes += physical_size(r->shape);
    return bytes;
  }

  /// Of the first result, in memory.
  struct Stretch {
    int64_t begin = INT64_MAX, end = 0;
  };

  /// Which one of how many functions, what it is to take, in how many tasks, and where these write.
  struct Place {
    size_t number, count;
    int64_t ns, tasks;
    Stretch writes;
  };

  // Where each group writes. None if it is one alone, or shares bytes at its borders with another, which must wait.
  std::vector<Stretch> stretches(const std::vector<RowParts>& groups) {
    std::vector<Stretch> all(groups.size(), Stretch{0, 0});
    if (groups.size() == 1 || joined_ || facts_.shares_bytes) return all;
    for (size_t g = 0; g < groups.size(); ++g) {
      all[g] = {};
      for (const LoopPiece& part : groups[g].parts) reach(all[g], part);
    }
    return all;
  }

  void reach(Stretch& stretch, const LoopPiece& part) {
    for (int n = 0; n < part.together; ++n) {
      AccessWalk walk(vars_);
      visit_(walk, part.element(part.coords, n));
      const auto first = std::ranges::find_if(walk.accesses(), &Access::write);
      if (first == walk.accesses().end()) continue;
      const Range range = first->address.range();
      stretch = {std::min(stretch.begin, range.lo), std::max(stretch.end, range.hi + 1)};
    }
  }

  // Groups are handed out as one (codegen/regions.h). Who writes along all of the result, as a border's column does,
  // is cut as often as the rest, however little it is: each core writes what lies between the rows that it has.
  int64_t tasks_of(const std::vector<Stretch>& writes, size_t g, int64_t ns) const {
    if (writes[g].begin == writes[g].end) return chunks_for(ns);
    Stretch all;
    for (const Stretch& s : writes) all = {std::min(all.begin, s.begin), std::max(all.end, s.end)};
    const double share =
        static_cast<double>(writes[g].end - writes[g].begin) / static_cast<double>(all.end - all.begin);
    const auto tasks = static_cast<double>(chunks_for(cost_ns_));
    return std::max(chunks_for(ns), static_cast<int64_t>(std::ceil(tasks * share)));
  }

  void emit_piece(LoopPiece& piece, const Place& place) {
    if (overlap_ && count_.sums_columns() && emit_strips(piece, place)) return;
    const bool by_lines = !put_in_strips(piece) && into_line(piece).has_value();
    RowBlock block(plan_, stages_);
    const size_t split = cut_into_tasks(piece, place, block);
    if (overlap_ && count_.sums_columns())
      put_lanes_in_blocks(piece, native_, count_.beside_operands(side_by_side_), vars_);
    KernelBuilder& kernel = builder_for(place);
    const int64_t tasks = kernel.bind_chunks(piece, split);
    const LaneWidths widths = widths_of(piece, by_lines ? into_line(piece) : std::nullopt);
    IndexExpr lane(0);
    Scratch scratch(kernel);
    block.place_results(scratch);
    place_kept_values(kernel, plan_, stages_, scratch, block, {piece.unroll.count, widths.widths[0], lane});
    kernel.emitter().loops(kernel.root(), piece, split, widths, {},
                           [&](Scope& s, const Coords& at, const Lanes& part, const ElementEmitter::Carried&) {
                             lane = part.number;
                             step_of(kernel, s, at, piece, block);
                             return ElementEmitter::Carried{};
                           });
    finish(kernel, place, tasks, scratch.bytes());
  }

  // Parts of rows, one after the other in each row. A task has whole rows.
  void emit_rows(RowParts& group, const Place& place) {
    RowBlock block(plan_, stages_);
    const auto apart = writes_apart(group.parts.front(), visit_, vars_);
    const size_t split = split_for_chunks(group.rows, place.tasks, 1, vars_, 0, apart);
    KernelBuilder& kernel = builder_for(place);
    const int64_t tasks = kernel.bind_chunks(group.rows, split);
    auto row = [&](Scope& s, const Coords& at, const Lanes&, const ElementEmitter::Carried&) {
      for (const LoopPiece& whole : group.parts) {
        const LoopPiece part = group.in_row(whole, at);
        auto into = into_line(whole);
        if (into) into = group.in_row(*into, at);
        kernel.emitter().loops(s, part, 0, widths_of(part, std::move(into)), {},
                               [&](Scope& in, const Coords& c, const Lanes&, const ElementEmitter::Carried&) {
                                 step_of(kernel, in, c, part, block);
                                 return ElementEmitter::Carried{};
                               });
      }
      return ElementEmitter::Carried{};
    };
    kernel.emitter().loops(kernel.root(), group.rows, split, {{1}}, {}, row);
    finish(kernel, place, tasks, 0);
  }

  KernelBuilder& builder_for(const Place& place) {
    if (place.number == 0 || !joined_) {
      const std::string name = suffix(place.number, joined_ ? 1 : place.count);
      builder_ = std::make_unique<KernelBuilder>(module_(), fusion_, plan_, around_, options_, vars_, name);
      ElementEmitter& e = builder_->emitter();
      e.move_in_bits(facts_.in_bits);
      if (plan_.kind == KernelKind::kNest && facts_.waits) e.store_in_halves();
      if (!facts_.pulls && facts_.few_gathers()) e.write_out_gathers();
    }
    return *builder_;
  }

  // Where rows go through the stages together, a task has whole blocks of them. A row or block may ask for the next.
  size_t cut_into_tasks(LoopPiece& piece, const Place& place, RowBlock& rows) {
    const bool blocked = rows.cut(piece, rows_of_block(plan_, target_, piece, place.tasks, bytes_of_all()), vars_);
    const size_t split = place.tasks == 1 ? 0 : cut_into_tasks(piece, place.tasks);
    if (blocked) rows.take(piece);
    stages_.look_to(look_ahead(plan_, stages_, piece, rows.count(), bytes_of_all(), target_, vars_));
    return split;
  }

  // Rows are written from where a line may begin. (Cross products of 20001 vectors, the second half of which lay
  // across lines: 12.3 us, 11.0.) Columns are read, in rows that begin anywhere, and by as many as registers hold
  // sums for: 256 of 1019, not 315. (Sums of the columns of 1021x1019: 103 us, 57.)
  size_t cut_into_tasks(LoopPiece& piece, int64_t tasks) const {
    const int64_t grain = plan_.kind == KernelKind::kRows ? 1 : 16 * native_;
    const int64_t begin = plan_.kind == KernelKind::kNest ? kCacheLine : 1;
    return split_for_chunks(piece, tasks, grain, vars_, overlap_ ? begin : 0, writes_apart(piece, visit_, vars_));
  }

  // Asked twice: of whole rows, whether to go by lines (tasks of a single row begin with a vector anyway), and of the
  // rows as they are cut, from where. Null then where a row's last task is shorter than the others: what is left of it
  // takes narrower vectors.
  std::optional<IndexExpr> into_line(const LoopPiece& piece) const {
    if (plan_.kind != KernelKind::kNest || facts_.shares_bytes) return std::nullopt;
    return elements_into_line(piece, visit_, vars_, native_, target_);
  }

  bool put_in_strips(LoopPiece& piece) const {
    return plan_.kind == KernelKind::kNest && overlap_ && put_shared_in_strips(piece, visit_, native_, target_, vars_);
  }

  // A border gets its share of the chunks, not an equal part.
  int64_t share_of_cost(const std::vector<LoopPiece>& pieces, double total) const {
    return static_cast<int64_t>(static_cast<double>(cost_ns_) * volume(pieces) / std::max(total, 1.0));
  }

  // Sums of far columns. False where registers do as well.
  bool emit_strips(const LoopPiece& piece, const Place& place) {
    const auto cut = strips_.cut(piece, vector_bytes_, VectorCount::kStrip);
    if (!cut) return false;
    KernelBuilder kernel(module_(), fusion_, plan_, around_, options_, vars_, suffix(place.number, place.count));
    const int64_t count = kernel.bind_chunks(cut->piece, cut->tasks);
    kernel.emitter().move_in_bits(facts_.in_bits);
    const int64_t scratch = strips_.emit(kernel, *cut, native_);
    add(kernel, place, count, scratch);
    return true;
  }

  // `into`: where rows begin within a line, if they are gone through by lines.
  LaneWidths widths_of(const LoopPiece& piece, std::optional<IndexExpr> into) const {
    if (into) return {.widths = {native_}, .into_line = std::move(into)};
    return NestWidths(plan_, facts_, *options_.target, vars_, native_, native_ * side_by_side_, overlap_).of(piece);
  }

  static double volume(const LoopPiece& piece) {
    double n = static_cast<double>(piece.unroll.count * piece.together);
    for (const LoopDigit& l : piece.loops) n *= static_cast<double>(l.extent);
    return n;
  }
  static double volume(const std::vector<LoopPiece>& pieces) {
    double n = 0;
    for (const LoopPiece& p : pieces) n += volume(p);
    return n;
  }

  std::string suffix(size_t p, size_t count) const { return count == 1 ? "" : fmt::format(".piece{}", p); }

  void finish(KernelBuilder& kernel, const Place& place, int64_t chunks, int64_t scratch) {
    if (joined_ && place.number + 1 < place.count) return;
    add(kernel, place, chunks, scratch);
  }

  void add(KernelBuilder& kernel, const Place& place, int64_t chunks, int64_t scratch) {
    const int64_t ns = joined_ ? cost_ns_ : place.ns;
    functions_.push_back({kernel.finish(),
                          {.chunks = chunks,
                           .scratch_bytes = scratch,
                           .cost_ns = ns,
                           .begin = place.writes.begin,
                           .end = place.writes.end}});
  }

  const NextModule& module_;
  const Instruction& fusion_;
  const KernelPlan& plan_;
  const Surroundings& around_;
  const EmitOptions& options_;
  VarSource& vars_;
  const TargetInfo target_ = options_.target_info();
  Stages stages_{plan_, vars_};
  NestFacts facts_{*fusion_.to_apply(), plan_, stages_, *options_.target, vars_};
  const std::function<void(AccessWalk&, const Coords&)> visit_ = [this](AccessWalk& w, const Coords& at) {
    facts_.visit(w, at);
  };
  const bool overlap_ = overlaps();
  const ColumnStrips strips_{plan_, stages_, target_, vars_};
  const VectorCount count_{plan_, target_, NumberOptions::of(options_)};
  const int vector_bytes_;
  const int64_t cost_ns_;
  // What is no work for several cores is one function: what its pieces have in common, scalars above all, is computed
  // once. (Four steps of Runge and Kutta for a double pendulum, whose state is stacked from scalars, computed 48 sines
  // for 16: 37 us for 200 times, 16.)
  const bool joined_;
  int native_ = 1, side_by_side_ = 1;  // lanes of a native vector; vectors
  std::unique_ptr<KernelBuilder> builder_;
  std::vector<KernelFunction> functions_;
};

}  // namespace

std::vector<KernelFunction> emit_nest(const NextModule& module, const Instruction& fusion, const KernelPlan& plan,
                                      const Surroundings& around, const EmitOptions& options, VarSource& vars,
                                      int64_t cost_ns) {
  return NestKernel(module, fusion, plan, around, options, vars, cost_ns).run();
}

}  // namespace hlojit::codegen
