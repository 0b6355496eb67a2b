// The C interface: a program through it, its errors, and the table of its ABI. What came
// with versions 4 and 5 runs in C99 (c_program.c).
#include <doctest/doctest.h>

#include <cstring>
#include <string>

#include "hlojit/hlojit_c.h"

namespace {

constexpr const char* kProgram = R"(HloModule m, input_output_alias={ {0}: (0, {}, may-alias) }
ENTRY e {
  p = f32[3] parameter(0)
  q = f32[3]{0} parameter(1)
  s = f32[3] add(p, q)
  d = f32[3] subtract(p, q)
  ROOT r = (f32[3], f32[3]) tuple(s, d)
})";

std::string failed(hlojit_error* e) {
  std::string message = e ? hlojit_error_message(e) : "";
  hlojit_error_free(e);
  return message;
}

}  // namespace

TEST_CASE("c: parse, compile, run, donate") {
  hlojit_module* module = nullptr;
  hlojit_executable* program = nullptr;
  REQUIRE(failed(hlojit_parse(kProgram, std::strlen(kProgram), &module)).empty());
  CHECK(std::string(hlojit_module_text(module)).find("HloModule m") == 0);
  hlojit_options options{};
  options.struct_size = sizeof options;
  options.threads = 1;
  REQUIRE(failed(hlojit_compile(module, &options, &program)).empty());
  hlojit_module_free(module);
  CHECK(hlojit_parameter_count(program) == 2);
  CHECK(hlojit_result_count(program) == 2);
  CHECK(std::string(hlojit_parameter_shape(program, 0)) == "f32[3]{0}");
  CHECK(hlojit_parameter_shape(program, 2) == nullptr);
  CHECK(hlojit_result_donor(program, 0) == 0);
  CHECK(hlojit_result_donor(program, 1) == -1);
  hlojit_cost cost{};
  cost.struct_size = sizeof cost;
  hlojit_get_cost(program, &cost);
  CHECK(cost.bytes_read == 24);
  CHECK(std::string(hlojit_memory_report(program)).find("arena 0 bytes") == 0);
  CHECK(std::string(hlojit_version()).find('.') != std::string::npos);

  const float q[] = {1, 2, 3};
  hlojit_buffer *in[2] = {}, *out[2] = {};
  REQUIRE(failed(hlojit_buffer_allocate("f32[3]", &in[0])).empty());
  REQUIRE(failed(hlojit_buffer_borrow(q, "f32[3]", &in[1])).empty());
  CHECK(hlojit_buffer_mutable_data(in[1]) == nullptr);
  std::memcpy(hlojit_buffer_mutable_data(in[0]), q, sizeof q);
  const void* memory = hlojit_buffer_data(in[0]);
  const unsigned char donate[] = {1, 0};
  REQUIRE(failed(hlojit_execute_donating(program, in, donate, 2, out, 2)).empty());
  CHECK(hlojit_buffer_data(out[0]) == memory);
  CHECK(hlojit_buffer_data(in[0]) == nullptr);
  CHECK(static_cast<const float*>(hlojit_buffer_data(out[0]))[2] == 6);
  CHECK(static_cast<const float*>(hlojit_buffer_data(out[1]))[2] == 0);
  for (hlojit_buffer* b : {in[0], in[1], out[0], out[1]}) hlojit_buffer_free(b);

  CHECK(!failed(hlojit_execute(program, in, 0, out, 2)).empty());
  CHECK(!failed(hlojit_execute(program, in, 2, out, 1)).empty());
  hlojit_executable_free(program);
}

TEST_CASE("c: errors have kind, place and rule") {
  const char* wrong = "HloModule m\nENTRY e {\n  p = f32[3] parameter(0)\n  ROOT r = f32[2] negate(p)\n}";
  hlojit_module* module = nullptr;
  REQUIRE(failed(hlojit_parse(wrong, std::strlen(wrong), &module)).empty());
  hlojit_error* e = hlojit_verify(module);
  REQUIRE(e);
  CHECK(hlojit_error_get_kind(e) == HLOJIT_INVALID);
  REQUIRE(hlojit_error_count(e) == 1);
  hlojit_diagnostic d{};
  d.struct_size = sizeof d;
  REQUIRE(hlojit_error_get(e, 0, &d));
  CHECK(d.line == 4);
  CHECK(std::string(d.rule) == "result-shape");
  CHECK(!hlojit_error_get(e, 1, &d));
  hlojit_error_free(e);
  hlojit_module_free(module);
  CHECK(!failed(hlojit_parse("ENTRY", 5, &module)).empty());
}

