// Reading is by element type into the final storage: constants of millions of elements cost one
// from_chars each and one allocation in all. The allocation is made only when the text is long
// enough to hold that many elements, so that a short text cannot ask for terabytes.
#include "compiler/text/literal_text.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>
#include <type_traits>

#include "compiler/ir/narrow.h"

namespace hlojit {
namespace {

constexpr std::string_view kRange = "literal-range";

// Where a float type keeps its NaN payload; none for formats with a single NaN code.
struct NanBits {
  int mantissa = 0;
  uint64_t exponent = 0;
  int sign_shift = 0;
};

std::optional<NanBits> nan_bits(DType type) {
  switch (type) {
    case DType::kF64: return NanBits{52, uint64_t{0x7FF} << 52, 63};
    case DType::kF32: return NanBits{23, 0x7F800000, 31};
    case DType::kF16: return NanBits{10, 0x7C00, 15};
    case DType::kBF16: return NanBits{7, 0x7F80, 15};
    case DType::kF8E5M2: return NanBits{2, 0x7C, 7};
    case DType::kF8E4M3: return NanBits{3, 0x78, 7};
    case DType::kF8E3M4: return NanBits{4, 0x70, 7};
    default: return std::nullopt;
  }
}

uint64_t load_bits(const std::byte* at, DType type) {
  uint64_t bits = 0;  // little-endian
  std::memcpy(&bits, at, dtype_bytes(type));
  return bits;
}

void store_bits(std::byte* at, DType type, uint64_t bits) { std::memcpy(at, &bits, dtype_bytes(type)); }

// ---- reading --------------------------------------------------------------------------------

class Reader {
 public:
  Reader(Cursor& in, const ElidedValues& elided)
      : in_(in), end_(in.text().data() + in.text().size()), elided_(elided) {}

  Literal literal(const Shape& shape, int depth) {
    if (depth > kMaxNesting) in_.fail(in_.pos(), "nesting", "literal nested too deeply");
    if (shape.is_tuple()) return tuple(shape, depth);
    if (!shape.is_array()) {
      in_.fail(in_.pos(), "literal-type", "no literal can have the shape " + shape.to_string());
    }
    if (shape.rank() > kMaxNesting) in_.fail(in_.pos(), "nesting", "literal of too many dimensions");
    if (size_t start = in_.pos(); !shape.dims.empty() && in_.accept('{')) {
      if (in_.accept("...")) return elided(shape, start);
      in_.seek(start);
    }
    if (!shape.dims.empty()) check_size(shape);
    Literal made(shape);
    at_ = made.bytes().data();
    if (!first_element_only(shape)) array(shape, 0);
    return made;
  }

 private:
  Literal tuple(const Shape& shape, int depth) {
    Literal made = Literal::tuple({});
    std::vector<Literal> elements;
    in_.expect('(', "before a tuple's elements");
    for (size_t i = 0; i < shape.elements.size(); ++i) {
      if (i > 0) in_.expect(',', "between a tuple's elements");
      elements.push_back(literal(shape.elements[i], depth + 1));
    }
    in_.expect(')', "after a tuple's elements");
    return Literal::tuple(std::move(elements));
  }

  Literal elided(const Shape& shape, size_t start) {
    if (!elided_) {
      in_.fail(start, "literal-elided", "the values of this constant were elided ({...}) when it was printed",
               "print the module again with large constants in full, or ask for values to be made up (--elided)");
    }
    in_.expect('}', "after elided values");
    return elided_(shape);
  }

  // The text must be able to hold the elements before memory is taken for them; where a bare scalar
  // stands for an array there is a bound instead.
  static constexpr size_t kMostUnwritten = size_t{1} << 26;
  void check_size(const Shape& shape) {
    in_.skip();
    size_t start = in_.pos();
    size_t left = in_.text().size() - start;
    if (in_.peek() != '{') left = std::max(left, kMostUnwritten);
    size_t count = 1;
    for (int64_t d : shape.dims) {
      if (d == 0) return;
    }
    for (int64_t d : shape.dims) {
      if (d < 0 || __builtin_mul_overflow(count, static_cast<size_t>(d), &count) || count > left) {
        in_.fail(start, "literal-count", "too few values for a constant of shape " + shape.to_string(false));
      }
    }
  }

  // As XLA has it: a bare scalar is the first element of an array, all others are zero.
  bool first_element_only(const Shape& shape) {
    if (shape.dims.empty() || is_complex(shape.type) || in_.peek() == '{') return false;
    if (std::ranges::find(shape.dims, 0) != shape.dims.end()) return false;
    element(shape.type);
    return true;
  }

