// layout: where an element lies in memory.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "layout/index.h"
#include "tools/request.h"

namespace hlojit::tools {

LayoutAnswer layout_answer(const Request& r) {
  if (r.index && r.linear) throw UsageError("layout: give --index or --linear, not both");
  Shape shape = Shape::parse(r.shape);
  check_shape(shape);
  if (!shape.is_array()) throw Error(ErrorKind::kInvalid, Location{1, 1}, shape.to_string() + " is not an array");
  LayoutAnswer a;
  a.elements = physical_elements(shape);
  a.bytes = physical_size(shape);
  if (r.index) {
    if (static_cast<int64_t>(r.index->size()) != shape.rank()) {
      throw Error(ErrorKind::kInput, fmt::format("the index has {} entries, {} has {} dimensions", r.index->size(),
                                                 shape.to_string(), shape.rank()));
    }
    for (size_t d = 0; d < shape.dims.size(); ++d) {
      int64_t i = (*r.index)[d];
      if (i < 0 || i >= shape.dims[d]) {
        throw Error(ErrorKind::kInput,
                    fmt::format("index {} is out of range in dimension {}: 0 to {}", i, d, shape.dims[d] - 1));
      }
    }
    a.linear = linear_index(shape, *r.index);
  }
  if (r.linear) {
    if (*r.linear < 0 || *r.linear >= a.elements) {
      throw Error(ErrorKind::kInput,
                  fmt::format("position {} is out of range: the buffer holds {} elements", *r.linear, a.elements));
    }
    auto index = multi_index(shape, *r.linear);
    a.index = index ? fmt::format("{}", fmt::join(*index, ",")) : "padding";
  }
  return a;
}

void layout_verb(const Request& r, const Sink& out) {
  LayoutAnswer a = layout_answer(r);
  if (r.json) {
    std::string fields;
    if (a.linear) fields = fmt::format("\"linear\":{},", *a.linear);
    if (a.index) {
      fields = *a.index == "padding" ? std::string("\"index\":null,") : fmt::format("\"index\":[{}],", *a.index);
    }
    out(fmt::format("{{{}\"elements\":{},\"bytes\":{}}}\n", fields, a.elements, a.bytes));
    return;
  }
  if (a.linear)
    out(fmt::format("{}\n", *a.linear));
  else if (a.index)
    out(*a.index + "\n");
  else
    out(fmt::format("elements {} bytes {}\n", a.elements, a.bytes));
  std::optional<int64_t> marked = a.linear ? a.linear : a.index && *a.index != "padding" ? r.linear : std::nullopt;
  out(draw(Shape::parse(r.shape), marked));
}

}  // namespace hlojit::tools
