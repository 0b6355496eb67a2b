// See loop_plan.h. What the loops of one box are is loop_order.h's.
#include "codegen/nest/loop_plan.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "codegen/nest/loop_order.h"
#include "layout/lists.h"
#include "layout/tiling.h"

namespace hlojit::codegen {
namespace {

// From which value of a variable on (or up to which) a guard holds whatever the rest of its expression is.
struct InsideEdge {
  int64_t at;
  bool exact;  // on the other side it holds nowhere: a border between rows that a reshape made
};
InsideEdge inside_edge(const Edge& e, const IndexExpr& variable, int64_t coefficient) {
  const Range rest = (e.expr - variable * coefficient).range();
  auto value = [&](int64_t rest) { return (e.bound - rest + coefficient - 1) / coefficient; };
  return {value(e.upper ? rest.hi : rest.lo), value(rest.hi) == value(rest.lo)};
}

// Loads or stores that an access makes for 8 lanes of words: vectors of wide elements are several, and lanes that
// lie apart are taken one by one, narrow ones more of them. (Counted as one, 72 gathers of c128 were written out, and
// took LLVM 21 s; counted as 8, 50 of 32 bytes 0.6 s.)
// Under a guard whole vectors are read only where the lanes lie side by side.
int operations_of(const Access& a, const LoopPiece& piece, int outer_lane, bool guarded) {
  const int words = std::max(1, a.bytes / 4), lane = piece.has_lanes ? piece.loops.back().var : outer_lane;
  if (lane < 0 && piece.unroll.var < 0) return a.bytes > 8 ? 2 : 1;  // one element
  if (piece.unroll.var >= 0 || a.bytes == 0) return words;
  auto stride = a.address.coefficient(lane);
  if (!stride) return std::max({words, 8, 32 / a.bytes});
  const bool group = !guarded && !a.write && in_group(*stride, a.bytes);
  return group || std::abs(*stride) <= (guarded ? 1 : kFewStrides) ? words : std::max({words, 8, 32 / a.bytes});
}

/// Cuts every dimension where accesses change their form, and plans loops for each product of pieces.
class LoopPlanner {
  // (A reshape that nested in none of three dims became 576 nests, which took LLVM 2 s.)
  static constexpr int64_t kMostPieces = 32;
  // And with the edges of guards. (Padded at both ends of all dims, eight dims were 6,561 nests, which took 17 s.)
  static constexpr int64_t kMostBoxes = 100;
  static constexpr int64_t kMostInBoxes = 3'000;  // operations, of an element in each
  static constexpr int kLine = 64;                // bytes

 public:
  using Walk = std::function<void(AccessWalk&, const Coords&)>;

  LoopPlanner(std::span<const int64_t> dims, VarSource& vars, const LoopPlanOptions& options)
      : dims_(dims), vars_(vars), options_(options), accesses_(vars) {}

  /// Once; `walk` is asked again for pieces.
  std::vector<LoopPiece> run(const Walk& walk) {
    collect(walk);
    if (auto pieces = one_run(walk)) return std::move(*pieces);
    if (auto pieces = in_periods(walk)) return std::move(*pieces);
    return planned();
  }

 private:
  void collect(const Walk& walk) {
    walk_ = &walk;
    Coords coords;
    for (int64_t n : dims_) {
      dim_vars_.push_back(vars_.fresh());
      coords.push_back(IndexExpr::var(dim_vars_.back(), n));
    }
    walk(accesses_, coords);
  }

  std::vector<LoopPiece> planned() {
    cuts_.resize(dims_.size());
    if (auto pieces = across_rows()) return std::move(*pieces);
    more_in_turn_ = true;
    guarded_.assign(dims_.size(), false);
    for (;; max_runs_ /= 2) {
      for (size_t d = 0; d < dims_.size(); ++d) cuts_[d] = cut(d, false);
      if (piece_count() <= kMostPieces) {
        all_pieces();
        if (operations() <= most_operations()) break;
      }
      if (max_runs_ == 1) break;
    }
    leave_edges();
    if (result_.empty()) all_pieces();
    if (cut_at_windows()) all_pieces();
    cut_blocks();
    return std::move(result_);
  }

