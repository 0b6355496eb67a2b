// See loop_plan.h. Candidates (ways to cut the domain) are made piece by piece; lanes go to the digit that the
// larger part of the traffic has at stride 1.
#include "codegen/nest/loop_plan.h"

#include <algorithm>
#include <bit>

#include "layout/lists.h"
#include "layout/tiling.h"

namespace hlojit::codegen {
namespace {

using Values = std::vector<std::optional<IndexExpr>>;

// Sets values[id], growing the table.
void assign(Values& values, int id, IndexExpr e) {
  if (values.size() <= static_cast<size_t>(id)) values.resize(static_cast<size_t>(id) + 1);
  values[static_cast<size_t>(id)] = std::move(e);
}

struct Candidate {
  std::vector<LoopDigit> loops;
  Coords coords;
  std::vector<Access> accesses;
};

// One digit a loop, dimension by dimension, outermost digit first.
Candidate digits_of(std::span<const DimPiece* const> pieces, std::span<const int> dim_vars,
                    const std::vector<Access>& accesses, VarSource& vars) {
  Candidate c;
  Values values;
  for (size_t d = 0; d < pieces.size(); ++d) {
    const DimPiece& piece = *pieces[d];
    IndexExpr sum(piece.start);
    for (const Digit& digit : piece.digits) {
      LoopDigit loop{vars.fresh(), digit.extent, std::nullopt, std::nullopt};
      if (digit.clipped) loop.clip = Clip{sum, piece.limit, digit.stride, 1};
      sum = sum + IndexExpr::var(loop.var, digit.extent) * digit.stride;
      if (digit.extent > 1 || digit.clipped)
        c.loops.push_back(loop);
      else
        assign(values, loop.var, IndexExpr(0));
    }
    assign(values, dim_vars[d], sum);
    c.coords.push_back(sum);
  }
  // Digits of extent 1 vanish from sums, then sums replace the dimensions' variables.
  for (LoopDigit& l : c.loops) {
    if (l.clip) l.clip->so_far = l.clip->so_far.substitute(values);
  }
  for (IndexExpr& e : c.coords) e = e.substitute(values);
  for (size_t d = 0; d < pieces.size(); ++d) values[static_cast<size_t>(dim_vars[d])] = c.coords[d];
  for (const Access& a : accesses) {
    Access b = a;
    b.address = a.address.substitute(values);
    c.accesses.push_back(std::move(b));
  }
  return c;
}

int64_t stride_of(const Access& a, int var) { return a.address.coefficient(var).value_or(INT64_MAX); }

// Outer and inner are one loop if every address advances evenly across their border.
bool mergeable(const Candidate& c, const LoopDigit& outer, const LoopDigit& inner) {
  if (inner.clip || inner.steps || outer.steps) return false;
  for (const LoopDigit& l : c.loops) {
    if (l.clip && (l.clip->so_far.depends_on(outer.var) || l.clip->so_far.depends_on(inner.var))) return false;
  }
  for (const Access& a : c.accesses) {
    auto o = a.address.coefficient(outer.var);
    auto i = a.address.coefficient(inner.var);
    if (!o || !i || *o != *i * inner.extent) return false;
  }
  return true;
}

void substitute_all(Candidate& c, const Values& values) {
  for (Access& a : c.accesses) a.address = a.address.substitute(values);
  for (IndexExpr& e : c.coords) e = e.substitute(values);
  for (LoopDigit& l : c.loops) {
    if (l.clip) l.clip->so_far = l.clip->so_far.substitute(values);
    if (l.steps) l.steps->first = l.steps->first.substitute(values);
  }
}

void merge_digits(Candidate& c, VarSource& vars) {
  for (size_t k = 0; k + 1 < c.loops.size();) {
    LoopDigit outer = c.loops[k], inner = c.loops[k + 1];
    if (!mergeable(c, outer, inner)) {
      ++k;
      continue;
    }
    LoopDigit merged{vars.fresh(), outer.extent * inner.extent, outer.clip, std::nullopt};
    if (merged.clip) merged.clip->factor *= inner.extent;
    IndexExpr m = IndexExpr::var(merged.var, merged.extent);
    Values values;
    assign(values, outer.var, floordiv(m, inner.extent));
    assign(values, inner.var, mod(m, inner.extent));
    c.loops[k] = merged;
    c.loops.erase(c.loops.begin() + static_cast<std::ptrdiff_t>(k) + 1);
    substitute_all(c, values);
    if (k > 0) --k;
  }
}

// The access whose memory order decides the loop order: the first write, else the widest read.
const Access* leader(const Candidate& c) {
  const Access* best = nullptr;
  for (const Access& a : c.accesses) {
    if (a.write) return &a;
    if (a.bytes == 0 || a.random) continue;
    if (!best || a.address.range().hi > best->address.range().hi) best = &a;
  }
  return best;
}

bool clip_needs(const LoopDigit& inner, const LoopDigit& outer) {
  return inner.clip && inner.clip->so_far.depends_on(outer.var);
}

void order_loops(Candidate& c) {
  const Access* lead = leader(c);
  if (!lead) return;
  auto weight = [&](const LoopDigit& l) {
    int64_t s = stride_of(*lead, l.var);
    return s == INT64_MAX ? s : s < 0 ? -s : s;
  };
  std::stable_sort(c.loops.begin(), c.loops.end(),
                   [&](const LoopDigit& a, const LoopDigit& b) { return weight(a) > weight(b); });
  // A clipped digit stays inside the digits its trip count depends on.
  for (size_t k = 0; k < c.loops.size(); ++k) {
    for (size_t j = k + 1; j < c.loops.size(); ++j) {
      if (!clip_needs(c.loops[k], c.loops[j])) continue;
      std::rotate(c.loops.begin() + static_cast<std::ptrdiff_t>(k), c.loops.begin() + static_cast<std::ptrdiff_t>(j),
                  c.loops.begin() + static_cast<std::ptrdiff_t>(j) + 1);
      k = static_cast<size_t>(-1);
      break;
    }
  }
}

// The write fills memory without gaps if steps along `l` alternate with a short digit of its own: the
// vectors of that digit's values are interleaved in registers (the two words of a random block).
bool interleaves(const Candidate& c, const Access& write, int64_t stride, int block) {
  return std::any_of(c.loops.begin(), c.loops.end(), [&](const LoopDigit& o) {
    return o.extent == stride && !o.clip && stride <= block && write.address.coefficient(o.var) == 1;
  });
}

// Bytes a vector step along the digit moves cheaply: contiguous all, small strides some, a splat a little. `block`:
// how many values of another digit may be handled together.
double lane_score(const Candidate& c, const LoopDigit& l, int max_lanes, int block) {
  double score = 0;
  for (const Access& a : c.accesses) {
    if (a.bytes == 0) continue;
    auto s = a.address.coefficient(l.var);
    double weight = a.bytes * (a.write ? 1.5 : 1.0);
    if (!s)
      score -= 0.2 * weight;
    else if (*s == 1)
      score += weight;
    else if (*s == -1)
      score += 0.8 * weight;
    else if (*s == 0)
      score += 0.1 * weight;
    else if (*s > 1 && *s * a.bytes <= 8)
      score += (a.write ? 0.2 : 0.6) * weight;  // groups, or blocks
    else if (!a.write && std::abs(*s) <= kFewStrides)
      score += 0.5 * weight;  // whole vectors, shuffled
    else if (a.write && *s > 1 && interleaves(c, a, *s, block))
      score += 0.8 * weight;
  }
  double fill = std::min<double>(1.0, static_cast<double>(lanes_for(l.extent, max_lanes)) / max_lanes);
  return score * fill;
}

// Is some other clip's so_far dependent on this digit? Then it cannot be innermost.
bool can_be_innermost(const Candidate& c, const LoopDigit& l) {
  return std::none_of(c.loops.begin(), c.loops.end(),
                      [&](const LoopDigit& o) { return o.var != l.var && clip_needs(o, l); });
}

// Picks the lane digit and moves it innermost.
bool choose_lanes(Candidate& c, int max_lanes, int block, bool in_order) {
  double best = 0;
  size_t at = c.loops.size();
  for (size_t k = 0; k < c.loops.size(); ++k) {
    if (c.loops[k].extent < 2 || !can_be_innermost(c, c.loops[k])) continue;
    if (in_order && k + 1 != c.loops.size()) continue;
    double s = lane_score(c, c.loops[k], max_lanes, block);
    if (s > best || (s == best && s > 0)) best = s, at = k;
  }
  if (at == c.loops.size()) return false;
  LoopDigit lane = c.loops[at];
  c.loops.erase(c.loops.begin() + static_cast<std::ptrdiff_t>(at));
  c.loops.push_back(lane);
  return true;
}

// Do elements of a vector have to be moved one by one? Beside many operations writes a few elements apart do not count:
// swish of an odd number of rows in T(8,128)(2,1) takes 1.6 times as long by single vectors.
bool lie_apart(const Candidate& c, int operations) {
  constexpr int kMany = 8;
  const int64_t writes = operations > kMany ? kFewStrides : 1;
  return std::ranges::any_of(c.accesses, [&](const Access& a) {
    std::optional<int64_t> s = a.address.coefficient(c.loops.back().var);
    return a.bytes > 0 && (!s || std::abs(*s) > (a.write ? writes : kFewStrides));
  });
}

// Some operand strides along the lanes but is contiguous along another digit: block it.
void choose_unroll(Candidate& c, int block, bool overlap, VarSource& vars, Unroll& unroll) {
  const LoopDigit lane = c.loops.back();
  int chosen = -1;
  for (const Access& a : c.accesses) {
    if (a.bytes == 0 || a.random) continue;
    auto s = a.address.coefficient(lane.var);
    if (!s || *s == 0 || *s == 1 || *s == -1) continue;
    for (size_t k = 0; k + 1 < c.loops.size(); ++k) {
      const LoopDigit& l = c.loops[k];
      // Squares are transposed; what fills memory without gaps may be of any count.
      bool fits = std::has_single_bit(static_cast<uint64_t>(std::min<int64_t>(l.extent, block))) ||
                  (a.write && *s == l.extent && l.extent <= block);
      bool usable = !l.clip && !l.steps && can_be_innermost(c, l) && fits &&
                    (l.extent % block == 0 || l.extent < block || overlap);
      if (usable && a.address.coefficient(l.var) == 1) chosen = static_cast<int>(k);
    }
    if (chosen >= 0) break;
  }
  if (chosen < 0) return;
  LoopDigit digit = c.loops[static_cast<size_t>(chosen)];
  c.loops.erase(c.loops.begin() + chosen);
  int64_t count = std::min<int64_t>(digit.extent, block);
  int inside = vars.fresh();
  IndexExpr value = IndexExpr::var(inside, count);
  if (digit.extent % count != 0) {
    LoopDigit blocks{vars.fresh(), (digit.extent + count - 1) / count, std::nullopt,
                     Steps{IndexExpr(0), count, digit.extent - count}};
    value = value + IndexExpr::var(blocks.var, Range{0, digit.extent - count});
    c.loops.insert(c.loops.begin() + chosen, blocks);
  } else if (digit.extent > count) {
    LoopDigit blocks{vars.fresh(), digit.extent / count, std::nullopt, std::nullopt};
    value = value + IndexExpr::var(blocks.var, blocks.extent) * count;
    c.loops.insert(c.loops.begin() + chosen, blocks);
  }
  Values values;
  assign(values, digit.var, value);
  substitute_all(c, values);
  unroll = {inside, count};
}

// Scalar loops: a small digit along which some operand is contiguous (the rows of a bf16 pair) is handled
// as a block, so that its elements can be stored together.
void choose_group(Candidate& c, Unroll& unroll) {
  for (size_t k = 0; k < c.loops.size(); ++k) {
    const LoopDigit l = c.loops[k];
    if (l.clip || (l.extent != 2 && l.extent != 4) || !can_be_innermost(c, l)) continue;
    bool contiguous = std::any_of(c.accesses.begin(), c.accesses.end(), [&](const Access& a) {
      return a.bytes > 0 && a.bytes * l.extent <= 4 && a.address.coefficient(l.var) == 1;
    });
    if (!contiguous) continue;
    unroll = {l.var, l.extent};
    c.loops.erase(c.loops.begin() + static_cast<std::ptrdiff_t>(k));
    return;
  }
}

// From which value of a variable on (or up to which) a guard holds whatever the rest of its expression is.
int64_t inside_edge(const Edge& e, const IndexExpr& variable, int64_t coefficient) {
  Range rest = (e.expr - variable * coefficient).range();
  int64_t room = e.upper ? e.bound - rest.hi : e.bound - rest.lo;
  return (room + coefficient - 1) / coefficient;
}

// Loads or stores that an access makes for 8 lanes of words: vectors of wide elements are several, and lanes that
// lie apart are taken one by one, narrow ones more of them. (Counted as one, 72 gathers of c128 were written out, and
// took LLVM 21 s; counted as 8, 50 of 32 bytes 0.6 s.)
// Under a guard whole vectors are read only where the lanes lie side by side.
int operations_of(const Access& a, const LoopPiece& piece, int outer_lane, bool guarded) {
  const int words = std::max(1, a.bytes / 4), lane = piece.has_lanes ? piece.loops.back().var : outer_lane;
  if (lane < 0 || piece.unroll.var >= 0 || a.bytes == 0) return words;
  auto stride = a.address.coefficient(lane);
  return stride && std::abs(*stride) <= (guarded ? 1 : kFewStrides) ? words : std::max({words, 8, 32 / a.bytes});
}

}  // namespace

int lanes_for(int64_t extent, int max_lanes) {
  int lanes = 1;
  while (2 * lanes <= max_lanes && 2 * lanes <= extent) lanes *= 2;
  return lanes;
}

namespace {

/// Cuts every dimension where accesses change their form, and plans loops for each product of pieces.
class LoopPlanner {
  // (A reshape that nested in none of three dims became 576 nests, which took LLVM 2 s.)
  static constexpr int64_t kMostPieces = 32;

