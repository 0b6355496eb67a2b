// Literal: a constant value. Arrays are dense in logical row-major order, unpacked (dtype_bytes an
// element; sub-byte integers sign- or zero-extended in their byte), whatever the shape's layout
// says: the layout only matters where a literal becomes a buffer.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "layout/shape.h"

namespace hlojit {

class Literal {
 public:
  Literal() = default;
  /// Zero-filled value; tuples get an element each; tokens hold nothing.
  /// Throws Error(kFailed) if the memory cannot be had.
  explicit Literal(Shape shape);
  static Literal tuple(std::vector<Literal> elements);
  template <class T>
  static Literal scalar(DType type, T value);  ///< value in storage representation

  const Shape& shape() const { return shape_; }
  /// Storage of an array literal, row-major.
  std::span<std::byte> bytes() { return bytes_; }
  std::span<const std::byte> bytes() const { return bytes_; }
  /// Typed view; T must have the element's width (float for f32, uint16_t for bf16/f16, ...).
  template <class T>
  std::span<T> data() {
    return {reinterpret_cast<T*>(bytes_.data()), bytes_.size() / sizeof(T)};
  }
  template <class T>
  std::span<const T> data() const {
    return {reinterpret_cast<const T*>(bytes_.data()), bytes_.size() / sizeof(T)};
  }
  std::vector<Literal>& elements() { return elements_; }
  const std::vector<Literal>& elements() const { return elements_; }

  /// Element i (row-major) as a double / int64; complex: the real part. Exact where possible.
  double as_double(int64_t i) const;
  int64_t as_int(int64_t i) const;
  std::complex<double> as_complex(int64_t i) const;
  /// Stores value rounded to the type (nearest even; ints truncated modulo 2^n after saturation is
  /// the caller's business).
  void set_double(int64_t i, double value);
  void set_int(int64_t i, int64_t value);
  void set_complex(int64_t i, std::complex<double> value);
  /// All elements have the same bits (scalars and arrays with >= 1 element).
  bool is_splat() const;
  /// Bitwise equality of shape (layout ignored) and contents.
  bool identical(const Literal& other) const;

 private:
  Shape shape_;
  std::vector<std::byte> bytes_;
  std::vector<Literal> elements_;
};

template <class T>
Literal Literal::scalar(DType type, T value) {
  Literal l(Shape::scalar(type));
  static_cast<T&>(*reinterpret_cast<T*>(l.bytes_.data())) = value;
  return l;
}

}  // namespace hlojit
