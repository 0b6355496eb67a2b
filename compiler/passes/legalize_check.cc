// See legalize_check.h.
#include "compiler/passes/legalize_check.h"

#include "compiler/analysis/dataflow.h"
#include "compiler/analysis/steps.h"
#include "compiler/plan/kernel.h"
#include "layout/index.h"

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

// Do kernels load and store elements that lie in memory like this?
bool supported_storage(const Shape& leaf) {
  if (!leaf.is_array()) return true;
  int64_t bits = element_bits(leaf), own = 8 * dtype_bytes(leaf.type);
  bool packed = (bits == 1 || bits == 2 || bits == 4) && dtype_bits(leaf.type) <= bits;
  return leaf.layout.metadata_prefix_bytes == 0 && (packed || bits % own == 0);
}

const Shape* unsupported_storage(const Shape& shape) {
  for (const Shape* leaf : leaves(shape)) {
    if (!supported_storage(*leaf)) return leaf;
  }
  return nullptr;
}

std::string reason(const Instruction& i) {
  std::string op(op_name(i.opcode));
  if (i.shape.has_dynamic_dims()) return op + " of dynamic size is not compiled yet";
  return op + " is not compiled yet";
}

}  // namespace

bool legalize_check(Module& module, const PipelineOptions&) {
  std::vector<Diagnostic> found;
  auto refuse = [&](const Instruction& i, std::string why) {
    found.push_back(
        {.location = i.location, .instruction = i.name, .rule = "not-compiled", .message = std::move(why), .details = {}});
  };
  for (const Computation* c : sequential_computations(module)) {
    for (const auto& i : c->instructions()) {
      bool opaque = i->is(Opcode::kParameter) && i->shape.type == DType::kOpaque;
      if (opaque) refuse(*i, "opaque parameters are not compiled");
      else if (i->shape.has_dynamic_dims() || !(is_structure(*i) || is_kernel_op(*i) || is_step(*i))) refuse(*i, reason(*i));
      else if (const Shape* leaf = unsupported_storage(i->shape)) {
        refuse(*i, std::string(op_name(i->opcode)) + " of " + leaf->to_string() + " is not compiled yet");
      }
    }
  }
  if (!found.empty()) throw Error(ErrorKind::kUnsupported, std::move(found));
  return false;
}

}  // namespace hlojit
