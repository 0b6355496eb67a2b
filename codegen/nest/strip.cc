// See strip.h.
#include "codegen/nest/strip.h"

#include "codegen/nest/accumulators.h"
#include "codegen/nest/loop_split.h"

namespace hlojit::codegen {
namespace {

// Groups of rows that one sum takes.
constexpr int64_t kGroups = 128;
// An accumulator is an element of at most so many bytes.
constexpr int64_t kWidest = 8;

/// The rows in groups, and in levels of so many groups.
struct Groups {
  LoopPiece piece;  ///< without the digit within a group
  LoopDigit within;
  std::vector<size_t> cuts;
};

std::vector<Groups> grouped(const LoopPiece& rows, int64_t together, VarSource& vars) {
  std::vector<Groups> all;
  for (LoopPiece& piece : in_groups(rows, together, vars)) {
    Groups g{std::move(piece), {}, {}};
    g.within = g.piece.loops.back();
    g.piece.loops.pop_back();
    g.cuts = cut_chains(g.piece, 1, kGroups, vars);
    all.push_back(std::move(g));
  }
  return all;
}

class StripRun {
 public:
  StripRun(ElementEmitter& e, const Strip& strip) : e_(e), strip_(strip), columns_(strip.columns) {
    // The number of a column within the strip goes along with its coordinates.
    const LoopDigit& lane = columns_.loops.back();
    count_ = lane.extent;
    columns_.coords.push_back(IndexExpr::var(lane.var, lane.extent));
  }

  int64_t run(Scope& at) {
    start(at, 0);
    int64_t level = 0;
    for (const Groups& g : grouped(strip_.rows.piece, strip_.rows_together, e_.vars())) {
      Cascade levels{g.cuts, {}, {}};
      levels.fresh = [&](Scope& s) {
        start(s, ++level);
        return ElementEmitter::Carried{};
      };
      levels.add = [&](Scope& s, const ElementEmitter::Carried&, const ElementEmitter::Carried&) {
        --level;
        each_column(s, [&](Scope& in, const Accumulators& sums, const Column& column) {
          const Carry total = load(in, sums, level, column), part = load(in, sums, level + 1, column);
          store(in, sums, level, column, sums.add(in, total, part));
        });
        return ElementEmitter::Carried{};
      };
      e_.loops(
          at, g.piece, 0, {{1}}, {},
          [&](Scope& s, const Coords& rows, const Lanes&, const ElementEmitter::Carried&) {
            add_group(s, rows, g.within, level);
            return ElementEmitter::Carried{};
          },
          &levels);
    }
    finish(at);
    return used_;
  }

 private:
  using Carry = Accumulators::Carry;
  struct Column {
    Coords at;
    Pass pass;
    IndexExpr number;  ///< within the strip
  };
  using OfColumn = std::function<void(Scope&, const Accumulators&, const Column&)>;

  void each_column(Scope& s, const OfColumn& body) {
    e_.loops(s, columns_, columns_.loops.size() - 1, strip_.widths, {},
             [&](Scope& in, const Coords& at, const Lanes& lanes, const ElementEmitter::Carried&) {
               const Coords coords(at.begin(), at.end() - 1);
               const Pass pass = strip_.pass(coords);
               Accumulators sums(e_, e_.root(), in, pass.members, lanes.count, false, true);
               sums.use_widths({1});
               body(in, sums, {coords, pass, at.back()});
               return ElementEmitter::Carried{};
             });
  }

  void start(Scope& s, int64_t level) {
    each_column(s, [&](Scope& in, const Accumulators& sums, const Column& column) {
      store(in, sums, level, column, sums.start(in));
    });
  }

  // The sum of a group is made in registers. What does not round goes on from where the last group left it: an argmax
  // must meet its elements in order.
  void add_group(Scope& s, const Coords& rows, const LoopDigit& within, int64_t level) {
    each_column(s, [&](Scope& in, const Accumulators& sums, const Column& column) {
      const Carry total = load(in, sums, level, column);
      Carry part = sums.sums() ? sums.start(in) : total;
      for (int64_t n = 0; n < within.extent; ++n) {
        const Coords row = substitute(rows, within.var, IndexExpr(n));
        for (size_t m = 0; m < column.pass.members.size(); ++m)
          part = step(in, sums, column.pass.members[m], m, row, part);
        if (strip_.looks_down)
          look_down(in, column.pass, substitute(rows, within.var, IndexExpr(n + strip_.rows_together)));
      }
      store(in, sums, level, column, sums.sums() ? sums.add(in, total, part) : part);
    });
  }

