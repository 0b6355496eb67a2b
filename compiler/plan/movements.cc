// See movements.h.
#include "compiler/plan/movements.h"

#include <algorithm>
#include <cstdlib>
#include <unordered_map>

#include "layout/index_expr.h"
#include "layout/lists.h"

namespace hlojit {
namespace {

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

/// Not what is counted, or computed of what is. `deep`: so far that is looked for.
bool comes_from_memory(const Instruction* i, int deep) {
  const OpClass c = i->info().op_class;
  if (c == OpClass::kSource) return !i->is(Opcode::kIota) && i->shape.element_count() > 1;
  if (deep == 0 || (c != OpClass::kElementwise && c != OpClass::kMoves)) return true;
  return std::ranges::any_of(i->operands(), [&](const Instruction* o) { return comes_from_memory(o, deep - 1); });
}

/// The places of a data movement, symbols first: these are read at places, too.
class PlaceFinder {
 public:
  PlaceFinder(const Instruction& i, const Coords& at) : i_(i), own_(wide_coords(at, i.shape)) {}

  Movements::Place place(size_t operand, const Coords& coords) const {
    Movements::Place place = varying(operand, coords);
    if (minor_ < 0 || place.own || place.looked_up || !contains(place.varies, minor_)) return place;
    const Shape& from = i_.operand(operand)->shape;
    place.split = std::ranges::any_of(coords, [&](const IndexExpr& c) { return !c.coefficient(minor_); });
    if (comes_from_memory(i_.operand(operand), 8)) place.scattered = scattered(linear_index(from, coords));
    return place;
  }
  Movements::Place symbol(const Symbol& s) {
    Movements::Place found = place(s.operand, s.coords);
    symbols_[s.var] = found.varies;
    return found;
  }

 private:
  Movements::Place varying(size_t operand, const Coords& coords) const {
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
          place.each |= minor_ >= 0 && contains(symbol->second, minor_);
        }
      }
    }
    place.elements = hoisted_elements(i_.shape, place.varies);
    place.own = from.element_count() == i_.shape.element_count() && wide_coords(coords, from) == own_;
    return place;
  }

  /// Not where the address goes up, or down, with the coordinate along the result's neighbours, at least for a while.
  /// Few elements apart, whole vectors are loaded and lanes picked. (As dear as gathered: an associative scan of
  /// bf16[67,131] 13.9 us, 13.0 so; as cheap as neighbours: Sinkhorn's steps with points of three coordinates 84, 70
  /// so.)
  double scattered(const IndexExpr& address) const {
    constexpr int64_t kLong = 16, kFewStrides = 4;
    constexpr double kPicked = 1.0 / 6;
    if (const auto step = address.coefficient(minor_)) {
      const int64_t apart = std::abs(*step);
      return apart > kFewStrides ? 1 : kPicked * static_cast<double>(std::max<int64_t>(apart - 1, 0));
    }
    const bool follows = std::ranges::any_of(address.terms(), [&](const IndexExpr::Term& t) {
      const auto& operand = t.atom->operand;
      const bool rest = t.atom->kind == IndexExpr::AtomKind::kMod && t.atom->width >= kLong;
      return rest && std::abs(t.coefficient) == 1 && operand->coefficient(minor_) == 1;
    });
    return follows ? 0 : 1;
  }

  const Instruction& i_;
  const int64_t minor_ = minor_dim(i_.shape);
  const Coords own_;
  std::unordered_map<int, std::vector<int>> symbols_;  // by variable: dims of the result it varies with
};

}  // namespace

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

}  // namespace hlojit
