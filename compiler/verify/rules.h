// What rule functions share: one use of an op as they see it, and the words they are written in.
//
// A rule function is given an op's operands and attributes and returns the shape of its result, or
// throws at the first thing that does not fit. Each op has one, listed in shape_inference.cc.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "compiler/ir/module.h"
#include "compiler/verify/rule_list.h"
#include "layout/shape.h"

namespace hlojit::rules {

/// One use of an op. `declared` is the shape the text gives the result; null while inferring.
struct Use {
  Opcode opcode;
  std::span<const Shape* const> operands;
  const Attributes& attrs;
  std::span<Computation* const> called;
  const Shape* declared = nullptr;

  const Shape& operand(size_t i) const { return *operands[i]; }
  int64_t count() const { return static_cast<int64_t>(operands.size()); }
};

using Rule = Shape (*)(const Use&);

/// Applies the op's rule. With a declared shape the result is what it should be; without, what
/// infer_shape returns.
Shape apply(const Use& use);

/// The result of a rule that operands and attributes do not determine.
inline Shape undetermined() { return Shape{}; }

/// A list of numbers as an argument of need().
inline std::span<const int64_t> list(std::span<const int64_t> numbers) { return numbers; }

[[noreturn]] void fail(RuleId rule, std::string message, std::string details = {});

/// fail(rule, format(...)) unless `holds`. Shapes and lists of numbers format as HLO text.
template <class... Args>
void need(bool holds, RuleId rule, fmt::format_string<Args...> format, Args&&... args) {
  if (!holds) [[unlikely]]
    fail(rule, fmt::format(format, std::forward<Args>(args)...));
}

// ---- operands ----

/// Exactly n operands.
void need_count(const Use& use, int64_t n);
/// Operand i is an array / a scalar / a token.
const Shape& array(const Use& use, size_t i);
const Shape& scalar(const Use& use, size_t i);
void need_token(const Use& use, size_t i);
/// Every operand is an array.
void need_arrays(const Use& use);
/// Element types of operands i and j agree (exactly, or up to the precision of floats).
void need_same_type(const Use& use, size_t i, size_t j);
void need_same_type_ignoring_precision(const Use& use, size_t i, size_t j);
/// Sizes of operands i and j agree.
void need_same_sizes(const Use& use, size_t i, size_t j);
bool same_type_ignoring_precision(DType a, DType b);

/// The part of a tuple shape at an index, or null if there is none. `{}` is the shape itself.
const Shape* subshape(const Shape& shape, const Ints& index);

/// Where two incompatible shapes first differ: the shapes themselves, or parts of tuples.
struct Difference {
  const Shape *have, *want;
  Ints index;
  /// ` at element {1,0}`; empty for whole shapes.
  std::string place() const;
};
Difference difference(const Shape& have, const Shape& want);

/// Classes of element types, to be or-ed.
enum Classes : uint8_t {
  kPred = 1,
  kSigned = 2,
  kUnsigned = 4,
  kFloat = 8,
  kComplex = 16,
  kInt = kSigned | kUnsigned,
  kNumber = kInt | kFloat | kComplex,
  kAny = kPred | kNumber,
};
uint8_t class_bit(DType type);
/// "integer or float element types".
std::string describe_classes(uint8_t classes);
/// Element type of operand i is of one of the classes.
void need_type(const Use& use, size_t i, uint8_t classes);

// ---- declared results ----

/// The declared result; it must be an array / have these sizes.
const Shape& declared_array(const Use& use);
void need_declared_sizes(const Use& use, std::span<const int64_t> dims);
/// Single shape, or a tuple of several: results of variadic ops.
Shape one_or_tuple(std::vector<Shape> shapes);

// ---- dimension numbers ----

/// All in [0, rank) and, unless `repeats`, different from each other. `what` names the attribute.
void need_dimensions(std::span<const int64_t> dims, int64_t rank, std::string_view what);
void need_ascending(std::span<const int64_t> dims, std::string_view what);
bool contains(std::span<const int64_t> list, int64_t value);
/// The single entry of `dimensions`, in [0, rank).
int64_t single_dimension(const Use& use, int64_t rank, std::string_view what = "dimensions");

// ---- arithmetic on sizes: size-overflow instead of wrapping ----

int64_t add(int64_t a, int64_t b);
int64_t mul(int64_t a, int64_t b);
/// Sizes that a window leaves of dims; checks the window (window_rule names the attribute's owner).
std::vector<int64_t> window_output(std::span<const int64_t> dims, std::span<const WindowDim> window);

// ---- called computations ----

/// Exactly n called computations, each with its root and all parameters.
void need_called(const Use& use, size_t n);
/// `callee` takes parameters of these shapes (layouts free). `role` is the attribute's name.
void need_parameters(const Computation& callee, std::span<const Shape> want, std::string_view role);
void need_result(const Computation& callee, const Shape& want, std::string_view role);
/// A reducer over element types: scalars t0..tn-1 twice, returns those scalars (a tuple if n > 1).
void need_reducer(const Computation& callee, std::span<const DType> types, std::string_view role);

// ---- attributes kept as text ----

/// Text of an attribute of `attrs.other`; empty if absent.
std::string_view other(const Attributes& attrs, std::string_view name);
int64_t other_int(const Attributes& attrs, std::string_view name, int64_t otherwise);
/// `{0,1}` -> numbers. Anything that is not a digit or a minus separates.
std::vector<int64_t> numbers(std::string_view text);

// ---- the rules, by file ----

// elementwise_rules.cc
Shape elementwise(const Use&);
Shape compare(const Use&);
Shape select(const Use&);
Shape clamp(const Use&);
Shape convert(const Use&);
Shape bitcast_convert(const Use&);
Shape reduce_precision(const Use&);
Shape stochastic_convert(const Use&);
Shape map(const Use&);
Shape iota(const Use&);

// movement_rules.cc
Shape copy(const Use&);
Shape bitcast(const Use&);
Shape broadcast(const Use&);
Shape reshape(const Use&);
Shape dynamic_reshape(const Use&);
Shape transpose(const Use&);
Shape reverse(const Use&);
Shape concatenate(const Use&);
Shape slice(const Use&);
Shape dynamic_slice(const Use&);
Shape dynamic_update_slice(const Use&);
Shape pad(const Use&);
Shape get_dimension_size(const Use&);
Shape set_dimension_size(const Use&);

// gather_rules.cc
Shape gather(const Use&);
Shape scatter(const Use&);

// reduction_rules.cc
Shape reduce(const Use&);
Shape reduce_window(const Use&);
Shape select_and_scatter(const Use&);
Shape scan(const Use&);
Shape sort(const Use&);
Shape topk(const Use&);

// contraction_rules.cc
Shape dot(const Use&);
Shape ragged_dot(const Use&);
Shape scaled_dot(const Use&);
Shape convolution(const Use&);

// library_rules.cc
Shape fft(const Use&);
Shape cholesky(const Use&);
Shape triangular_solve(const Use&);
Shape batch_norm(const Use&);
Shape rng(const Use&);
Shape rng_bit_generator(const Use&);
Shape rng_state(const Use&);

// control_rules.cc
Shape given(const Use&);  ///< parameter, constant: what is declared
Shape tuple(const Use&);
Shape get_tuple_element(const Use&);
Shape call(const Use&);
Shape fusion(const Use&);
Shape while_loop(const Use&);
Shape conditional(const Use&);
Shape custom_call(const Use&);
Shape identity(const Use&);

// effect_rules.cc
Shape after_all(const Use&);
Shape add_dependency(const Use&);
Shape device_id(const Use&);
Shape all_reduce(const Use&);
Shape all_gather(const Use&);
Shape all_gather_start(const Use&);
Shape reduce_scatter(const Use&);
Shape all_to_all(const Use&);
Shape ragged_all_to_all(const Use&);
Shape collective_broadcast(const Use&);
Shape collective_permute(const Use&);
Shape collective_permute_start(const Use&);
Shape done_of_second(const Use&);  ///< all-gather-done, collective-permute-done, async-done
Shape send(const Use&);
Shape send_done(const Use&);
Shape recv(const Use&);
Shape recv_done(const Use&);
Shape infeed(const Use&);
Shape outfeed(const Use&);
Shape async_start(const Use&);
Shape async_update(const Use&);
Shape copy_start(const Use&);
Shape copy_done(const Use&);

}  // namespace hlojit::rules

/// Shapes in messages: HLO text without layouts, cut where a message would no longer be a line.
template <>
struct fmt::formatter<hlojit::Shape> : fmt::formatter<std::string_view> {
  template <class Context>
  auto format(const hlojit::Shape& shape, Context& context) const {
    constexpr size_t kMost = 120;
    std::string text = shape.to_string(false);
    if (text.size() > kMost) text.replace(kMost, text.npos, "...");
    return fmt::formatter<std::string_view>::format(text, context);
  }
};

/// Lists of numbers in messages: `{0,1}`.
template <>
struct fmt::formatter<std::span<const int64_t>> : fmt::formatter<std::string_view> {
  template <class Context>
  auto format(std::span<const int64_t> list, Context& context) const {
    return fmt::formatter<std::string_view>::format(fmt::format("{{{}}}", fmt::join(list.begin(), list.end(), ",")),
                                                    context);
  }
};