  // A block that is too much code is worked on in parts, in each of which the elements would ask where they are, and
  // all that any of them takes would be computed: it is cut where sources begin after all, unless these share so much
  // that it would be made anew for each. (Six grids of 48 looked-up corners in columns of two: 476 us, cut 66.) So is
  // what no block was made of.
  void cut_blocks() {
    bool left_whole = false;
    for (size_t d = 0; d < dims_.size(); ++d) left_whole |= alternates(d);
    const auto asks = [&](const LoopPiece& p) {
      return p.unroll.part < p.unroll.count || (left_whole && p.unroll.var < 0);
    };
    if (accesses_.edges().empty() || std::ranges::none_of(result_, asks)) return;
    const int64_t before = std::max(asked_, accesses_.operations() + std::ssize(accesses_.accesses()));
    const std::vector<DimCut> blocks = cuts_;
    cuts_blocks_ = true;
    for (size_t d = 0; d < dims_.size(); ++d) cuts_[d] = cut(d, false);
    std::vector<LoopPiece> whole = std::exchange(result_, {});
    if (piece_count() <= kMostPieces) all_pieces();
    if (result_.size() > whole.size() && 2 * asked_ <= 3 * before) return;
    result_ = std::move(whole);
    cuts_ = blocks;
  }

  // Where the boxes of several dims are too many, or their code is, the elements of some dims ask where they are
  // instead: of those with few parts, first of those whose neighbours lie furthest apart in the result, where it is one
  // question for a row. (Along one dim alone boxes are as many as the program has edges.)
  void leave_edges() {
    std::vector<size_t> order(dims_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, std::less{},
                             [&](size_t d) { return std::pair(std::ssize(cuts_[d].pieces), -step_of_writes(d)); });
    for (size_t d : order) {
      if (piece_count() == std::ssize(cuts_[order.back()].pieces)) return;
      if (piece_count() <= kMostBoxes && result_.empty()) all_pieces();
      if (piece_count() <= kMostBoxes && asked_ <= kMostInBoxes) return;
      guarded_[d] = true;
      cuts_[d] = cut(d, false);
      result_.clear();
    }
  }

  // Lanes run across short rows. What takes turns within a row does so in each vector alike: nothing is cut there.
  std::optional<std::vector<LoopPiece>> across_rows() {
    if (!options_.across || options_.in_order) return std::nullopt;
    guarded_.clear();
    for (size_t d = 0; d < dims_.size(); ++d) guarded_.push_back(step_of_writes(d) * dims_[d] < native_lanes());
    if (computes_rows()) return std::nullopt;
    for (size_t d = 0; d < dims_.size(); ++d) cuts_[d] = cut(d, accesses_.has_reduction());
    if (piece_count() > kMostPieces) return std::nullopt;
    across_ = true;
    all_pieces();
    across_ = false;
    int64_t all = 0, across = 0;
    for (const LoopPiece& p : result_) {
      int64_t elements = p.unroll.count;
      for (const LoopDigit& l : p.loops) elements *= l.extent;
      all += elements;
      across += p.across ? elements : 0;
    }
    if (4 * across >= 3 * all && across > 0) return std::move(result_);
    result_.clear();
    return std::nullopt;
  }

  // Much of what elements of a short row take is the same for all of them: across rows it would be done for each. (The
  // root of two squares that both are divided by: 6.8 us for 282 times ten, 10.5.)
  bool computes_rows() const {
    const int all = accesses_.operations();
    for (size_t d = 0; all > kManyOperations && d < dims_.size(); ++d) {
      if (guarded_[d] && dims_[d] > 1 && 4 * accesses_.operations_without(dim_vars_[d]) > all) return true;
    }
    return false;
  }

  int native_lanes() const { return options_.max_lanes * 4 / std::max(1, accesses_.lane_bytes()); }

  int64_t step_of_writes(size_t d) const {
    int64_t most = 0;
    for (const Access& a : accesses_.accesses()) {
      if (a.write) most = std::max(most, std::abs(a.address.coefficient(dim_vars_[d]).value_or(0)));
    }
    return most;
  }

  bool affine() const {
    return std::ranges::all_of(accesses_.accesses(), [](const Access& a) { return a.address.is_affine(); });
  }

