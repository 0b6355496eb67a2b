// See legalize_check.h.
#include "compiler/passes/legalize_check.h"

#include <algorithm>

#include <fmt/format.h>

#include "compiler/analysis/dataflow.h"
#include "compiler/analysis/steps.h"
#include "compiler/ir/allocation.h"
#include "compiler/ir/combining.h"
#include "compiler/plan/kernel.h"
#include "layout/index.h"

namespace hlojit {
namespace {

// Control flow, names of values and what comes from outside: entry's business.
bool is_structure(const Instruction& i) {
  OpClass kind = i.info().op_class;
  if (kind == OpClass::kControl) return !i.is(Opcode::kCall);
  if (kind == OpClass::kSource) return !i.is(Opcode::kIota);
  return forwards(i) || i.is(Opcode::kAfterAll) || is_donated_copy(i) || is_allocation(i);
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

// A computation that is to be applied to elements and cannot be.
const Computation* beyond_scalars(const Instruction& i) {
  if (is_structure(i) || i.is(Opcode::kCustomCall)) return nullptr;
  auto at = std::ranges::find_if_not(i.called, [](const Computation* c) { return is_scalar_code(*c); });
  return at == i.called.end() ? nullptr : *at;
}

// Why an instruction is not compiled; empty if it is.
std::string refusal(const Instruction& i, const PipelineOptions& options) {
  std::string op(op_name(i.opcode));
  if (i.is(Opcode::kParameter) && i.shape.type == DType::kOpaque) return "opaque parameters are not compiled";
  if (i.shape.has_dynamic_dims()) return op + " of dynamic size is not compiled yet";
  if (const Shape* s = unsupported_storage(i.shape)) return op + " of " + s->to_string() + " is not compiled yet";
  if (const Computation* f = beyond_scalars(i)) {
    return fmt::format("{} with {}, which is more than arithmetic on scalars, is not compiled yet", op, f->name);
  }
  if (is_step(i)) return options.step_refused ? options.step_refused(i) : "";
  if (is_structure(i) || is_kernel_op(i)) return "";
  return op + (is_elementwise(i.opcode) ? fmt::format(" to {}", dtype_name(i.shape.type)) : "") +
         " is not compiled yet";
}

}  // namespace

bool legalize_check(Module& module, const PipelineOptions& options) {
  std::vector<Diagnostic> found;
  for (const Computation* c : sequential_computations(module)) {
    for (const auto& i : c->instructions()) {
      std::string why = refusal(*i, options);
      if (why.empty()) continue;
      found.push_back({.location = i->location,
                       .instruction = i->name,
                       .rule = "not-compiled",
                       .message = std::move(why),
                       .details = {}});
    }
  }
  if (!found.empty()) throw Error(ErrorKind::kUnsupported, std::move(found));
  return false;
}

}  // namespace hlojit
