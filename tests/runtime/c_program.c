/* The C interface from C99: devices and queues, promises, calls made to measure, what is compiled and why. Prints what
 * fails, with its line; the rest of the interface is in c_api_test.cc. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hlojit/hlojit_c.h"

static int failures = 0;

static void check(int holds, int line, const char* what) {
  if (holds) return;
  ++failures;
  printf("c_program.c:%d: %s\n", line, what);
}
#define CHECK(condition) check(condition, __LINE__, #condition)

/* Whether the error's message holds the words; NULL: that there is none. */
static int tells(hlojit_error* error, const char* words) {
  const int found = !words ? !error : error && strstr(hlojit_error_message(error), words);
  if (!found) printf("  got: %s\n", error ? hlojit_error_message(error) : "no error");
  if (error) hlojit_error_free(error);
  return found;
}

static hlojit_executable* compiled(const char* text, const hlojit_options* options) {
  hlojit_module* module = NULL;
  hlojit_executable* program = NULL;
  if (!tells(hlojit_parse(text, strlen(text), &module), NULL)) exit(1);
  if (!tells(hlojit_compile(module, options, &program), NULL)) exit(1);
  hlojit_module_free(module);
  return program;
}

static float first(const hlojit_buffer* buffer) { return *(const float*)hlojit_buffer_data(buffer); }

static const char* kSum =
    "HloModule sum\n"
    "add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }\n"
    "ENTRY e { p = f32[2] parameter(0)  ROOT r = f32[2] all-reduce(p), replica_groups={{0,1}}, to_apply=add }\n";

static void on_two_devices(void) {
  hlojit_options options = {sizeof options};
  options.replicas = 2;
  hlojit_executable* program = compiled(kSum, &options);
  CHECK(hlojit_replicas(program) == 2 && hlojit_partitions(program) == 1);
  const float data[2][2] = {{1, 2}, {10, 20}};
  hlojit_buffer *in[2], *out[2];
  for (int d = 0; d < 2; ++d) CHECK(tells(hlojit_buffer_borrow(data[d], "f32[2]", &in[d]), NULL));
  CHECK(tells(hlojit_execute_devices(program, NULL, in, 2, out, 2), NULL));
  CHECK(first(out[0]) == 11 && first(out[1]) == 11);
  for (int d = 0; d < 2; ++d) hlojit_buffer_free(out[d]);
  CHECK(tells(hlojit_execute_devices(program, NULL, in, 1, out, 2), NULL)); /* one set for both */
  CHECK(first(out[1]) == 2);
  for (int d = 0; d < 2; ++d) hlojit_buffer_free(out[d]), hlojit_buffer_free(in[d]);
  CHECK(tells(hlojit_execute_devices(program, NULL, in, 0, out, 2), "0 inputs for 2 devices"));
  CHECK(tells(hlojit_execute_devices(program, NULL, in, 2, out, 1), "room for 1"));
  hlojit_executable_free(program);
}

static const char* kFed =
    "HloModule fed\n"
    "ENTRY e {\n"
    "  start = token[] after-all()\n"
    "  in = (f32[2], token[]) infeed(start)\n"
    "  x = f32[2] get-tuple-element(in), index=0\n"
    "  t = token[] get-tuple-element(in), index=1\n"
    "  y = f32[2] negate(x)\n"
    "  sent = token[] outfeed(y, t), outfeed_shape=f32[2]\n"
    "  ROOT z = f32[2] add(x, x)\n"
    "}\n";

static void fed_by_queues(void) {
  hlojit_executable* program = compiled(kFed, NULL);
  hlojit_run_options options = {sizeof options};
  hlojit_buffer *leaf, *out, *sent;
  const float data[2] = {3, 4};
  CHECK(tells(hlojit_queues_make(&options.queues), NULL));
  CHECK(tells(hlojit_buffer_borrow(data, "f32[2]", &leaf), NULL));
  CHECK(tells(hlojit_infeed_push(options.queues, 0, leaf), NULL));
  CHECK(tells(hlojit_execute_devices(program, &options, NULL, 0, &out, 1), NULL));
  CHECK(tells(hlojit_outfeed_pop(options.queues, 0, 1, &sent), NULL));
  CHECK(first(out) == 6 && first(sent) == -3);
  char* text = NULL;
  size_t size = 0;
  CHECK(tells(hlojit_buffer_text(sent, &text, &size), NULL));
  CHECK(size == strlen("{-3, -4}") && memcmp(text, "{-3, -4}", size) == 0);
  hlojit_bytes_free(text);
  CHECK(tells(hlojit_outfeed_pop(options.queues, 0, 0.01, &sent), "empty queue"));
  CHECK(tells(hlojit_channel_send(options.queues, 0, 7, leaf), NULL));
  hlojit_buffer_free(sent);
  CHECK(tells(hlojit_channel_receive(options.queues, 0, 7, 0.01, &sent), "empty queue")); /* the other direction */
  hlojit_buffer_free(leaf);
  hlojit_buffer_free(out);
  hlojit_queues_free(options.queues);
  hlojit_executable_free(program);
}

