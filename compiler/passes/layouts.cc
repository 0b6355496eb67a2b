// See layouts.h. Readers first say what they would like, from the end of a computation to its
// beginning; then each value in order takes the cheapest of what its operands and its readers
// suggest.
#include "compiler/passes/layouts.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "compiler/analysis/dataflow.h"
#include "compiler/analysis/movement.h"
#include "compiler/analysis/steps.h"
#include "compiler/ir/allocation.h"
#include "compiler/ir/module.h"
#include "compiler/passes/bitcasts.h"
#include "compiler/passes/explain.h"
#include "compiler/passes/layout_rules.h"

namespace hlojit {
namespace {

Shape with_default_layouts(Shape shape) {
  for (Shape& e : shape.elements) e = with_default_layouts(std::move(e));
  if (shape.is_array()) shape.layout = Layout::descending(shape.rank());
  return shape;
}

/// Memory spaces and packing are the caller's; what is carried around has order and tiles only.
Shape as_state(Shape shape) {
  for (Shape& e : shape.elements) e = as_state(std::move(e));
  shape.layout.element_size_in_bits = 0;
  shape.layout.memory_space = 0;
  return shape;
}

/// Instructions whose own result can be produced in any layout.
bool layout_is_free(const Instruction* i) {
  if (is_step(*i)) return false;
  if (is_allocation(*i)) return true;
  switch (i->info().op_class) {
    case OpClass::kElementwise:
    case OpClass::kMoves: return !has_trait(*i, op_trait::kUpdates);
    case OpClass::kReduces:
    case OpClass::kContracts: return true;
    case OpClass::kSource: return !i->is(Opcode::kParameter);
    default: return false;
  }
}

double bytes(const Shape& shape) { return static_cast<double>(shape.element_count()) * dtype_bytes(shape.type); }

// What `i` reads of memory where `o` is: a broadcast is made where it is used, of windows those are read that are asked
// for.
double bytes_read(const Instruction& i, const Instruction* o) {
  if (has_trait(i, op_trait::kRandomPlaces)) return bytes(i.shape);
  return bytes((o->is(Opcode::kBroadcast) ? o->operand(0) : o)->shape);
}

class Assignment {
 public:
  Assignment(Module& module, const PipelineOptions& options) : module_(module), options_(options) {}

  void run() {
    Computation* entry = module_.entry();
    const auto& parameters = entry->parameters();
    for (size_t k = 0; k < parameters.size(); ++k) parameters[k]->shape = module_.parameter_shape(k);
    computation(*entry, &module_.result_shape());
  }

 private:
  struct Wish {
    Shape shape;
    bool fixed = false;  // another layout would be copied
    int readers = 1;     // how many would like it
  };
  struct Choice {
    Layout layout;
    std::string rule;
    double cost = 0;
  };

  /// `result`: what the root has to be; nullptr if that is free.
  void computation(Computation& c, const Shape* result) {
    done_.insert(&c);
    collect_wishes(c, result);
    for (Instruction* i : c.snapshot()) assign(c, i);
    if (result) c.set_root(matched(c, c.root(), *result, nullptr));
  }

  // ---- what readers would like
  // ----------------------------------------------------------------------

  void wish(Instruction* i, const Shape& shape, bool fixed) {
    if (i->is(Opcode::kTuple)) {
      for (size_t k = 0; k < i->operand_count(); ++k) wish(i->operand(k), shape.elements[k], fixed);
      return;
    }
    auto [at, fresh] = wishes_.try_emplace(i, Wish{shape, fixed});
    if (fresh) return;
    if (at->second.shape.layout == shape.layout) ++at->second.readers;
    if (fixed && !at->second.fixed) at->second = {shape, fixed};
  }

  void collect_wishes(Computation& c, const Shape* result) {
    if (result) wish(c.root(), *result, true);
    std::vector<Instruction*> order = c.snapshot();
    for (auto at = order.rbegin(); at != order.rend(); ++at) {
      const Instruction* i = *at;
      if (i->is(Opcode::kFusion)) {
        for (size_t k = 0; k < i->operand_count(); ++k)
          wish(i->operand(k), i->to_apply()->parameters()[k]->shape, true);
      } else if (is_step(*i)) {
        StepLayouts wanted = step_layouts(*i);
        for (size_t k = 0; k < i->operand_count(); ++k) wish(i->operand(k), wanted.operands[k], true);
      } else if (auto by = by_features(*i)) {
        wish(i->operand(0), with_layout(i->operand(0)->shape, by->lhs), false);
        wish(i->operand(1), with_layout(i->operand(1)->shape, by->rhs), false);
      } else if (auto windows = layout_by_windows(*i)) {
        wish(i->operand(0), with_layout(i->operand(0)->shape, *windows), false);
      } else if (auto own = wishes_.find(i); own != wishes_.end() && i->shape.is_array()) {
        for (size_t k = 0; k < i->operand_count(); ++k) {
          Shape shape = i->operand(k)->shape;
          auto layout = along_result(*i, k, own->second.shape.layout);
          if (!layout) continue;
          shape.layout = *layout;
          wish(i->operand(k), shape, false);
        }
      }
    }
  }

