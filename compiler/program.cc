// See program.h.
#include "compiler/program.h"

#include <algorithm>

#include "compiler/eval/strided.h"
#include "compiler/passes/dynamic.h"
#include "compiler/passes/inline_calls.h"

namespace hlojit {
namespace {

using eval::copy_strided;
using eval::row_major_strides;

// The box of elements that both shapes have, in an array of sizes `dims`.
Literal resized(const Literal& from, const Ints& dims) {
  Literal to(Shape::array(from.shape().type, dims));
  Ints box = from.shape().dims;
  for (size_t d = 0; d < box.size(); ++d) box[d] = std::min(box[d], dims[d]);
  copy_strided(dtype_bytes(from.shape().type), box, {to.bytes().data(), 0, row_major_strides(dims)},
               {from.bytes().data(), 0, row_major_strides(from.shape().dims)});
  return to;
}

std::vector<Literal*> leaves_of(Literal& value) {
  if (value.shape().is_array()) return {&value};
  std::vector<Literal*> all;
  for (Literal& e : value.elements()) {
    for (Literal* leaf : leaves_of(e)) all.push_back(leaf);
  }
  return all;
}

// The same value; shapes of tuples follow what their elements have become.
Literal rebuilt(Literal value) {
  if (!value.shape().is_tuple()) return value;
  std::vector<Literal> elements;
  for (Literal& e : value.elements()) elements.push_back(rebuilt(std::move(e)));
  return Literal::tuple(std::move(elements));
}

Literal with_dynamic_sizes(const Module& module, std::span<const Literal> arguments, const EvalOptions& options) {
  std::unique_ptr<Module> plain = module.clone();
  inline_calls(*plain, {});
  dynamic(*plain, {});
  std::vector<Literal> values(arguments.begin(), arguments.end()), sizes;
  const auto& parameters = module.entry()->parameters();
  for (size_t p = 0; p < std::min(values.size(), parameters.size()); ++p) {
    std::vector<Literal*> arrays = leaves_of(values[p]);
    std::vector<Ints> bounds;
    for (const Shape* s : leaves(parameters[p]->shape)) bounds.push_back(s->dims);
    std::vector<std::vector<bool>> may_shrink;
    for (const Ints& b : bounds) may_shrink.emplace_back(b.size());
    for (const DynamicDim& d : dynamic_dims(parameters[p]->shape)) {
      int64_t n = arrays.at(d.leaf)->shape().dims.at(d.dim);
      if (n > d.bound) throw Error(ErrorKind::kInput, "an argument is larger than its bound");
      Literal size(Shape::scalar(DType::kS32));
      size.set_int(0, n);
      sizes.push_back(std::move(size));
      may_shrink[d.leaf][d.dim] = true;
    }
    for (size_t l = 0; l < arrays.size(); ++l) {
      Ints fits = arrays[l]->shape().dims;
      for (size_t d = 0; d < fits.size(); ++d) {
        if (may_shrink[l][d]) fits[d] = bounds[l][d];
      }
      if (fits == bounds[l] && arrays[l]->shape().dims != fits) *arrays[l] = resized(*arrays[l], fits);
    }
    values[p] = rebuilt(std::move(values[p]));
  }
  for (Literal& s : sizes) values.push_back(std::move(s));
  Literal result = evaluate(*plain->entry(), values, options);
  std::vector<DynamicDim> cut = dynamic_dims(module.entry()->root()->shape);
  if (cut.empty()) return result;
  Literal value = std::move(result.elements().at(0));
  std::vector<Literal*> arrays = leaves_of(value);
  for (size_t k = 0; k < cut.size(); ++k) {
    Ints dims = arrays[cut[k].leaf]->shape().dims;
    dims[cut[k].dim] = result.elements().at(k + 1).as_int(0);
    *arrays[cut[k].leaf] = resized(*arrays[cut[k].leaf], dims);
  }
  return rebuilt(std::move(value));
}

}  // namespace

Literal evaluate_program(const Module& module, std::span<const Literal> arguments, const EvalOptions& options) {
  if (has_dynamic_sizes(module)) return with_dynamic_sizes(module, arguments, options);
  return evaluate(*module.entry(), arguments, options);
}

}  // namespace hlojit