static const char* kEndless =
    "HloModule endless\n"
    "step { p = f32[] parameter(0)  one = f32[] constant(1)  ROOT q = f32[] add(p, one) }\n"
    "always { p = f32[] parameter(0)  ROOT t = pred[] constant(true) }\n"
    "ENTRY e { p = f32[] parameter(0)  ROOT w = f32[] while(p), condition=always, body=step }\n";

static void stopped(void) {
  hlojit_executable* program = compiled(kEndless, NULL);
  hlojit_run_options options = {sizeof options};
  hlojit_stop* stop;
  hlojit_buffer *in, *out;
  const float zero = 0;
  CHECK(tells(hlojit_stop_make(&stop), NULL));
  options.stop = stop;
  CHECK(tells(hlojit_buffer_borrow(&zero, "f32[]", &in), NULL));
  hlojit_stop_set(stop);
  CHECK(tells(hlojit_execute_devices(program, &options, &in, 1, &out, 1), "stopped"));
  hlojit_run* run;
  CHECK(tells(hlojit_execute_async_with(program, &options, &in, NULL, 1, NULL, NULL, &run), NULL));
  CHECK(tells(hlojit_run_results(run, &out, 1), "stopped"));
  hlojit_run_free(run);
  hlojit_stop_free(stop);
  hlojit_buffer_free(in);
  hlojit_executable_free(program);
}

static void on_threads_of_the_caller(void) {
  hlojit_options options = {sizeof options};
  options.replicas = 2;
  hlojit_executable* program = compiled(kSum, &options);
  hlojit_device_run* run;
  const float data[2] = {1, 2};
  hlojit_buffer *in, *out;
  CHECK(tells(hlojit_buffer_borrow(data, "f32[2]", &in), NULL));
  CHECK(tells(hlojit_device_run_make(program, NULL, &run), NULL));
  CHECK(tells(hlojit_device_run_on(run, 2, &in, 1, &out, 1), "device 2 of 2"));
  hlojit_device_run_stop(run, "the other one is ill");
  CHECK(tells(hlojit_device_run_on(run, 0, &in, 1, &out, 1), "the other one is ill"));
  hlojit_device_run_free(run);
  hlojit_executable_free(program);
  options.replicas = 1;
  program = compiled("HloModule m\nENTRY e { p = f32[2] parameter(0)  ROOT r = f32[2] negate(p) }", &options);
  CHECK(tells(hlojit_device_run_make(program, NULL, &run), NULL));
  CHECK(tells(hlojit_device_run_on(run, 0, &in, 1, &out, 1), NULL));
  CHECK(first(out) == -1);
  hlojit_device_run_free(run);
  hlojit_buffer_free(in), hlojit_buffer_free(out);
  hlojit_executable_free(program);
}

/* scale: multiplies by the number that the program gives. */
static const char* scale(void* context, const void* const* operands, void* const* results) {
  const float* factor = (const float*)context;
  for (int k = 0; k < 2; ++k) ((float*)results[0])[k] = *factor * ((const float*)operands[0])[k];
  return *factor < 0 ? "a negative factor" : NULL;
}
static int released = 0;
static void release(void* context) {
  free(context);
  ++released;
}
static const char* make_scale(void* context, const hlojit_call_site* site, hlojit_call* out) {
  ++*(int*)context;
  if (site->operand_count != 1 || strcmp(site->operands[0], "f32[2]{0}") != 0) return "scale takes one f32[2]";
  float* factor = (float*)malloc(sizeof *factor);
  *factor = (float)atof(site->backend_config);
  out->function = scale;
  out->context = factor;
  out->release = release;
  return NULL;
}

