/* hlojit in C: the interface of hlojit/hlojit.h for other languages to bind to. C99.
 *
 *     hlojit_module* m;  hlojit_executable* e;  hlojit_buffer* out[1];
 *     hlojit_error* err = hlojit_parse(text, strlen(text), &m);
 *     if (!err) err = hlojit_compile(m, NULL, &e);
 *     if (!err) err = hlojit_execute(e, inputs, 2, out, 1);
 *     if (err) { puts(hlojit_error_message(err)); hlojit_error_free(err); }
 *
 * Every function that can fail returns NULL or an error, which the caller frees; outputs are written on
 * success only. Handles are freed by the function of their name, in any order: what one needs of another
 * it keeps. Text that a function returns belongs to the handle asked and lives as long. Any handle may be
 * used from several threads at once, but freed only once nobody uses it. Leaves are the arrays inside the
 * (possibly nested) tuples of the parameters or of the result, counted depth first; tokens have none.
 *
 * Stable: structs begin with their size, set by the caller, and only grow at their end; a function once
 * here keeps its meaning. hlojit_abi_version() counts additions.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define HLOJIT_C_API __attribute__((visibility("default")))
#else
#define HLOJIT_C_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define HLOJIT_ABI_VERSION 8

typedef struct hlojit_error hlojit_error;
typedef struct hlojit_module hlojit_module;
typedef struct hlojit_executable hlojit_executable;
typedef struct hlojit_buffer hlojit_buffer;

/* The version of the library, and of this interface as the library has it. */
HLOJIT_C_API const char* hlojit_version(void);
HLOJIT_C_API int hlojit_abi_version(void);

/* ---- errors ------------------------------------------------------------------------------------ */

enum hlojit_error_kind {
  HLOJIT_UNSUPPORTED = 3, /* known HLO that this version does not compile */
  HLOJIT_INVALID = 4,     /* not valid HLO */
  HLOJIT_INPUT = 5,       /* a buffer or an argument does not fit */
  HLOJIT_FAILED = 6       /* failed while running: memory, a custom call */
};

/* One finding. Fill in struct_size before asking. */
typedef struct hlojit_diagnostic {
  size_t struct_size;
  int line, column;        /* from 1; 0: unknown */
  const char* instruction; /* never NULL; empty if there is none */
  const char* rule;        /* a short stable name such as "result-shape", or empty */
  const char* message;     /* one line */
  const char* details;     /* further lines, or empty */
} hlojit_diagnostic;

HLOJIT_C_API int hlojit_error_get_kind(const hlojit_error* error);
/* The first finding with its place, in one line. */
HLOJIT_C_API const char* hlojit_error_message(const hlojit_error* error);
HLOJIT_C_API size_t hlojit_error_count(const hlojit_error* error);
/* Finding number `index`; 0 if there is none of that number. */
HLOJIT_C_API int hlojit_error_get(const hlojit_error* error, size_t index, hlojit_diagnostic* out);
HLOJIT_C_API void hlojit_error_free(hlojit_error* error);

/* ---- modules ----------------------------------------------------------------------------------- */

/* HLO text, or a serialised HloModuleProto. */
HLOJIT_C_API hlojit_error* hlojit_parse(const char* text, size_t size, hlojit_module** out);
/* Since version 8. The same for text whose constants were left out when it was printed, {...}: `elided` writes each
 * one's values, `size` bytes of row-major memory of that shape, in the order of the text. It returns NULL, or what went
 * wrong, which is read at once. */
typedef const char* (*hlojit_elided)(void* context, const char* shape, void* data, size_t size);
HLOJIT_C_API hlojit_error* hlojit_parse_elided(const char* text, size_t size, hlojit_elided elided, void* context,
                                               hlojit_module** out);
/* The error holds every finding of the module. */
HLOJIT_C_API hlojit_error* hlojit_verify(const hlojit_module* module);
/* Since version 4. Runs the evaluator on the leaves: slow, obvious, independent of the compiler. */
HLOJIT_C_API hlojit_error* hlojit_evaluate(const hlojit_module* module, hlojit_buffer* const* inputs,
                                           size_t input_count, hlojit_buffer** outputs, size_t output_count);