 public:
  using Walk = std::function<void(AccessWalk&, const Coords&)>;

  LoopPlanner(std::span<const int64_t> dims, VarSource& vars, const LoopPlanOptions& options)
      : dims_(dims), vars_(vars), options_(options), accesses_(vars) {}

  std::vector<LoopPiece> run(const Walk& walk) {
    Coords coords;
    for (int64_t n : dims_) {
      dim_vars_.push_back(vars_.fresh());
      coords.push_back(IndexExpr::var(dim_vars_.back(), n));
    }
    walk(accesses_, coords);
    if (auto run = one_run(walk)) return std::move(*run);
    cuts_.resize(dims_.size());
    for (;; max_runs_ /= 2) {
      for (size_t d = 0; d < dims_.size(); ++d) cuts_[d] = cut(d, false);
      if (piece_count() <= kMostPieces) {
        all_pieces();
        if (operations() <= most_operations()) break;
      }
      if (max_runs_ == 1) break;
    }
    if (result_.empty()) all_pieces();
    if (cut_at_windows()) all_pieces();
    return std::move(result_);
  }

 private:
  // Through reshapes whose dims do not nest, elements may still follow one another in every operand: all addresses are
  // then affine in the number of the element. (f32[2,13,3,3,4] as [18,2,26] became 1,100 instructions, dim by dim.)
  std::optional<std::vector<LoopPiece>> one_run(const Walk& walk) const {
    auto affine = [](const AccessWalk& w) {
      return std::ranges::all_of(w.accesses(), [](const Access& a) { return a.address.is_affine(); });
    };
    if (dims_.size() < 2 || options_.in_order || accesses_.has_reduction() || affine(accesses_)) return std::nullopt;
    const int64_t elements[] = {hlojit::product(dims_)};
    Walk numbered = [&](AccessWalk& w, const Coords& number) { walk(w, delinearize(dims_, number[0])); };
    AccessWalk accesses(vars_);
    numbered(accesses, {IndexExpr::var(vars_.fresh(), elements[0])});
    if (!affine(accesses) || !accesses.edges().empty()) return std::nullopt;
    std::vector<LoopPiece> pieces = LoopPlanner(elements, vars_, options_).run(numbered);
    for (LoopPiece& p : pieces) p.coords = delinearize(dims_, p.coords[0]);
    return pieces;
  }

