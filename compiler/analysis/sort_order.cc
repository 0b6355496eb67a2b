// See sort_order.h.
#include "compiler/analysis/sort_order.h"

#include <cmath>
#include <optional>

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

/// The key that `less` compares; nullopt: not one.
std::optional<SortKey> compared(const Instruction& less) {
  if (!less.is(Opcode::kCompare)) return std::nullopt;
  const bool is_less = less.attrs.direction == Direction::kLt;
  if (!is_less && less.attrs.direction != Direction::kGt) return std::nullopt;
  std::optional<Key> left = key_of(less.operand(0)), right = key_of(less.operand(1));
  if (!left || !right || left->zeros_tie != right->zeros_tie || left->nans_tie != right->nans_tie) return std::nullopt;
  const int64_t a = left->parameter->attrs.parameter_number, b = right->parameter->attrs.parameter_number;
  if (a / 2 != b / 2 || a == b) return std::nullopt;
  const DType type = left->parameter->shape.type;
  if (!has_key_bits(type)) return std::nullopt;
  SortKey key{.operand = a / 2, .descending = is_less != (a < b), .canonical = false, .type = type};
  if (!is_float(type)) return left->zeros_tie || left->nans_tie ? std::nullopt : std::optional(key);
  if (less.attrs.compare_type == CompareType::kTotalOrder) {
    if (left->zeros_tie != left->nans_tie) return std::nullopt;
    key.canonical = left->zeros_tie;
  } else {
    key.canonical = true;  // with NaNs among the keys IEEE's comparison leaves the order open
  }
  return key;
}

/// Whether `equal` says that what `less` compares is the same.
bool ties(const Instruction& equal, const Instruction& less) {
  if (!less.is(Opcode::kCompare) || !equal.is(Opcode::kCompare) || equal.attrs.direction != Direction::kEq)
    return false;
  const Instruction *a = equal.operand(0), *b = equal.operand(1);
  const bool same = (a == less.operand(0) && b == less.operand(1)) || (a == less.operand(1) && b == less.operand(0));
  return same && equal.attrs.compare_type == less.attrs.compare_type;
}

/// less or (ties and rest), and select(ties, rest, less).
struct Alternatives {
  const Instruction *less, *rest;
};
std::optional<Alternatives> alternatives(const Instruction& test) {
  if (test.is(Opcode::kSelect)) {
    if (!ties(*test.operand(0), *test.operand(2))) return std::nullopt;
    return Alternatives{.less = test.operand(2), .rest = test.operand(1)};
  }
  if (!test.is(Opcode::kOr)) return std::nullopt;
  for (size_t l = 0; l < 2; ++l) {
    const Instruction &less = *test.operand(l), &both = *test.operand(1 - l);
    for (size_t t = 0; t < 2 && both.is(Opcode::kAnd); ++t) {
      if (ties(*both.operand(t), less)) return Alternatives{.less = &less, .rest = both.operand(1 - t)};
    }
  }
  return std::nullopt;
}

}  // namespace

std::vector<SortKey> sort_order(const Computation& comparator) {
  std::vector<SortKey> keys;
  const Instruction* test = comparator.root();
  while (test) {
    const auto next = alternatives(*test);
    std::optional<SortKey> key = compared(next ? *next->less : *test);
    if (!key) return {};
    keys.push_back(*key);
    test = next ? next->rest : nullptr;
  }
  return keys;
}

std::vector<SortKey> integer_order(const Computation& comparator) {
  constexpr int64_t kMostBytes = 8;
  std::vector<SortKey> keys = sort_order(comparator);
  int64_t bytes = 0;
  for (const SortKey& key : keys) bytes += dtype_bytes(key.type);
  return bytes <= kMostBytes ? keys : std::vector<SortKey>();
}

}  // namespace hlojit
