// scatter: where an update goes is known only at run time, several may go to one place, and the order in
// which they are combined there is part of the result's bits.
//
// So it is the target that is split among tasks, not the updates: each task walks all index vectors in
// order and applies what falls into its part. Where a dimension of the target is one of the updates too
// (rows of an embedding are scattered whole, batches stay in their batch), the split is a narrower loop
// over that dimension; only where there is none do tasks test and skip.
//
//   for each index vector, in order        scalar
//     starts, guards                       outside, or in another task's part: skipped
//     for each element of its window       lanes; where not all are inside, once more under masks
//       target = combine(target, update)
//
// Where all elements of a window lie apart in the target, and the index vectors side by side in the updates (whole
// columns are scattered), the loops change places: what lies near is touched together, and each place still sees its
// updates in order.
#include "codegen/kernels/scatter.h"

#include <algorithm>
#include <cmath>

#include "codegen/kernels/function.h"
#include "codegen/nest/loop_split.h"
#include "codegen/nest/reducer.h"
#include "codegen/target.h"
#include "layout/divide.h"
#include "layout/index.h"
#include "layout/lists.h"

namespace hlojit::codegen {
namespace {

constexpr int64_t kMaxChunks = 16;
constexpr double kWalkNs = 2;      // of an index vector
constexpr double kApartNs = 0.3;   // of an element that lies apart
constexpr int64_t kMaxTested = 4;  // parts each of which walks all indices

/// How the target is shared out: parts of `per` entries along one of its dims.
struct Split {
  int64_t parts = 1, per = 1;
  int target_dim = -1;
  int update_dim = -1;  ///< the dim of the updates that is the same; -1: entries are tested
};

class ScatterEmission {
 public:
  ScatterEmission(llvm::Module& module, const Instruction& fusion, const KernelPlan& plan, const Surroundings& around,
                  const EmitOptions& options, VarSource& vars)
      : op_(*plan.hero),
        vars_(vars),
        kernel_(module, fusion, plan, around, options, vars, ""),
        e_(kernel_.emitter()),
        count_(op_.operand_count() / 2),
        sizes_(update_sizes(op_)) {
    for (size_t k = 0; k < count_; ++k) targets_.push_back(&op_.operand(k)->shape);
    results_.resize(count_);
    for (size_t r = 0; r < plan.roots.size(); ++r) {
      const Instruction* root = plan.roots[r];
      results_[root->is(Opcode::kGetTupleElement) ? static_cast<size_t>(root->attrs.tuple_index) : 0] =
          &kernel_.result(r);
    }
    const Ints& window = op_.attrs.scatter->update_window_dims;
    for (size_t d = 0; d < sizes_.size(); ++d) {
      bool inside = std::find(window.begin(), window.end(), static_cast<int64_t>(d)) != window.end();
      (inside ? window_dims_ : batch_dims_).push_back(d);
    }
  }

  KernelFunction run() {
    // No place is inside of a target without elements, and none behind its last one can be asked for.
    if (targets_[0]->element_count() == 0) return {kernel_.finish()};
    // Measured: kWalkNs an index vector, and one a vector of its window, of reading twice and writing once.
    double ns = static_cast<double>(product(sizes_of(batch_dims_))) * (kWalkNs + vectors());
    ns *= static_cast<double>(e_.options().target_info().smaller);
    int64_t cost = static_cast<int64_t>(std::min(ns, 1e15));
    split_ = choose_split(std::min(chunks_for(cost), kMaxChunks));
    const int64_t rest = splits_updates() ? sizes_[static_cast<size_t>(split_.update_dim)] % split_.per : 0;
    if (rest == 0) {
      emit_parts(kernel_.root(), split_.parts);
    } else {
      llvm::IRBuilder<>& b = kernel_.root().builder;
      llvm::Value* last = b.CreateICmpEQ(kernel_.chunk(), b.getInt64(split_.parts - 1));
      when(b.CreateNot(last), kernel_.root(), [&](Scope& s) { emit_parts(s, split_.parts - 1); });
      when(last, kernel_.root(), [&](Scope& s) { emit_part(s, (split_.parts - 1) * split_.per, rest); });
    }
    return {kernel_.finish(), {.chunks = split_.parts, .cost_ns = cost}};
  }

