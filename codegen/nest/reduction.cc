// Passes as loops. Where the results are scalars the lanes go along the reduced elements, with several
// accumulators to hide latency, and are combined by halves; where they are vectors (their coordinates carry
// lanes) the reduced elements are taken one by one. Sums are combined in levels of at most kChain terms, so
// that the error of no sum grows with the number of its terms.
#include <algorithm>
#include <bit>
#include <utility>

#include "codegen/nest/accumulators.h"
#include "codegen/nest/branch.h"
#include "codegen/nest/loop_order.h"
#include "codegen/nest/loop_split.h"
#include "codegen/nest/pass.h"

namespace hlojit::codegen {
namespace {

// Terms that one accumulator takes: 333,333.3 as a million times 0.333... came out as 333,830 from one.
constexpr int64_t kChain = 128;

// Elements of a row that are written out where the lanes are rows; of more than a few operations half as many. (Powers
// in 5000 rows of seven, summed, a Granite Rapids: 42 ms to compile by four, 15 by two, 47 us either way.)
constexpr int64_t kGroup = 4;
constexpr int kFewOperations = 48;

// Vectors of accumulators that a pass carries side by side.
constexpr int kInFlight = 4;

// Vectors of a row that is read before the next one of its tile.
constexpr int kInTurn = 16;

// Pages that are read side by side: prefetchers get no further than to the end of one. (Sums of the
// columns of 4096x4096 floats in T(8,128), one core of a Zen 4: 5.6 ms tile by tile, 2.8 by eight of them.)
constexpr int64_t kPages = 8;

// Operations of an element, above which its vector is alone in flight: several spill, and compile slowly. With the 16
// registers of AVX2 even one spills, and several in the order that they are written in (kept_order.h) fill the machine.
// (One core of a Zen 3: option prices, 258 operations on doubles, 168 us by one, 167 by two, 100 by four; random
// integers, 481, 411, 281, 252. Compiled in 25 and 53 ms by one and four, 52 and 81.)
constexpr int kMostOperations = 200, kMostAsWritten = 600;

using Carry = ElementEmitter::Carried;

}  // namespace

int vectors_in_flight(int operations, int places, const TargetInfo& target) {
  const bool few_places = places <= 5;
  const bool as_written = few_places && !target.many_registers();
  if (operations > (as_written ? kMostAsWritten : kMostOperations)) return 1;
  return operations <= 48 || few_places ? 4 : 2;
}

Pass pulled(const Instruction* reduction, const Coords& coords) {
  Pass pass;
  pass.members = {{reduction, coords}};
  pass.sizes = reduction_sizes(*reduction);
  return pass;
}

const std::vector<Value>& ElementEmitter::reduction(const Instruction* i, const Coords& coords, Scope& scope) {
  for (Scope* s = &scope; s; s = s->parent) {
    for (const auto& [known, values] : s->reductions[i]) {
      if (known == coords) return values;
    }
  }
  if (i->is(Opcode::kReduce)) {
    throw Error(ErrorKind::kFailed, i->location, "the plan reads " + i->name + " before the stage that makes it");
  }
  Scope& at = home(coords, scope);
  Pass pass = pulled(i, coords);
  // Of a block all values at once, so that what they read in common is read once.
  for (size_t k = 0; k < block_.size(); ++k) {
    if (std::ranges::none_of(coords, [&](const IndexExpr& x) { return x.depends_on(block_ids_[k]); })) continue;
    for (size_t other = 0; other < block_.size(); ++other) {
      if (other != k) pass.members.push_back({i, substitute(coords, block_ids_[k], block_[other])});
    }
  }
  run_pass(pass, at);
  return at.reductions[i][at.reductions[i].size() - pass.members.size()].second;
}

/// One pass: its accumulators, the loops they go around, and what is done at an element.
class PassRun {
 public:
  PassRun(ElementEmitter& e, const Pass& pass, Scope& at)
      : e_(e),
        pass_(pass),
        at_(at),
        outer_lanes_(lanes_of(e, pass)),
        sums_(e, e.root_, at, pass.members, outer_lanes_, static_cast<bool>(pass.running)) {}

