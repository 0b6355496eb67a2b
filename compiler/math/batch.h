// The number type of run-time kernels: lanes that are an xsimd::batch, so that compiler/math's templates give vectors
// of any instruction set A in plain C++. See number.h for the list of operations; every one here gives the same bits as
// the scalar instance. xsimd's own fma rounds twice where it knows no instruction (AVX-512 in version 8), and its
// rounding goes through other paths a set: those operations are the compiler's, on the batch's register.
//
// A wrapper, as xsimd's functions of the same names would be found beside ours. No to_f64 and to_f32: a batch of
// doubles has half the lanes.
#pragma once

#include <xsimd/xsimd.hpp>

#include "compiler/math/number.h"

namespace hlojit::math {

/// T: float or double, or as the integer that belongs to one, int32_t or int64_t.
template <class T, class A>
struct Batch {
  static constexpr int lanes = static_cast<int>(xsimd::batch<T, A>::size);
  xsimd::batch<T, A> v;
};

/// T: float or double, also of what compares integers.
template <class T, class A>
struct BatchMask {
  xsimd::batch_bool<T, A> v;
};

template <class T>
using IntegerAs = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
template <class T>
using FloatAs = std::conditional_t<sizeof(T) == 4, float, double>;
template <class T>
concept LaneFloat = std::is_floating_point_v<T>;
template <class T>
concept LaneInteger = std::is_integral_v<T>;

template <LaneFloat T, class A>
struct Number<Batch<T, A>> {
  static constexpr int bits = 8 * sizeof(T);
  using Scalar = T;
  using Int = Batch<IntegerAs<T>, A>;
  using Mask = BatchMask<T, A>;
};

template <class F>
F load_lanes(const typename Number<F>::Scalar* from) {
  return {decltype(F::v)::load_unaligned(from)};
}
template <class T, class A>
void store_lanes(T* to, Batch<T, A> x) {
  x.v.store_unaligned(to);
}

template <LaneFloat T, class A>
Batch<T, A> like(Batch<T, A>, double c) {
  return {xsimd::batch<T, A>(static_cast<T>(c))};
}
template <LaneInteger T, class A>
Batch<T, A> likei(Batch<T, A>, int64_t c) {
  return {xsimd::batch<T, A>(static_cast<T>(c))};
}

#define HLOJIT_BINARY(concept_name, op)                   \
  template <concept_name T, class A>                      \
  Batch<T, A> operator op(Batch<T, A> x, Batch<T, A> y) { \
    return {x.v op y.v};                                  \
  }
HLOJIT_BINARY(LaneFloat, /)
HLOJIT_BINARY(LaneInteger, &)
HLOJIT_BINARY(LaneInteger, |)
HLOJIT_BINARY(LaneInteger, ^)
#undef HLOJIT_BINARY
template <class T, class A>
Batch<T, A> operator+(Batch<T, A> x, Batch<T, A> y) {
  return {x.v + y.v};
}
template <class T, class A>
Batch<T, A> operator-(Batch<T, A> x, Batch<T, A> y) {
  return {x.v - y.v};
}
template <LaneFloat T, class A>
Batch<T, A> operator*(Batch<T, A> x, Batch<T, A> y) {
  return {x.v * y.v};
}
template <LaneInteger T, class A>
Batch<T, A> operator-(Batch<T, A> x) {
  return {-x.v};
}

#define HLOJIT_COMPARE(op)                                             \
  template <class T, class A>                                          \
  BatchMask<FloatAs<T>, A> operator op(Batch<T, A> x, Batch<T, A> y) { \
    if constexpr (LaneFloat<T>) {                                      \
      return {x.v op y.v};                                             \
    } else {                                                           \
      return {xsimd::bool_cast(x.v op y.v)};                           \
    }                                                                  \
  }
HLOJIT_COMPARE(<)
HLOJIT_COMPARE(<=)
HLOJIT_COMPARE(>)
HLOJIT_COMPARE(>=)
HLOJIT_COMPARE(==)
HLOJIT_COMPARE(!=)
#undef HLOJIT_COMPARE

template <class T, class A>
BatchMask<T, A> operator&(BatchMask<T, A> a, BatchMask<T, A> b) {
  return {a.v & b.v};
}
template <class T, class A>
BatchMask<T, A> operator|(BatchMask<T, A> a, BatchMask<T, A> b) {
  return {a.v | b.v};
}
template <class T, class A>
BatchMask<T, A> operator!(BatchMask<T, A> a) {
  return {!a.v};
}
template <LaneFloat T, class A>
Batch<T, A> select(BatchMask<T, A> a, Batch<T, A> x, Batch<T, A> y) {
  return {xsimd::select(a.v, x.v, y.v)};
}
template <LaneInteger T, class A>
Batch<T, A> select(BatchMask<FloatAs<T>, A> a, Batch<T, A> i, Batch<T, A> j) {
  return {xsimd::select(xsimd::bool_cast(a.v), i.v, j.v)};
}

/// The register of a batch as the compiler's own vector.
template <class T, class A>
auto of_elements(xsimd::batch<T, A> x) {
  typedef T Elements __attribute__((vector_size(sizeof(T) * xsimd::batch<T, A>::size)));
  return reinterpret_cast<Elements>(x.data);
}
template <LaneFloat T, class A>
Batch<T, A> fma(Batch<T, A> x, Batch<T, A> y, Batch<T, A> z) {
  return {xsimd::batch<T, A>(__builtin_elementwise_fma(of_elements(x.v), of_elements(y.v), of_elements(z.v)))};
}
#define HLOJIT_ELEMENTWISE(name, builtin)                   \
  template <LaneFloat T, class A>                           \
  Batch<T, A> name(Batch<T, A> x) {                         \
    return {xsimd::batch<T, A>(builtin(of_elements(x.v)))}; \
  }
HLOJIT_ELEMENTWISE(operator-, -)
HLOJIT_ELEMENTWISE(sqrt_, __builtin_elementwise_sqrt)
HLOJIT_ELEMENTWISE(abs_, __builtin_elementwise_abs)
HLOJIT_ELEMENTWISE(floor_, __builtin_elementwise_floor)
HLOJIT_ELEMENTWISE(trunc_, __builtin_elementwise_trunc)
HLOJIT_ELEMENTWISE(round_even_, __builtin_elementwise_roundeven)
#undef HLOJIT_ELEMENTWISE

template <LaneFloat T, class A>
Batch<IntegerAs<T>, A> as_int(Batch<T, A> x) {
  return {xsimd::bitwise_cast<xsimd::batch<IntegerAs<T>, A>>(x.v)};
}
template <LaneInteger T, class A>
Batch<FloatAs<T>, A> as_float(Batch<T, A> i) {
  return {xsimd::bitwise_cast<xsimd::batch<FloatAs<T>, A>>(i.v)};
}
template <LaneInteger T, class A>
Batch<T, A> shl(Batch<T, A> i, int n) {
  return {i.v << n};
}
template <LaneInteger T, class A>
Batch<T, A> lshr(Batch<T, A> i, int n) {
  using Unsigned = xsimd::batch<std::make_unsigned_t<T>, A>;
  return {xsimd::bitwise_cast<xsimd::batch<T, A>>(xsimd::bitwise_cast<Unsigned>(i.v) >> n)};
}
template <LaneInteger T, class A>
Batch<T, A> ashr(Batch<T, A> i, int n) {
  return {i.v >> n};
}
template <LaneInteger T, class A>
BatchMask<FloatAs<T>, A> bit(Batch<T, A> i, int n) {
  return (i & likei(i, int64_t{1} << n)) != likei(i, 0);
}
template <LaneFloat T, class A>
BatchMask<T, A> signbit_(Batch<T, A> x) {
  return as_int(x) < likei(as_int(x), 0);
}
template <LaneFloat T, class A>
Batch<T, A> copysign_(Batch<T, A> x, Batch<T, A> y) {
  auto sign = likei(as_int(x), std::numeric_limits<IntegerAs<T>>::min());
  return as_float(as_int(abs_(x)) | (as_int(y) & sign));
}

/// Between integers and floats, the doubles without an instruction: i + 1.5 * 2^52 as bits is that double.
template <LaneInteger T, class A>
Batch<FloatAs<T>, A> to_float(Batch<T, A> i) {
  if constexpr (sizeof(T) == 4) {
    return {xsimd::to_float(i.v)};
  } else {
    Batch<double, A> magic = like(Batch<double, A>(), 0x1.8p52);
    return as_float(i + as_int(magic)) - magic;
  }
}
template <LaneFloat T, class A>
Batch<IntegerAs<T>, A> to_int(Batch<T, A> x) {
  if constexpr (sizeof(T) == 4) {
    return {xsimd::to_int(x.v)};
  } else {
    double lanes[Batch<T, A>::lanes];
    int64_t out[Batch<T, A>::lanes];
    store_lanes(lanes, x);
    for (int k = 0; k < Batch<T, A>::lanes; ++k) out[k] = to_int(lanes[k]).v;
    return {xsimd::batch<int64_t, A>::load_unaligned(out)};
  }
}
template <LaneFloat T, class A>
Batch<IntegerAs<T>, A> to_unsigned(Batch<T, A> x) {
  return to_unsigned_in_halves(x);
}
template <LaneFloat T, class A>
Batch<IntegerAs<T>, A> to_small_int(Batch<T, A> x) {
  if constexpr (sizeof(T) == 4) {
    return to_int(x);
  } else {
    Batch<T, A> magic = like(x, 0x1.8p52);
    return as_int(trunc_(x) + magic) - as_int(magic);
  }
}
template <LaneFloat T, class A>
Batch<T, A> ldexp2(Batch<T, A> x, Batch<IntegerAs<T>, A> i) {
  constexpr int m = sizeof(T) == 4 ? 23 : 52;
  auto bias = likei(i, sizeof(T) == 4 ? 127 : 1023), h = ashr(i, 1);
  return x * as_float(shl(h + bias, m)) * as_float(shl(i - h + bias, m));
}

template <LaneFloat T, class A>
Binade<Batch<T, A>> binade(Batch<T, A> x) {
  return binade_by_bits(x);
}

template <LaneFloat T, class A>
Batch<T, A> log_edges(Batch<T, A> r, Batch<T, A> x, double pole) {
  return log_edges_by_selects(r, x, pole);
}

template <LaneFloat T, class A>
Batch<T, A> one_plus_ldexp2(Batch<T, A> x, Batch<T, A> y, Batch<T, A> t, int n) {
  return one_plus_ldexp2_in_parts(x, y, t, n);
}
template <class A>
Batch<float, A> one_of_eight(const Eight& c, Batch<float, A> t) {
  float lanes[Batch<float, A>::lanes];
  store_lanes(lanes, t);
  for (float& lane : lanes) lane = one_of_eight(c, lane);
  return load_lanes<Batch<float, A>>(lanes);
}

/// The rare lanes of fast, one by one.
template <LaneFloat T, class A, class... X>
Batch<T, A> rare_lanes(BatchMask<T, A> ok, Batch<T, A> fast, T (*call)(X...) noexcept, auto... x) {
  if (xsimd::all(ok.v)) return fast;
  constexpr int n = Batch<T, A>::lanes;
  T y[n], in[sizeof...(x)][n];
  store_lanes(y, select(ok, fast, like(fast, 0)));
  bool good[n];
  ok.v.store_unaligned(good);
  int operand = 0;
  (store_lanes(in[operand++], x), ...);
  for (int k = 0; k < n; ++k) {
    if (good[k]) continue;
    if constexpr (sizeof...(x) == 1) {
      y[k] = call(in[0][k]);
    } else {
      y[k] = call(in[0][k], in[1][k]);
    }
  }
  return load_lanes<Batch<T, A>>(y);
}
template <LaneFloat T, class A>
Batch<T, A> cold(Batch<T, A> x, BatchMask<T, A> ok, Batch<T, A> fast, const ScalarFunction1<T>& fn) {
  return rare_lanes(ok, fast, fn.call, x);
}
template <LaneFloat T, class A>
Batch<T, A> cold(Batch<T, A> x, Batch<T, A> y, BatchMask<T, A> ok, Batch<T, A> fast, const ScalarFunction2<T>& fn) {
  return rare_lanes(ok, fast, fn.call, x, y);
}

}  // namespace hlojit::math
