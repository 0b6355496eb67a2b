// See error_bound.h. One rule an op, for the largest error of its result over all elements.
#include "tools/error_bound.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <unordered_map>
#include <utility>

#include "compiler/eval/evaluator.h"
#include "compiler/ir/annotation.h"
#include "compiler/ir/async.h"
#include "tools/meet.h"

namespace hlojit::tools {
namespace {

constexpr double kUnbounded = INFINITY;

struct Value {
  std::shared_ptr<const Literal> leaf;
  double error = 0;
  double rounding = 0;  ///< of a product, which contraction leaves out; through ops that move elements
  std::vector<Value> elements;
};

Value with(Literal literal, double error) {
  if (!literal.shape().is_tuple()) return {std::make_shared<const Literal>(std::move(literal)), error, 0, {}};
  Value v;
  for (Literal& e : literal.elements()) v.elements.push_back(with(std::move(e), error));
  return v;
}

Literal literal_of(const Value& v) {
  if (v.leaf) return *v.leaf;
  std::vector<Literal> elements;
  for (const Value& e : v.elements) elements.push_back(literal_of(e));
  return Literal::tuple(std::move(elements));
}

double error_of(const Value& v) {
  double error = v.error;
  for (const Value& e : v.elements) error = std::max(error, error_of(e));
  return error;
}

void set_error(Value& v, double error) {
  v.error = error;
  for (Value& e : v.elements) set_error(e, error);
}

bool floating(DType t) { return is_float(t) || is_complex(t); }

// Half the distance of 1 to its next neighbour.
double unit(DType t) {
  switch (component_type(t)) {
    case DType::kF64: return 0x1p-53;
    case DType::kF32: return 0x1p-24;
    case DType::kF16: return 0x1p-11;
    case DType::kBF16: return 0x1p-8;
    default: return is_float(t) ? 0x1p-2 : 0;
  }
}

// Sums of narrow floats are made in f32.
double sum_unit(DType t) { return std::min(unit(t), 0x1p-24); }

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

bool has_nan(const Literal& l) {
  for (int64_t i = 0, n = l.shape().element_count(); i < n; ++i) {
    if (std::isnan(magnitude(l, i))) return true;
  }
  return false;
}

double most(const Literal& l) { return l.shape().is_array() ? range(l).most : 0; }

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

class Walk {
 public:
  Walk(const ModuleConfig& config, bool strict, bool window, const std::atomic<bool>* stop)
      : devices_(config.replica_count * config.num_partitions),
        partitions_(config.num_partitions),
        strict_(strict),
        stop_(stop) {
    options_.scatter_oob_window = window;
  }
  /// A value a device: all take each step together.
  using Lanes = std::vector<Value>;
  Lanes run(const Computation& c, const std::vector<Lanes>& arguments);

 private:
  using In = std::vector<const Value*>;
  Lanes together(const Instruction& i, const std::vector<const Lanes*>& in);
  Lanes loop(const Instruction& i, Lanes state);
  Lanes met(const Instruction& i, const std::vector<const Lanes*>& in);
  Value execute(const Instruction& i, const In& in);
  Value alone(const Computation& c, const In& in);
  Value started(const Instruction& i, const In& in);
  Value branch(const Instruction& i, const In& in);
  Literal evaluated(const Instruction& i, const std::vector<Literal>& in);
  double elementwise(const Instruction& i, const In& in, const Literal& out);
  double unary(const Instruction& i, const Value& x, const Literal& out);
  double discontinuous(const Value& x);
  double reduced(const Instruction& i, const In& in, size_t k, const Literal& out);
  double contracted(const Instruction& i, const In& in, const Literal& out);
  double summed(const Instruction& i, const In& in, const Literal& out);

