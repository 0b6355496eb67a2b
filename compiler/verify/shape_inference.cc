// From an op to its rule, whose file lists it, and the faces of that.
#include "compiler/verify/shape_inference.h"

#include <array>

#include "compiler/verify/rules.h"

namespace hlojit {
namespace rules {
namespace {

// Entries by opcode; ops that no file lists are rows of the element type table.
const Entry& entry_of(Opcode opcode) {
  static const std::array<Entry, 256> entries = [] {
    std::array<Entry, 256> made{};
    for (size_t i = 0; i < made.size(); ++i) made[i] = {.opcode = static_cast<Opcode>(i), .rule = elementwise};
    for (auto file : {elementwise_rules, movement_rules, gather_rules, reduction_rules, contraction_rules,
                      library_rules, control_rules, effect_rules}) {
      for (const Entry& e : file()) made[static_cast<size_t>(e.opcode)] = e;
    }
    return made;
  }();
  return entries[static_cast<size_t>(opcode)];
}

}  // namespace

Shape apply(const Use& use) {
  for (const Computation* c : use.called) {
    need(c && c->root(), "root", "{} calls a computation without a root", op_name(use.opcode));
    for (const Instruction* p : c->parameters()) {
      need(p, "parameter-numbers", "computation {} lacks a parameter", c->name);
    }
  }
  return entry_of(use.opcode).rule(use);
}

}  // namespace rules

Shape infer_shape(Opcode opcode, std::span<const Shape* const> operands, const Attributes& attrs,
                  std::span<Computation* const> called, const Shape* declared) {
  return rules::apply({opcode, operands, attrs, called, declared});
}

bool shape_may_be_omitted(Opcode opcode) { return rules::entry_of(opcode).result == rules::ResultShape::kOmit; }

std::string_view own_attributes(Opcode opcode) { return rules::entry_of(opcode).attributes; }

int bitcast_bits(DType type) { return is_pred(type) ? 8 : dtype_bits(type); }

}  // namespace hlojit
