// See sort_order.h.
#include "compiler/analysis/sort_order.h"

#include <cmath>

namespace hlojit {
namespace {

bool has_key_bits(DType type) {
  switch (type) {
    case DType::kPred:
    case DType::kS8:
    case DType::kS16:
    case DType::kS32:
    case DType::kS64:
    case DType::kU8:
    case DType::kU16:
    case DType::kU32:
    case DType::kU64:
    case DType::kS2:
    case DType::kU2:
    case DType::kS4:
    case DType::kU4:
    case DType::kF8E5M2:
    case DType::kF8E4M3:
    case DType::kF8E3M4:
    case DType::kF8E4M3FN:
    case DType::kF16:
    case DType::kBF16:
    case DType::kF32:
    case DType::kF64: return true;
    default: return false;
  }
}

bool is_constant(const Instruction& i, bool (*wanted)(double)) {
  return i.is(Opcode::kConstant) && i.literal && wanted(i.literal->as_double(0));
}
bool is_zero(double x) { return x == 0; }
bool is_nan(double x) { return std::isnan(x) && !std::signbit(x); }  // the last in the total order

/// compare(x, x), NE, of floats.
bool tests_nan(const Instruction& i, const Instruction* x) {
  return i.is(Opcode::kCompare) && i.attrs.direction == Direction::kNe && i.operand(0) == x && i.operand(1) == x &&
         i.attrs.compare_type != CompareType::kTotalOrder;
}
/// compare(x, 0), EQ, of floats.
bool tests_zero(const Instruction& i, const Instruction* x) {
  return i.is(Opcode::kCompare) && i.attrs.direction == Direction::kEq && i.operand(0) == x &&
         is_constant(*i.operand(1), is_zero) && i.attrs.compare_type != CompareType::kTotalOrder;
}

struct Key {
  const Instruction* parameter = nullptr;
  bool zeros_tie = false, nans_tie = false;
};

/// Follows select(x == 0, 0, x) and select(x != x, nan, x) down to the parameter.
std::optional<Key> key_of(const Instruction* value) {
  Key key;
  std::vector<const Instruction*> tests, zeros;
  while (value->is(Opcode::kSelect)) {
    const Instruction& test = *value->operand(0);
    bool nan = is_constant(*value->operand(1), is_nan), zero = is_constant(*value->operand(1), is_zero);
    if (nan == zero || (nan ? key.nans_tie : key.zeros_tie)) return std::nullopt;
    (nan ? key.nans_tie : key.zeros_tie) = true;
    (nan ? tests : zeros).push_back(&test);
    value = value->operand(2);
  }
  if (!value->is(Opcode::kParameter)) return std::nullopt;
  for (const Instruction* t : tests) {
    if (!tests_nan(*t, value)) return std::nullopt;
  }
  for (const Instruction* t : zeros) {
    if (!tests_zero(*t, value)) return std::nullopt;
  }
  key.parameter = value;
  return key;
}

}  // namespace

std::optional<SortOrder> sort_order(const Computation& comparator) {
  const Instruction& root = *comparator.root();
  if (!root.is(Opcode::kCompare)) return std::nullopt;
  bool less = root.attrs.direction == Direction::kLt;
  if (!less && root.attrs.direction != Direction::kGt) return std::nullopt;
  std::optional<Key> left = key_of(root.operand(0)), right = key_of(root.operand(1));
  if (!left || !right || left->zeros_tie != right->zeros_tie || left->nans_tie != right->nans_tie) return std::nullopt;
  int64_t a = left->parameter->attrs.parameter_number, b = right->parameter->attrs.parameter_number;
  if (a / 2 != b / 2 || a == b) return std::nullopt;
  DType type = left->parameter->shape.type;
  if (!has_key_bits(type)) return std::nullopt;
  SortOrder order{.operand = a / 2, .descending = less != (a < b), .canonical = false};
  if (!is_float(type)) return left->zeros_tie || left->nans_tie ? std::nullopt : std::optional(order);
  if (root.attrs.compare_type == CompareType::kTotalOrder) {
    if (left->zeros_tie != left->nans_tie) return std::nullopt;
    order.canonical = left->zeros_tie;
  } else {
    order.canonical = true;  // with NaNs among the keys IEEE's comparison leaves the order open
  }
  return order;
}

}  // namespace hlojit
