// See cost.h. One sweep from results to operands counts, for every value, how many of its elements are
// evaluated (a value read elementwise by several users is evaluated once; through slices, pads and the
// like once a reader) and at how many places of the loop body its code stands.
#include "compiler/plan/cost.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <unordered_map>

#include "compiler/analysis/access.h"
#include "compiler/analysis/movement.h"
#include "compiler/plan/contraction.h"
#include "compiler/plan/demand.h"
#include "compiler/plan/op_cost.h"
#include "layout/divide.h"
#include "layout/index.h"
#include "layout/lists.h"

namespace hlojit {
namespace {

constexpr double kCallNs = 50;
// A plan must not depend on the machine's cores; that there are a few is what it may count on.
constexpr double kCores = 4, kWorthHandingOver = 20'000;
constexpr double kCyclesPerNs = 3;
// Bytes a nanosecond from each level; a gather or a transposed read moves whole cache lines.
constexpr double kL1 = 200, kL2 = 100, kLlc = 50, kMemory = 20;
constexpr double kStridedFactor = 3;
// Instructions for a choice between operands by where an element is.
constexpr double kChoice = 30;
// Padding between elements, and padding between these again: of one a kernel knows by its loops which elements are
// read; of more there would be pieces of loops for all combinations, or every element computes what few of them use.
constexpr double kMostSpacing = 2;
// A term of a window, pulled by the loops of who reads it, takes so many times what one of a product does: its address,
// its guards. (A depthwise convolution of 7x7 on 56x56x48: 266 us, priced 77; 5x5 maxima of 300x333: 132, 26.)
constexpr double kPulled = 3;
// Nanoseconds for an element that is stored on its own: rows of 64, divided by their lengths and stored as panels.
constexpr double kStoredApart = 0.4;
// Cycles that an element looked up where another lookup says waits for that one, if they are not done lane by lane.
// (The mean of 257 rows of 4 that a search finds took 7.8 us in one kernel, 0.9 beside the search.)
constexpr double kWaits = 12;
// Nanoseconds for an operation on what says where a row is, done for each row on its own, or in all lanes to transpose
// rows to and fro. (1155 pixels of 8 channels, looked up at coordinates that 20 operations make: 4.9 us in one kernel,
// 1.6 apart; of 40 5.2 and 3.6; of 64 5.1 and 5.2.)
constexpr double kInFront = 0.05;
constexpr double kFewVectors = 4;
constexpr double kTransposed = 4;  // elements of rows that are looked up in all lanes at once
// Nanoseconds for an element whose place is a quotient of several dims: [4,26,26,9,33] as [5577,144] took 4.6.
constexpr double kCrossed = 3;
// Nanoseconds for a term of a window whose place is a quotient of where the window is: neighbours are no lanes. (Maxima
// of 20 over f32[33,2000], sums of rows made by blocks of 128: 715 us, 57 where the sums are in memory. Where windows
// slide over rows, lanes are neighbours: of 4 by 1 over f64[3,654] as [18,109] 0.6 us, 0.8 in two kernels.)
constexpr double kSlid = 0.5;

bool is_scalar(const Instruction* i) { return i->shape.is_array() && i->shape.rank() == 0; }

double count(const Shape& shape) { return static_cast<double>(shape.element_count()); }

/// The dim of size above 1 that is minor in memory, or -1.
int minor_dim(const Shape& shape) {
  for (int64_t d : shape.layout.minor_to_major) {
    if (shape.dims[static_cast<size_t>(d)] != 1) return static_cast<int>(d);
  }
  return -1;
}

/// Neighbours along one of the dims are neighbours in memory, or so close that they are stored as words with what lies
/// between them: bf16 in T(8,128)(2,1).
bool lies_together(const Shape& shape, const Ints& dims) {
  constexpr int64_t kWord = 4;
  return std::ranges::any_of(dims, [&](int64_t d) {
    if (shape.dims[static_cast<size_t>(d)] < 2) return false;
    Ints next(shape.dims.size());
    next[static_cast<size_t>(d)] = 1;
    const int64_t step = linear_index(shape, next);
    return step == 1 || (std::has_single_bit(static_cast<uint64_t>(step)) && step * dtype_bytes(shape.type) <= kWord);
  });
}

/// Result dims up to the last one (in memory order) that `used` has: what varies in loops further in is
/// hoisted out of them.
double hoisted_elements(const Shape& result, const std::vector<int>& used) {
  double outer = 1, all = 1;
  const auto& minor = result.layout.minor_to_major;
  for (auto d = minor.rbegin(); d != minor.rend(); ++d) {
    all *= static_cast<double>(result.dims[static_cast<size_t>(*d)]);
    if (contains(used, static_cast<int>(*d))) outer = all;
  }
  return outer;
}

/// Coordinates in the dims that have more than one element.
Coords wide_coords(const Coords& coords, const Shape& shape) {
  Coords wide;
  for (size_t k = 0; k < coords.size(); ++k) {
    if (shape.dims[k] != 1) wide.push_back(coords[k]);
  }
  return wide;
}

/// The places of a data movement, symbols first: these are read at places, too.
class PlaceFinder {
 public:
  PlaceFinder(const Instruction& i, const Coords& at) : i_(i), own_(wide_coords(at, i.shape)) {}

