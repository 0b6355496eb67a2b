// See error_bound.h. The walk: every device takes each step together; what a step does to errors is in
// error_rules.h.
#include "tools/error_bound.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <unordered_map>
#include <utility>

#include "compiler/eval/evaluator.h"
#include "compiler/eval/stop.h"
#include "compiler/ir/annotation.h"
#include "compiler/ir/async.h"
#include "tools/actual_sizes.h"
#include "tools/error_rules.h"
#include "tools/meet.h"

namespace hlojit::tools {
namespace {

// A value of this shape from the next of `leaves` on.
BoundedValue assemble(const Shape& shape, const std::vector<Literal>& leaves, size_t& next) {
  if (shape.is_array()) return BoundedValue::with(leaves.at(next++), 0);
  if (!shape.is_tuple()) return BoundedValue::with(Literal(shape), 0);
  BoundedValue v;
  for (const Shape& e : shape.elements) v.elements.push_back(assemble(e, leaves, next));
  return v;
}

void hand_over(std::vector<BoundedValue>& values) {
  for (BoundedValue& v : values) v.hand_over();
}

class Walk {
 public:
  Walk(const ModuleConfig& config, bool strict, bool window, const HostSide* host)
      : host_(host),
        all_(config.replica_count * config.num_partitions),
        devices_(all_),
        partitions_(config.num_partitions),
        handed_(static_cast<size_t>(all_)),
        rules_(strict, [this](const Instruction& i, const std::vector<Literal>& in) { return evaluated(i, in); }) {
    options_.scatter_oob_window = window;
  }
  /// A value a device: all take each step together.
  using Lanes = std::vector<BoundedValue>;
  Lanes run(const Computation& c, const std::vector<Lanes>& arguments);
  /// What each device handed to the host.
  Lanes handed_over() const;

 private:
  using In = std::vector<const BoundedValue*>;
  Lanes together(const Instruction& i, const std::vector<const Lanes*>& in);
  Lanes loop(const Instruction& i, Lanes state);
  Lanes met(const Instruction& i, const std::vector<const Lanes*>& in);
  BoundedValue execute(const Instruction& i, const In& in);
  BoundedValue exchange(const Instruction& i, const In& in);
  Lanes called(const Computation& c, const std::vector<const Lanes*>& in);
  Lanes started(const Instruction& i, const std::vector<const Lanes*>& in);
  Lanes branch(const Instruction& i, const std::vector<const Lanes*>& in);
  BoundedValue alone(const Computation& c, BoundedValue argument);
  Literal evaluated(const Instruction& i, const std::vector<Literal>& in);

  /// Of one device, with the host.
  struct Handed {
    size_t fed = 0;  ///< leaves
    std::vector<BoundedValue> out;
    std::multimap<int64_t, BoundedValue> sent;  ///< of a channel in order
    std::map<int64_t, size_t> received;         ///< how many of a channel
  };

