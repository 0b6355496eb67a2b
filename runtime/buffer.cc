// Buffers of hlojit.h: shape and shared memory, the pool's or the caller's.
#include <cstring>

#include "hlojit/hlojit.h"
#include "layout/index.h"
#include "runtime/pool.h"

namespace hlojit {
namespace {

void require_array(const Shape& shape) {
  if (!shape.is_array()) {
    throw Error(ErrorKind::kInput, "a buffer holds one array, not " + shape.to_string());
  }
  check_shape(shape);
}

void require_memory(const void* data, const Shape& shape) {
  require_array(shape);
  if (!data && physical_size(shape) > 0) throw Error(ErrorKind::kInput, "a buffer needs memory, got a null pointer");
}

}  // namespace

const Shape& Buffer::no_shape() {
  static const Shape none;
  return none;
}

Buffer Buffer::borrow(const void* data, Shape shape) {
  require_memory(data, shape);
  Buffer b;
  b.shape_ = std::make_shared<const Shape>(std::move(shape));
  b.data_ = const_cast<void*>(data);  // never written: mutable_raw refuses, run() copies what it would write
  return b;
}

Buffer Buffer::allocate(Shape shape) {
  require_array(shape);
  Buffer b;
  b.shape_ = std::make_shared<const Shape>(std::move(shape));
  b.owner_ = pool_allocate(b.size_bytes());
  b.data_ = b.owner_.get();
  return b;
}

Buffer Buffer::copy_of(const void* data, const Shape& shape) {
  require_memory(data, shape);
  Buffer b = allocate(shape);
  if (b.size_bytes() > 0) std::memcpy(b.data_, data, b.size_bytes());
  return b;
}

size_t Buffer::size_bytes() const { return static_cast<size_t>(physical_size(shape())); }

void* Buffer::mutable_raw() {
  keep();
  if (borrowed()) throw Error(ErrorKind::kInput, "a borrowed buffer is read-only");
  return data_;
}

Buffer Buffer::to_layout(const Shape& shape) const {
  if (!compatible(this->shape(), shape)) {
    throw Error(ErrorKind::kInput,
                "cannot turn " + this->shape().to_string() + " into " + shape.to_string() + ": other type or sizes");
  }
  Buffer b = allocate(shape);
  relayout(this->shape(), raw(), shape, b.data_);
  return b;
}

}  // namespace hlojit
