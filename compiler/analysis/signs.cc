// See signs.h.
#include "compiler/analysis/signs.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "compiler/ir/combining.h"
#include "layout/lists.h"

namespace hlojit {
namespace {

constexpr int kDeep = 8;  // instructions behind each other that are asked

struct Signs {
  bool positive = true, negative = true;  // some element may be
};

// Before conversions that change no value: of floats to f32 or f64.
const Instruction* as_narrow(const Instruction* i) {
  auto widens = [](DType from, DType to) {
    return is_float(from) && is_float(to) && dtype_bits(from) < dtype_bits(to) && dtype_bits(to) >= 32;
  };
  while (i->is(Opcode::kConvert) && widens(i->operand(0)->shape.type, i->shape.type)) i = i->operand(0);
  return i;
}

// No element of `top` is below the one of x whose coordinates are its own along `dims`: one for each dim of `top`, -1
// for those of size 1.
bool is_largest(const Instruction& top, const Instruction& x, const Ints& dims) {
  switch (top.opcode) {
    case Opcode::kMaximum: return is_largest(*top.operand(0), x, dims) || is_largest(*top.operand(1), x, dims);
    case Opcode::kConvert: return as_narrow(&top) != &top && is_largest(*as_narrow(&top), x, dims);
    case Opcode::kBroadcast: {
      Ints of;
      for (int64_t d : top.attrs.dimensions) of.push_back(dims[static_cast<size_t>(d)]);
      return is_largest(*top.operand(0), x, of);
    }
    case Opcode::kReshape: {
      Ints of;
      for (int64_t d : past_unit_dims(top.operand(0)->shape, top.shape))
        of.push_back(d < 0 ? -1 : dims[static_cast<size_t>(d)]);
      return is_largest(*top.operand(0), x, of);
    }
    case Opcode::kReduce: {
      if (top.operand_count() != 2 || combining_op(*top.to_apply()) != Opcode::kMaximum) return false;
      if (as_narrow(top.operand(0)) != as_narrow(&x)) return false;
      size_t k = 0;
      for (int64_t d = 0; d < x.shape.rank(); ++d) {
        if (std::ranges::find(top.attrs.dimensions, d) != top.attrs.dimensions.end()) continue;
        if (dims[k] != d && x.shape.dims[static_cast<size_t>(d)] != 1) return false;
        ++k;
      }
      return true;
    }
    default: return false;
  }
}

bool is_largest(const Instruction& top, const Instruction& x) {
  Ints dims(static_cast<size_t>(x.shape.rank()));
  std::iota(dims.begin(), dims.end(), 0);
  return is_largest(top, x, dims);
}

// Has no element a minus, zeros included? What is above zero stays so if it is divided by them, be they zero.
bool has_no_minus(const Instruction& i, int deep) {
  if (!i.shape.is_array() || !is_float(i.shape.type) || deep == 0) return false;
  auto of = [&](size_t k) { return has_no_minus(*i.operand(k), deep - 1); };
  switch (i.opcode) {
    case Opcode::kConstant: return i.literal && i.literal->is_splat() && !std::signbit(i.literal->as_double(0));
    case Opcode::kAbs:
    case Opcode::kExponential:
    case Opcode::kLogistic: return true;
    case Opcode::kMultiply: return i.operand(0) == i.operand(1) || (of(0) && of(1));
    case Opcode::kAdd:
    case Opcode::kDivide: return of(0) && of(1);
    case Opcode::kBroadcast:
    case Opcode::kConvert:
    case Opcode::kCopy:
    case Opcode::kReshape:
    case Opcode::kReverse:
    case Opcode::kSlice:
    case Opcode::kSqrt:
    case Opcode::kTranspose: return of(0);
    default: return false;
  }
}

Signs signs(const Instruction& i, int deep) {
  if (!i.shape.is_array() || !is_float(i.shape.type) || deep == 0) return {};
  auto of = [&](size_t k) { return signs(*i.operand(k), deep - 1); };
  switch (i.opcode) {
    case Opcode::kConstant: {
      const double value = i.literal && i.literal->is_splat() ? i.literal->as_double(0) : NAN;
      return std::isnan(value) ? Signs{} : Signs{value > 0, value < 0};
    }
    case Opcode::kAbs:
    case Opcode::kExponential:
    case Opcode::kLogistic:
    case Opcode::kSqrt: return {true, false};
    case Opcode::kNegate: return {of(0).negative, of(0).positive};
    case Opcode::kDivide: return has_no_minus(*i.operand(1), deep - 1) ? of(0) : Signs{};
    case Opcode::kMultiply: {
      if (i.operand(0) == i.operand(1)) return {true, false};
      const Signs a = of(0), b = of(1);
      return {(a.positive && b.positive) || (a.negative && b.negative),
              (a.positive && b.negative) || (a.negative && b.positive)};
    }
    case Opcode::kAdd: {
      const Signs a = of(0), b = of(1);
      return {a.positive || b.positive, a.negative || b.negative};
    }
    case Opcode::kSubtract: {
      if (is_largest(*i.operand(1), *i.operand(0))) return {false, true};
      const Signs a = of(0), b = of(1);
      return {a.positive || b.negative, a.negative || b.positive};
    }
    case Opcode::kMaximum: {
      const Signs a = of(0), b = of(1);
      return {a.positive || b.positive, a.negative && b.negative};
    }
    case Opcode::kMinimum: {
      const Signs a = of(0), b = of(1);
      return {a.positive && b.positive, a.negative || b.negative};
    }
    case Opcode::kSelect: {
      const Signs a = of(1), b = of(2);
      return {a.positive || b.positive, a.negative || b.negative};
    }
    case Opcode::kBroadcast:
    case Opcode::kConvert:
    case Opcode::kCopy:
    case Opcode::kReshape:
    case Opcode::kReverse:
    case Opcode::kSlice:
    case Opcode::kTranspose: return of(0);
    default: return {};
  }
}

}  // namespace

bool is_nonpositive(const Instruction& value) { return !signs(value, kDeep).positive; }

}  // namespace hlojit
