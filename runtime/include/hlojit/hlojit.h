// hlojit: HLO in, native SIMD code out. The whole public interface; the command line uses nothing else.
//
//     #include <hlojit/hlojit.h>
//
//     auto m = hlojit::parse(text);                              // HLO text
//     auto e = hlojit::compile(m, hlojit::Options{});            // native code
//     float x[3] = {1, 2, 3};
//     auto out = e.run({hlojit::Buffer::borrow(x, hlojit::Shape::parse("f32[3]"))});
//     const float* y = out[0].data<float>();
//
// Errors are exceptions of type hlojit::Error (kind, location, rule); nothing prints or aborts.
// A leaf is an array inside a (possibly nested) tuple; leaves are counted depth first over the
// parameters in number order. Tokens and () have no leaf.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "layout/error.h"
#include "layout/export.h"
#include "layout/shape.h"

namespace hlojit {

class Module;     // the parsed program; opaque here
struct RunState;  // of one call; opaque here

/// A program. Immutable after parse; share it freely between threads.
using ModulePtr = std::shared_ptr<const Module>;

/// The caller's own threads in place of ours. call() runs f(argument, k) once for each k in [0, tasks), on
/// any threads in any order, and returns when all are done; it is called from each thread that runs a
/// program, perhaps from several at once, and must not throw. Result bits do not depend on it.
struct ParallelFor {
  void (*call)(void* context, int64_t tasks, void (*f)(void* argument, int64_t k), void* argument) = nullptr;
  void* context = nullptr;  ///< must outlive every run
};

/// How to compile and run. A value; the defaults are what ships.
struct Options {
  /// Threads of a run, the caller's included, at most 4096; 0: one a core. No more than the cores work at a time,
  /// unless the process has oneTBB allow it. Never changes result bits.
  int threads = 0;
  std::string isa = "native";  ///< "native", "avx2", "avx512" or a CPU by LLVM's name for it
  /// No contraction: elementwise results equal the evaluator's bit for bit. And no instruction that takes subnormal
  /// bf16 factors and sums for zeros, as dots of bf16 may use otherwise. (A convolution's padding times a weight that
  /// is inf or NaN is nothing to the evaluator; compiled it may be NaN, as in XLA:CPU, with strict, too.)
  bool strict = false;
  /// f32, f64 and bf16 that are subnormal keep their value where they are computed with and where they come out, as
  /// they do with strict. Else they are zeros there, as in XLA:CPU: some machines take a hundred times as long for
  /// them. They are kept in any case where bits are moved, and by what is computed while compiling.
  bool keep_subnormals = false;
  int effort = 1;                                   ///< 0 compiles faster and runs slower; 1 and 2 are the same
  bool scatter_oob_window = false;                  ///< XLA's rule: drop a whole window that is partly out of bounds
  std::vector<std::string> disabled_passes;         ///< names from `hlojit opt --list-passes`
  std::function<void(const std::string&)> explain;  ///< receives each decision of the passes, a line each
  /// Called after each pass that changed something, with its name and the program's text.
  std::function<void(const std::string& pass, const std::string& hlo)> after_pass;
  std::string cache_dir;  ///< keep compiled objects here; empty: no cache. One that cannot be used is done without.
  /// Write here what the program becomes, for people: HLO after each pass, LLVM IR, assembly, the buffer plan. Made if
  /// missing; files of the same names are replaced. Error(kFailed) if it cannot be written. Empty: nowhere.
  std::string dump_dir;
  int64_t replicas = 0;  ///< devices: replicas times partitions; 0: what the module's header says (1)
  int64_t partitions = 0;
  ParallelFor parallel_for;  ///< runs parallel work; `threads` then tells how many threads it has
  /// Bytes that one call may take for temporaries, results and constants; compile throws Error(kFailed)
  /// with the memory report for a program that takes more. 0: no limit but the machine's.
  int64_t memory_limit = 0;
  int vector_bytes = 0;  ///< for tests: vectors of this size instead of the machine's (4 = scalar code)
  int smaller = 1;       ///< for tests: as if caches, and the work that is shared out, were so many times smaller
};

/// An array in memory: a shape (with layout) and physical_size(shape) bytes. Copies share the memory.
/// The pointer must be aligned to the element only.
class HLOJIT_API Buffer {
 public:
  Buffer() = default;
  /// Refers to the caller's memory, which must outlive every use and is never written.
  static Buffer borrow(const void* data, Shape shape);
  /// Own memory from the pool, uninitialised. Throws Error(kFailed) if there is not enough.
  static Buffer allocate(Shape shape);
  /// Own copy of physical_size(shape) bytes.
  static Buffer copy_of(const void* data, const Shape& shape);

