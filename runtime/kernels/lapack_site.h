// What a custom call of LAPACK is, and how the functions that serve one are written: each as one of a matrix's
// pointers, operands then results. What a function overwrites is copied from the operand first (it may be there
// already: output_to_operand_aliasing).
#pragma once

#include <algorithm>
#include <complex>
#include <cstring>
#include <functional>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "compiler/ir/lapack_call.h"
#include "layout/index.h"
#include "runtime/kernels/lapack.h"

namespace hlojit {

/// A call on one matrix of each leaf; or on several at once that follow each other, fewer at the end of a batch.
struct LapackCall {
  std::function<void(void* const* p, int64_t count)> call;
  int64_t together = 1;

  template <class One>
  LapackCall(One one) : call([one](void* const* p, int64_t) { one(p); }) {}
  template <class Several>
  LapackCall(int64_t together, Several several) : call(std::move(several)), together(together) {}
};

template <class T>
struct Real {
  using type = T;
};
template <class T>
struct Real<std::complex<T>> {
  using type = T;
};
template <class T>
constexpr bool kComplex = !std::is_same_v<T, typename Real<T>::type>;

/// What a call is: its leaves' shapes, its attributes, the length of its batch.
class LapackSite {
 public:
  explicit LapackSite(const Instruction& call) : call_(call) {
    for (const Instruction* o : call.operands()) shapes_.push_back(o->shape);
    for (const Shape* leaf : leaves(call.shape)) shapes_.push_back(*leaf);
    if (shapes_.empty()) refuse("it has neither operands nor results");
    const Shape& first = shapes_[0];
    // num_batch_dims is a frontend attribute; the ranks say the same: a matrix comes first, or a
    // vector (gtsv).
    matrix_rank_ = call.attrs.custom_call_target.find("gtsv") != std::string::npos ? 1 : 2;
    batch_dims_ = static_cast<size_t>(std::max<int64_t>(0, first.rank() - matrix_rank_));
    for (size_t d = 0; d < batch_dims_; ++d) batch_ *= first.dims[d];
  }

  int64_t batch() const { return batch_; }
  size_t leaves_count() const { return shapes_.size(); }
  DType type() const { return shapes_[0].type; }
  /// Dimension `d` of one matrix of leaf `leaf`.
  int dim(size_t leaf, size_t d) const {
    int64_t n = shapes_.at(leaf).dims.at(batch_dims_ + d);
    if (n > std::numeric_limits<int>::max()) refuse("a dimension is larger than 2^31 - 1");
    return static_cast<int>(n);
  }
  bool empty() const { return shapes_[0].element_count() == 0; }
  /// Bytes from one matrix to the next.
  size_t stride(size_t leaf) const {
    const Shape& s = shapes_[leaf];
    int64_t n = 1;
    for (size_t d = batch_dims_; d < s.dims.size(); ++d) n *= s.dims[d];
    return static_cast<size_t>(n * dtype_bytes(s.type));
  }

  /// An attribute's number, `missing` if it is not there.
  int number(std::string_view name, int missing) const { return lapack_option(call_, name, missing); }
  char letter(std::string_view name, char missing) const { return static_cast<char>(number(name, missing)); }

  template <class F>
  F* function(std::string_view name) const {
    try {
      return lapack<F>(name, type());
    } catch (const Error& e) {
      refuse(e.diagnostics()[0].message);
    }
  }

  [[noreturn]] void refuse(const std::string& why) const {
    throw Error(ErrorKind::kUnsupported, call_.location,
                "custom call \"" + call_.attrs.custom_call_target + "\": " + why);
  }

  /// Column-major matrices (row-major vectors), batches behind.
  void check_layouts() const {
    for (const Shape& s : shapes_) {
      Ints order;
      auto rank = static_cast<int64_t>(s.dims.size()), batch = static_cast<int64_t>(batch_dims_);
      for (int64_t d = batch; d < rank; ++d) order.push_back(d);
      for (int64_t d = batch - 1; d >= 0; --d) order.push_back(d);
      if (s.layout.minor_to_major != order || s.layout.tiled()) {
        refuse("its arrays must be column-major with the batch outside, not " + s.to_string());
      }
    }
  }

 private:
  const Instruction& call_;
  std::vector<Shape> shapes_;
  size_t batch_dims_ = 0;
  int64_t matrix_rank_ = 2, batch_ = 1;
};

template <class T>
T* as(void* p) {
  return static_cast<T*>(p);
}

inline void take(void* to, const void* from, size_t bytes) {
  if (to != from) std::memcpy(to, from, bytes);
}

/// The room a first call with length -1 asks for.
template <class T>
int asked(const T& work) {
  return std::max(1, static_cast<int>(std::real(work)));
}

/// Calls f(work, length) to be told how much room it works best in, then with that room.
template <class T, class F>
void with_room(F f) {
  T best{};
  int length = -1;
  f(&best, &length);
  std::vector<T> work(static_cast<size_t>(length = asked(best)));
  f(work.data(), &length);
}

/// A function that calls may name.
struct LapackRow {
  std::string_view name;
  size_t operands, results;  ///< leaves; results of a complex matrix may be one fewer
  /// Nanoseconds for four bytes of the operands, as measured of 4x4 to 64x64: work grows as the square of the order
  /// there. (Called ten for all of them, solving 77 systems of eight was handed out: 70 us with two threads, 28 with
  /// one.)
  double word_ns;
  LapackCall (*make[4])(const LapackSite&);  ///< for s, d, c, z
};

#define HLOJIT_LAPACK(f) {&f<float>, &f<double>, &f<std::complex<float>>, &f<std::complex<double>>}

/// Leaves of the call with the most.
inline constexpr size_t kMostLapackLeaves = 9;
constexpr bool fit(std::span<const LapackRow> rows) {
  return std::ranges::all_of(rows, [](const LapackRow& r) { return r.operands + r.results <= kMostLapackLeaves; });
}

std::span<const LapackRow> lapack_factors();
std::span<const LapackRow> lapack_spectra();

}  // namespace hlojit