  Movements::Place place(size_t operand, const Coords& coords) const {
    const Shape& from = i_.operand(operand)->shape;
    Movements::Place place;
    for (const IndexExpr& c : coords) {
      for (int v : c.variables()) {
        const auto symbol = symbols_.find(v);
        if (symbol == symbols_.end()) {
          place.varies.push_back(v);
        } else {
          place.varies.insert(place.varies.end(), symbol->second.begin(), symbol->second.end());
          place.looked_up |= !symbol->second.empty();
        }
      }
    }
    place.elements = hoisted_elements(i_.shape, place.varies);
    place.own = count(from) == count(i_.shape) && wide_coords(coords, from) == own_;
    return place;
  }
  Movements::Place symbol(const Symbol& s) {
    Movements::Place found = place(s.operand, s.coords);
    symbols_[s.var] = found.varies;
    return found;
  }

 private:
  const Instruction& i_;
  const Coords own_;
  std::unordered_map<int, std::vector<int>> symbols_;  // by variable: dims of the result it varies with
};

class Sweep {
 public:
  Sweep(std::span<const Instruction* const> members, const KernelPlan& plan, const TargetInfo& target,
        Movements& movements)
      : members_(members), plan_(plan), target_(target), movements_(movements) {}

  KernelCost run() {
    demands_.reserve(2 * members_.size());
    for (const Instruction* r : plan_.roots) {
      bool update = has_trait(*r, op_trait::kUpdates) || plan_.kind == KernelKind::kScatter;
      double n = update ? product<double>(plan_.domain) : count(r->shape);
      demands_[r].want({Places::kOwn, n, 1});
      write(r, n);
    }
    for (auto at = members_.rbegin(); at != members_.rend(); ++at) {
      Demand* wanted = demands_.find(*at);
      if (!wanted) continue;
      wanted->inside = true;
      Demand d = *wanted;
      compute(*at, d.elements());
      bool once_a_row = rows_ && (*at)->shape.is_array() && (*at)->shape.rank() > 0 && (*at)->shape.dims == outer_;
      if (once_a_row) d.hoisted = d.elements();
      if (once_a_row && product<double>(reduction_sizes(*plan_.hero)) < vector_lanes((*at)->shape))
        d.bare = d.elements();
      compute_one_by_one(*at, d);
      cost_.instructions += static_cast<int64_t>(code_size(**at) * d.code());
      cost_.once &= d.code() <= 1 && !d.moved;
      spread(*at, d);
    }
    for (const Instruction* i : demands_.keys()) {  // in the order of the sweep: sums of doubles depend on theirs
      if (!demands_.at(i).inside) read(i, demands_.at(i));
    }
    if (plan_.stages.size() > 1) repeat_in_stages();
    for (const Stage& s : plan_.stages) {
      if (s.product) bring_columns(s);
    }
    cost_.call_ns = kCallNs;
    cost_.cores = cores();
    return cost_;
  }

