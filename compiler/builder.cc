// See builder.h. Every form ends in op(), which infers the shape and so checks the operands.
#include "compiler/builder.h"

#include <algorithm>

#include "compiler/verify/shape_inference.h"
#include "layout/dimension.h"

namespace hlojit {
namespace {

[[noreturn]] void fail(std::string rule, std::string message) {
  throw Error(ErrorKind::kInvalid, Location{}, std::move(message), std::move(rule));
}

void check_dimensions(const Ints& dimensions, int64_t rank, std::string_view what) {
  for (int64_t d : dimensions) {
    if (d < 0 || d >= rank) {
      fail("dimension-range", "dimension " + std::to_string(d) + " of " + std::string(what) +
                                  " is not below the rank " + std::to_string(rank));
    }
  }
}

// Sizes after degenerate broadcasting of two shapes of one rank.
Ints common_sizes(const Shape& x, const Shape& y) {
  Ints sizes;
  for (int64_t i = 0; i < x.rank(); ++i) {
    if (x.dims[i] != y.dims[i] && x.dims[i] != 1 && y.dims[i] != 1) {
      fail("broadcast-size", "cannot broadcast " + x.to_string(false) + " and " + y.to_string(false) + " together");
    }
    sizes.push_back(x.dims[i] == 1 ? y.dims[i] : x.dims[i]);
  }
  return sizes;
}

Ints ascending(int64_t from, int64_t count) {
  Ints list(count);
  for (int64_t i = 0; i < count; ++i) list[i] = from + i;
  return list;
}

}  // namespace

Builder::Builder(Module& module, std::string_view name) : computation_(module.add_computation(name)) {}

Computation* Builder::build(Instruction* root) {
  if (!root && computation_->instructions().empty()) fail("root", "nothing was built");
  computation_->set_root(root ? root : computation_->instructions().back().get());
  return computation_;
}

Computation* Builder::build_entry(Instruction* root) {
  build(root);
  computation_->parent()->set_entry(computation_);
  return computation_;
}

Instruction* Builder::parameter(Shape shape, std::string_view name) {
  check_shape(shape);
  return computation_->add_parameter(std::ssize(computation_->parameters()), std::move(shape), name);
}

Instruction* Builder::constant(Literal literal) { return computation_->add_constant(std::move(literal)); }

Instruction* Builder::constant(DType type, double value) {
  Literal literal(Shape::scalar(type));
  literal.set_double(0, value);
  return constant(std::move(literal));
}

Instruction* Builder::iota(Shape shape, int64_t dimension) {
  Attributes a;
  a.dimensions = {from_last(dimension, shape.rank())};
  return op(Opcode::kIota, std::move(shape), {}, std::move(a));
}

Instruction* Builder::op(Opcode opcode, Values operands, Attributes attributes, std::vector<Computation*> called) {
  return op(opcode, Shape{}, std::move(operands), std::move(attributes), std::move(called));
}

Instruction* Builder::op(Opcode opcode, Shape shape, Values operands, Attributes attributes,
                         std::vector<Computation*> called) {
  std::vector<const Shape*> shapes;
  for (const Instruction* o : operands) shapes.push_back(&o->shape);
  Shape inferred = infer_shape(opcode, shapes, attributes, called, shape.type == DType::kInvalid ? nullptr : &shape);
  if (shape.type == DType::kInvalid) {
    shape = std::move(inferred);
  } else if (inferred.type != DType::kInvalid && !compatible(shape, inferred)) {
    fail("result-shape",
         std::string(op_name(opcode)) + " gives " + inferred.to_string(false) + ", not " + shape.to_string(false));
  }
  if (shape.type == DType::kInvalid) {
    fail("result-shape", "the result shape of " + std::string(op_name(opcode)) + " must be given");
  }
  check_shape(shape);
  Instruction* made = computation_->add(opcode, std::move(shape), std::move(operands));
  made->attrs = std::move(attributes);
  made->called = std::move(called);
  return made;
}

// ---- elementwise ----------------------------------------------------------------------------

std::pair<Instruction*, Instruction*> Builder::same_shape(Instruction* x, Instruction* y,
                                                          const Ints& broadcast_dimensions) {
  int64_t rank_x = x->shape.rank(), rank_y = y->shape.rank();
  if (rank_x != rank_y) {
    Instruction*& small = rank_x < rank_y ? x : y;
    const Shape& large = rank_x < rank_y ? y->shape : x->shape;
    if (small->shape.rank() > 0 && broadcast_dimensions.size() != small->shape.dims.size()) {
      fail("broadcast-dimensions", "operands of different rank need broadcast dimensions: " +
                                       x->shape.to_string(false) + " and " + y->shape.to_string(false));
    }
    if (!std::ranges::is_sorted(broadcast_dimensions, std::ranges::less_equal())) {
      fail("broadcast-dimensions", "broadcast dimensions must increase strictly");
    }
    // First to the larger rank, with size 1 where nothing is mapped; then sizes of 1 expand.
    Ints sizes(large.rank(), 1);
    check_dimensions(broadcast_dimensions, large.rank(), "a broadcast");
    for (size_t i = 0; i < small->shape.dims.size(); ++i) {
      sizes[broadcast_dimensions[i]] = small->shape.dims[i];
    }
    if (small->shape.rank() == 0) {
      small = broadcast(small, large.dims);
    } else {
      small = reshape(small, sizes);
    }
  }
  Ints sizes = common_sizes(x->shape, y->shape);
  auto expand = [&](Instruction* v) {
    if (v->shape.dims == sizes) return v;
    return broadcast_in_dim(v, sizes, ascending(0, v->shape.rank()));
  };
  return {expand(x), expand(y)};
}

Instruction* Builder::binary(Opcode opcode, Instruction* x, Instruction* y, const Ints& broadcast_dimensions) {
  auto [a, b] = same_shape(x, y, broadcast_dimensions);
  return op(opcode, {a, b});
}

Instruction* Builder::compare(Direction direction, Instruction* x, Instruction* y, CompareType type,
                              const Ints& broadcast_dimensions) {
  auto [a, b] = same_shape(x, y, broadcast_dimensions);
  Attributes attributes;
  attributes.direction = direction;
  attributes.compare_type = type;
  return op(Opcode::kCompare, {a, b}, std::move(attributes));
}

Instruction* Builder::select(Instruction* pred, Instruction* on_true, Instruction* on_false) {
  if (!on_true->shape.is_tuple()) return op(Opcode::kSelect, {pred, on_true, on_false});
  if (!compatible(on_true->shape, on_false->shape) || !pred->shape.is_scalar()) {
    fail("select-tuple", "a select between tuples takes a scalar pred and tuples of one shape");
  }
  Values parts;
  for (int64_t i = 0; i < std::ssize(on_true->shape.elements); ++i) {
    parts.push_back(select(pred, get_tuple_element(on_true, i), get_tuple_element(on_false, i)));
  }
  return tuple(std::move(parts));
}

Instruction* Builder::convert(Instruction* x, DType type) {
  return op(Opcode::kConvert, Shape::array(type, x->shape.dims), {x});
}

Instruction* Builder::bitcast_convert(Instruction* x, DType type) {
  Ints dims = x->shape.dims;
  int from = bitcast_bits(x->shape.type), to = bitcast_bits(type);
  if (from > to && to > 0) dims.push_back(from / to);
  if (from < to && !dims.empty()) dims.pop_back();
  Shape shape = Shape::array(type, std::move(dims));
  return op(Opcode::kBitcastConvert, std::move(shape), {x});
}

// ---- moving data ----------------------------------------------------------------------------

Instruction* Builder::broadcast(Instruction* x, const Ints& sizes) {
  Ints dims = sizes;
  dims.insert(dims.end(), x->shape.dims.begin(), x->shape.dims.end());
  return broadcast_in_dim(x, dims, ascending(std::ssize(sizes), x->shape.rank()));
}

Instruction* Builder::broadcast_in_dim(Instruction* x, const Ints& sizes, const Ints& dimensions) {
  if (std::ssize(dimensions) != x->shape.rank()) {
    fail("broadcast-dimensions", "a broadcast names a result dimension for each of the operand's");
  }
  check_dimensions(dimensions, std::ssize(sizes), "a broadcast");
  // HLO's broadcast does not expand sizes of 1: those dimensions are dropped first.
  Ints kept_sizes, kept;
  for (size_t i = 0; i < dimensions.size(); ++i) {
    int64_t from = x->shape.dims[i], to = sizes[dimensions[i]];
    if (from != to && from != 1) {
      fail("broadcast-size", "dimension " + std::to_string(i) + " of " + x->shape.to_string(false) + " cannot become " +
                                 std::to_string(to));
    }
    if (from != to) continue;
    kept_sizes.push_back(from);
    kept.push_back(dimensions[i]);
  }
  if (kept.size() != dimensions.size()) x = reshape(x, kept_sizes);
  Attributes a;
  a.dimensions = std::move(kept);
  a.has_dimensions = true;
  return op(Opcode::kBroadcast, Shape::array(x->shape.type, sizes), {x}, std::move(a));
}

Instruction* Builder::reshape(Instruction* x, const Ints& sizes) {
  Shape shape = Shape::array(x->shape.type, sizes);
  check_shape(shape);
  if (shape.element_count() != x->shape.element_count()) {
    fail("reshape-count", "cannot reshape " + x->shape.to_string(false) + " to " + shape.to_string(false));
  }
  return op(Opcode::kReshape, std::move(shape), {x});
}

Instruction* Builder::reshape(Instruction* x, const Ints& dimensions, const Ints& sizes) {
  if (dimensions != ascending(0, x->shape.rank())) x = transpose(x, dimensions);
  return reshape(x, sizes);
}

Instruction* Builder::collapse(Instruction* x, const Ints& dimensions) {
  check_dimensions(dimensions, x->shape.rank(), "collapse");
  if (dimensions.size() < 2) return x;
  if (dimensions != ascending(dimensions[0], std::ssize(dimensions))) {
    fail("collapse-dimensions", "collapse takes consecutive dimensions in order");
  }
  Ints sizes = x->shape.dims;
  auto first = sizes.begin() + dimensions[0];
  for (size_t i = 1; i < dimensions.size(); ++i) *first *= first[i];
  sizes.erase(first + 1, first + std::ssize(dimensions));
  return reshape(x, sizes);
}

Instruction* Builder::transpose(Instruction* x, const Ints& permutation) {
  Attributes a;
  a.dimensions = permutation;
  a.has_dimensions = true;
  return op(Opcode::kTranspose, {x}, std::move(a));
}

Instruction* Builder::rev(Instruction* x, const Ints& dimensions) {
  Attributes a;
  a.dimensions = dimensions;
  a.has_dimensions = true;
  return op(Opcode::kReverse, {x}, std::move(a));
}

Instruction* Builder::concat_in_dim(Values values, int64_t dimension) {
  Attributes a;
  a.dimensions = {values.empty() ? dimension : from_last(dimension, values[0]->shape.rank())};
  a.has_dimensions = true;
  return op(Opcode::kConcatenate, std::move(values), std::move(a));
}

Instruction* Builder::slice(Instruction* x, const Ints& starts, const Ints& limits, const Ints& strides) {
  if (starts.size() != limits.size() || (!strides.empty() && strides.size() != starts.size())) {
    fail("slice-rank", "a slice has as many starts as limits and strides");
  }
  Attributes a;
  for (size_t i = 0; i < starts.size(); ++i) {
    a.slice.push_back({starts[i], limits[i], strides.empty() ? 1 : strides[i]});
  }
  return op(Opcode::kSlice, {x}, std::move(a));
}

Instruction* Builder::slice_in_dim(Instruction* x, int64_t start, int64_t limit, int64_t stride, int64_t dimension) {
  dimension = from_last(dimension, x->shape.rank());
  check_dimensions({dimension}, x->shape.rank(), "a slice");
  Ints starts(x->shape.rank(), 0), limits = x->shape.dims, strides(x->shape.rank(), 1);
  starts[dimension] = start;
  limits[dimension] = limit;
  strides[dimension] = stride;
  return slice(x, starts, limits, strides);
}

Instruction* Builder::dynamic_slice(Instruction* x, Values starts, const Ints& sizes) {
  Attributes a;
  a.dynamic_slice_sizes = sizes;
  starts.insert(starts.begin(), x);
  return op(Opcode::kDynamicSlice, std::move(starts), std::move(a));
}

Instruction* Builder::dynamic_update_slice(Instruction* x, Instruction* update, Values starts) {
  starts.insert(starts.begin(), {x, update});
  return op(Opcode::kDynamicUpdateSlice, std::move(starts));
}

Instruction* Builder::gather(Instruction* x, Instruction* indices, GatherDims dims) {
  Attributes a;
  a.gather = std::move(dims);
  return op(Opcode::kGather, {x, indices}, std::move(a));
}

Instruction* Builder::take(Instruction* x, Instruction* places) {
  Ints sizes = places->shape.dims;
  sizes.push_back(1);
  const int64_t index_dim = std::ssize(sizes) - 1;
  return gather(x, reshape(places, sizes),
                {.offset_dims = {},
                 .collapsed_slice_dims = {0},
                 .start_index_map = {0},
                 .operand_batching_dims = {},
                 .start_indices_batching_dims = {},
                 .index_vector_dim = index_dim,
                 .slice_sizes = {1}});
}

Instruction* Builder::pad(Instruction* x, Instruction* value, std::vector<PadDim> padding) {
  Attributes a;
  a.padding = std::move(padding);
  return op(Opcode::kPad, {x, value}, std::move(a));
}

// ---- reductions and windows -----------------------------------------------------------------

Instruction* Builder::reduce(Values inputs, Values inits, Computation* reducer, const Ints& dimensions) {
  Attributes a;
  a.dimensions = dimensions;
  a.has_dimensions = true;
  inputs.insert(inputs.end(), inits.begin(), inits.end());
  return op(Opcode::kReduce, std::move(inputs), std::move(a), {reducer});
}

// SAME: as many results as there are strides in the input; what is missing is added on both sides,
// the odd one behind.
std::vector<WindowDim> Builder::window(const Shape& shape, const Ints& sizes, const Ints& strides,
                                       Padding padding) const {
  if (std::ssize(sizes) != shape.rank() || strides.size() != sizes.size()) {
    fail("window-rank", "a window has a size and a stride for each of " + std::to_string(shape.rank()) + " dimensions");
  }
  std::vector<WindowDim> dims(sizes.size());
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 1 || strides[i] < 1) fail("window-size", "window sizes and strides are positive");
    dims[i].size = sizes[i];
    dims[i].stride = strides[i];
    if (padding == Padding::kValid) continue;
    int64_t n = shape.dims[i];
    int64_t results = n / strides[i] + (n % strides[i] != 0);
    int64_t total = std::max<int64_t>((results - 1) * strides[i] + sizes[i] - n, 0);
    if (n == 0) total = 0;
    dims[i].pad_low = total / 2;
    dims[i].pad_high = total - total / 2;
  }
  return dims;
}

