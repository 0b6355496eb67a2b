// See actual_sizes.h.
#include "tools/actual_sizes.h"

#include <algorithm>

#include "compiler/builder.h"
#include "compiler/eval/evaluator.h"

namespace hlojit::tools {
namespace {

using enum Opcode;

[[noreturn]] void unsupported(const Instruction& i, std::string_view why) {
  throw Error(ErrorKind::kUnsupported, i.location, std::string(op_name(i.opcode)) + std::string(why));
}

bool is_dynamic(const Shape& s) {
  return std::ranges::any_of(s.elements, is_dynamic) || (s.is_array() && s.has_dynamic_dims());
}

Shape actual(const Literal& l) { return Shape::array(l.shape().type, l.shape().dims); }

// The sizes that the text does not say: those of the operands, dimension by dimension.
Shape broadcast_shape(const Instruction& i, const Shape& x) {
  Shape result = Shape::array(i.shape.type, i.shape.dims);
  std::vector<bool> said(result.dims.size(), true);
  for (size_t d = 0; d < said.size(); ++d) said[d] = i.shape.dynamic.empty() || !i.shape.dynamic[d];
  for (size_t k = 0; k < i.attrs.dimensions.size(); ++k) {
    auto d = static_cast<size_t>(i.attrs.dimensions[k]);
    if (said[d]) continue;
    result.dims[d] = x.dims[k];
    said[d] = true;
  }
  if (std::ranges::find(said, false) != said.end()) unsupported(i, " to a size that no operand has");
  return result;
}

Shape reshaped(const Instruction& i, const Shape& x) {
  Shape result = Shape::array(i.shape.type, i.shape.dims);
  int64_t others = 1, open = -1;
  for (int64_t d = 0; d < result.rank(); ++d) {
    bool said = i.shape.dynamic.empty() || !i.shape.dynamic[static_cast<size_t>(d)];
    if (said) {
      others *= result.dims[static_cast<size_t>(d)];
      continue;
    }
    if (open >= 0) unsupported(i, " to several sizes that are known at run time only");
    open = d;
  }
  if (open >= 0 && others == 0) unsupported(i, " of no elements, whose number does not tell the size");
  if (open >= 0) result.dims[static_cast<size_t>(open)] = x.element_count() / others;
  if (result.element_count() != x.element_count()) unsupported(i, " of a number of elements that does not divide");
  return result;
}

Shape result_shape(const Instruction& i, const std::vector<Literal>& operands) {
  if (i.is(kBroadcast)) return broadcast_shape(i, actual(operands[0]));
  if (i.is(kReshape)) return reshaped(i, actual(operands[0]));
  if (i.info().op_class != OpClass::kElementwise || i.shape.is_tuple()) return {};  // follows from the operands
  auto whole = std::ranges::find_if(operands, [&](const Literal& l) { return l.shape().rank() == i.shape.rank(); });
  return Shape::array(i.shape.type, whole->shape().dims);
}

// One element along some dimensions, as often as asked for.
Literal repeated(const Literal& x, const Ints& sizes) {
  Module scratch("repeated");
  Builder b(scratch, "repeated");
  Ints rest, at;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (x.shape().dims[d] != sizes[d]) continue;
    rest.push_back(sizes[d]);
    at.push_back(static_cast<int64_t>(d));
  }
  Literal flat(Shape::array(x.shape().type, rest));
  std::ranges::copy(x.bytes(), flat.bytes().begin());
  return *evaluate_instruction(*b.broadcast_in_dim(b.parameter(flat.shape()), sizes, at), {&flat, 1});
}

// The sizes that all have: where one has a single element and others more, it stands for as many; of what is as long as
// the bound, and no more than said, there is as much as of the others.
void fit_to_each_other(const Instruction& i, std::vector<Literal>& operands) {
  Ints common = i.shape.dims;
  auto whole = [&](size_t k) { return i.operand(k)->shape.rank() == i.shape.rank(); };
  for (size_t d = 0; d < common.size(); ++d) {
    int64_t least = -1, more = -1;  // of all that have a size of their own; of those with more than one
    for (size_t k = 0; k < operands.size(); ++k) {
      if (!whole(k)) continue;
      const Shape& said = i.operand(k)->shape;
      const int64_t size = operands[k].shape().dims[d];
      if (size == said.dims[d] && (said.dynamic.empty() || !said.dynamic[d])) continue;
      least = least < 0 ? size : std::min(least, size);
      if (size > 1) more = more < 0 ? size : std::min(more, size);
    }
    if (least >= 0) common[d] = least == 1 && more > 1 ? more : least;
  }
  for (size_t k = 0; k < operands.size(); ++k) {
    if (!whole(k) || operands[k].shape().dims == common) continue;
    Ints least = common;
    for (size_t d = 0; d < common.size(); ++d) least[d] = std::min(common[d], operands[k].shape().dims[d]);
    operands[k] = cut_to(operands[k], least);
    if (least != common) operands[k] = repeated(operands[k], common);
  }
}

// What a slice or a dynamic-slice takes: places are clamped by bounds, of a part there are those elements that lie
// before the actual end. A single element counts as there.
std::vector<SliceRange> parts(const Instruction& i, const std::vector<Literal>& operands) {
  const Ints &bounds = i.operand(0)->shape.dims, &sizes = operands[0].shape().dims;
  std::vector<SliceRange> all = i.attrs.slice;
  if (i.is(kDynamicSlice)) {
    const bool one_vector = operands[1].shape().rank() == 1;
    for (size_t d = 0; d < bounds.size(); ++d) {
      const int64_t at = one_vector ? operands[1].as_int(static_cast<int64_t>(d)) : operands[d + 1].as_int(0);
      const int64_t part = i.attrs.dynamic_slice_sizes[d], start = std::clamp<int64_t>(at, 0, bounds[d] - part);
      all.push_back({start, start + part, 1});
    }
  }
  for (size_t d = 0; d < all.size(); ++d) {
    SliceRange& part = all[d];
    if (i.shape.dims[d] == 1 && part.start < bounds[d] && part.start >= sizes[d]) {
      unsupported(i, " of an element that is not there");
    }
    part.limit = std::min(part.limit, sizes[d]);
    part.start = std::min(part.start, part.limit);
  }
  return all;
}

// The attributes that name sizes.
Attributes with_sizes(const Instruction& i, const std::vector<Literal>& operands) {
  Attributes a = i.attrs;
  if (i.is(kSlice) || i.is(kDynamicSlice)) a.slice = parts(i, operands);
  if (a.gather->slice_sizes.empty()) return a;
  for (size_t d = 0; int64_t& size : a.gather.edit().slice_sizes) {
    if (size == i.operand(0)->shape.dims[d]) size = operands[0].shape().dims[d];
    ++d;
  }
  return a;
}

}  // namespace