  // Through reshapes whose dims do not nest, elements may still follow one another in every operand: all addresses are
  // then affine in the number of the element. (f32[2,13,3,3,4] as [18,2,26] became 1,100 instructions, dim by dim.)
  std::optional<std::vector<LoopPiece>> one_run(const Walk& walk) const {
    if (dims_.size() < 2 || options_.in_order || accesses_.has_reduction() || affine()) return std::nullopt;
    const int64_t elements[] = {hlojit::product(dims_)};
    LoopPlanner flat(elements, vars_, options_);
    const Walk by_number = [&](AccessWalk& w, const Coords& number) { walk(w, delinearize(dims_, number[0])); };
    flat.collect(by_number);
    if (!flat.affine() || !flat.accesses_.edges().empty()) return std::nullopt;
    std::vector<LoopPiece> pieces = flat.planned();
    for (LoopPiece& p : pieces) p.coords = delinearize(dims_, p.coords[0]);
    return pieces;
  }

  // Sources take turns along a dim, so many elements each (operands stacked in a dim that was merged with others):
  // the dim is planned as the two that it was made of, of which the inner one, or the outer one, is cut where the next
  // source begins. (Nine windows of 16 floats beside each other took 187 us as guarded loads, cut 26.)
  std::optional<std::vector<LoopPiece>> in_periods(const Walk& walk) const {
    if (options_.in_order) return std::nullopt;
    for (size_t d = 0; d < dims_.size(); ++d) {
      for (const Edge& e : accesses_.edges()) {
        for (const Break& b : breaks_of(e.expr, dim_vars_[d])) {
          if (b.offset == 0 && !b.moves && b.width > 1 && b.width < dims_[d] && dims_[d] % b.width == 0)
            return split_at(walk, d, b.width);
        }
      }
    }
    return std::nullopt;
  }

  std::vector<LoopPiece> split_at(const Walk& walk, size_t d, int64_t width) const {
    const auto at = static_cast<std::ptrdiff_t>(d);
    std::vector<int64_t> sizes(dims_.begin(), dims_.end());
    sizes[d] /= width;
    sizes.insert(sizes.begin() + at + 1, width);
    auto whole = [&](Coords c) {
      c[d] = c[d] * width + c[d + 1];
      c.erase(c.begin() + at + 1);
      return c;
    };
    LoopPlanner parts(sizes, vars_, options_);
    std::vector<LoopPiece> pieces = parts.run([&](AccessWalk& w, const Coords& c) { walk(w, whole(c)); });
    for (LoopPiece& p : pieces) p.coords = whole(std::move(p.coords));
    return pieces;
  }

  // Short dims that lie innermost in a result, beside one long enough for the lanes: they will be stored together as
  // a block (see interleaves). `d` is one of them.
  bool alternates(size_t d) const { return turn_of(d) > 0; }

  // Elements of such a result from one of `d`'s turns to the next, 0 if there is none. (Of that result alone: beside it
  // another may lie the other way round. Three Adam moments of f32[128,16], of which two lie by columns, were blocks of
  // 128 by 16: 1.4 s to compile.)
  int64_t turn_of(size_t d) const {
    if (!options_.lanes || accesses_.has_reduction() || dims_[d] < 2) return 0;
    if (std::ranges::none_of(dims_, [&](int64_t n) { return n >= options_.max_lanes; })) return 0;
    int64_t turn = 0;
    for (const Access& a : accesses_.accesses()) {
      const int64_t apart = a.write ? a.address.coefficient(dim_vars_[d]).value_or(0) : 0;
      if (apart > 0 && apart * dims_[d] <= most_in_turn(d, a.bytes) && fill(a, apart))
        turn = std::max(turn, apart * dims_[d]);
    }
    return turn;
  }

  // Values along a dim that alternate in the result. A block that is only interleaved may be more vectors than one that
  // is turned. (Columns of 1000 put together, a Zen 3: nine 3.7 us one by one, 1.2 as a block; 30 25.5 and 5.3,
  // compiled in 55 ms and 21; 20 of f64 16.4 and 6.0.)
  int64_t most_in_turn(size_t d, int bytes) const {
    constexpr int kMostBytes = 128;  // of all of them
    const bool more = more_in_turn_ && in_narrow_pieces(d) && has_lanes_beside(d);
    return more ? std::max(options_.unroll, std::min(options_.in_turn, kMostBytes / std::max(bytes, 1)))
                : options_.unroll;
  }

