// Arrays of complex numbers against two planes, of real and of imaginary parts, in which the elements of several
// lines lie side by side: how a transform reads and writes memory. Lines that are rows of memory are turned by
// blocks of eight: read element by element they took two thirds of a short transform's time.
#pragma once

#include <cstdint>

#include "runtime/kernels/dft.h"

namespace hlojit {

/// Line v has its element j at data[apart * v + 2 * j] and behind it; in the planes it is at [j * lanes + v].
void rows_to_planes(const float* data, int64_t apart, int64_t points, Planes<float> to, int64_t lanes);
void rows_to_planes(const float* data, int64_t apart, int64_t points, Planes<double> to, int64_t lanes);
void rows_to_planes(const double* data, int64_t apart, int64_t points, Planes<double> to, int64_t lanes);
void planes_to_rows(Planes<float> from, int64_t points, int64_t lanes, float* data, int64_t apart);
void planes_to_rows(Planes<double> from, int64_t points, int64_t lanes, float* data, int64_t apart);
void planes_to_rows(Planes<double> from, int64_t points, int64_t lanes, double* data, int64_t apart);

/// Line v has its element j at data[apart * j + 2 * v] and behind it.
void columns_to_planes(const float* data, int64_t apart, int64_t points, Planes<float> to, int64_t lanes);
void columns_to_planes(const float* data, int64_t apart, int64_t points, Planes<double> to, int64_t lanes);
void columns_to_planes(const double* data, int64_t apart, int64_t points, Planes<double> to, int64_t lanes);
void planes_to_columns(Planes<float> from, int64_t points, int64_t lanes, float* data, int64_t apart);
void planes_to_columns(Planes<double> from, int64_t points, int64_t lanes, float* data, int64_t apart);
void planes_to_columns(Planes<double> from, int64_t points, int64_t lanes, double* data, int64_t apart);

}  // namespace hlojit
