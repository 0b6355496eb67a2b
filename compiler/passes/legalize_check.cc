// See legalize_check.h.
#include "compiler/passes/legalize_check.h"

#include "compiler/analysis/dataflow.h"
#include "compiler/analysis/steps.h"
#include "compiler/plan/kernel.h"

namespace hlojit {
namespace {

bool is_structure(const Instruction& i) {
  if (forwards(i)) return true;
  switch (i.opcode) {
    case Opcode::kAfterAll:
    case Opcode::kConditional:
    case Opcode::kConstant:
    case Opcode::kFusion:
    case Opcode::kParameter:
    case Opcode::kWhile:
      return true;
    default:
      return is_donated_copy(i);
  }
}

std::string reason(const Instruction& i) {
  std::string op(op_name(i.opcode));
  if (i.shape.has_dynamic_dims()) return op + " of dynamic size is not compiled yet";
  return op + " is not compiled yet";
}

}  // namespace

bool legalize_check(Module& module, const PipelineOptions&) {
  std::vector<Diagnostic> found;
  for (const Computation* c : sequential_computations(module)) {
    for (const auto& i : c->instructions()) {
      bool opaque = i->is(Opcode::kParameter) && i->shape.type == DType::kOpaque;
      if (!opaque && !i->shape.has_dynamic_dims() && (is_structure(*i) || is_kernel_op(*i) || is_step(*i))) continue;
      found.push_back({.location = i->location,
                       .instruction = i->name,
                       .rule = "not-compiled",
                       .message = opaque ? "opaque parameters are not compiled" : reason(*i),
                       .details = {}});
    }
  }
  if (!found.empty()) throw Error(ErrorKind::kUnsupported, std::move(found));
  return false;
}

}  // namespace hlojit