Computation* Builder::combiner(Opcode opcode, DType type) {
  Builder b(computation_->parent()->add_computation_before(op_name(opcode), computation_));
  Instruction* x = b.parameter(Shape::scalar(type));
  Instruction* y = b.parameter(Shape::scalar(type));
  return b.build(b.binary(opcode, x, y));
}

Instruction* Builder::reduce_window(Values inputs, Values inits, Computation* reducer, const Ints& sizes,
                                    const Ints& strides, Padding padding) {
  if (inputs.empty()) fail("operand-count", "reduce-window needs an input");
  std::vector<WindowDim> dims = window(inputs[0]->shape, sizes, strides, padding);
  return reduce_window(std::move(inputs), std::move(inits), reducer, std::move(dims));
}

Instruction* Builder::reduce_window(Values inputs, Values inits, Computation* reducer, std::vector<WindowDim> window) {
  Attributes a;
  a.window = std::move(window);
  inputs.insert(inputs.end(), inits.begin(), inits.end());
  return op(Opcode::kReduceWindow, std::move(inputs), std::move(a), {reducer});
}

Instruction* Builder::scan(Values inputs, Values carries, Computation* body, int64_t dimension, bool reverse) {
  Attributes a;
  a.dimensions = {dimension};
  a.has_dimensions = true;
  a.other = {{"num_carries", std::to_string(carries.size())}};
  if (reverse) a.other.emplace_back("is_reverse", "true");
  inputs.insert(inputs.end(), carries.begin(), carries.end());
  return op(Opcode::kScan, std::move(inputs), std::move(a), {body});
}

