// See entry_layouts.h. The header's entry_computation_layout says them, and pass `layouts` makes them true.
#include "runtime/entry_layouts.h"

#include <fmt/format.h>

#include "compiler/program.h"
#include "hlojit/hlojit.h"
#include "runtime/guards.h"

namespace hlojit {
namespace {

void take_layouts(Shape& shape, std::span<const Shape> leaves, size_t& next, std::string_view what) {
  for (Shape& e : shape.elements) take_layouts(e, leaves, next, what);
  if (!shape.is_array()) return;
  const size_t number = next++;
  if (number >= leaves.size()) return;
  const Shape& leaf = leaves[number];
  if (leaf.type != shape.type || leaf.dims != shape.dims) {
    throw Error(ErrorKind::kInput,
                fmt::format("{} leaf {} is {}, not {}", what, number, shape.to_string(false), leaf.to_string(false)));
  }
  shape.layout = leaf.layout;
}

void check_count(size_t given, size_t wanted, std::string_view what) {
  if (given == wanted) return;
  throw Error(ErrorKind::kInput, fmt::format("layouts of {} {} leaves for {}", given, what, wanted));
}

}  // namespace

void set_entry_layouts(Module& module, std::span<const Shape> parameters, std::span<const Shape> results) {
  module.freeze_entry_layout();
  size_t next = 0;
  for (Shape& p : module.config.entry_parameters) take_layouts(p, parameters, next, "parameter");
  check_count(parameters.size(), next, "parameter");
  next = 0;
  take_layouts(module.config.entry_result, results, next, "result");
  check_count(results.size(), next, "result");
}

ModulePtr with_layouts(const ModulePtr& module, std::span<const Shape> parameters, std::span<const Shape> results) {
  for (const auto& all : {parameters, results}) {
    for (const Shape& s : all) check_shape(s);
  }
  std::unique_ptr<Module> copy = program(module).clone();
  set_entry_layouts(*copy, parameters, results);
  return copy;
}

}  // namespace hlojit
