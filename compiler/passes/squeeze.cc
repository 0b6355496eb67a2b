// See squeeze.h. One walk in order. For each value that has dims of size 1 and can do without, the
// narrow version is made from the narrow versions of its operands; readers that cannot use it read a
// reshape back. What nobody reads any more is left to dce.
#include "compiler/passes/squeeze.h"

#include <algorithm>
#include <unordered_map>

#include "compiler/analysis/dataflow.h"
#include "compiler/passes/explain.h"

namespace hlojit {
namespace {

bool has_unit_dims(const Shape& shape) {
  return shape.is_array() && !shape.has_dynamic_dims() && std::ranges::count(shape.dims, 1) > 0;
}

class Squeezer {
 public:
  Squeezer(Computation& c, const PipelineOptions& options) : c_(c), options_(options) {}

  bool run() {
    for (Instruction* i : c_.snapshot()) visit(i);
    if (changed_) c_.sort_topologically();
    return changed_;
  }

 private:
  void visit(Instruction* i) {
    if (!i->control_predecessors.empty()) return;
    if (i->is(Opcode::kReshape) || i->is(Opcode::kBroadcast)) {
      read_narrow(i);
      return;
    }
    if (i->is(Opcode::kReduce)) {
      if (i->operand_count() == 2) reduce_narrow(i);
      return;
    }
    if (i->is(Opcode::kDot)) return dot_narrow(i);
    bool squeezes = is_elementwise(i->opcode) && !i->is(Opcode::kBitcastConvert) && !i->is(Opcode::kMap) &&
                    has_unit_dims(i->shape) && has_plain_layout(i->shape) &&
                    std::ranges::all_of(i->operands(), [](const Instruction* o) {
                      return o->shape.is_array() && has_plain_layout(o->shape);
                    });
    if (!squeezes) return;
    std::vector<Instruction*> operands;
    for (Instruction* o : i->operands()) operands.push_back(narrow(o));
    Instruction* made = c_.clone_instruction(*i, std::move(operands));
    made->shape = without_unit_dims(i->shape);
    replace(i, made);
  }

  /// What is narrow already starts from the narrow version of its operand. (What is wide stays: narrow() sees through
  /// it once somebody asks. Made at each visit and read by nobody, narrow versions were met by every round of passes.)
  void read_narrow(Instruction* i) {
    Instruction* o = i->operand(0);
    if (!moves_plainly(*i) || (!has_unit_dims(o->shape) && !has_unit_dims(i->shape))) return;
    if (i->is(Opcode::kBroadcast)) {
      if (renames(*i)) {
        replace(i, narrow(o));
      } else if (!has_unit_dims(i->shape)) {
        replace(i, narrow_move(*i));
      }
    } else if (renames(*i) && !has_unit_dims(i->shape)) {
      Instruction* known = narrow_.try_emplace(o, i).first->second;
      if (known != i) replace(i, known);
    }
  }

  /// A reshape or a broadcast between plain layouts.
  static bool moves_plainly(const Instruction& i) {
    return (i.is(Opcode::kReshape) || i.is(Opcode::kBroadcast)) && has_plain_layout(i.shape) &&
           has_plain_layout(i.operand(0)->shape) && !i.shape.has_dynamic_dims();
  }

  /// Only adds or takes dims of size 1.
  static bool renames(const Instruction& i) {
    return same_but_for_unit_dims(i.shape, i.operand(0)->shape) &&
           (i.is(Opcode::kReshape) || std::ranges::is_sorted(narrow_dims(i)));
  }

  /// Of a reshape or a broadcast. A reshape may start from what is wide: chains of them can be of any length, where one
  /// broadcast after the other has more elements.
  Instruction* narrow_move(const Instruction& i) {
    Instruction* from = i.operand(0);
    if (i.is(Opcode::kBroadcast) || narrow_.contains(from)) from = narrow(from);
    Instruction* made = c_.add(i.opcode, without_unit_dims(i.shape), {from}, i.name);
    made->location = i.location;
    if (i.is(Opcode::kBroadcast)) {
      made->attrs.dimensions = narrow_dims(i);
      made->attrs.has_dimensions = true;
    }
    return made;
  }

  /// Reducing dims of size 1 is no reduction: what is left is one step of the reducer.
  void reduce_narrow(Instruction* i) {
    Instruction* o = i->operand(0);
    if (!has_unit_dims(o->shape) || !has_plain_layout(i->shape) || !has_plain_layout(o->shape)) return;
    Ints reduced;
    for (size_t d = 0, place = 0; d < o->shape.dims.size(); ++d) {
      if (o->shape.dims[d] == 1) continue;
      if (std::ranges::count(i->attrs.dimensions, d) > 0) reduced.push_back(static_cast<int64_t>(place));
      ++place;
    }
    if (reduced.empty()) {
      if (takes_one_step(*i->to_apply())) replace(i, one_step(i, narrow(o)));
      return;
    }
    Instruction* from = narrow(o);
    Instruction* made = c_.clone_instruction(*i, {from, i->operand(1)});
    made->shape = without_unit_dims(i->shape);
    made->attrs.dimensions = std::move(reduced);
    replace(i, made);
  }

