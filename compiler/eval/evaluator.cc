// Walking computations: values by instruction, control flow, and the ops whose meaning needs no
// arithmetic (tuples, barriers, collectives among one device). All others are in the files of
// ops.h.
#include "compiler/eval/evaluator.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <new>
#include <string>
#include <unordered_map>

#include "compiler/eval/factors.h"
#include "compiler/eval/ops.h"
#include "compiler/eval/stop.h"
#include "compiler/ir/allocation.h"
#include "compiler/ir/annotation.h"
#include "compiler/ir/async.h"
#include "compiler/ir/top_k_call.h"

namespace hlojit {
namespace {

// A value while running: leaves are shared, so that tuples of large arrays cost nothing to carry
// through loops. A token is a leaf of token shape.
struct Value {
  std::shared_ptr<const Literal> leaf;
  std::vector<Value> elements;
};

Value share(Literal literal) {
  if (!literal.shape().is_tuple()) {
    return {std::make_shared<const Literal>(std::move(literal)), {}};
  }
  Value value;
  for (Literal& element : literal.elements()) value.elements.push_back(share(std::move(element)));
  return value;
}

// A view of a literal that outlives the run.
Value borrow(const Literal& literal) {
  if (!literal.shape().is_tuple()) {
    return {std::shared_ptr<const Literal>(std::shared_ptr<void>(), &literal), {}};
  }
  Value value;
  for (const Literal& element : literal.elements()) value.elements.push_back(borrow(element));
  return value;
}

// The value as a literal of the given (compatible) shape, which brings the layout.
Literal to_literal(const Value& value, const Shape& shape) {
  if (shape.is_tuple()) {
    std::vector<Literal> elements;
    for (size_t i = 0; i < value.elements.size(); ++i) {
      elements.push_back(to_literal(value.elements[i], shape.elements[i]));
    }
    return Literal::tuple(std::move(elements));
  }
  if (value.leaf->shape() == shape) return *value.leaf;
  Literal literal(shape);
  std::ranges::copy(value.leaf->bytes(), literal.bytes().begin());
  return literal;
}

// A computation's instructions with operands as positions, and what dies after each.
struct Schedule {
  std::vector<const Instruction*> order;
  std::vector<std::vector<int>> operands, dying;
  int root = 0;
};

Schedule schedule(const Computation& computation) {
  Schedule s;
  std::unordered_map<const Instruction*, int> position;
  std::vector<int> last_use;
  for (const auto& instruction : computation.instructions()) {
    const int at = static_cast<int>(s.order.size());
    position[instruction.get()] = at;
    s.order.push_back(instruction.get());
    last_use.push_back(at);
    std::vector<int>& operands = s.operands.emplace_back();
    for (const Instruction* operand : instruction->operands()) {
      operands.push_back(position.at(operand));
      last_use[operands.back()] = at;
    }
  }
  s.root = position.at(computation.root());
  last_use[s.root] = -1;
  s.dying.resize(s.order.size());
  for (size_t i = 0; i < last_use.size(); ++i) {
    if (last_use[i] >= 0) s.dying[last_use[i]].push_back(static_cast<int>(i));
  }
  return s;
}

[[noreturn]] void unsupported(const Instruction& op, const std::string& why) {
  throw Error(ErrorKind::kUnsupported, op.location, std::string(op_name(op.opcode)) + " is not evaluated" + why);
}

class Evaluator {
 public:
  explicit Evaluator(const EvalOptions& options) : options_(options) {}

  Value run(const Computation& computation, const std::vector<Value>& arguments);
  Value execute(const Instruction& op, const std::vector<const Value*>& in);

 private:
  Value run_while(const Instruction& op, const Value& init);
  Value run_conditional(const Instruction& op, const std::vector<const Value*>& in);
  Value run_started(const Instruction& op, const std::vector<const Value*>& in);
  Value collective(const Instruction& op, const std::vector<const Value*>& in);
  Value custom_call(const Instruction& op, const std::vector<const Value*>& in);
  Literal array_op(const Instruction& op, const std::vector<const Value*>& in);
  void check_resources(const Instruction& op);
  void check_shape_size(const Instruction& op, const Shape& shape) const;

