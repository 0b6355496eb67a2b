// See error_rules.h.
#include "tools/error_rules.h"

#include <algorithm>
#include <cfloat>
#include <unordered_map>

#include "compiler/analysis/movement.h"
#include "compiler/eval/factors.h"
#include "compiler/ir/combining.h"
#include "layout/dtype.h"

namespace hlojit::tools {

double unit_roundoff(DType t) {
  switch (component_type(t)) {
    case DType::kF64: return 0x1p-53;
    case DType::kF32: return 0x1p-24;
    case DType::kF16: return 0x1p-11;
    case DType::kBF16: return 0x1p-8;
    default: return is_float(t) ? 0x1p-2 : 0;
  }
}

namespace {

bool floating(DType t) { return is_float(t) || is_complex(t); }

// Sums of narrow floats are made in f32.
double sum_unit(DType t) { return std::min(unit_roundoff(t), 0x1p-24); }
// The numbers they are made of: the largest, and the least but zero.
double sum_most(DType t) { return sum_unit(t) < 0x1p-24 ? DBL_MAX : FLT_MAX; }
double sum_least(DType t) { return sum_unit(t) < 0x1p-24 ? 0x1p-1074 : 0x1p-149; }

double magnitude(const Literal& l, int64_t i) {
  return is_complex(l.shape().type) ? std::abs(l.as_complex(i)) : std::fabs(l.as_double(i));
}

struct Range {
  double least = INFINITY, most = 0, sum = 0;
  double grain = INFINITY;  ///< a power of two that divides all values
};

Range range(const Literal& l) {
  Range r;
  for (int64_t i = 0, n = l.shape().element_count(); i < n; ++i) {
    double m = magnitude(l, i);
    if (!std::isfinite(m)) continue;
    r.least = std::min(r.least, m);
    r.most = std::max(r.most, m);
    r.sum += m;
    if (m == 0) continue;
    int exponent;
    auto digits = static_cast<uint64_t>(std::ldexp(std::frexp(m, &exponent), 53));
    r.grain = std::min(r.grain, std::ldexp(1.0, exponent - 53 + __builtin_ctzll(digits)));
  }
  if (is_complex(l.shape().type)) r.grain = 0;
  return r;
}

// Whether a row of them may well be one number again and again, for a good part, as of what is padded with it.
bool repeats(const Literal& l) {
  constexpr int64_t kPart = 16;
  std::unordered_map<double, int64_t> seen;
  int64_t most = 0, terms = 0;  // zeros add nothing
  for (int64_t i = 0, n = l.shape().element_count(); i < n; ++i) {
    const double m = magnitude(l, i);
    if (!std::isfinite(m) || m == 0) continue;
    most = std::max(most, ++seen[m]);
    ++terms;
  }
  return kPart * most >= terms;
}

bool any_magnitude(const Literal& l, auto test) {
  for (int64_t i = 0, n = l.shape().element_count(); i < n; ++i) {
    if (test(magnitude(l, i))) return true;
  }
  return false;
}

// Of sums of magnitudes. Infinite where one overflows: so may what is summed, in some order.
double largest_sum(const Literal& sums) {
  return any_magnitude(sums, [](double m) { return std::isinf(m); }) ? INFINITY : largest_magnitude(sums);
}

bool has_nan(const Literal& l) {
  return any_magnitude(l, [](double m) { return std::isnan(m); });
}

// What `simplify` may make one of its operands, so that a product is known for one that was none. (A conversion is
// left out with the one back.)
bool may_be_operand(const Instruction& i) {
  switch (i.opcode) {
    case Opcode::kMaximum:
    case Opcode::kMinimum:
    case Opcode::kSelect:
    case Opcode::kComplex:
    case Opcode::kReal:
    case Opcode::kImag: return true;
    case Opcode::kConvert: return floating(i.shape.type) && floating(i.operand(0)->shape.type);
    default: return false;
  }
}

// Padding times a weight that is no number: nothing in the evaluator, NaN in products of blocks (codegen/kernels/
// packing.h). XLA:CPU has both.
bool pads_beside_nan(const Instruction& i, const Literal& weights) {
  const bool pads = std::ranges::any_of(i.attrs.window, [](auto& w) { return w.pad_low > 0 || w.pad_high > 0; });
  return i.is(Opcode::kConvolution) && pads && any_magnitude(weights, [](double m) { return !std::isfinite(m); });
}

Literal absolute(const Literal& l) {
  Literal a = l;
  for (int64_t i = 0, n = a.shape().element_count(); i < n; ++i) {
    double m = magnitude(l, i);
    if (is_complex(a.shape().type))
      a.set_complex(i, {std::isfinite(m) ? m : 0, 0});
    else
      a.set_double(i, std::isfinite(m) ? m : 0);
  }
  return a;
}

// Steps at multiples of a half: 1 if the error can cross one.
double discontinuous(const BoundedValue& x) {
  if (x.error == 0) return 0;
  for (int64_t i = 0, n = x.leaf->shape().element_count(); i < n; ++i) {
    double twice = 2 * x.leaf->as_double(i);
    if (std::isfinite(twice) && std::fabs(twice - std::nearbyint(twice)) <= 2.001 * x.error) return 1 + 2 * x.error;
  }
  return 0;
}

// What x^p may be off by where x is off by `ex` and p by `ep`; `out` is what it is. Of (e^y)^p, which becomes e^(y p),
// e^y may be beyond the largest number or nothing, and the result neither.
double power_error(double x, double p, double out, double ex, double ep) {
  const double large = std::fabs(x), near = large - ex;
  if (std::isinf(out) || std::isinf(x) || (x == 0 && p == 0)) return kUnbounded;
  if (std::isnan(x) || std::isnan(p)) return 0;
  if (ep == 0 && p >= 0 && p == std::floor(p)) return p == 0 ? 0 : p * std::pow(large + ex, p - 1) * ex;
  if (near <= ex || (x < 0 && ep > 0)) return kUnbounded;  // may have another sign
  if (std::isnan(out)) return 0;
  const double relative = std::fabs(p) * ex / near + ep * (std::fabs(std::log(large)) + ex / near);
  return relative < 1 ? std::fabs(out) * std::expm1(2 * relative) : kUnbounded;
}

// What combines element k of a reduction, if it is one op; else an op that no rule knows.
Opcode combination(const Computation& c, size_t k, size_t count) {
  const Instruction* root = c.root();
  if (root->is(Opcode::kTuple)) root = root->operand(k);
  bool plain = root->operand_count() == 2 && root->operand(0)->is(Opcode::kParameter) &&
               root->operand(1)->is(Opcode::kParameter);
  if (!plain) return Opcode::kCall;
  int64_t a = root->operand(0)->attrs.parameter_number, b = root->operand(1)->attrs.parameter_number;
  if (std::min(a, b) != static_cast<int64_t>(k) || std::max(a, b) != static_cast<int64_t>(k + count))
    return Opcode::kCall;
  return root->opcode;
}

// Sums of f64 are off in the evaluator, too, which has nothing wider and adds term after term: equal ones are all
// rounded the same way.
double evaluators(double n, double u, double sum) { return u < 0x1p-24 ? n * u * sum : 0; }

double free_order(double n, double u, double sum) { return (16 + 4 * std::sqrt(n)) * u * sum + evaluators(n, u, sum); }

// Reductions and dots are summed in chains of bounded length, so that more terms than these add nothing.
double in_chains(double n, double u, double sum) {
  return (32 + std::sqrt(std::min(n, 1024.0))) * u * sum + evaluators(n, u, sum);
}

// What equal terms add to that: they are all rounded the same way, by up to half an ulp of what there is so far, which
// is a third of their number at the end. A slice of a dot's depth is one chain, of some thousand terms at most.
double in_step(double n, double u, double sum) { return std::min(n, 4096.0) / 3 * u * sum; }

// Of what is solved or factored, from a matrix whose elements are `total` in sum; pivots are integers.
double factored(double total, double error, const Literal& out) {
  const DType t = out.shape().type;
  if (!floating(t)) return error > 0 ? kUnbounded : 0;
  return (64 * unit_roundoff(t)) * (total + largest_magnitude(out)) * 16 + error * 1e3 + 1e-300;  // -0 may be 0
}

// A factorisation says so in its last result, by another number than 0; then the others are anything.
bool has_failed(const BoundedValue& results) {
  if (results.elements.size() < 2) return false;
  const Literal& info = *results.elements.back().leaf;
  return is_integral(info.shape().type) && any_magnitude(info, [](double m) { return m != 0; });
}

// Eigenvectors may have another phase; of a tridiagonal system the solution alone means something.
bool is_unique(const Instruction& call, size_t result) {
  if (eval::is_spectrum_call(call)) return result > 0;
  return !call.attrs.custom_call_target.ends_with("gtsv_ffi") || result > 2;
}

}  // namespace

double largest_magnitude(const Literal& l) { return l.shape().is_array() ? range(l).most : 0; }

BoundedValue BoundedValue::with(Literal literal, double error) {
  BoundedValue v;
  if (!literal.shape().is_tuple()) {
    v.leaf = std::make_shared<const Literal>(std::move(literal));
    v.error = error;
    return v;
  }
  for (Literal& e : literal.elements()) v.elements.push_back(with(std::move(e), error));
  return v;
}

Literal BoundedValue::literal() const {
  if (leaf) return *leaf;
  std::vector<Literal> all;
  for (const BoundedValue& e : elements) all.push_back(e.literal());
  return Literal::tuple(std::move(all));
}

double BoundedValue::largest_error() const {
  double most = error;
  for (const BoundedValue& e : elements) most = std::max(most, e.largest_error());
  return most;
}

void BoundedValue::set_error(double to) {
  error = to;
  for (BoundedValue& e : elements) e.set_error(to);
}

void BoundedValue::hand_over() {
  open = true;
  for (BoundedValue& e : elements) e.hand_over();
}

BoundedValue ErrorRules::apply(const Instruction& i, const In& in) const {
  std::vector<Literal> operands;
  double error = 0, rounding = 0;
  bool open = false, constant = true;
  for (const BoundedValue* x : in) {
    operands.push_back(x->literal());
    error = std::max(error, x->largest_error());
    rounding = std::max(rounding, x->rounding);
    open |= x->open;
    constant &= x->constant;
  }
  BoundedValue out = BoundedValue::with(evaluate_(i, operands), 0);
  out.constant = constant;
  auto set = [&](auto rule) {
    auto bound = [&](size_t k, const Literal& o) {
      double e = rule(k, o);
      return std::isnan(e) ? kUnbounded : e;  // 0 times anything
    };
    if (out.leaf) {
      out.error = bound(0, *out.leaf);
      return;
    }
    for (size_t k = 0; k < out.elements.size(); ++k) {
      if (out.elements[k].leaf) out.elements[k].error = bound(k, *out.elements[k].leaf);
    }
  };
  switch (i.opcode) {
    case Opcode::kReduce: set([&](size_t k, const Literal& o) { return reduced(i, in, k, o); }); return out;
    case Opcode::kDot:
    case Opcode::kRaggedDot:
    case Opcode::kScaledDot:
    case Opcode::kConvolution: set([&](size_t, const Literal& o) { return contracted(i, in, o); }); return out;
    case Opcode::kReduceWindow:
    case Opcode::kSelectAndScatter:
    case Opcode::kScatter:
    case Opcode::kScan: set([&](size_t k, const Literal& o) { return summed(i, in, k, o); }); return out;
    case Opcode::kBatchNormTraining:
    case Opcode::kBatchNormInference:
    case Opcode::kBatchNormGrad: {
      // Moments and quotients of everything: a bound by the squares of what goes in.
      double large = 1;
      for (const Literal& l : operands) large = std::max(large, largest_magnitude(l));
      double n = static_cast<double>(operands[0].shape().element_count());
      set([&](size_t, const Literal& o) {
        return (256 * unit_roundoff(o.shape().type) + error) * std::pow(large, 3) * (16 + n) /
               std::sqrt(i.attrs.epsilon + 1e-30);
      });
      return out;
    }
    case Opcode::kFft:
    case Opcode::kCholesky:
    case Opcode::kTriangularSolve: {
      double total = 0;
      for (const Literal& l : operands) total += range(l).sum;
      set([&](size_t, const Literal& o) { return factored(total, error, o); });
      return out;
    }
    case Opcode::kCustomCall: {
      if (!eval::is_factor_call(i)) break;
      double total = 0;
      for (const Literal& l : operands) total += range(l).sum;
      const bool known = !has_failed(out);
      set([&](size_t k, const Literal& o) {
        return known && is_unique(i, k) ? factored(total, error, o) : kUnbounded;
      });
      return out;
    }
    case Opcode::kMap: {
      set([&](size_t, const Literal& o) {
        double own =
            strict_ || !floating(o.shape().type) ? 0 : 8 * unit_roundoff(o.shape().type) * largest_magnitude(o);
        return error > 0 ? kUnbounded : own;
      });
      return out;
    }
    default: break;
  }
  if (i.is(Opcode::kBitcast) || i.is(Opcode::kBitcastConvert)) {
    // Bits of a value that is off are anything, and so are those of a NaN.
    DType from = operands[0].shape().type;
    bool bits = from != i.shape.type && floating(from) && (error > 0 || has_nan(operands[0]));
    set([&](size_t, const Literal&) { return bits ? kUnbounded : error; });
  } else if (i.info().op_class == OpClass::kMoves) {
    for (size_t k = moved_operands(i).size(); k < in.size(); ++k) {
      if (in[k]->error > 0) error = kUnbounded;
    }
    set([&](size_t, const Literal&) { return error; });
    out.rounding = rounding;
    out.open = open;
  } else if (i.info().op_class == OpClass::kElementwise) {
    set([&](size_t, const Literal& o) { return elementwise(i, in, o); });
    DType t = i.shape.type;
    bool contractible = i.is(Opcode::kMultiply) && dtype_bits(component_type(t)) >= 32 && !strict_;
    if (contractible && floating(t)) out.rounding = unit_roundoff(t) * largest_magnitude(*out.leaf);
    const bool simplified = may_be_operand(i);
    if (simplified || i.is(Opcode::kNegate) || i.is(Opcode::kCopy)) {
      out.rounding = rounding;
      out.open = open || simplified;
    }
    if (i.is(Opcode::kMultiply)) out.open = in[0]->constant || in[1]->constant;  // by 1, or folded
  } else if (error > 0) {
    set([&](size_t, const Literal&) { return kUnbounded; });
  }
  return out;
}

double ErrorRules::unary(const Instruction& i, const BoundedValue& x, const Literal& out) const {
  DType t = out.shape().type;
  double e = x.error;
  Range r = range(*x.leaf);
  double m = largest_magnitude(out), u = unit_roundoff(t), own = strict_ ? 0 : 4 * u * m;
  double slack = e > 0 ? 4 * u * m : 0;  // a rounding may fall either way
  switch (i.opcode) {
    case Opcode::kAbs:
    case Opcode::kNegate:
    case Opcode::kReal:
    case Opcode::kImag: return e;
    case Opcode::kFloor:
    case Opcode::kCeil:
    case Opcode::kRoundAfz:
    case Opcode::kRoundEven: return discontinuous(x);
    case Opcode::kSign: return e > 0 && r.least <= e ? 2 : 0;
    case Opcode::kIsFinite: return e == kUnbounded ? 1 : 0;
    case Opcode::kNot: return e;
    case Opcode::kTanh:
    case Opcode::kSine:
    case Opcode::kCosine:
    case Opcode::kLogistic:
    case Opcode::kErf:
      if (is_complex(t)) break;
      return std::min(1.2 * e, 2.0) + slack + own;
    case Opcode::kExponential:
    case Opcode::kExponentialMinusOne: return (e < 1 ? (m + 1) * std::expm1(e) : kUnbounded) + slack + own;
    case Opcode::kLog: return (e == 0 ? 0 : r.least <= 2 * e ? kUnbounded : 2 * e / r.least) + slack + own;
    case Opcode::kSqrt: return (e == 0 ? 0 : r.least <= 2 * e ? kUnbounded : e / std::sqrt(r.least)) + slack + own;
    case Opcode::kRsqrt: return (e == 0 ? 0 : r.least <= 2 * e ? kUnbounded : m * e / r.least) + slack + own;
    case Opcode::kCbrt: return (e == 0 ? 0 : r.least <= 2 * e ? kUnbounded : m * e / r.least) + slack + own;
    case Opcode::kLogPlusOne: {
      double least = INFINITY;
      for (int64_t k = 0; k < x.leaf->shape().element_count(); ++k) least = std::min(least, 1 + x.leaf->as_double(k));
      return (e == 0 ? 0 : !(least > 2 * e) ? kUnbounded : 2 * e / least) + slack + own;
    }
    case Opcode::kConvert: {
      DType from = x.leaf->shape().type;
      if (!floating(t)) return floating(from) ? discontinuous(x) : e;
      if (!floating(from)) return e;
      return e + (e > 0 ? 2 * u * m : 0);
    }
    case Opcode::kReducePrecision: return e > 0 ? e + std::ldexp(m, -static_cast<int>(i.attrs.mantissa_bits)) : 0;
    default: break;
  }
  return e > 0 ? kUnbounded : floating(t) && !i.is(Opcode::kBitcastConvert) && !i.is(Opcode::kCopy) ? own : 0;
}

double ErrorRules::elementwise(const Instruction& i, const In& in, const Literal& out) const {
  if (in.size() == 1) return i.is(Opcode::kCopy) ? in[0]->error : unary(i, *in[0], out);
  DType t = out.shape().type;
  double ea = in[0]->error, eb = in[1]->error, m = largest_magnitude(out), u = unit_roundoff(t);
  double slack = ea + eb > 0 ? 2 * u * m : 0;
  if (i.is(Opcode::kSelect)) {
    double e = std::max(eb, in[2]->error);
    return ea > 0 ? e + largest_magnitude(*in[1]->leaf) + largest_magnitude(*in[2]->leaf) : e;
  }
  if (i.is(Opcode::kClamp)) return std::max({ea, eb, in[2]->error});
  if (i.is(Opcode::kCompare)) {
    // The sign of a NaN that arithmetic made is anything, and tells it from all other values in the total order.
    bool signs = i.attrs.compare_type == CompareType::kTotalOrder;
    if (signs && (has_nan(*in[0]->leaf) || has_nan(*in[1]->leaf))) return 1;
    if (ea + eb == 0) return 0;
    for (int64_t k = 0, n = out.shape().element_count(); k < n; ++k) {
      double d = in[0]->leaf->as_double(k) - in[1]->leaf->as_double(k);
      if (!(std::fabs(d) > ea + eb)) return 1;
    }
    return 0;
  }
  if (!floating(t)) {
    if (ea + eb == 0) return 0;
    return is_pred(t) ? 1 : kUnbounded;
  }
  switch (i.opcode) {
    case Opcode::kMaximum:
    case Opcode::kMinimum: return std::max(ea, eb);
    case Opcode::kComplex: return ea + eb;
    case Opcode::kAdd:
    case Opcode::kSubtract: {
      auto rounding = [&](const BoundedValue& x) { return std::min(x.rounding, u * largest_magnitude(*x.leaf)); };
      double a = rounding(*in[0]), b = rounding(*in[1]);
      bool contracted = (a > 0) != (b > 0) || (a > 0 && (in[0]->open || in[1]->open));
      return ea + eb + slack + (contracted ? a + b + 2 * u * m : 0);  // and either rounding of the sum
    }
    case Opcode::kMultiply: {
      double own =
          is_complex(t) && !strict_ ? 4 * u * largest_magnitude(*in[0]->leaf) * largest_magnitude(*in[1]->leaf) : 0;
      if (ea + eb == 0) return own;
      return own + ea * largest_magnitude(*in[1]->leaf) + eb * largest_magnitude(*in[0]->leaf) + ea * eb + slack;
    }
    case Opcode::kDivide: {
      double own = strict_ ? 0 : (is_complex(t) ? 64 : 2) * u * m;
      if (ea + eb == 0) return own;
      double least = range(*in[1]->leaf).least;
      return own + (least <= 2 * eb ? kUnbounded : 2 * (ea + m * eb) / least) + slack;
    }
    case Opcode::kPower:
      if (!is_complex(t)) return power(in, out);
      [[fallthrough]];
    default: return ea + eb > 0 ? kUnbounded : strict_ ? 0 : 4 * u * m;
  }
}

double ErrorRules::power(const In& in, const Literal& out) const {
  const double u = unit_roundoff(out.shape().type);
  const bool exact = in[0]->error + in[1]->error == 0;
  double most = 0;
  for (int64_t k = 0, n = out.shape().element_count(); k < n; ++k) {
    const double x = in[0]->leaf->as_double(k), p = in[1]->leaf->as_double(k), z = out.as_double(k);
    if (!exact) most = std::max(most, power_error(x, p, z, in[0]->error, in[1]->error));
    if (!std::isfinite(z) || z == 0) continue;
    // The logarithm: the power of an exponential is made the exponential of a product.
    if (!strict_) most = std::max(most, (4 + std::fabs(std::log(std::fabs(z)))) * u * std::fabs(z));
  }
  return exact ? most : most + 4 * u * largest_magnitude(out);
}

double ErrorRules::reduced(const Instruction& i, const In& in, size_t k, const Literal& out) const {
  size_t count = in.size() / 2;
  double error = 0;
  for (const BoundedValue* x : in) error = std::max(error, x->error);
  DType t = out.shape().type;
  Opcode op = combination(*i.to_apply(), k, count);
  if (!floating(t)) return error == 0 ? 0 : is_pred(t) ? 1 : kUnbounded;
  const BoundedValue &x = *in[k], &init = *in[k + count];
  double n = static_cast<double>(x.leaf->shape().element_count()) /
             static_cast<double>(std::max<int64_t>(out.shape().element_count(), 1));
  switch (op) {
    case Opcode::kMaximum:
    case Opcode::kMinimum: return std::max(x.error, init.error);
    case Opcode::kAdd: {
      std::vector<Literal> operands;
      for (size_t j = 0; j < in.size(); ++j) operands.push_back(j % count == k ? absolute(*in[j]->leaf) : *in[j]->leaf);
      Literal sums = evaluate_(i, operands);
      double sum = largest_sum(sums.shape().is_tuple() ? sums.elements()[k] : sums);
      Range r = range(*x.leaf);
      double grain = std::min(r.grain, range(*init.leaf).grain);
      bool exact = x.error + init.error == 0 && (sum == 0 || sum * sum_unit(t) <= grain);
      if (exact) return 0;
      return n * x.error + init.error + in_chains(n, sum_unit(t), sum) + 2 * unit_roundoff(t) * largest_magnitude(out);
    }
    case Opcode::kMultiply: {
      const bool sure = x.error + init.error == 0;
      bool powers = sure;
      for (int64_t e = 0, c = x.leaf->shape().element_count(); powers && e < c; ++e) {
        int exponent;
        double v = magnitude(*x.leaf, e);
        powers = v == 0 || !std::isfinite(v) || v == 1 || (std::frexp(v, &exponent) == 0.5 && n < 8);
      }
      if (powers) return 0;
      if (!sure) return kUnbounded;
      // The last term: of what underflows on the way the sign is anything.
      return free_order(n, sum_unit(t), largest_magnitude(out)) + 2 * unit_roundoff(t) * largest_magnitude(out) +
             sum_least(t);
    }
    default: {
      if (error > 0) return kUnbounded;
      if (strict_ && !is_plain_float(*i.to_apply())) return 0;  // plain ones the evaluator rounds once, at the end
      double large = std::max({largest_magnitude(out), largest_magnitude(*x.leaf), largest_magnitude(*init.leaf)});
      return 8 * n * unit_roundoff(t) * large;
    }
  }
}

double ErrorRules::contracted(const Instruction& i, const In& in, const Literal& out) const {
  DType t = out.shape().type;
  double ea = in[0]->error, eb = in[1]->error;
  if (!floating(t)) return ea + eb > 0 ? kUnbounded : 0;
  if (pads_beside_nan(i, *in[1]->leaf)) return kUnbounded;
  std::vector<Literal> sizes = {absolute(*in[0]->leaf), absolute(*in[1]->leaf)};
  for (size_t k = 2; k < in.size(); ++k) sizes.push_back(*in[k]->leaf);  // groups, scales
  double sum = largest_sum(evaluate_(i, sizes));
  Range a = range(*in[0]->leaf), b = range(*in[1]->leaf);
  bool scaled = i.is(Opcode::kScaledDot);
  const double grain = a.grain * b.grain, least = sum_least(t);  // products may be subnormal, or nothing at all
  if (ea + eb == 0 && !scaled && !(grain < least) && (sum == 0 || sum * sum_unit(t) <= grain)) return 0;
  double n = std::sqrt(static_cast<double>(in[0]->leaf->shape().element_count()) *
                       static_cast<double>(in[1]->leaf->shape().element_count()));
  double rounded = i.attrs.dot_algorithm->empty() ? 0 : 0x1p-7 * sum;
  const bool alike = repeats(*in[0]->leaf) && repeats(*in[1]->leaf);
  return n * (ea * b.most + eb * a.most + least) + in_chains(n, sum_unit(t), sum) +
         (alike ? in_step(n, sum_unit(t), sum) : 0) + 2 * unit_roundoff(t) * largest_magnitude(out) + rounded;
}

// Windows and scatters, whose sums are over no more than everything.
double ErrorRules::summed(const Instruction& i, const In& in, size_t k, const Literal& out) const {
  DType t = out.shape().type;
  double error = 0, sum = 0, grain = INFINITY;
  for (const BoundedValue* x : in) {
    error = std::max(error, x->error);
    if (!floating(x->leaf->shape().type)) continue;
    Range r = range(*x->leaf);
    sum += r.sum;
    grain = std::min(grain, r.grain);
  }
  if (!floating(t)) return error > 0 ? kUnbounded : 0;
  const Computation& c = *i.called.back();
  Opcode op = combination(c, k, c.parameters().size() / 2);
  if (op == Opcode::kMaximum || op == Opcode::kMinimum) return error;
  if (error == 0 && (sum == 0 || sum * sum_unit(t) <= grain) && op == Opcode::kAdd) return 0;
  if (op != Opcode::kAdd) return error > 0 ? kUnbounded : 1e3 * unit_roundoff(t) * largest_magnitude(out);
  if (sum > sum_most(t)) return kUnbounded;  // overflows in some order
  double n = static_cast<double>(in[0]->leaf->shape().element_count());
  return n * error + free_order(n, sum_unit(t), std::min(sum, n * largest_magnitude(out) + sum)) +
         2 * unit_roundoff(t) * largest_magnitude(out);
}

}  // namespace hlojit::tools