  /// After run().
  InstructionMap<double> times_wanted() const {
    InstructionMap<double> times;
    for (const Instruction* i : demands_.keys()) {
      const Demand& d = demands_.at(i);
      if (d.inside || !i->shape.is_array()) continue;
      times[i] = d.times(std::max(1.0, count(i->shape))) * (d.manner.in_front ? vector_lanes(i->shape) : 1);
    }
    return times;
  }

 private:
  /// One by one a dear op takes as long as in all lanes of a vector. A division or a root hides behind the vectors
  /// that follow it, if there are any: an rsqrt a pair of bodies, of three lanes each, took half of n_body's time.
  /// Between padding of several levels all is done so (a gradient of cumprod in one kernel: 1,045 us, in some 46).
  void compute_one_by_one(const Instruction* i, const Demand& d) {
    if (!i->shape.is_array()) return;
    double alone = 0;
    switch (i->info().price) {
      case OpPrice::kTranscendental: alone = std::min(d.hoisted, d.elements()); break;
      case OpPrice::kDivide: alone = std::min(d.bare, d.elements()); break;
      default: break;
    }
    if (d.manner.spacing > kMostSpacing) alone = d.elements();
    if (alone > 0) compute(i, alone * (vector_lanes(i->shape) - 1));
    if (d.manner.in_front && is_elementwise(i->opcode))
      cost_.compute_ns += std::min(d.hoisted, d.elements()) * kInFront;
    if (d.manner.decides && has_trait(*i, op_trait::kRandomPlaces))
      cost_.compute_ns += std::min(d.hoisted, d.elements()) * kWaits / kCyclesPerNs;
  }

  /// Lanes go along what is reduced, so that what is done with the results is done one by one: a matrix along its rows
  /// times a vector, as rows are. (A logistic loss of 501 rows of 17 took 19 us, 2 as a kernel of its own.)
  bool goes_by_rows() const {
    if (plan_.kind == KernelKind::kRows) return true;
    if (plan_.kind != KernelKind::kContraction || plan_.has_products() || !plan_.hero->is(Opcode::kDot)) return false;
    if (product<double>(reduction_sizes(*plan_.hero)) < target_.vector_bytes / 4) return false;
    const bool left = count(plan_.hero->operand(0)->shape) >= count(plan_.hero->operand(1)->shape);
    const DotDims& dims = plan_.hero->attrs.dot;
    return contains(left ? dims.lhs_contracting : dims.rhs_contracting,
                    int64_t{minor_dim(plan_.hero->operand(left ? 0 : 1)->shape)});
  }

  /// A scatter of single elements or few: where they go, and what goes there, is computed one by one.
  bool places_elements() const {
    if (plan_.kind != KernelKind::kScatter) return false;
    double window = 1;
    for (int64_t d : plan_.hero->attrs.scatter->update_window_dims)
      window *= static_cast<double>(plan_.domain[static_cast<size_t>(d)]);
    return window < target_.vector_bytes / 4;
  }

