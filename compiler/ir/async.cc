// See async.h.
#include "compiler/ir/async.h"

#include <algorithm>

namespace hlojit {
namespace {

bool is_async(const Instruction& i) {
  return i.is(Opcode::kAsyncStart) || i.is(Opcode::kAsyncUpdate) || i.is(Opcode::kAsyncDone);
}

// Sugar says what it wraps, NAME-start starts NAME; what is left is the long form of async-start.
Opcode started_opcode(const Instruction& start) {
  if (std::optional<Opcode> wrapped = wrapped_op(start)) return *wrapped;
  std::string_view name = op_name(start.opcode);
  return op_from_name(name.substr(0, name.rfind("-start"))).value_or(Opcode::kCall);
}

}  // namespace

std::optional<Opcode> wrapped_op(const Instruction& instruction) {
  if (!is_async(instruction)) return std::nullopt;
  const auto& other = instruction.attrs.other;
  auto at = std::ranges::find(other, kWrappedOp, &std::pair<std::string, std::string>::first);
  return at == other.end() ? std::nullopt : op_from_name(at->second);
}

Instruction* clone_started_op(Computation& into, const Instruction& start, std::span<Instruction* const> operands,
                              const Shape& result) {
  Instruction* op = into.clone_instruction(start, {operands.begin(), operands.end()});
  op->opcode = started_opcode(start);
  op->shape = result;
  std::erase_if(op->attrs.other, [](const auto& attribute) {
    return attribute.first == kWrappedOp || attribute.first == "async_execution_thread" ||
           attribute.first == "cross_program_prefetch_index";
  });
  if (op->is(Opcode::kCall)) op->attrs.output_to_operand_aliasing.clear();
  return op;
}

}  // namespace hlojit
