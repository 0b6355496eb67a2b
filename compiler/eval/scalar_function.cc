// Compiling a scalar computation to a list of steps over slots, and running it block by block.
#include "compiler/eval/scalar_function.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "compiler/eval/stop.h"
#include "compiler/ir/combining.h"
#include "layout/shape.h"

namespace hlojit::eval {
namespace {

// Inlining copies bodies: a chain of calls that doubles at each level must not eat the memory.
constexpr size_t kMaxSteps = 4096;
constexpr int kMaxDepth = 64;

void flatten_types(const Shape& shape, std::vector<DType>& types) {
  if (shape.is_tuple()) {
    for (const Shape& element : shape.elements) flatten_types(element, types);
  } else {
    types.push_back(shape.type);
  }
}

size_t leaf_total(const Shape& shape) {
  std::vector<DType> types;
  flatten_types(shape, types);
  return types.size();
}

bool all_scalars(const Shape& shape) {
  if (!shape.is_tuple()) return shape.is_scalar();
  return std::ranges::all_of(shape.elements, all_scalars);
}

// Moves of a scalar that leave its bits alone.
bool is_scalar_alias(const Instruction& instruction) {
  switch (instruction.opcode) {
    case Opcode::kBroadcast:
    case Opcode::kReshape:
    case Opcode::kTranspose:
    case Opcode::kBitcast:
    case Opcode::kCopy: return true;
    case Opcode::kBitcastConvert:
      return dtype_bytes(instruction.shape.type) == dtype_bytes(instruction.operand(0)->shape.type);
    default: return false;
  }
}

void append_leaves(const Literal& value, std::vector<const Literal*>& leaves) {
  if (!value.shape().is_tuple()) {
    leaves.push_back(&value);
    return;
  }
  for (const Literal& element : value.elements()) append_leaves(element, leaves);
}

}  // namespace

ScalarFunction::ScalarFunction(const Computation& computation, const RunComputation& run)
    : computation_(computation), run_(run) {
  bool scalars = true;
  std::vector<std::vector<int>> arguments;
  for (const Instruction* parameter : computation.parameters()) {
    scalars = scalars && parameter->shape.is_scalar();
    parameter_types_.push_back(parameter->shape.type);
    arguments.push_back({static_cast<int>(arguments.size())});
  }
  flatten_types(computation.root()->shape, result_types_);
  plain_float_ = hlojit::is_plain_float(computation);
  frame_.resize(parameter_types_.size());
  straight_line_ = scalars && compile(computation, arguments, results_, 0);
  pointers_.resize(frame_.size());
}

int ScalarFunction::new_slot() {
  frame_.emplace_back(kSlotBytes);
  return static_cast<int>(frame_.size()) - 1;
}

int ScalarFunction::constant_slot(const Literal& literal) {
  const int slot = new_slot();
  const size_t width = literal.bytes().size();
  for (int64_t lane = 0; lane < kLanes; ++lane) {
    std::memcpy(frame_[slot].data() + lane * width, literal.bytes().data(), width);
  }
  return slot;
}

// Slots of each value's leaves; false if an instruction is not straight-line scalar code.
bool ScalarFunction::compile(const Computation& computation, const std::vector<std::vector<int>>& arguments,
                             std::vector<int>& results, int depth) {
  if (depth > kMaxDepth) return false;
  std::unordered_map<const Instruction*, std::vector<int>> slots;
  for (const auto& owned : computation.instructions()) {
    const Instruction& instruction = *owned;
    std::vector<int>& made = slots[&instruction];
    if (!all_scalars(instruction.shape) || frame_.size() > kMaxSteps) return false;
    if (instruction.is(Opcode::kParameter)) {
      made = arguments.at(instruction.attrs.parameter_number);
    } else if (instruction.is(Opcode::kConstant) && instruction.shape.is_scalar()) {
      made = {constant_slot(*instruction.literal)};
    } else if (instruction.is(Opcode::kTuple)) {
      for (const Instruction* operand : instruction.operands()) {
        const std::vector<int>& part = slots.at(operand);
        made.insert(made.end(), part.begin(), part.end());
      }
    } else if (instruction.is(Opcode::kGetTupleElement)) {
      const Shape& tuple = instruction.operand(0)->shape;
      size_t first = 0;
      for (int64_t i = 0; i < instruction.attrs.tuple_index; ++i) {
        first += leaf_total(tuple.elements[i]);
      }
      const std::vector<int>& whole = slots.at(instruction.operand(0));
      made.assign(whole.begin() + first, whole.begin() + first + leaf_total(instruction.shape));
    } else if (instruction.is(Opcode::kCall) || instruction.is(Opcode::kFusion)) {
      std::vector<std::vector<int>> inner;
      for (const Instruction* operand : instruction.operands()) inner.push_back(slots.at(operand));
      if (!compile(*instruction.to_apply(), inner, made, depth + 1)) return false;
    } else if (is_scalar_alias(instruction)) {
      made = slots.at(instruction.operand(0));
    } else if (is_element_op(instruction.opcode)) {
      Step step{element_op(instruction), {0, 0, 0}, 0};
      for (size_t i = 0; i < instruction.operand_count(); ++i) {
        step.inputs[i] = slots.at(instruction.operand(i)).at(0);
      }
      step.output = new_slot();
      steps_.push_back(step);
      made = {step.output};
    } else {
      return false;
    }
  }
  results = slots.at(computation.root());
  return true;
}

void ScalarFunction::widen_to_f64() {
  for (Step& step : steps_) step.op.type = step.op.result = DType::kF64;
  std::ranges::fill(parameter_types_, DType::kF64);
  std::ranges::fill(result_types_, DType::kF64);
}

void ScalarFunction::run(int64_t n, const void* const* parameters, void* const* results) {
  check_stop();
  if (!straight_line_) return run_slowly(n, parameters, results);
  if (n <= kLanes) return run_block(n, parameters, results);
  std::vector<const void*> inputs(parameter_types_.size());
  std::vector<void*> outputs(results_.size());
  for (int64_t at = 0; at < n; at += kLanes) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      inputs[i] = static_cast<const std::byte*>(parameters[i]) + at * dtype_bytes(parameter_types_[i]);
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      outputs[i] = static_cast<std::byte*>(results[i]) + at * dtype_bytes(result_types_[i]);
    }
    run_block(std::min(kLanes, n - at), inputs.data(), outputs.data());
  }
}

