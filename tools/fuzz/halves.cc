// A fold by halves, as associative scans and their gradients are made of.
#include <iterator>
#include <vector>

#include "tools/fuzz/draft.h"

namespace hlojit::tools::fuzz {
namespace {

using enum Opcode;

/// The two halves of [rows, columns], those on either side or every second row; the shorter one ends in ones.
struct Halves {
  Instruction *first, *second;
};
Halves halves_of(Draft& s, Instruction* x, bool alternate, Instruction* one) {
  const int64_t rows = x->shape.dims[0], columns = x->shape.dims[1], half = (rows + 1) / 2;
  Halves h;
  h.first = alternate ? s.b.slice(x, {0, 0}, {rows, columns}, {2, 1}) : s.b.slice(x, {0, 0}, {half, columns});
  h.second = alternate ? s.b.slice(x, {1, 0}, {rows, columns}, {2, 1}) : s.b.slice(x, {half, 0}, {rows, columns});
  if (rows % 2 != 0) h.second = s.b.pad(h.second, one, {{0, 1, 0}, {}});
  return h;
}

// All rows' product by halves of halves, and its gradient the way back: each level's halves, padded to either side or
// in between, are added up. (Each level at twice the places of the one above: in one kernel a million lines of code.)
Instruction* halve(Draft& s) {
  std::vector<DType> floats;
  for (DType t : s.draw.types) {
    if (is_float(t) && has_zero(t)) floats.push_back(t);
  }
  if (floats.empty()) return nullptr;
  const DType t = s.random.pick(floats);
  const Ints sizes = {s.random.pick(Ints{2, 7, 16, 37, 64, 101, 211}), s.random.pick(Ints{1, 3, 19})};
  const bool alternate = s.random.chance(0.4);
  Instruction* one = s.b.constant(t, 1.0);
  Instruction* zero = s.b.constant(Literal(Shape::scalar(t)));
  Instruction* x = s.limited(s.of(t, sizes), 1);
  std::vector<Halves> levels;
  while (x->shape.dims[0] > 1) {
    levels.push_back(halves_of(s, x, alternate, one));
    x = s.b.binary(kMultiply, levels.back().first, levels.back().second);
  }
  if (s.random.chance(0.3)) return x;
  Instruction* gradient = s.limited(s.of(t, {1, sizes[1]}), 1);
  for (auto level = levels.rbegin(); level != levels.rend(); ++level) {
    const int64_t half = level->first->shape.dims[0];
    const int64_t rows = level == std::prev(levels.rend()) ? sizes[0] : std::next(level)->first->shape.dims[0];
    const int64_t more = rows - half, one_more = alternate ? rows % 2 : 0;
    Instruction* first = s.b.binary(kMultiply, gradient, level->second);
    Instruction* second = s.b.slice(s.b.binary(kMultiply, gradient, level->first), {0, 0}, {more, sizes[1]});
    first = s.b.pad(first, zero, {alternate ? PadDim{0, 1 - one_more, 1} : PadDim{0, more, 0}, {}});
    second = s.b.pad(second, zero, {alternate ? PadDim{1, one_more, 1} : PadDim{half, 0, 0}, {}});
    gradient = s.b.binary(kAdd, first, second);
  }
  return gradient;
}

}  // namespace

Family halves_family() { return {"halves", {{halve, 20}}, 0.02}; }

}  // namespace hlojit::tools::fuzz