  /// Every block of rows packs the columns' operand for itself, or reads it where it lies: one that a core's caches do
  /// not hold comes from further away each time. (112 rows in blocks of 12, by 2.3 MB: 3.2 ms, 0.9 in one block.)
  void bring_columns(const Stage& s) {
    // Measured: a copy along its own minor dim, and one that transposes in registers.
    constexpr double kCopied = 0.2, kTransposed = 0.5;
    if (!s.product->is(Opcode::kDot)) return;
    const MatrixProduct p = matrix_product(plan_, s, target_.vector_bytes);
    const auto panels = panel_layout(*s.product, p, *s.blocks);
    const Instruction* columns = s.product->operand(p.columns_operand());
    const bool inside = std::ranges::find(members_, columns) != members_.end();
    const bool lies = !inside && ((panels && columns->shape.layout == *panels) ||
                                  columns_in_place(*s.product, p, *s.blocks, target_));
    if (inside && columns->is(Opcode::kCopy)) columns = columns->operand(0);
    const double elements = static_cast<double>(p.k) * static_cast<double>(p.n);
    if (lies && elements * dtype_bytes(columns->shape.type) <= static_cast<double>(target_.l2_bytes)) return;
    const DotDims& dims = s.product->attrs.dot;
    const bool along =
        contains(p.swapped ? dims.lhs_contracting : dims.rhs_contracting, int64_t{minor_dim(columns->shape)});
    const bool transposes = !lies && !s.blocks->along_depth && along;
    const auto blocks = static_cast<double>(p.batches() * ceil_div(p.m, s.blocks->rows));
    cost_.compute_ns += blocks * elements * (transposes ? kTransposed : kCopied) / kCyclesPerNs;
  }

  /// The sweep counts what an element needs once. A stage computes anew what no earlier one has placed, and
  /// reads its inputs anew: from the level that holds a row.
  void repeat_in_stages() {
    InstructionSet inside(members_), placed;
    InstructionMap<int> visits;
    for (const Stage& s : plan_.stages) {
      if (s.product) placed.insert(s.product);
      if (!s.inner) continue;
      InstructionSet seen;
      std::vector<const Instruction*> open = s.keeps;
      for (const Instruction* r : s.reduces) {
        for (size_t k = 0; k < r->operand_count() / 2; ++k) open.push_back(r->operand(k));
      }
      for (size_t k : s.stores) open.push_back(plan_.roots[k]);
      while (!open.empty()) {
        const Instruction* i = open.back();
        open.pop_back();
        if (!i->shape.is_array() || count(i->shape) != product<double>(plan_.domain) || !seen.insert(i)) continue;
        ++visits[i];
        if (placed.contains(i) || !inside.contains(i)) continue;
        open.insert(open.end(), i->operands().begin(), i->operands().end());
      }
      placed.insert_all(s.keeps);
      for (size_t k : s.rereads) placed.insert(plan_.roots[k]);
    }
    double row = product<double>(plan_.inner_sizes()), row_bytes = 0;
    for (const Instruction* i : visits.keys()) {
      if (!inside.contains(i) || placed.contains(i)) row_bytes += row * dtype_bytes(i->shape.type);
    }
    if (plan_.kind == KernelKind::kColumns) row_bytes *= target_.vector_bytes / 4;
    for (const Instruction* i : visits.keys()) {
      double again = visits.at(i) - 1;
      if (inside.contains(i) && !placed.contains(i)) {
        compute(i, again * count(i->shape));
      } else if (again > 0) {
        double bytes = again * count(i->shape) * dtype_bytes(i->shape.type);
        cost_.memory_ns +=
            bytes / std::max(bandwidth(row_bytes), bandwidth(count(i->shape) * dtype_bytes(i->shape.type)));
      }
    }
  }

  /// Cores that the outer dims can keep busy, of the few that any machine has.
  double cores() const {
    double outer = product<double>(plan_.outer_sizes());
    if (plan_.kind == KernelKind::kColumns) outer /= target_.vector_bytes / 4;
    if (plan_.by_blocks()) outer /= static_cast<double>(plan_.block_rows());
    return std::clamp(outer, 1.0, kCores);
  }

  /// The one value there is, or one of few that none counts.
  void want_once(const Instruction* i) { demands_[i].want({Places::kOwn, 1, 1}); }

