// See demand.h.
#include "compiler/plan/demand.h"

#include "compiler/ir/module.h"

namespace hlojit {
namespace {

using Manner = Demand::Manner;

constexpr int64_t kMostParts = 8;  // at whose borders loops are cut

// In how many halves, thirds and so on a concatenation puts its result: an element in front of many is no part.
double parts_of(const Instruction& i) {
  double most = 1;
  if (!i.is(Opcode::kConcatenate)) return most;
  for (const Instruction* o : i.operands()) most = std::max(most, elements_in(o->shape));
  return std::max(1.0, elements_in(i.shape) / most);
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

bool depends_on(const IndexExpr& c, uint64_t dims) {
  return std::ranges::any_of(c.variables(), [&](int v) { return (dims & Manner::dim_bit(v)) != 0; });
}

// Quotients, or rests of them, which are the same all along each of these rows.
bool same_in_row(const IndexExpr& c, const Manner::Rows& rows) {
  if (rows.length == 0 || rows.first % rows.length != 0) return false;
  return std::ranges::all_of(c.terms(), [&](const IndexExpr::Term& t) {
    const IndexExpr::Atom* atom = t.atom.get();
    if (atom->kind == IndexExpr::AtomKind::kMod && atom->operand->terms().size() == 1)
      atom = atom->operand->terms()[0].atom.get();
    return atom->kind == IndexExpr::AtomKind::kFloorDiv && atom->width % rows.length == 0;
  });
}

// The rows that a movement's operand is read by, which is wanted by `rows` itself.
Manner::Rows rows_through(const Instruction& movement, const Coords& coords, const Manner::Rows& rows) {
  Manner::Rows through;
  for (size_t k = 0; k < coords.size(); ++k) {
    const IndexExpr& c = coords[k];
    const uint64_t dim = Manner::dim_bit(static_cast<int>(k));
    if (movement.is(Opcode::kReshape) && c.terms().size() > 1) {
      int64_t length = 1;
      for (const IndexExpr::Term& t : c.terms()) length = std::max(length, t.coefficient);
      return {dim, length, 0};
    }
    if (!depends_on(c, rows.along) || same_in_row(c, rows)) continue;
    const bool shifted = c.terms().size() == 1 && c.terms()[0].atom->kind == IndexExpr::AtomKind::kVar;
    const bool alone = through.along == 0 && shifted && c.terms()[0].coefficient == 1;
    through = {through.along | dim, alone ? rows.length : 0, rows.first + c.constant()};
  }
  return through;
}

// Some border between parts lies within a row.
bool cuts_rows(const Instruction& concatenate, const Manner::Rows& rows) {
  const int64_t d = concatenate.attrs.dimensions[0];
  if ((rows.along & Manner::dim_bit(static_cast<int>(d))) == 0) return false;
  int64_t border = 0;
  for (size_t k = 0; k + 1 < concatenate.operand_count(); ++k) {
    border += concatenate.operand(k)->shape.dims[static_cast<size_t>(d)];
    if (rows.length == 0 || (border - rows.first) % rows.length != 0) return true;
  }
  return false;
}

}  // namespace

Manner Demand::Manner::through(const Instruction& movement, const Coords& coords, bool guarded) const {
  Manner m = *this;
  m.told |= movement.is(Opcode::kConcatenate);
  m.parts *= parts_of(movement);
  m.folded |= folds(movement, coords);
  if (guarded) m.spacing *= spacing_of(coords);
  m.slid = 0;
  m.rows = rows_through(movement, coords, rows);
  return m;
}

uint64_t slid_dims(const Instruction& reduction) {
  uint64_t slid = 0;
  if (!reduction.is(Opcode::kReduceWindow)) return slid;
  const auto& window = reduction.attrs.window;
  for (size_t k = 0; k < window.size(); ++k) slid |= window[k].size > 1 ? Manner::dim_bit(static_cast<int>(k)) : 0;
  return slid;
}

// At a few borders loops are cut. (Bits of s32[3,205,10,31] packed by eights, each compared with one of its 310: 254
// us, 38 in two kernels.)
bool splits_rows(const Instruction& movement, const Coords& coords, const Manner& manner) {
  const Manner::Rows& rows = manner.rows;
  if (!movement.is(Opcode::kReshape) || rows.along == 0) return false;
  auto whole = [](int64_t n, int64_t part, int64_t first) { return part > 0 && n % part == 0 && first % part == 0; };
  return std::ranges::any_of(coords, [&](const IndexExpr& c) {
    if (!depends_on(c, rows.along)) return false;
    return std::ranges::any_of(c.div_mod_atoms(), [&](const auto& atom) {
      const bool many = atom->operand->range().hi / atom->width >= kMostParts;
      return many && !whole(atom->width, rows.length, rows.first) && !whole(rows.length, atom->width, rows.first);
    });
  });
}

// Loops are cut at the borders of parts, and of parts of these while they are few, but behind a reshape that moves
// borders into what loops go over, only at those of the results' own. (Nine steps of a transform, sums beside
// differences, took 13 us in three kernels, 0.4 in nine.)
// Nor are loops over rows cut within one. (The norm of a model's parameters, side by side, and summed by rows as
// split_reductions has it: 5.3 ms, in two kernels 0.04.)
bool asks_each(const Instruction& movement, const Manner& manner) {
  if (!movement.is(Opcode::kConcatenate)) return false;
  if (manner.told) return manner.folded || manner.parts * parts_of(movement) > static_cast<double>(kMostParts);
  return cuts_rows(movement, manner.rows);
}

}  // namespace hlojit