void ScalarFunction::run_block(int64_t n, const void* const* parameters, void* const* results) {
  for (size_t i = 0; i < pointers_.size(); ++i) {
    pointers_[i] = i < parameter_types_.size() ? parameters[i] : frame_[i].data();
  }
  for (const Step& step : steps_) {
    const void* inputs[3] = {pointers_[step.inputs[0]], pointers_[step.inputs[1]], pointers_[step.inputs[2]]};
    apply(step.op, n, inputs, frame_[step.output].data());
  }
  // A result that is a parameter (argmax, a sort of pairs) may share its array with another result:
  // park those first.
  if (results_.size() == 1) {
    std::memmove(results[0], pointers_[results_[0]], n * dtype_bytes(result_types_[0]));
    return;
  }
  std::vector<std::vector<std::byte>> parked(results_.size());
  for (size_t r = 0; r < results_.size(); ++r) {
    if (static_cast<size_t>(results_[r]) >= parameter_types_.size()) continue;
    const std::byte* from = static_cast<const std::byte*>(pointers_[results_[r]]);
    parked[r].assign(from, from + n * dtype_bytes(result_types_[r]));
  }
  for (size_t r = 0; r < results_.size(); ++r) {
    const void* from = parked[r].empty() ? pointers_[results_[r]] : parked[r].data();
    std::memcpy(results[r], from, n * dtype_bytes(result_types_[r]));
  }
}

void ScalarFunction::run_slowly(int64_t n, const void* const* parameters, void* const* results) {
  std::vector<Literal> arguments;
  for (DType type : parameter_types_) arguments.emplace_back(Shape::scalar(type));
  for (int64_t lane = 0; lane < n; ++lane) {
    for (size_t i = 0; i < arguments.size(); ++i) {
      const size_t width = dtype_bytes(parameter_types_[i]);
      std::memcpy(arguments[i].bytes().data(), static_cast<const std::byte*>(parameters[i]) + lane * width, width);
    }
    const Literal value = run_(computation_, arguments);
    std::vector<const Literal*> leaves;
    append_leaves(value, leaves);
    for (size_t r = 0; r < leaves.size(); ++r) {
      const size_t width = dtype_bytes(result_types_[r]);
      std::memcpy(static_cast<std::byte*>(results[r]) + lane * width, leaves[r]->bytes().data(), width);
    }
  }
}

}  // namespace hlojit::eval