  /// Where its user is. The reference holds until more is wanted.
  Demand& want_together(const Instruction* i, const Demand& user) {
    Demand& d = demands_[i];
    for (const Demand::Place& p : user.places()) d.want(p);
    d.manner.join(user.manner);
    return d;
  }
  /// Element by element as its user, outside of the lanes where that is.
  Demand& want_alike(const Instruction* i, const Demand& user) {
    Demand& d = want_together(i, user);
    const double n = user.elements();
    d.hoisted = std::max(d.hoisted, std::min(user.hoisted, n));
    d.bare = std::max(d.bare, std::min(user.bare, n));
    return d;
  }
  /// Through a map of its own.
  void want_apart(const Instruction* i, double elements, double code, bool strided = false) {
    Demand& d = demands_[i];
    d.want({places_.fresh(), elements, code});
    d.manner.strided |= strided;
  }
  /// By a stage: all of it, read anew, but from cache where another stage has read it; its code stands apart.
  void want_in_stage(const Instruction* i, double code, bool strided) {
    Demand& d = demands_[i];
    d.want({places_.fresh(), 0, code, 0});
    d.want({Places::kOwn, count(i->shape), 0});
    d.manner.strided |= strided;
  }

  void spread(const Instruction* i, const Demand& d) {
    if (is_reduction(*i)) return spread_reduction(i, d);
    bool moves = i->info().op_class == OpClass::kMoves && !has_trait(*i, op_trait::kForwards);
    if (moves && !i->is(Opcode::kCopy)) return spread_movement(i, d);
    for (const Instruction* o : i->operands()) {
      if (is_scalar(o) && i->shape.is_array() && i->shape.rank() > 0) {
        want_once(o);
      } else {
        want_alike(o, d).crossed |= d.crossed;
      }
    }
  }

  void spread_reduction(const Instruction* i, const Demand& d) {
    size_t inputs = i->operand_count() - initial_values(*i).size();
    for (size_t k = 0; k < i->operand_count(); ++k) {
      const Instruction* o = i->operand(k);
      if (k >= inputs) {
        want_once(o);
      } else if (i->is(Opcode::kReduce)) {
        want_in_stage(o, d.code(), d.manner.strided);
      } else if (plan_.kind == KernelKind::kScan && i == plan_.hero) {
        want_together(o, d);
      } else if (i->is(Opcode::kDot) || i == plan_.hero) {
        // Packed once a block; what rows are taken from, the kernel's stages have made.
        const bool taken = plan_.has_products() && taken_operand(plan_, i) == static_cast<int>(k);
        demands_[o].want({taken ? Places::kOwn : places_.fresh(), count(o->shape), d.code()});
      } else {
        want_apart(o, d.elements() * product<double>(reduction_sizes(*i)), d.code(), d.manner.strided);
        demands_[o].manner.slid |= slid_dims(*i);
      }
    }
  }

  void spread_movement(const Instruction* i, const Demand& d) {
    if (plan_.kind == KernelKind::kScatter && i == plan_.hero) {
      for (size_t k = update_count(*i); k < i->operand_count(); ++k) {
        want_apart(i->operand(k), count(i->operand(k)->shape), d.code());
      }
      return;
    }
    const Movements::Movement& movement = movements_.of(i);
    const AccessRelation& relation = movement.relation;
    const bool few = std::ssize(relation.reads) <= kMostPartsTogether;
    Parts parts;
    bool known = true;  // where it reads
    // Of an operand whose element is the result's own no element is wanted twice.
    auto want = [&](const Instruction* o, const Coords& coords, const Movements::Place& place, bool guarded) {
      if (place.own)
        want_alike(o, d);
      else
        want_at(i, o, coords, place, guarded, d, few && known ? place_of(o, coords, d, parts) : places_.fresh());
    };
    for (size_t k = 0; k < relation.symbols.size(); ++k) {
      const Symbol& s = relation.symbols[k];
      want(i->operand(s.operand), s.coords, movement.symbols[k], false);
      known = false;
      Demand& index = demands_[i->operand(s.operand)];
      index.manner.decides = true;
      const double row = d.elements() / std::max(1.0, index.hoisted);
      index.manner.in_front |= index.hoisted > 0 && kTransposed < row && row < kFewVectors * vector_lanes(i->shape);
      cost_.once &= !index.manner.in_front;
    }
    // An update that leaves writes its box: what it is put into is not read.
    bool in_place = has_trait(*i, op_trait::kUpdates) && contains(plan_.roots, i);
    // Each part of a concatenation is told from the others at every place where it stands.
    if (relation.reads.size() > 1) {
      const double choices = kChoice * static_cast<double>(relation.reads.size());
      cost_.instructions += static_cast<int64_t>(choices * d.code());
      const double cycles = choices * op_cost(OpPrice::kCheap).cycles;
      if (asks_each(*i, d.manner)) cost_.compute_ns += cycles * d.elements() / vector_lanes(i->shape) / kCyclesPerNs;
    }
    for (size_t k = 0; k < relation.reads.size(); ++k) {
      const Read& read = relation.reads[k];
      const Instruction* o = i->operand(read.operand);
      if (in_place && read.operand == 0) continue;
      if (in_place)
        want_together(o, d);
      else
        want(o, read.coords, movement.reads[k], !read.guards.empty());
    }
    if (relation.fill) want_once(i->operand(*relation.fill));
  }