  // May lanes run along another dim? (A transform of 3x1024 points that was written out by halves, whose rows are
  // three: 47.7 us, 58 as blocks.)
  bool has_lanes_beside(size_t d) const {
    for (size_t o = 0; o < dims_.size(); ++o) {
      if (o != d && dims_[o] >= options_.max_lanes) return true;
    }
    return false;
  }

  // Cut at its edges, would the dim be a few elements at a time everywhere? (Rows of six, padded to 15: eight times as
  // long where each element asks whether it is padding.)
  bool in_narrow_pieces(size_t d) const {
    const int64_t longest = longest_piece(d);
    return longest < dims_[d] && longest <= kFewStrides;
  }

  // Elements between two edges, at most.
  int64_t longest_piece(size_t d) const {
    std::vector<int64_t> at = edges(d, false);
    at.push_back(dims_[d]);
    std::ranges::sort(at);
    int64_t before = 0, longest = 0;
    for (int64_t e : at) longest = std::max(longest, e - std::exchange(before, e));
    return longest;
  }

  // How often a block takes all that the kernel is made of. Of a dim that is narrow pieces each value takes what its
  // own piece is, and all of them what there is, as often as a piece is long. (Columns of nine sorted by exchanges, as
  // rows in memory, 20,000 of them: in parts of the block 570 us, 73 as one.)
  int64_t times_of(const Unroll& block, const Coords& coords) const {
    int64_t times = block.count;
    for (size_t d = 0; d < dims_.size(); ++d) {
      if (coords[d].depends_on(block.var) && in_narrow_pieces(d)) times = std::min(times, longest_piece(d));
    }
    return times;
  }

  // Other dims step through so many elements that a write leaves out.
  bool fill(const Access& write, int64_t gap) const {
    int64_t filled = 1;
    for (bool more = gap > 0; more && filled < gap;) {
      more = false;
      for (size_t d = 0; d < dims_.size() && !more; ++d) {
        more = dims_[d] > 1 && write.address.coefficient(dim_vars_[d]) == filled;
        if (more) filled *= dims_[d];
      }
    }
    return filled == gap;
  }

  std::vector<Break> breaks_along(size_t d) const {
    std::vector<Break> breaks;
    for (const Access& a : accesses_.accesses()) {
      for (const Break& b : breaks_of(a.address, dim_vars_[d])) {
        if (std::find(breaks.begin(), breaks.end(), b) == breaks.end()) breaks.push_back(b);
      }
    }
    return breaks;
  }

  // `windows`: also where the positions of a window end that are inside of an operand for all the window.
  DimCut cut(size_t d, bool windows) const {
    const std::vector<Break> breaks = breaks_along(d);
    // Pieces of an inner dimension would be met one after the other, which is another order, and so would be the
    // ends of all blocks of the outermost after their beginnings.
    if (options_.in_order)
      return cut_dimension(dims_[d], breaks, d > 0 || guarded_[d] ? std::vector<int64_t>{} : edges(d, windows), 1);
    // Values that alternate in the result are made side by side, not one after the other with gaps.
    std::vector<int64_t> at =
        guarded_[d] || (!cuts_blocks_ && alternates(d)) ? std::vector<int64_t>{} : edges(d, windows);
    cut_periods(d, breaks, at);
    if (breaks.empty()) widen_ends(d, at);
    return cut_dimension(dims_[d], breaks, at, max_runs_);
  }

  // What a long row has at its ends that is less than a vector is a vector with what is beside it, whose lanes ask
  // where they are: no elements one by one, a line apart from each other, and in between vectors begin with lines where
  // rows do.
  void widen_ends(size_t d, std::vector<int64_t>& edges) const {
    constexpr int64_t kLong = 8;  // vectors
    const int64_t lanes = native_lanes(), end = dims_[d] - lanes;
    if (!options_.lanes || options_.in_order || accesses_.has_reduction()) return;
    if (dims_[d] < kLong * lanes || dims_[d] == hlojit::product(dims_)) return;
    const bool along = std::ranges::all_of(accesses_.accesses(), [&](const Access& a) {
      return !a.random && (!a.write || a.address.coefficient(dim_vars_[d]) == 1);
    });
    if (!along || lanes == 1) return;
    for (int64_t& e : edges) e = std::clamp(e, lanes, end);
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
      if (!c || *c == 0) continue;
      const bool alone = e.expr.terms().size() == 1;
      int64_t at = 0;
      if (*c > 0) {
        const InsideEdge inside = inside_edge(e, IndexExpr::var(dim_vars_[d], dims_[d]), *c);
        if (alone || windows || inside.exact) at = inside.at;
      } else if (alone) {
        at = (e.expr.constant() - e.bound - *c) / -*c;
      }
      if (at > 0 && at < dims_[d]) found.push_back(at);
    }
    return found;
  }