  void run() {
    plan();
    // Windows that lie inside of their operands take loops without guards.
    std::optional<llvm::Value*> inside = pass_.with ? std::nullopt : guards_hold();
    Carry carried = !inside   ? sum_up(false)
                    : *inside ? branch(
                                    at_, *inside, [&] { return e_.on_way(at_, [&] { return sum_up(true); }); },
                                    [&] {
                                      keep_long_loops();
                                      return sum_up(false);
                                    })
                              : sum_up(true);
    for (size_t m = 0; m < pass_.members.size() && !sums_.running; ++m) {
      const Pass::Member& member = pass_.members[m];
      at_.reductions[member.instruction].emplace_back(member.coords, sums_.finish(at_, carried, m));
    }
  }

 private:
  /// A piece of the loops, how wide they run, and the levels that sums are combined in.
  struct Part {
    LoopPiece loops;
    LaneWidths widths;
    Cascade levels;
  };

  static int lanes_of(const ElementEmitter& e, const Pass& pass) {
    int lanes = 1;
    for (const Pass::Member& m : pass.members) {
      for (const IndexExpr& c : m.coords) lanes = std::max(lanes, e.lane_count(c));
    }
    return lanes;
  }

  int outer_lane() const {
    for (const Pass::Member& m : pass_.members) {
      for (const IndexExpr& c : m.coords) {
        if (int lane = e_.lane_var(c); lane >= 0) return lane;
      }
    }
    return -1;
  }

  void plan() {
    bool reorder = sums_.reorderable();
    sums_.own_lanes = outer_lanes_ == 1 && !pass_.serial && (sums_.running ? sums_.have_identities() : reorder);
    if (sums_.running) reorder = false;
    const bool in_order = !reorder || sums_.ascend();
    int widest = 1, operations = 0, places = 0;
    auto walk = [&](AccessWalk& w, const Coords& inner) {
      w.move_in_bits(e_.in_bits_);
      walk_element(w, inner);
      along_rows_ = reads_along_rows(w, inner);
      widest = std::max(widest, w.lane_bytes());
      operations = std::max(operations, w.operations());
      places = std::max(places, w.places());
    };
    const int lanes = std::max(1, e_.vector_bytes() / 4);
    std::vector<LoopPiece> pieces = plan_loops(pass_.sizes, e_.vars(), walk,
                                               {.lanes = sums_.own_lanes,
                                                .max_lanes = kInFlight * lanes,
                                                .in_order = in_order,
                                                .outer_lane = outer_lane(),
                                                .pairs = !sums_.running});
    const int native = std::max(1, e_.vector_bytes() / std::max(widest, 1));
    // Running sums within a vector double how far they reach, step by step.
    for (LoopPiece& p : pieces) p.operations += sums_.running ? 2 * std::bit_width(static_cast<unsigned>(native)) : 0;
    const int wide = sums_.running ? native : native * vectors_of_members(operations, places);
    if (along_rows_) group(pieces, operations > kFewOperations ? kGroup / 2 : kGroup, in_order);
    if (!in_order && outer_lanes_ > 1) pages_side_by_side(pieces);
    for (LoopPiece& p : pieces) write_out_numbers(p);
    for (LoopPiece& p : pieces) {
      p.side_by_side = sums_.own_lanes && !sums_.running;
      parts_.push_back(part(std::move(p), wide, native, reorder));
    }

    std::vector<int> counts;
    for (const Part& p : parts_) {
      for (int w : p.widths.widths) {
        if (std::find(counts.begin(), counts.end(), w) == counts.end()) counts.push_back(w);
      }
    }
    std::sort(counts.rbegin(), counts.rend());
    if (sums_.running) counts.resize(1);  // what is carried is one value, whatever the lanes
    sums_.use_widths(counts);
  }

  /// Elements of rows in groups. (What is left of each row comes after all rows, which is another order.)
  void group(std::vector<LoopPiece>& pieces, int64_t count, bool in_order) {
    std::vector<LoopPiece> grouped;
    for (LoopPiece& p : pieces) {
      const bool whole = p.loops.size() < 2 || p.loops.back().extent % count == 0;
      if (in_order && !whole)
        grouped.push_back(std::move(p));
      else
        std::ranges::move(in_groups(std::move(p), count, e_.vars()), std::back_inserter(grouped));
    }
    pieces = std::move(grouped);
  }

