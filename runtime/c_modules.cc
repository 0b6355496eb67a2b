// The C interface's modules: programs before they are compiled, and what of them can be looked at or chosen.
#include <utility>

#include "runtime/c_handles.h"

// A node's texts, which the answers point to.
struct hlojit_graph {
  std::vector<hlojit::GraphNode> nodes;
  std::vector<std::string> shapes;
};

namespace {

using namespace hlojit::c;
using hlojit::Error;
using hlojit::ErrorKind;
using hlojit::Shape;

hlojit_module* wrap(hlojit::ModulePtr module) {
  std::string text = hlojit::to_text(module);
  std::vector<std::string> parameters = texts(hlojit::parameter_leaves(module)),
                           results = texts(hlojit::result_leaves(module));
  return new hlojit_module{std::move(module), std::move(text), std::move(parameters), std::move(results)};
}

// The leaves, those replaced for which the caller gives a shape.
std::vector<Shape> replaced(std::vector<Shape> leaves, const char* const* shapes, size_t count) {
  if (!shapes) return leaves;
  if (count != leaves.size()) {
    throw Error(ErrorKind::kInput, "shapes of " + std::to_string(count) + " leaves, the program has " +
                                       std::to_string(leaves.size()) + " there");
  }
  for (size_t k = 0; k < count; ++k) {
    if (shapes[k]) leaves[k] = Shape::parse(shapes[k]);
  }
  return leaves;
}

const char* at(const std::vector<std::string>& all, size_t k) { return k < all.size() ? all[k].c_str() : nullptr; }

}  // namespace

hlojit_error* hlojit_parse(const char* text, size_t size, hlojit_module** out) {
  return guarded([&] { *out = wrap(hlojit::parse({text, size})); });
}
hlojit_error* hlojit_parse_elided(const char* text, size_t size, hlojit_elided elided, void* context,
                                  hlojit_module** out) {
  return guarded([&] {
    *out = wrap(hlojit::parse({text, size}, [&](const Shape& shape) {
      auto values = hlojit::Buffer::allocate(Shape::array(shape.type, shape.dims));
      const std::string name = values.shape().to_string();
      if (const char* wrong = elided(context, name.c_str(), values.mutable_raw(), values.size_bytes()))
        throw Error(ErrorKind::kInput, "the values of " + name + ": " + wrong);
      return values;
    }));
  });
}
hlojit_error* hlojit_verify(const hlojit_module* module) {
  return guarded([&] { hlojit::verify(module->module); });
}
const char* hlojit_module_text(hlojit_module* module) { return module->text.c_str(); }
void hlojit_module_free(hlojit_module* module) { delete module; }

const char* hlojit_module_parameter_shape(const hlojit_module* m, size_t k) { return at(m->parameters, k); }
const char* hlojit_module_result_shape(const hlojit_module* m, size_t k) { return at(m->results, k); }
hlojit_error* hlojit_module_with_layouts(const hlojit_module* m, const char* const* parameters, size_t parameter_count,
                                         const char* const* results, size_t result_count, hlojit_module** out) {
  return guarded([&] {
    *out =
        wrap(hlojit::with_layouts(m->module, replaced(hlojit::parameter_leaves(m->module), parameters, parameter_count),
                                  replaced(hlojit::result_leaves(m->module), results, result_count)));
  });
}
hlojit_error* hlojit_module_run_passes(const hlojit_module* module, const hlojit_options* options, const char* until,
                                       hlojit_module** out) {
  return guarded([&] { *out = wrap(hlojit::run_passes(module->module, to_options(options), until ? until : "")); });
}

const char* hlojit_pass_name(size_t index) {
  static const std::vector<std::string> names = hlojit::pass_list();
  return at(names, index);
}
hlojit_error* hlojit_module_extract(const hlojit_module* module, const char* instruction, hlojit_module** out) {
  return guarded([&] { *out = wrap(hlojit::extract(module->module, instruction)); });
}

hlojit_error* hlojit_emit(const hlojit_module* module, const char* what, const hlojit_options* options, char** out,
                          size_t* size) {
  return guarded([&] {
    constexpr std::pair<std::string_view, hlojit::Emit> kKnown[] = {{"hlo", hlojit::Emit::kHlo},
                                                                    {"llvm", hlojit::Emit::kLlvm},
                                                                    {"asm", hlojit::Emit::kAssembly},
                                                                    {"obj", hlojit::Emit::kObject}};
    const auto* found = std::ranges::find(kKnown, std::string_view(what), [](const auto& k) { return k.first; });
    if (found == std::end(kKnown))
      throw Error(ErrorKind::kInput, std::string("emit knows hlo, llvm, asm and obj, not ") + what);
    give_bytes(hlojit::emit(module->module, found->second, to_options(options)), out, size);
  });
}
hlojit_error* hlojit_evaluate(const hlojit_module* module, hlojit_buffer* const* inputs, size_t count,
                              hlojit_buffer** outputs, size_t output_count) {
  return guarded([&] {
    check_room(module->results.size(), output_count);
    std::vector<hlojit::Buffer> in;
    for (size_t k = 0; k < count; ++k) in.push_back(inputs[k]->buffer);
    give_results(hlojit::evaluate(module->module, in), outputs);
  });
}

hlojit_error* hlojit_graph_make(const hlojit_module* module, hlojit_graph** out) {
  return guarded([&] {
    hlojit_graph graph{hlojit::graph(module->module), {}};
    for (const hlojit::GraphNode& n : graph.nodes) graph.shapes.push_back(n.shape.to_string());
    *out = new hlojit_graph(std::move(graph));
  });
}
size_t hlojit_graph_size(const hlojit_graph* graph) { return graph->nodes.size(); }
int hlojit_graph_get(const hlojit_graph* graph, size_t index, hlojit_graph_node* out) {
  if (index >= graph->nodes.size()) return 0;
  const hlojit::GraphNode& n = graph->nodes[index];
  give({0, n.name.c_str(), n.opcode.c_str(), n.kind.c_str(), graph->shapes[index].c_str(), n.operands.data(),
        n.operands.size(), n.bytes_read, n.bytes_written},
       out);
  return 1;
}
void hlojit_graph_free(hlojit_graph* graph) { delete graph; }