  /// Operands of one movement, and the places that they are read at.
  using Parts = std::vector<std::pair<const Instruction*, int>>;

  /// Parts of one size, as of three coordinates put side by side, are met in one loop: what they share counts once.
  int place_of(const Instruction* o, const Coords& coords, const Demand& user, Parts& parts) {
    int place = 0;
    for (const auto& [other, at] : parts) {
      if (other == o) return places_.fresh();
      if (other->shape.dims == o->shape.dims) place = at;
    }
    if (place == 0) place = places_.behind(user, coords);
    parts.emplace_back(o, place);
    return place;
  }

  /// Data movement `i` reads `o` at these coordinates; not for every element if `guarded`.
  void want_at(const Instruction* i, const Instruction* o, const Coords& coords, const Movements::Place& of_all,
               bool guarded, const Demand& d, int place) {
    if (is_scalar(o)) return want_once(o);
    if (d.crossed && !i->is(Opcode::kReshape)) cost_.compute_ns += d.elements() * kCrossed;
    double share = d.elements() / std::max(1.0, count(i->shape));
    double elements = of_all.elements * share;
    int minor = minor_dim(i->shape), from = minor_dim(o->shape);
    bool in_lanes = contains(of_all.varies, minor);
    // Between neighbours in the operand the result has others: every lane computes an element, and many for nothing.
    bool spread_out = guarded && in_lanes && from >= 0 && !coords[static_cast<size_t>(from)].coefficient(minor);
    Demand::Manner manner = d.manner.through(*i, coords, guarded);
    if (spread_out) {
      cost_.compute_ns += elements / kCyclesPerNs;
      cost_.instructions += static_cast<int64_t>(kOneByOne * d.code());
    } else if (guarded && manner.spacing > kMostSpacing) {
      elements = std::max(elements, product<double>(plan_.domain));
    } else if (guarded && !asks_each(*i, d.manner)) {
      elements = std::min(elements, count(o->shape) * share);
    }
    // Neighbours in the result are no neighbours in the operand.
    bool apart = in_lanes && from >= 0 && !contains(coords[static_cast<size_t>(from)].variables(), minor);
    const bool slides_by_lanes = minor >= 0 && d.manner.slides_along(minor);
    if (slides_by_lanes && std::ranges::any_of(coords, [&](const IndexExpr& c) {
          return !c.is_affine() && contains(c.variables(), minor);
        }))
      cost_.compute_ns += elements * kSlid;
    Demand& own = demands_[o];
    own.want({place, elements, d.code(), d.ways()});
    manner.strided |= of_all.looked_up || apart;
    own.manner.join(manner);
    own.moved = true;
    own.crossed |= d.crossed || crosses_borders(*i);
    // What is repeated along the lanes is computed before their loop, and so is what it is made of.
    if (in_lanes && d.elements() > 0) own.hoisted += elements * std::min(1.0, d.hoisted / d.elements());
    if (minor < 0 || in_lanes || is_block(i->shape, minor)) return;
    own.hoisted += elements;
    if (d.elements() < elements * vector_lanes(i->shape)) own.bare += elements;
  }

