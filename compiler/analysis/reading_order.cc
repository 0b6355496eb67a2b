// See reading_order.h.
#include "compiler/analysis/reading_order.h"

#include <algorithm>
#include <optional>
#include <ranges>

#include "compiler/analysis/access.h"
#include "compiler/ir/instruction_set.h"
#include "layout/error.h"
#include "layout/lists.h"

namespace hlojit {
namespace {

constexpr int64_t kMostInstructions = 200;
constexpr int64_t kLine = 64;      // bytes
constexpr int64_t kStretches = 8;  // of the results, of which the first and the last are looked at

/// Coordinates of all elements of a stretch, as functions of one variable.
Coords stretch(const Shape& shape, bool last, VarSource& vars) {
  Ints sizes;
  const Ints& minor = shape.layout.minor_to_major;
  for (auto d = minor.rbegin(); d != minor.rend(); ++d) sizes.push_back(shape.dims[*d]);
  const int64_t n = shape.element_count(), part = std::max<int64_t>(n / kStretches, 1);
  const IndexExpr position = IndexExpr::var(vars.fresh(), part) + (last ? n - part : 0);
  const Coords ordered = delinearize(sizes, position);
  Coords at(shape.dims.size());
  for (size_t k = 0; k < ordered.size(); ++k) at[minor[ordered.size() - 1 - k]] = ordered[k];
  return at;
}

/// Elements that may be needed: between which, and how many.
struct Needed {
  int64_t first = INT64_MAX, last = -1;
  bool anywhere = false;
  int64_t count = 0;
};

/// What the results of a stretch need.
class Walk {
 public:
  Walk(bool last, size_t operands) : needed(operands), last_(last) {}

  std::vector<Needed> needed;  ///< of each parameter

  void go(const Computation& body) {
    const Instruction* root = body.root();
    if (root->is(Opcode::kTuple)) {
      for (const Instruction* o : root->operands()) start(o);
    } else {
      start(root);
    }
    for (const auto& i : body.instructions() | std::views::reverse) {
      if (const Place* place = places_.find(i.get())) step(*i, Place(*place));
    }
  }

 private:
  /// Where, and how many elements at most.
  struct Place {
    std::optional<Coords> at;  ///< nullopt: anywhere
    int64_t count = 0;
  };

  void start(const Instruction* result) {
    if (result->is(Opcode::kScatter)) return reach(result, {std::nullopt, INT64_MAX});
    if (result->is(Opcode::kDynamicUpdateSlice)) return start_update(*result);
    const Shape& shape = result->shape.is_tuple() ? result->shape.elements[0] : result->shape;
    reach(result, {stretch(shape, last_, vars_), shape.element_count()});
  }

  /// In place: gone through is what it writes, which is all of it or lies anywhere.
  void start_update(const Instruction& i) {
    const Shape& update = i.operand(1)->shape;
    reach(i.operand(1), {stretch(update, last_, vars_), update.element_count()});
    const bool most = 4 * update.element_count() > 3 * i.shape.element_count();
    reach(i.operand(0), {most ? std::optional(stretch(i.shape, last_, vars_)) : std::nullopt, update.element_count()});
  }

  /// The first place decides, but of parameters, which all are looked at.
  void reach(const Instruction* value, Place at) {
    at.count = std::min(at.count, value->shape.is_array() ? value->shape.element_count() : INT64_MAX);
    if (value->is(Opcode::kParameter)) return look(*value, at);
    if (auto [place, fresh] = places_.insert(value); fresh) place = std::move(at);
  }

  void step(const Instruction& i, const Place& place) {
    if (i.is(Opcode::kGetTupleElement)) return reach(i.operand(0), place);
    int64_t count = place.count;
    std::optional<AccessRelation> relation;
    if (place.at) {
      Coords reduced;
      for (int64_t n : reduction_sizes(i)) {
        reduced.push_back(IndexExpr::var(vars_.fresh(), n));
        count = count > INT64_MAX / std::max<int64_t>(n, 1) ? INT64_MAX : count * n;
      }
      try {
        relation = access_relation(i, *place.at, reduced, vars_);
      } catch (const Error&) {  // none; what has the result's sizes is read along with it
      }
    }
    if (!relation) {
      for (const Instruction* o : i.operands()) {
        if (o->shape.dims == i.shape.dims)
          reach(o, place);
        else
          reach(o, {std::nullopt, INT64_MAX});
      }
      return;
    }
    for (const Symbol& s : relation->symbols) reach(i.operand(s.operand), {s.coords, count});
    for (const Read& r : relation->reads) {
      if (std::ranges::none_of(r.guards, &Guard::never)) reach(i.operand(r.operand), {r.coords, count});
    }
  }

  void look(const Instruction& parameter, const Place& place) {
    const auto number = static_cast<size_t>(parameter.attrs.parameter_number);
    if (number >= needed.size()) return;
    Needed& n = needed[number];
    n.count += std::min(place.count, parameter.shape.element_count());
    if (!place.at) {
      n.anywhere = true;
      return;
    }
    const Range range = linear_index(parameter.shape, *place.at).range();
    n.first = std::min(n.first, range.lo);
    n.last = std::max(n.last, range.hi);
  }

  const bool last_;
  VarSource vars_;
  InstructionMap<Place> places_;
};

// Of elements that lie apart each has a line. (A column of 864 rows, read by one core and rewritten by two: 24 us a
// time, 12.6 where one does both.)
int64_t bytes_of_lines(const Needed& early, int64_t element) {
  if (early.anywhere || early.last < early.first) return early.count * element;
  const int64_t all = (early.last - early.first + 1) * kStretches;
  return std::max(early.count, std::min(all, early.count * (kLine / element))) * element;
}

}  // namespace

std::vector<Reading> readings(const Instruction& fusion) {
  std::vector<Reading> all;
  for (const Instruction* o : fusion.operands()) all.push_back({true, o->shape.dense_bytes()});
  const Computation& body = *fusion.to_apply();
  if (std::ssize(body.instructions()) > kMostInstructions) return all;
  Walk first(false, all.size()), last(true, all.size());
  first.go(body);
  last.go(body);
  for (size_t k = 0; k < all.size(); ++k) {
    const Needed &early = first.needed[k], &late = last.needed[k];
    const Shape& shape = fusion.operand(k)->shape;
    const int64_t n = shape.is_array() ? shape.element_count() : 0;
    if (n < kStretches) continue;
    all[k].in_order = !early.anywhere && !late.anywhere && early.last <= n / 2 && late.first >= n / 2;
    all[k].bytes = std::min(all[k].bytes, bytes_of_lines(early, dtype_bytes(shape.type)));
  }
  return all;
}

int64_t written_elements(const Instruction& fusion, size_t leaf) {
  const Instruction* root = fusion.to_apply()->root();
  if (root->is(Opcode::kTuple) && leaf < root->operand_count()) root = root->operand(leaf);
  const int64_t n = leaves(fusion.shape)[leaf]->element_count();
  return has_trait(*root, op_trait::kUpdates) ? std::min(n, product(update_sizes(*root))) : n;
}

}  // namespace hlojit