  void all_pieces() {
    result_.clear();
    asked_ = 0;
    uncut_.clear();
    for (size_t d = 0; d < dims_.size(); ++d) uncut_.push_back(cut_dimension(dims_[d], breaks_along(d), {}, max_runs_));
    std::vector<const DimPiece*> chosen(dims_.size());
    product(0, chosen);
  }
  // Where a piece of the dims before reads nothing any more, as above an image within its padding, the others are not
  // cut: the padding of conv_stem's image is five boxes, not nine. (Left whole where all of it reads alike, as the
  // first row of a stencil that is copied, jacobi_20 took 1.25 of the time.)
  void product(size_t d, std::vector<const DimPiece*>& chosen) {
    if (d == dims_.size()) return box(chosen);
    const bool whole = d > 0 && cuts_[d].pieces.size() > uncut_[d].pieces.size() && !reads(chosen, d);
    for (const DimPiece& p : (whole ? uncut_ : cuts_)[d].pieces) chosen[d] = &p, product(d + 1, chosen);
  }
  bool reads(const std::vector<const DimPiece*>& chosen, size_t count) const {
    Coords coords;
    for (size_t d = 0; d < dims_.size(); ++d) {
      const Range range = d < count ? Range{chosen[d]->start, chosen[d]->limit - 1} : Range{0, dims_[d] - 1};
      coords.push_back(IndexExpr::var(dim_vars_[d], range));
    }
    AccessWalk walk(vars_);
    (*walk_)(walk, coords);
    return !walk.edges().empty() || !std::ranges::all_of(walk.accesses(), &Access::write);
  }

  // What nobody asks for in the piece says nothing of its loops. (Lanes went along a column's rows because the row
  // above, for another piece, has its first element for all of them: LLVM took 80 ms for the code that gathers these.)
  AccessWalk asked_in(const std::vector<const DimPiece*>& chosen) {
    Coords coords;
    for (size_t d = 0; d < chosen.size(); ++d)
      coords.push_back(IndexExpr::var(dim_vars_[d], Range{chosen[d]->start, chosen[d]->limit - 1}));
    AccessWalk walk(vars_);
    (*walk_)(walk, coords);
    asked_ += walk.operations() + std::ssize(walk.accesses());
    return walk;
  }

  // As many as asked for, of wide elements a line: blocks are as many vectors, and registers are few. (1000x1000 of
  // c128 by squares of 16, within which nothing is transposed: 250 ms to compile and 3.3 to run; of four 11 and 2.1. Of
  // f64, transposed and added: 22 ms to compile and 952 us by 16, 7 and 458 by eight.)
  int side_of_blocks(std::span<const Access> accesses) const {
    return accesses_.has_reduction() ? 0 : std::min(options_.unroll, kLine / widest(accesses));
  }
  static int widest(std::span<const Access> accesses) {
    int bytes = 1;
    for (const Access& a : accesses) bytes = std::max(bytes, a.bytes);
    return bytes;
  }

  void box(const std::vector<const DimPiece*>& chosen) {
    const bool parts = piece_count() > 1 && !accesses_.edges().empty();
    const AccessWalk& asked = parts ? asked_in(chosen) : accesses_;
    LoopOrder c(chosen, dim_vars_, asked.accesses(), vars_);
    c.guarded = !asked.edges().empty();
    c.merge_digits();
    if (!options_.in_order) c.order();
    c.merge_digits();  // neighbours may have become mergeable by the order
    const auto across = across_ ? c.across_rows(native_lanes(), options_.overlap, accesses_) : std::nullopt;
    if (!across) return result_.push_back(piece(std::move(c), nullptr, asked.operations()));
    std::optional<LoopOrder> left;
    if (across->left > 0) left.emplace(c.split_off_left(*across));
    result_.push_back(piece(std::move(c), &*across, asked.operations()));
    if (left) result_.push_back(piece(std::move(*left), nullptr, asked.operations()));
  }

