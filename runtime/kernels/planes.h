// Arrays of complex numbers against two planes, of real and of imaginary parts, in which the elements of several
// lines lie side by side: how a transform reads and writes memory. Lines that are rows of memory are turned by
// blocks of eight: read element by element they took two thirds of a short transform's time.
#pragma once

#include <cstdint>

#include "runtime/kernels/line_loops.h"

namespace hlojit {

/// Where the numbers of lines lie: element j of line v at data[line * v + point * j], and its imaginary part behind it.
/// Either the points of a line lie side by side (point is 2) or the lines do (line is 2).
struct LineSteps {
  int64_t line, point;
};

/// Element j of line v is at [j * lanes + v] in the planes. Lanes beyond the lines hold numbers that nobody reads.
void to_planes(const float* data, LineSteps steps, int64_t points, Planes<float> to, int64_t lines, int64_t lanes);
void to_planes(const float* data, LineSteps steps, int64_t points, Planes<double> to, int64_t lines, int64_t lanes);
void to_planes(const double* data, LineSteps steps, int64_t points, Planes<double> to, int64_t lines, int64_t lanes);
void from_planes(Planes<float> from, int64_t points, int64_t lines, int64_t lanes, float* data, LineSteps steps);
void from_planes(Planes<double> from, int64_t points, int64_t lines, int64_t lanes, float* data, LineSteps steps);
void from_planes(Planes<double> from, int64_t points, int64_t lines, int64_t lanes, double* data, LineSteps steps);

/// The same of real numbers, lines that are rows of memory `apart` from each other, and one plane.
void to_plane(const float* data, int64_t apart, int64_t points, float* to, int64_t lines, int64_t lanes);
void to_plane(const float* data, int64_t apart, int64_t points, double* to, int64_t lines, int64_t lanes);
void to_plane(const double* data, int64_t apart, int64_t points, double* to, int64_t lines, int64_t lanes);
void from_plane(const float* from, int64_t points, int64_t lines, int64_t lanes, float* data, int64_t apart);
void from_plane(const double* from, int64_t points, int64_t lines, int64_t lanes, float* data, int64_t apart);
void from_plane(const double* from, int64_t points, int64_t lines, int64_t lanes, double* data, int64_t apart);

}  // namespace hlojit
