// What rule functions share: one use of an op as they see it, and the words they are written in.
//
// A rule function is given an op's operands and attributes and returns the shape of its result, or
// throws at the first thing that does not fit. Each op has one, listed at the end of its file.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "compiler/ir/module.h"
#include "compiler/ir/text_attributes.h"
#include "compiler/verify/rule_list.h"
#include "layout/lists.h"
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
/// output_to_operand_aliasing names parts of the result and of operands that exist and are alike.
void need_aliases(const Use& use);
/// A reducer over element types: scalars t0..tn-1 twice, returns those scalars (a tuple if n > 1, and unless `alone` it
/// may be one of a single scalar, too).
void need_reducer(const Computation& callee, std::span<const DType> types, std::string_view role, bool alone = false);

// ---- the rules, by file ----

/// Whether text may leave out the result shape: kOmit where it can be inferred, kDeclare where HLO asks for
/// it (also of some ops whose sizes do follow from the attributes, such as slice).
enum class ResultShape : uint8_t { kOmit, kDeclare };

/// An op, its rule, and the attributes it takes besides those that all do: their keys in text/attributes.cc in
/// printing order, `!` behind those that must be given.
struct Entry {
  Opcode opcode;
  Rule rule;
  std::string_view attributes = {};
  ResultShape result = ResultShape::kOmit;
};

/// The ops whose rules a file holds.
std::span<const Entry> elementwise_rules();
std::span<const Entry> movement_rules();
std::span<const Entry> gather_rules();
std::span<const Entry> reduction_rules();
std::span<const Entry> contraction_rules();
std::span<const Entry> library_rules();
std::span<const Entry> control_rules();
std::span<const Entry> effect_rules();

/// The rule of ops that only differ in element types.
Shape elementwise(const Use&);

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
