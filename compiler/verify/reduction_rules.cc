// Ops that combine elements by a called computation, and those that order them.
//
// A reducer takes its accumulators first, then as many values; scalars all. Several arrays reduced
// together give a tuple; one alone gives an array, or a tuple of one if the reducer does.
#include <algorithm>

#include "compiler/verify/rules.h"

namespace hlojit::rules {
namespace {

// 2N operands: N arrays of equal sizes, N scalar inits of their types. Returns N. Only
// reduce-window may mix float precisions.
size_t need_arrays_and_inits(const Use& use, bool mixed_precision) {
  need(use.count() >= 2 && use.count() % 2 == 0, "operand-count",
       "{} takes N arrays and N initial values: not {} operands in all", op_name(use.opcode), use.count());
  size_t n = use.operands.size() / 2;
  for (size_t i = 0; i < n; ++i) {
    array(use, i);
    scalar(use, n + i);
    if (i > 0) need_same_sizes(use, 0, i);
    if (mixed_precision) {
      need_same_type_ignoring_precision(use, i, n + i);
    } else {
      need_same_type(use, i, n + i);
    }
  }
  return n;
}

// Element types of the reducer's accumulators; for float operands its own precision counts.
std::vector<DType> accumulator_types(const Use& use, size_t n, bool mixed_precision) {
  std::vector<DType> types;
  for (size_t i = 0; i < n; ++i) {
    types.push_back(use.operand(i).type);
    const auto& parameters = use.called[0]->parameters();
    if (mixed_precision && i < parameters.size() && same_type_ignoring_precision(parameters[i]->shape.type, types[i])) {
      types[i] = parameters[i]->shape.type;
    }
  }
  return types;
}

// A tuple if the reducer returns one.
Shape results(const Use& use, std::span<const DType> types, const std::vector<int64_t>& dims) {
  std::vector<Shape> shapes;
  for (DType t : types) shapes.push_back(Shape::array(t, dims));
  return use.called[0]->root()->shape.is_tuple() ? Shape::tuple(std::move(shapes)) : shapes[0];
}

Shape reduce(const Use& use) {
  size_t n = need_arrays_and_inits(use, false);
  const Shape& x = use.operand(0);
  const Ints& reduced = use.attrs.dimensions;
  need_dimensions(reduced, x.rank(), "dimensions");
  need_called(use, 1);
  std::vector<DType> types = accumulator_types(use, n, false);
  need_reducer(*use.called[0], types, "to_apply");
  std::vector<bool> gone(x.dims.size());
  for (int64_t d : reduced) gone[d] = true;
  std::vector<int64_t> dims;
  for (size_t d = 0; d < x.dims.size(); ++d) {
    if (!gone[d]) dims.push_back(x.dims[d]);
  }
  return results(use, types, dims);
}

Shape reduce_window(const Use& use) {
  size_t n = need_arrays_and_inits(use, true);
  need_called(use, 1);
  std::vector<DType> types = accumulator_types(use, n, true);
  std::vector<int64_t> dims = window_output(use.operand(0).dims, use.attrs.window);
  need_reducer(*use.called[0], types, "to_apply");
  return results(use, types, dims);
}

Shape select_and_scatter(const Use& use) {
  need_count(use, 3);
  const Shape& x = array(use, 0);
  const Shape& source = array(use, 1);
  scalar(use, 2);
  need_same_type(use, 0, 1);
  need_same_type(use, 0, 2);
  for (const WindowDim& w : use.attrs.window) {
    need(w.lhs_dilate == 1 && w.rhs_dilate == 1, "window-dilation",
         "the window of select-and-scatter cannot be dilated");
  }
  std::vector<int64_t> windows = window_output(x.dims, use.attrs.window);
  need(source.dims == windows, "select-and-scatter-source", "there are {} windows, the source is {}", list(windows),
       source);
  need_called(use, 2);
  const Shape element = Shape::scalar(x.type);
  const Shape pair[] = {element, element};
  need_parameters(*use.called[0], pair, "select");
  need_result(*use.called[0], Shape::scalar(DType::kPred), "select");
  need_reducer(*use.called[1], {&x.type, 1}, "scatter");
  return x;
}

Shape scan(const Use& use) {
  need_arrays(use);
  int64_t carries = int_attribute(use.attrs, "num_carries", 0);
  need(carries >= 0 && carries < use.count(), "scan-carries",
       "num_carries is {}, which leaves no input among {} operands", carries, use.count());
  size_t inputs = use.operands.size() - static_cast<size_t>(carries);
  int64_t d = single_dimension(use, use.operand(0).rank());
  int64_t length = use.operand(0).dims[d];
  std::vector<Shape> parameters;
  for (size_t i = 0; i < use.operands.size(); ++i) {
    Shape x = use.operand(i);
    if (i < inputs) {
      need(d < x.rank() && x.dims[d] == length, "operand-sizes",
           "input {} of scan must have size {} in dimension {}: {}", i, length, d, x);
      x.dims.erase(x.dims.begin() + d);
      x = Shape::array(x.type, std::move(x.dims));
    }
    parameters.push_back(std::move(x));
  }
  need_called(use, 1);
  const Computation& body = *use.called[0];
  need_parameters(body, parameters, "to_apply");
  // The body returns a slice of each output, then the new carries.
  const Shape& returned = body.root()->shape;
  std::vector<Shape> shapes;
  if (returned.is_tuple()) {
    shapes = returned.elements;
  } else {
    shapes.push_back(returned);
  }
  need(shapes.size() >= static_cast<size_t>(carries), "called-result",
       "to_apply computation {} returns {}, fewer than {} carries", body.name, returned, carries);
  size_t outputs = shapes.size() - static_cast<size_t>(carries);
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (i >= outputs) {
      const Shape& carry = use.operand(inputs + i - outputs);
      need(compatible(shapes[i], carry), "called-result", "to_apply computation {} returns {} for a carry of {}",
           body.name, shapes[i], carry);
      continue;
    }
    need(shapes[i].is_array() && d <= shapes[i].rank(), "called-result",
         "to_apply computation {} returns {}, which cannot be stacked along dimension {}", body.name, shapes[i], d);
    std::vector<int64_t> dims = shapes[i].dims;
    dims.insert(dims.begin() + d, length);
    shapes[i] = Shape::array(shapes[i].type, std::move(dims));
  }
  return returned.is_tuple() ? Shape::tuple(std::move(shapes)) : shapes[0];
}

Shape sort(const Use& use) {
  need(use.count() >= 1, "operand-count", "sort takes at least one operand");
  need_arrays(use);
  std::vector<Shape> scalars, shapes;
  for (size_t i = 0; i < use.operands.size(); ++i) {
    if (i > 0) need_same_sizes(use, 0, i);
    scalars.insert(scalars.end(), 2, Shape::scalar(use.operand(i).type));
    shapes.push_back(use.operand(i));
  }
  single_dimension(use, use.operand(0).rank());
  need_called(use, 1);
  need_parameters(*use.called[0], scalars, "to_apply");
  need_result(*use.called[0], Shape::scalar(DType::kPred), "to_apply");
  return one_or_tuple(std::move(shapes));
}

Shape topk(const Use& use) {
  need_count(use, 1);
  const Shape& x = array(use, 0);
  need_type(use, 0, kAny & ~kComplex);
  need(!x.dims.empty(), "operand-kind", "topk needs an array of rank 1 or more, not {}", x);
  need(use.attrs.k >= 0 && use.attrs.k <= x.dims.back(), "topk-k",
       "k = {} does not lie in [0, {}], the size of the last dimension", use.attrs.k, x.dims.back());
  std::vector<int64_t> dims = x.dims;
  dims.back() = use.attrs.k;
  return Shape::tuple({Shape::array(x.type, dims), Shape::array(DType::kS32, dims)});
}

constexpr Entry kOps[] = {
    {Opcode::kReduce, reduce, "dimensions:always! to_apply!"},
    {Opcode::kReduceWindow, reduce_window, "window to_apply!"},
    {Opcode::kScan, scan, "dimensions! num_carries is_reverse is_associative to_apply!"},
    {Opcode::kSelectAndScatter, select_and_scatter, "window select! scatter!"},
    {Opcode::kSort, sort, "dimensions! is_stable to_apply!"},
    {Opcode::kTopK, topk, "k! largest is_stable"},
};

}  // namespace

std::span<const Entry> reduction_rules() { return kOps; }

}  // namespace hlojit::rules