 private:
  // Vectors that a window, all of it side by side, is in all targets.
  double vectors() const {
    return std::ceil(static_cast<double>(product(sizes_of(window_dims_))) * bytes() / e_.vector_bytes());
  }
  double bytes() const {
    double sum = 0;
    for (const Shape* t : targets_) sum += dtype_bytes(t->type);
    return sum;
  }

  // Parts each of which walks all indices, and does some of their windows, or its share of each: what they walk must
  // cost less than what is shared out. (f32[7,160], 10145 of its columns, one thread and two of a Zen 4: by rows 58.2
  // and 34.4 us, all at once 20.)
  int64_t most_tested() const { return static_cast<int64_t>(std::clamp(vectors() / kWalkNs, 1.0, double{kMaxTested})); }
  int64_t most_shares() const {
    const auto elements = static_cast<double>(product(sizes_of(window_dims_))), row = static_cast<double>(row_size());
    const double ns = elements / row * (row == 1 ? kApartNs : std::ceil(row * bytes() / e_.vector_bytes()));
    return static_cast<int64_t>(std::clamp(ns / kWalkNs, 1.0, double{kMaxChunks}));
  }

  // The one of the first `parts` parts that the chunk is, all of one size.
  void emit_parts(Scope& scope, int64_t parts) {
    const int var = vars_.fresh();
    if (parts > 1) e_.bind(var, scope, kernel_.chunk());
    emit_part(scope, IndexExpr::var(var, parts) * split_.per, split_.per);
  }

  // The part of the target that begins at `begin`, of `size` entries if it is the updates that are split.
  void emit_part(Scope& scope, const IndexExpr& begin, int64_t size) {
    begin_ = begin;
    Ints batch = sizes_of(batch_dims_), window = sizes_of(window_dims_);
    narrow(batch_dims_, size, batch);
    narrow(window_dims_, size, window);
    auto walk = [&](AccessWalk& w, const Coords& at) {
      Coords inner;
      for (int64_t n : window) inner.push_back(IndexExpr::var(vars_.fresh(), n));
      walk_element(w, element(at, inner));
    };
    if (may_go_along_windows()) {
      auto walk_all = [&](AccessWalk& w, const Coords& at) {
        Coords all;
        for (int64_t n : batch) all.push_back(IndexExpr::var(vars_.fresh(), n));
        walk_element(w, element(all, at));
      };
      in_order(scope, window, walk_all, [&](Scope& outer, const Coords& inner) {
        auto walk_one = [&](AccessWalk& w, const Coords& at) { walk_element(w, element(at, inner)); };
        in_order(outer, batch, walk_one, [&](Scope& s, const Coords& at) { apply_one(s, element(at, inner)); });
      });
    } else {
      in_order(scope, batch, walk, [&](Scope& s, const Coords& at) { apply(s, at, window); });
    }
  }

  Ints sizes_of(const std::vector<size_t>& dims) const {
    Ints sizes;
    for (size_t d : dims) sizes.push_back(sizes_[d]);
    return sizes;
  }

  // body(scope, coordinates) one after the other.
  template <class Walk, class Body>
  void in_order(Scope& scope, const Ints& sizes, const Walk& walk, const Body& body) {
    const LoopPlanOptions plain{.lanes = false, .max_lanes = 1, .unroll = 0, .in_order = true};
    for (LoopPiece& piece : plan_loops(sizes, vars_, walk, plain)) {
      e_.loops(scope, piece, 0, {{1}}, {},
               [&](Scope& s, const Coords& at, const Lanes&, const ElementEmitter::Carried&) {
                 body(s, at);
                 return ElementEmitter::Carried{};
               });
    }
  }

  // The most minor of a shape's dims that has more than one element; -1: none has.
  static int most_minor(const Shape& shape) {
    for (int64_t d : shape.layout.minor_to_major) {
      if (shape.dims[static_cast<size_t>(d)] > 1) return static_cast<int>(d);
    }
    return -1;
  }

  // Where elements of the updates go, on plain variables.
  Coords plain_target(Coords& plain) const {
    VarSource vars;
    for (int64_t n : sizes_) plain.push_back(IndexExpr::var(vars.fresh(), n));
    return write_relation(op_, plain, vars).target;
  }