static const char* kScaled =
    "HloModule scaled\n"
    "ENTRY e {\n"
    "  p = f32[2] parameter(0)\n"
    "  q = f32[2] custom-call(p), custom_call_target=\"c_program_scale\", backend_config=\"3\"\n"
    "  ROOT r = f32[2] custom-call(q), custom_call_target=\"c_program_scale\", backend_config=\"FACTOR\"\n"
    "}\n";

static void promised(void) {
  int made = 0;
  CHECK(tells(hlojit_register_call_maker("c_program_scale", make_scale, &made, NULL), NULL));
  char text[400];
  strcpy(text, kScaled);
  memcpy(strstr(text, "FACTOR"), "0.5   ", 6);
  hlojit_executable* half = compiled(text, NULL);
  strcpy(text, kScaled);
  memcpy(strstr(text, "FACTOR"), "-1    ", 6);
  hlojit_executable* wrong = compiled(text, NULL);
  CHECK(made >= 4);
  const float data[2] = {2, 4};
  hlojit_buffer *in, *x, *y, *z;
  hlojit_run* runs[3];
  CHECK(tells(hlojit_buffer_borrow(data, "f32[2]", &in), NULL));
  CHECK(hlojit_buffer_ready(in));
  CHECK(tells(hlojit_execute_async(half, &in, NULL, 1, NULL, NULL, &runs[0]), NULL));
  CHECK(tells(hlojit_run_promises(runs[0], &x, 1), NULL));
  CHECK(tells(hlojit_run_promises(runs[0], &y, 1), "taken already"));
  CHECK(tells(hlojit_execute_async(half, &x, NULL, 1, NULL, NULL, &runs[1]), NULL));
  CHECK(tells(hlojit_run_promises(runs[1], &y, 1), NULL));
  CHECK(tells(hlojit_execute_async(wrong, &y, NULL, 1, NULL, NULL, &runs[2]), NULL));
  CHECK(tells(hlojit_run_promises(runs[2], &z, 1), NULL));
  for (int k = 0; k < 3; ++k) hlojit_run_free(runs[k]);
  CHECK(tells(hlojit_buffer_wait(y), NULL));
  CHECK(hlojit_buffer_ready(x) && first(x) == 3 && first(y) == 4.5f);
  CHECK(tells(hlojit_buffer_wait(z), "a negative factor"));
  CHECK(hlojit_buffer_data(z) == NULL);
  hlojit_buffer* out;
  CHECK(tells(hlojit_execute(half, &z, 1, &out, 1), "a negative factor")); /* what depends on it fails too */
  hlojit_buffer_free(in), hlojit_buffer_free(x), hlojit_buffer_free(y), hlojit_buffer_free(z);
  hlojit_executable_free(half), hlojit_executable_free(wrong);
  CHECK(tells(hlojit_register_call_maker("c_program_scale", NULL, NULL, NULL), NULL));
  CHECK(released == made);
  CHECK(tells(hlojit_register_ffi("c_program_ffi", NULL, NULL, NULL, NULL), "execute"));
}

/* rows: each row's sum, the rows shared among the program's threads. */
typedef struct rows_of {
  const float* in;
  float* out;
} rows_of;
static void add_row(void* arg, int64_t k) {
  const rows_of* rows = (const rows_of*)arg;
  rows->out[k] = rows->in[2 * k] + rows->in[2 * k + 1];
}
static const char* add_rows(void* context, const void* const* operands, void* const* results, const hlojit_pool* pool) {
  rows_of rows = {(const float*)operands[0], (float*)results[0]};
  pool->run(pool, 3, add_row, &rows);
  return context || pool->threads < 1 ? "what is this?" : NULL;
}
static const char* make_rows(void* context, const hlojit_call_site* site, hlojit_call* out) {
  (void)context, (void)site;
  out->pooled = add_rows;
  return NULL;
}

static void shared_work(void) {
  CHECK(tells(hlojit_register_call_maker("c_program_rows", make_rows, NULL, NULL), NULL));
  hlojit_executable* program = compiled(
      "HloModule m\nENTRY e { p = f32[3,2] parameter(0)\n"
      "ROOT r = f32[3] custom-call(p), custom_call_target=\"c_program_rows\" }",
      NULL);
  const float data[6] = {1, 2, 3, 4, 5, 6};
  hlojit_buffer *in, *out;
  CHECK(tells(hlojit_buffer_borrow(data, "f32[3,2]", &in), NULL));
  CHECK(tells(hlojit_execute(program, &in, 1, &out, 1), NULL));
  CHECK(first(out) == 3 && ((const float*)hlojit_buffer_data(out))[2] == 11);
  hlojit_buffer_free(in), hlojit_buffer_free(out);
  hlojit_executable_free(program);
  CHECK(tells(hlojit_load_custom_calls("no-such-library.so"), "no-such-library.so"));
}

