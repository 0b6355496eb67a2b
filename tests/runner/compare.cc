// Element by element, in f64: exact for every type up to 53 bits; wider integers compare as bits.
#include "tests/runner/compare.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>

#include "compiler/text/literal_text.h"

namespace hlojit::test {
namespace {

uint64_t mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

// Distance between neighbours of x in a float type.
double spacing(DType type, double x) {
  struct Format {
    int mantissa, lowest;
  };
  Format f{23, -126};
  switch (type) {
    case DType::kF64:
    case DType::kC128: f = {52, -1022}; break;
    case DType::kF16: f = {10, -14}; break;
    case DType::kBF16: f = {7, -126}; break;
    case DType::kF8E5M2: f = {2, -14}; break;
    case DType::kF8E4M3:
    case DType::kF8E4M3FN: f = {3, -6}; break;
    default: break;
  }
  const int exponent = x == 0 || !std::isfinite(x) ? f.lowest : std::max(std::ilogb(x), f.lowest);
  return std::ldexp(1.0, exponent - f.mantissa);
}

bool same_part(double expected, double actual, bool sign_matters, DType type, const Tolerance& tolerance,
               double scale) {
  if (std::isnan(expected) || std::isnan(actual)) return std::isnan(expected) && std::isnan(actual);
  if (expected == actual) {
    return !sign_matters || std::signbit(expected) == std::signbit(actual);
  }
  if (tolerance.exact() || std::isinf(expected) || std::isinf(actual)) return false;
  const double distance = std::fabs(expected - actual);
  if (tolerance.ulp && distance <= *tolerance.ulp * spacing(type, expected)) return true;
  if (tolerance.golden && distance <= tolerance.golden->relative * std::fabs(expected) + tolerance.golden->absolute) {
    return true;
  }
  return tolerance.relative && distance <= *tolerance.relative * std::max(std::fabs(expected), scale);
}

double root_mean_square(const Literal& literal) {
  double sum = 0;
  const int64_t n = literal.shape().element_count();
  int64_t finite = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double magnitude = std::abs(literal.as_complex(i));
    if (!std::isfinite(magnitude)) continue;
    sum += magnitude * magnitude;
    ++finite;
  }
  return finite == 0 ? 0 : std::sqrt(sum / static_cast<double>(finite));
}

std::string element_text(const Literal& literal, int64_t i) {
  Literal one(Shape::scalar(literal.shape().type));
  const size_t width = one.bytes().size();
  std::memcpy(one.bytes().data(), literal.bytes().data() + i * width, width);
  return literal_to_string(one);
}

}  // namespace

Tolerance usual_tolerance(DType type) {
  switch (type) {
    case DType::kF64:
    case DType::kC128: return {.ulp = {}, .relative = 1e-11, .golden = {}};
    case DType::kF32:
    case DType::kC64: return {.ulp = {}, .relative = 2e-5, .golden = {}};
    case DType::kF16: return {.ulp = {}, .relative = 4e-3, .golden = {}};
    case DType::kBF16: return {.ulp = {}, .relative = 3e-2, .golden = {}};
    default: return is_float(type) ? Tolerance{.ulp = {}, .relative = 0.3, .golden = {}} : Tolerance{};
  }
}

std::string difference(const Literal& expected, const Literal& actual, const Tolerance& tolerance) {
  if (!compatible(expected.shape(), actual.shape())) {
    return "expected shape " + expected.shape().to_string(false) + ", got " + actual.shape().to_string(false);
  }
  const DType type = expected.shape().type;
  const int64_t n = expected.shape().element_count();
  const bool floating = is_float(type) || is_complex(type);
  const double scale = floating && tolerance.relative ? root_mean_square(expected) : 0;
  int64_t wrong = 0, first = -1;
  for (int64_t i = 0; i < n; ++i) {
    bool same;
    if (floating) {
      const auto e = expected.as_complex(i), a = actual.as_complex(i);
      const bool sign = tolerance.exact();
      same = same_part(e.real(), a.real(), sign, type, tolerance, scale) &&
             same_part(e.imag(), a.imag(), sign, type, tolerance, scale);
    } else {
      same = expected.as_int(i) == actual.as_int(i);
    }
    if (same) continue;
    if (wrong++ == 0) first = i;
  }
  if (wrong == 0) return {};
  std::string index;
  int64_t rest = first;
  for (size_t d = expected.shape().dims.size(); d-- > 0;) {
    const int64_t size = expected.shape().dims[d];
    index = std::to_string(rest % size) + (index.empty() ? "" : ",") + index;
    rest /= size;
  }
  return "at [" + index + "] expected " + element_text(expected, first) + ", got " + element_text(actual, first) +
         " (" + std::to_string(wrong) + " of " + std::to_string(n) + " differ)";
}

Literal random_leaf(const Shape& shape, uint64_t seed, uint64_t leaf) {
  Literal literal(shape);
  const uint64_t start = mix(mix(seed) + leaf);
  const int64_t n = shape.element_count();
  const DType type = shape.type;
  auto unit = [](uint64_t bits) { return static_cast<double>(bits >> 40) * 0x1p-23 - 1; };
  const bool sign = is_signed(type);
  const int64_t half = sign ? int64_t{1} << (std::min(dtype_bits(type), 32) - 1) : 0;
  const int64_t low = sign ? std::max<int64_t>(-8, -half) : 0;
  const int64_t high = std::min<int64_t>(8, sign ? half - 1 : (int64_t{1} << std::min(dtype_bits(type), 32)) - 1);
  for (int64_t i = 0; i < n; ++i) {
    const uint64_t bits = mix(start + static_cast<uint64_t>(i));
    if (is_complex(type)) {
      literal.set_complex(i, {unit(bits), unit(mix(bits))});
    } else if (is_float(type)) {
      literal.set_double(i, unit(bits));
    } else if (is_pred(type)) {
      literal.set_int(i, static_cast<int64_t>(bits >> 63));
    } else {
      literal.set_int(i, low + static_cast<int64_t>(bits % static_cast<uint64_t>(high - low + 1)));
    }
  }
  return literal;
}

}  // namespace hlojit::test
