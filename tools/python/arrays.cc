// See arrays.h.
#include "tools/python/arrays.h"

#include <algorithm>
#include <string>

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#include <numpy/arrayobject.h>

namespace hlojit::python {
namespace {

nb::object arrays_py(const char* function) { return nb::module_::import_("hlojit.arrays").attr(function); }

PyArray_Descr* descr(const nb::object& dtype) { return reinterpret_cast<PyArray_Descr*>(dtype.ptr()); }

// The array's memory where it lies as the leaf's elements do; null where it does not.
const void* memory_in_place(nb::handle value, const ArrayLeaf& leaf) {
  if (!PyArray_CheckExact(value.ptr()) || leaf.dtype.is_none() || !leaf.strides) return nullptr;
  auto* array = reinterpret_cast<PyArrayObject*>(value.ptr());
  const std::vector<int64_t>& dims = leaf.shape.dims;
  // A type is one object, but that of an array that was unpickled.
  if (!PyArray_EquivTypes(PyArray_DESCR(array), descr(leaf.dtype)) || !PyArray_ISBEHAVED_RO(array)) return nullptr;
  const npy_intp* sizes = PyArray_DIMS(array);
  if (!std::equal(dims.begin(), dims.end(), sizes, sizes + PyArray_NDIM(array))) return nullptr;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] > 1 && PyArray_STRIDES(array)[d] != (*leaf.strides)[d]) return nullptr;
  }
  return memory(value);
}

}  // namespace

void import_numpy() {
  if (PyArray_ImportNumPyAPI() < 0) throw nb::python_error();
}

const void* memory(nb::handle array) { return PyArray_DATA(reinterpret_cast<PyArrayObject*>(array.ptr())); }

nb::tuple facts(const Shape& s) {
  return nb::make_tuple(std::string(dtype_name(s.type)), nb::cast(s.dims), s.to_string());
}

nb::list facts(const std::vector<Shape>& shapes) {
  nb::list out;
  for (const Shape& s : shapes) out.append(facts(s));
  return out;
}

Shape row_major(const Shape& shape) { return Shape::array(shape.type, shape.dims); }

std::optional<std::vector<int64_t>> strides_of(const Shape& shape) {
  Layout plain;
  plain.minor_to_major = shape.layout.minor_to_major;
  plain.memory_space = shape.layout.memory_space;
  if (shape.layout != plain) return {};
  std::vector<int64_t> strides(shape.dims.size());
  int64_t bytes = dtype_bytes(shape.type);
  for (const int64_t d : plain.minor_to_major) {
    strides[d] = bytes;
    bytes *= std::max<int64_t>(shape.dims[d], 1);
  }
  return strides;
}

std::vector<ArrayLeaf> leaves(const std::vector<Shape>& shapes) {
  const nb::object dtype = arrays_py("DTYPES").attr("get");
  std::vector<ArrayLeaf> all;
  for (const Shape& s : shapes) all.push_back({s, row_major(s), strides_of(s), dtype(std::string(dtype_name(s.type)))});
  return all;
}

Inputs inputs(const nb::args& arrays, const std::vector<ArrayLeaf>& parameters) {
  if (arrays.size() != parameters.size()) {
    throw nb::value_error(("the program takes " + std::to_string(parameters.size()) + " arrays, " +
                           std::to_string(arrays.size()) + " were given")
                              .c_str());
  }
  Inputs in;
  for (size_t k = 0; k < parameters.size(); ++k) {
    const ArrayLeaf& leaf = parameters[k];
    nb::handle value = arrays[k];
    if (const void* data = memory_in_place(value, leaf)) {
      in.buffers.push_back(Buffer::borrow(data, leaf.shape));
      continue;
    }
    in.kept.push_back(arrays_py("in_order")(value, facts(leaf.shape), k));
    const Buffer b = Buffer::borrow(memory(in.kept.back()), leaf.in_order);
    in.buffers.push_back(leaf.shape == leaf.in_order ? b : b.to_layout(leaf.shape));
  }
  return in;
}

nb::object output(Buffer buffer, const ArrayLeaf& leaf, size_t number) {
  if (leaf.dtype.is_none()) arrays_py("dtype_of")(facts(leaf.shape), "result " + std::to_string(number));  // raises
  std::optional<std::vector<int64_t>> strides =
      buffer.shape().dims == leaf.shape.dims ? leaf.strides : strides_of(buffer.shape());
  if (!strides) {
    buffer = buffer.to_layout(row_major(buffer.shape()));
    strides = strides_of(buffer.shape());
  }
  auto* kept = new Buffer(std::move(buffer));
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<Buffer*>(p); });
  const std::vector<int64_t>& dims = kept->shape().dims;
  Py_INCREF(leaf.dtype.ptr());  // stolen below, as the capsule is
  PyObject* array = PyArray_NewFromDescr(&PyArray_Type, descr(leaf.dtype), static_cast<int>(dims.size()), dims.data(),
                                         strides->data(), const_cast<void*>(kept->raw()), NPY_ARRAY_BEHAVED, nullptr);
  if (!array) throw nb::python_error();
  nb::object made = nb::steal(array);
  if (PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(array), owner.release().ptr()) < 0)
    throw nb::python_error();
  return made;
}

nb::object outputs(std::vector<Buffer> buffers, const std::vector<ArrayLeaf>& results) {
  if (buffers.size() == 1) return output(std::move(buffers[0]), results[0], 0);
  nb::list all;
  for (size_t k = 0; k < buffers.size(); ++k) all.append(output(std::move(buffers[k]), results[k], k));
  return nb::tuple(all);
}

}  // namespace hlojit::python