  // Braces count the values; commas are read as XLA reads them, as space: `{1, 2,}`, `{{1 2} {3 4}}`.
  void array(const Shape& shape, size_t dim) {
    if (dim == shape.dims.size()) return element(shape.type);
    in_.expect('{', "before the values of dimension " + std::to_string(dim));
    int64_t size = shape.dims[dim];
    bool last = dim + 1 == shape.dims.size();
    for (int64_t i = 0; i < size; ++i) {
      skip_commas();
      if (in_.peek() == '}') count_error(shape, dim, "only " + std::to_string(i));
      if (last) {
        element(shape.type);
      } else {
        array(shape, dim + 1);
      }
    }
    skip_commas();
    if (in_.accept('}')) return;
    if (at_value()) count_error(shape, dim, "more than " + std::to_string(size));
    in_.fail_expected("'}' after the values of dimension " + std::to_string(dim));
  }

  void skip_commas() {
    while (in_.accept(',')) {
    }
  }

  bool at_value() {
    char next = in_.peek();
    return std::string_view("0123456789.+-({").contains(next) || is_identifier_start(next);
  }

  [[noreturn]] void count_error(const Shape& shape, size_t dim, const std::string& found) {
    in_.fail(in_.pos(), "literal-count", "dimension " + std::to_string(dim) + " has " + found + " values",
             "shape " + shape.to_string(false));
  }

  void element(DType type) {
    in_.skip();
    switch (dtype_class(type)) {
      case DTypeClass::kPred: return pred();
      case DTypeClass::kSigned: return integer(type, true);
      case DTypeClass::kUnsigned: return integer(type, false);
      case DTypeClass::kComplex: return complex(component_type(type));
      default: return real(type);
    }
  }

  const char* here() const { return in_.text().data() + in_.pos(); }
  void advance_to(const char* p) { in_.seek(p - in_.text().data()); }
  bool next_is(std::string_view word) { return in_.text().substr(in_.pos()).starts_with(word); }

  void pred() {
    bool value;
    if (is_identifier_start(in_.peek())) {
      value = in_.boolean();
    } else {
      value = in_.integer("a value of type pred") != 0;
    }
    *at_++ = static_cast<std::byte>(value);
  }

  void integer(DType type, bool is_signed_type) {
    int bits = dtype_bits(type);
    const char* first = here();
    bool fits;
    const char* after;
    uint64_t value = 0;
    if (is_signed_type || (first < end_ && *first == '-')) {
      int64_t wide = 0;
      auto [end, error] = std::from_chars(first, end_, wide);
      after = end;
      int64_t high = is_signed_type ? std::numeric_limits<int64_t>::max() >> (64 - bits) : 0;
      int64_t low = is_signed_type ? -high - 1 : 0;
      // u64 wraps, as in XLA; the narrower ones are checked.
      fits = error == std::errc{} && ((low <= wide && wide <= high) || (!is_signed_type && bits == 64));
      if (error == std::errc::invalid_argument) after = nullptr;
      value = static_cast<uint64_t>(wide);
    } else {
      auto [end, error] = std::from_chars(first, end_, value);
      after = end;
      fits = error == std::errc{} && (bits == 64 || value >> bits == 0);
      if (error == std::errc::invalid_argument) after = nullptr;
    }
    std::string name(dtype_name(type));
    if (!after) in_.fail_expected("an integer, as " + name);
    if (after < end_ && (*after == '.' || *after == 'e' || *after == 'E')) {
      in_.fail(in_.pos(), "literal-type", "a value of type " + name + " is an integer");
    }
    if (!fits) {
      in_.fail(in_.pos(), kRange, std::string(first, after) + " is out of the range of " + name);
    }
    store_bits(at_, type, value);
    at_ += dtype_bytes(type);
    advance_to(after);
  }

  void real(DType type) {
    size_t start = in_.pos();
    const char* first = here();
    bool negative = first < end_ && *first == '-';
    if (negative) in_.seek(start + 1);
    if (next_is("inf")) {
      in_.seek(in_.pos() + 3);
      infinity(type, negative);
    } else if (next_is("nan")) {
      in_.seek(in_.pos() + 3);
      nan(type, negative);
    } else {
      in_.seek(start);
      if (type == DType::kF32) {
        number<float>(type);
      } else {
        number<double>(type);
      }
    }
    at_ += dtype_bytes(type);
  }

  void infinity(DType type, bool negative) {
    double value = negative ? -HUGE_VAL : HUGE_VAL;
    store_value(type, value);
  }

