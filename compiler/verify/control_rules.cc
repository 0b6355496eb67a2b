// Tuples, calls, loops, branches: shapes pass through unchanged, so that what a caller gives is
// what the called computation takes. Layouts are free on either side.
#include <charconv>

#include "compiler/verify/rules.h"

namespace hlojit::rules {
namespace {

std::vector<Shape> operand_shapes(const Use& use, size_t first = 0) {
  std::vector<Shape> shapes;
  for (size_t i = first; i < use.operands.size(); ++i) shapes.push_back(use.operand(i));
  return shapes;
}

// The value of `key` in `{key="value",key2={...}}`, without quotes; empty if absent. Keys inside
// strings and nested braces do not count.
std::string_view frontend_attribute(std::string_view text, std::string_view key) {
  if (text.starts_with('{')) text.remove_prefix(1);
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      quoted = c != '"';
      continue;
    }
    if (c == '"') quoted = true;
    if (c == '{') ++depth;
    if (c == '}') --depth;
    bool starts = depth == 0 && text.substr(i).starts_with(key) &&
                  (i == 0 || text[i - 1] == ',' || text[i - 1] == ' ' || text[i - 1] == '\n');
    if (!starts) continue;
    std::string_view rest = text.substr(i + key.size());
    if (!rest.starts_with('=')) continue;
    rest.remove_prefix(1);
    if (rest.starts_with('"')) {
      rest.remove_prefix(1);
      return rest.substr(0, rest.find('"'));
    }
    return rest.substr(0, rest.find_first_of(",}"));
  }
  return {};
}

void need_composite_attributes(const Use& use) {
  const std::string& text = use.attrs.frontend_attributes;
  if (frontend_attribute(text, "composite.name").empty()) {
    fail("composite-attributes", "a composite call needs a composite.name",
         "suggestion: frontend_attributes={composite.name=\"...\"}");
  }
  std::string_view version = frontend_attribute(text, "composite.version");
  if (version.empty()) return;  // 0
  uint64_t number = 0;
  auto [end, error] = std::from_chars(version.data(), version.data() + version.size(), number);
  need(error == std::errc() && end == version.data() + version.size(), "composite-attributes",
       "composite.version must be a non-negative integer, not \"{}\"", version);
}

Shape given(const Use& use) {
  need_count(use, 0);
  return use.declared ? *use.declared : undetermined();
}

Shape identity(const Use& use) {
  need_count(use, 1);
  return use.operand(0);
}

// Of itself twice, and that again, a tuple would soon have more leaves than there is memory.
Shape tuple(const Use& use) {
  constexpr int64_t kMostLeaves = 1 << 18;
  int64_t leaves = 0;
  for (const Shape* s : use.operands) leaves = add(leaves, leaf_count(*s));
  need(leaves <= kMostLeaves, "tuple-size", "a tuple of {} leaves, of which at most {} are read", leaves, kMostLeaves);
  return Shape::tuple(operand_shapes(use));
}

Shape get_tuple_element(const Use& use) {
  need_count(use, 1);
  const Shape& x = use.operand(0);
  need(x.is_tuple(), "operand-kind", "operand 0 of get-tuple-element must be a tuple, not {}", x);
  int64_t i = use.attrs.tuple_index;
  need(i >= 0 && i < static_cast<int64_t>(x.elements.size()), "tuple-index", "index {} of a tuple with {} elements", i,
       x.elements.size());
  return x.elements[i];
}

Shape call(const Use& use) {
  need_called(use, 1);
  need_parameters(*use.called[0], operand_shapes(use), "to_apply");
  if (use.attrs.is_composite) need_composite_attributes(use);
  return use.called[0]->root()->shape;
}

Shape fusion(const Use& use) {
  need_called(use, 1);
  need_parameters(*use.called[0], operand_shapes(use), "calls");
  const Shape& result = use.called[0]->root()->shape;
  if (use.declared && compatible(*use.declared, result)) need_aliases(use);
  return result;
}