  // ---- one value after the other
  // --------------------------------------------------------------------

  void assign(Computation& c, Instruction* i) {
    if (i->is(Opcode::kParameter)) return;
    if (i->is(Opcode::kTuple)) return tuple(i);
    if (i->is(Opcode::kFusion)) return planned_fusion(c, i);
    if (i->is(Opcode::kWhile)) return loop(c, i);
    if (i->is(Opcode::kConditional)) return branches(c, i);
    if (i->is(Opcode::kGetTupleElement)) {
      i->shape = i->operand(0)->shape.elements[static_cast<size_t>(i->attrs.tuple_index)];
    } else if (forwards(*i) && !i->is(Opcode::kBitcast)) {
      i->shape = i->operand(0)->shape;
    } else if (has_trait(*i, op_trait::kUpdates)) {
      if (auto by = layouts_of_updates(*i)) {
        const size_t count = i->operand_count() / 2;
        for (size_t k = 0; k < count; ++k) {
          for (auto [operand, layout] : {std::pair{k, &by->target}, {count + 1 + k, &by->updates}})
            i->set_operand(operand,
                           matched(c, i->operand(operand), with_layout(i->operand(operand)->shape, *layout), i));
        }
        explain(*i, i->operand(0)->shape, "windows lie in a row");
      }
      for (size_t k = 0; k < i->shape.elements.size(); ++k) i->shape.elements[k] = i->operand(k)->shape;
      if (i->shape.is_array()) i->shape = i->operand(0)->shape;
    } else if (is_step(*i)) {
      StepLayouts wanted = step_layouts(*i);
      for (size_t k = 0; k < i->operand_count(); ++k)
        i->set_operand(k, matched(c, i->operand(k), wanted.operands[k], i));
      i->shape = wanted.result;
    } else if (auto by = by_features(*i)) {
      i->set_operand(0, matched(c, i->operand(0), with_layout(i->operand(0)->shape, by->lhs), i));
      i->set_operand(1, matched(c, i->operand(1), with_layout(i->operand(1)->shape, by->rhs), i));
      i->shape.layout = by->result;
      explain(*i, i->shape, "features are neighbours");
    } else if (crosses_borders(*i) && !i->operand(0)->shape.layout.tiled()) {
      // A transposed operand would be read element by element; copied, it is transposed in registers.
      i->set_operand(0, matched(c, i->operand(0), with_default_layouts(i->operand(0)->shape), i));
      i->shape = with_default_layouts(i->shape);
    } else if (i->shape.is_array()) {
      i->shape.layout = choose(*i);
      if (auto by = layout_by_windows(*i))
        i->set_operand(0, matched(c, i->operand(0), with_layout(i->operand(0)->shape, *by), i));
    } else {
      i->shape = with_default_layouts(i->shape);
      if (i->is(Opcode::kReduce) && reduces_across(*i, i->shape.elements[0].layout)) {
        for (Shape& e : i->shape.elements) e.layout = along_reduced(*i);
        explain(*i, i->shape, "along " + i->operand(0)->name);
      }
    }
  }

  static Shape with_layout(Shape shape, const Layout& layout) {
    shape.layout = layout;
    return shape;
  }

  std::optional<ConvolutionLayouts> by_features(const Instruction& i) const {
    if (!i.is(Opcode::kConvolution)) return std::nullopt;
    return layouts_by_features(i, options_.target.vector_bytes / 4);
  }

  static void tuple(Instruction* i) {
    std::vector<Shape> shapes;
    for (const Instruction* o : i->operands()) shapes.push_back(o->shape);
    i->shape = Shape::tuple(std::move(shapes));
  }

  /// One of ours that was printed: its kernel was planned for these layouts.
  void planned_fusion(Computation& c, Instruction* i) {
    const Computation& kernel = *i->to_apply();
    for (size_t k = 0; k < i->operand_count(); ++k) {
      i->set_operand(k, matched(c, i->operand(k), kernel.parameters()[k]->shape, i));
    }
    i->shape = kernel.root()->shape;
  }

  /// State keeps the layout it arrives in, but for what turns read parts of.
  void loop(Computation& c, Instruction* i) {
    Computation &condition = *i->while_condition(), &body = *i->while_body();
    Shape state = done_.contains(&body) ? body.parameters()[0]->shape : as_state(i->operand(0)->shape);
    for (size_t k = 0; k < state.elements.size() && !done_.contains(&body); ++k) {
      if (auto by = layout_by_turns(*i, k)) state.elements[k].layout = *by;
    }
    i->set_operand(0, matched(c, i->operand(0), state, i));
    i->shape = state;
    explain(*i, state, "as the state arrives");
    if (done_.contains(&body)) return;
    condition.parameters()[0]->shape = body.parameters()[0]->shape = state;
    computation(condition, nullptr);
    computation(body, &state);
  }

