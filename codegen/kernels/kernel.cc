// See kernel.h. A plan without products is an outer nest over which its stages run; this file decides how much of it
// is a task, and where values that stages keep lie.
#include "codegen/kernels/kernel.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <span>

#include <fmt/format.h>
#include <llvm/IR/Module.h>

#include "codegen/kernels/block_kernel.h"
#include "codegen/kernels/column_strips.h"
#include "codegen/kernels/function.h"
#include "codegen/kernels/look_ahead.h"
#include "codegen/kernels/merge.h"
#include "codegen/kernels/row_block.h"
#include "codegen/kernels/scatter.h"
#include "codegen/kernels/stages.h"
#include "codegen/kernels/tile_edges.h"
#include "codegen/kernels/vector_count.h"
#include "codegen/nest/lines.h"
#include "codegen/nest/loop_merge.h"
#include "codegen/nest/loop_split.h"
#include "codegen/nest/row_parts.h"
#include "codegen/target.h"
#include "compiler/analysis/access.h"
#include "compiler/analysis/movement.h"
#include "compiler/ir/narrow.h"
#include "compiler/plan/cost.h"
#include "compiler/plan/stages.h"
#include "layout/divide.h"
#include "layout/index.h"
#include "layout/lists.h"

namespace hlojit::codegen {
namespace {

/// Results side by side whose reductions read the same elements. (Of four, more have a part beyond a border.)
constexpr int kShared = 2;

class Emission {
 public:
  Emission(llvm::Module& module, const Instruction& fusion, const Surroundings& around, const EmitOptions& options)
      : module_(module), fusion_(fusion), around_(around), options_(options) {
    std::string why;
    target_ = options.target_info();
    auto plan = plan_kernel(*fusion.to_apply(), target_, fusion.attrs.backend_config, &why);
    if (!plan) {
      throw Error(ErrorKind::kUnsupported, fusion.location,
                  fmt::format("fusion {} fits no kernel kind: {}", fusion.name, why));
    }
    plan_ = *plan;
    vector_bytes_ = options.vector_size();
    const double ns = kernel_cost(*fusion.to_apply(), plan_, target_).work_ns() * static_cast<double>(target_.smaller);
    cost_ns_ = static_cast<int64_t>(std::min(ns, 1e15));
    joined_ = plan_.kind == KernelKind::kNest && !count_.keeps_values() && chunks_for(cost_ns_) == 1;
    shares_bytes_ = std::ranges::any_of(
        plan_.roots, [](const Instruction* r) { return r->shape.is_array() && element_bits(r->shape) < 8; });
  }

