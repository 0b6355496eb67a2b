// The words that rule functions are written in: each checks one thing and names what it found.
#include "compiler/verify/rules.h"

#include <algorithm>
#include <charconv>
#include <set>

namespace hlojit::rules {

void fail(RuleId rule, std::string message, std::string details) {
  Diagnostic d;
  d.rule = std::string(std::string_view(rule));
  d.message = std::move(message);
  d.details = std::move(details);
  throw Error(ErrorKind::kInvalid, std::vector<Diagnostic>{std::move(d)});
}

// ---- operands
// ------------------------------------------------------------------------------------

void need_count(const Use& use, int64_t n) {
  need(use.count() == n, "operand-count", "{} takes {} operand{}, not {}", op_name(use.opcode), n, n == 1 ? "" : "s",
       use.count());
}

const Shape& array(const Use& use, size_t i) {
  const Shape& shape = use.operand(i);
  need(shape.is_array(), "operand-kind", "operand {} of {} must be an array, not {}", i, op_name(use.opcode), shape);
  return shape;
}

const Shape& scalar(const Use& use, size_t i) {
  const Shape& shape = use.operand(i);
  need(shape.is_scalar(), "operand-kind", "operand {} of {} must be a scalar, not {}", i, op_name(use.opcode), shape);
  return shape;
}

void need_token(const Use& use, size_t i) {
  const Shape& shape = use.operand(i);
  need(shape.is_token(), "operand-kind", "operand {} of {} must be a token, not {}", i, op_name(use.opcode), shape);
}

void need_arrays(const Use& use) {
  for (size_t i = 0; i < use.operands.size(); ++i) array(use, i);
}

bool same_type_ignoring_precision(DType a, DType b) { return a == b || (is_float(a) && is_float(b)); }

void need_same_type(const Use& use, size_t i, size_t j) {
  DType a = use.operand(i).type, b = use.operand(j).type;
  if (a == b) return;
  fail("operand-types-equal",
       fmt::format("operands {} and {} of {} have different element types, {} and {}", i, j, op_name(use.opcode),
                   dtype_name(a), dtype_name(b)),
       "suggestion: convert one of them");
}

void need_same_type_ignoring_precision(const Use& use, size_t i, size_t j) {
  if (!same_type_ignoring_precision(use.operand(i).type, use.operand(j).type)) {
    need_same_type(use, i, j);
  }
}

void need_same_sizes(const Use& use, size_t i, size_t j) {
  const Shape &a = use.operand(i), &b = use.operand(j);
  if (a.dims == b.dims) return;
  bool scalar = a.dims.empty() || b.dims.empty();
  fail("operand-sizes",
       fmt::format("operands {} and {} of {} have different sizes, {} and {}", i, j, op_name(use.opcode), list(a.dims),
                   list(b.dims)),
       fmt::format("suggestion: broadcast operand {} to {} first{}", a.dims.empty() ? i : j,
                   list(a.dims.empty() ? b.dims : a.dims), scalar ? ", dimensions={}" : ""));
}

uint8_t class_bit(DType type) {
  switch (dtype_class(type)) {
    case DTypeClass::kPred: return kPred;
    case DTypeClass::kSigned: return kSigned;
    case DTypeClass::kUnsigned: return kUnsigned;
    case DTypeClass::kFloat: return kFloat;
    case DTypeClass::kComplex: return kComplex;
    case DTypeClass::kNone: return 0;
  }
  return 0;
}

std::string describe_classes(uint8_t classes) {
  struct Word {
    uint8_t bits;
    std::string_view word;
  };
  std::vector<std::string_view> words;
  for (auto [bits, word] : {Word{kPred, "pred"}, Word{kInt, "integer"}, Word{kSigned, "signed integer"},
                            Word{kUnsigned, "unsigned integer"}, Word{kFloat, "float"}, Word{kComplex, "complex"}}) {
    if ((classes & bits) != bits) continue;
    words.push_back(word);
    classes &= ~bits;
  }
  std::string text;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? " or " : ", ";
    text += words[i];
  }
  return text;
}

