// See dynamic_rules.h. Ops that leave elements where they are only hand sizes on; here stand those
// that combine elements (padding becomes their identity) and what they share. What moves elements
// is in dynamic_moves.cc, what works on whole lines and matrices in dynamic_library.cc.
#include "compiler/passes/dynamic_rules.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include "compiler/ir/annotation.h"
#include "compiler/ir/combining.h"
#include "compiler/verify/rules.h"
#include "layout/lists.h"

namespace hlojit {
namespace {

using enum Opcode;

Ints all_dims(const Instruction* x) {
  Ints all(x->shape.rank());
  std::iota(all.begin(), all.end(), 0);
  return all;
}

}  // namespace

bool is_pad_to_static(const Instruction& i) {
  if (!i.is(kCustomCall) || i.attrs.custom_call_target != "PadToStatic" || i.operand_count() != 1) return false;
  const Shape& x = i.operand(0)->shape;
  if (!x.is_array() || !i.shape.is_tuple() || std::ssize(i.shape.elements) != x.rank() + 1) return false;
  const Shape& padded = i.shape.elements[0];
  return padded.is_array() && padded.type == x.type && padded.dims == x.dims &&
         std::all_of(i.shape.elements.begin() + 1, i.shape.elements.end(),
                     [](const Shape& s) { return s.is_scalar() && s.type == DType::kS32; });
}

bool is_slice_to_dynamic(const Instruction& i) {
  if (!i.is(kCustomCall) || i.attrs.custom_call_target != "SliceToDynamic" || !i.shape.is_array()) return false;
  if (i.operand_count() != i.shape.dims.size() + 1) return false;
  const Shape& x = i.operand(0)->shape;
  return x.is_array() && x.type == i.shape.type && x.dims == i.shape.dims &&
         std::ranges::all_of(i.operands().subspan(1),
                             [](const Instruction* n) { return n->shape.is_scalar() && n->shape.type == DType::kS32; });
}

// ---- sizes ----------------------------------------------------------------------------------

LeafSizes DynamicRules::sizes(const Instruction* value) const {
  auto at = known_.find(value);
  return at == known_.end() ? LeafSizes(leaf_count(value->shape)) : at->second;
}

DimSizes DynamicRules::dims(const Instruction* array) const {
  DimSizes found = sizes(array).at(0);
  found.resize(array->shape.dims.size());
  return found;
}

void DynamicRules::set(const Instruction* value, LeafSizes sizes) {
  for (DimSizes& d : sizes) {
    if (std::ranges::all_of(d, [](Instruction* s) { return s == nullptr; })) d.clear();
  }
  if (std::ranges::all_of(sizes, &DimSizes::empty)) return;
  known_[value] = std::move(sizes);
}

void DynamicRules::set_dims(const Instruction* value, DimSizes sizes) {
  // Results of several arrays of one kind (variadic reduce, sort) share their sizes.
  set(value, LeafSizes(leaf_count(value->shape), sizes));
}

// One for each size and bound, so that what has the same size is known to.
Instruction* DynamicRules::clamped(Instruction* size, int64_t bound) {
  Instruction*& made = clamped_[{size, bound}];
  if (!made) made = b_.op(kClamp, {s32(0), size, s32(bound)});
  return made;
}

Instruction* DynamicRules::runtime_size(const Instruction* x, int64_t d) {
  Instruction* size = dims(x)[d];
  return size ? size : s32(x->shape.dims[d]);
}

// A chain of ops on the same few sizes asks once.
template <class Make>
Instruction* DynamicRules::met(Meeting& known, Instruction* x, Instruction* y, Make make) {
  if (!x || !y || x == y) return x ? x : y;
  std::set<const Instruction*> of;
  for (const Instruction* size : {x, y}) {
    auto at = known.sizes.find(size);
    if (at == known.sizes.end())
      of.insert(size);
    else
      of.insert(at->second.begin(), at->second.end());
  }
  auto [at, is_new] = known.of.try_emplace(of);
  if (is_new) at->second = make();
  known.sizes[at->second] = std::move(of);
  return at->second;
}

// The lesser of two sizes that should be one, as in XLA: what is behind either's end is nothing.
Instruction* DynamicRules::least(Instruction* x, Instruction* y) {
  return met(least_, x, y, [&] { return b_.binary(kMinimum, x, y); });
}

// The same where one element stands for as many as the other has.
Instruction* DynamicRules::joint(Instruction* x, Instruction* y) {
  return met(joint_, x, y, [&] {
    Instruction* less = b_.binary(kMinimum, x, y);
    return b_.select(b_.compare(Direction::kEq, less, s32(1)), b_.binary(kMaximum, x, y), less);
  });
}

// Of an elementwise op's operands whose sizes differ, those of one element give it to all (XLA's implicit broadcast).
void DynamicRules::spread_ones(Instruction* i) {
  for (int64_t d = 0; d < i->shape.rank(); ++d) {
    Instruction* all = nullptr;
    for (const Instruction* o : i->operands()) {
      if (o->shape.rank() == i->shape.rank()) all = joint(all, dims(o)[d]);
    }
    for (size_t k = 0; k < i->operand_count(); ++k) {
      Instruction* x = i->operand(k);
      if (x->shape.rank() != i->shape.rank() || i->shape.dims[d] < 2) continue;
      Instruction* size = dims(x)[d];
      if (!size || size == all) continue;
      Ints first = x->shape.dims, others;
      first[d] = 1;
      for (int64_t e = 0; e < x->shape.rank(); ++e) {
        if (e != d) others.push_back(e);
      }
      Instruction* one = b_.slice(x, Ints(first.size(), 0), first);
      first.erase(first.begin() + d);
      Instruction* spread = b_.broadcast_in_dim(b_.reshape(one, first), x->shape.dims, others);
      Instruction* is_one = b_.broadcast(b_.compare(Direction::kEq, size, s32(1)), x->shape.dims);
      Instruction* made = b_.select(is_one, spread, x);
      made->shape.layout = x->shape.layout;
      set(made, sizes(x));
      i->set_operand(k, made);
    }
  }
}

// ---- masks ----------------------------------------------------------------------------------

// Which elements lie within the sizes of the dimensions `among`; null if all do.
Instruction* DynamicRules::inside(const Shape& shape, const DimSizes& sizes, const Ints& among) {
  Instruction* all = nullptr;
  for (int64_t d : among) {
    if (!sizes[d]) continue;
    Instruction* at = b_.iota(Shape::array(DType::kS32, shape.dims), d);
    Instruction* valid = b_.compare(Direction::kLt, at, b_.broadcast(sizes[d], shape.dims));
    all = all ? b_.binary(kAnd, all, valid) : valid;
  }
  return all;
}

Instruction* DynamicRules::masked(Instruction* x, const DimSizes& sizes, const Ints& among, Instruction* fill) {
  Instruction* valid = inside(x->shape, sizes, among);
  if (!valid) return x;
  Instruction* made = b_.select(valid, x, b_.broadcast(fill, x->shape.dims));
  made->shape.layout = x->shape.layout;
  set(made, this->sizes(x));
  return made;
}

// What changes nothing in f(accumulator, value): known for one op on the parameters; else the
// initial value, which HLO asks to be the identity.
Instruction* DynamicRules::identity(const Computation& f, Instruction* init) {
  std::optional<Opcode> op = combining_op(f);
  if (!op || f.root()->shape.type != init->shape.type) return init;
  std::optional<Literal> neutral = neutral_number(*op, init->shape.type);
  return neutral ? b_.constant(std::move(*neutral)) : init;
}

// ---- ops that combine elements --------------------------------------------------------------

void DynamicRules::reduce(Instruction* i) {
  const size_t n = i->operand_count() / 2;
  DimSizes kept;
  const Instruction* first = nullptr;
  for (size_t k = 0; k < n; ++k) {
    Instruction* x = i->operand(k);
    if (!is_dynamic(x)) continue;
    if (!first) first = x;
    Instruction* init = i->operand(n + k);
    Instruction* fill = n == 1 ? identity(*i->to_apply(), init) : init;
    i->set_operand(k, masked(x, dims(first), i->attrs.dimensions, fill));
  }
  for (int64_t d = 0; d < first->shape.rank(); ++d) {
    if (!contains(i->attrs.dimensions, d)) kept.push_back(dims(first)[d]);
  }
  set_dims(i, std::move(kept));
}

// Padding is never selected, and what is selected for windows behind the end is not added.
void DynamicRules::select_and_scatter(Instruction* i) {
  Instruction *x = i->operand(0), *source = i->operand(1);
  const Instruction* select = i->called[0]->root();
  bool compares = select->is(kCompare) && select->operand(0)->is(kParameter) && select->operand(1)->is(kParameter) &&
                  select->operand(0) != select->operand(1);
  if (!compares || select->attrs.direction == Direction::kEq || select->attrs.direction == Direction::kNe) {
    throw Error(ErrorKind::kUnsupported, i->location,
                "select-and-scatter of dynamic size by such a selection is not compiled yet");
  }
  bool larger = select->attrs.direction == Direction::kGe || select->attrs.direction == Direction::kGt;
  if (select->operand(0)->attrs.parameter_number != 0) larger = !larger;
  DimSizes sizes = dims(x), windows = dims(source);
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] && !windows[d]) windows[d] = windowed(sizes[d], i->attrs.window[d]);
  }
  i->set_operand(0, masked(x, sizes, all_dims(x), b_.constant(extreme_number(x->shape.type, !larger))));
  Instruction* none = identity(*i->called[1], i->operand(2));
  i->set_operand(1, masked(source, windows, all_dims(source), none));
  set_dims(i, std::move(sizes));
}

