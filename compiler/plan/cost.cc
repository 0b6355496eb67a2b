// See cost.h. One sweep from results to operands counts, for every value, how many of its elements are
// evaluated (a value read elementwise by several users is evaluated once; through slices, pads and the
// like once a reader) and at how many places of the loop body its code stands.
#include "compiler/plan/cost.h"

#include <algorithm>

#include "compiler/analysis/access.h"
#include "compiler/analysis/movement.h"
#include "compiler/plan/contraction.h"
#include "compiler/plan/demand.h"
#include "compiler/plan/op_cost.h"
#include "compiler/plan/pricer.h"
#include "layout/lists.h"

namespace hlojit {
namespace {

// Nanoseconds of work from which on other cores are worth waking.
constexpr double kWorthHandingOver = 20'000;
// Instructions for a choice between operands by where an element is.
constexpr double kChoice = 30;
constexpr double kFewVectors = 4;  // of a row, up to which there is little to do while the next one is looked for
constexpr double kTransposed = 4;  // elements of rows that are looked up in all lanes at once
// Nanoseconds for an element whose place is a quotient of several dims: [4,26,26,9,33] as [5577,144] took 4.6.
constexpr double kCrossed = 3;
// Nanoseconds for a term of a window whose place is a quotient of where the window is: neighbours are no lanes. (Maxima
// of 20 over f32[33,2000], sums of rows made by blocks of 128: 715 us, 57 where the sums are in memory. Where windows
// slide over rows, lanes are neighbours: of 4 by 1 over f64[3,654] as [18,109] 0.6 us, 0.8 in two kernels.)
constexpr double kSlid = 0.5;

// Nanoseconds for an element that is not where the one before it is, each time it is read again: lanes gather it. (All
// differences of 608 transposed floats: 456 us, 150 where the floats are copied first.)
constexpr double kGathered = 0.25;

bool is_scalar(const Instruction* i) { return i->shape.is_array() && i->shape.rank() == 0; }

class Sweep {
 public:
  Sweep(std::span<const Instruction* const> members, const KernelPlan& plan, Products& products, Movements& movements)
      : members_(members), plan_(plan), movements_(movements), price_(members, plan, products) {}

  KernelCost run() {
    demands_.reserve(2 * members_.size());
    for (const Instruction* r : plan_.roots) {
      bool update = has_trait(*r, op_trait::kUpdates) || plan_.kind == KernelKind::kScatter;
      double n = update ? product<double>(plan_.domain) : elements_in(r->shape);
      demands_[r].want({Places::kOwn, n, 1});
      price_.write(r, n);
    }
    for (auto at = members_.rbegin(); at != members_.rend(); ++at) {
      Demand* wanted = demands_.find(*at);
      if (!wanted) continue;
      wanted->inside = true;
      Demand d = *wanted;
      price_.compute(*at, d.elements());
      if (price_.once_a_row(**at)) {
        d.hoisted = d.elements();
        if (product<double>(reduction_sizes(*plan_.hero)) < price_.vector_lanes((*at)->shape)) d.bare = d.elements();
      }
      price_.compute_one_by_one(*at, d);
      cost_.instructions += static_cast<int64_t>(code_size(**at) * d.code());
      cost_.once &= d.code() <= 1 && !d.moved;
      spread(*at, d);
    }
    for (const Instruction* i : demands_.keys()) {  // in the order of the sweep: sums of doubles depend on theirs
      if (!demands_.at(i).inside) price_.read(i, demands_.at(i));
    }
    price_.finish();
    return cost_;
  }

  /// After run().
  InstructionMap<double> times_wanted() const {
    InstructionMap<double> times;
    for (const Instruction* i : demands_.keys()) {
      const Demand& d = demands_.at(i);
      if (d.inside || !i->shape.is_array()) continue;
      times[i] =
          d.times(std::max(1.0, elements_in(i->shape))) * (d.manner.in_front ? price_.vector_lanes(i->shape) : 1);
    }
    return times;
  }