void need_type(const Use& use, size_t i, uint8_t classes) {
  DType type = array(use, i).type;
  if (class_bit(type) & classes) return;
  fail("operand-type", fmt::format("{} of {} is not defined: operand {} must be {}", op_name(use.opcode),
                                   dtype_name(type), i, describe_classes(classes)));
}

const Shape* subshape(const Shape& shape, const Ints& index) {
  const Shape* at = &shape;
  for (int64_t i : index) {
    if (!at->is_tuple() || i < 0 || i >= static_cast<int64_t>(at->elements.size())) return nullptr;
    at = &at->elements[i];
  }
  return at;
}

Difference difference(const Shape& have, const Shape& want) {
  Difference d{&have, &want, {}};
  while (d.have->is_tuple() && d.want->is_tuple() && d.have->elements.size() == d.want->elements.size()) {
    size_t i = 0, n = d.have->elements.size();
    while (i < n && compatible(d.have->elements[i], d.want->elements[i])) ++i;
    if (i == n) break;
    d.index.push_back(static_cast<int64_t>(i));
    d = {&d.have->elements[i], &d.want->elements[i], std::move(d.index)};
  }
  return d;
}

std::string Difference::place() const { return index.empty() ? "" : fmt::format(" at element {}", list(index)); }

// ---- declared results
// ----------------------------------------------------------------------------

const Shape& declared_array(const Use& use) {
  need(use.declared->is_array(), "result-shape", "the result of {} must be an array, not {}", op_name(use.opcode),
       *use.declared);
  return *use.declared;
}

void need_declared_sizes(const Use& use, std::span<const int64_t> dims) {
  const Shape& result = declared_array(use);
  if (std::ranges::equal(result.dims, dims)) return;
  fail("result-shape", fmt::format("{} is declared {} but has sizes {}", op_name(use.opcode), result, dims),
       fmt::format("expected: {}", Shape::array(result.type, {dims.begin(), dims.end()})));
}

Shape one_or_tuple(std::vector<Shape> shapes) {
  return shapes.size() == 1 ? std::move(shapes[0]) : Shape::tuple(std::move(shapes));
}

// ---- dimension numbers
// ---------------------------------------------------------------------------

void need_dimensions(std::span<const int64_t> dims, int64_t rank, std::string_view what) {
  std::vector<bool> seen(static_cast<size_t>(rank));
  for (int64_t d : dims) {
    need(d >= 0 && d < rank, "dimension-range", "{} names dimension {} of an array of rank {}", what, d, rank);
    need(!seen[d], "dimension-unique", "{} names dimension {} twice", what, d);
    seen[d] = true;
  }
}

void need_ascending(std::span<const int64_t> dims, std::string_view what) {
  for (size_t i = 1; i < dims.size(); ++i) {
    need(dims[i - 1] != dims[i], "dimension-unique", "{} names dimension {} twice", what, dims[i]);
    need(dims[i - 1] < dims[i], "dimension-order", "{} must ascend: {}", what, dims);
  }
}

int64_t single_dimension(const Use& use, int64_t rank, std::string_view what) {
  const Ints& dims = use.attrs.dimensions;
  need(dims.size() == 1, "dimension-count", "{} takes one dimension in {}, not {}", op_name(use.opcode), what,
       dims.size());
  need_dimensions(dims, rank, what);
  return dims[0];
}

// ---- arithmetic on sizes
// -------------------------------------------------------------------------

int64_t add(int64_t a, int64_t b) {
  int64_t sum;
  need(!__builtin_add_overflow(a, b, &sum), "size-overflow", "{} + {} exceeds 63 bits", a, b);
  return sum;
}

int64_t mul(int64_t a, int64_t b) {
  int64_t product;
  need(!__builtin_mul_overflow(a, b, &product), "size-overflow", "{} * {} exceeds 63 bits", a, b);
  return product;
}