/* As HLO text. */
HLOJIT_C_API const char* hlojit_module_text(hlojit_module* module);
HLOJIT_C_API void hlojit_module_free(hlojit_module* module);

/* Since version 3. The leaves and their shapes as HLO text, layouts included; NULL if there is none of that number. */
HLOJIT_C_API const char* hlojit_module_parameter_shape(const hlojit_module* module, size_t index);
HLOJIT_C_API const char* hlojit_module_result_shape(const hlojit_module* module, size_t index);
/* Since version 3. The same program for a caller whose arrays lie otherwise: a shape a leaf as HLO text, the module's
 * own where that is NULL; a NULL list, with any count, changes none. HLOJIT_INPUT for another array than the
 * program's, or another number of them. */
HLOJIT_C_API hlojit_error* hlojit_module_with_layouts(const hlojit_module* module, const char* const* parameters,
                                                      size_t parameter_count, const char* const* results,
                                                      size_t result_count, hlojit_module** out);
/* Since version 3. The instructions of a module's entry in order; of one that went through the passes: the kernels.
 * Tuples, their elements, bitcasts and small constants are left out: who reads them reads what they are made of. */
typedef struct hlojit_graph hlojit_graph;
typedef struct hlojit_graph_node {
  size_t struct_size;
  const char* name;
  const char* opcode;     /* as HLO text has it: "parameter", "fusion", "while" */
  const char* kind;       /* of a fusion's kernel, once it is planned, or empty */
  const char* shape;      /* of the result, as HLO text */
  const size_t* operands; /* numbers of the nodes that it reads, each once; all are smaller than its own */
  size_t operand_count;
  int64_t bytes_read;    /* the operands, each once */
  int64_t bytes_written; /* the result */
} hlojit_graph_node;
HLOJIT_C_API hlojit_error* hlojit_graph_make(const hlojit_module* module, hlojit_graph** out);
HLOJIT_C_API size_t hlojit_graph_size(const hlojit_graph* graph);
/* Node number `index`, whose texts and list belong to the graph; 0 if there is none of that number. Fill in
 * struct_size before asking. */
HLOJIT_C_API int hlojit_graph_get(const hlojit_graph* graph, size_t index, hlojit_graph_node* out);
HLOJIT_C_API void hlojit_graph_free(hlojit_graph* graph);

/* ---- compiling --------------------------------------------------------------------------------- */

/* Zero everything but struct_size for the defaults. */
typedef struct hlojit_options {
  size_t struct_size;
  int threads;            /* of a run, the caller included; 0: one a core */
  int strict;             /* 1: elementwise results equal the evaluator's bit for bit */
  int fast_compile;       /* 1: compile faster, run slower */
  int scatter_oob_window; /* 1: scatter drops a whole window that is partly out of bounds */
  const char* isa;        /* NULL or "native", "avx2", "avx512" or a CPU by LLVM's name for it */
  const char* cache_dir;  /* compiled code is kept here; NULL: nowhere */
  /* Since version 2. */
  /* The caller's threads in place of ours, of which there are `threads`; NULL: ours. Runs f(arg, k) once for each
   * k in [0, tasks), on any threads in any order, and returns when all are done. Called from each thread that
   * runs a program. Bits of results do not depend on it. parallel_context must outlive every run. */
  void (*parallel_for)(void* parallel_context, int64_t tasks, void (*f)(void* arg, int64_t k), void* arg);
  void* parallel_context;
  int64_t memory_limit; /* bytes of one call: temporaries, results, constants; 0: none */
  /* Since version 4. */
  int64_t replicas; /* devices: replicas times partitions; 0: what the module's header says */
  int64_t partitions;
  /* HLO after each pass, LLVM IR, assembly and the buffer plan are written into this folder, which is made if missing;
   * NULL: nowhere. */
  const char* dump_dir;
  /* Receives each decision of the compiler, a line each, on the thread that compiles; NULL: nobody. */
  void (*explain)(void* explain_context, const char* line);
  void* explain_context;
  /* Since version 5. */
  /* Names of passes to leave out (hlojit_pass_name), separated by commas; NULL: none. */
  const char* disabled_passes;
  /* Receives the program's text after each pass that changed something, on the thread that compiles; NULL: nobody. */
  void (*after_pass)(void* after_pass_context, const char* pass, const char* hlo);
  void* after_pass_context;
  /* Since version 7 (in version 6 its opposite). */
  int keep_subnormals; /* 0, and not strict: subnormal floats are zeros where they are computed with, as in XLA:CPU */
} hlojit_options;

