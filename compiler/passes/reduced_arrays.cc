// See reduced_arrays.h.
#include "compiler/passes/reduced_arrays.h"

#include <algorithm>
#include <span>

#include "layout/lists.h"

#include "compiler/passes/equal_parts.h"
#include "compiler/plan/op_cost.h"

namespace hlojit {
namespace {

using enum Opcode;

/// Dims of sizes `from` that are reduced where the array has been reshaped to sizes `to`, of which dims `reduced` are;
/// nullopt if these are not whole dims, or others do not stay as they are.
std::optional<Ints> dims_before(const Ints& from, const Ints& to, const Ints& reduced) {
  Ints found;
  size_t i = 0;
  for (size_t j = 0; j < to.size();) {
    const size_t first = i, begin = j;
    int64_t have = 1, wanted = 1;
    do {
      if (wanted <= have && j < to.size())
        wanted *= to[j++];
      else if (i < from.size())
        have *= from[i++];
      else
        return std::nullopt;
    } while (have != wanted);
    const auto among = static_cast<size_t>(std::ranges::count_if(
        reduced, [&](int64_t d) { return d >= static_cast<int64_t>(begin) && d < static_cast<int64_t>(j); }));
    const bool stays = among == 0 && i == first + 1 && j == begin + 1;
    if (among != j - begin && !stays) return std::nullopt;
    for (size_t d = first; d < i && !stays; ++d) found.push_back(static_cast<int64_t>(d));
  }
  return i == from.size() ? std::optional(std::move(found)) : std::nullopt;
}

bool is_spread(const Instruction* value) { return value->is(kBroadcast) && value->operand(0)->shape.rank() == 0; }

/// Reading it again costs next to nothing.
bool only_moves(const Instruction* value) {
  return value->info().op_class == OpClass::kMoves && !has_trait(*value, op_trait::kRandomPlaces);
}

/// The reshape of one array, moved or computed, that the value is, elementwise at most, for a single reader; nullptr if
/// there is none or another. `looks`: at so many values; chains may be of any length.
const Instruction* reshape_under(const Instruction* value, bool shared, int& looks) {
  if (--looks < 0 || !value->control_predecessors.empty()) return nullptr;
  const bool alone = value->users().size() == 1;
  if (value->is(kReshape)) {
    const Instruction* x = value->operand(0);
    const bool made = is_elementwise(x->opcode) || x->info().op_class == OpClass::kMoves;
    return (alone ? made : shared && only_moves(x)) ? value : nullptr;
  }
  if (!alone || !is_elementwise(value->opcode)) return nullptr;
  const Instruction* found = nullptr;
  for (const Instruction* o : value->operands()) {
    if (is_spread(o) || o->shape.rank() == 0) continue;
    const Instruction* r = reshape_under(o, shared, looks);
    if (!r || (found && found->operand(0)->shape.dims != r->operand(0)->shape.dims)) return nullptr;
    if (!found || r->users().size() > 1) found = r;
  }
  return found;
}

/// Elements of the innermost of several dims that a reshape makes dim d of; 1 if there are none.
int64_t innermost_of(const Ints& from, const Ints& to, size_t d) {
  const int64_t inside = product(std::span(to).subspan(d + 1));
  size_t k = from.size();
  int64_t behind = 1;
  while (k > 0 && (behind < inside || from[k - 1] == 1)) behind *= from[--k];
  if (behind != inside || k == 0) return 1;
  return from[k - 1] < to[d] && to[d] % from[k - 1] == 0 ? from[k - 1] : 1;
}

/// row_length, of a value among so many that are looked at.
int64_t row_length(const Instruction& value, int64_t d, int& looks) {
  if (--looks < 0 || value.shape.rank() == 0) return 1;
  const auto dim = static_cast<size_t>(d);
  if (value.is(kReshape)) return innermost_of(value.operand(0)->shape.dims, value.shape.dims, dim);
  if (value.is(kSlice)) {
    const auto& part = value.attrs.slice[dim];
    return part.start == 0 && part.stride == 1 ? row_length(*value.operand(0), d, looks) : 1;
  }
  int64_t found = 1;
  if (!is_elementwise(value.opcode)) return found;
  for (size_t k = 0; k < value.operand_count() && found == 1; ++k) found = row_length(*value.operand(k), d, looks);
  return found;
}

/// The value with other sizes, and the layout of what has these.
Instruction* clone_as(Computation& c, const Instruction& value, std::vector<Instruction*> operands, const Shape& like) {
  Instruction* made = c.clone_instruction(value, std::move(operands));
  const DType type = value.shape.type;
  made->shape = like;
  made->shape.type = type;
  made->shape.layout.element_size_in_bits = value.shape.layout.element_size_in_bits;
  return made;
}

/// Computing it once more for the reduction is cheap.
bool is_light(const Instruction* value, int looks = 4) {
  const bool computes = is_elementwise(value->opcode);
  if (!computes && value->info().op_class != OpClass::kMoves) return true;
  if (looks == 0 || (computes ? price_of(*value) > OpPrice::kCheap : !only_moves(value))) return false;
  return std::ranges::all_of(value->operands(), [&](const Instruction* o) { return is_light(o, looks - 1); });
}

}  // namespace

int64_t row_length(const Instruction& value, int64_t d) {
  int looks = 64;
  return row_length(value, d, looks);
}

std::optional<Reshaped> before_reshape(const Instruction& reduce, bool shared) {
  int looks = 64;
  const Shape& shape = reduce.operand(0)->shape;
  const Instruction* r = reshape_under(reduce.operand(0), shared, looks);
  if (!r || shape.element_count() == 0) return std::nullopt;
  const Instruction* array = r->operand(0);
  if (same_but_for_unit_dims(array->shape, shape)) return std::nullopt;  // as squeeze has made it
  std::optional<Ints> dims = dims_before(array->shape.dims, shape.dims, reduce.attrs.dimensions);
  return dims ? std::optional(Reshaped{array, std::move(*dims), r->users().size() > 1}) : std::nullopt;
}

Instruction* in_sizes_of(Computation& c, Instruction* operand, const Instruction& array) {
  if (operand->is(kReshape)) return operand->operand(0);
  if (operand->shape.rank() == 0) return operand;
  std::vector<Instruction*> operands(operand->operands().begin(), operand->operands().end());
  if (!is_spread(operand)) {
    for (Instruction*& o : operands) o = in_sizes_of(c, o, array);
  }
  return clone_as(c, *operand, std::move(operands), array.shape);
}

std::vector<int64_t> Concatenated::borders() const {
  std::vector<int64_t> found = borders_;
  std::ranges::sort(found);
  found.erase(std::ranges::unique(found).begin(), found.end());
  return found;
}

// What is computed for others, too, is read where it is.
void Concatenated::follow(Instruction* value, int64_t at, bool shared) {
  if (--looks_ < 0 || value->shape.rank() == 0 || is_spread(value) || !value->control_predecessors.empty()) return;
  shared |= value->users().size() > 1;
  if (value->is(kConcatenate) && value->attrs.dimensions[0] == dim_) {
    if (shared && !std::ranges::all_of(value->operands(), [](const Instruction* o) { return is_light(o); })) return;
    followed_.insert(value);
    for (Instruction* o : value->operands()) {
      const int64_t n = o->shape.dims[static_cast<size_t>(dim_)];
      if (at > 0 && n > 0) borders_.push_back(at);
      follow(o, at, shared);
      at += n;
    }
  } else if (is_elementwise(value->opcode) && !shared) {
    followed_.insert(value);
    for (Instruction* o : value->operands()) follow(o, at, shared);
  }
}

Instruction* Concatenated::of(Computation& c, Instruction* value, int64_t start, int64_t limit) const {
  if (value->shape.rank() == 0) return value;
  const auto d = static_cast<size_t>(dim_);
  if (start == 0 && limit == value->shape.dims[d]) return value;
  if (!followed_.contains(value) && !is_spread(value)) return slice_along(c, value, dim_, start, limit);
  Shape shape = value->shape;
  shape.dims[d] = limit - start;
  std::vector<Instruction*> operands;
  if (!value->is(kConcatenate)) {
    for (Instruction* o : value->operands()) operands.push_back(of(c, o, start, limit));
    return clone_as(c, *value, std::move(operands), shape);
  }
  int64_t at = 0;
  for (Instruction* o : value->operands()) {
    const int64_t n = o->shape.dims[d], from = std::max(start - at, int64_t{0}), to = std::min(limit - at, n);
    if (from < to) operands.push_back(of(c, o, from, to));
    at += n;
  }
  return operands.size() == 1 ? operands[0] : clone_as(c, *value, std::move(operands), shape);
}

}  // namespace hlojit
