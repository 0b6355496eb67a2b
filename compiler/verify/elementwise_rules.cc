// Elementwise ops: which element types they admit, and what type they give back.
//
// The many ops that only differ in that are rows of one table. HLO has no implicit broadcast: sizes
// of operands and result are equal, with three exceptions (scalar bounds of clamp, scalar predicate
// of select, and iota, which has no operand).
#include <numeric>

#include "compiler/verify/rules.h"
#include "compiler/verify/shape_inference.h"

namespace hlojit::rules {
namespace {

enum class Gives : uint8_t { kSame, kComponent, kPred, kComplexOf };

struct Row {
  Opcode opcode;
  uint8_t admits;
  Gives gives = Gives::kSame;
};

constexpr uint8_t kLogic = kPred | kInt;
constexpr uint8_t kReal = kFloat | kComplex;  // what analysis is defined on

constexpr Row kRows[] = {
    // pred: add and max are or, multiply and min are and
    {Opcode::kAdd, kAny},
    {Opcode::kMultiply, kAny},
    {Opcode::kMaximum, kAny},
    {Opcode::kMinimum, kAny},

    {Opcode::kSubtract, kNumber},
    {Opcode::kDivide, kNumber},
    {Opcode::kRemainder, kInt | kFloat},
    {Opcode::kPower, kNumber},
    {Opcode::kNegate, kNumber},
    {Opcode::kAbs, kSigned | kFloat | kComplex, Gives::kComponent},
    {Opcode::kSign, kSigned | kFloat | kComplex},

    {Opcode::kAnd, kLogic},
    {Opcode::kOr, kLogic},
    {Opcode::kXor, kLogic},
    {Opcode::kNot, kLogic},
    {Opcode::kMulHi, kInt},
    {Opcode::kShiftLeft, kInt},
    {Opcode::kShiftRightArithmetic, kInt},
    {Opcode::kShiftRightLogical, kInt},
    {Opcode::kPopcnt, kInt},
    {Opcode::kClz, kInt},

    {Opcode::kCeil, kFloat},
    {Opcode::kFloor, kFloat},
    {Opcode::kRoundAfz, kFloat},
    {Opcode::kRoundEven, kFloat},
    {Opcode::kCbrt, kFloat},
    {Opcode::kErf, kFloat},
    {Opcode::kIsFinite, kFloat, Gives::kPred},

    {Opcode::kAtan2, kReal},
    {Opcode::kExponential, kReal},
    {Opcode::kExponentialMinusOne, kReal},
    {Opcode::kLog, kReal},
    {Opcode::kLogPlusOne, kReal},
    {Opcode::kLogistic, kReal},
    {Opcode::kSine, kReal},
    {Opcode::kCosine, kReal},
    {Opcode::kTan, kReal},
    {Opcode::kTanh, kReal},
    {Opcode::kSqrt, kReal},
    {Opcode::kRsqrt, kReal},
    {Opcode::kAcos, kReal},
    {Opcode::kAcosh, kReal},
    {Opcode::kAsin, kReal},
    {Opcode::kAsinh, kReal},
    {Opcode::kAtanh, kReal},
    {Opcode::kCosh, kReal},
    {Opcode::kSinh, kReal},

    {Opcode::kReal, kReal, Gives::kComponent},
    {Opcode::kImag, kReal, Gives::kComponent},
    {Opcode::kComplex, kFloat, Gives::kComplexOf},
};

// Rows by opcode.
constexpr auto kRowOf = [] {
  std::array<const Row*, 256> rows{};
  for (const Row& row : kRows) rows[static_cast<size_t>(row.opcode)] = &row;
  return rows;
}();

// The same array with another element type; a packed element size does not survive.
Shape with_type(const Shape& shape, DType type) {
  Shape result = shape;
  if (type != shape.type) {
    result.type = type;
    result.layout.element_size_in_bits = 0;
  }
  return result;
}

}  // namespace

Shape elementwise(const Use& use) {
  const Row& row = *kRowOf[static_cast<size_t>(use.opcode)];
  need_count(use, op_info(use.opcode).arity);
  need_arrays(use);
  for (size_t i = 1; i < use.operands.size(); ++i) {
    need_same_type(use, 0, i);
    need_same_sizes(use, 0, i);
  }
  need_type(use, 0, row.admits);
  const Shape& x = use.operand(0);
  switch (row.gives) {
    case Gives::kSame: return x;
    case Gives::kComponent: return with_type(x, component_type(x.type));
    case Gives::kPred: return with_type(x, DType::kPred);
    case Gives::kComplexOf: break;
  }
  need(complex_of(x.type) != DType::kInvalid, "operand-type",
       "complex of {} is not defined: its parts must be f32 or f64", dtype_name(x.type));
  return with_type(x, complex_of(x.type));
}

namespace {

Shape compare(const Use& use) {
  need_count(use, 2);
  need_arrays(use);
  need_same_type(use, 0, 1);
  need_same_sizes(use, 0, 1);
  uint8_t admits = kAny;
  switch (use.attrs.compare_type) {
    case CompareType::kDefault: break;
    case CompareType::kFloat: admits = kFloat | kComplex; break;
    case CompareType::kTotalOrder: admits = kFloat; break;
    case CompareType::kSigned: admits = kSigned; break;
    case CompareType::kUnsigned: admits = kUnsigned | kPred; break;
  }
  const Shape& x = use.operand(0);
  if (!(class_bit(x.type) & admits)) {
    fail("compare-type",
         fmt::format("this comparison type is for {} operands, not {}", describe_classes(admits), dtype_name(x.type)),
         "suggestion: leave out type=, the default follows the element type");
  }
  return with_type(x, DType::kPred);
}

Shape select(const Use& use) {
  need_count(use, 3);
  if (!use.operand(1).is_array() || !use.operand(2).is_array()) {
    fail("operand-kind", fmt::format("select chooses between arrays, not {}", use.operand(1)),
         "suggestion: select each element, or use conditional");
  }
  need_type(use, 0, kPred);
  need_same_type(use, 1, 2);
  need_same_sizes(use, 1, 2);
  if (!use.operand(0).is_scalar()) need_same_sizes(use, 0, 1);
  return use.operand(1);
}

Shape clamp(const Use& use) {
  need_count(use, 3);
  need_arrays(use);
  for (size_t bound : {0, 2}) {
    need_same_type(use, 1, bound);
    if (!use.operand(bound).is_scalar()) need_same_sizes(use, 1, bound);
  }
  return use.operand(1);
}

Shape convert(const Use& use) {
  need_count(use, 1);
  const Shape& x = array(use, 0);
  if (!use.declared) return undetermined();
  need_declared_sizes(use, x.dims);
  return *use.declared;
}

Shape bitcast_convert(const Use& use) {
  need_count(use, 1);
  const Shape& x = array(use, 0);
  if (!use.declared) return undetermined();
  const Shape& result = declared_array(use);
  need(is_complex(x.type) == is_complex(result.type), "result-type",
       "bitcast-convert from {} to {} mixes complex and real", dtype_name(x.type), dtype_name(result.type));
  int from = bitcast_bits(x.type), to = bitcast_bits(result.type);
  std::vector<int64_t> dims = x.dims;
  if (from > to) {
    need(from % to == 0, "bitcast-convert-width", "{} bits do not split into elements of {} bits", from, to);
    dims.push_back(from / to);
  } else if (from < to) {
    need(to % from == 0, "bitcast-convert-width", "{} bits do not fill elements of {} bits", from, to);
    need(!dims.empty() && dims.back() == to / from, "bitcast-convert-width",
         "from {} to {} the last dimension must have size {}, and {} has not", dtype_name(x.type),
         dtype_name(result.type), to / from, x);
    dims.pop_back();
  }
  need_declared_sizes(use, dims);
  return result;
}

Shape reduce_precision(const Use& use) {
  need_count(use, 1);
  need_type(use, 0, kFloat);
  need(use.attrs.exponent_bits >= 1, "reduce-precision-bits", "exponent_bits must be at least 1, not {}",
       use.attrs.exponent_bits);
  need(use.attrs.mantissa_bits >= 0, "reduce-precision-bits", "mantissa_bits must be at least 0, not {}",
       use.attrs.mantissa_bits);
  return use.operand(0);
}

Shape stochastic_convert(const Use& use) {
  need_count(use, 2);
  need_type(use, 0, kFloat);
  const Shape& x = use.operand(0);
  const Shape& random = array(use, 1);
  need(is_unsigned(random.type) && dtype_bits(random.type) == dtype_bits(x.type), "stochastic-convert-random",
       "the random bits for {} must be u{}, not {}", dtype_name(x.type), dtype_bits(x.type), dtype_name(random.type));
  need_same_sizes(use, 0, 1);
  if (!use.declared) return undetermined();
  need_declared_sizes(use, x.dims);
  need(class_bit(use.declared->type) & (kSigned | kFloat), "result-type",
       "stochastic-convert gives signed integers or floats, not {}", dtype_name(use.declared->type));
  return *use.declared;
}

Shape map(const Use& use) {
  need(use.count() >= 1, "operand-count", "map takes at least one operand");
  need_arrays(use);
  std::vector<Shape> scalars;
  for (size_t i = 0; i < use.operands.size(); ++i) {
    if (i > 0) need_same_sizes(use, 0, i);
    scalars.push_back(Shape::scalar(use.operand(i).type));
  }
  const Shape& x = use.operand(0);
  std::vector<int64_t> all(x.dims.size());
  std::iota(all.begin(), all.end(), 0);
  bool named = !use.attrs.dimensions.empty();  // XLA reads `dimensions={}` as all of them, too
  need(!named || use.attrs.dimensions == all, "map-dimensions", "map over {} must name dimensions {}, not {}", x,
       list(all), list(use.attrs.dimensions));
  need_called(use, 1);
  need_parameters(*use.called[0], scalars, "to_apply");
  const Shape& result = use.called[0]->root()->shape;
  need(result.is_scalar(), "called-result", "to_apply computation {} returns {}, not a scalar", use.called[0]->name,
       result);
  return with_type(x, result.type);
}

Shape iota(const Use& use) {
  need_count(use, 0);
  if (!use.declared) return undetermined();
  const Shape& result = declared_array(use);
  need(class_bit(result.type) & kNumber, "result-type", "iota of {} is not defined", dtype_name(result.type));
  need(!result.dims.empty(), "dimension-range", "iota needs at least one dimension: {} has none", result);
  single_dimension(use, result.rank(), "iota_dimension");
  return result;
}

constexpr Entry kOps[] = {
    {Opcode::kBitcastConvert, bitcast_convert, "", ResultShape::kDeclare},
    {Opcode::kClamp, clamp},
    {Opcode::kCompare, compare, "direction! type"},
    {Opcode::kConvert, convert, "", ResultShape::kDeclare},
    {Opcode::kIota, iota, "iota_dimension!", ResultShape::kDeclare},
    {Opcode::kMap, map, "dimensions to_apply!"},
    {Opcode::kReducePrecision, reduce_precision, "exponent_bits! mantissa_bits!", ResultShape::kDeclare},
    {Opcode::kSelect, select},
    {Opcode::kStochasticConvert, stochastic_convert, "", ResultShape::kDeclare},
};

}  // namespace

std::span<const Entry> elementwise_rules() { return kOps; }

}  // namespace hlojit::rules