/* Since version 5. The passes in their order; NULL if there is none of that number. */
HLOJIT_C_API const char* hlojit_pass_name(size_t index);

/* options: NULL for the defaults. */
HLOJIT_C_API hlojit_error* hlojit_compile(const hlojit_module* module, const hlojit_options* options,
                                          hlojit_executable** out);
HLOJIT_C_API void hlojit_executable_free(hlojit_executable* executable);

/* Since version 3. The program after the compiler's passes, all up to and including `until`; NULL: all. options:
 * NULL for the defaults. */
HLOJIT_C_API hlojit_error* hlojit_module_run_passes(const hlojit_module* module, const hlojit_options* options,
                                                    const char* until, hlojit_module** out);

/* Since version 5. One instruction of a sequential computation (a fusion), "NAME" or "COMPUTATION/NAME", as a module of
 * its own. HLOJIT_INPUT if there is none of that name. */
HLOJIT_C_API hlojit_error* hlojit_module_extract(const hlojit_module* module, const char* instruction,
                                                 hlojit_module** out);

/* Since version 4. What the compiler makes of it, as `*size` bytes that hlojit_bytes_free frees: "hlo" (after all
 * passes), "llvm", "asm" or "obj". */
HLOJIT_C_API hlojit_error* hlojit_emit(const hlojit_module* module, const char* what, const hlojit_options* options,
                                       char** out, size_t* size);

/* Since version 2. The program with its compiled code, as `*size` bytes that hlojit_bytes_free frees, and an
 * executable out of such bytes: of the same version of the library, else HLOJIT_INPUT. Of options those count
 * that change no code. The bytes hold machine code: load only what you trust. */
HLOJIT_C_API hlojit_error* hlojit_serialize(const hlojit_executable* executable, char** out, size_t* size);
HLOJIT_C_API void hlojit_bytes_free(char* bytes);
HLOJIT_C_API hlojit_error* hlojit_load(const char* bytes, size_t size, const hlojit_options* options,
                                       hlojit_executable** out);

/* Leaves and their shapes as HLO text, e.g. "f32[3,5]{1,0}"; NULL if there is none of that number. */
HLOJIT_C_API size_t hlojit_parameter_count(const hlojit_executable* executable);
HLOJIT_C_API size_t hlojit_result_count(const hlojit_executable* executable);
HLOJIT_C_API const char* hlojit_parameter_shape(const hlojit_executable* executable, size_t index);
HLOJIT_C_API const char* hlojit_result_shape(const hlojit_executable* executable, size_t index);
/* The parameter leaf whose memory result `index` takes over when it is donated; -1: none. */
HLOJIT_C_API int64_t hlojit_result_donor(const hlojit_executable* executable, size_t index);

/* Since version 4. Devices that the program is for: replicas times partitions. */
HLOJIT_C_API int64_t hlojit_replicas(const hlojit_executable* executable);
HLOJIT_C_API int64_t hlojit_partitions(const hlojit_executable* executable);
/* Since version 4. A kernel as compiled, and a phase of compiling: number `index`; 0 if there is none of that number.
 * Fill in struct_size before asking. */
typedef struct hlojit_kernel {
  size_t struct_size;
  const char* name; /* of the fusion instruction */
  const char* kind; /* "nest", "rows", "columns", "contraction" */
} hlojit_kernel;
typedef struct hlojit_phase {
  size_t struct_size;
  const char* name;
  double ms;
} hlojit_phase;
HLOJIT_C_API int hlojit_get_kernel(const hlojit_executable* executable, size_t index, hlojit_kernel* out);
HLOJIT_C_API int hlojit_get_phase(const hlojit_executable* executable, size_t index, hlojit_phase* out);

