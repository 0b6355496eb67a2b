// What few instructions have, or many have alike: a null pointer while it is as T begins, else one value that is shared
// by all copies and never changes. Copying an instruction copies a pointer; a program has thousands.
#pragma once

#include <memory>
#include <utility>

namespace hlojit {

template <class T>
class Rare {
 public:
  Rare() = default;
  Rare(T value) {  // NOLINT: as a T would be given
    if (value != initial()) value_ = std::make_shared<const T>(std::move(value));
  }

  const T& operator*() const { return value_ ? *value_ : initial(); }
  const T* operator->() const { return &**this; }
  operator const T&() const { return **this; }  // NOLINT: read as a T
  /// A value of its own, to be changed at once: the reference holds until anything else is given.
  T& edit() {
    auto own = std::make_shared<T>(**this);
    T& changed = *own;
    value_ = std::move(own);
    return changed;
  }

  friend bool operator==(const Rare& x, const Rare& y) { return x.value_ == y.value_ || *x == *y; }

 private:
  static const T& initial() {
    static const T value{};
    return value;
  }

  std::shared_ptr<const T> value_;
};

}  // namespace hlojit