  /// A dot of which every dim of size 1 is a batch dim, or stands beside others of its kind.
  void dot_narrow(Instruction* i) {
    Instruction *lhs = i->operand(0), *rhs = i->operand(1);
    if (!has_unit_dims(lhs->shape) && !has_unit_dims(rhs->shape)) return;
    for (const Instruction* v : {i, lhs, rhs}) {
      if (!has_plain_layout(v->shape) || v->shape.has_dynamic_dims()) return;
    }
    DotDims d = i->attrs.dot;
    for (size_t side = 0; side < 2; ++side) {
      const Shape& shape = i->operand(side)->shape;
      if (!may_narrow(shape, d.batch(side), d.contracting(side))) return;
      d.batch(side) = narrow_places(shape, d.batch(side));
      d.contracting(side) = narrow_places(shape, d.contracting(side));
    }
    Instruction* made = c_.clone_instruction(*i, {narrow(lhs), narrow(rhs)});
    made->shape = without_unit_dims(i->shape);
    made->attrs.dot = std::move(d);
    replace(i, made);
  }

  static bool may_narrow(const Shape& shape, const Ints& batch, const Ints& contracting) {
    bool units[2] = {}, others[2] = {};  // of the contracted dims, of the free ones
    for (size_t k = 0; k < shape.dims.size(); ++k) {
      if (std::ranges::count(batch, k) > 0) continue;
      const size_t kind = std::ranges::count(contracting, k) > 0 ? 0 : 1;
      (shape.dims[k] == 1 ? units : others)[kind] = true;
    }
    return (!units[0] || others[0]) && (!units[1] || others[1]);
  }

  /// Where of these dims those that stay stand in the narrow shape.
  static Ints narrow_places(const Shape& shape, const Ints& dims) {
    Ints places;
    for (int64_t d : dims) {
      if (shape.dims[static_cast<size_t>(d)] == 1) continue;
      places.push_back(d - std::count(shape.dims.begin(), shape.dims.begin() + d, 1));
    }
    return places;
  }

  /// The reducer is no more than elementwise ops.
  static bool takes_one_step(const Computation& reducer) {
    return std::ranges::all_of(reducer.instructions(), [](const auto& r) {
      const bool plain = r->is(Opcode::kParameter) || r->is(Opcode::kConstant) || is_elementwise(r->opcode);
      return plain && !r->is(Opcode::kMap) && r->shape.is_scalar();
    });
  }

  /// reducer(init, value), element by element.
  Instruction* one_step(const Instruction* reduce, Instruction* value) {
    const Computation& reducer = *reduce->to_apply();
    auto spread = [&](Instruction* scalar) {
      Shape shape = value->shape;
      shape.type = scalar->shape.type;
      if (shape.rank() == 0) return scalar;
      Instruction* b = c_.add(Opcode::kBroadcast, shape, {scalar}, scalar->name);
      b->attrs.has_dimensions = true;
      return b;
    };
    std::unordered_map<const Instruction*, Instruction*> copies;
    for (const auto& r : reducer.instructions()) {
      Instruction*& copy = copies[r.get()];
      if (r->is(Opcode::kParameter)) {
        copy = r->attrs.parameter_number == 0 ? spread(reduce->operand(1)) : value;
      } else if (r->is(Opcode::kConstant)) {
        copy = spread(c_.clone_instruction(*r, {}));
      } else {
        std::vector<Instruction*> operands;
        for (Instruction* o : r->operands()) operands.push_back(copies.at(o));
        copy = c_.clone_instruction(*r, std::move(operands));
        Shape shape = value->shape;
        shape.type = r->shape.type;
        copy->shape = std::move(shape);
        copy->location = reduce->location;
      }
    }
    return copies.at(reducer.root());
  }

  /// Where the dims of a broadcast's narrow operand go in its narrow result.
  static Ints narrow_dims(const Instruction& broadcast) {
    Ints dims;
    for (size_t d = 0; d < broadcast.attrs.dimensions.size(); ++d) {
      if (broadcast.operand(0)->shape.dims[d] == 1) continue;
      int64_t to = broadcast.attrs.dimensions[d], place = 0;
      for (int64_t k = 0; k < to; ++k) place += broadcast.shape.dims[k] != 1;
      dims.push_back(place);
    }
    return dims;
  }

  /// The value without dims of size 1.
  Instruction* narrow(Instruction* value) {
    while (value->is(Opcode::kReshape) && moves_plainly(*value) && renames(*value) && !narrow_.contains(value))
      value = value->operand(0);
    if (!has_unit_dims(value->shape)) return value;
    if (auto known = narrow_.find(value); known != narrow_.end()) return known->second;
    Instruction* made = nullptr;
    if (moves_plainly(*value)) {
      made = narrow_move(*value);
    } else {
      made = c_.add(Opcode::kReshape, without_unit_dims(value->shape), {value}, value->name);
      made->location = value->location;
    }
    narrow_[value] = made;
    return made;
  }

  /// Readers of `old` read a reshape of `made`, its narrow version.
  void replace(Instruction* old, Instruction* made) {
    changed_ = true;
    explain(options_, "squeeze", c_, "{} {} as {}", old->name, old->shape.to_string(), made->shape.to_string());
    if (made->shape.dims == old->shape.dims && made->shape.layout == old->shape.layout) {
      old->replace_all_uses_with(made);
      return;
    }
    Instruction* back = c_.add(Opcode::kReshape, old->shape, {made}, old->name);
    back->location = old->location;
    old->replace_all_uses_with(back);
    narrow_[back] = made;
  }

  Computation& c_;
  const PipelineOptions& options_;
  bool changed_ = false;
  std::unordered_map<const Instruction*, Instruction*> narrow_;
};

}  // namespace

bool squeeze(Module& module, const PipelineOptions& options) {
  bool changed = false;
  for (Computation* c : sequential_computations(module)) changed |= Squeezer(*c, options).run();
  return changed;
}

}  // namespace hlojit