  static constexpr int kMaxDepth = 512;
  const EvalOptions options_;
  int64_t steps_ = 0;
  int depth_ = 0;
  std::unordered_map<const Computation*, Schedule> schedules_;
  eval::RunComputation run_scalar_ = [this](const Computation& c, std::span<const Literal> in) {
    std::vector<Value> arguments;
    for (const Literal& literal : in) arguments.push_back(borrow(literal));
    return to_literal(run(c, arguments), c.root()->shape);
  };
};

Value Evaluator::run(const Computation& computation, const std::vector<Value>& arguments) {
  if (depth_ >= kMaxDepth) {
    throw Error(ErrorKind::kFailed, computation.location, "calls nest too deep to evaluate");
  }
  auto found = schedules_.find(&computation);
  if (found == schedules_.end()) {
    found = schedules_.emplace(&computation, schedule(computation)).first;
  }
  const Schedule& s = found->second;  // stays put: nodes of an unordered_map do not move
  ++depth_;
  std::vector<Value> values(s.order.size());
  std::vector<const Value*> in;
  for (size_t i = 0; i < s.order.size(); ++i) {
    const Instruction& op = *s.order[i];
    if (op.is(Opcode::kParameter)) {
      values[i] = arguments.at(op.attrs.parameter_number);
    } else {
      in.clear();
      for (int operand : s.operands[i]) in.push_back(&values[operand]);
      values[i] = execute(op, in);
    }
    for (int dead : s.dying[i]) values[dead] = {};
  }
  --depth_;
  return std::move(values[s.root]);
}

void Evaluator::check_shape_size(const Instruction& op, const Shape& shape) const {
  for (const Shape& element : shape.elements) check_shape_size(op, element);
  if (!shape.is_array()) return;
  if (shape.has_dynamic_dims()) unsupported(op, " with sizes that are known at run time only");
  int64_t bytes = dtype_bytes(shape.type);
  if (std::ranges::find(shape.dims, 0) != shape.dims.end()) return;
  for (int64_t d : shape.dims) {
    if (__builtin_mul_overflow(bytes, d, &bytes) || bytes > options_.max_bytes) {
      throw Error(ErrorKind::kFailed, op.location,
                  "a value of shape " + shape.to_string(false) + " is too large to evaluate");
    }
  }
}

void Evaluator::check_resources(const Instruction& op) {
  eval::check_stop();
  if (options_.max_steps > 0 && ++steps_ > options_.max_steps) {
    throw Error(ErrorKind::kFailed, op.location,
                "evaluation takes more than " + std::to_string(options_.max_steps) + " steps");
  }
  check_shape_size(op, op.shape);
}

Value Evaluator::run_while(const Instruction& op, const Value& init) {
  std::vector<Value> state = {init};
  while (run(*op.while_condition(), state).leaf->as_int(0) != 0) {
    state[0] = run(*op.while_body(), state);
  }
  return std::move(state[0]);
}

// An index outside the branches takes the last one.
Value Evaluator::run_conditional(const Instruction& op, const std::vector<const Value*>& in) {
  const int64_t last = static_cast<int64_t>(op.called.size()) - 1;
  int64_t branch = in[0]->leaf->as_int(0);
  if (is_pred(in[0]->leaf->shape().type)) {
    branch = branch != 0 ? 0 : 1;
  } else if (branch < 0 || branch > last) {
    branch = last;
  }
  return run(*op.called.at(branch), {*in.at(branch + 1)});
}

// Among one device every collective hands back what it is given.
Value Evaluator::collective(const Instruction& op, const std::vector<const Value*>& in) {
  const ModuleConfig& config = op.parent()->parent()->config;
  if (config.replica_count * config.num_partitions != 1) unsupported(op, " for several devices");
  Value all;
  for (const Value* operand : in) all.elements.push_back(*operand);
  const Value& same = op.shape.is_tuple() ? all : *in[0];
  switch (op.opcode) {
    case Opcode::kAllGatherStart:
      if (in.size() == 1) return {{}, {*in[0], *in[0]}};
      return {{}, {all, all}};
    case Opcode::kRaggedAllToAll: return share(array_op(op, in));
    case Opcode::kCollectivePermute:
    case Opcode::kCollectivePermuteStart: {
      if (!text_attribute(op.attrs, "slice_sizes").empty()) unsupported(op, " in place");
      const bool start = op.is(Opcode::kCollectivePermuteStart);
      const Shape& shape = start ? op.shape.elements.at(1) : op.shape;
      const bool to_itself = text_attribute(op.attrs, "source_target_pairs").contains('0');
      Value moved = !to_itself ? share(Literal(shape)) : shape.is_tuple() ? all : *in[0];
      if (!start) return moved;
      Value value{{}, {in.size() == 1 ? *in[0] : all, std::move(moved)}};
      for (size_t i = 2; i < op.shape.elements.size(); ++i) {
        value.elements.push_back(share(Literal(op.shape.elements[i])));
      }
      return value;
    }
    default: return same;
  }
}

// What an async-start wraps, run at once.
Value Evaluator::run_started(const Instruction& op, const std::vector<const Value*>& in) {
  Module scratch("started");
  const ModuleConfig& config = op.parent()->parent()->config;
  scratch.config.replica_count = config.replica_count;
  scratch.config.num_partitions = config.num_partitions;
  Computation* c = scratch.add_computation("started");
  std::vector<Instruction*> operands;
  for (const Instruction* o : op.operands()) {
    operands.push_back(c->add_parameter(std::ssize(operands), o->shape));
  }
  return execute(*clone_started_op(*c, op, operands, op.shape.elements.at(1)), in);
}

Value Evaluator::execute(const Instruction& op, const std::vector<const Value*>& in) {
  check_resources(op);
  switch (op.opcode) {
    case Opcode::kConstant: return borrow(*op.literal);
    case Opcode::kTuple: {
      Value value;
      for (const Value* element : in) value.elements.push_back(*element);
      return value;
    }
    case Opcode::kGetTupleElement: return in[0]->elements.at(op.attrs.tuple_index);
    case Opcode::kCall:
    case Opcode::kFusion: {
      std::vector<Value> arguments;
      for (const Value* argument : in) arguments.push_back(*argument);
      return run(*op.to_apply(), arguments);
    }
    case Opcode::kWhile: return run_while(op, *in[0]);
    case Opcode::kConditional: return run_conditional(op, in);

    case Opcode::kSelect:
      if (!op.shape.is_tuple()) return share(array_op(op, in));
      return *in[in[0]->leaf->as_int(0) != 0 ? 1 : 2];
    case Opcode::kCopy:
      if (!op.shape.is_tuple()) return share(array_op(op, in));
      return *in[0];

    case Opcode::kOptBarrier:
    case Opcode::kDomain:
    case Opcode::kAddDependency:
    case Opcode::kAllReduceDone:
    case Opcode::kAsyncUpdate: return *in[0];
    case Opcode::kAfterAll: return share(Literal(op.shape));
    case Opcode::kCopyStart: return {{}, {*in[0], *in[0], share(Literal(Shape::scalar(DType::kU32)))}};
    case Opcode::kCopyDone: return in[0]->elements.at(0);
    case Opcode::kAllGatherDone:
    case Opcode::kCollectivePermuteDone: return in[0]->elements.at(1);
    case Opcode::kAsyncStart: {
      Value value;
      Value& operands = value.elements.emplace_back();
      for (const Value* operand : in) operands.elements.push_back(*operand);
      value.elements.push_back(run_started(op, in));
      return value;
    }
    case Opcode::kAsyncDone: return in[0]->elements.at(1);

    case Opcode::kAllReduce:
    case Opcode::kAllReduceStart:
    case Opcode::kAllGather:
    case Opcode::kAllGatherStart:
    case Opcode::kAllToAll:
    case Opcode::kReduceScatter:
    case Opcode::kCollectiveBroadcast:
    case Opcode::kCollectivePermute:
    case Opcode::kCollectivePermuteStart:
    case Opcode::kRaggedAllToAll: return collective(op, in);
    case Opcode::kReplicaId:
    case Opcode::kPartitionId: return share(Literal(op.shape));

    case Opcode::kCustomCall: return custom_call(op, in);
    default: return share(array_op(op, in));
  }
}

Value Evaluator::custom_call(const Instruction& op, const std::vector<const Value*>& in) {
  if (is_annotation(op)) return *in.at(0);
  if (is_remark(op)) return share(Literal::tuple({}));
  if (is_allocation(op)) return share(Literal(op.shape));
  if (auto attrs = top_k_call(op)) {
    Computation scratch;
    Instruction* plain = scratch.add(Opcode::kTopK, op.shape, {}, op.name);
    plain->attrs = std::move(*attrs);
    return share(array_op(*plain, in));
  }
  if (eval::is_factor_call(op)) return share(array_op(op, in));
  throw Error(ErrorKind::kUnsupported,
              {{.location = op.location,
                .instruction = op.name,
                .rule = "not-compiled",
                .message = "no registered implementation of custom call \"" + op.attrs.custom_call_target + "\"",
                .details = {}}});
}

Literal Evaluator::array_op(const Instruction& op, const std::vector<const Value*>& values) {
  std::vector<const Literal*> in;
  for (const Value* value : values) {
    if (value->leaf == nullptr || !value->leaf->shape().is_array()) unsupported(op, " on tuples");
    in.push_back(value->leaf.get());
  }
  if (eval::is_element_op(op.opcode)) return eval::elementwise(op, in);
  if (op.is(Opcode::kGetDimensionSize)) {
    Literal size(op.shape);
    size.set_int(0, in[0]->shape().dims.at(op.attrs.dimensions.at(0)));
    return size;
  }
  if (op.is(Opcode::kCustomCall)) return eval::factors(op, in);
  eval::Meaning meaning = eval::meaning_of(op.opcode);
  if (!meaning) unsupported(op, "");
  return meaning({op, in, run_scalar_, options_.scatter_oob_window});
}

std::atomic<int64_t> evaluations{0};

// Every way into the evaluator: counts it, and makes memory that the machine does not have the
// module's failure, not a crash.
template <class F>
auto guarded(F f) {
  evaluations.fetch_add(1, std::memory_order_relaxed);
  try {
    return f();
  } catch (const std::bad_alloc&) {
    throw Error(ErrorKind::kFailed, "no memory to evaluate the module");
  } catch (const std::length_error&) {
    throw Error(ErrorKind::kFailed, "no memory to evaluate the module");
  }
}

}  // namespace

int64_t evaluation_count() { return evaluations.load(std::memory_order_relaxed); }

Literal evaluate(const Computation& computation, std::span<const Literal> arguments, const EvalOptions& options) {
  const auto& parameters = computation.parameters();
  if (arguments.size() != parameters.size()) {
    throw Error(ErrorKind::kInput, "computation " + computation.name + " takes " + std::to_string(parameters.size()) +
                                       " arguments, not " + std::to_string(arguments.size()));
  }
  std::vector<Value> values;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!compatible(arguments[i].shape(), parameters[i]->shape)) {
      throw Error(ErrorKind::kInput, "parameter " + std::to_string(i) + " is " + parameters[i]->shape.to_string(false) +
                                         ", not " + arguments[i].shape().to_string(false));
    }
    values.push_back(borrow(arguments[i]));
  }
  return guarded([&] {
    Evaluator evaluator(options);
    return to_literal(evaluator.run(computation, values), computation.root()->shape);
  });
}

std::optional<Literal> evaluate_instruction(const Instruction& instruction, std::span<const Literal> operands,
                                            const EvalOptions& options) {
  if (instruction.is(Opcode::kParameter) || has_side_effect(instruction)) return std::nullopt;
  std::vector<Value> values;
  for (const Literal& operand : operands) values.push_back(borrow(operand));
  std::vector<const Value*> in;
  for (const Value& value : values) in.push_back(&value);
  try {
    return guarded([&] {
      Evaluator evaluator(options);
      return to_literal(evaluator.execute(instruction, in), instruction.shape);
    });
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kUnsupported) return std::nullopt;
    throw;
  }
}

}  // namespace hlojit