  /// Sums of a few neighbours each, such as coordinates: these are a block, lanes go along another dim, and what the
  /// neighbours share is computed once for them.
  bool is_block(const Shape& shape, int dim) const {
    constexpr int64_t kMost = 4;
    const int64_t size = shape.dims[static_cast<size_t>(dim)];
    if (plan_.kind != KernelKind::kColumns || shape.dims != plan_.domain || size > kMost) return false;
    return !contains(plan_.inner, int64_t{dim}) &&
           product<double>(outer_) >= vector_lanes(shape) * static_cast<double>(size);
  }

  void compute(const Instruction* i, double elements) {
    double lanes = lanes_used(i, vector_lanes(i->shape.is_tuple() ? i->shape.elements[0] : i->shape));
    if (places_elements_ && is_elementwise(i->opcode)) lanes = 1;
    bool one_by_one = has_trait(*i, op_trait::kRandomPlaces) || (plan_.kind == KernelKind::kScan && i == plan_.hero);
    double cycles = i->is(Opcode::kReduce) ? reduce_cycles(i, lanes)
                    : one_by_one           ? elements
                                           : elements / lanes * cycles_per_vector(*i);
    if (is_reduction(*i) && !i->attrs.window.empty() && i != plan_.hero) cycles *= kPulled;
    if (!is_load(i)) cost_.compute_ns += cycles / kCyclesPerNs;
  }

  /// Integers are made wider as they are read, if whole vectors are: sums of short rows read some bytes apart.
  /// (Differences of neighbours in bytes: those as s16 in a kernel of their own, 9.2 us for 240x321, 5.3 in one.)
  bool is_load(const Instruction* i) const {
    if (plan_.kind != KernelKind::kNest || !i->is(Opcode::kConvert) || !is_integral(i->shape.type)) return false;
    const Instruction* from = i->operand(0);
    return is_integral(from->shape.type) && dtype_bits(from->shape.type) < dtype_bits(i->shape.type) &&
           std::ranges::find(members_, from) == members_.end();
  }

  /// Of a vector, on average: rows shorter than two vectors leave some idle, and one shorter than a vector is taken in
  /// powers of two. (A softmax over rows of 3 took 10 us as one kernel, 1.5 with the rows' results apart.)
  double lanes_used(const Instruction* i, double lanes) const {
    const Shape& shape = i->is(Opcode::kReduce) ? i->operand(0)->shape : i->shape;
    if (plan_.kind != KernelKind::kRows || !shape.is_array() || shape.dims != plan_.domain) return lanes;
    const auto row = product<int64_t>(plan_.inner_sizes()), most = static_cast<int64_t>(lanes);
    if (row == 0 || row >= 2 * most) return lanes;
    const int64_t vectors = row < most ? std::popcount(static_cast<uint64_t>(row)) : (row + most - 1) / most;
    return static_cast<double>(row) / static_cast<double>(vectors);
  }

  static double reduce_cycles(const Instruction* i, double lanes) {
    double steps = 0;
    for (const auto& s : i->to_apply()->instructions()) {
      steps += s->is(Opcode::kParameter) ? 0 : cycles_per_vector(*s);
    }
    return count(i->operand(0)->shape) / lanes * steps;
  }

  static double lane_bytes(const Shape& shape) {
    if (is_narrow_float(shape.type)) return 4;  // computed in f32
    return dtype_bytes(shape.type);
  }

  double vector_lanes(const Shape& shape) const { return std::max(1.0, target_.vector_bytes / lane_bytes(shape)); }