  const Shape& shape() const {
    if (promise_ && shape_->has_dynamic_dims()) return kept().shape();
    return shape_ ? *shape_ : no_shape();
  }
  size_t size_bytes() const;
  const void* raw() const { return promise_ ? kept().data_ : data_; }
  /// Writable access to own memory (allocate, copy_of, results). Throws Error(kInput) on a borrowed one.
  void* mutable_raw();
  template <class T>
  const T* data() const {
    return static_cast<const T*>(raw());
  }
  /// The same elements in another layout (a copy). Shapes must be compatible.
  Buffer to_layout(const Shape& shape) const;
  bool borrowed() const { return data_ != nullptr && owner_ == nullptr; }
  /// No other Buffer shares the memory.
  bool unique() const { return promise_ ? promise_.use_count() == 1 : owner_ != nullptr && owner_.use_count() == 1; }
  /// False while the run is under way that this is a result of (PendingRun::results). Asking for the memory, or
  /// for sizes that the run finds out, waits for it, as do runs that the buffer is given to; if it fails, its error
  /// is thrown there.
  bool ready() const;
  void wait() const;

 private:
  friend class Executable;
  friend class PendingRun;
  struct Promise;
  static const Shape& no_shape();
  const Buffer& kept() const;           ///< what the run has made; waits
  void keep();                          ///< becomes that
  std::shared_ptr<const Shape> shape_;  ///< shared with copies; null: no_shape()
  void* data_ = nullptr;
  std::shared_ptr<void> owner_;
  std::shared_ptr<Promise> promise_;  ///< null: the memory is there
};

/// What a program and its host hand to each other while it runs: infeed and outfeed, send and recv.
/// First in, first out; several leaves of one transfer follow each other. A copy is the same queues.
class HLOJIT_API HostQueues {
 public:
  HostQueues();
  /// The next leaf that an infeed of the device takes, in any layout.
  void push_infeed(int64_t device, Buffer leaf);
  /// The next leaf of an outfeed of the device; waits for it, Error(kFailed) after `wait_s`.
  Buffer pop_outfeed(int64_t device, double wait_s = 60);
  bool outfeed_empty(int64_t device) const;
  /// What a recv (is_host_transfer=true) of the device on the channel gets / a send has sent.
  void send(int64_t device, int64_t channel, Buffer leaf);
  Buffer receive(int64_t device, int64_t channel, double wait_s = 60);

  struct Impl;

 private:
  friend struct HostQueueAccess;
  std::shared_ptr<Impl> impl_;
};

/// How to run.
struct RunOptions {
  HostQueues queues;
  double wait_s = 60;  ///< how long a device waits for another, or for the host, before it fails
  /// Once another thread sets it, loops of the program end at their next iteration, kernels at their next chunk, and
  /// the call throws Error(kFailed). May be null.
  const std::atomic<bool>* stop = nullptr;
};

/// How long compiling took, in ms, phase by phase (names of passes, "buffers", "emit", "jit", "link").
/// With a cache, and of what was loaded: "cache" in place of "emit" and "jit" on a hit, else also "cache miss" or
/// "cache unusable: WHY". "unsettled": passes that still changed something were stopped.
struct PhaseTime {
  std::string name;
  double ms = 0;
};

/// A kernel as compiled, for reports.
struct KernelInfo {
  std::string name;  ///< the fusion instruction
  std::string kind;  ///< "nest", "rows", "columns", "contraction", "scan" or "scatter"
};

/// A call under way on a thread of its own. A value; copies are of the same call. The last copy to go waits
/// for the call's end.
class HLOJIT_API PendingRun {
 public:
  bool ready() const;
  void wait() const;
  size_t result_count() const;
  /// The results once they are there; throws what the run threw. The results are handed out once: Error(kInput)
  /// after that.
  std::vector<Buffer> get() const;
  /// The results at once, not ready yet: to be given to other runs, or waited for one by one. Handed out once, too.
  std::vector<Buffer> results() const;