  // A short dim that lies innermost in the result, beside one long enough for the lanes: they will be stored
  // together as a block (see interleaves).
  bool alternates(size_t d) const {
    if (!options_.lanes || accesses_.has_reduction() || dims_[d] < 2 || dims_[d] > options_.unroll) return false;
    bool innermost = false;
    for (const Access& a : accesses_.accesses()) innermost |= a.write && a.address.coefficient(dim_vars_[d]) == 1;
    return innermost && std::any_of(dims_.begin(), dims_.end(), [&](int64_t n) { return n >= options_.max_lanes; });
  }

  // `windows`: also where the positions of a window end that are inside of an operand for all the window.
  DimCut cut(size_t d, bool windows) const {
    std::vector<Break> breaks;
    for (const Access& a : accesses_.accesses()) {
      for (const Break& b : breaks_of(a.address, dim_vars_[d])) {
        if (std::find(breaks.begin(), breaks.end(), b) == breaks.end()) breaks.push_back(b);
      }
    }
    // Pieces of an inner dimension would be met one after the other, which is another order, and so would be the
    // ends of all blocks of the outermost after their beginnings.
    if (options_.in_order)
      return cut_dimension(dims_[d], breaks, d > 0 ? std::vector<int64_t>{} : edges(d, windows), 1);
    // Values that alternate in the result are made side by side, not one after the other with gaps.
    std::vector<int64_t> at = alternates(d) ? std::vector<int64_t>{} : edges(d, windows);
    cut_periods(d, breaks, at);
    return cut_dimension(dims_[d], breaks, at, max_runs_);
  }

