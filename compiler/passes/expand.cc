// See expand.h. One walk over all computations, callees first, so that a map's own computation is
// spelled out before it is pasted.
#include "compiler/passes/expand.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "compiler/analysis/dataflow.h"
#include "compiler/ir/annotation.h"
#include "compiler/ir/narrow.h"
#include "compiler/ir/top_k_call.h"
#include "compiler/passes/expansions.h"
#include "compiler/passes/inline_calls.h"
#include "compiler/passes/replace_ops.h"

namespace hlojit {
namespace {

/// A constant a leaf, in tuples as the literal has them.
Instruction* expand_tuple_constant(Builder& b, const Literal& literal) {
  if (!literal.shape().is_tuple()) return b.constant(literal);
  std::vector<Instruction*> elements;
  for (const Literal& e : literal.elements()) elements.push_back(expand_tuple_constant(b, e));
  return b.tuple(elements);
}

Instruction* expand_top_k_call(Builder& b, const Instruction& call) {
  std::optional<Attributes> attrs = top_k_call(call);
  if (!attrs) return nullptr;
  Instruction* top = b.computation()->add(Opcode::kTopK, call.shape, {call.operand(0)}, call.name);
  top->attrs = std::move(*attrs);
  return top;
}

Instruction* expand_call(Builder& b, const Instruction& call) {
  if (is_remark(call)) return b.tuple({});
  if (is_annotation(call)) return call.operand(0);
  Instruction* top = expand_top_k_call(b, call);
  return top ? top : expand_factors(b, call);
}

/// Starts given as one vector become scalars, which is what passes know.
Instruction* expand_start_vector(Builder& b, const Instruction& op) {
  bool update = op.is(Opcode::kDynamicUpdateSlice);
  size_t first = update ? 2 : 1;
  if (op.operand_count() <= first || op.operand(first)->shape.rank() != 1) return nullptr;
  std::vector<Instruction*> starts;
  for (int64_t d = 0; d < op.shape.rank(); ++d) {
    starts.push_back(b.reshape(b.slice(op.operand(first), {d}, {d + 1}), Ints{}));
  }
  if (update) return b.dynamic_update_slice(op.operand(0), op.operand(1), starts);
  return b.dynamic_slice(op.operand(0), starts, op.attrs.dynamic_slice_sizes);
}

/// Arithmetic on whole arrays or, where the computation branches or loops, one element after the other: a scan
/// that carries nothing.
Instruction* expand_map(Builder& b, const Instruction& op) {
  if (Instruction* made = apply_elementwise(b, *op.to_apply(), op.operands(), op.shape.dims)) return made;
  Builder::Values flat;
  for (Instruction* o : op.operands()) flat.push_back(b.reshape(o, {op.shape.element_count()}));
  Attributes along;
  along.dimensions = {0};
  along.has_dimensions = true;
  Instruction* scan = b.op(Opcode::kScan, flat, std::move(along), {op.to_apply()});
  Instruction* made = b.reshape(expand_scan(b, *scan), op.shape.dims);
  b.computation()->remove(scan);
  return made;
}

Instruction* expand_windows(Builder& b, const Instruction& op) {
  for (auto* expansion : {expand_windows_in_turn, expand_prefix_window, expand_few_windows}) {
    if (Instruction* made = expansion(b, op)) return made;
  }
  return nullptr;
}

/// Operands of the type that the reducer computes in; long running windows in blocks, a few as reductions.
Instruction* expand_reduce_window(Builder& b, const Instruction& op) {
  Builder::Values operands(op.operands().begin(), op.operands().end());
  const auto& parameters = op.to_apply()->parameters();
  for (size_t k = 0; k < operands.size(); ++k) {
    const DType type = parameters.at(k)->shape.type;
    if (operands[k]->shape.type != type) operands[k] = b.convert(operands[k], type);
  }
  Instruction* typed = nullptr;
  if (!std::ranges::equal(operands, op.operands()))
    typed = b.op(Opcode::kReduceWindow, op.shape, operands, op.attrs, op.called);
  return typed ? expanded(b, typed, expand_windows) : expand_windows(b, op);
}

Instruction* expand_updates(Builder& b, const Instruction& op) {
  Instruction* in_turn = expand_scatter_in_turn(b, op);
  return in_turn ? in_turn : expand_flat_scatter(b, op);
}

Instruction* expand_scatter(Builder& b, const Instruction& op, bool whole_windows) {
  Instruction* whole = whole_windows ? expand_whole_windows(b, op) : nullptr;
  return whole ? expanded(b, whole, expand_updates) : expand_updates(b, op);
}

/// Integers times floats, signed times unsigned: both as what they accumulate to. Kernels multiply operands of one
/// type, or floats of two.
Instruction* expand_mixed_operands(Builder& b, const Instruction& op) {
  const DType x = op.operand(0)->shape.type, y = op.operand(1)->shape.type;
  if (x == y || (is_float(x) && is_float(y))) return nullptr;
  const DType type = working_type(op.shape.type);
  auto converted = [&](Instruction* o) { return o->shape.type == type ? o : b.convert(o, type); };
  // Its result need not be of the type that its operands suggest.
  Instruction* same = b.computation()->add(op.opcode, op.shape, {converted(op.operand(0)), converted(op.operand(1))});
  same->attrs = op.attrs;
  return same;
}

Instruction* expand_convolution(Builder& b, const Instruction& op, const TargetInfo& target) {
  if (Instruction* same = expand_mixed_operands(b, op)) return same;
  Instruction* few = expand_few_features(b, op, target);
  return few ? few : expand_dilated(b, op, target);
}

Instruction* expand_sort(Builder& b, const Instruction& op) {
  if (Instruction* in_turn = expand_sort_in_turn(b, op)) return in_turn;
  Instruction* selected = expand_leading_sort(b, op);
  return selected ? selected : expand_short_sort(b, op);
}

Instruction* expand_top_k(Builder& b, const Instruction& op) {
  Instruction* wide = expand_narrow_step(b, op);
  return wide ? wide : expand_short_top_k(b, op);
}

Instruction* expand_reductions(Builder& b, const Instruction& op) {
  Instruction* few = expand_short_reduce(b, op);
  return few ? few : expand_reduce(b, op);
}

bool reduces_to_tuple_of_one(const Instruction& op) {
  const bool reduces = op.is(Opcode::kReduce) || op.is(Opcode::kReduceWindow) || op.is(Opcode::kScatter) ||
                       op.is(Opcode::kSelectAndScatter);
  if (!reduces) return false;
  const Shape& result = op.called.back()->root()->shape;
  return result.is_tuple() && result.elements.size() == 1;
}

/// By a computation that returns its only result as it is.
Instruction* expand_tuple_of_one(Builder& b, const Instruction& op) {
  Computation* plain = b.computation()->parent()->clone_computation(*op.called.back(), op.called.back()->name);
  Builder in_plain(plain);
  Instruction* root = plain->root();
  plain->set_root(root->is(Opcode::kTuple) ? root->operand(0) : in_plain.get_tuple_element(root, 0));
  if (root->is(Opcode::kTuple)) plain->remove(root);  // what is one op is known by being alone
  std::vector<Computation*> called = op.called;
  called.back() = plain;
  const Shape& shape = op.shape.is_tuple() ? op.shape.elements[0] : op.shape;
  return b.op(op.opcode, shape, Builder::Values(op.operands().begin(), op.operands().end()), op.attrs, called);
}

Instruction* expansion(Builder& b, const Instruction& op, const PipelineOptions& options) {
  if (reduces_to_tuple_of_one(op)) {
    Instruction* plain = expand_tuple_of_one(b, op);
    Instruction* made = expansion(b, *plain, options);
    if (made) b.computation()->remove(plain);
    if (!made) made = plain;
    return op.shape.is_tuple() ? b.tuple({made}) : made;
  }
  switch (op.opcode) {
    case Opcode::kDynamicSlice:
    case Opcode::kDynamicUpdateSlice: return expand_start_vector(b, op);
    case Opcode::kConstant: return op.shape.is_tuple() ? expand_tuple_constant(b, *op.literal) : nullptr;
    case Opcode::kCustomCall: return expand_call(b, op);
    case Opcode::kConvolution: return expand_convolution(b, op, options.target);
    case Opcode::kDot: return expand_dot(b, op, options.target);
    case Opcode::kMap: return expand_map(b, op);
    case Opcode::kRng: return expand_rng(b, op);
    case Opcode::kRngBitGenerator: return expand_random_bits(b, op);
    case Opcode::kRaggedDot: return expand_ragged_dot(b, op, options.target);
    case Opcode::kReduce: return expand_reductions(b, op);
    case Opcode::kReduceWindow: return expand_reduce_window(b, op);
    case Opcode::kScaledDot: return expand_scaled_dot(b, op, options.target);
    case Opcode::kScan: return expand_scan(b, op);
    case Opcode::kScatter: return expand_scatter(b, op, options.scatter_oob_window);
    case Opcode::kSort: return expand_sort(b, op);
    case Opcode::kSelectAndScatter: return expand_select_and_scatter(b, op);
    case Opcode::kTopK: return expand_top_k(b, op);
    case Opcode::kCholesky:
    case Opcode::kTriangularSolve: return expand_narrow_step(b, op);
    default: return nullptr;
  }
}

bool is_batch_norm(const Instruction& i) {
  return i.is(Opcode::kBatchNormGrad) || i.is(Opcode::kBatchNormInference) || i.is(Opcode::kBatchNormTraining);
}

// `applied`: to elements, not run as control flow. Batch norms come first: their sums are expanded as others are, which
// depends on who uses them.
bool expand_in(Computation& c, bool applied, const PipelineOptions& options) {
  Builder b(&c);
  auto replace = [&](const std::function<Instruction*(const Instruction&)>& make) {
    return replace_ops(c, "expand", options,
                       [&](const Instruction& i) { return i.shape.has_dynamic_dims() ? nullptr : make(i); });
  };
  const bool norms =
      replace([&](const Instruction& i) { return is_batch_norm(i) ? expand_batch_norm(b, i) : nullptr; });
  const bool others = replace([&](const Instruction& i) {
    return applied && i.is(Opcode::kConditional) ? expand_branches(b, i) : expansion(b, i, options);
  });
  return norms || others;
}

}  // namespace

Instruction* expanded(Builder& b, Instruction* made, const Expansion& expansion) {
  Instruction* next = expansion(b, *made);
  if (next) b.computation()->remove(made);
  return next ? next : made;
}

Instruction* expand_dot(Builder& b, const Instruction& op, const TargetInfo& target) {
  Instruction* same = expand_mixed_operands(b, op);
  Instruction* blocks = expand_complex_dot(b, same ? *same : op, target);
  if (!blocks) blocks = expand_short_dot(b, same ? *same : op, target);
  if (!blocks) blocks = expand_batch_dot(b, same ? *same : op, target);
  if (same && blocks) b.computation()->remove(same);
  return blocks ? blocks : same;
}

Instruction* apply_elementwise(Builder& b, const Computation& computation, std::span<Instruction* const> arguments,
                               const Ints& dims) {
  auto is_element = [](const Instruction& i) {
    return i.is(Opcode::kGetTupleElement) && i.operand(0)->is(Opcode::kTuple);
  };
  if (computation.root()->is(Opcode::kTuple)) return nullptr;
  for (const auto& i : computation.instructions()) {
    if (i->is(Opcode::kTuple)) continue;
    bool plain = i->is(Opcode::kParameter) || i->is(Opcode::kConstant) || is_elementwise(i->opcode) || is_element(*i);
    if (!plain || !i->shape.is_scalar()) return nullptr;
  }
  Computation& c = *b.computation();
  std::unordered_map<const Instruction*, Instruction*> copies;
  for (const auto& i : computation.instructions()) {
    if (i->is(Opcode::kTuple)) continue;
    Instruction*& copy = copies[i.get()];
    if (i->is(Opcode::kParameter)) {
      copy = arguments[i->attrs.parameter_number];
      continue;
    }
    if (is_element(*i)) {
      copy = copies.at(i->operand(0)->operand(static_cast<size_t>(i->attrs.tuple_index)));
      continue;
    }
    std::vector<Instruction*> operands;
    for (Instruction* o : i->operands()) operands.push_back(copies.at(o));
    if (i->is(Opcode::kMap)) {
      copy = apply_elementwise(b, *i->to_apply(), operands, dims);
      if (!copy) return nullptr;
      continue;
    }
    copy = c.clone_instruction(*i, std::move(operands));
    if (dims.empty()) continue;
    if (i->is(Opcode::kConstant)) {
      copy = b.broadcast(copy, dims);
    } else {
      copy->shape = Shape::array(i->shape.type, dims);
    }
  }
  return copies.at(computation.root());
}

bool expand(Module& module, const PipelineOptions& options) {
  std::vector<Computation*> computations;          // more are made on the way
  std::unordered_set<const Computation*> planned;  // fusions that were kept: each is a kernel as it is
  for (const auto& c : module.computations()) {
    computations.push_back(c.get());
    for (const auto& i : c->instructions()) {
      if (i->is(Opcode::kFusion)) planned.insert(i->to_apply());
    }
  }
  const std::vector<Computation*> sequential = sequential_computations(module);
  const std::unordered_set<const Computation*> run(sequential.begin(), sequential.end());
  bool changed = false;
  for (Computation* c : computations) changed |= !planned.contains(c) && expand_in(*c, !run.contains(c), options);
  if (changed) {
    module.remove_unreachable();
    unshare(module);  // a body that loops may have been pasted more than once
  }
  return changed;
}

}  // namespace hlojit