/* Cost of one call. */
typedef struct hlojit_cost {
  size_t struct_size;
  double flops;         /* of dots */
  double bytes_read;    /* of parameters */
  double bytes_written; /* of results */
  int64_t arena_bytes;  /* temporaries */
} hlojit_cost;
HLOJIT_C_API void hlojit_get_cost(const hlojit_executable* executable, hlojit_cost* out);
/* What holds memory at the peak, a line a buffer. */
HLOJIT_C_API const char* hlojit_memory_report(const hlojit_executable* executable);

/* ---- buffers ----------------------------------------------------------------------------------- */

/* Arrays with their layout. `shape` is HLO text, e.g. "f32[8,128]{1,0:T(8,128)}". */

/* The caller's memory, aligned to the element; it must outlive the buffer and every run that reads it.
 * Never written. */
HLOJIT_C_API hlojit_error* hlojit_buffer_borrow(const void* data, const char* shape, hlojit_buffer** out);
/* Own memory, uninitialised. */
HLOJIT_C_API hlojit_error* hlojit_buffer_allocate(const char* shape, hlojit_buffer** out);
/* The same elements in another layout. */
HLOJIT_C_API hlojit_error* hlojit_buffer_relayout(const hlojit_buffer* buffer, const char* shape, hlojit_buffer** out);
HLOJIT_C_API size_t hlojit_buffer_size(const hlojit_buffer* buffer); /* bytes */
HLOJIT_C_API const void* hlojit_buffer_data(const hlojit_buffer* buffer);
/* Writable; NULL for borrowed memory. */
HLOJIT_C_API void* hlojit_buffer_mutable_data(hlojit_buffer* buffer);
HLOJIT_C_API const char* hlojit_buffer_shape(const hlojit_buffer* buffer);
HLOJIT_C_API void hlojit_buffer_free(hlojit_buffer* buffer);
/* Since version 4. The elements as a literal in HLO text, `*size` bytes that hlojit_bytes_free frees. */
HLOJIT_C_API hlojit_error* hlojit_buffer_text(const hlojit_buffer* buffer, char** out, size_t* size);
/* Since version 4. Results of hlojit_run_promises before their run is over are not ready; all others are. Waiting
 * returns the run's error. Asking for memory waits too, and gives NULL if the run failed. */
HLOJIT_C_API int hlojit_buffer_ready(const hlojit_buffer* buffer);
HLOJIT_C_API hlojit_error* hlojit_buffer_wait(const hlojit_buffer* buffer);
/* Since version 4. Gives memory that is kept for coming calls back to the system; returns the bytes. */
HLOJIT_C_API size_t hlojit_release_idle_memory(void);

/* ---- running ----------------------------------------------------------------------------------- */

/* Runs: `input_count` buffers, one a parameter leaf, whose shapes are the program's, layouts included;
 * writes one new buffer a result leaf to outputs. Inputs stay the caller's. */
HLOJIT_C_API hlojit_error* hlojit_execute(const hlojit_executable* executable, hlojit_buffer* const* inputs,
                                          size_t input_count, hlojit_buffer** outputs, size_t output_count);
/* The same; inputs[k] with donate[k] != 0 give their memory to results that the program aliases to them, and
 * hold nothing afterwards, also if the run fails. One buffer must not be given twice if it is donated. */
HLOJIT_C_API hlojit_error* hlojit_execute_donating(const hlojit_executable* executable, hlojit_buffer* const* inputs,
                                                   const unsigned char* donate, size_t input_count,
                                                   hlojit_buffer** outputs, size_t output_count);

/* Since version 2. A run on a thread of its own. Inputs (and borrowed memory behind them) must live until it is
 * over; donate may be NULL. `done`, unless NULL, is called on that thread once all is over. */
