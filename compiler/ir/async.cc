// See async.h.
#include "compiler/ir/async.h"

#include <algorithm>

namespace hlojit {
namespace {

bool is_async(const Instruction& i) {
  return i.is(Opcode::kAsyncStart) || i.is(Opcode::kAsyncUpdate) || i.is(Opcode::kAsyncDone);
}

Opcode started_opcode(const Instruction& start) {
  switch (start.opcode) {
    case Opcode::kAllReduceStart: return Opcode::kAllReduce;
    case Opcode::kAllGatherStart: return Opcode::kAllGather;
    case Opcode::kCollectivePermuteStart: return Opcode::kCollectivePermute;
    case Opcode::kCopyStart: return Opcode::kCopy;
    default: return wrapped_op(start).value_or(Opcode::kCall);
  }
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