  double bandwidth(double buffer_bytes) const {
    if (buffer_bytes <= static_cast<double>(target_.l1_bytes)) return kL1;
    if (buffer_bytes <= static_cast<double>(target_.l2_bytes)) return kL2;
    if (buffer_bytes <= static_cast<double>(target_.llc_bytes)) return kLlc;
    return kMemory;
  }

  /// The bytes.
  double move(const Shape& shape, double elements, double factor) {
    double size = count(shape) * dtype_bytes(shape.type);
    double bytes = std::min(elements * dtype_bytes(shape.type), size);
    cost_.memory_ns += factor * bytes / bandwidth(size);
    ++cost_.buffers;
    if (count(shape) >= product<double>(plan_.domain) && shape.rank() > 0) ++cost_.streams;
    return bytes;
  }

  void read(const Instruction* outside, const Demand& demand) {
    if (is_inline_constant(*outside)) return;
    cost_.instructions += static_cast<int64_t>(conversion_code(outside->shape.type) * demand.code());
    bool packs = plan_.kind == KernelKind::kContraction;  // packing reads in any order
    cost_.bytes_read += move(outside->shape, demand.elements(), demand.manner.strided && !packs ? kStridedFactor : 1);
  }

  void write(const Instruction* root, double elements) {
    if (!root->shape.is_array()) return;
    cost_.bytes_written += move(root->shape, elements, 1);
    // Lanes go along the rows: into a result whose rows are not contiguous, each is stored on its own.
    const bool whole = plan_.kind == KernelKind::kRows && root->shape.dims == plan_.domain;
    if (whole && elements > 0 && !lies_together(root->shape, plan_.inner)) cost_.compute_ns += elements * kStoredApart;
  }

  std::span<const Instruction* const> members_;
  const KernelPlan& plan_;
  const TargetInfo& target_;
  Movements& movements_;
  const Ints outer_ = plan_.outer_sizes();
  const bool rows_ = goes_by_rows(), places_elements_ = places_elements();
  InstructionMap<Demand> demands_;
  Places places_;
  KernelCost cost_;
};

}  // namespace

double KernelCost::work_ns() const { return std::max(memory_ns, compute_ns); }
double KernelCost::total_ns() const {
  // Pieces that are only just worth handing over end at the same time, however many: but less work is better.
  const double first = std::min(work_ns(), kWorthHandingOver);
  return first + (work_ns() - first) / cores + call_ns;
}

const Movements::Movement& Movements::of(const Instruction* i) {
  auto [movement, fresh] = known_.insert(i);
  if (!fresh) return movement;
  VarSource vars;
  for (int64_t n : i->shape.dims) movement.at.push_back(IndexExpr::var(vars.fresh(), n));
  movement.relation = access_relation(*i, movement.at, {}, vars);
  PlaceFinder finder(*i, movement.at);
  for (const Symbol& s : movement.relation.symbols) movement.symbols.push_back(finder.symbol(s));
  for (const Read& r : movement.relation.reads) movement.reads.push_back(finder.place(r.operand, r.coords));
  return movement;
}

KernelCost kernel_cost(std::span<const Instruction* const> members, const KernelPlan& plan, const TargetInfo& target,
                       Movements& movements, InstructionMap<double>& wanted) {
  Sweep sweep(members, plan, target, movements);
  KernelCost cost = sweep.run();
  wanted = sweep.times_wanted();
  return cost;
}

KernelCost kernel_cost(std::span<const Instruction* const> members, const KernelPlan& plan, const TargetInfo& target) {
  Movements movements;
  return Sweep(members, plan, target, movements).run();
}

KernelCost kernel_cost(const Computation& fused, const KernelPlan& plan, const TargetInfo& target) {
  std::vector<const Instruction*> members;
  for (const auto& i : fused.instructions()) {
    if (!i->is(Opcode::kParameter) && !i->is(Opcode::kTuple)) members.push_back(i.get());
  }
  return kernel_cost(members, plan, target);
}

}  // namespace hlojit