typedef struct hlojit_run hlojit_run;
HLOJIT_C_API hlojit_error* hlojit_execute_async(const hlojit_executable* executable, hlojit_buffer* const* inputs,
                                                const unsigned char* donate, size_t input_count,
                                                void (*done)(void* context), void* context, hlojit_run** out);
/* 1 once it is over, well or not. */
HLOJIT_C_API int hlojit_run_ready(const hlojit_run* run);
/* Waits; writes the results as hlojit_execute does, or returns the run's error. Once. */
HLOJIT_C_API hlojit_error* hlojit_run_results(hlojit_run* run, hlojit_buffer** outputs, size_t output_count);
/* Since version 4. The results at once, in place of hlojit_run_results: to be given to other runs, or waited for. Their
 * shapes have the bounds of dynamic dimensions. Once. */
HLOJIT_C_API hlojit_error* hlojit_run_promises(hlojit_run* run, hlojit_buffer** outputs, size_t output_count);
/* Waits for the run's end, unless called by `done`. */
HLOJIT_C_API void hlojit_run_free(hlojit_run* run);

/* ---- devices, queues, stopping ------------------------------------------------------------------ */

/* Since version 4, all of it. What a program and its host hand to each other while it runs, first in, first out: infeed
 * and outfeed by device, send and recv by device and channel. Buffers put in stay the caller's. Taking waits as long
 * as `wait_s` seconds. */
typedef struct hlojit_queues hlojit_queues;
HLOJIT_C_API hlojit_error* hlojit_queues_make(hlojit_queues** out);
HLOJIT_C_API hlojit_error* hlojit_infeed_push(hlojit_queues* queues, int64_t device, const hlojit_buffer* leaf);
HLOJIT_C_API hlojit_error* hlojit_outfeed_pop(hlojit_queues* queues, int64_t device, double wait_s,
                                              hlojit_buffer** out);
HLOJIT_C_API hlojit_error* hlojit_channel_send(hlojit_queues* queues, int64_t device, int64_t channel,
                                               const hlojit_buffer* leaf);
HLOJIT_C_API hlojit_error* hlojit_channel_receive(hlojit_queues* queues, int64_t device, int64_t channel, double wait_s,
                                                  hlojit_buffer** out);
HLOJIT_C_API void hlojit_queues_free(hlojit_queues* queues);

/* Ends loops of the runs that it is given to, which then fail. */
typedef struct hlojit_stop hlojit_stop;
HLOJIT_C_API hlojit_error* hlojit_stop_make(hlojit_stop** out);
HLOJIT_C_API void hlojit_stop_set(hlojit_stop* stop);
HLOJIT_C_API void hlojit_stop_free(hlojit_stop* stop);

/* Zero everything but struct_size for the defaults. */
typedef struct hlojit_run_options {
  size_t struct_size;
  hlojit_queues* queues;   /* NULL: none */
  const hlojit_stop* stop; /* NULL: none; must outlive the run */
  double wait_s;           /* how long a device waits for another, or for the host, before it fails; 0: 60 */
} hlojit_run_options;

/* Runs on all devices of the program, one or several, a thread each: device = replica * partitions + partition.
 * inputs: the leaves of the first device, then those of the next, ...; or one set for all of them. Writes a new buffer
 * a result leaf to outputs, device by device. options: NULL for the defaults. If a device fails the others stop, and
 * its error is returned. */
HLOJIT_C_API hlojit_error* hlojit_execute_devices(const hlojit_executable* executable,
                                                  const hlojit_run_options* options, hlojit_buffer* const* inputs,
                                                  size_t input_count, hlojit_buffer** outputs, size_t output_count);

/* Since version 5. hlojit_execute_async with such options: a run on one device that can be stopped, and has queues. */
HLOJIT_C_API hlojit_error* hlojit_execute_async_with(const hlojit_executable* executable,
                                                     const hlojit_run_options* options, hlojit_buffer* const* inputs,
                                                     const unsigned char* donate, size_t input_count,
                                                     void (*done)(void* context), void* context, hlojit_run** out);

/* Since version 5. One run of a program on its devices whose threads are the caller's: hlojit_device_run_on is called
 * once for each device, from threads of their own. A device that never comes makes the others fail after wait_s;
 * hlojit_device_run_stop makes all that wait for others fail with the reason. */