// Size of what a window leaves of a run-time size.
Instruction* DynamicRules::windowed(Instruction* size, const WindowDim& w) {
  Instruction* n = size;
  if (w.lhs_dilate != 1) {
    n = b_.binary(kAdd, b_.binary(kMultiply, b_.binary(kSubtract, n, s32(1)), s32(w.lhs_dilate)), s32(1));
    n = b_.binary(kMaximum, n, s32(0));
  }
  const int64_t window = (w.size - 1) * w.rhs_dilate + 1;
  Instruction* room = b_.binary(kAdd, n, s32(w.pad_low + w.pad_high - window));
  Instruction* count = b_.binary(kAdd, b_.binary(kDivide, room, s32(w.stride)), s32(1));
  return b_.select(b_.compare(Direction::kLt, room, s32(0)), s32(0), count);
}

void DynamicRules::reduce_window(Instruction* i) {
  const size_t n = i->operand_count() / 2;
  const Instruction* first = *std::ranges::find_if(i->operands(), [&](auto* o) { return is_dynamic(o); });
  DimSizes sizes = dims(first);
  for (size_t k = 0; k < n; ++k) {
    Instruction* init = i->operand(n + k);
    Instruction* fill = n == 1 ? identity(*i->to_apply(), init) : init;
    i->set_operand(k, masked(i->operand(k), sizes, all_dims(first), fill));
  }
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d]) sizes[d] = windowed(sizes[d], i->attrs.window[d]);
  }
  set_dims(i, std::move(sizes));
}