  // What the pass reads of a row of the next group. (4096x4096 floats: one core of a Zen 4 2.6 ms without, 2.0 so, two
  // 1.10 and 0.81. From the last cache, 2048x2048, it would take 1.08 of the time.)
  void look_down(Scope& s, const Pass& pass, const Coords& row) {
    AccessWalk w(e_.vars());
    for (const Pass::Member& m : pass.members)
      w.follow(m.instruction, access_relation(*m.instruction, m.coords, row, e_.vars()));
    for (const Access& a : w.accesses()) {
      if (a.parameter) e_.prefetch(s, a);
    }
  }

  Carry step(Scope& s, const Accumulators& sums, const Pass::Member& member, size_t m, const Coords& row,
             const Carry& carried) {
    const AccessRelation relation = access_relation(*member.instruction, member.coords, row, e_.vars());
    std::vector<Value> values = sums.reducer(m).operands(e_, s, *member.instruction, relation);
    for (Value& v : values) v = splat(s.builder, v, sums.lanes());
    return sums.step(s, carried, Lanes{}, m, values, nullptr);
  }

  void finish(Scope& at) {
    each_column(at, [&](Scope& in, const Accumulators& sums, const Column& column) {
      const Carry total = load(in, sums, 0, column);
      for (size_t m = 0; m < column.pass.members.size(); ++m) {
        const Pass::Member& member = column.pass.members[m];
        in.reductions[member.instruction].emplace_back(member.coords, sums.finish(in, total, m));
      }
      strip_.with_the_sums(in, column.at);
    });
  }

  BufferRef buffer(Scope& s, size_t types, int64_t level, size_t k) {
    const int64_t bytes = count_ * kWidest;
    const int64_t place = (level * static_cast<int64_t>(types) + static_cast<int64_t>(k)) * bytes;
    used_ = std::max(used_, place + bytes);
    llvm::IRBuilder<>& b = s.builder;
    return {b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), strip_.memory, static_cast<uint64_t>(place))};
  }

  Carry load(Scope& s, const Accumulators& sums, int64_t level, const Column& column) {
    Carry carried;
    const std::vector<DType> types = sums.types();
    for (size_t k = 0; k < types.size(); ++k)
      carried.push_back(e_.load(s, buffer(s, types.size(), level, k), types[k], column.number).v);
    return carried;
  }

  void store(Scope& s, const Accumulators& sums, int64_t level, const Column& column, const Carry& carried) {
    const std::vector<DType> types = sums.types();
    for (size_t k = 0; k < types.size(); ++k)
      e_.store(s, buffer(s, types.size(), level, k), column.number, {types[k], carried[k]});
  }

  ElementEmitter& e_;
  const Strip& strip_;
  LoopPiece columns_;
  int64_t count_ = 0;  // columns
  int64_t used_ = 0;   // bytes
};

}  // namespace

std::optional<StripRows> strip_rows(const Pass& pass, int lane, VarSource& vars) {
  auto walk = [&](AccessWalk& w, const Coords& row) {
    for (const Pass::Member& m : pass.members)
      w.follow(m.instruction, access_relation(*m.instruction, m.coords, row, vars));
  };
  std::vector<LoopPiece> pieces = plan_loops(pass.sizes, vars, walk, {.lanes = false, .in_order = true});
  if (pieces.size() != 1 || pieces[0].loops.size() != 1 || pieces[0].loops[0].clip) return std::nullopt;
  AccessWalk w(vars);
  walk(w, pieces[0].coords);
  if (!w.edges().empty()) return std::nullopt;
  StripRows rows{std::move(pieces[0]), 0, 0, w.operations()};
  for (const Access& a : w.accesses()) {
    auto along = a.address.coefficient(lane), down = a.address.coefficient(rows.piece.loops[0].var);
    if (!along || !down || *along > 1) return std::nullopt;
    if (*along == 0 || a.bytes * *down <= rows.step) continue;
    rows.step = a.bytes * *down;
    rows.bytes = a.bytes;
  }
  return rows;
}

int64_t emit_strip(ElementEmitter& e, Scope& at, const Strip& strip) { return StripRun(e, strip).run(at); }

}  // namespace hlojit::codegen