  // Measured: f32[340,400], 59 columns: 25 us with the copy so, 45 by lanes along them. An element of the target must
  // be the same one of all windows: of windows that begin anywhere an early one's end would be met after a late one's
  // beginning.
  bool may_go_along_windows() const {
    const int update = most_minor(op_.operand(count_ + 1)->shape);
    if (std::ranges::find(batch_dims_, static_cast<size_t>(update)) == batch_dims_.end()) return false;
    Coords plain;
    const Coords target = plain_target(plain);
    return windows_lie_apart() && std::ranges::all_of(window_dims_, [&](size_t d) {
             return sizes_[d] == 1 || std::ranges::find(target, plain[d]) != target.end();
           });
  }

  // All elements of a window do in the target.
  bool windows_lie_apart() const { return !window_dims_.empty() && most_minor(*targets_[0]) >= 0 && row_size() == 1; }

  // Elements of a window that lie side by side in the target.
  int64_t row_size() const {
    const int near = most_minor(*targets_[0]);
    if (near < 0) return product(sizes_of(window_dims_));
    Coords plain;
    const IndexExpr at = plain_target(plain)[static_cast<size_t>(near)];
    int64_t size = 1;
    for (size_t d : window_dims_) {
      if (sizes_[d] > 1 && at.depends_on(plain[d].variables()[0])) size = std::max(size, sizes_[d]);
    }
    return size;
  }

  // The part's share of the dim that is split.
  void narrow(const std::vector<size_t>& dims, int64_t size, Ints& sizes) const {
    for (size_t k = 0; k < dims.size(); ++k) {
      if (split_.update_dim == static_cast<int>(dims[k])) sizes[k] = size;
    }
  }

  bool splits_updates() const { return split_.update_dim >= 0; }

  Split choose_split(int64_t wanted) const {
    // Elements that share a byte belong to one task.
    bool shared = std::any_of(targets_.begin(), targets_.end(), [](const Shape* t) { return element_bits(*t) < 8; });
    if (wanted < 2 || targets_[0]->rank() == 0 || shared) return {};
    // The relation on plain variables shows which dims of target and updates are the same.
    Coords plain;
    const Coords target = plain_target(plain);
    Split direct, tested;
    const auto& minor = targets_[0]->layout.minor_to_major;
    for (size_t k = minor.size(); k-- > 0;) {  // most major first
      auto d = static_cast<size_t>(minor[k]);
      if (target[d].is_constant()) continue;
      int same = -1;
      for (size_t u = 0; u < plain.size(); ++u) {
        if (target[d] == plain[u]) same = static_cast<int>(u);
      }
      // Of a window that always begins at 0, and may be smaller than the target, its own size is what is gone through.
      const int64_t n = same >= 0 ? sizes_[static_cast<size_t>(same)] : targets_[0]->dims[d];
      if (n < 2) continue;
      // Tasks do not write into one cache line. (Two that wrote every other 8 bytes of 768: 6,500 us, by lines 600.)
      int64_t bytes = dtype_bytes(targets_[0]->type);
      for (size_t m = 0; m < k; ++m) bytes *= targets_[0]->dims[static_cast<size_t>(minor[m])];
      const int64_t least = ceil_div(kCacheLine, std::max<int64_t>(1, bytes));
      Split s{.target_dim = static_cast<int>(d), .update_dim = same};
      const bool shares = same >= 0 && contains(window_dims_, static_cast<size_t>(same)) && !may_go_along_windows();
      const int64_t want = std::min(wanted, same < 0 ? most_tested() : shares ? most_shares() : wanted);
      s.per = ((n + want - 1) / want + least - 1) / least * least;
      // Equal parts, where there are some: a smaller one has code of its own.
      for (int64_t parts = want; same >= 0 && want > 1 && n % s.per != 0 && parts <= 2 * want; ++parts) {
        if (n % parts == 0 && n / parts % least == 0) s.per = n / parts;
      }
      s.parts = (n + s.per - 1) / s.per;
      if (same >= 0 && n % s.per != 0 && k == 0) s.parts = 1;
      Split& best = same >= 0 ? direct : tested;
      if (s.parts > best.parts) best = s;
    }
    return direct.parts >= std::min(wanted, tested.parts) ? direct : tested;
  }