  /// Few steps that are counted with: each has its number as a constant. (Bits of 1024x65, each shifted to where it is
  /// in its byte: 2.4 us in a loop, 1.2 written out.)
  void write_out_numbers(LoopPiece& p) {
    constexpr int64_t kMostOperations = 160;
    if (p.has_lanes || p.loops.empty()) return;
    LoopDigit& steps = p.loops.back();
    if (steps.clip || steps.extent * p.operations > kMostOperations) return;
    AccessWalk w(e_.vars());
    walk_element(w, p.coords);
    auto numbers = [&](const Access& a) { return a.bytes == 0 && a.address.depends_on(steps.var); };
    if (std::ranges::any_of(w.accesses(), numbers)) steps.written = Written::kOut;
  }

  /// Columns of tiles: rows of several of them, a page each, side by side.
  void pages_side_by_side(std::vector<LoopPiece>& pieces) {
    std::vector<LoopPiece> all;
    for (LoopPiece& p : pieces) {
      if (!within_pages(p)) {
        all.push_back(std::move(p));
        continue;
      }
      std::ranges::rotate(p.loops, p.loops.begin() + 1);
      for (LoopPiece& part : in_groups(std::move(p), kPages, e_.vars())) {
        if (part.loops.back().extent == kPages)
          std::rotate(part.loops.begin(), part.loops.end() - 2, part.loops.end() - 1);
        all.push_back(std::move(part));
      }
    }
    pieces = std::move(all);
  }

  /// The outermost of two loops goes from page to page, the other stays within one.
  bool within_pages(const LoopPiece& p) {
    if (p.has_lanes || p.loops.size() != 2 || p.loops[0].extent < kPages) return false;
    if (p.loops[0].clip || p.loops[1].clip) return false;
    AccessWalk w(e_.vars());
    walk_element(w, p.coords);
    return std::ranges::any_of(w.accesses(), [&](const Access& a) {
      const int64_t outer = a.address.coefficient(p.loops[0].var).value_or(0);
      const int64_t inner = a.address.coefficient(p.loops[1].var).value_or(0);
      return outer * a.bytes >= kPage && inner > 0 && inner * a.bytes * p.loops[1].extent <= kPage;
    });
  }

  /// Of accumulators a member, so that they leave a quarter of the registers.
  int vectors_of_members(int operations, int places) const {
    if (pass_.members.empty()) return vectors_in_flight(operations, places, e_.options().target_info());
    const auto registers = static_cast<unsigned>(e_.options().target_info().vector_registers);
    const unsigned each = 3 * registers / 4 / static_cast<unsigned>(pass_.members.size());
    return std::clamp(static_cast<int>(std::bit_floor(each)), 1, kInFlight);
  }

  /// The lanes are short rows, and their elements follow each other: ElementEmitter::load_rows takes several at once.
  bool reads_along_rows(const AccessWalk& w, const Coords& inner) const {
    const int lane = outer_lane();
    if (lane < 0 || inner.empty() || inner.back().variables().size() != 1) return false;
    const int last = inner.back().variables()[0];
    return std::ranges::any_of(w.accesses(), [&](const Access& a) {
      if (a.write || a.bytes < 2 || a.address.coefficient(last) != 1) return false;
      auto across = a.address.coefficient(lane);
      return (across && *across > kFewStrides) || looks_up(a, lane);
    });
  }

  /// What is read and written at an element.
  void walk_element(AccessWalk& w, const Coords& inner) {
    if (pass_.with_accesses) pass_.with_accesses(w, inner);
    for (const Pass::Member& m : pass_.members) {
      if (sums_.running)
        w.read(m.instruction->operand(0), pass_.running(inner));
      else
        w.follow(m.instruction, access_relation(*m.instruction, m.coords, inner, e_.vars()));
    }
  }