  // Every product of the dimensions' pieces is a nest of its own.
  int64_t piece_count() const {
    int64_t count = 1;
    for (const DimCut& c : cuts_) count *= std::ssize(c.pieces);
    return count;
  }
  int64_t operations() const {
    int64_t sum = 0;
    for (const LoopPiece& p : result_) sum += p.operations;
    return sum;
  }
  // The nests of a window stand in each of those of its results.
  int64_t most_operations() const { return options_.outer_lane >= 0 ? 200 : 3000; }

  // The result lies without gaps along a dim of which every few-th element is of another kind (padding between
  // elements): whole periods, which are put together in registers, are apart from what is left at the ends.
  void cut_periods(size_t d, std::span<const Break> breaks, std::vector<int64_t>& edges) const {
    if (!options_.lanes || accesses_.has_reduction()) return;
    bool innermost = std::ranges::any_of(
        accesses_.accesses(), [&](const Access& a) { return a.write && a.address.coefficient(dim_vars_[d]) == 1; });
    for (const Break& b : breaks) {
      if (!innermost || b.width < 2 || b.width > options_.unroll || b.within != 0 || b.moves) continue;
      int64_t first = mod(-b.offset, b.width);
      edges.push_back(first);
      edges.push_back(first + (dims_[d] - first) / b.width * b.width);
    }
  }

