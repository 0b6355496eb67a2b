// See planes.h. Real and imaginary parts alternate, so that transposing a square of eight numbers from eight rows
// parts them as well: its columns are real, imaginary, real, ...
#include "runtime/kernels/planes.h"

#include <algorithm>
#include <cstring>

// How vectors are handed to functions depends on the instruction set; these functions are all inlined.
#pragma clang diagnostic ignored "-Wpsabi"

namespace hlojit {
namespace {

template <class T>
using Eight [[gnu::vector_size(8 * sizeof(T))]] = T;

template <class T>
[[gnu::always_inline]] inline Eight<T> load(const T* from) {
  Eight<T> v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

template <class T>
[[gnu::always_inline]] inline void store(T* to, Eight<T> v) {
  std::memcpy(to, &v, sizeof v);
}

template <class T>
[[gnu::always_inline]] inline void transpose(Eight<T>* r) {
  Eight<T> a[8], b[8];
  for (int k = 0; k < 4; ++k) {
    a[2 * k] = __builtin_shufflevector(r[2 * k], r[2 * k + 1], 0, 8, 2, 10, 4, 12, 6, 14);
    a[2 * k + 1] = __builtin_shufflevector(r[2 * k], r[2 * k + 1], 1, 9, 3, 11, 5, 13, 7, 15);
  }
  for (int k = 0; k < 2; ++k) {
    for (int j = 0; j < 2; ++j) {
      b[4 * k + j] = __builtin_shufflevector(a[4 * k + j], a[4 * k + j + 2], 0, 1, 8, 9, 4, 5, 12, 13);
      b[4 * k + j + 2] = __builtin_shufflevector(a[4 * k + j], a[4 * k + j + 2], 2, 3, 10, 11, 6, 7, 14, 15);
    }
  }
  for (int j = 0; j < 4; ++j) {
    r[j] = __builtin_shufflevector(b[j], b[j + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    r[j + 4] = __builtin_shufflevector(b[j], b[j + 4], 4, 5, 6, 7, 12, 13, 14, 15);
  }
}

template <class T, class C>
[[gnu::always_inline]] inline void turn_in(const T* data, int64_t apart, int64_t points, Planes<C> to, int64_t lines,
                                           int64_t lanes) {
  const auto line = [=](int64_t v) { return data + apart * std::min(v, lines - 1); };
  int64_t v = 0;
  for (; v + 8 <= lanes; v += 8) {
    int64_t j = 0;
    for (; j + 4 <= points; j += 4) {
      Eight<T> r[8];
      for (int64_t k = 0; k < 8; ++k) r[k] = load(line(v + k) + 2 * j);
      transpose<T>(r);
      for (int64_t k = 0; k < 4; ++k) {
        store<C>(to.re + (j + k) * lanes + v, __builtin_convertvector(r[2 * k], Eight<C>));
        store<C>(to.im + (j + k) * lanes + v, __builtin_convertvector(r[2 * k + 1], Eight<C>));
      }
    }
    for (; j < points; ++j) {
      for (int64_t k = v; k < v + 8; ++k) {
        to.re[j * lanes + k] = static_cast<C>(line(k)[2 * j]);
        to.im[j * lanes + k] = static_cast<C>(line(k)[2 * j + 1]);
      }
    }
  }
  for (; v < lanes; ++v) {
    const T* from = line(v);
    for (int64_t j = 0; j < points; ++j) {
      to.re[j * lanes + v] = static_cast<C>(from[2 * j]);
      to.im[j * lanes + v] = static_cast<C>(from[2 * j + 1]);
    }
  }
}

template <class T, class C>
[[gnu::always_inline]] inline void turn_out(Planes<C> from, int64_t points, int64_t lines, int64_t lanes, T* data,
                                            int64_t apart) {
  int64_t v = 0;
  for (; v + 8 <= lanes; v += 8) {
    const int64_t rows = std::min<int64_t>(8, lines - v);
    int64_t j = 0;
    for (; j + 4 <= points; j += 4) {
      Eight<T> r[8];
      for (int64_t k = 0; k < 4; ++k) {
        r[2 * k] = __builtin_convertvector(load<C>(from.re + (j + k) * lanes + v), Eight<T>);
        r[2 * k + 1] = __builtin_convertvector(load<C>(from.im + (j + k) * lanes + v), Eight<T>);
      }
      transpose<T>(r);
#pragma clang loop unroll(full)
      for (int64_t k = 0; k < 8; ++k) {
        if (k < rows) store<T>(data + apart * (v + k) + 2 * j, r[k]);
      }
    }
    for (; j < points; ++j) {
      for (int64_t k = v; k < v + rows; ++k) {
        data[apart * k + 2 * j] = static_cast<T>(from.re[j * lanes + k]);
        data[apart * k + 2 * j + 1] = static_cast<T>(from.im[j * lanes + k]);
      }
    }
  }
  for (; v < lines; ++v) {
    for (int64_t j = 0; j < points; ++j) {
      data[apart * v + 2 * j] = static_cast<T>(from.re[j * lanes + v]);
      data[apart * v + 2 * j + 1] = static_cast<T>(from.im[j * lanes + v]);
    }
  }
}

template <class T, class C>
[[gnu::always_inline]] inline void turn_reals_in(const T* data, int64_t apart, int64_t points, C* to, int64_t lines,
                                                 int64_t lanes) {
  const auto line = [=](int64_t v) { return data + apart * std::min(v, lines - 1); };
  int64_t v = 0;
  for (; v + 8 <= lanes; v += 8) {
    int64_t j = 0;
    for (; j + 8 <= points; j += 8) {
      Eight<T> r[8];
      for (int64_t k = 0; k < 8; ++k) r[k] = load(line(v + k) + j);
      transpose<T>(r);
      for (int64_t k = 0; k < 8; ++k) store<C>(to + (j + k) * lanes + v, __builtin_convertvector(r[k], Eight<C>));
    }
    for (; j < points; ++j) {
      for (int64_t k = v; k < v + 8; ++k) to[j * lanes + k] = static_cast<C>(line(k)[j]);
    }
  }
  for (; v < lanes; ++v) {
    for (int64_t j = 0; j < points; ++j) to[j * lanes + v] = static_cast<C>(line(v)[j]);
  }
}

template <class T, class C>
[[gnu::always_inline]] inline void turn_reals_out(const C* from, int64_t points, int64_t lines, int64_t lanes, T* data,
                                                  int64_t apart) {
  int64_t v = 0;
  for (; v + 8 <= lines; v += 8) {
    int64_t j = 0;
    for (; j + 8 <= points; j += 8) {
      Eight<T> r[8];
      for (int64_t k = 0; k < 8; ++k) r[k] = __builtin_convertvector(load<C>(from + (j + k) * lanes + v), Eight<T>);
      transpose<T>(r);
      for (int64_t k = 0; k < 8; ++k) store<T>(data + apart * (v + k) + j, r[k]);
    }
    for (; j < points; ++j) {
      for (int64_t k = v; k < v + 8; ++k) data[apart * k + j] = static_cast<T>(from[j * lanes + k]);
    }
  }
  for (; v < lines; ++v) {
    for (int64_t j = 0; j < points; ++j) data[apart * v + j] = static_cast<T>(from[j * lanes + v]);
  }
}

template <class T, class C>
[[gnu::always_inline]] inline void part(const T* data, int64_t apart, int64_t points, Planes<C> to, int64_t lines,
                                        int64_t lanes) {
  for (int64_t j = 0; j < points; ++j) {
#pragma clang loop vectorize(assume_safety)
    for (int64_t v = 0; v < lines; ++v) {
      to.re[j * lanes + v] = static_cast<C>(data[apart * j + 2 * v]);
      to.im[j * lanes + v] = static_cast<C>(data[apart * j + 2 * v + 1]);
    }
    for (int64_t v = lines; v < lanes; ++v) to.re[j * lanes + v] = to.im[j * lanes + v] = C{};
  }
}

template <class T, class C>
[[gnu::always_inline]] inline void unite(Planes<C> from, int64_t points, int64_t lines, int64_t lanes, T* data,
                                         int64_t apart) {
  for (int64_t j = 0; j < points; ++j) {
#pragma clang loop vectorize(assume_safety)
    for (int64_t v = 0; v < lines; ++v) {
      data[apart * j + 2 * v] = static_cast<T>(from.re[j * lanes + v]);
      data[apart * j + 2 * v + 1] = static_cast<T>(from.im[j * lanes + v]);
    }
  }
}

}  // namespace

#define HLOJIT_EACH_WIDTH __attribute__((target_clones("default", "avx2", "avx512f")))
#define HLOJIT_PLANES(T, C)                                                                                            \
  HLOJIT_EACH_WIDTH void to_planes(const T* data, LineSteps steps, int64_t points, Planes<C> to, int64_t lines,        \
                                   int64_t lanes) {                                                                    \
    if (steps.point == 2)                                                                                              \
      turn_in(data, steps.line, points, to, lines, lanes);                                                             \
    else                                                                                                               \
      part(data, steps.point, points, to, lines, lanes);                                                               \
  }                                                                                                                    \
  HLOJIT_EACH_WIDTH void from_planes(Planes<C> from, int64_t points, int64_t lines, int64_t lanes, T* data,            \
                                     LineSteps steps) {                                                                \
    if (steps.point == 2)                                                                                              \
      turn_out(from, points, lines, lanes, data, steps.line);                                                          \
    else                                                                                                               \
      unite(from, points, lines, lanes, data, steps.point);                                                            \
  }                                                                                                                    \
  HLOJIT_EACH_WIDTH void to_plane(const T* data, int64_t apart, int64_t points, C* to, int64_t lines, int64_t lanes) { \
    turn_reals_in(data, apart, points, to, lines, lanes);                                                              \
  }                                                                                                                    \
  HLOJIT_EACH_WIDTH void from_plane(const C* from, int64_t points, int64_t lines, int64_t lanes, T* data,              \
                                    int64_t apart) {                                                                   \
    turn_reals_out(from, points, lines, lanes, data, apart);                                                           \
  }
HLOJIT_PLANES(float, float)
HLOJIT_PLANES(float, double)
HLOJIT_PLANES(double, double)

}  // namespace hlojit
