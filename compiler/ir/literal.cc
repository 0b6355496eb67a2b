// Literals: dense storage, element access through double, int64 and complex<double>.
#include "compiler/ir/literal.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <new>

#include "compiler/ir/narrow.h"

namespace hlojit {
namespace {

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

template <class T>
void store(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

constexpr int64_t kMaxBytes = int64_t{1} << 40;  // more is a mistake; not worth asking the allocator

// Bytes of a dense array, or an error that a caller can survive.
size_t checked_bytes(const Shape& shape) {
  int64_t bytes = dtype_bytes(shape.type);
  bool empty = false;
  for (int64_t d : shape.dims) empty |= d == 0;
  if (empty) return 0;
  for (int64_t d : shape.dims) {
    if (d < 0 || __builtin_mul_overflow(bytes, d, &bytes) || bytes > kMaxBytes) {
      throw Error(ErrorKind::kFailed, "a literal of shape " + shape.to_string() + " is too large");
    }
  }
  return static_cast<size_t>(bytes);
}

// A value cut to the integer type, extended again in its byte if narrower than one.
int64_t wrap_int(DType type, int64_t value) {
  int bits = dtype_bits(type);
  if (bits >= 64) return value;
  uint64_t up = static_cast<uint64_t>(value) << (64 - bits);
  return is_signed(type) ? static_cast<int64_t>(up) >> (64 - bits) : static_cast<int64_t>(up >> (64 - bits));
}

int64_t saturating_int(double value) {
  if (std::isnan(value)) return 0;
  if (value >= 0x1p63) return std::numeric_limits<int64_t>::max();
  if (value < -0x1p63) return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(value);
}

}  // namespace

Literal::Literal(Shape shape) : shape_(std::move(shape)) {
  if (shape_.is_tuple()) {
    elements_.reserve(shape_.elements.size());
    for (const Shape& s : shape_.elements) elements_.emplace_back(s);
  } else if (shape_.is_array()) {
    size_t bytes = checked_bytes(shape_);
    try {
      bytes_.resize(bytes);
    } catch (const std::exception&) {
      throw Error(ErrorKind::kFailed, "no memory for a literal of shape " + shape_.to_string());
    }
  }
}

Literal Literal::tuple(std::vector<Literal> elements) {
  Literal made;
  std::vector<Shape> shapes;
  shapes.reserve(elements.size());
  for (const Literal& e : elements) shapes.push_back(e.shape_);
  made.shape_ = Shape::tuple(std::move(shapes));
  made.elements_ = std::move(elements);
  return made;
}

double Literal::as_double(int64_t i) const {
  const std::byte* at = bytes_.data() + i * dtype_bytes(shape_.type);
  switch (shape_.type) {
    case DType::kF32:
    case DType::kC64: return load<float>(at);
    case DType::kF64:
    case DType::kC128: return load<double>(at);
    case DType::kU64: return static_cast<double>(load<uint64_t>(at));
    case DType::kF16:
    case DType::kBF16: return narrow_to_double(shape_.type, load<uint16_t>(at));
    default: break;
  }
  if (is_float(shape_.type)) return narrow_to_double(shape_.type, load<uint8_t>(at));
  return static_cast<double>(as_int(i));
}

int64_t Literal::as_int(int64_t i) const {
  const std::byte* at = bytes_.data() + i * dtype_bytes(shape_.type);
  bool sign = is_signed(shape_.type);
  if (!sign && !is_unsigned(shape_.type) && !is_pred(shape_.type)) {
    return saturating_int(as_double(i));
  }
  switch (dtype_bytes(shape_.type)) {
    case 1: return sign ? load<int8_t>(at) : load<uint8_t>(at);
    case 2: return sign ? load<int16_t>(at) : load<uint16_t>(at);
    case 4: return sign ? load<int32_t>(at) : static_cast<int64_t>(load<uint32_t>(at));
    default: return load<int64_t>(at);
  }
}

std::complex<double> Literal::as_complex(int64_t i) const {
  const std::byte* at = bytes_.data() + i * dtype_bytes(shape_.type);
  if (shape_.type == DType::kC64) return load<std::complex<float>>(at);
  if (shape_.type == DType::kC128) return load<std::complex<double>>(at);
  return as_double(i);
}

void Literal::set_double(int64_t i, double value) {
  std::byte* at = bytes_.data() + i * dtype_bytes(shape_.type);
  switch (shape_.type) {
    case DType::kF32: return store(at, static_cast<float>(value));
    case DType::kF64: return store(at, value);
    case DType::kF16:
    case DType::kBF16: return store(at, static_cast<uint16_t>(narrow_from_double(shape_.type, value)));
    case DType::kPred: return store(at, static_cast<uint8_t>(value != 0));
    default: break;
  }
  if (is_complex(shape_.type)) return set_complex(i, value);
  if (is_float(shape_.type)) {
    return store(at, static_cast<uint8_t>(narrow_from_double(shape_.type, value)));
  }
  if (shape_.type == DType::kU64 && value >= 0x1p63) {
    uint64_t u = value < 0x1p64 ? static_cast<uint64_t>(value) : ~uint64_t{0};
    return set_int(i, static_cast<int64_t>(u));
  }
  set_int(i, saturating_int(value));
}

void Literal::set_int(int64_t i, int64_t value) {
  DType type = shape_.type;
  if (is_pred(type)) value = value != 0;
  if (is_float(type) || is_complex(type)) return set_double(i, static_cast<double>(value));
  std::byte* at = bytes_.data() + i * dtype_bytes(type);
  value = wrap_int(type, value);
  switch (dtype_bytes(type)) {
    case 1: return store(at, static_cast<uint8_t>(value));
    case 2: return store(at, static_cast<uint16_t>(value));
    case 4: return store(at, static_cast<uint32_t>(value));
    default: return store(at, value);
  }
}

void Literal::set_complex(int64_t i, std::complex<double> value) {
  std::byte* at = bytes_.data() + i * dtype_bytes(shape_.type);
  if (shape_.type == DType::kC64) return store(at, std::complex<float>(value));
  if (shape_.type == DType::kC128) return store(at, value);
  set_double(i, value.real());
}

bool Literal::is_splat() const {
  size_t width = shape_.is_array() ? dtype_bytes(shape_.type) : 0;
  if (bytes_.empty() || width == 0) return false;
  return std::memcmp(bytes_.data(), bytes_.data() + width, bytes_.size() - width) == 0;
}

bool Literal::identical(const Literal& other) const {
  if (!compatible(shape_, other.shape_) || elements_.size() != other.elements_.size()) return false;
  for (size_t i = 0; i < elements_.size(); ++i) {
    if (!elements_[i].identical(other.elements_[i])) return false;
  }
  return bytes_ == other.bytes_;
}

}  // namespace hlojit
