// See products.h.
#include "compiler/analysis/products.h"

#include <span>
#include <vector>

#include "compiler/analysis/movement.h"
#include "compiler/ir/instruction_set.h"

namespace hlojit {
namespace {

using enum Opcode;
using Leaf = std::function<bool(const Instruction*)>;

/// What an instruction's elements may be.
std::span<Instruction* const> sources(const Instruction& i) {
  if (i.is(kNegate)) return i.operands();
  if (i.info().op_class == OpClass::kMoves) return moved_operands(i);
  return {};
}

bool any_product(const Instruction* value, const Leaf& leaf) {
  std::vector<const Instruction*> open = {value};
  InstructionSet seen;
  while (!open.empty()) {
    const Instruction* i = open.back();
    open.pop_back();
    if (!seen.insert(i)) continue;
    std::span<Instruction* const> from = sources(*i);
    if (i->is(kMultiply) || (from.empty() && leaf(i))) return true;
    open.insert(open.end(), from.begin(), from.end());
  }
  return false;
}

/// Through fusions, from the one that makes a value to those that make its operands.
class Fusions {
 public:
  bool makes_product(const Instruction* operand) {
    constexpr int kDeepest = 64;  // of fusions that only move
    if (depth_ == kDeepest) return false;
    ++depth_;
    bool found = any_product(operand, [&](const Instruction* i) { return result_is_product(i); });
    --depth_;
    return found;
  }

 private:
  bool result_is_product(const Instruction* i) {
    const bool element = i->is(kGetTupleElement);
    const Instruction* fusion = element ? i->operand(0) : i;
    if (!fusion->is(kFusion) || !seen_.insert(i)) return false;
    const Instruction* root = fusion->to_apply()->root();
    if (element && !root->is(kTuple)) return false;
    const Instruction* result = element ? root->operand(static_cast<size_t>(i->attrs.tuple_index)) : root;
    return is_product(result, [&](const Instruction* parameter) {
      return makes_product(fusion->operand(static_cast<size_t>(parameter->attrs.parameter_number)));
    });
  }

  InstructionSet seen_;
  int depth_ = 0;
};

}  // namespace

bool is_product(const Instruction* value, const std::function<bool(const Instruction*)>& operand) {
  return any_product(value, [&](const Instruction* i) { return i->is(kParameter) && operand(i); });
}

std::vector<bool> product_operands(const Instruction& fusion) {
  std::vector<bool> products;
  for (const Instruction* o : fusion.operands()) products.push_back(Fusions().makes_product(o));
  return products;
}

}  // namespace hlojit
