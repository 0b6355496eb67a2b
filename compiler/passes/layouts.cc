#include "compiler/passes/layouts.h"

#include <unordered_set>

#include "compiler/analysis/steps.h"
#include "compiler/passes/bitcasts.h"

namespace hlojit {
namespace {

Shape with_default_layouts(Shape shape) {
  for (Shape& e : shape.elements) e = with_default_layouts(std::move(e));
  if (shape.is_array()) shape.layout = Layout::descending(shape.rank());
  return shape;
}

// The value in the wanted layouts; `before` is where copies are added.
Instruction* matched(Computation& c, Instruction* value, const Shape& wanted, Instruction* before) {
  if (value->shape == wanted) return value;
  if (wanted.is_array()) return c.add(Opcode::kCopy, wanted, {value}, value->name + ".relayout", before);
  std::vector<Instruction*> parts;
  for (size_t k = 0; k < wanted.elements.size(); ++k) {
    Instruction* part = nullptr;
    if (value->is(Opcode::kTuple)) {
      part = value->operand(k);
    } else {
      part = c.add(Opcode::kGetTupleElement, value->shape.elements[k], {value}, value->name + ".part", before);
      part->attrs.tuple_index = static_cast<int64_t>(k);
    }
    parts.push_back(matched(c, part, wanted.elements[k], before));
  }
  return c.add(Opcode::kTuple, wanted, parts, value->name, before);
}

// Instructions whose own result can be produced in any layout.
bool layout_is_free(const Instruction* i) {
  switch (i->info().op_class) {
    case OpClass::kElementwise:
    case OpClass::kMoves: return !i->is(Opcode::kDynamicUpdateSlice) && !i->is(Opcode::kScatter);
    case OpClass::kReduces:
    case OpClass::kContracts: return true;
    default: return i->is(Opcode::kIota) || i->is(Opcode::kConstant);
  }
}

const Layout* largest_operand_layout(const Instruction* i) {
  const Instruction* best = nullptr;
  for (const Instruction* o : i->operands()) {
    if (!o->shape.is_array() || o->shape.dims != i->shape.dims) continue;
    if (!best || dtype_bytes(o->shape.type) > dtype_bytes(best->shape.type)) best = o;
  }
  return best ? &best->shape.layout : nullptr;
}

class Assignment {
 public:
  explicit Assignment(Module& module) : module_(module) {}

  void run() {
    Computation* entry = module_.entry();
    const Shape& result = module_.result_shape();
    const auto& parameters = entry->parameters();
    for (size_t k = 0; k < parameters.size(); ++k) parameters[k]->shape = module_.parameter_shape(k);
    // A root that can be produced in the caller's layout is; any other is copied into it.
    retarget(*entry->root(), result);
    computation(*entry);
    entry->set_root(matched(*entry, entry->root(), result, nullptr));
  }

 private:
  // Sequential computations other than the entry: default layouts in and out.
  void callee(Computation& c) {
    for (Instruction* p : c.parameters()) p->shape = with_default_layouts(p->shape);
    Shape wanted = with_default_layouts(c.root()->shape);
    retarget(*c.root(), wanted);
    computation(c);
    c.set_root(matched(c, c.root(), wanted, nullptr));
  }

  void retarget(Instruction& root, const Shape& wanted) {
    if (root.is(Opcode::kTuple)) {
      for (size_t k = 0; k < root.operand_count(); ++k) retarget(*root.operand(k), wanted.elements[k]);
    } else if (wanted.is_array() && root.shape.is_array() && layout_is_free(&root) && settled_.insert(&root).second) {
      root.shape.layout = wanted.layout;
    }
  }

  void computation(Computation& c) {
    for (Instruction* i : c.snapshot()) {
      if (settled_.contains(i)) continue;
      switch (i->opcode) {
        case Opcode::kParameter: break;
        case Opcode::kTuple: {
          std::vector<Shape> shapes;
          for (const Instruction* o : i->operands()) shapes.push_back(o->shape);
          i->shape = Shape::tuple(std::move(shapes));
          break;
        }
        case Opcode::kGetTupleElement:
          i->shape = i->operand(0)->shape.elements[static_cast<size_t>(i->attrs.tuple_index)];
          break;
        case Opcode::kOptBarrier:
        case Opcode::kAddDependency:
        case Opcode::kDynamicUpdateSlice: i->shape = i->operand(0)->shape; break;
        case Opcode::kFusion: {
          // One of ours that was printed: its kernel was planned for these layouts.
          const Computation& kernel = *i->to_apply();
          for (size_t k = 0; k < i->operand_count(); ++k) {
            i->set_operand(k, matched(c, i->operand(k), kernel.parameters()[k]->shape, i));
          }
          i->shape = kernel.root()->shape;
          break;
        }
        case Opcode::kWhile:
          for (Computation* callee_of : i->called) callee(*callee_of);
          i->shape = with_default_layouts(i->shape);
          i->set_operand(0, matched(c, i->operand(0), i->shape, i));
          break;
        case Opcode::kConditional:
          for (Computation* callee_of : i->called) callee(*callee_of);
          i->shape = with_default_layouts(i->shape);
          for (size_t k = 1; k < i->operand_count(); ++k) {
            Shape wanted = with_default_layouts(i->operand(k)->shape);
            i->set_operand(k, matched(c, i->operand(k), wanted, i));
          }
          break;
        default: {
          if (is_step(*i)) {
            StepLayouts wanted = step_layouts(*i);
            for (size_t k = 0; k < i->operand_count(); ++k) {
              i->set_operand(k, matched(c, i->operand(k), wanted.operands[k], i));
            }
            i->shape = wanted.result;
            break;
          }
          if (!i->shape.is_array()) {
            i->shape = with_default_layouts(i->shape);
            break;
          }
          const Layout* like = is_elementwise(i->opcode) || i->is(Opcode::kCopy) ? largest_operand_layout(i) : nullptr;
          Layout layout = like ? *like : Layout::descending(i->shape.rank());
          layout.element_size_in_bits = 0;
          layout.memory_space = 0;
          i->shape.layout = layout;
        }
      }
    }
  }

  Module& module_;
  std::unordered_set<const Instruction*> settled_;  // results with the layout their reader asked for
};

}  // namespace

bool layouts(Module& module, const PipelineOptions& options) {
  bitcasts(module, options);  // where this pass runs alone
  Assignment(module).run();
  return true;
}

}  // namespace hlojit