// Both sides are masked: zero times what lies behind the other's end could be NaN.
void DynamicRules::dot(Instruction* i) {
  const DotDims& d = i->attrs.dot;
  Instruction *x = i->operand(0), *y = i->operand(1);
  DimSizes left = dims(x), right = dims(y);
  for (size_t k = 0; k < d.lhs_contracting.size(); ++k) {
    Instruction *&l = left[d.lhs_contracting[k]], *&r = right[d.rhs_contracting[k]];
    if (l || r) l = r = least(l, r);
  }
  i->set_operand(0, masked(x, left, d.lhs_contracting, zero(x->shape.type)));
  i->set_operand(1, masked(y, right, d.rhs_contracting, zero(y->shape.type)));
  DimSizes sizes;
  for (size_t k = 0; k < d.lhs_batch.size(); ++k) {
    sizes.push_back(least(left[d.lhs_batch[k]], right[d.rhs_batch[k]]));
  }
  auto append_free = [&](const DimSizes& of, const Ints& batch, const Ints& contracting) {
    for (int64_t k = 0; k < std::ssize(of); ++k) {
      if (!contains(batch, k) && !contains(contracting, k)) sizes.push_back(of[k]);
    }
  };
  append_free(left, d.lhs_batch, d.lhs_contracting);
  append_free(right, d.rhs_batch, d.rhs_contracting);
  set_dims(i, std::move(sizes));
}

// Batch, features and space of the image may be dynamic, and the output features of the kernel.
void DynamicRules::convolution(Instruction* i) {
  const ConvDims& c = i->attrs.conv;
  Instruction *x = i->operand(0), *kernel = i->operand(1);
  DimSizes in = dims(x), k = dims(kernel), out(i->shape.dims.size());
  bool kernel_space = std::ranges::any_of(c.rhs_spatial, [&](int64_t d) { return k[d] != nullptr; });
  bool cuts_features = i->attrs.feature_group_count != 1 && (in[c.lhs_feature] || is_dynamic(kernel));
  bool cuts_batch = i->attrs.batch_group_count != 1 && (in[c.lhs_batch] || is_dynamic(kernel));
  if (kernel_space || cuts_features || cuts_batch) {
    throw Error(ErrorKind::kUnsupported, i->location,
                "convolution with a kernel or groups of dynamic size is not compiled yet");
  }
  Instruction*& features = in[c.lhs_feature];
  if (Instruction* f = least(features, k[c.rhs_input_feature])) features = k[c.rhs_input_feature] = f;
  Ints among = c.lhs_spatial;
  among.push_back(c.lhs_feature);
  i->set_operand(0, masked(x, in, among, zero(x->shape.type)));
  i->set_operand(1, masked(kernel, k, {c.rhs_input_feature}, zero(kernel->shape.type)));
  out[c.out_batch] = in[c.lhs_batch];
  out[c.out_feature] = k[c.rhs_output_feature];
  for (size_t d = 0; d < c.lhs_spatial.size(); ++d) {
    Instruction* n = in[c.lhs_spatial[d]];
    if (n) out[c.out_spatial[d]] = windowed(n, i->attrs.window[d]);
  }
  set_dims(i, std::move(out));
}

