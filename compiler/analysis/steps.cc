// See steps.h.
#include "compiler/analysis/steps.h"

#include <algorithm>

#include "compiler/analysis/dataflow.h"
#include "compiler/ir/allocation.h"
#include "compiler/ir/module.h"

namespace hlojit {
namespace {

Shape with_order(Shape shape, const Ints& minor_to_major) {
  for (Shape& e : shape.elements) e = with_order(std::move(e), minor_to_major);
  if (shape.is_array()) {
    shape.layout = Layout{};
    shape.layout.minor_to_major = minor_to_major;
  }
  return shape;
}

Shape row_major(Shape shape) {
  for (Shape& e : shape.elements) e = row_major(std::move(e));
  if (shape.is_array()) shape.layout = Layout::descending(shape.rank());
  return shape;
}

/// A line of the sorted dimension is contiguous; the other dimensions follow in descending order.
Ints lines_first(const Instruction& sort) {
  int64_t along = sort.attrs.dimensions.at(0);
  Ints order = {along};
  for (int64_t d = sort.operand(0)->shape.rank() - 1; d >= 0; --d) {
    if (d != along) order.push_back(d);
  }
  return order;
}

}  // namespace

bool is_step(const Instruction& i) {
  const bool library = i.info().op_class == OpClass::kLibrary && !is_allocation(i);
  return library || has_trait(i, op_trait::kStep);
}

std::vector<const Instruction*> steps(const Module& module) {
  std::vector<const Instruction*> list;
  for (const Computation* c : sequential_computations(module)) {
    for (const auto& i : c->instructions()) {
      if (is_step(*i)) list.push_back(i.get());
    }
  }
  return list;
}

StepLayouts step_layouts(const Instruction& step) {
  StepLayouts wanted;
  if (step.is(Opcode::kCustomCall)) {
    // What the call was written for: its constraints, else the layouts of the shapes as they stand.
    const std::vector<Shape>& given = step.attrs.operand_layout_constraints;
    for (size_t k = 0; k < step.operand_count(); ++k) {
      wanted.operands.push_back(k < given.size() ? given[k] : row_major(step.operand(k)->shape));
    }
    wanted.result = step.shape;
    return wanted;
  }
  if (step.is(Opcode::kSort)) {
    Ints order = lines_first(step);
    for (const Instruction* o : step.operands()) wanted.operands.push_back(with_order(o->shape, order));
    wanted.result = with_order(step.shape, order);
    return wanted;
  }
  for (const Instruction* o : step.operands()) wanted.operands.push_back(row_major(o->shape));
  wanted.result = row_major(step.shape);
  return wanted;
}

}  // namespace hlojit
