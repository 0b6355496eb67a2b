// See layout_modes.h.
#include "runtime/pjrt/layout_modes.h"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>

#include "compiler/ir/annotation.h"
#include "compiler/passes/inline_calls.h"
#include "compiler/passes/layout_rules.h"
#include "runtime/pjrt/sdy.h"

namespace hlojit::pjrt {
namespace {

constexpr std::string_view kDefault = "default", kAuto = "auto";

// The list of that name, one entry a leaf; empty if the module has none.
std::vector<std::string> read_list(const Module& module, std::string_view name, size_t leaves) {
  std::vector<std::string> list;
  for (const auto& [attribute, text] : module.config.other) {
    if (attribute != "frontend_attributes") continue;
    std::string all = frontend_attribute(text, name);
    if (all.empty()) continue;
    for (auto entry : std::views::split(all, ';')) list.emplace_back(entry.begin(), entry.end());
  }
  if (!list.empty() && list.size() != leaves) {
    fail(PJRT_Error_Code_INVALID_ARGUMENT,
         fmt::format("{} has {} entries, the program has {} arrays there", name, list.size(), leaves));
  }
  return list;
}

Layout parse_layout(const Shape& shape, const std::string& text) {
  if (shape.rank() == 0 && text == "{}") return shape.layout;  // which HLO's text of a scalar leaves out
  return Shape::parse(shape.to_string(false) + text).layout;
}

// The instruction that makes result leaf number k, past tuples.
const Instruction* maker_of(const Instruction* root, size_t k) {
  if (!root->shape.is_tuple()) return root;
  return root->is(Opcode::kTuple) ? root->operand(k) : nullptr;
}

// The operand whose memory order the result would have: the one of most bytes that has a say.
size_t leading_operand(const Instruction& i) {
  size_t best = i.operand_count();
  int64_t most = -1;
  for (size_t k = 0; k < i.operand_count(); ++k) {
    const Shape& s = i.operand(k)->shape;
    if (!s.is_array() || s.element_count() <= most || !along_operand(i, k, Layout::descending(s.rank()))) continue;
    best = k;
    most = s.element_count();
  }
  return best;
}

// The layout of a value as it comes from the parameters, along one chain of operands.
Layout layout_as_made(const Instruction* value, const std::vector<Leaf>& parameters) {
  std::vector<std::pair<const Instruction*, size_t>> chain;
  const Instruction* i = value;
  for (;;) {
    if (is_annotation(*i) && i->attrs.custom_call_target != "LayoutConstraint") {
      i = i->operand(0);
      continue;
    }
    const size_t k = i->is(Opcode::kParameter) || is_annotation(*i) ? i->operand_count() : leading_operand(*i);
    if (k == i->operand_count()) break;
    chain.emplace_back(i, k);
    i = i->operand(k);
  }
  Layout layout = Layout::descending(i->shape.rank());
  if (i->is(Opcode::kParameter)) {
    const Leaf& leaf = parameters.at(static_cast<size_t>(i->attrs.parameter_number));
    if (leaf.shape.dims == i->shape.dims) layout = leaf.shape.layout;
  } else if (is_annotation(*i)) {
    layout = i->shape.layout;
  }
  for (const auto& [user, k] : chain | std::views::reverse) {
    layout = along_operand(*user, k, layout).value_or(Layout::descending(user->shape.rank()));
  }
  return layout;
}

}  // namespace

void apply_layout_modes(const Module& module, std::vector<Leaf>& parameters, std::vector<Leaf>& results) {
  const std::vector<std::string> in = read_list(module, "arg_layout_modes", parameters.size()),
                                 out = read_list(module, "out_layout_modes", results.size());
  for (size_t k = 0; k < in.size(); ++k) {
    Shape& shape = parameters[k].shape;
    if (shape.is_array() && in[k] != kDefault && in[k] != kAuto) shape.layout = parse_layout(shape, in[k]);
  }
  std::unique_ptr<Module> inlined;
  if (std::ranges::find(out, kAuto) != out.end()) {
    inlined = module.clone();
    inline_calls(*inlined, {});
  }
  for (size_t k = 0; k < out.size(); ++k) {
    Shape& shape = results[k].shape;
    if (!shape.is_array() || out[k] == kDefault) continue;
    if (out[k] != kAuto) {
      shape.layout = parse_layout(shape, out[k]);
    } else if (const Instruction* maker = maker_of(inlined->entry()->root(), k); maker && maker->shape.is_array()) {
      shape.layout = layout_as_made(maker, parameters);
    }
  }
}

std::vector<size_t> read_memory_kinds(const Module& module, size_t results) {
  std::vector<size_t> kinds;
  for (const std::string& name : read_list(module, "out_memory_kinds", results)) {
    const auto* found = std::ranges::find(kMemoryKinds, name, [](const char* k) { return std::string_view(k); });
    if (found == std::end(kMemoryKinds))
      fail(PJRT_Error_Code_INVALID_ARGUMENT, fmt::format("hlojit has no memory of the kind {}", name));
    kinds.push_back(static_cast<size_t>(found - std::begin(kMemoryKinds)));
  }
  kinds.resize(results, 0);
  return kinds;
}

}  // namespace hlojit::pjrt
