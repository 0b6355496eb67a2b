// See demand.h.
#include "compiler/plan/demand.h"

#include "compiler/ir/module.h"

namespace hlojit {
namespace {

using Manner = Demand::Manner;

double count(const Shape& shape) { return static_cast<double>(shape.element_count()); }

// In how many halves, thirds and so on a concatenation puts its result: an element in front of many is no part.
double parts_of(const Instruction& i) {
  double most = 1;
  if (!i.is(Opcode::kConcatenate)) return most;
  for (const Instruction* o : i.operands()) most = std::max(most, count(o->shape));
  return std::max(1.0, count(i.shape) / most);
}

// A coordinate is made of several, or of a part of one.
bool folds(const Instruction& i, const Coords& coords) {
  return i.is(Opcode::kReshape) &&
         std::ranges::any_of(coords, [](const IndexExpr& c) { return c.terms().size() > 1 || !c.is_affine(); });
}

// Places of a padded result to one of its operand, where it is padded between elements.
double spacing_of(const Coords& coords) {
  double places = 1;
  for (const IndexExpr& c : coords) {
    for (const IndexExpr::Term& t : c.terms())
      places *= t.atom->kind == IndexExpr::AtomKind::kFloorDiv ? static_cast<double>(t.atom->width) : 1;
  }
  return places;
}

// Does the coordinate change as a window slides along the result's dims?
bool slides(const IndexExpr& coordinate, const Manner& of_result) {
  return of_result.slid != 0 &&
         std::ranges::any_of(coordinate.variables(), [&](int v) { return v >= 0 && of_result.slides_along(v); });
}

// The length of the rows that a coordinate of several goes by; 1: it does not.
int64_t row_of(const IndexExpr& coordinate) {
  int64_t row = 1;
  if (coordinate.terms().size() < 2) return row;
  for (const IndexExpr::Term& t : coordinate.terms()) row = std::max(row, t.coefficient);
  return row;
}

// Some border between parts lies within a row.
bool cuts_rows(const Instruction& concatenate, const Manner& manner) {
  const int64_t d = concatenate.attrs.dimensions[0];
  if (manner.rows_along != d) return false;
  int64_t border = 0;
  return std::ranges::any_of(concatenate.operands(), [&](const Instruction* o) {
    const bool cuts = border % manner.row != 0;
    border += o->shape.dims[static_cast<size_t>(d)];
    return cuts;
  });
}

}  // namespace

Manner Demand::Manner::through(const Instruction& movement, const Coords& coords, bool guarded) const {
  Manner m = *this;
  m.told |= movement.is(Opcode::kConcatenate);
  m.parts *= parts_of(movement);
  m.folded |= folds(movement, coords);
  if (guarded) m.spacing *= spacing_of(coords);
  m.slid = 0;
  m.rows_along = -1;
  for (size_t k = 0; k < coords.size() && movement.is(Opcode::kReshape); ++k) {
    if (const int64_t length = row_of(coords[k]); length > 1) m.rows_along = static_cast<int64_t>(k), m.row = length;
  }
  for (size_t k = 0; k < coords.size(); ++k) m.slid |= slides(coords[k], *this) ? dim_bit(static_cast<int>(k)) : 0;
  return m;
}

uint64_t slid_dims(const Instruction& reduction) {
  uint64_t slid = 0;
  if (!reduction.is(Opcode::kReduceWindow)) return slid;
  const auto& window = reduction.attrs.window;
  for (size_t k = 0; k < window.size(); ++k) slid |= window[k].size > 1 ? Manner::dim_bit(static_cast<int>(k)) : 0;
  return slid;
}

// Loops are cut at the borders of parts, and of parts of these while they are few, but behind a reshape that moves
// borders into what loops go over, only at those of the results' own. (Nine steps of a transform, sums beside
// differences, took 13 us in three kernels, 0.4 in nine.)
// Nor are loops over rows cut within one. (The norm of a model's parameters, side by side, and summed by rows as
// split_reductions has it: 5.3 ms, in two kernels 0.04.)
bool asks_each(const Instruction& movement, const Manner& manner) {
  constexpr double kMostParts = 8;
  if (!movement.is(Opcode::kConcatenate)) return false;
  if (manner.told) return manner.folded || manner.parts * parts_of(movement) > kMostParts;
  return cuts_rows(movement, manner);
}

}  // namespace hlojit