  // Coordinates of an update from those of the loops.
  Coords element(const Coords& batch, const Coords& window) const {
    Coords c(sizes_.size());
    for (size_t k = 0; k < batch_dims_.size(); ++k) c[batch_dims_[k]] = batch[k];
    for (size_t k = 0; k < window_dims_.size(); ++k) c[window_dims_[k]] = window[k];
    if (splits_updates()) {
      IndexExpr& e = c[static_cast<size_t>(split_.update_dim)];
      e = e + begin_;
    }
    return c;
  }

  WriteRelation relation_at(const Coords& element) {
    WriteRelation w = write_relation(op_, element, vars_);
    if (split_.parts > 1 && !splits_updates()) {
      w.guards.push_back({w.target[static_cast<size_t>(split_.target_dim)] - begin_, 0, split_.per});
    }
    return w;
  }

  void walk_element(AccessWalk& walk, const Coords& element) {
    WriteRelation w = relation_at(element);
    for (const Symbol& s : w.symbols) walk.read(op_.operand(s.operand), s.coords);
    for (size_t k = 0; k < count_; ++k) {
      walk.write(*targets_[k], w.target);
      walk.read(op_.operand(count_ + 1 + k), element);
    }
  }

  // One update.
  void apply_one(Scope& scope, const Coords& placed) {
    const WriteRelation w = relation_at(placed);
    e_.bind_symbols(&op_, w.symbols, scope);
    where(w.guards, scope, [&](Scope& s) { combine(s, w.target, placed, 1, nullptr); });
  }

  // One index vector: its window, where no guard on the whole of it fails. Few windows hang over an edge, of the target
  // or of a part; the others pay for no masks, whose stores what is read next has to wait for.
  void apply(Scope& scope, const Coords& batch, const Ints& sizes) {
    Window window;
    window.sizes = sizes;
    for (int64_t n : sizes) {
      window.vars.push_back(vars_.fresh());
      window.inner.push_back(IndexExpr::var(window.vars.back(), n));
    }
    window.batch = batch;
    window.placed = element(batch, window.inner);
    const WriteRelation w = relation_at(window.placed);
    window.target = w.target;
    std::vector<Guard> some, all;
    bool may_fit = true;
    for (const Guard& g : w.guards) {
      const auto whole = for_all(g, window.vars);
      may_fit &= whole.has_value();
      if (whole) all.push_back(*whole);
      if (const auto part = for_some(g, window.vars)) some.push_back(*part);
      if (std::ranges::any_of(window.vars, [&](int v) { return g.expr.depends_on(v); })) window.guards.push_back(g);
    }
    e_.bind_symbols(&op_, w.symbols, scope);
    if (window.guards.empty()) return where(all, scope, [&](Scope& in) { apply_window(in, window, {}); });
    llvm::Value* inside = may_fit ? e_.holds(all, scope) : scope.builder.getFalse();
    if (may_fit) when(inside, scope, [&](Scope& in) { apply_window(in, window, {}); }, true);
    if (!inside) return;
    when(scope.builder.CreateNot(inside), scope, [&](Scope& out) {
      // Nothing of it is made for the others.
      e_.within(out,
                [&] { when(e_.holds(some, out), out, [&](Scope& in) { apply_window(in, window, window.guards); }); });
    });
  }

  struct Window {
    Ints sizes;
    std::vector<int> vars;
    Coords batch, inner, placed, target;
    std::vector<Guard> guards;  ///< that hold for some of its elements only
  };

  // The window's variables, at these coordinates of the loops.
  static std::vector<IndexExpr::Substitution> values_at(const Window& window, const Coords& at) {
    std::vector<IndexExpr::Substitution> values;
    for (size_t k = 0; k < at.size(); ++k) values.push_back({window.vars[k], at[k]});
    return values;
  }