 private:
  friend class Executable;
  friend class Buffer;
  struct Impl;
  explicit PendingRun(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> impl_;
};

/// Native code for one module. Cheap to copy (shared); run() may be called from many threads at once.
/// In a process forked off one that has computed, while no call was under way, run() works on the caller's thread
/// alone; run_async() and run_devices() of a program that had its own threads by then throw Error(kFailed), as does
/// waiting for a run that was not over.
class HLOJIT_API Executable {
 public:
  /// Runs the entry computation: a Buffer a parameter leaf in, a Buffer a result leaf out. Shapes must
  /// equal parameter_shapes() including layouts: Error(kInput) otherwise. For a dynamic dimension
  /// (f32[<=8]) any size up to the bound may be given, and results have the sizes they turned out to have. An owned,
  /// unique buffer given for a parameter that the module aliases to a result is donated: its memory becomes the
  /// result's. Throws Error(kFailed) for failures while running (memory).
  std::vector<Buffer> run(std::vector<Buffer> inputs) const;
  std::vector<Buffer> run(std::vector<Buffer> inputs, const RunOptions& options) const;
  /// The same on another thread. `done` is called there once the results (or the error) are there; it must
  /// not throw. Borrowed inputs, and what options point to, must outlive the call. Throws Error(kFailed) if
  /// no thread can be had.
  PendingRun run_async(std::vector<Buffer> inputs, std::function<void()> done = {},
                       const RunOptions& options = {}) const;
  /// Runs a program for several devices, a thread each: a set of inputs a device, in device order
  /// (device = replica * partitions + partition), or one set for all; a set of results a device. If a
  /// device fails the others stop, and its error is thrown.
  std::vector<std::vector<Buffer>> run_devices(std::vector<std::vector<Buffer>> inputs,
                                               const RunOptions& options = {}) const;
  int64_t replicas() const;
  int64_t partitions() const;

  const std::vector<Shape>& parameter_shapes() const;
  const std::vector<Shape>& result_shapes() const;
  /// For each result leaf the parameter leaf whose donated memory it takes over, or -1.
  const std::vector<int64_t>& donors() const;
  /// Temporaries of one call, in bytes.
  int64_t arena_bytes() const;
  const std::vector<PhaseTime>& compile_times() const;
  const std::vector<KernelInfo>& kernels() const;
  int threads() const;
  const std::string& isa() const;
  /// Operations of dots and convolutions of one call (a loop's body once), and bytes read once plus written once.
  double flops() const;
  double io_bytes_read() const;
  double io_bytes_written() const;
  /// What holds memory at the peak, a line a buffer.
  const std::string& memory_report() const;
  /// The program with its options and its compiled code, for load(). Compiles nothing.
  std::string serialize() const;