TEST_CASE("c: constants that a printer left out are the caller's") {
  const char* text = "HloModule m\nENTRY e {\n  ROOT c = f32[2]{0} constant({...})\n}";
  hlojit_module* module = nullptr;
  CHECK(!failed(hlojit_parse(text, std::strlen(text), &module)).empty());
  hlojit_elided ones = [](void* context, const char* shape, void* data, size_t size) -> const char* {
    *static_cast<std::string*>(context) += shape;
    for (size_t k = 0; k < size / sizeof(float); ++k) static_cast<float*>(data)[k] = 1;
    return nullptr;
  };
  std::string seen;
  REQUIRE(failed(hlojit_parse_elided(text, std::strlen(text), ones, &seen, &module)).empty());
  CHECK(seen == "f32[2]{0}");
  CHECK(std::string(hlojit_module_text(module)).find("constant({1, 1})") != std::string::npos);
  hlojit_module_free(module);
  hlojit_elided refuses = [](void*, const char*, void*, size_t) { return "none are known"; };
  CHECK(failed(hlojit_parse_elided(text, std::strlen(text), refuses, nullptr, &module)).find("none are known") !=
        std::string::npos);
}

TEST_CASE("c: an older caller's structs are written within their size") {
  hlojit_module* module = nullptr;
  hlojit_executable* program = nullptr;
  REQUIRE(failed(hlojit_parse(kProgram, std::strlen(kProgram), &module)).empty());
  REQUIRE(failed(hlojit_compile(module, nullptr, &program)).empty());
  hlojit_cost cost{};
  cost.struct_size = offsetof(hlojit_cost, bytes_written);
  cost.bytes_written = -7;
  hlojit_get_cost(program, &cost);
  CHECK(cost.bytes_read == 24);
  CHECK(cost.bytes_written == -7);
  hlojit_executable_free(program);
  hlojit_module_free(module);
}

TEST_CASE("c: a run in the background, an executable as bytes, a custom call") {
  const char* text =
      "HloModule m\nENTRY e {\n  p = f32[2] parameter(0)\n  ROOT r = f32[2] custom-call(p), "
      "custom_call_target=\"c_api_test_twice\"\n}";
  hlojit_custom_call twice = [](void* context, const void* const* operands, void* const* results) -> const char* {
    ++*static_cast<int*>(context);
    for (int k = 0; k < 2; ++k) static_cast<float*>(results[0])[k] = 2 * static_cast<const float*>(operands[0])[k];
    return static_cast<const float*>(operands[0])[0] < 0 ? "too small" : nullptr;
  };
  int calls = 0, ends = 0;
  auto release = [](void* context) { *static_cast<int*>(context) = -1; };
  REQUIRE(failed(hlojit_register_custom_call("c_api_test_twice", twice, &calls, release)).empty());
  hlojit_module* module = nullptr;
  hlojit_executable *program = nullptr, *again = nullptr;
  REQUIRE(failed(hlojit_parse(text, std::strlen(text), &module)).empty());
  REQUIRE(failed(hlojit_compile(module, nullptr, &program)).empty());
  hlojit_module_free(module);
  char* bytes = nullptr;
  size_t size = 0;
  REQUIRE(failed(hlojit_serialize(program, &bytes, &size)).empty());
  REQUIRE(failed(hlojit_load(bytes, size, nullptr, &again)).empty());
  CHECK(!failed(hlojit_load(bytes + 1, size - 1, nullptr, &again)).empty());
  hlojit_bytes_free(bytes);
  hlojit_executable_free(program);

  float x[] = {1, 2};
  hlojit_buffer *in = nullptr, *out = nullptr;
  hlojit_run* run = nullptr;
  REQUIRE(failed(hlojit_buffer_borrow(x, "f32[2]", &in)).empty());
  auto count = [](void* context) { ++*static_cast<int*>(context); };
  REQUIRE(failed(hlojit_execute_async(again, &in, nullptr, 1, count, &ends, &run)).empty());
  CHECK(!failed(hlojit_run_results(run, &out, 2)).empty());
  REQUIRE(failed(hlojit_run_results(run, &out, 1)).empty());
  CHECK(hlojit_run_ready(run));
  hlojit_run_free(run);
  CHECK(static_cast<const float*>(hlojit_buffer_data(out))[1] == 4);
  CHECK(calls == 1);
  CHECK(ends == 1);
  x[0] = -1;
  REQUIRE(failed(hlojit_execute_async(again, &in, nullptr, 1, nullptr, nullptr, &run)).empty());
  CHECK(failed(hlojit_run_results(run, &out, 1)).find("too small") != std::string::npos);
  hlojit_run_free(run);
  hlojit_buffer_free(in);
  hlojit_buffer_free(out);
  CHECK(failed(hlojit_register_custom_call("c_api_test_twice", nullptr, nullptr, nullptr)).empty());
  CHECK(calls == 2);
  hlojit_executable_free(again);
  CHECK(calls == -1);  // released with the last program
}