  void nan(DType type, bool negative) {
    std::optional<NanBits> where = nan_bits(type);
    bool payload_given = next_is("(");
    if (!where) {
      if (payload_given) {
        in_.fail(in_.pos(), kRange, "NaNs of " + std::string(dtype_name(type)) + " have no payload");
      }
      if (type == DType::kF4E2M1FN) in_.fail(in_.pos() - 3, kRange, "f4e2m1fn has no NaN");
      return store_value(type, std::copysign(std::nan(""), negative ? -1.0 : 1.0));
    }
    uint64_t mask = (uint64_t{1} << where->mantissa) - 1;
    uint64_t payload = uint64_t{1} << (where->mantissa - 1);
    if (payload_given) {
      size_t start = in_.pos();
      in_.seek(start + 1);
      if (!next_is("0x")) in_.fail(in_.pos(), "syntax", "expected a payload such as 0x7");
      const char* first = here() + 2;
      auto [end, error] = std::from_chars(first, end_, payload, 16);
      if (error != std::errc{} || payload == 0 || payload > mask) {
        in_.fail(start + 1, kRange,
                 "a NaN payload of " + std::string(dtype_name(type)) + " is from 1 to its mantissa mask");
      }
      advance_to(end);
      in_.expect(')', "after a NaN payload");
    }
    store_bits(at_, type, where->exponent | payload | uint64_t{negative} << where->sign_shift);
  }

  template <class T>
  void number(DType type) {
    const char* first = here();
    T value = 0;
    auto [end, error] = std::from_chars(first, end_, value);
    if (error == std::errc::invalid_argument) {
      in_.fail_expected("a number, as " + std::string(dtype_name(type)));
    }
    std::string digits;
    if (error == std::errc::result_out_of_range) {
      // from_chars does not say whether it is too large or too small.
      digits.assign(first, end);
      value = std::is_same_v<T, float> ? std::strtof(digits.c_str(), nullptr)
                                       : static_cast<T>(std::strtod(digits.c_str(), nullptr));
    }
    bool fits = std::isfinite(value);
    if constexpr (std::is_same_v<T, float>) {
      std::memcpy(at_, &value, sizeof value);
    } else {
      store_value(type, value);
      if (fits && type != DType::kF64) fits = narrow_fits(type, value);
    }
    if (!fits) {
      in_.fail(in_.pos(), kRange, std::string(first, end) + " is out of the range of " + std::string(dtype_name(type)));
    }
    advance_to(end);
  }

  bool narrow_fits(DType type, double value) {
    if (type == DType::kF4E2M1FN) return std::fabs(value) < 7;  // 7 would round to 8
    return std::isfinite(narrow_to_double(type, static_cast<uint32_t>(load_bits(at_, type))));
  }

  void store_value(DType type, double value) {
    if (type == DType::kF64) return store_bits(at_, type, std::bit_cast<uint64_t>(value));
    if (type == DType::kF32) {
      return store_bits(at_, type, std::bit_cast<uint32_t>(static_cast<float>(value)));
    }
    store_bits(at_, type, narrow_from_double(type, value));
  }

  // `(re, im)`, or a real number for an imaginary part of zero.
  void complex(DType part) {
    if (!in_.accept('(')) {
      real(part);
      store_value(part, 0);
      at_ += dtype_bytes(part);
      return;
    }
    in_.skip();
    real(part);
    in_.expect(',', "between real and imaginary part");
    in_.skip();
    real(part);
    in_.expect(')', "after a complex value");
  }