  struct Impl;
  explicit Executable(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

 private:
  friend class DeviceRun;
  static std::vector<Buffer> call(const Impl& code, std::vector<Buffer> inputs, RunState& run);
  std::shared_ptr<const Impl> impl_;
};

/// One run of a program on its devices whose threads are the caller's: run() is called once for each
/// device, from threads of their own. A device that never comes makes the others fail after wait_s.
class HLOJIT_API DeviceRun {
 public:
  explicit DeviceRun(Executable executable, RunOptions options = {});
  /// As Executable::run, for one device.
  std::vector<Buffer> run(int64_t device, std::vector<Buffer> inputs);
  /// All devices that wait for others fail with the reason: Error(kFailed).
  void stop(const std::string& why);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

/// Parses HLO text, or a binary HloModuleProto, HloProto or HloSnapshot; no verification beyond syntax.
/// Throws Error(kInvalid) with line and column, or an instruction's name. `elided` makes the values of constants
/// that were left out of the text, `{...}`: called in the order of the text, gives an array of that type and those
/// sizes; without it they are an error.
HLOJIT_API ModulePtr parse(std::string_view text, const std::function<Buffer(const Shape& shape)>& elided = {});
/// Verifies: throws Error(kInvalid) that lists every error of the module.
HLOJIT_API void verify(const ModulePtr& module);
/// Verifies, optimises and compiles. Throws Error(kInvalid, kUnsupported, kFailed).
HLOJIT_API Executable compile(const ModulePtr& module, const Options& options = {});
/// An executable out of what serialize() gave, on this machine or another: kernels made for this build of the
/// library and this machine's features are taken as they are, others are compiled. Of `options` those count
/// that change no code (threads, keep_subnormals, parallel_for, memory_limit, cache_dir, dump_dir, explain). Throws
/// Error(kInput) for bytes of another version, or damaged ones. The bytes hold machine code: load only what you trust.
HLOJIT_API Executable load(std::string_view serialized, const Options& options = {});
/// The module as HLO text that parses back.
HLOJIT_API std::string to_text(const ModulePtr& module);
/// The elements as a literal in HLO text, and as doubles (complex: real parts), in row-major order.
HLOJIT_API std::string literal_text(const Buffer& buffer);
HLOJIT_API std::vector<double> to_doubles(const Buffer& buffer);
/// Runs the evaluator (slow, obvious, independent of the compiler) on the same leaves. Throws Error(kInput) for other
/// leaves than the program's.
HLOJIT_API std::vector<Buffer> evaluate(const ModulePtr& module, const std::vector<Buffer>& inputs,
                                        const Options& options = {});
/// Parameter or result leaves of a module (with the entry layout), before compiling it.
HLOJIT_API std::vector<Shape> parameter_leaves(const ModulePtr& module);
HLOJIT_API std::vector<Shape> result_leaves(const ModulePtr& module);
/// The same program for a caller whose arrays lie otherwise: its leaves with the layouts wanted. Throws
/// Error(kInput) for other arrays or another number of them, Error(kInvalid) for a layout that does not fit.
HLOJIT_API ModulePtr with_layouts(const ModulePtr& module, std::span<const Shape> parameters,
                                  std::span<const Shape> results);

/// What the compiler makes of a module.
enum class Emit { kHlo, kLlvm, kAssembly, kObject };
/// Throws what compile() does. `times`: receives how long that took, phase by phase.
HLOJIT_API std::string emit(const ModulePtr& module, Emit what, const Options& options = {},
                            std::vector<PhaseTime>* times = nullptr);
/// HLO after passes: all up to and including `until` (empty: all), or exactly `only` if not empty. Throws Error(kInput)
/// for a name that is no pass's.
HLOJIT_API ModulePtr run_passes(const ModulePtr& module, const Options& options, const std::string& until,
                                const std::vector<std::string>& only = {});
/// Names of all passes, in order, each once.
HLOJIT_API std::vector<std::string> pass_list();
/// Those of them that compile() needs for more than speed.
HLOJIT_API std::vector<std::string> needed_passes();
/// One instruction of a sequential computation (a fusion), "NAME" or "COMPUTATION/NAME", as a module of its
/// own. Error(kInput) if there is none of that name.
HLOJIT_API ModulePtr extract(const ModulePtr& module, std::string_view instruction);

/// An instruction of an entry computation, as graph() shows it.
struct GraphNode {
  std::string name;
  std::string opcode;            ///< as HLO text has it: "parameter", "fusion", "while"
  std::string kind;              ///< of a fusion's kernel, once it is planned (KernelInfo::kind)
  Shape shape;                   ///< the result
  std::vector<size_t> operands;  ///< nodes that it reads, each once; all stand before it
  int64_t bytes_read = 0;        ///< sizes of the operands, each read once
  int64_t bytes_written = 0;     ///< size of the result
};
/// The entry computation of a module (of run_passes: the kernels of a program) in order. Tuples, their elements,
/// bitcasts and small constants are left out: who reads them reads what they are made of.
HLOJIT_API std::vector<GraphNode> graph(const ModulePtr& module);

/// Counters of the process, for tests: native entry calls and uses of the evaluator so far.
struct Counters {
  int64_t entries = 0;
  int64_t evaluations = 0;
};
HLOJIT_API Counters counters();

/// Gives memory that is kept for coming calls back to the system; returns the bytes.
HLOJIT_API size_t release_idle_memory();

HLOJIT_API std::string version();

}  // namespace hlojit