TEST_CASE("c: other layouts, and the program's graph") {
  const char* text =
      "HloModule m\nENTRY e {\n  p = f32[2,3] parameter(0)\n  q = f32[2,3] parameter(1)\n"
      "  s = f32[2,3] add(p, q)\n  ROOT t = f32[3,2] transpose(s), dimensions={1,0}\n}";
  hlojit_module *module = nullptr, *other = nullptr, *optimised = nullptr;
  hlojit_executable* program = nullptr;
  REQUIRE(failed(hlojit_parse(text, std::strlen(text), &module)).empty());
  CHECK(std::string(hlojit_module_parameter_shape(module, 1)) == "f32[2,3]{1,0}");
  CHECK(std::string(hlojit_module_result_shape(module, 0)) == "f32[3,2]{1,0}");
  CHECK(hlojit_module_result_shape(module, 1) == nullptr);
  CHECK(hlojit_module_parameter_shape(module, 2) == nullptr);
  const char* columns[] = {nullptr, "f32[2,3]{0,1}"};
  const char* wrong[] = {"f32[3,2]{0,1}", nullptr};
  CHECK(failed(hlojit_module_with_layouts(module, wrong, 2, nullptr, 0, &other)).find("f32[2,3]") != std::string::npos);
  CHECK(!failed(hlojit_module_with_layouts(module, columns, 1, nullptr, 0, &other)).empty());
  REQUIRE(failed(hlojit_module_with_layouts(module, columns, 2, nullptr, 0, &other)).empty());
  REQUIRE(failed(hlojit_compile(other, nullptr, &program)).empty());
  CHECK(std::string(hlojit_parameter_shape(program, 1)) == "f32[2,3]{0,1}");
  CHECK(std::string(hlojit_result_shape(program, 0)) == "f32[3,2]{1,0}");
  const float p[] = {1, 2, 3, 4, 5, 6}, q[] = {10, 40, 20, 50, 30, 60};
  hlojit_buffer *in[2] = {}, *out = nullptr;
  REQUIRE(failed(hlojit_buffer_borrow(p, "f32[2,3]", &in[0])).empty());
  REQUIRE(failed(hlojit_buffer_borrow(q, "f32[2,3]{0,1}", &in[1])).empty());
  REQUIRE(failed(hlojit_execute(program, in, 2, &out, 1)).empty());
  const float sums[] = {11, 44, 22, 55, 33, 66};
  CHECK(std::memcmp(hlojit_buffer_data(out), sums, sizeof sums) == 0);
  hlojit_buffer* turned = nullptr;
  REQUIRE(failed(hlojit_buffer_relayout(out, "f32[3,2]{0,1}", &turned)).empty());
  CHECK(std::string(hlojit_buffer_shape(turned)) == "f32[3,2]{0,1}");
  CHECK(hlojit_buffer_size(turned) == sizeof sums);
  CHECK(static_cast<const float*>(hlojit_buffer_data(turned))[1] == 22);
  hlojit_buffer_free(turned);
  CHECK(failed(hlojit_buffer_relayout(out, "f32[2,3]", &turned)).find("f32[2,3]") != std::string::npos);
  for (hlojit_buffer* b : {in[0], in[1], out}) hlojit_buffer_free(b);

  hlojit_graph* graph = nullptr;
  REQUIRE(failed(hlojit_graph_make(module, &graph)).empty());
  REQUIRE(hlojit_graph_size(graph) == 4);
  hlojit_graph_node node{};
  node.struct_size = sizeof node;
  REQUIRE(hlojit_graph_get(graph, 2, &node));
  CHECK(std::string(node.opcode) == "add");
  CHECK(std::string(node.shape) == "f32[2,3]{1,0}");
  REQUIRE(node.operand_count == 2);
  CHECK(node.operands[1] == 1);
  CHECK(node.bytes_read == 48);
  CHECK(!hlojit_graph_get(graph, 4, &node));
  hlojit_graph_free(graph);
  REQUIRE(failed(hlojit_module_run_passes(module, nullptr, nullptr, &optimised)).empty());
  CHECK(std::string(hlojit_module_text(optimised)).find("fusion(") != std::string::npos);
  CHECK(!failed(hlojit_module_run_passes(module, nullptr, "no-such-pass", &optimised)).empty());
  for (hlojit_module* m : {module, other, optimised}) hlojit_module_free(m);
  hlojit_executable_free(program);
}

