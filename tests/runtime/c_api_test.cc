// The C interface: a program through it, its errors, and the table of its ABI. That the header is C99 is
// a test of its own (unit.c_header).
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

TEST_CASE("c: the ABI is the one of version 1") {
  CHECK(hlojit_abi_version() == 1);
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
      {"cost.flops", offsetof(hlojit_cost, flops), 8},
      {"cost.bytes_read", offsetof(hlojit_cost, bytes_read), 16},
      {"cost.bytes_written", offsetof(hlojit_cost, bytes_written), 24},
      {"cost.arena_bytes", offsetof(hlojit_cost, arena_bytes), 32},
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
