// A real line of even length 2n is a complex one of length n, z[j] = x[2j] + i x[2j + 1], and one pass over its
// transform: with E and O the transforms of the even and the odd elements, Z = E + i O and X[k] = E[k] + w^k O[k];
// values of E and O at -k are the conjugates of those at k.
#pragma once

#include <cstdint>

#include "runtime/kernels/dft.h"

namespace hlojit {

/// X[0..n] of `lanes` lines from Z[0..n). `roots`: cos and sin of each w^k, k = 0..n.
void separate_halves(Planes<float> z, Planes<float> x, const float* roots, int64_t n, int64_t lanes);
void separate_halves(Planes<double> z, Planes<double> x, const double* roots, int64_t n, int64_t lanes);
/// The way back. What must be real, X[0] and X[n], is made so.
void join_halves(Planes<float> x, Planes<float> z, const float* roots, int64_t n, int64_t lanes);
void join_halves(Planes<double> x, Planes<double> z, const double* roots, int64_t n, int64_t lanes);

}  // namespace hlojit