  std::vector<KernelFunction> run() {
    if (plan_.has_products()) return {emit_block_kernel(module_, fusion_, plan_, around_, options_, cost_ns_)};
    if (plan_.kind == KernelKind::kScatter) return {emit_scatter(module_, fusion_, plan_, around_, options_, vars_)};
    loops();
    for (KernelFunction& f : clear_rest_of_panels(module_, fusion_, plan_, around_, options_, vars_))
      functions_.push_back(f);
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

  // What nothing is computed with. What is made for a later stage may be kept in another type.
  std::set<DType> moved_in_bits() const {
    bool one_stage = plan_.kind == KernelKind::kNest && plan_.stages.size() == 1 && plan_.stages[0].keeps.empty();
    return one_stage ? moved_types(*fusion_.to_apply()) : std::set<DType>();
  }

  // Without mask registers the conditions of a vector wider than the machine's are packed into bytes for each step and
  // unpacked again. Results that are conditions are packed anyway.
  bool packs_masks(const LoopPiece& piece) const {
    const bool maps = plan_.kind == KernelKind::kNest && piece.unroll.var < 0;
    return maps && !gives_masks() && options_.target->isa() != Isa::kAvx512;
  }

  // What the stages do along the inner sizes is inside of the outer loops. (Not where there are guards: written out,
  // the steps of a loop know which they need, and the blocks of a running sum over rows of 1019 are twice as fast so.)
  void count_inner_steps(std::vector<LoopPiece>& pieces, bool outer_lanes) const {
    const int64_t steps = std::max<int64_t>(1, product(plan_.inner_sizes()) / (outer_lanes ? 1 : vector_bytes_ / 4));
    for (LoopPiece& p : pieces) p.operations = static_cast<int>(std::min<int64_t>(p.operations * steps, 1 << 20));
  }

  // Neighbouring vectors and tasks may compute some elements both. (Where vectors begin anywhere, elements that share
  // bytes are stored one by one: 300x1002 of s4 in 3.3 ms.)
  bool overlaps() { return !around_.in_place() && !shares_bytes_ && !streams_unaligned(); }

  bool gives_masks() const {
    return std::ranges::any_of(plan_.roots,
                               [](const Instruction* r) { return r->shape.is_array() && is_pred(r->shape.type); });
  }

  LoopPlanOptions loop_options(bool lanes, bool overlap) const {
    const bool nest = plan_.kind == KernelKind::kNest, inner = !plan_.inner_sizes().empty();
    LoopPlanOptions options{.lanes = lanes, .max_lanes = vector_bytes_ / 4, .overlap = overlap && nest};
    if (nest || inner) options.unroll = plan_.kind == KernelKind::kRows ? 2 : vector_bytes_ / 4;
    if (plan_.kind == KernelKind::kColumns || plan_.kind == KernelKind::kScan) options.unroll = 0;
    options.across = nest && !shares_bytes_;
    options.pairs = !shares_bytes_;
    options.in_parts = target_.l2_bytes / 2;
    options.shared = inner ? 0 : kShared;
    options.interleaves = plan_.kind == KernelKind::kColumns && !count_.keeps_values();
    options.alternating = count_.keeps_values() ? 0 : kTileRows;
    return options;
  }

  /// Of what the stages read.
  struct Inner {
    int64_t step = 0;         ///< most bytes from one element to the next along the inner dims
    bool finds_rows = false;  ///< neighbours along these, from where an index says (ElementEmitter::load_rows)
    int gathers = 0;          ///< most reads of a walk from where an index says, of elements that are loaded one by one

    /// The loads of a vector of each are instructions enough to keep the processor busy. (One found by the other, 11 in
    /// all: 17 us by four vectors, 28 by single ones; written out, 16, but 111 ms to compile for 22.)
    bool few_gathers() const { return 0 < gathers && gathers <= 4; }
  };

  // What the stages read and write at an element of the outer nest.
  void visit_stages(AccessWalk& w, const Coords& at, Inner& inner) {
    w.lanes_outside();
    int gathers = 0;
    for (const Stage& stage : plan_.stages) {
      const size_t before = w.accesses().size();
      Coords along;
      int last = -1;
      for (int64_t n : plan_.inner_sizes()) along.push_back(IndexExpr::var(last = vars_.fresh(), n));
      stages_.walk(w, stage, stage.inner ? stages_.joined(at, along) : at);
      for (const Access& a : std::span(w.accesses()).subspan(before)) {
        const int64_t apart = a.address.coefficient(last).value_or(0);
        inner.step = std::max(inner.step, a.bytes * apart);
        inner.finds_rows |= a.random && apart == 1;
        gathers += a.random && a.parameter && gathers_each(*options_.target, a.parameter->shape);
      }
    }
    inner.gathers = std::max(inner.gathers, gathers);
  }

  // A step of the outer nest: the stages of each of its elements, whose coordinates follow each other.
  void step_of(KernelBuilder& kernel, Scope& scope, const Coords& at, const LoopPiece& piece, RowBlock& rows,
               bool overlap) {
    if (rows.count() > 1) return rows.run(kernel, scope, at, 0, plan_.stages.size(), overlap);
    for (int n = 0; n < piece.together; ++n) {
      kernel.emitter().in_parts(scope, piece.element(at, n), piece.unroll,
                                [&](Scope& in, const Coords& c, const Unroll& block) {
                                  for (size_t k = 0; k < plan_.stages.size(); ++k)
                                    stages_.run(kernel, in, k, c, block, overlap);
                                });
    }
  }

  // How many rows go through the stages together: where there are several passes over each, and blocks enough for all
  // tasks. Pages from memory come while the one before them is computed with. (Layernorm of 32768x512 floats, a Zen 4,
  // one core and two: 4.6 and 2.2 ms by blocks of four rows, 3.3 and 1.8 by rows; 16384x1024 4.1 and 2.2, 3.3 and 1.8.)
  int64_t rows_of_block(const LoopPiece& piece, int64_t tasks) const {
    const auto passes = std::ranges::count_if(plan_.stages, [](const Stage& s) { return s.inner; });
    if (plan_.kind != KernelKind::kRows || passes < 2 || piece.loops.empty()) return 1;
    if (bytes_of_row() >= kPage && bytes_of_all() > target_.llc_bytes) return 1;
    return std::min(rows_together(target_, bytes_of_row()), piece.loops.back().extent / tasks);
  }

  // What the stages of a row read, keep and write.
  int64_t bytes_of_row() const {
    const int64_t rows = std::max<int64_t>(1, product(plan_.outer_sizes()));
    int64_t kept = 0;
    for (const Stage& s : plan_.stages) {
      for (const Instruction* v : s.keeps)
        kept += product(plan_.inner_sizes()) * dtype_bytes(working_type(v->shape.type));
    }
    return std::max<int64_t>(1, bytes_of_all() / rows + kept);
  }

  int64_t bytes_of_all() const {
    int64_t bytes = 0;
    for (const Instruction* o : fusion_.operands()) bytes += physical_size(o->shape);
    for (const Instruction* r : plan_.roots) bytes += physical_size(r->shape);
    return bytes;
  }

  using Walk = std::function<void(AccessWalk&, const Coords&)>;

  // What is known of the kernel before its loops are: of what it reads and writes, and of its vectors.
  struct Known {
    std::set<DType> in_bits;
    Walk visit;
    Inner along;
    int widest = 4, operations = 0, places = 0;
    bool pulls = false, masks = false, guarded = false, waits = false;
    bool overlap = false;
    int native = 1, wide = 1;  // lanes
  };

  // Every plan without products: an outer nest, in which the stages run in order.
  void loops() {
    Known known;
    known.in_bits = moved_in_bits();
    known.visit = [&](AccessWalk& w, const Coords& at) {
      w.move_in_bits(known.in_bits);
      visit_stages(w, at, known.along);
    };
    auto walk = [&](AccessWalk& w, const Coords& at) {
      known.visit(w, at);
      known.widest = w.lane_bytes();
      known.operations = w.operations();
      known.places = w.places();
      known.pulls = w.has_reduction();
      known.masks = w.combines_masks();
      known.guarded = !w.edges().empty();
      known.waits = waits_for_memory(w);
    };
    const Ints outer = nest_sizes(plan_, walk, vars_);
    bool rows = plan_.kind == KernelKind::kRows, nest = plan_.kind == KernelKind::kNest;
    bool lanes = !rows && (plan_.kind != KernelKind::kContraction || lanes_on_result());
    known.overlap = overlaps();
    std::vector<LoopPiece> pieces = plan_loops(outer, vars_, walk, loop_options(lanes, known.overlap));
    if (nest && known.overlap) pieces = merge_pieces(std::move(pieces), known.visit, vars_);
    if (!known.guarded) count_inner_steps(pieces, lanes);
    known.native = std::max(1, vector_bytes_ / known.widest);
    known.wide = known.native * count_.side_by_side(known.operations, known.places, known.along.step, known.pulls);
    const double total = volume(pieces);
    for (LoopPiece& piece : pieces) piece.side_by_side = nest && !known.pulls;
    const bool maps = nest && !known.pulls && !count_.keeps_values();
    std::vector<RowParts> groups = parts_of_rows(std::move(pieces), maps && bytes_of_all() > target_.l1_bytes);
    for (size_t g = 0; g < groups.size(); ++g) {
      const int64_t ns = share_of_cost(groups[g].parts, total);
      const Place place{g, groups.size(), ns};
      if (groups[g].parts.size() > 1)
        emit_rows(groups[g], place, known);
      else
        emit_piece(groups[g].parts[0], place, known);
    }
  }

  /// Which one of how many functions, and what all of its tasks take.
  struct Place {
    size_t number, count;
    int64_t ns;
  };

  void emit_piece(LoopPiece& piece, const Place& place, const Known& known) {
    const auto& [number, count_of_all, ns] = place;
    const bool overlap = known.overlap;
    if (overlap && count_.sums_columns() &&
        emit_strips(piece, suffix(number, count_of_all), ns, known.in_bits, known.native))
      return;
    const bool by_lines =
        !put_in_strips(piece, known.visit, known.native) && into_line(piece, known.visit, known.native).has_value();
    RowBlock block(plan_, stages_);
    const size_t split = cut_into_tasks(piece, known.visit, ns, known.native, overlap, block);
    if (overlap && count_.sums_columns())
      put_lanes_in_blocks(piece, known.native, count_.in_block(known.wide / known.native), vars_);
    KernelBuilder& kernel = builder_for(place, known);
    const int64_t tasks = kernel.bind_chunks(piece, split);
    const LaneWidths widths =
        widths_of(piece, known, by_lines ? into_line(piece, known.visit, known.native) : std::nullopt);
    IndexExpr lane(0);
    Scratch scratch(kernel);
    place_values(kernel, scratch, block, piece.unroll.count, widths.widths[0], lane);
    kernel.emitter().loops(kernel.root(), piece, split, widths, {},
                           [&](Scope& s, const Coords& at, const Lanes& part, const ElementEmitter::Carried&) {
                             lane = part.number;
                             step_of(kernel, s, at, piece, block, overlap);
                             return ElementEmitter::Carried{};
                           });
    finish(kernel, place, tasks, scratch.bytes());
  }

  // Parts of rows, one after the other in each row. A task has whole rows.
  void emit_rows(RowParts& group, const Place& place, const Known& known) {
    RowBlock block(plan_, stages_);
    const auto apart = writes_apart(group.parts.front(), known.visit, vars_);
    const size_t split = split_for_chunks(group.rows, chunks_for(place.ns), 1, vars_, 0, apart);
    KernelBuilder& kernel = builder_for(place, known);
    const int64_t tasks = kernel.bind_chunks(group.rows, split);
    auto row = [&](Scope& s, const Coords& at, const Lanes&, const ElementEmitter::Carried&) {
      for (const LoopPiece& whole : group.parts) {
        const LoopPiece part = group.in_row(whole, at);
        auto into = into_line(whole, known.visit, known.native);
        if (into) into = group.in_row(*into, at);
        kernel.emitter().loops(s, part, 0, widths_of(part, known, std::move(into)), {},
                               [&](Scope& in, const Coords& c, const Lanes&, const ElementEmitter::Carried&) {
                                 step_of(kernel, in, c, part, block, known.overlap);
                                 return ElementEmitter::Carried{};
                               });
      }
      return ElementEmitter::Carried{};
    };
    kernel.emitter().loops(kernel.root(), group.rows, split, {{1}}, {}, row);
    finish(kernel, place, tasks, 0);
  }

  KernelBuilder& builder_for(const Place& place, const Known& known) {
    if (place.number == 0 || !joined_) {
      const std::string name = suffix(place.number, joined_ ? 1 : place.count);
      builder_ = std::make_unique<KernelBuilder>(module_, fusion_, around_, options_, vars_, name);
      ElementEmitter& e = builder_->emitter();
      e.move_in_bits(known.in_bits);
      if (plan_.kind == KernelKind::kNest && known.waits) e.store_in_halves();
      if (!known.pulls && known.along.few_gathers()) e.write_out_gathers();
    }
    return *builder_;
  }

  // Where rows go through the stages together, a task has whole blocks of them. A row or block may ask for the next.
  size_t cut_into_tasks(LoopPiece& piece, const std::function<void(AccessWalk&, const Coords&)>& walk, int64_t ns,
                        int native, bool overlap, RowBlock& rows) {
    const bool blocked = rows.cut(piece, rows_of_block(piece, chunks_for(ns)), vars_);
    const size_t split = cut_into_tasks(piece, walk, ns, native, overlap);
    if (blocked) rows.take(piece);
    stages_.look_to(look_ahead(plan_, stages_, piece, rows.count(), bytes_of_all(), target_, vars_));
    return split;
  }

  size_t cut_into_tasks(LoopPiece& piece, const std::function<void(AccessWalk&, const Coords&)>& walk, int64_t ns,
                        int native, bool overlap) {
    const int64_t grain = plan_.kind == KernelKind::kRows ? 1 : 16 * native, tasks = chunks_for(ns);
    if (tasks == 1) return 0;
    // Rows are written from where a line may begin. (Cross products of 20001 vectors, the second half of which lay
    // across lines: 12.3 us, 11.0.) Columns are read, in rows that begin anywhere, and by as many as registers hold
    // sums for: 256 of 1019, not 315. (Sums of the columns of 1021x1019: 103 us, 57.)
    const int64_t begin = plan_.kind == KernelKind::kNest ? kCacheLine : 1;
    return split_for_chunks(piece, tasks, grain, vars_, overlap ? begin : 0, writes_apart(piece, walk, vars_));
  }

  // Asked twice: of whole rows, whether to go by lines (tasks of a single row begin with a vector anyway), and of the
  // rows as they are cut, from where. Null then where a row's last task is shorter than the others: what is left of it
  // takes narrower vectors.
  std::optional<IndexExpr> into_line(const LoopPiece& piece,
                                     const std::function<void(AccessWalk&, const Coords&)>& walk, int lanes) {
    if (plan_.kind != KernelKind::kNest || shares_bytes_) return std::nullopt;
    return elements_into_line(piece, walk, vars_, lanes, target_);
  }

  bool put_in_strips(LoopPiece& piece, const std::function<void(AccessWalk&, const Coords&)>& walk, int native) {
    if (plan_.kind != KernelKind::kNest || !overlaps()) return false;
    return put_shared_in_strips(piece, walk, native, target_, vars_);
  }

  // (A mask costs a machine without registers for them more than a few elements one by one.)
  bool leaves_out_lanes(const LoopPiece& piece, const std::function<void(AccessWalk&, const Coords&)>& walk) {
    if (options_.target->isa() != Isa::kAvx512 || shares_bytes_ || piece.together > 1) return false;
    AccessWalk accesses(vars_);
    walk(accesses, piece.coords);
    return may_leave_out_lanes(piece, accesses);
  }

  // A border gets its share of the chunks, not an equal part.
  int64_t share_of_cost(const std::vector<LoopPiece>& pieces, double total) const {
    return static_cast<int64_t>(static_cast<double>(cost_ns_) * volume(pieces) / std::max(total, 1.0));
  }

  // Sums of far columns. False where registers do as well.
  bool emit_strips(const LoopPiece& piece, const std::string& name, int64_t ns, const std::set<DType>& in_bits,
                   int native) {
    const auto cut = strips_.cut(piece, vector_bytes_, VectorCount::kStrip);
    if (!cut) return false;
    KernelBuilder kernel(module_, fusion_, around_, options_, vars_, name);
    const int64_t count = kernel.bind_chunks(cut->piece, cut->tasks);
    kernel.emitter().move_in_bits(in_bits);
    const int64_t scratch = strips_.emit(kernel, *cut, native);
    functions_.push_back({kernel.finish(), count, scratch, ns});
    return true;
  }

  // `into`: where rows begin within a line, if they are gone through by lines.
  LaneWidths widths_of(const LoopPiece& piece, const Known& known, std::optional<IndexExpr> into) {
    if (into) return {.widths = {known.native}, .into_line = std::move(into)};
    LaneWidths widths = widths_in_row(piece, known, leaves_out_lanes(piece, known.visit));
    if (known.masks && packs_masks(piece)) widths.at_a_time = known.native;
    return widths;
  }

  // Of a block each value has its vectors.
  LaneWidths widths_in_row(const LoopPiece& piece, const Known& known, bool masks) const {
    const int native = known.native;
    const bool pulls = known.pulls, overlap = known.overlap;
    int wide = known.wide;
    if (plan_.kind == KernelKind::kRows) return {{1}};
    if (piece.across) return {{static_cast<int>(piece.loops.back().extent)}};
    const bool blocked = piece.unroll.var >= 0;
    wide = std::max(native, wide / static_cast<int>(std::bit_ceil(static_cast<unsigned>(piece.together))));
    // (Three sums of a matrix each in four vectors spill: 8 ms to compile became 20.)
    const int shared = piece.unroll.count > kShared ? native : std::max(native, wide / kShared);
    if (blocked && pulls) return lane_widths(piece, shared, native, overlap);
    if (blocked) {
      // Squares are as wide as they are high; what is interleaved may be of any width.
      const int words = piece.side, lanes = piece.unroll.count < words ? std::max(native, words) : words;
      return lane_widths(piece, lanes, lanes, overlap);
    }
    const bool rows = piece.looked_up && known.along.finds_rows;  // a pointer a lane
    constexpr int kWrittenOut = 32;  // lanes, of which twice as many take LLVM twice as long and nothing less to run
    const bool few = piece.looked_up && !pulls && known.along.few_gathers();
    const int most = piece.apart || rows ? native : few ? std::max(native, std::min(wide, kWrittenOut)) : wide;
    if (plan_.kind == KernelKind::kNest && !overlap && piece.known_lanes())
      return narrowing_widths(piece, most, native, masks);
    return lane_widths(piece, most, native, overlap, Last::kNarrower);
  }

  // Gives the values that one stage makes for another their places: rows of scratch, or the result's own buffer.
  // `rows` of a piece's block or so many as `block` goes through together, `lane`: which column of the tile the
  // coordinates being emitted are.
  void place_values(KernelBuilder& kernel, Scratch& scratch, RowBlock& block, int64_t rows, int tile,
                    const IndexExpr& lane) {
    const Ints inner = plan_.inner_sizes();
    const int64_t count = product(inner);
    ElementEmitter& e = kernel.emitter();
    block.place_results(scratch);
    for (size_t s = 0; s < plan_.stages.size(); ++s) {
      for (const Instruction* v : plan_.stages[s].keeps) {
        Placed place;
        place.stage = s;
        place.stored = working_type(v->shape.type);
        const int64_t row = block.count() > 1 ? round_up(count, kCacheLine / dtype_bytes(place.stored)) : 0;
        place.buffer.pointer =
            scratch.take(std::max(rows * count * tile, block.count() * row) * dtype_bytes(place.stored));
        place.address = [this, &e, &lane, &block, inner, count, rows, tile, row](const Coords& coords) {
          auto [outer, along] = stages_.apart(coords);
          IndexExpr at = linearize(inner, along) * tile + lane + block.row() * row;
          // Rows of a block lie one after the other.
          for (size_t k = 0; rows > 1 && k < e.block().size(); ++k) {
            int var = e.block_id(k);
            bool here = std::any_of(outer.begin(), outer.end(), [&](const IndexExpr& x) { return x.depends_on(var); });
            if (here) at = at + IndexExpr(static_cast<int64_t>(k) * count * tile);
          }
          return at;
        };
        e.place(v, std::move(place));
      }
      for (size_t k : plan_.stages[s].rereads) {
        const Shape& shape = plan_.roots[k]->shape;
        Placed place{kernel.result(k), s, false, shape.type,
                     [&shape](const Coords& c) { return linear_index(shape, c); }};
        e.place(plan_.roots[k], std::move(place));
      }
    }
  }

  // Stores past the cache must be aligned, which vectors moved back to a digit's end are not.
  bool streams_unaligned() const { return KernelBuilder::streams(fusion_, around_, options_); }

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
    functions_.push_back({kernel.finish(), chunks, scratch, joined_ ? cost_ns_ : place.ns});
  }