typedef struct hlojit_device_run hlojit_device_run;
HLOJIT_C_API hlojit_error* hlojit_device_run_make(const hlojit_executable* executable,
                                                  const hlojit_run_options* options, hlojit_device_run** out);
HLOJIT_C_API hlojit_error* hlojit_device_run_on(hlojit_device_run* run, int64_t device, hlojit_buffer* const* inputs,
                                                size_t input_count, hlojit_buffer** outputs, size_t output_count);
HLOJIT_C_API void hlojit_device_run_stop(hlojit_device_run* run, const char* why);
HLOJIT_C_API void hlojit_device_run_free(hlojit_device_run* run);

/* ---- custom calls ------------------------------------------------------------------------------ */

/* Since version 2. Serves custom_call_target="target": called at each execution with a pointer an operand leaf
 * and a result leaf, in the layouts that the program gives them. Returns NULL, or what went wrong, which is
 * read before the thread calls the function again. Perhaps called from several threads at once. A NULL
 * function removes it; programs that are compiled already keep what they found. `release`, unless NULL, is
 * called with `context` once, from any thread, when neither the name nor a program or a run of one needs the
 * function any more. */
typedef const char* (*hlojit_custom_call)(void* context, const void* const* operands, void* const* results);
HLOJIT_C_API hlojit_error* hlojit_register_custom_call(const char* target, hlojit_custom_call function, void* context,
                                                       void (*release)(void* context));

/* Since version 5. The threads of the program that makes a call, for as long as the call lasts: run(pool, tasks, f,
 * arg) calls f(arg, k) once for each k in [0, tasks), on any of them in any order, and returns when all are done. */
typedef struct hlojit_pool {
  size_t struct_size;
  int threads;
  void (*run)(const struct hlojit_pool* pool, int64_t tasks, void (*f)(void* arg, int64_t k), void* arg);
  const void* own; /* the library's */
} hlojit_pool;

/* Since version 4. The same for a target whose function depends on what the program says of the call. `maker` is called
 * when a program is compiled, at least once for each call; it fills in a function with a context of its own (released
 * once no program or run needs it), and returns NULL, or why it refuses the call. */
typedef struct hlojit_call_site {
  size_t struct_size;
  const char *target, *api_version, *backend_config, *frontend_attributes; /* never NULL */
  const char* const* operands; /* shapes of the leaves as HLO text, with the layouts that the memory has */
  size_t operand_count;
  const char* const* results;
  size_t result_count;
  int has_side_effect;
} hlojit_call_site;
typedef struct hlojit_call {
  size_t struct_size;
  hlojit_custom_call function;
  void* context;
  void (*release)(void* context); /* or NULL */
  /* Since version 5. In place of `function`, for one that shares its work with the program's threads. */
  const char* (*pooled)(void* context, const void* const* operands, void* const* results,
                        const struct hlojit_pool* pool);
} hlojit_call;
typedef const char* (*hlojit_call_maker)(void* context, const hlojit_call_site* site, hlojit_call* out);
HLOJIT_C_API hlojit_error* hlojit_register_call_maker(const char* target, hlojit_call_maker maker, void* context,
                                                      void (*release)(void* context));

/* Since version 5. Serves targets by `void TARGET(void* out, const void** in)` of a shared library, of calls of
 * API_VERSION_ORIGINAL: `in` has a pointer an operand, `out` is the result's memory; a tuple is an array of pointers to
 * its elements. HLOJIT_INPUT if the library cannot be loaded. It is never unloaded. */
HLOJIT_C_API hlojit_error* hlojit_load_custom_calls(const char* path);

/* Since version 4. Serves a target by handlers of XLA's foreign function interface (XLA_FFI_Handler*, as the macros of
 * its headers define them); those of other stages than execute may be NULL. */
HLOJIT_C_API hlojit_error* hlojit_register_ffi(const char* target, void* instantiate, void* prepare, void* initialize,
                                               void* execute);

#ifdef __cplusplus
}
#endif
