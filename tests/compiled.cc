// The bridge between the text tests and the public API: dense literals to buffers in the entry's layouts
// and back.
#include "tests/compiled.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "codegen/target.h"
#include "compiler/pipeline.h"
#include "hlojit/hlojit.h"
#include "layout/index.h"
#include "runtime/spoiled_memory.h"

namespace hlojit::test {

// Beside the instruction sets, widths of their own: scalar code, and 64-byte vectors, which a machine
// without AVX-512 runs in halves, so that the widest code's shape is tested anywhere; and what code is chosen on
// another maker's machines.
std::vector<std::string> compiled_isas() {
  return {"scalar", std::string(codegen::Target::of_another_maker()), "avx2", "wide"};
}

std::string emit_llvm(const Module& module, const CompiledOptions& options, int vector_bytes) {
  Options o;
  o.isa = options.isa;
  o.strict = options.strict;
  o.vector_bytes = vector_bytes;
  o.smaller = options.smaller;
  return emit(ModulePtr(module.clone()), Emit::kLlvm, o);
}

namespace {

// Sets all bits of what is padding: of floats NaN, which would show in whatever it came to.
void spoil_padding(Buffer& buffer) {
  const Shape& shape = buffer.shape();
  const int64_t bytes = dtype_bytes(shape.type);
  if (!shape.layout.tiled() || element_bits(shape) != 8 * bytes) return;
  std::vector<bool> held(static_cast<size_t>(physical_elements(shape)));
  for_each_in_memory_order(
      shape, [&](std::span<const int64_t>, int64_t position) { held[static_cast<size_t>(position)] = true; });
  auto* first = static_cast<char*>(buffer.mutable_raw()) + shape.layout.metadata_prefix_bytes;
  for (size_t k = 0; k < held.size(); ++k) {
    if (!held[k]) std::memset(first + static_cast<int64_t>(k) * bytes, 0xff, static_cast<size_t>(bytes));
  }
}

void expect_settled(const Executable& e) {
  if (std::ranges::count(e.compile_times(), kUnsettled, &PhaseTime::name) > 0)
    throw std::runtime_error("the passes do not settle");
}

}  // namespace

std::vector<Literal> run_compiled(const Module& module, std::span<const Literal> inputs,
                                  const CompiledOptions& options) {
  Options o;
  o.threads = options.threads;
  o.strict = options.strict;
  o.keep_subnormals = true;  // as the oracle does
  o.scatter_oob_window = options.scatter_oob_window;
  if (options.isa == "scalar")
    o.vector_bytes = 4;
  else if (options.isa == "wide")
    o.vector_bytes = 64;
  else
    o.isa = options.isa;
  Executable e = compile(ModulePtr(module.clone()), o);
  expect_settled(e);
  std::vector<Buffer> buffers;
  for (size_t k = 0; k < inputs.size(); ++k) {
    Buffer dense =
        Buffer::copy_of(inputs[k].bytes().data(), Shape::array(inputs[k].shape().type, inputs[k].shape().dims));
    const Shape& wanted = e.parameter_shapes().at(k);
    buffers.push_back(wanted.has_dynamic_dims() ? dense : dense.to_layout(wanted));
    if (!wanted.has_dynamic_dims()) spoil_padding(buffers.back());
  }
  spoil_memory(e);
  std::vector<Literal> results;
  for (const Buffer& b : e.run(std::move(buffers))) {
    Shape dense = Shape::array(b.shape().type, b.shape().dims);
    Literal l(dense);
    relayout(b.shape(), b.raw(), dense, l.bytes().data());
    results.push_back(std::move(l));
  }
  return results;
}

}  // namespace hlojit::test