std::vector<int64_t> window_output(std::span<const int64_t> dims, std::span<const WindowDim> window) {
  need(window.size() == dims.size(), "window", "the window has {} dimensions, the operand has {}", window.size(),
       dims.size());
  std::vector<int64_t> out;
  out.reserve(dims.size());
  for (size_t i = 0; i < dims.size(); ++i) {
    const WindowDim& w = window[i];
    for (auto [value, what] : {std::pair(w.size, "size"),
                               {w.stride, "stride"},
                               {w.lhs_dilate, "lhs_dilate"},
                               {w.rhs_dilate, "rhs_dilate"}}) {
      need(value >= 1, "window", "{} of window dimension {} must be at least 1, not {}", what, i, value);
    }
    auto dilated = [](int64_t n, int64_t by) { return n == 0 ? 0 : add(mul(n - 1, by), 1); };
    int64_t padded = add(add(w.pad_low, dilated(dims[i], w.lhs_dilate)), w.pad_high);
    int64_t size = dilated(w.size, w.rhs_dilate);
    out.push_back(padded < size || padded <= 0 ? 0 : (padded - size) / w.stride + 1);
  }
  return out;
}

// ---- called computations
// -------------------------------------------------------------------------

void need_called(const Use& use, size_t n) {
  need(use.called.size() == n, "called-count", "{} calls {} computation{}, not {}", op_name(use.opcode), n,
       n == 1 ? "" : "s", use.called.size());
}

void need_parameters(const Computation& callee, std::span<const Shape> want, std::string_view role) {
  const auto& have = callee.parameters();
  need(have.size() == want.size(), "called-parameters", "{} computation {} takes {} parameter{}, not {}", role,
       callee.name, have.size(), have.size() == 1 ? "" : "s", want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    if (compatible(have[i]->shape, want[i])) continue;
    Difference d = difference(have[i]->shape, want[i]);
    fail("called-parameters", fmt::format("parameter {} of {} computation {} is {} but is given {}{}", i, role,
                                          callee.name, *d.have, *d.want, d.place()));
  }
}

void need_result(const Computation& callee, const Shape& want, std::string_view role) {
  const Shape& have = callee.root()->shape;
  if (compatible(have, want)) return;
  Difference d = difference(have, want);
  fail("called-result",
       fmt::format("{} computation {} returns {}{}, not {}", role, callee.name, *d.have, d.place(), *d.want));
}

void need_reducer(const Computation& callee, std::span<const DType> types, std::string_view role, bool alone) {
  std::vector<Shape> scalars;
  scalars.reserve(2 * types.size());
  for (DType t : types) scalars.push_back(Shape::scalar(t));
  std::vector<Shape> parameters = scalars;
  parameters.insert(parameters.end(), scalars.begin(), scalars.end());
  need_parameters(callee, parameters, role);
  const bool is_tuple = !alone && callee.root()->shape.is_tuple();
  need_result(callee, is_tuple ? Shape::tuple(std::move(scalars)) : one_or_tuple(std::move(scalars)), role);
}

void need_aliases(const Use& use) {
  std::set<Ints> seen;
  for (const Alias& a : use.attrs.output_to_operand_aliasing) {
    const Shape* out = subshape(*use.declared, a.output_index);
    need(out, "output-aliasing", "there is no output {} in {}", list(a.output_index), *use.declared);
    need(a.operand >= 0 && a.operand < use.count(), "output-aliasing", "output {} is aliased with operand {} of {}",
         list(a.output_index), a.operand, use.count());
    const Shape* in = subshape(use.operand(a.operand), a.operand_index);
    need(in, "output-aliasing", "operand {} has no element {}: it is {}", a.operand, list(a.operand_index),
         use.operand(a.operand));
    need(compatible(*in, *out), "output-aliasing", "output {} is {}, its operand {} is {}", list(a.output_index), *out,
         a.operand, *in);
    need(seen.insert(a.output_index).second, "output-aliasing", "output {} is aliased twice", list(a.output_index));
  }
}

// ---- attributes kept as text
// ---------------------------------------------------------------------

}  // namespace hlojit::rules