  const HostSide* host_;
  int64_t all_, devices_, partitions_;
  std::vector<Handed> handed_;
  int depth_ = 0;
  int64_t device_ = 0;  ///< whose turn it is
  EvalOptions options_;
  ErrorRules rules_;
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
    eval::check_stop();
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
  if (i.is(Opcode::kCall) || i.is(Opcode::kFusion)) return called(*i.to_apply(), in);
  if (i.is(Opcode::kAsyncStart)) return started(i, in);
  if (i.is(Opcode::kConditional)) return branch(i, in);
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

Walk::Lanes Walk::called(const Computation& c, const std::vector<const Lanes*>& in) {
  std::vector<Lanes> arguments;
  for (const Lanes* x : in) arguments.push_back(*x);
  return run(c, arguments);
}

// One device's run of a branch that the others do not take.
BoundedValue Walk::alone(const Computation& c, BoundedValue argument) {
  int64_t devices = std::exchange(devices_, 1);
  argument.hand_over();
  BoundedValue result = run(c, {{argument}})[0];
  devices_ = devices;
  return result;
}

Walk::Lanes Walk::met(const Instruction& i, const std::vector<const Lanes*>& in) {
  if (devices_ != all_) {
    throw Error(ErrorKind::kUnsupported, i.location, "a collective in a branch that not all devices take");
  }
  std::vector<std::vector<Literal>> operands(static_cast<size_t>(devices_));
  double error = 0, members = static_cast<double>(devices_), large = 0;
  for (size_t d = 0; d < operands.size(); ++d) {
    for (const Lanes* x : in) {
      operands[d].push_back((*x)[d].literal());
      error = std::max(error, (*x)[d].largest_error());
      large = std::max(large, largest_magnitude(operands[d].back()));
    }
  }
  if (error > 0) error = members * (error + 2 * members * large * unit_roundoff(i.operand(0)->shape.type));
  Lanes out;
  for (Literal& l : meet(i, operands)) out.push_back(BoundedValue::with(std::move(l), error));
  return out;
}

Walk::Lanes Walk::loop(const Instruction& i, Lanes state) {
  bool doubtful = false;
  for (;;) {
    Lanes go = run(*i.while_condition(), {state});
    doubtful |= go[0].error > 0;
    for (const BoundedValue& other : go) {
      if (other.leaf->as_int(0) != go[0].leaf->as_int(0))
        throw Error(ErrorKind::kUnsupported, i.location, "devices that leave a loop at different times");
    }
    if (go[0].leaf->as_int(0) == 0) break;
    hand_over(state);
    state = run(*i.while_body(), {state});
  }
  if (doubtful) {
    for (BoundedValue& v : state) v.set_error(kUnbounded);
  }
  hand_over(state);
  return state;
}

// What an async-start in sugar form or with a computation gives: its operands and its result.
Walk::Lanes Walk::started(const Instruction& i, const std::vector<const Lanes*>& in) {
  Lanes results;
  if (!wrapped_op(i)) {
    results = called(*i.called.at(0), in);
  } else {
    Module scratch("started");
    scratch.config = i.parent()->parent()->config;
    Computation* c = scratch.add_computation("started");
    std::vector<Instruction*> parameters;
    for (const Instruction* o : i.operands()) parameters.push_back(c->add_parameter(std::ssize(parameters), o->shape));
    results = together(*clone_started_op(*c, i, parameters, i.shape.elements.at(1)), in);
  }
  Lanes out;
  for (size_t d = 0; d < results.size(); ++d) {
    BoundedValue& pair = out.emplace_back();
    BoundedValue& operands = pair.elements.emplace_back();
    for (const Lanes* x : in) operands.elements.push_back((*x)[d]);
    pair.elements.push_back(std::move(results[d]));
  }
  return out;
}

Walk::Lanes Walk::branch(const Instruction& i, const std::vector<const Lanes*>& in) {
  const int64_t last = std::ssize(i.called) - 1;
  std::vector<size_t> taken;
  bool doubtful = false;
  for (const BoundedValue& selector : *in[0]) {
    int64_t which = selector.leaf->as_int(0);
    if (is_pred(selector.leaf->shape().type))
      which = which != 0 ? 0 : 1;
    else if (which < 0 || which > last)
      which = last;
    taken.push_back(static_cast<size_t>(which));
    doubtful |= selector.error > 0;
  }
  Lanes results;
  if (std::ranges::all_of(taken, [&](size_t which) { return which == taken[0]; })) {
    Lanes argument = *in[taken[0] + 1];
    hand_over(argument);
    results = run(*i.called[taken[0]], {argument});
  } else {
    for (size_t d = 0; d < taken.size(); ++d) {
      device_ = static_cast<int64_t>(d);
      results.push_back(alone(*i.called[taken[d]], (*in[taken[d] + 1])[d]));
    }
  }
  if (doubtful) {
    for (BoundedValue& v : results) v.set_error(kUnbounded);
  }
  hand_over(results);
  return results;
}

Walk::Lanes Walk::handed_over() const {
  Lanes all;
  for (const Handed& h : handed_) {
    BoundedValue& of = all.emplace_back();
    of.elements = h.out;
    for (const auto& [channel, value] : h.sent) of.elements.push_back(value);
  }
  return all;
}

// Infeed, outfeed, send and recv.
BoundedValue Walk::exchange(const Instruction& i, const In& in) {
  if (!host_) throw Error(ErrorKind::kUnsupported, i.location, std::string(op_name(i.opcode)) + " is not evaluated");
  Handed& own = handed_[static_cast<size_t>(device_)];
  const BoundedValue token = BoundedValue::with(Literal(Shape::token()), 0);
  const BoundedValue nothing = BoundedValue::with(Literal(Shape::scalar(DType::kU32)), 0);
  BoundedValue v;
  switch (i.opcode) {
    case Opcode::kInfeed: v.elements = {assemble(i.shape.elements.at(0), host_->infeed, own.fed), token}; return v;
    case Opcode::kOutfeed: own.out.push_back(*in[0]); return token;
    case Opcode::kSend: own.sent.emplace(host_channel(i), *in[0]); break;
    case Opcode::kRecv: {
      const int64_t channel = host_channel(i);
      v.elements = {BoundedValue::with(host_->received.at(channel).at(own.received[channel]++), 0), nothing, token};
      return v;
    }
    case Opcode::kRecvDone: v.elements = {in[0]->elements[0], token}; return v;
    case Opcode::kSendDone: return token;
    default: break;
  }
  v.elements = {nothing, nothing, token};  // of a transfer under way
  return v;
}

BoundedValue Walk::execute(const Instruction& i, const In& in) {
  switch (i.opcode) {
    case Opcode::kInfeed:
    case Opcode::kOutfeed:
    case Opcode::kRecv:
    case Opcode::kRecvDone:
    case Opcode::kSend:
    case Opcode::kSendDone: return exchange(i, in);
    case Opcode::kTuple: {
      BoundedValue v;
      for (const BoundedValue* x : in) v.elements.push_back(*x);
      return v;
    }
    case Opcode::kGetTupleElement: return in[0]->elements[static_cast<size_t>(i.attrs.tuple_index)];
    case Opcode::kAddDependency:
    case Opcode::kAllReduceDone:
    case Opcode::kAsyncUpdate:
    case Opcode::kOptBarrier:
    case Opcode::kDomain: return *in[0];
    case Opcode::kAfterAll: return BoundedValue::with(Literal(i.shape), 0);
    case Opcode::kCopyStart: {
      BoundedValue v;
      v.elements = {*in[0], *in[0], BoundedValue::with(Literal(Shape::scalar(DType::kU32)), 0)};
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
      return BoundedValue::with(std::move(own), 0);
    }
    case Opcode::kRng: {  // any value that it may give
      Literal some(i.shape);
      for (int64_t k = 0; k < i.shape.element_count(); ++k) some.set_double(k, in[0]->leaf->as_double(0));
      return BoundedValue::with(std::move(some), 0);
    }
    case Opcode::kCustomCall:
      if (is_annotation(i)) return *in[0];
      break;
    default: break;
  }
  bool as_said = true;
  for (size_t k = 0; k < in.size(); ++k) {
    as_said &= !in[k]->leaf || in[k]->leaf->shape().dims == i.operand(k)->shape.dims;
  }
  if (as_said && !has_actual_sizes(i)) return rules_.apply(i, in);
  std::vector<Literal> operands;
  for (const BoundedValue* x : in) operands.push_back(x->literal());
  if (auto value = sized(i, operands)) return BoundedValue::with(std::move(*value), in[0]->error);
  Module scratch("actual");
  const Instruction& actual = with_actual_sizes(scratch, i, operands);
  std::vector<BoundedValue> cut;
  for (size_t k = 0; k < operands.size(); ++k) {
    cut.push_back(*in[k]);
    if (cut[k].leaf) cut[k].leaf = std::make_shared<const Literal>(std::move(operands[k]));
  }
  In cut_in;
  for (const BoundedValue& x : cut) cut_in.push_back(&x);
  return rules_.apply(actual, cut_in);
}

void collect(const BoundedValue& v, std::vector<ErrorBound>& out) {
  if (v.leaf && v.leaf->shape().is_array()) out.push_back({*v.leaf, v.error});
  for (const BoundedValue& e : v.elements) collect(e, out);
}

// A result that is said to have all elements may have been given a lesser size.
bool is_part(const Literal& value, const Shape& said) {
  for (size_t d = 0; d < said.dims.size(); ++d) {
    if (value.shape().dims[d] < said.dims[d] && (said.dynamic.empty() || !said.dynamic[d])) return true;
  }
  return false;
}

}  // namespace

std::vector<std::vector<ErrorBound>> evaluate_with_bounds(const Module& module,
                                                          const std::vector<std::vector<Literal>>& leaves, bool strict,
                                                          bool scatter_oob_window, const HostSide* host) {
  std::vector<Walk::Lanes> arguments;
  std::vector<size_t> next(leaves.size());
  for (const Instruction* p : module.entry()->parameters()) {
    Walk::Lanes& lanes = arguments.emplace_back();
    for (size_t d = 0; d < leaves.size(); ++d) lanes.push_back(assemble(p->shape, leaves[d], next[d]));
  }
  std::vector<std::vector<ErrorBound>> results;
  Walk walk(module.config, strict, scatter_oob_window, host);
  const std::vector<const Shape*> said = hlojit::leaves(module.entry()->root()->shape);
  for (const BoundedValue& v : walk.run(*module.entry(), arguments)) {
    collect(v, results.emplace_back());
    for (size_t k = 0; k < said.size(); ++k) results.back()[k].part = is_part(results.back()[k].value, *said[k]);
  }
  for (size_t d = 0; const BoundedValue& v : walk.handed_over()) collect(v, results[d++]);
  return results;
}

Literal said_part(Literal got, const ErrorBound& want) {
  Ints least = got.shape().dims;
  for (size_t d = 0; want.part && d < least.size(); ++d) least[d] = std::min(least[d], want.value.shape().dims[d]);
  return least == got.shape().dims ? got : cut_to(got, least);
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