  Cursor& in_;
  const char* end_;
  const ElidedValues& elided_;
  std::byte* at_ = nullptr;
};

// ---- printing -------------------------------------------------------------------------------

void append_chars(std::string& out, auto... value) {
  char digits[40];
  auto [end, error] = std::to_chars(digits, digits + sizeof digits, value...);
  out.append(digits, end);
}

void append_nan(DType type, uint64_t bits, bool negative, std::string& out) {
  out += negative ? "-nan" : "nan";
  if (std::optional<NanBits> where = nan_bits(type)) {
    uint64_t payload = bits & ((uint64_t{1} << where->mantissa) - 1);
    if (payload == uint64_t{1} << (where->mantissa - 1)) return;
    out += "(0x";
    append_chars(out, payload, 16);
    out += ')';
  }
}

void append_real(DType type, const std::byte* at, std::string& out) {
  uint64_t bits = load_bits(at, type);
  double value = type == DType::kF64   ? std::bit_cast<double>(bits)
                 : type == DType::kF32 ? std::bit_cast<float>(static_cast<uint32_t>(bits))
                                       : narrow_to_double(type, static_cast<uint32_t>(bits));
  // The sign from the bits: widening a NaN need not keep it in all formats.
  if (std::isnan(value)) {
    bool ieee = nan_bits(type) || type == DType::kF8E4M3FN;
    return append_nan(type, bits, ieee && bits >> (dtype_bits(type) - 1), out);
  }
  if (std::isinf(value)) {
    out += value < 0 ? "-inf" : "inf";
  } else if (type == DType::kF64) {
    append_chars(out, value);
  } else if (type == DType::kF32) {
    append_chars(out, static_cast<float>(value));
  } else if (std::fabs(value) < 1e6 && value == std::trunc(value)) {
    append_chars(out, value, std::chars_format::fixed);
  } else {
    // At most five digits tell f16 values apart, so the search is short.
    for (int precision = 1;; ++precision) {
      char digits[40];
      auto [end, error] = std::to_chars(digits, digits + sizeof digits, value, std::chars_format::general, precision);
      double back = 0;
      std::from_chars(digits, end, back);
      if (precision == 17 || narrow_from_double(type, back) == bits) {
        out.append(digits, end);
        return;
      }
    }
  }
}

void append_element(const Literal& literal, int64_t i, std::string& out) {
  const Shape& shape = literal.shape();
  DType type = shape.type;
  const std::byte* at = literal.bytes().data() + i * dtype_bytes(type);
  switch (dtype_class(type)) {
    case DTypeClass::kPred:
      if (shape.dims.empty()) {
        out += literal.as_int(i) ? "true" : "false";
      } else {
        out += literal.as_int(i) ? '1' : '0';
      }
      break;
    case DTypeClass::kSigned: append_chars(out, literal.as_int(i)); break;
    case DTypeClass::kUnsigned: append_chars(out, static_cast<uint64_t>(literal.as_int(i))); break;
    case DTypeClass::kComplex: {
      DType part = component_type(type);
      out += '(';
      append_real(part, at, out);
      out += ", ";
      append_real(part, at + dtype_bytes(part), out);
      out += ')';
      break;
    }
    default: append_real(type, at, out);
  }
}

// Matrices and more print as `{ { 1, 2 }, { 3, 4 } }`, vectors as `{1, 2}`.
void append_array(const Literal& literal, size_t dim, int64_t& next, std::string& out) {
  const std::vector<int64_t>& dims = literal.shape().dims;
  if (dim == dims.size()) return append_element(literal, next++, out);
  if (dims[dim] == 0) {
    out += "{}";
    return;
  }
  bool wide = dims.size() > 1;
  out += wide ? "{ " : "{";
  for (int64_t i = 0; i < dims[dim]; ++i) {
    if (i > 0) out += ", ";
    append_array(literal, dim + 1, next, out);
  }
  out += wide ? " }" : "}";
}

}  // namespace

void append_literal(const Literal& literal, std::string& out) {
  if (literal.shape().is_tuple()) {
    out += '(';
    for (size_t i = 0; i < literal.elements().size(); ++i) {
      if (i > 0) out += ", ";
      append_literal(literal.elements()[i], out);
    }
    out += ')';
    return;
  }
  int64_t next = 0;
  append_array(literal, 0, next, out);
}

std::string literal_to_string(const Literal& literal) {
  std::string out;
  append_literal(literal, out);
  return out;
}

Literal read_literal(Cursor& in, const Shape& shape, const ElidedValues& elided) {
  return Reader(in, elided).literal(shape, 0);
}

void append_shaped_literal(const Literal& literal, std::string& out) {
  if (!literal.shape().is_tuple()) {
    out += literal.shape().to_string() + ' ';
    append_literal(literal, out);
    return;
  }
  out += "( ";
  for (const Literal& e : literal.elements()) {
    if (&e != literal.elements().data()) out += ", ";
    append_shaped_literal(e, out);
  }
  out += " )";
}

Literal read_shaped_literal(Cursor& in, int depth) {
  if (depth > kMaxNesting) in.fail(in.pos(), "nesting", "literal nested too deeply");
  if (!in.accept('(')) {
    const Shape shape = in.shape();
    return read_literal(in, shape);
  }
  std::vector<Literal> elements;
  while (!in.accept(')')) {
    if (!elements.empty()) in.expect(',', "between a tuple's elements");
    elements.push_back(read_shaped_literal(in, depth + 1));
  }
  return Literal::tuple(std::move(elements));
}

Literal parse_literal(const Shape& shape, std::string_view text) {
  Cursor in(text);
  Literal made = read_literal(in, shape);
  if (!in.done()) in.fail_expected("the end of the literal");
  return made;
}

}  // namespace hlojit