Shape while_loop(const Use& use) {
  need_count(use, 1);
  need_called(use, 2);
  const Shape& state = use.operand(0);
  auto need_state = [&](const Shape& shape, std::string_view what, const Computation& c) {
    if (compatible(shape, state)) return;
    Difference d = difference(shape, state);
    fail("while-shape",
         fmt::format("the {} {} is {}{}, the initial value has {}", what, c.name, *d.have, d.place(), *d.want));
  };
  struct Part {
    const Computation& computation;
    std::string_view role, parameter;
  };
  for (auto [c, role, parameter] : {Part{*use.called[0], "condition", "parameter of condition"},
                                    Part{*use.called[1], "body", "parameter of body"}}) {
    need(c.parameters().size() == 1, "called-parameters", "{} computation {} takes {} parameters, not 1", role, c.name,
         c.parameters().size());
    need_state(c.parameters()[0]->shape, parameter, c);
  }
  need_result(*use.called[0], Shape::scalar(DType::kPred), "condition");
  need_state(use.called[1]->root()->shape, "result of body", *use.called[1]);
  return state;
}

Shape conditional(const Use& use) {
  need(use.count() >= 1, "operand-count", "conditional takes a selector and an operand a branch");
  const Shape& selector = scalar(use, 0);
  bool pred = is_pred(selector.type);
  need(pred || selector.type == DType::kS32, "conditional-index", "the selector must be pred[] or s32[], not {}",
       selector);
  int64_t branches = static_cast<int64_t>(use.called.size());
  need(!pred || branches == 2, "conditional-index", "a pred selector chooses between 2 computations, not {}", branches);
  need(branches >= 1, "conditional-index", "an s32 selector needs at least one branch");
  need(use.count() == branches + 1, "operand-count", "{} branches take {} operands, not {}", branches, branches,
       use.count() - 1);
  for (int64_t i = 0; i < branches; ++i) {
    std::string role = pred ? (i == 0 ? "true" : "false") : fmt::format("branch {}", i);
    need_parameters(*use.called[i], {use.operands[i + 1], 1}, role);
    need_result(*use.called[i], use.called[0]->root()->shape, role);
  }
  return use.called[0]->root()->shape;
}

Shape custom_call(const Use& use) {
  need(!use.attrs.custom_call_target.empty(), "custom-call-target", "custom_call_target is empty");
  const auto& layouts = use.attrs.operand_layout_constraints;
  if (!layouts.empty()) {
    need(layouts.size() == use.operands.size(), "custom-call-layouts",
         "operand_layout_constraints has {} shapes for {} operands", layouts.size(), use.count());
    for (size_t i = 0; i < layouts.size(); ++i) {
      need(compatible(layouts[i], use.operand(i)), "custom-call-layouts",
           "operand_layout_constraints gives {} for operand {}, which is {}", layouts[i], i, use.operand(i));
      for (const std::string& error : shape_errors(layouts[i])) {
        fail("custom-call-layouts", fmt::format("operand_layout_constraints for operand {}: {}", i, error));
      }
    }
  }
  if (!use.declared) return undetermined();
  need_aliases(use);
  return *use.declared;
}

constexpr Entry kOps[] = {
    {Opcode::kCall, call, "to_apply! is_composite"},
    {Opcode::kConditional, conditional, "true_computation false_computation branch_computations"},
    {Opcode::kConstant, given, "", ResultShape::kDeclare},
    {Opcode::kCustomCall, custom_call,
     "custom_call_target! window dim_labels feature_group_count batch_group_count operand_precision padding_type "
     "operand_layout_constraints custom_call_has_side_effect literal output_to_operand_aliasing schedule api_version "
     "to_apply:custom called_computations",
     ResultShape::kDeclare},
    {Opcode::kDomain, identity, "domain!"},
    {Opcode::kFusion, fusion, "kind! calls! output_to_operand_aliasing", ResultShape::kDeclare},
    {Opcode::kGetTupleElement, get_tuple_element, "index!"},
    {Opcode::kOptBarrier, identity},
    {Opcode::kParameter, given, "", ResultShape::kDeclare},
    {Opcode::kTuple, tuple},
    {Opcode::kWhile, while_loop, "condition! body!"},
    {Opcode::kAllReduceDone, identity, "", ResultShape::kDeclare},
};

}  // namespace

std::span<const Entry> control_rules() { return kOps; }

}  // namespace hlojit::rules