  llvm::Module& module_;
  const Instruction& fusion_;
  const Surroundings& around_;
  const EmitOptions& options_;
  KernelPlan plan_;
  TargetInfo target_;
  VarSource vars_;
  Stages stages_{plan_, vars_};
  ColumnStrips strips_{plan_, stages_, target_, vars_};
  VectorCount count_{plan_, target_, NumberOptions::of(options_)};
  int vector_bytes_ = 32;
  int64_t cost_ns_ = 0;
  bool shares_bytes_ = false;  // elements of a result
  // What is no work for several cores is one function: what its pieces have in common, scalars above all, is computed
  // once. (Four steps of Runge and Kutta for a double pendulum, whose state is stacked from scalars, computed 48 sines
  // for 16: 37 us for 200 times, 16.)
  bool joined_ = false;
  std::unique_ptr<KernelBuilder> builder_;
  std::vector<KernelFunction> functions_;
};

}  // namespace

std::vector<KernelFunction> emit_kernel(llvm::Module& module, const Instruction& fusion, const Surroundings& around,
                                        const EmitOptions& options) {
  if (has_step_kernel(fusion)) return {{.function = emit_step_kernel(module, fusion, options)}};
  return Emission(module, fusion, around, options).run();
}

}  // namespace hlojit::codegen