  void apply_window(Scope& scope, const Window& window, const std::vector<Guard>& guards) {
    int widest = 4;
    auto walk = [&](AccessWalk& access, const Coords& at) {
      walk_element(access, element(window.batch, at));
      // What is asked of rows is asked once a row, not of elements of one loop over all. (Seven rows of 12782 floats,
      // added where some may be in another task's part: 44 us, 14 so.)
      for (const Guard& g : guards) access.add_index(g.expr.substitute(values_at(window, at)));
      widest = std::max(widest, access.lane_bytes());
    };
    const int most = e_.vector_bytes() / 4;
    // Elements that lie apart are read, combined and written one by one: a vector's would have to be put together.
    const bool lanes = !windows_lie_apart();
    const LoopPlanOptions options{.lanes = lanes, .max_lanes = lanes ? most : 1, .unroll = 0};
    for (LoopPiece& piece : plan_loops(window.sizes, vars_, walk, options)) {
      const int native = std::max(1, e_.vector_bytes() / widest);
      e_.loops(scope, piece, 0, halving_widths(piece, 2 * native, native), {},
               [&](Scope& inside, const Coords& at, const Lanes& part, const ElementEmitter::Carried&) {
                 apply_lanes(inside, window, at, part.count, guards);
                 return ElementEmitter::Carried{};
               });
    }
  }

  void apply_lanes(Scope& scope, const Window& window, const Coords& at, int lanes, std::vector<Guard> guards) {
    const auto values = values_at(window, at);
    const Coords target = substitute(window.target, values), from = substitute(window.placed, values);
    for (Guard& g : guards) g.expr = g.expr.substitute(values);
    // What all lanes have in common is asked once: masked stores, which a Zen without AVX-512 does lane by lane, are
    // for the rest. (f32[6,42,11], 6431 windows of [4,1,11] in three parts: 616 us, 256 so.)
    auto of_lanes = std::ranges::partition(guards, [&](const Guard& g) { return e_.lane_count(g.expr) == 1; });
    const std::vector<Guard> masked(of_lanes.begin(), of_lanes.end());
    guards.erase(of_lanes.begin(), of_lanes.end());
    where(guards, scope,
          [&](Scope& here) { combine(here, target, from, lanes, masked.empty() ? nullptr : e_.holds(masked, here)); });
  }

  // Runs `body` where all guards hold: a branch each, foreseen nearly always. (Put together first they took a third
  // more instructions an index vector.)
  template <class F>
  void where(std::span<const Guard> guards, Scope& scope, const F& body) {
    if (guards.empty()) return body(scope);
    when(e_.holds(guards.first(1), scope), scope, [&](Scope& s) { where(guards.subspan(1), s, body); }, true);
  }

  // Runs `body` where the condition holds (null: always), as it nearly always does if that is `likely`: a loop of no or
  // one iteration, so that it has a scope of its own.
  template <class F>
  void when(llvm::Value* condition, Scope& scope, const F& body, bool likely = false) {
    if (!condition) return body(scope);
    llvm::Value* trip = scope.builder.CreateZExt(condition, scope.builder.getInt64Ty());
    auto inner = open_loop(scope, trip, 1, "inside");
    inner->likely = likely;
    body(*inner);
    close_loop(scope, std::move(inner));
  }

  void combine(Scope& scope, const Coords& target, const Coords& from, int lanes, llvm::Value* mask) {
    std::vector<Value> arguments;
    std::vector<IndexExpr> addresses;
    for (size_t k = 0; k < count_; ++k) addresses.push_back(linear_index(*targets_[k], target));
    for (size_t k = 0; k < count_; ++k) {
      arguments.push_back(e_.load(scope, *results_[k], targets_[k]->type, addresses[k], mask));
    }
    for (size_t k = 0; k < count_; ++k) arguments.push_back(e_.emit(op_.operand(count_ + 1 + k), from, scope));
    for (Value& v : arguments) v = splat(scope.builder, v, lanes);
    std::vector<Value> made = inline_computation(scope.builder, e_.number(), *op_.to_apply(), arguments);
    for (size_t k = 0; k < count_; ++k) e_.store(scope, *results_[k], addresses[k], made[k], mask);
  }

  const Instruction& op_;
  VarSource& vars_;
  KernelBuilder kernel_;
  ElementEmitter& e_;
  size_t count_;
  const Ints& sizes_;
  std::vector<const Shape*> targets_;
  std::vector<const BufferRef*> results_;  // by target
  std::vector<size_t> batch_dims_, window_dims_;
  Split split_;
  IndexExpr begin_;  ///< of the part, along the dim that is split
};

}  // namespace

KernelFunction emit_scatter(llvm::Module& module, const Instruction& fusion, const KernelPlan& plan,
                            const Surroundings& around, const EmitOptions& options, VarSource& vars) {
  return ScatterEmission(module, fusion, plan, around, options, vars).run();
}

}  // namespace hlojit::codegen