  std::vector<int64_t> edges(size_t d, bool windows) const {
    std::vector<int64_t> found;
    for (const Edge& e : accesses_.edges()) {
      auto c = e.expr.coefficient(dim_vars_[d]);
      bool alone = c && (*c == 1 || *c == -1) && e.expr.terms().size() == 1;
      int64_t at = 0;
      if (alone)
        at = *c == 1 ? e.bound - e.expr.constant() : e.expr.constant() - e.bound + 1;
      else if (windows && c && *c > 0)
        at = inside_edge(e, IndexExpr::var(dim_vars_[d], dims_[d]), *c);
      if (at > 0 && at < dims_[d]) found.push_back(at);
    }
    return found;
  }

  void all_pieces() {
    result_.clear();
    std::vector<const DimPiece*> chosen(dims_.size());
    product(0, chosen);
  }
  void product(size_t d, std::vector<const DimPiece*>& chosen) {
    if (d == dims_.size()) return result_.push_back(piece(chosen));
    for (const DimPiece& p : cuts_[d].pieces) chosen[d] = &p, product(d + 1, chosen);
  }

  LoopPiece piece(const std::vector<const DimPiece*>& chosen) {
    Candidate c = digits_of(chosen, dim_vars_, accesses_.accesses(), vars_);
    merge_digits(c, vars_);
    if (!options_.in_order) order_loops(c);
    merge_digits(c, vars_);  // neighbours may have become mergeable by the order
    LoopPiece made;
    int block = accesses_.has_reduction() ? 0 : options_.unroll;
    made.has_lanes = options_.lanes && choose_lanes(c, options_.max_lanes, block, options_.in_order);
    made.apart = made.has_lanes && lie_apart(c, accesses_.operations());
    if (made.has_lanes && block > 0) choose_unroll(c, block, options_.overlap, vars_, made.unroll);
    if (!options_.lanes && options_.unroll > 0) choose_group(c, made.unroll);
    made.loops = std::move(c.loops);
    made.coords = std::move(c.coords);
    made.operations = accesses_.operations() + static_cast<int>(accesses_.edges().size());
    for (const Access& a : c.accesses)
      made.operations += operations_of(a, made, options_.outer_lane, !accesses_.edges().empty());
    made.operations *= static_cast<int>(made.unroll.count);
    return made;
  }