TEST_CASE("c: the ABI is the one of version 8") {
  CHECK(hlojit_abi_version() == 8);
  struct {
    const char* name;
    size_t found, promised;
  } table[] = {
      {"diagnostic.line", offsetof(hlojit_diagnostic, line), 8},
      {"diagnostic.column", offsetof(hlojit_diagnostic, column), 12},
      {"diagnostic.instruction", offsetof(hlojit_diagnostic, instruction), 16},
      {"diagnostic.rule", offsetof(hlojit_diagnostic, rule), 24},
      {"diagnostic.message", offsetof(hlojit_diagnostic, message), 32},
      {"diagnostic.details", offsetof(hlojit_diagnostic, details), 40},
      {"options.threads", offsetof(hlojit_options, threads), 8},
      {"options.strict", offsetof(hlojit_options, strict), 12},
      {"options.fast_compile", offsetof(hlojit_options, fast_compile), 16},
      {"options.scatter_oob_window", offsetof(hlojit_options, scatter_oob_window), 20},
      {"options.isa", offsetof(hlojit_options, isa), 24},
      {"options.cache_dir", offsetof(hlojit_options, cache_dir), 32},
      {"options.parallel_for", offsetof(hlojit_options, parallel_for), 40},
      {"options.parallel_context", offsetof(hlojit_options, parallel_context), 48},
      {"options.memory_limit", offsetof(hlojit_options, memory_limit), 56},
      {"options.replicas", offsetof(hlojit_options, replicas), 64},
      {"options.partitions", offsetof(hlojit_options, partitions), 72},
      {"options.dump_dir", offsetof(hlojit_options, dump_dir), 80},
      {"options.explain", offsetof(hlojit_options, explain), 88},
      {"options.explain_context", offsetof(hlojit_options, explain_context), 96},
      {"options.disabled_passes", offsetof(hlojit_options, disabled_passes), 104},
      {"options.after_pass", offsetof(hlojit_options, after_pass), 112},
      {"options.after_pass_context", offsetof(hlojit_options, after_pass_context), 120},
      {"options.keep_subnormals", offsetof(hlojit_options, keep_subnormals), 128},
      {"kernel.name", offsetof(hlojit_kernel, name), 8},
      {"kernel.kind", offsetof(hlojit_kernel, kind), 16},
      {"phase.name", offsetof(hlojit_phase, name), 8},
      {"phase.ms", offsetof(hlojit_phase, ms), 16},
      {"run_options.queues", offsetof(hlojit_run_options, queues), 8},
      {"run_options.stop", offsetof(hlojit_run_options, stop), 16},
      {"run_options.wait_s", offsetof(hlojit_run_options, wait_s), 24},
      {"call_site.target", offsetof(hlojit_call_site, target), 8},
      {"call_site.api_version", offsetof(hlojit_call_site, api_version), 16},
      {"call_site.backend_config", offsetof(hlojit_call_site, backend_config), 24},
      {"call_site.frontend_attributes", offsetof(hlojit_call_site, frontend_attributes), 32},
      {"call_site.operands", offsetof(hlojit_call_site, operands), 40},
      {"call_site.operand_count", offsetof(hlojit_call_site, operand_count), 48},
      {"call_site.results", offsetof(hlojit_call_site, results), 56},
      {"call_site.result_count", offsetof(hlojit_call_site, result_count), 64},
      {"call_site.has_side_effect", offsetof(hlojit_call_site, has_side_effect), 72},
      {"call.function", offsetof(hlojit_call, function), 8},
      {"call.context", offsetof(hlojit_call, context), 16},
      {"call.release", offsetof(hlojit_call, release), 24},
      {"call.pooled", offsetof(hlojit_call, pooled), 32},
      {"pool.threads", offsetof(hlojit_pool, threads), 8},
      {"pool.run", offsetof(hlojit_pool, run), 16},
      {"pool.own", offsetof(hlojit_pool, own), 24},
      {"cost.flops", offsetof(hlojit_cost, flops), 8},
      {"cost.bytes_read", offsetof(hlojit_cost, bytes_read), 16},
      {"cost.bytes_written", offsetof(hlojit_cost, bytes_written), 24},
      {"cost.arena_bytes", offsetof(hlojit_cost, arena_bytes), 32},
      {"graph_node.name", offsetof(hlojit_graph_node, name), 8},
      {"graph_node.opcode", offsetof(hlojit_graph_node, opcode), 16},
      {"graph_node.kind", offsetof(hlojit_graph_node, kind), 24},
      {"graph_node.shape", offsetof(hlojit_graph_node, shape), 32},
      {"graph_node.operands", offsetof(hlojit_graph_node, operands), 40},
      {"graph_node.operand_count", offsetof(hlojit_graph_node, operand_count), 48},
      {"graph_node.bytes_read", offsetof(hlojit_graph_node, bytes_read), 56},
      {"graph_node.bytes_written", offsetof(hlojit_graph_node, bytes_written), 64},
      {"unsupported", HLOJIT_UNSUPPORTED, 3},
      {"invalid", HLOJIT_INVALID, 4},
      {"input", HLOJIT_INPUT, 5},
      {"failed", HLOJIT_FAILED, 6},
  };
  for (const auto& row : table) {
    CAPTURE(row.name);
    CHECK(row.found == row.promised);
  }
}