bool has_actual_sizes(const Instruction& i) {
  if (i.is(kGetDimensionSize) || i.is(kSetDimensionSize) || is_dynamic(i.shape)) return true;
  return std::ranges::any_of(i.operands(), [](const Instruction* o) { return is_dynamic(o->shape); });
}

const Instruction& with_actual_sizes(Module& scratch, const Instruction& i, std::vector<Literal>& operands) {
  if (i.info().op_class == OpClass::kElementwise) fit_to_each_other(i, operands);
  Builder b(scratch, "actual");
  Builder::Values in;
  for (const Literal& l : operands) in.push_back(b.parameter(actual(l)));
  try {
    Attributes attrs = with_sizes(i, operands);
    if (!i.is(kDynamicSlice)) {
      Instruction* made = b.op(i.opcode, result_shape(i, operands), in, std::move(attrs), i.called);
      if (made->shape.is_array()) made->shape.type = i.shape.type;  // a product's may be wider than its operands'
      return *made;
    }
    operands.resize(1);  // its indices are in `attrs` now
    return *b.op(kSlice, {in[0]}, std::move(attrs));
  } catch (const Error& e) {
    if (e.kind() == ErrorKind::kUnsupported) throw;
    unsupported(i, std::string(" of sizes that do not fit: ") + e.what());
  }
}

std::optional<Literal> sized(const Instruction& i, const std::vector<Literal>& operands) {
  if (!i.is(kGetDimensionSize) && !i.is(kSetDimensionSize)) return std::nullopt;
  Shape x = actual(operands[0]);
  auto d = static_cast<size_t>(i.attrs.dimensions.at(0));
  if (i.is(kGetDimensionSize)) {
    Literal size(Shape::scalar(DType::kS32));
    size.set_int(0, x.dims[d]);
    return size;
  }
  Ints limits = x.dims;
  limits[d] = std::clamp<int64_t>(operands[1].as_int(0), 0, i.shape.dims[d]);
  if (limits[d] > x.dims[d]) unsupported(i, " to more than there is");
  return cut_to(operands[0], limits);
}

Literal cut_to(const Literal& x, const Ints& sizes) {
  Module scratch("cut");
  Builder b(scratch, "cut");
  return *evaluate_instruction(*b.slice(b.parameter(actual(x)), Ints(sizes.size(), 0), sizes), {&x, 1});
}

}  // namespace hlojit::tools