  Part part(LoopPiece loops, int wide, int native, bool reorder) {
    Part p{std::move(loops), {}, {}};
    // What counts twice has to be left out of a vector that is moved back. Where nothing does, a narrower one is only
    // one more to combine at the end. (Viterbi's best of six, one core of a Zen 4: 12.8 us by 4 and 2, 8.9 by 4 and 4.)
    const Last last = pass_.members.empty() || sums_.sums() ? Last::kShortRows : Last::kAsOthers;
    auto set_widths = [&](int lanes) {
      p.widths = lane_widths(p.loops, lanes, native, pass_.overlap && !sums_.running, last);
    };
    set_widths(wide);
    // A row at a time has all registers, where each would wait for its one vector of sums.
    if (wide == native && in_turn(p, 0, pass_.members.size())) {
      set_widths(kInFlight * native);
      if (!in_turn(p, 0, pass_.members.size())) set_widths(wide);
    }
    if (reorder && sums_.sums()) p.levels.cuts = cut_chains(p.loops, p.widths.widths[0], kChain, e_.vars());
    if (!p.levels.cuts.empty()) p.widths = lane_widths(p.loops, p.widths.widths[0], native, pass_.overlap, last);
    p.widths.twice = sums_.idempotent();
    p.levels.fresh = [this](Scope& s) { return sums_.start(s); };
    p.levels.add = [this](Scope& s, const Carry& total, const Carry& more) { return sums_.add(s, total, more); };
    return p;
  }

  /// Where some guard fails each step has a branch, and each member its own: more than a few are not written out. (A
  /// depthwise convolution by 7x7 of 14x14 images, one core of a Zen 4: compiled in 11.8 ms, 7.0 so. By 3x3 of such as
  /// are border mostly took 1.3 of the time so, by 5x5 and 7x7 as long as written out.)
  void keep_long_loops() {
    constexpr int64_t kFewBranches = 4;
    for (Part& p : parts_) {
      for (LoopDigit& loop : p.loops.loops) {
        if (loop.extent > kFewBranches) loop.written = Written::kAsLoop;
      }
    }
  }

  /// All members, each for itself where some guard fails: few of a block's have a part beyond the border, and what is
  /// skipped for one is not for another.
  Carry sum_up(bool inside) {
    const size_t count = pass_.members.size();
    if (inside || pass_.with || sums_.running) return sum_up(sums_.start(at_), 0, count, inside);
    Carry carried = sums_.start(at_);
    for (size_t m = 0; m < count; ++m) carried = sum_up(std::move(carried), m, m + 1, inside);
    return carried;
  }

  /// Members from `first` to `end`: all loops, one after the other. `inside`: no guard fails.
  Carry sum_up(Carry carried, size_t first, size_t end, bool inside) {
    for (const Part& p : parts_) {
      auto body = [&](Scope& s, const Coords& inner, const Lanes& lanes, const Carry& in) {
        return sums_.running ? running_element(s, inner, lanes, in)
                             : elements(s, inner, lanes, in, {first, end}, inside);
      };
      carried = in_turn(p, first, end) ? sum_in_turn(p, std::move(carried), first, end, inside)
                                       : e_.loops(at_, p.loops, 0, p.widths, carried, body, &p.levels);
    }
    return carried;
  }

  /// Members are rows of a tile, of a few vectors each: all of one row are read before the next, for they lie in that
  /// order. (Sums of the rows of 4096x4096 floats in T(8,128), 67 MB: 2.9 ms by a vector of each, 2.2 so.)
  bool in_turn(const Part& p, size_t first, size_t end) {
    if (end - first < 2 || pass_.with || sums_.running || !p.loops.has_lanes || p.loops.loops.size() < 2) return false;
    const LoopDigit& lane = p.loops.loops.back();
    const int64_t width = p.widths.widths[0], vectors = lane.extent / width;
    if (lane.clip || lane.steps || lane.extent % width != 0 || vectors < 2 || vectors > kInTurn) return false;
    AccessWalk w(e_.vars());
    walk_element(w, p.loops.coords);
    return std::ranges::all_of(w.accesses(), [&](const Access& a) {
      auto step = a.address.coefficient(lane.var);
      return step && (*step == 0 || *step == 1);
    });
  }