  // Lanes along windows: all of a vector is inside where most vectors are. Whether there are more pieces now.
  bool cut_at_windows() {
    if (!accesses_.has_reduction() || options_.in_order || result_.empty() || !result_[0].has_lanes) return false;
    bool more = false;
    for (size_t d = 0; d < dims_.size(); ++d) {
      if (!result_[0].coords[d].depends_on(result_[0].loops.back().var)) continue;
      DimCut windows = cut(d, true);
      more |= windows.pieces.size() > cuts_[d].pieces.size();
      cuts_[d] = std::move(windows);
    }
    return more;
  }

  std::span<const int64_t> dims_;
  VarSource& vars_;
  const LoopPlanOptions& options_;
  AccessWalk accesses_;
  std::vector<int> dim_vars_;
  std::vector<DimCut> cuts_;
  int max_runs_ = 8;  // pieces of a dimension between two edges
  std::vector<LoopPiece> result_;
};

}  // namespace

std::vector<LoopPiece> plan_loops(std::span<const int64_t> dims, VarSource& vars,
                                  const std::function<void(AccessWalk&, const Coords&)>& walk,
                                  const LoopPlanOptions& options) {
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return {};
  return LoopPlanner(dims, vars, options).run(walk);
}

namespace {

void substitute_in(LoopPiece& piece, int var, const IndexExpr& value) {
  Values values;
  assign(values, var, value);
  for (IndexExpr& e : piece.coords) e = e.substitute(values);
  for (LoopDigit& l : piece.loops) {
    if (l.clip) l.clip->so_far = l.clip->so_far.substitute(values);
    if (l.steps) l.steps->first = l.steps->first.substitute(values);
  }
}

}  // namespace

LoopPiece at_step(const LoopPiece& piece, size_t k, int64_t step) {
  LoopPiece once = piece;
  substitute_in(once, piece.loops[k].var, IndexExpr(step));
  once.loops[k].extent = 1;
  return once;
}

std::vector<LoopPiece> in_groups(LoopPiece piece, int64_t count, VarSource& vars) {
  if (piece.loops.empty()) return {std::move(piece)};
  const LoopDigit loop = piece.loops.back();
  if (loop.clip || loop.steps) return {std::move(piece)};
  std::vector<LoopPiece> pieces;
  const int64_t groups = loop.extent / count, left = loop.extent % count;
  if (groups > 0) {
    LoopPiece most = piece;
    LoopDigit outer{vars.fresh(), groups, {}, {}}, inner{vars.fresh(), count, {}, {}, true};
    substitute_in(most, loop.var, IndexExpr::var(outer.var, groups) * count + IndexExpr::var(inner.var, count));
    most.loops.back() = outer;
    most.loops.push_back(inner);
    pieces.push_back(std::move(most));
  }
  if (left > 0) {
    LoopDigit rest{vars.fresh(), left, {}, {}, true};
    substitute_in(piece, loop.var, IndexExpr(groups * count) + IndexExpr::var(rest.var, left));
    piece.loops.back() = rest;
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

// Tasks of about 20 us balance well and cost less than a hundredth of their work to hand over. Where a region is too
// short for four of them, quarters of 8 us and halves of 5 still pay: the workers spin at the time. Equal tasks in a
// count that two and four threads share evenly.
int64_t chunks_for(int64_t ns) {
  constexpr int64_t kMost = 256;
  if (ns >= 4 * 20'000) return std::min(ns / (4 * 20'000) * 4, kMost);
  if (ns >= 4 * 8'000) return 4;
  return ns >= 2 * 5'000 ? 2 : 1;
}

size_t split_for_chunks(LoopPiece& piece, int64_t chunks, int64_t grain, VarSource& vars, bool overlap) {
  size_t taken = 0;
  int64_t have = 1;
  while (have < chunks && taken < piece.loops.size()) {
    LoopDigit& loop = piece.loops[taken];
    bool lane = piece.has_lanes && taken + 1 == piece.loops.size();
    int64_t want = (chunks + have - 1) / have;
    if (loop.extent <= want && !lane) {
      have *= loop.extent;
      ++taken;
      continue;
    }
    if (loop.clip) break;  // its trip count is not known here
    int64_t unit = lane ? grain : 1;
    int64_t per = (loop.extent / want + unit - 1) / unit * unit;
    if (per < unit) per = unit;
    // Equal parts, if there are some of about that size: then no part needs to know where the digit ends.
    for (int64_t even = per; even > per / 2 && even >= unit; even -= unit) {
      if (loop.extent % even != 0) continue;
      per = even;
      break;
    }
    int64_t parts = (loop.extent + per - 1) / per;
    if (parts < 2) break;
    LoopDigit outer{vars.fresh(), parts, std::nullopt, std::nullopt};
    LoopDigit inner{vars.fresh(), per, std::nullopt, std::nullopt};
    IndexExpr so_far = IndexExpr::var(outer.var, parts) * per;
    if (loop.extent % per != 0 && lane && overlap) {
      // The last part ends where the digit ends: all parts have the same code.
      outer.steps = Steps{IndexExpr(0), per, loop.extent - per};
      so_far = IndexExpr::var(outer.var, Range{0, loop.extent - per});
    } else if (loop.extent % per != 0) {
      inner.clip = Clip{so_far, loop.extent, 1, 1};
    }
    if (loop.steps) {
      // The variable keeps its meaning; only its counter starts further up.
      inner.var = loop.var;
      inner.steps = Steps{loop.steps->first + so_far, loop.steps->step, loop.steps->last};
    } else {
      substitute_in(piece, loop.var, so_far + IndexExpr::var(inner.var, per));
    }
    piece.loops[taken] = inner;
    piece.loops.insert(piece.loops.begin() + static_cast<std::ptrdiff_t>(taken), outer);
    ++taken;
    break;
  }
  return taken;
}

std::vector<size_t> cut_chains(LoopPiece& piece, int lanes, int64_t most, VarSource& vars) {
  std::vector<size_t> cuts;
  int64_t chain = 1;  // steps of one accumulator inside the last cut
  for (size_t k = piece.loops.size(); k-- > 0;) {
    const LoopDigit loop = piece.loops[k];
    int64_t unit = piece.has_lanes && k + 1 == piece.loops.size() ? lanes : 1;
    int64_t steps = (loop.extent + unit - 1) / unit;
    if (steps <= most / chain) {
      chain *= steps;
    } else if (steps <= most || loop.clip || loop.steps) {
      if (chain > 1) cuts.push_back(k + 1);
      chain = steps;
    } else {
      int64_t inside = std::max<int64_t>(1, most / chain);
      for (int64_t even = inside; even >= std::max<int64_t>(1, inside / 2); --even) {
        if (loop.extent % (even * unit) != 0) continue;
        inside = even;
        break;
      }
      int64_t per = inside * unit, parts = (loop.extent + per - 1) / per;
      LoopDigit outer{vars.fresh(), parts, std::nullopt, std::nullopt};
      LoopDigit inner{vars.fresh(), per, std::nullopt, std::nullopt};
      IndexExpr so_far = IndexExpr::var(outer.var, parts) * per;
      if (loop.extent % per != 0) inner.clip = Clip{so_far, loop.extent, 1, 1};
      substitute_in(piece, loop.var, so_far + IndexExpr::var(inner.var, per));
      piece.loops[k] = inner;
      piece.loops.insert(piece.loops.begin() + static_cast<std::ptrdiff_t>(k), outer);
      for (size_t& c : cuts) ++c;
      cuts.push_back(k + 1);
      chain = 1;
      ++k;  // the outer part is looked at next
    }
  }
  return cuts;
}

}  // namespace hlojit::codegen