  int64_t devices_, partitions_;
  bool strict_;
  const std::atomic<bool>* stop_;
  int depth_ = 0;
  int64_t device_ = 0;  ///< whose turn it is
  EvalOptions options_;
};

Literal Walk::evaluated(const Instruction& i, const std::vector<Literal>& in) {
  std::optional<Literal> value = evaluate_instruction(i, in, options_);
  if (!value) {
    throw Error(ErrorKind::kUnsupported, i.location, std::string(op_name(i.opcode)) + " is not evaluated");
  }
  return std::move(*value);
}

Walk::Lanes Walk::run(const Computation& c, const std::vector<Lanes>& arguments) {
  constexpr int kMaxDepth = 512;
  if (depth_ >= kMaxDepth) throw Error(ErrorKind::kFailed, c.location, "calls nest too deep to evaluate");
  ++depth_;
  std::unordered_map<const Instruction*, Lanes> values;
  for (const auto& i : c.instructions()) {
    if (i->is(Opcode::kParameter)) {
      values[i.get()] = arguments.at(static_cast<size_t>(i->attrs.parameter_number));
      continue;
    }
    if (stop_ && *stop_) throw Error(ErrorKind::kFailed, "stopped while evaluating");
    std::vector<const Lanes*> in;
    for (const Instruction* o : i->operands()) in.push_back(&values.at(o));
    values[i.get()] = together(*i, in);
  }
  --depth_;
  return values.at(c.root());
}

Walk::Lanes Walk::together(const Instruction& i, const std::vector<const Lanes*>& in) {
  if (is_collective(i)) return met(i, in);
  if (i.is(Opcode::kWhile)) return loop(i, *in[0]);
  if (i.is(Opcode::kCall)) {
    std::vector<Lanes> arguments;
    for (const Lanes* x : in) arguments.push_back(*x);
    return run(*i.to_apply(), arguments);
  }
  Lanes out;
  size_t devices = static_cast<size_t>(devices_);
  for (size_t d = 0; d < devices; ++d) {
    if (devices_ > 1) device_ = static_cast<int64_t>(d);
    In own;
    for (const Lanes* x : in) own.push_back(&(*x)[d]);
    out.push_back(execute(i, own));
  }
  return out;
}

// One device's run of what holds no collective.
Value Walk::alone(const Computation& c, const In& in) {
  int64_t devices = std::exchange(devices_, 1);
  std::vector<Lanes> arguments;
  for (const Value* x : in) arguments.push_back({*x});
  Value result = run(c, arguments)[0];
  devices_ = devices;
  return result;
}

Walk::Lanes Walk::met(const Instruction& i, const std::vector<const Lanes*>& in) {
  std::vector<std::vector<Literal>> operands(static_cast<size_t>(devices_));
  double error = 0, members = static_cast<double>(devices_), large = 0;
  for (size_t d = 0; d < operands.size(); ++d) {
    for (const Lanes* x : in) {
      operands[d].push_back(literal_of((*x)[d]));
      error = std::max(error, error_of((*x)[d]));
      large = std::max(large, most(operands[d].back()));
    }
  }
  if (error > 0) error = members * (error + 2 * members * large * unit(i.operand(0)->shape.type));
  Lanes out;
  for (Literal& l : meet(i, operands)) out.push_back(with(std::move(l), error));
  return out;
}

Walk::Lanes Walk::loop(const Instruction& i, Lanes state) {
  bool doubtful = false;
  for (;;) {
    Lanes go = run(*i.while_condition(), {state});
    doubtful |= go[0].error > 0;
    for (const Value& other : go) {
      if (other.leaf->as_int(0) != go[0].leaf->as_int(0))
        throw Error(ErrorKind::kUnsupported, i.location, "devices that leave a loop at different times");
    }
    if (go[0].leaf->as_int(0) == 0) break;
    state = run(*i.while_body(), {state});
  }
  if (doubtful) {
    for (Value& v : state) set_error(v, kUnbounded);
  }
  return state;
}

// What an async-start in sugar form or with a computation gives: its operands and its result.
Value Walk::started(const Instruction& i, const In& in) {
  Value pair;
  Value& operands = pair.elements.emplace_back();
  for (const Value* x : in) operands.elements.push_back(*x);
  if (!wrapped_op(i)) {
    pair.elements.push_back(alone(*i.called.at(0), in));
    return pair;
  }
  Module scratch("started");
  Computation* c = scratch.add_computation("started");
  std::vector<Instruction*> parameters;
  for (const Instruction* o : i.operands()) parameters.push_back(c->add_parameter(std::ssize(parameters), o->shape));
  pair.elements.push_back(execute(*clone_started_op(*c, i, parameters, i.shape.elements.at(1)), in));
  return pair;
}

Value Walk::branch(const Instruction& i, const In& in) {
  int64_t last = std::ssize(i.called) - 1, which = in[0]->leaf->as_int(0);
  if (is_pred(in[0]->leaf->shape().type))
    which = which != 0 ? 0 : 1;
  else if (which < 0 || which > last)
    which = last;
  Value result = alone(*i.called[static_cast<size_t>(which)], {in[static_cast<size_t>(which) + 1]});
  if (in[0]->error > 0) set_error(result, kUnbounded);
  return result;
}

Value Walk::execute(const Instruction& i, const In& in) {
  switch (i.opcode) {
    case Opcode::kTuple: {
      Value v;
      for (const Value* x : in) v.elements.push_back(*x);
      return v;
    }
    case Opcode::kGetTupleElement: return in[0]->elements[static_cast<size_t>(i.attrs.tuple_index)];
    case Opcode::kFusion: return alone(*i.to_apply(), in);
    case Opcode::kConditional: return branch(i, in);
    case Opcode::kAddDependency:
    case Opcode::kAllReduceDone:
    case Opcode::kAsyncUpdate:
    case Opcode::kOptBarrier:
    case Opcode::kDomain: return *in[0];
    case Opcode::kAfterAll: return with(Literal(i.shape), 0);
    case Opcode::kAsyncStart: return started(i, in);
    case Opcode::kCopyStart: {
      Value v;
      v.elements = {*in[0], *in[0], with(Literal(Shape::scalar(DType::kU32)), 0)};
      return v;
    }
    case Opcode::kCopyDone: return in[0]->elements.at(0);
    case Opcode::kAllGatherDone:
    case Opcode::kCollectivePermuteDone:
    case Opcode::kAsyncDone: return in[0]->elements.at(1);
    case Opcode::kPartitionId:
    case Opcode::kReplicaId: {
      Literal own(i.shape);
      own.set_int(0, i.is(Opcode::kReplicaId) ? device_ / partitions_ : device_ % partitions_);
      return with(std::move(own), 0);
    }
    case Opcode::kCustomCall:
      if (is_annotation(i)) return *in[0];
      break;
    default: break;
  }
  std::vector<Literal> operands;
  double error = 0, rounding = 0;
  for (const Value* x : in) {
    operands.push_back(literal_of(*x));
    error = std::max(error, error_of(*x));
    rounding = std::max(rounding, x->rounding);
  }
  Value out = with(evaluated(i, operands), 0);
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
    case Opcode::kScan: set([&](size_t, const Literal& o) { return summed(i, in, o); }); return out;
    case Opcode::kBatchNormTraining:
    case Opcode::kBatchNormInference:
    case Opcode::kBatchNormGrad: {
      // Moments and quotients of everything: a bound by the squares of what goes in.
      double large = 1;
      for (const Literal& l : operands) large = std::max(large, most(l));
      double n = static_cast<double>(operands[0].shape().element_count());
      set([&](size_t, const Literal& o) {
        return (256 * unit(o.shape().type) + error) * std::pow(large, 3) * (16 + n) /
               std::sqrt(i.attrs.epsilon + 1e-30);
      });
      return out;
    }
    case Opcode::kFft:
    case Opcode::kCholesky:
    case Opcode::kTriangularSolve: {
      double total = 0;
      for (const Literal& l : operands) total += range(l).sum;
      set([&](size_t, const Literal& o) {  // the last term: -0 may be 0
        return (64 * unit(o.shape().type)) * (total + most(o)) * 16 + error * 1e3 + 1e-300;
      });
      return out;
    }
    case Opcode::kMap: {
      set([&](size_t, const Literal& o) {
        double own = strict_ || !floating(o.shape().type) ? 0 : 8 * unit(o.shape().type) * most(o);
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
    size_t data = i.is(Opcode::kConcatenate)                                ? in.size()
                  : i.is(Opcode::kPad) || i.is(Opcode::kDynamicUpdateSlice) ? 2
                                                                            : 1;
    for (size_t k = data; k < in.size(); ++k) {
      if (in[k]->error > 0) error = kUnbounded;
    }
    set([&](size_t, const Literal&) { return error; });
    out.rounding = rounding;
  } else if (i.info().op_class == OpClass::kElementwise) {
    set([&](size_t, const Literal& o) { return elementwise(i, in, o); });
    DType t = i.shape.type;
    bool contractible = i.is(Opcode::kMultiply) && dtype_bits(component_type(t)) >= 32 && !strict_;
    if (contractible && floating(t)) out.rounding = unit(t) * most(*out.leaf);
    if (i.is(Opcode::kNegate) || i.is(Opcode::kCopy)) out.rounding = in[0]->rounding;
  } else if (error > 0) {
    set([&](size_t, const Literal&) { return kUnbounded; });
  }
  return out;
}

// Steps at multiples of a half: 1 if the error can cross one.
double Walk::discontinuous(const Value& x) {
  if (x.error == 0) return 0;
  for (int64_t i = 0, n = x.leaf->shape().element_count(); i < n; ++i) {
    double twice = 2 * x.leaf->as_double(i);
    if (std::isfinite(twice) && std::fabs(twice - std::nearbyint(twice)) <= 2.001 * x.error) return 1 + 2 * x.error;
  }
  return 0;
}

double Walk::unary(const Instruction& i, const Value& x, const Literal& out) {
  DType t = out.shape().type;
  double e = x.error;
  Range r = range(*x.leaf);
  double m = most(out), u = unit(t), own = strict_ ? 0 : 4 * u * m;
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
    case Opcode::kExponentialMinusOne: return (e < 1 ? (m + 1) * (std::exp(e) - 1) : kUnbounded) + slack + own;
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

double Walk::elementwise(const Instruction& i, const In& in, const Literal& out) {
  if (in.size() == 1) return i.is(Opcode::kCopy) ? in[0]->error : unary(i, *in[0], out);
  DType t = out.shape().type;
  double ea = in[0]->error, eb = in[1]->error, m = most(out), u = unit(t);
  double slack = ea + eb > 0 ? 2 * u * m : 0;
  if (i.is(Opcode::kSelect)) {
    double e = std::max(eb, in[2]->error);
    return ea > 0 ? e + most(*in[1]->leaf) + most(*in[2]->leaf) : e;
  }
  if (i.is(Opcode::kClamp)) return std::max({ea, eb, in[2]->error});
  if (i.is(Opcode::kCompare)) {
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
      double a = in[0]->rounding, b = in[1]->rounding;
      bool contracted = (a > 0) != (b > 0);
      return ea + eb + slack + (contracted ? a + b + 2 * u * m : 0);  // and either rounding of the sum
    }
    case Opcode::kMultiply: {
      double own = is_complex(t) && !strict_ ? 4 * u * most(*in[0]->leaf) * most(*in[1]->leaf) : 0;
      if (ea + eb == 0) return own;
      return own + ea * most(*in[1]->leaf) + eb * most(*in[0]->leaf) + ea * eb + slack;
    }
    case Opcode::kDivide: {
      double own = strict_ ? 0 : (is_complex(t) ? 64 : 2) * u * m;
      if (ea + eb == 0) return own;
      double least = range(*in[1]->leaf).least;
      return own + (least <= 2 * eb ? kUnbounded : 2 * (ea + m * eb) / least) + slack;
    }
    default: return ea + eb > 0 ? kUnbounded : strict_ ? 0 : 4 * u * m;
  }
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

double free_order(double n, double u, double sum) { return (16 + 4 * std::sqrt(n)) * u * sum; }

// Reductions and dots are summed in chains of bounded length, so that more terms than these add nothing.
double in_chains(double n, double u, double sum) { return (32 + std::sqrt(std::min(n, 1024.0))) * u * sum; }

double Walk::reduced(const Instruction& i, const In& in, size_t k, const Literal& out) {
  size_t count = in.size() / 2;
  double error = 0;
  for (const Value* x : in) error = std::max(error, x->error);
  DType t = out.shape().type;
  Opcode op = combination(*i.to_apply(), k, count);
  if (!floating(t)) return error == 0 ? 0 : is_pred(t) ? 1 : kUnbounded;
  const Value& x = *in[k];
  double n = static_cast<double>(x.leaf->shape().element_count()) /
             static_cast<double>(std::max<int64_t>(out.shape().element_count(), 1));
  switch (op) {
    case Opcode::kMaximum:
    case Opcode::kMinimum: return x.error;
    case Opcode::kAdd: {
      std::vector<Literal> operands;
      for (size_t j = 0; j < in.size(); ++j) operands.push_back(j % count == k ? absolute(*in[j]->leaf) : *in[j]->leaf);
      Literal sums = evaluated(i, operands);
      double sum = most(sums.shape().is_tuple() ? sums.elements()[k] : sums);
      Range r = range(*x.leaf);
      double grain = std::min(r.grain, range(*in[k + count]->leaf).grain);
      bool exact = x.error == 0 && (sum == 0 || sum * sum_unit(t) <= grain);
      if (exact) return 0;
      return n * x.error + in_chains(n, sum_unit(t), sum) + 2 * unit(t) * most(out);
    }
    case Opcode::kMultiply: {
      bool powers = x.error == 0;
      for (int64_t e = 0, c = x.leaf->shape().element_count(); powers && e < c; ++e) {
        int exponent;
        double v = magnitude(*x.leaf, e);
        powers = v == 0 || !std::isfinite(v) || v == 1 || (std::frexp(v, &exponent) == 0.5 && n < 8);
      }
      if (powers) return 0;
      return x.error == 0 ? free_order(n, sum_unit(t), most(out)) + 2 * unit(t) * most(out) : kUnbounded;
    }
    default: return error > 0 ? kUnbounded : strict_ ? 0 : 8 * n * unit(t) * most(out);
  }
}

double Walk::contracted(const Instruction& i, const In& in, const Literal& out) {
  DType t = out.shape().type;
  double ea = in[0]->error, eb = in[1]->error;
  if (!floating(t)) return ea + eb > 0 ? kUnbounded : 0;
  std::vector<Literal> sizes = {absolute(*in[0]->leaf), absolute(*in[1]->leaf)};
  for (size_t k = 2; k < in.size(); ++k) sizes.push_back(*in[k]->leaf);  // groups, scales
  double sum = most(evaluated(i, sizes));
  Range a = range(*in[0]->leaf), b = range(*in[1]->leaf);
  bool scaled = i.is(Opcode::kScaledDot);
  if (ea + eb == 0 && !scaled && (sum == 0 || sum * sum_unit(t) <= a.grain * b.grain)) return 0;
  double n = std::sqrt(static_cast<double>(in[0]->leaf->shape().element_count()) *
                       static_cast<double>(in[1]->leaf->shape().element_count()));
  double rounded = i.attrs.dot_algorithm.empty() ? 0 : 0x1p-7 * sum;
  return n * (ea * b.most + eb * a.most) + in_chains(n, sum_unit(t), sum) + 2 * unit(t) * most(out) + rounded;
}

// Windows and scatters, whose sums are over no more than everything.
double Walk::summed(const Instruction& i, const In& in, const Literal& out) {
  DType t = out.shape().type;
  double error = 0, sum = 0, grain = INFINITY;
  for (const Value* x : in) {
    error = std::max(error, x->error);
    if (!floating(x->leaf->shape().type)) continue;
    Range r = range(*x->leaf);
    sum += r.sum;
    grain = std::min(grain, r.grain);
  }
  if (!floating(t)) return error > 0 ? kUnbounded : 0;
  const Computation& c = *i.called.back();
  Opcode op = combination(c, 0, c.parameters().size() / 2);
  if (op == Opcode::kMaximum || op == Opcode::kMinimum) return error;
  if (error == 0 && (sum == 0 || sum * sum_unit(t) <= grain) && op == Opcode::kAdd) return 0;
  if (op != Opcode::kAdd) return error > 0 ? kUnbounded : 1e3 * unit(t) * most(out);
  double n = static_cast<double>(in[0]->leaf->shape().element_count());
  return n * error + free_order(n, sum_unit(t), std::min(sum, n * most(out) + sum)) + 2 * unit(t) * most(out);
}

void collect(const Value& v, std::vector<ErrorBound>& out) {
  if (v.leaf && v.leaf->shape().is_array()) out.push_back({*v.leaf, v.error});
  for (const Value& e : v.elements) collect(e, out);
}

Value assemble(const Shape& shape, const std::vector<Literal>& leaves, size_t& next) {
  if (shape.is_array()) return with(leaves.at(next++), 0);
  if (!shape.is_tuple()) return with(Literal(shape), 0);
  Value v;
  for (const Shape& e : shape.elements) v.elements.push_back(assemble(e, leaves, next));
  return v;
}

}  // namespace

std::vector<std::vector<ErrorBound>> evaluate_with_bounds(const Module& module,
                                                          const std::vector<std::vector<Literal>>& leaves, bool strict,
                                                          bool scatter_oob_window, const std::atomic<bool>* stop) {
  std::vector<Walk::Lanes> arguments;
  std::vector<size_t> next(leaves.size());
  for (const Instruction* p : module.entry()->parameters()) {
    Walk::Lanes& lanes = arguments.emplace_back();
    for (size_t d = 0; d < leaves.size(); ++d) lanes.push_back(assemble(p->shape, leaves[d], next[d]));
  }
  std::vector<std::vector<ErrorBound>> results;
  Walk walk(module.config, strict, scatter_oob_window, stop);
  for (const Value& v : walk.run(*module.entry(), arguments)) collect(v, results.emplace_back());
  return results;
}

int64_t first_beyond(const Literal& got, const ErrorBound& want) {
  DType t = got.shape().type;
  if (want.error == kUnbounded) return -1;
  std::span<const std::byte> a = got.bytes(), b = want.value.bytes();
  int64_t width = dtype_bytes(t);
  auto close = [&](double x, double y) {
    if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
    if (want.error == 0) return x == y && std::signbit(x) == std::signbit(y);
    return x == y || std::fabs(x - y) <= want.error;
  };
  for (int64_t i = 0, n = got.shape().element_count(); i < n; ++i) {
    if (std::memcmp(a.data() + i * width, b.data() + i * width, static_cast<size_t>(width)) == 0) continue;
    if (is_complex(t)) {
      std::complex<double> x = got.as_complex(i), y = want.value.as_complex(i);
      if (close(x.real(), y.real()) && close(x.imag(), y.imag())) continue;
    } else if (is_float(t)) {
      if (close(got.as_double(i), want.value.as_double(i))) continue;
    } else if (want.error > 0 && std::fabs(got.as_double(i) - want.value.as_double(i)) <= want.error) {
      continue;
    }
    return i;
  }
  return -1;
}

}  // namespace hlojit::tools