  Carry sum_in_turn(const Part& p, Carry carried, size_t first, size_t end, bool inside) {
    LoopPiece outer = p.loops, along;
    along.loops = {outer.loops.back()};
    along.has_lanes = true;
    along.pairs = outer.pairs;
    along.operations = outer.operations / static_cast<int>(end - first);
    outer.loops.pop_back();
    outer.has_lanes = false;
    outer.operations *= kInTurn;
    auto rows = [&](Scope& s, const Coords& coords, const Lanes&, const Carry& in) {
      Carry now = in;
      along.coords = coords;
      for (size_t m = first, next = first; m < end; m = next) {
        while (next < end && pass_.members[next].coords == pass_.members[m].coords) ++next;
        now = e_.loops(s, along, 0, p.widths, now,
                       [&](Scope& at, const Coords& inner, const Lanes& lanes, const Carry& before) {
                         return elements(at, inner, lanes, before, {m, next}, inside);
                       });
      }
      return now;
    };
    return e_.loops(at_, outer, 0, {{1}}, std::move(carried), rows, &p.levels);
  }

  Carry running_element(Scope& s, const Coords& inner, const Lanes& lanes, const Carry& in) {
    std::vector<std::vector<Value>> values(pass_.members.size()), results;
    Coords element = pass_.running(inner);
    for (size_t m = 0; m < values.size(); ++m) {
      values[m] = {e_.emit(pass_.members[m].instruction->operand(0), element, s)};
      for (Value& v : values[m]) v = splat(s.builder, v, std::max(lanes.count, outer_lanes_));
    }
    Carry next = sums_.run(s, in, lanes.count, values, results);
    for (size_t m = 0; m < values.size(); ++m) {
      s.reductions[pass_.members[m].instruction].emplace_back(element, results[m]);
    }
    pass_.with(s, inner);
    return next;
  }

  Carry elements(Scope& s, const Coords& inner, const Lanes& lanes, Carry carried, std::pair<size_t, size_t> members,
                 bool inside) {
    const bool before = std::exchange(e_.in_groups_, along_rows_);
    for (size_t m = members.first; m < members.second; ++m) {
      const Pass::Member& member = pass_.members[m];
      AccessRelation relation = access_relation(*member.instruction, member.coords, inner, e_.vars());
      std::vector<Guard> guards;
      for (const Read& r : relation.reads) {
        if (!inside) guards.insert(guards.end(), r.guards.begin(), r.guards.end());
      }
      auto add = [&](llvm::Value* counts) {
        std::vector<Value> values;
        auto operands = [&] { values = sums_.reducer(m).operands(e_, s, *member.instruction, relation); };
        e_.where(guards, [&] { e_.under(counts, operands); });
        for (Value& v : values) v = splat(s.builder, v, lanes.count > 1 ? lanes.count : outer_lanes_);
        return sums_.step(s, carried, lanes, m, values, counts);
      };
      llvm::Value* counts = e_.holds(guards, s);
      // What all lanes leave out is skipped: a window's rows and columns beyond the border.
      if (counts && !counts->getType()->isVectorTy())
        carried =
            branch(s, counts, [&] { return e_.on_way(s, [&] { return add(nullptr); }); }, [&] { return carried; });
      else
        carried = add(counts);
    }
    if (pass_.with) pass_.with(s, inner);
    e_.in_groups_ = before;
    return carried;
  }

  /// Whether no guard can fail at any element, for all lanes: null if none ever does, nullopt if that is not to
  /// be told beforehand.
  std::optional<llvm::Value*> guards_hold() {
    std::vector<int> inner;
    Coords elements;
    for (int64_t n : pass_.sizes) {
      inner.push_back(e_.vars().fresh());
      elements.push_back(IndexExpr::var(inner.back(), n));
    }
    std::vector<Guard> all;
    for (const Pass::Member& m : pass_.members) {
      for (const Read& r : access_relation(*m.instruction, m.coords, elements, e_.vars()).reads) {
        for (const Guard& g : r.guards) {
          std::vector<int> varying = inner;
          if (int lane = e_.lane_var(g.expr); lane >= 0) varying.push_back(lane);
          auto outer = e_.vector_bound(g.expr) ? std::nullopt : for_all(g, varying);
          if (!outer) return std::nullopt;
          all.push_back(*outer);
        }
      }
    }
    return e_.holds(all, at_);
  }

  ElementEmitter& e_;
  const Pass& pass_;
  Scope& at_;
  int outer_lanes_;
  Accumulators sums_;
  std::vector<Part> parts_;
  bool along_rows_ = false;
};

void ElementEmitter::run_pass(const Pass& pass, Scope& at) { PassRun(*this, pass, at).run(); }

}  // namespace hlojit::codegen