  /// So do arguments of branches; the first branch, or a reader, says what the results are like.
  void branches(Computation& c, Instruction* i) {
    auto own = wishes_.find(i);
    Shape result;
    bool known = own != wishes_.end() && own->second.fixed;
    if (known) result = as_state(own->second.shape);
    for (size_t b = 0; b < i->called.size(); ++b) {
      Computation& branch = *i->called[b];
      Instruction* parameter = branch.parameters().at(0);
      bool done = done_.contains(&branch);
      if (!done) parameter->shape = as_state(i->operand(b + 1)->shape);
      i->set_operand(b + 1, matched(c, i->operand(b + 1), parameter->shape, i));
      if (!done) computation(branch, known ? &result : nullptr);
      if (!known) result = as_state(branch.root()->shape);
      known = true;
      branch.set_root(matched(branch, branch.root(), result, nullptr));
    }
    i->shape = result;
    explain(*i, result, "as the first branch or a fixed reader has it");
  }

  // ---- the choice
  // ------------------------------------------------------------------------------------

  Layout choose(const Instruction& i) {
    if (auto by = layout_by_steps(i, options_.target.vector_bytes / 4)) {
      explain(i, with_layout(i.shape, *by), "lanes beside its steps");
      return *by;
    }
    auto own = wishes_.find(&i);
    const Wish* wanted = own == wishes_.end() ? nullptr : &own->second;
    if (wanted && wanted->fixed && layout_is_free(&i) && !scatters_windows(i, wanted->shape.layout) &&
        !reduces_across(i, wanted->shape.layout)) {
      explain(i, wanted->shape, "fixed by its reader");
      return wanted->shape.layout;
    }
    Layout usual = Layout::descending(i.shape.rank());
    if (i.info().op_class == OpClass::kContracts) return usual;  // batch, rows, columns

    // What reading each operand means, operands of most bytes first.
    std::vector<std::pair<const Instruction*, Layout>> reads;
    for (size_t k = 0; k < i.operand_count(); ++k) {
      const Instruction* o = i.operand(k);
      if (!o->shape.is_array()) continue;
      if (auto layout = along_operand(i, k, o->shape.layout)) reads.emplace_back(o, *layout);
    }
    std::ranges::stable_sort(reads, std::greater<>(), [&](const auto& r) { return bytes_read(i, r.first); });

    std::vector<Choice> choices;
    auto add = [&](const Layout& layout, const std::string& rule) {
      if (std::ranges::find(choices, layout, &Choice::layout) != choices.end()) return;
      Choice& choice = choices.emplace_back(Choice{layout, rule});
      for (const auto& [o, along] : reads) {
        const double read =
            copies_by_windows(i, layout) ? std::min(bytes_read(i, o), bytes(o->shape)) : bytes_read(i, o);
        choice.cost += read * mismatch(i.shape.dims, along, layout);
      }
      if (wanted) {
        choice.cost += wanted->readers * bytes(i.shape) * mismatch(i.shape.dims, wanted->shape.layout, layout);
      }
    };
    for (const auto& [o, along] : reads) add(along, "along " + o->name);
    if (wanted) {
      Shape plain = as_state(wanted->shape);
      add(plain.layout, "along its reader");
    }
    add(usual, "the default");
    const Choice& best = *std::ranges::min_element(choices, {}, &Choice::cost);
    if (options_.explain && choices.size() > 1) {
      std::string others;
      for (const Choice& other : choices) {
        if (&other == &best) continue;
        others += fmt::format("; {} ({}) costs {:.0f}", to_string(other.layout), other.rule, other.cost);
      }
      options_.explain(fmt::format("layouts {}: {} {}: {}, costs {:.0f}{}", i.parent()->name, i.name,
                                   to_string(best.layout), best.rule, best.cost, others));
    }
    return best.layout;
  }

  void explain(const Instruction& i, const Shape& shape, std::string_view rule) const {
    hlojit::explain(options_, "layouts", *i.parent(), "{} {}: {}", i.name, shape.to_string(), rule);
  }

  // ---- copies
  // ----------------------------------------------------------------------------------------

  /// The value in the wanted layouts; `before` is where copies are added.
  Instruction* matched(Computation& c, Instruction* value, const Shape& wanted, Instruction* before) {
    if (value->shape == wanted) return value;
    if (wanted.is_array()) {
      for (Instruction* made : copies_[value]) {
        if (made->shape == wanted && made->parent() == &c) return made;
      }
      explain(*value, wanted, "a copy, it is " + to_string(value->shape.layout));
      Instruction* copy = c.add(Opcode::kCopy, wanted, {value}, value->name + ".relayout", before);
      copies_[value].push_back(copy);
      return copy;
    }
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

  Module& module_;
  const PipelineOptions& options_;
  std::unordered_map<const Instruction*, Wish> wishes_;
  std::unordered_set<const Computation*> done_;
  std::unordered_map<const Instruction*, std::vector<Instruction*>> copies_;  // of values in other layouts
};

}  // namespace

bool layouts(Module& module, const PipelineOptions& options) {
  bitcasts(module, options);  // where this pass runs alone
  Assignment(module, options).run();
  return true;
}

}  // namespace hlojit