 private:
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
    d.want({Places::kOwn, elements_in(i->shape), 0});
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
        Demand& own = want_alike(o, d);
        own.crossed |= d.crossed;
        own.manner.relaid |= i->is(Opcode::kCopy) && minor_dim(i->shape) != minor_dim(o->shape);
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
        demands_[o].want({taken ? Places::kOwn : places_.fresh(), elements_in(o->shape), d.code()});
      } else {
        const double terms = d.elements() * product<double>(reduction_sizes(*i));
        const bool gathers = d.manner.split || d.manner.strided || d.manner.relaid;
        if (gathers) cost_.compute_ns += std::max(0.0, terms - elements_in(o->shape)) * kGathered;
        want_apart(o, terms, d.code(), d.manner.strided);
        demands_[o].manner.slid |= slid_dims(*i);
        demands_[o].manner.summed = true;
        demands_[o].moved |= terms > elements_in(o->shape);  // computed again
      }
    }
  }

  void spread_movement(const Instruction* i, const Demand& d) {
    if (plan_.kind == KernelKind::kScatter && i == plan_.hero) {
      for (size_t k = update_count(*i); k < i->operand_count(); ++k) {
        want_apart(i->operand(k), elements_in(i->operand(k)->shape), d.code());
      }
      return;
    }
    const Movements::Movement& movement = movements_.of(i);
    const AccessRelation& relation = movement.relation;
    const int most = plan_.kind == KernelKind::kNest ? kMostPartsTogether : kMostPartsAnywhere;
    const bool few = std::ssize(relation.reads) <= most;
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
      index.manner.in_front |=
          index.hoisted > 0 && kTransposed < row && row < kFewVectors * price_.vector_lanes(i->shape);
      cost_.once &= !index.manner.in_front;
    }
    // An update that leaves writes its box: what it is put into is not read.
    bool in_place = has_trait(*i, op_trait::kUpdates) && contains(plan_.roots, i);
    // Each part of a concatenation is told from the others at every place where it stands.
    if (relation.reads.size() > 1) {
      const double choices = kChoice * static_cast<double>(relation.reads.size());
      cost_.instructions += static_cast<int64_t>(choices * d.code());
      const double cycles = choices * op_cost(OpPrice::kCheap).cycles;
      if (asks_each(*i, d.manner))
        cost_.compute_ns += cycles * d.elements() / price_.vector_lanes(i->shape) / kCyclesPerNs;
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
    double share = d.elements() / std::max(1.0, elements_in(i->shape));
    double elements = of_all.elements * share;
    int64_t minor = minor_dim(i->shape), from = minor_dim(o->shape);
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
      elements = std::min(elements, elements_in(o->shape) * share);
    }
    // Neighbours in the result are no neighbours in the operand.
    bool apart = in_lanes && from >= 0 && !contains(coords[static_cast<size_t>(from)].variables(), minor);
    const bool slides_by_lanes = minor >= 0 && d.manner.slides_along(minor);
    if (slides_by_lanes && std::ranges::any_of(coords, [&](const IndexExpr& c) {
          return !c.is_affine() && contains(c.variables(), minor);
        }))
      cost_.compute_ns += elements * kSlid;
    if (!guarded) {  // where padding lies between elements loops are made for those that are read
      if (!d.manner.summed)
        cost_.compute_ns += std::max(0.0, elements - elements_in(o->shape)) * kGathered * of_all.scattered;
      manner.split |= of_all.split;
    }
    Demand& own = demands_[o];
    own.want({place, elements, d.code(), d.ways()});
    manner.strided |= of_all.looked_up || apart;
    manner.across |= reads_across(i, of_all, coords, from);
    manner.each |= of_all.each;
    own.manner.join(manner);
    own.moved = true;
    own.crossed |= d.crossed || crosses_borders(*i) || splits_rows(*i, coords, d.manner);
    // What is repeated along the lanes is computed before their loop, and so is what it is made of.
    if (in_lanes && d.elements() > 0) own.hoisted += elements * std::min(1.0, d.hoisted / d.elements());
    if (minor < 0 || in_lanes || is_block(i->shape, minor)) return;
    own.hoisted += elements;
    if (d.elements() < elements * price_.vector_lanes(i->shape)) own.bare += elements;
  }

  /// Along a row of the kernel's, or from column to column of elements that no instruction gathers, what is read has no
  /// neighbours. (Short rows are loaded as they lie.)
  bool reads_across(const Instruction* i, const Movements::Place& of_all, const Coords& coords, int64_t from) const {
    const bool rows = plan_.kind == KernelKind::kRows;
    const bool columns = plan_.kind == KernelKind::kColumns && dtype_bits(i->shape.type) < 32;
    if ((!rows && !columns) || i->shape.dims != plan_.domain || from < 0) return false;
    const int64_t lanes = minor_dim(plan_.hero->operand(0)->shape);
    if (columns && contains(plan_.inner, lanes)) return false;
    auto along = [&](int64_t dim) { return rows ? contains(plan_.inner, dim) : dim == lanes; };
    return std::ranges::any_of(of_all.varies, along) &&
           std::ranges::none_of(coords[static_cast<size_t>(from)].variables(), along);
  }

  /// Sums of a few neighbours each, such as coordinates: these are a block, lanes go along another dim, and what the
  /// neighbours share is computed once for them.
  bool is_block(const Shape& shape, int dim) const {
    constexpr int64_t kMost = 4;
    const int64_t size = shape.dims[static_cast<size_t>(dim)];
    if (plan_.kind != KernelKind::kColumns || shape.dims != plan_.domain || size > kMost) return false;
    return !contains(plan_.inner, int64_t{dim}) &&
           product<double>(outer_) >= price_.vector_lanes(shape) * static_cast<double>(size);
  }

  std::span<const Instruction* const> members_;
  const KernelPlan& plan_;
  Movements& movements_;
  const Ints outer_ = plan_.outer_sizes();
  InstructionMap<Demand> demands_;
  Places places_;
  Pricer price_;
  KernelCost& cost_ = price_.cost();
};

}  // namespace

double KernelCost::work_ns() const { return std::max(memory_ns, compute_ns); }
double KernelCost::total_ns() const {
  // Pieces that are only just worth handing over end at the same time, however many: but less work is better.
  const double first = std::min(work_ns(), kWorthHandingOver);
  return first + (work_ns() - first) / cores + call_ns;
}

KernelCost kernel_cost(std::span<const Instruction* const> members, const KernelPlan& plan, Products& products,
                       Movements& movements, InstructionMap<double>& wanted) {
  Sweep sweep(members, plan, products, movements);
  KernelCost cost = sweep.run();
  wanted = sweep.times_wanted();
  return cost;
}

KernelCost kernel_cost(std::span<const Instruction* const> members, const KernelPlan& plan, const TargetInfo& target) {
  Products products(target);
  Movements movements;
  return Sweep(members, plan, products, movements).run();
}

KernelCost kernel_cost(const Computation& fused, const KernelPlan& plan, const TargetInfo& target) {
  std::vector<const Instruction*> members;
  for (const auto& i : fused.instructions()) {
    if (!i->is(Opcode::kParameter) && !i->is(Opcode::kTuple)) members.push_back(i.get());
  }
  return kernel_cost(members, plan, target);
}

}  // namespace hlojit