Instruction* Builder::select_and_scatter(Instruction* x, Instruction* source, Instruction* init, Computation* select,
                                         Computation* scatter, const Ints& sizes, const Ints& strides,
                                         Padding padding) {
  Attributes a;
  a.window = window(x->shape, sizes, strides, padding);
  return op(Opcode::kSelectAndScatter, {x, source, init}, std::move(a), {select, scatter});
}

// ---- contractions ---------------------------------------------------------------------------

Instruction* Builder::dot(Instruction* x, Instruction* y) {
  int64_t rank_x = x->shape.rank(), rank_y = y->shape.rank();
  if (rank_x < 1 || rank_x > 2 || rank_y < 1 || rank_y > 2) {
    fail("dot-rank", "dot takes vectors and matrices; use dot_general");
  }
  DotDims dims;
  dims.lhs_contracting = {rank_x - 1};
  dims.rhs_contracting = {0};
  return dot_general(x, y, std::move(dims));
}

Instruction* Builder::dot_general(Instruction* x, Instruction* y, DotDims dims) {
  Attributes a;
  a.dot = std::move(dims);
  return op(Opcode::kDot, {x, y}, std::move(a));
}

ConvDims Builder::default_conv_dims(int64_t rank) {
  ConvDims dims;
  dims.lhs_batch = dims.out_batch = dims.rhs_output_feature = 0;
  dims.lhs_feature = dims.out_feature = dims.rhs_input_feature = 1;
  dims.lhs_spatial = dims.rhs_spatial = dims.out_spatial = ascending(2, std::max<int64_t>(rank - 2, 0));
  return dims;
}

