// Parameters and results as NumPy has them. An array that lies as its parameter does is read where it is, found by
// NumPy's own structs: asked for through Python each took 2.5 us, each result 1 (a Zen 4). What else there is
// hlojit/arrays.py brings into order, or refuses. A result stays where it is, if strides say how it lies: JAX's texts
// have a transposed result lie as its operand does.
#pragma once

#include <hlojit/hlojit.h>

#include <optional>
#include <vector>

#include <nanobind/nanobind.h>

namespace hlojit::python {

namespace nb = nanobind;

/// (element type, sizes, text with layout).
nb::tuple facts(const Shape& shape);
nb::list facts(const std::vector<Shape>& shapes);

/// Of a NumPy array.
const void* memory(nb::handle array);

/// The same elements in row-major order.
Shape row_major(const Shape& shape);

/// Bytes from an element to the next, by dimension; none if they differ, or are no bytes: of tiles, padding, packed
/// elements.
std::optional<std::vector<int64_t>> strides_of(const Shape& shape);

/// A leaf of the parameters or results.
struct ArrayLeaf {
  Shape shape;
  Shape in_order;                               ///< row_major(shape)
  std::optional<std::vector<int64_t>> strides;  ///< as strides_of(shape) says
  nb::object dtype;                             ///< NumPy's; None: it has none
};
std::vector<ArrayLeaf> leaves(const std::vector<Shape>& shapes);

/// The memory of arrays, as programs take it.
struct Inputs {
  std::vector<Buffer> buffers;
  std::vector<nb::object> kept;  ///< what owns it, beside the caller's arrays
};

/// Raises ValueError for another number of arrays, other sizes or element types.
Inputs inputs(const nb::args& arrays, const std::vector<ArrayLeaf>& parameters);

/// The array that the buffer, of this leaf or one of fewer elements where sizes are known at run time only, becomes; it
/// owns the memory.
nb::object output(Buffer buffer, const ArrayLeaf& leaf, size_t number);
/// One as it is, several in a tuple.
nb::object outputs(std::vector<Buffer> buffers, const std::vector<ArrayLeaf>& results);

/// Makes NumPy's functions known; before anything else here.
void import_numpy();

}  // namespace hlojit::python
