// See dynamic.h. The walk: sequential computations from the entry down, instructions in order; what
// an op does to sizes is in dynamic_rules.h.
//
// A loop whose state has dynamic dimensions is given a tuple of its old state and of their sizes; a
// branch likewise, for its operand and for its result.
#include "compiler/passes/dynamic.h"

#include <algorithm>

#include "compiler/passes/dynamic_rules.h"
#include "compiler/passes/replace_ops.h"

namespace hlojit {
namespace {

using enum Opcode;

using Slots = std::vector<DynamicDim>;

// The dimensions that are declared dynamic or have a size in one of `known`.
Slots slots_of(const Shape& shape, const std::vector<LeafSizes>& known = {}) {
  Slots slots;
  std::vector<const Shape*> arrays = leaves(shape);
  for (size_t l = 0; l < arrays.size(); ++l) {
    for (size_t d = 0; d < arrays[l]->dims.size(); ++d) {
      bool declared = d < arrays[l]->dynamic.size() && arrays[l]->dynamic[d];
      bool sized = std::ranges::any_of(known, [&](const LeafSizes& of) { return !of[l].empty() && of[l][d]; });
      if (declared || sized) slots.push_back({l, d, arrays[l]->dims[d]});
    }
  }
  return slots;
}

Shape with_sizes(Shape shape, size_t count) {
  std::vector<Shape> elements = {std::move(shape)};
  elements.resize(count + 1, Shape::scalar(DType::kS32));
  return Shape::tuple(std::move(elements));
}

void drop_flags(Shape& shape) {
  shape.dynamic.clear();
  for (Shape& e : shape.elements) drop_flags(e);
}

class Walk {
 public:
  explicit Walk(Module& module) : module_(module) {}

  void run() {
    Computation& entry = *module_.entry();
    const Slots results = slots_of(entry.root()->shape);  // the root may be replaced by what is static
    take_parameters(entry);
    computation(entry);
    give_results(entry, results);
    entry.sort_topologically();
    for (const auto& c : module_.computations()) {
      for (const auto& i : c->instructions()) drop_flags(i->shape);
    }
    for (Shape& s : module_.config.entry_parameters) drop_flags(s);
    drop_flags(module_.config.entry_result);
  }

 private:
  // ---- the entry ----

  void take_parameters(Computation& entry) {
    Builder b(&entry);
    DynamicRules rules(b, known_);
    const std::vector<Instruction*> own = entry.parameters();
    for (Instruction* p : own) {
      LeafSizes sizes(leaf_count(p->shape));
      for (const DynamicDim& s : slots_of(p->shape)) {
        Instruction* size = b.parameter(Shape::scalar(DType::kS32));
        if (module_.config.has_entry_layout) module_.config.entry_parameters.push_back(size->shape);
        sizes[s.leaf].resize(leaves(p->shape)[s.leaf]->dims.size());
        sizes[s.leaf][s.dim] = rules.clamped(size, s.bound);
      }
      rules.set(p, std::move(sizes));
    }
  }

  void give_results(Computation& entry, const Slots& slots) {
    if (slots.empty()) return;
    Builder b(&entry);
    entry.set_root(bundle(b, entry.root(), slots));
    for (Alias& a : module_.config.input_output_alias) a.output_index.insert(a.output_index.begin(), 0);
    Shape& result = module_.config.entry_result;
    if (module_.config.has_entry_layout) result = with_sizes(std::move(result), slots.size());
  }

  // ---- bundles: a value and the sizes of its slots ----

  Instruction* bundle(Builder& b, Instruction* value, const Slots& slots) {
    DynamicRules rules(b, known_);
    LeafSizes sizes = rules.sizes(value);
    Builder::Values elements = {value};
    for (const DynamicDim& s : slots) {
      Instruction* size = sizes[s.leaf].empty() ? nullptr : sizes[s.leaf][s.dim];
      elements.push_back(size ? size : rules.s32(s.bound));
    }
    return b.tuple(std::move(elements));
  }