static void count_passes(void* context, const char* pass, const char* hlo) {
  *(int*)context += strcmp(pass, "fuse") == 0 && strncmp(hlo, "HloModule", 9) == 0;
}
static void count_lines(void* context, const char* line) { *(int*)context += line[0] != '\0'; }

static void looked_at(const char* folder) {
  const char* text =
      "HloModule m\nENTRY e { p = f32[2] parameter(0)  q = f32[2] exponential(p)  ROOT r = f32[2] add(q, p) }";
  int lines = 0;
  hlojit_options options = {sizeof options};
  options.dump_dir = folder;
  options.explain = count_lines;
  options.explain_context = &lines;
  hlojit_executable* program = compiled(text, &options);
  CHECK(lines > 0);
  hlojit_kernel kernel = {sizeof kernel};
  hlojit_phase phase = {sizeof phase};
  CHECK(hlojit_get_kernel(program, 0, &kernel) && strcmp(kernel.kind, "nest") == 0);
  CHECK(!hlojit_get_kernel(program, 1, &kernel));
  CHECK(hlojit_get_phase(program, 0, &phase) && phase.ms >= 0 && strlen(phase.name) > 0);
  CHECK(!hlojit_get_phase(program, 1000, &phase));
  char path[1024];
  for (int k = 0; k < 3; ++k) {
    const char* files[] = {"module.ll", "module.s", "buffers.txt"};
    snprintf(path, sizeof path, "%s/%s", folder, files[k]);
    FILE* file = fopen(path, "r");
    CHECK(file != NULL);
    if (file) fclose(file);
  }
  hlojit_module* module;
  char* bytes;
  size_t size;
  CHECK(tells(hlojit_parse(text, strlen(text), &module), NULL));
  CHECK(tells(hlojit_emit(module, "obj", NULL, &bytes, &size), NULL));
  CHECK(size > 4 && memcmp(bytes, "\177ELF", 4) == 0);
  hlojit_bytes_free(bytes);
  CHECK(tells(hlojit_emit(module, "paper", NULL, &bytes, &size), "not paper"));
  int fused = 0;
  for (size_t k = 0; hlojit_pass_name(k); ++k) fused += strcmp(hlojit_pass_name(k), "fuse") == 0;
  CHECK(fused == 1);
  options.after_pass = count_passes;
  options.after_pass_context = &fused;
  hlojit_executable_free(program);
  program = compiled(text, &options);
  CHECK(fused == 2);
  options.disabled_passes = "cse,no-such-pass";
  CHECK(tells(hlojit_compile(module, &options, &program), "no-such-pass"));
  options.disabled_passes = NULL;
  hlojit_module* part;
  CHECK(tells(hlojit_module_extract(module, "q", &part), NULL));
  CHECK(strstr(hlojit_module_text(part), "exponential(") && !strstr(hlojit_module_text(part), "add("));
  hlojit_module_free(part);
  CHECK(tells(hlojit_module_extract(module, "nobody", &part), "nobody"));
  const float zeros[2] = {0, 0};
  hlojit_buffer *in, *out;
  CHECK(tells(hlojit_buffer_borrow(zeros, "f32[2]", &in), NULL));
  CHECK(tells(hlojit_evaluate(module, &in, 1, &out, 1), NULL));
  CHECK(first(out) == 1);
  CHECK(tells(hlojit_evaluate(module, &in, 0, &out, 1), "1 input leaves, 0"));
  hlojit_buffer_free(in), hlojit_buffer_free(out);
  hlojit_executable_free(program);
  options.dump_dir = "/dev/null/nowhere";
  CHECK(tells(hlojit_compile(module, &options, &program), "cannot make the folder"));
  hlojit_module_free(module);
  hlojit_release_idle_memory();
}

/* c_program FOLDER, where the compiler may write */
int main(int count, char** arguments) {
  if (count != 2) return 2;
  on_two_devices();
  fed_by_queues();
  stopped();
  on_threads_of_the_caller();
  shared_work();
  promised();
  looked_at(arguments[1]);
  printf("%d failures\n", failures);
  return failures > 0;
}