Instruction* Builder::conv(Instruction* x, Instruction* kernel, const Ints& strides, Padding padding) {
  if (x->shape.rank() < 2 || kernel->shape.rank() != x->shape.rank()) {
    fail("conv-rank", "a convolution takes an array and a kernel of one rank, at least 2");
  }
  Shape space = Shape::array(x->shape.type, Ints(x->shape.dims.begin() + 2, x->shape.dims.end()));
  Ints sizes(kernel->shape.dims.begin() + 2, kernel->shape.dims.end());
  return conv(x, kernel, window(space, sizes, strides, padding), default_conv_dims(x->shape.rank()));
}

Instruction* Builder::conv(Instruction* x, Instruction* kernel, std::vector<WindowDim> window, ConvDims dims,
                           int64_t feature_groups, int64_t batch_groups) {
  Attributes a;
  a.window = std::move(window);
  a.conv = std::move(dims);
  a.feature_group_count = feature_groups;
  a.batch_group_count = batch_groups;
  return op(Opcode::kConvolution, {x, kernel}, std::move(a));
}

// ---- control --------------------------------------------------------------------------------

Instruction* Builder::get_tuple_element(Instruction* x, int64_t index) {
  Attributes a;
  a.tuple_index = index;
  return op(Opcode::kGetTupleElement, {x}, std::move(a));
}

Instruction* Builder::call(Computation* computation, Values arguments) {
  return op(Opcode::kCall, std::move(arguments), {}, {computation});
}

Instruction* Builder::while_loop(Computation* condition, Computation* body, Instruction* init) {
  return op(Opcode::kWhile, {init}, {}, {condition, body});
}

Instruction* Builder::conditional(Instruction* index, std::vector<Computation*> branches, Values arguments) {
  arguments.insert(arguments.begin(), index);
  return op(Opcode::kConditional, std::move(arguments), {}, std::move(branches));
}

Instruction* Builder::sort(Values values, Computation* less, int64_t dimension, bool stable) {
  Attributes a;
  a.dimensions = {values.empty() ? dimension : from_last(dimension, values[0]->shape.rank())};
  a.has_dimensions = true;
  a.is_stable = stable;
  return op(Opcode::kSort, std::move(values), std::move(a), {less});
}

Instruction* Builder::cross_replica_sum(Instruction* x) {
  Attributes a;
  a.other = {{"replica_groups", "{}"}};
  return op(Opcode::kAllReduce, {x}, std::move(a), {combiner(Opcode::kAdd, x->shape.type)});
}

}  // namespace hlojit