  // Makes `value` a bundle; its users read what it was.
  void open(Builder& b, Instruction* value, const Slots& slots) {
    DynamicRules rules(b, known_);
    value->shape = with_sizes(std::move(value->shape), slots.size());
    Instruction* inner = b.get_tuple_element(value, 0);
    value->replace_all_uses_with(inner);
    LeafSizes sizes(leaf_count(inner->shape));
    std::vector<const Shape*> arrays = leaves(inner->shape);
    for (size_t k = 0; k < slots.size(); ++k) {
      const DynamicDim& s = slots[k];
      sizes[s.leaf].resize(arrays[s.leaf]->dims.size());
      sizes[s.leaf][s.dim] = b.get_tuple_element(value, static_cast<int64_t>(k) + 1);
    }
    rules.set(inner, std::move(sizes));
  }

  // ---- control flow ----

  void inside(Computation& c, const Slots& slots) {
    if (!slots.empty()) {
      Builder b(&c);
      open(b, c.parameters().at(0), slots);
      c.sort_topologically();
    }
    computation(c);
  }

  void while_loop(Builder& b, Instruction* loop) {
    DynamicRules rules(b, known_);
    Slots slots = slots_of(loop->shape, {rules.sizes(loop->operand(0))});
    inside(*loop->while_condition(), slots);
    inside(*loop->while_body(), slots);
    if (slots.empty()) return;
    Computation& body = *loop->while_body();
    Builder in_body(&body);
    body.set_root(bundle(in_body, body.root(), slots));
    body.sort_topologically();
    loop->set_operand(0, bundle(b, loop->operand(0), slots));
    open(b, loop, slots);
  }

  void conditional(Builder& b, Instruction* i) {
    DynamicRules rules(b, known_);
    std::vector<LeafSizes> results;
    for (size_t k = 0; k < i->called.size(); ++k) {
      Instruction* argument = i->operand(k + 1);
      Slots slots = slots_of(argument->shape, {rules.sizes(argument)});
      inside(*i->called[k], slots);
      if (!slots.empty()) i->set_operand(k + 1, bundle(b, argument, slots));
      results.push_back(rules.sizes(i->called[k]->root()));
    }
    Slots slots = slots_of(i->shape, results);
    if (slots.empty()) return;
    for (Computation* c : i->called) {
      Builder branch(c);
      c->set_root(bundle(branch, c->root(), slots));
      c->sort_topologically();
    }
    open(b, i, slots);
  }

  // ---- instructions ----

  void computation(Computation& c) {
    Builder b(&c);
    DynamicRules rules(b, known_);
    std::vector<Instruction*> dead;
    for (Instruction* i : c.snapshot()) {
      const size_t before = c.instructions().size();
      if (i->is(kWhile)) {
        while_loop(b, i);
      } else if (i->is(kConditional)) {
        conditional(b, i);
      } else if (!i->is(kParameter)) {
        Instruction* made = rules.apply(i);
        if (made != i) {
          hand_on_waits(*i);
          i->replace_all_uses_with(made);
          dead.push_back(i);
        }
      }
      for (size_t k = before; k < c.instructions().size(); ++k) c.instructions()[k]->location = i->location;
    }
    if (!dead.empty()) c.remove_all(dead);
    c.sort_topologically();
  }

  Module& module_;
  std::unordered_map<const Instruction*, LeafSizes> known_;
};

bool has_dynamic(const Shape& shape) {
  return std::ranges::any_of(leaves(shape), [](const Shape* s) { return s->has_dynamic_dims(); });
}

}  // namespace

std::vector<DynamicDim> dynamic_dims(const Shape& shape) { return slots_of(shape); }

bool has_dynamic_sizes(const Module& module) {
  for (const auto& c : module.computations()) {
    for (const auto& i : c->instructions()) {
      bool of_sizes = i->is(kGetDimensionSize) || i->is(kSetDimensionSize) || i->is(kDynamicReshape) ||
                      is_pad_to_static(*i) || is_slice_to_dynamic(*i);
      if (of_sizes || has_dynamic(i->shape)) return true;
    }
  }
  return false;
}

bool dynamic(Module& module, const PipelineOptions&) {
  if (!has_dynamic_sizes(module)) return false;
  Walk(module).run();
  return true;
}

}  // namespace hlojit