// ---- by op ----------------------------------------------------------------------------------

void DynamicRules::forward(Instruction* i) {
  LeafSizes all;
  if (i->is(kGetTupleElement)) {
    const Instruction* tuple = i->operand(0);
    LeafSizes of = sizes(tuple);
    int64_t first = 0;
    for (int64_t k = 0; k < i->attrs.tuple_index; ++k) first += leaf_count(tuple->shape.elements[k]);
    all.assign(of.begin() + first, of.begin() + first + leaf_count(i->shape));
  } else if (i->is(kTuple) || i->is(kAllReduce)) {
    for (const Instruction* o : i->operands()) {
      LeafSizes of = sizes(o);
      all.insert(all.end(), of.begin(), of.end());
    }
  } else {
    all = sizes(i->operand(0));
  }
  set(i, std::move(all));
}

void DynamicRules::refuse(const Instruction& i) const {
  for (size_t k = 0; k < i.operand_count(); ++k) {
    LeafSizes of = sizes(i.operand(k));
    for (const DimSizes& leaf : of) {
      auto at = std::ranges::find_if(leaf, [](const Instruction* n) { return n != nullptr; });
      if (at == leaf.end()) continue;
      throw Error(
          ErrorKind::kUnsupported, i.location,
          fmt::format("{} of an operand ({}) whose dimension {} has a size known at run time only is not compiled",
                      op_name(i.opcode), k, at - leaf.begin()));
    }
  }
}

Instruction* DynamicRules::apply(Instruction* i) {
  switch (i->opcode) {
    case kGetDimensionSize: return get_dimension_size(i);
    case kSetDimensionSize: return set_dimension_size(i);
    case kDynamicReshape: return dynamic_reshape(i);
    case kCustomCall:
      if (is_pad_to_static(*i)) return pad_to_static(i);
      if (is_slice_to_dynamic(*i)) return slice_to_dynamic(i);
      break;
    default: break;
  }
  if (std::ranges::none_of(i->operands(), [&](auto* o) { return is_dynamic(o); })) return i;
  switch (i->opcode) {
    case kTuple:
    case kAllReduce:  // each operand's own, which all devices have
    case kGetTupleElement:
    case kOptBarrier:
    case kCopy:
    case kDomain:
    case kAddDependency: forward(i); break;
    case kAfterAll:
    case kOutfeed:
    case kSend: break;
    case kReverse: return reverse(i);
    case kConcatenate: return concatenate(i);
    case kDynamicUpdateSlice: dynamic_update_slice(i); break;
    case kPad: pad(i); break;
    case kSlice:
    case kDynamicSlice: slice(i); break;
    case kReshape: return reshape(i);
    case kReduce: reduce(i); break;
    case kReduceWindow: reduce_window(i); break;
    case kSelectAndScatter: select_and_scatter(i); break;
    case kDot: dot(i); break;
    case kConvolution: convolution(i); break;
    case kScatter: scatter(i); break;
    case kSort: return sort(i);
    case kTopK: top_k(i); break;
    case kFft: return fft(i);
    case kCholesky: cholesky(i); break;
    case kTriangularSolve: triangular_solve(i); break;
    case kBatchNormInference:
    case kBatchNormTraining:
    case kBatchNormGrad: return batch_norm(i);
    case kCustomCall:
      if (is_annotation(*i)) return i->operand(0);
      [[fallthrough]];
    default:
      bool moves = i->info().op_class == OpClass::kMoves && !has_trait(*i, op_trait::kForwards);
      if (!moves && !is_elementwise(i->opcode)) {
        refuse(*i);
      }
      if (is_elementwise(i->opcode)) spread_ones(i);
      follow(i);
  }
  return i;
}

}  // namespace hlojit