  LoopPiece piece(LoopOrder c, const LoopOrder::Across* across, int operations) const {
    LoopPiece made;
    made.guarded = c.guarded;
    const bool free = !options_.in_order && !accesses_.has_reduction();
    const std::optional<int> lines = free ? c.digit_of_lines(options_.overlap) : std::nullopt;
    if (across) {
      made.across = made.has_lanes = true;
      made.unroll = c.lay_across(*across);
    } else {
      choose_lanes(c, made, operations);
    }
    if (lines && made.has_lanes && (across || made.unroll.var < 0)) c.keep_lines(*lines);
    // (Not where bf16 is taken for its bits: these would be shuffled in and out. The next of 30,000 numbers: 4.4
    // us, 5.4.)
    made.pairs = options_.pairs && made.has_lanes && made.unroll.var < 0 && accesses_.edges().empty() &&
                 !accesses_.takes_bits() && c.lanes_in_pairs();
    made.loops = std::move(c.loops);
    made.coords = std::move(c.coords);
    made.operations = accesses_.operations() + static_cast<int>(accesses_.edges().size());
    for (const Access& a : c.accesses)
      made.operations += operations_of(a, made, options_.outer_lane, !accesses_.edges().empty());
    if (made.unroll.var >= 0) made.operations *= static_cast<int>(times_of(made.unroll, made.coords));
    return made;
  }

  // How many values that alternate in the result may be a block: without edges as many as a line has. (Up to 32 there,
  // 59 programs took 1.3 times as long to compile and were as fast.)
  int in_turn(std::span<const Access> accesses) const {
    int64_t most = std::min<int64_t>({options_.in_turn, kShortRow, kLine / widest(accesses)});
    for (size_t d = 0; d < dims_.size(); ++d) {
      if (const int64_t all = turn_of(d); all > options_.unroll) most = std::max(most, all);
    }
    return static_cast<int>(most);
  }

  void choose_lanes(LoopOrder& c, LoopPiece& made, int operations) const {
    const int block = made.side = side_of_blocks(c.accesses);
    if (block > 0) c.in_turn = std::max(block, in_turn(c.accesses));
    const bool moves = !options_.packs && !accesses_.has_reduction() && accesses_.operations() <= kManyOperations;
    const bool one_by_one = options_.scattered && !accesses_.has_reduction() && c.scattered(operations);
    made.has_lanes = options_.lanes && !one_by_one && c.choose_lanes(options_, block, moves);
    made.apart = made.has_lanes && c.lanes_apart(accesses_.operations());
    made.looked_up = made.has_lanes && c.lanes_looked_up();
    if (made.has_lanes && block > 0) made.unroll = c.choose_unroll(block, options_);
    if (made.unroll.var >= 0)
      made.unroll.part =
          c.part_of(made.unroll, times_of(made.unroll, c.coords) * accesses_.operations(), options_.in_parts);
    if (made.has_lanes && accesses_.has_reduction() && options_.shared > 0) made.unroll = c.choose_shared(options_);
    if (made.has_lanes && made.unroll.var < 0 && options_.interleaves) made.unroll = c.choose_interleaved();
    if (!options_.lanes && options_.unroll > 0) made.unroll = c.choose_group(options_.alternating);
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
  const Walk* walk_ = nullptr;
  std::vector<int> dim_vars_;
  std::vector<DimCut> cuts_, uncut_;  // the dims, and what they are without edges
  std::vector<bool> guarded_;         // dims that are not cut at edges
  int max_runs_ = 8;                  // pieces of a dimension between two edges
  bool cuts_blocks_ = false;          // also what alternates in the result is cut at edges
  bool more_in_turn_ = false;         // blocks of what alternates may be of more than transposed ones have
  bool across_ = false;               // pieces are laid across rows where that does
  int64_t asked_ = 0;                 // operations that all boxes take, if there are several
  std::vector<LoopPiece> result_;
};

}  // namespace

std::vector<LoopPiece> plan_loops(std::span<const int64_t> dims, VarSource& vars,
                                  const std::function<void(AccessWalk&, const Coords&)>& walk,
                                  const LoopPlanOptions& options) {
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return {};
  return LoopPlanner(dims, vars, options).run(walk);
}

}  // namespace hlojit::codegen
