// Builds computations op by op, in the forms of the seeds: binary ops that broadcast, SAME padding,
// Collapse, Reshape with an order, Rev, select between tuples. HLO itself has none of these; each
// becomes a few plain instructions.
//
//     Module module("m");
//     Builder b(module, "main");
//     Instruction* x = b.parameter(Shape::parse("f32[2,3]"), "x");
//     b.binary(Opcode::kAdd, x, b.constant(DType::kF32, 1));
//     b.build_entry();
//
// A single dimension may count from the last one, which is -1.
//
// Result shapes are inferred, so every mistake is an Error(kInvalid) at the call that makes it.
// Instructions belong to the module; a Builder is a cursor and may be dropped at any time.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "compiler/ir/module.h"

namespace hlojit {

class Builder {
 public:
  using Values = std::vector<Instruction*>;
  enum class Padding { kValid, kSame };

  /// Starts a new computation of the module.
  Builder(Module& module, std::string_view name);
  /// Goes on at the end of a computation.
  explicit Builder(Computation* computation) : computation_(computation) {}

  /// Makes the last instruction (or `root`) the root.
  Computation* build(Instruction* root = nullptr);
  /// The same, and makes the computation the module's entry.
  Computation* build_entry(Instruction* root = nullptr);
  Computation* computation() const { return computation_; }

  // ---- sources -------------------------------------------------------------------------------
  /// The next parameter.
  Instruction* parameter(Shape shape, std::string_view name = {});
  Instruction* constant(Literal literal);
  /// A scalar, rounded to the type.
  Instruction* constant(DType type, double value);
  Instruction* iota(Shape shape, int64_t dimension);

  // ---- any op --------------------------------------------------------------------------------
  /// An op whose result shape follows from its operands.
  Instruction* op(Opcode opcode, Values operands, Attributes attributes = {}, std::vector<Computation*> called = {});
  /// An op whose result shape has to be given (convert, custom-call, ...); where it follows from
  /// the operands too, it must agree.
  Instruction* op(Opcode opcode, Shape shape, Values operands, Attributes attributes = {},
                  std::vector<Computation*> called = {});

  // ---- elementwise ---------------------------------------------------------------------------
  Instruction* unary(Opcode opcode, Instruction* x) { return op(opcode, {x}); }
  /// Operands of equal rank: sizes are equal or one is 1. A scalar goes with anything. Of different
  /// rank: `broadcast_dimensions` maps the dimensions of the smaller to those of the larger.
  Instruction* binary(Opcode opcode, Instruction* x, Instruction* y, const Ints& broadcast_dimensions = {});
  Instruction* compare(Direction direction, Instruction* x, Instruction* y, CompareType type = CompareType::kDefault,
                       const Ints& broadcast_dimensions = {});
  /// Arrays as HLO has it; tuples element by element, on a scalar pred.
  Instruction* select(Instruction* pred, Instruction* on_true, Instruction* on_false);
  Instruction* convert(Instruction* x, DType type);
  Instruction* bitcast_convert(Instruction* x, DType type);

  // ---- moving data ---------------------------------------------------------------------------
  /// New dimensions on the left.
  Instruction* broadcast(Instruction* x, const Ints& sizes);
  /// Dimension i of x becomes dimension dimensions[i] of the result; sizes of 1 expand.
  Instruction* broadcast_in_dim(Instruction* x, const Ints& sizes, const Ints& dimensions);
  Instruction* reshape(Instruction* x, const Ints& sizes);
  /// Flattens in the order of `dimensions`, slowest first, then cuts into `sizes`.
  Instruction* reshape(Instruction* x, const Ints& dimensions, const Ints& sizes);
  /// Consecutive dimensions become one.
  Instruction* collapse(Instruction* x, const Ints& dimensions);
  Instruction* transpose(Instruction* x, const Ints& permutation);
  Instruction* rev(Instruction* x, const Ints& dimensions);
  Instruction* concat_in_dim(Values values, int64_t dimension);
  /// Empty strides are all 1.
  Instruction* slice(Instruction* x, const Ints& starts, const Ints& limits, const Ints& strides = {});
  Instruction* slice_in_dim(Instruction* x, int64_t start, int64_t limit, int64_t stride, int64_t dimension);
  Instruction* dynamic_slice(Instruction* x, Values starts, const Ints& sizes);
  Instruction* dynamic_update_slice(Instruction* x, Instruction* update, Values starts);
  Instruction* gather(Instruction* x, Instruction* indices, GatherDims dims);
  /// x[places] of an x of one dim; of the shape of `places`.
  Instruction* take(Instruction* x, Instruction* places);
  Instruction* pad(Instruction* x, Instruction* value, std::vector<PadDim> padding);

  // ---- reductions and windows ----------------------------------------------------------------
  /// A new computation, placed before this one, that combines two scalars by a binary op: what reductions apply.
  Computation* combiner(Opcode opcode, DType type);
  Instruction* reduce(Values inputs, Values inits, Computation* reducer, const Ints& dimensions);
  Instruction* reduce_window(Values inputs, Values inits, Computation* reducer, const Ints& sizes, const Ints& strides,
                             Padding padding);
  Instruction* reduce_window(Values inputs, Values inits, Computation* reducer, std::vector<WindowDim> window);
  /// Along `dimension`, from its end on if `reverse`: `body` is given a slice of each input and the carries, and
  /// returns a slice of each result and the next carries. The results, stacked, and the last carries.
  Instruction* scan(Values inputs, Values carries, Computation* body, int64_t dimension, bool reverse = false);
  Instruction* select_and_scatter(Instruction* x, Instruction* source, Instruction* init, Computation* select,
                                  Computation* scatter, const Ints& sizes, const Ints& strides, Padding padding);

  // ---- contractions --------------------------------------------------------------------------
  /// Vectors and matrices: the last dimension of x with the first of y.
  Instruction* dot(Instruction* x, Instruction* y);
  Instruction* dot_general(Instruction* x, Instruction* y, DotDims dims);
  /// Batch, features, then space; the kernel has output features, input features, then space.
  Instruction* conv(Instruction* x, Instruction* kernel, const Ints& strides, Padding padding);
  Instruction* conv(Instruction* x, Instruction* kernel, std::vector<WindowDim> window, ConvDims dims,
                    int64_t feature_groups = 1, int64_t batch_groups = 1);
  /// The dimension numbers of the first form.
  static ConvDims default_conv_dims(int64_t rank);

  // ---- control -------------------------------------------------------------------------------
  Instruction* tuple(Values values) { return op(Opcode::kTuple, std::move(values)); }
  Instruction* get_tuple_element(Instruction* x, int64_t index);
  Instruction* call(Computation* computation, Values arguments);
  Instruction* while_loop(Computation* condition, Computation* body, Instruction* init);
  Instruction* conditional(Instruction* index, std::vector<Computation*> branches, Values arguments);
  Instruction* sort(Values values, Computation* less, int64_t dimension, bool stable);
  /// all-reduce over all replicas by addition.
  Instruction* cross_replica_sum(Instruction* x);

 private:
  std::pair<Instruction*, Instruction*> same_shape(Instruction* x, Instruction* y, const Ints& broadcast_dimensions);
  std::vector<WindowDim> window(const Shape& shape, const Ints& sizes, const Ints& strides, Padding padding) const;

  Computation* computation_;
};

}  // namespace hlojit
