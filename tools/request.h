// What a user asks for: one struct for every verb, filled from the command line (hlojit.cc) or from a
// JSON line (batch.cc), so that both mean the same.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "compiler/ir/literal.h"
#include "hlojit/hlojit.h"

namespace hlojit::roof {
class Roof;
}

namespace hlojit::tools {

class Watch;
struct HostSide;

struct Request {
  std::string module;               ///< path, or "-" for standard input
  std::vector<std::string> inputs;  ///< `F.npy` or `K=F.npy`
  std::optional<uint64_t> random;
  std::optional<uint64_t> elided;  ///< seed for constants printed as {...}
  std::string output_dir;
  bool print = false;
  bool compiles = false, against_eval = false;
  std::optional<double> rtol, ulp;  ///< tolerance of against_eval in place of what the error analysis allows
  std::vector<std::string> passes;
  std::string until, extract;
  bool list_passes = false, explain = false;
  std::string emit, output;
  std::string shape;
  std::optional<std::vector<int64_t>> index;
  std::optional<int64_t> linear;
  bool json = false;
  double min_ms = 200;
  std::optional<uint64_t> seed;
  std::optional<int64_t> count;
  std::optional<double> seconds;
  std::string out;
  bool census = false;
  std::vector<std::string> draw;  ///< families that every module of fuzz draws from

  // Common options.
  int threads = 0;
  std::string device_isa = "native";
  bool strict = false, keep_subnormals = false;
  std::vector<std::string> disable;
  int effort = 1;
  std::string cache, dump_to;
  bool time = false;
  std::string scatter_oob = "element";
  std::vector<std::string> load;
  std::optional<double> timeout_s;
  int64_t replicas = 0, partitions = 0;  ///< 0: what the module says
  std::vector<std::string> infeed;       ///< `F.npy` or `D:F.npy`
  double wait_s = 60;

  Watch* watch = nullptr;  ///< the clock beside it, if any
};

/// Wrong options: exit code 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What a verb ended with: the exit code, and the text that goes with it.
struct Outcome {
  int code = 0;
  std::string message;              ///< without "hlojit: ", e.g. "invalid: 3:7: ..."
  std::string details;              ///< caret and further lines, each ended
  std::vector<std::string> errors;  ///< one line a diagnostic
};

/// Runs f and turns what it throws into an Outcome. `source`: text that locations refer to.
Outcome guarded(const std::function<void()>& f, const std::string* source);

/// The same for a verb on `request`, with its time limit; with `progress` also shown on a terminal, and
/// then the process ends if the verb is late and cannot be stopped.
Outcome watched(Request& request, bool progress, const std::function<void()>& f, const std::string* source);

/// Times of one program.
struct BenchResult {
  double compile_ms = 0, min_us = 0, median_us = 0, max_us = 0;
  int runs = 0, threads = 0;
  std::string isa;
  int64_t peak_bytes = 0;
};

// The verbs. `out` receives what goes to standard output.
using Sink = std::function<void(const std::string&)>;
void run_verb(const Request& request, std::string& source, const Sink& out);
void check_verb(const Request& request, std::string& source, const Sink& out);
void opt_verb(const Request& request, std::string& source, const Sink& out);
void compile_verb(const Request& request, std::string& source, const Sink& out);
void layout_verb(const Request& request, const Sink& out);
void bench_verb(const Request& request, std::string& source, const Sink& out);
BenchResult bench(const Request& request, std::string& source, Executable* compiled = nullptr);
/// What --explain adds: every kernel, where compiling took its time, and what holds memory.
void explain_bench(const Request& request, const std::string& source, const Executable& e, roof::Roof& roof,
                   const BenchResult& result, const Sink& out);
/// us of single calls, sorted, for min_ms but at least five, after one that does not count.
std::vector<double> call_times(const Request& request, const Executable& e, std::vector<Buffer> inputs,
                               const HostSide& host);
/// Each kernel of the module timed alone: what bounds it, and what fused or split it. `call_us`: of a whole call.
void explain_kernels(const Request& request, const ModulePtr& module, roof::Roof& roof, double call_us,
                     const Sink& out);
void fuzz_verb(const Request& request, const Sink& out);
int batch_verb();

// Shared by the verbs.
/// With --time: how often native code and the evaluator were entered so far, to stderr.
void show_calls(const Request& request);
/// Tells the clock what is being done.
void stage(const Request& request, const char* what);
/// What long runs look at, or null.
const std::atomic<bool>* stop_of(const Request& request);
/// How its program is run: can be stopped.
RunOptions run_options(const Request& request);
/// Compiles, with what --dump-to, --explain and --time ask for.
Executable compiled(const Request& request, const ModulePtr& module);
/// Reads MODULE into `source` and parses it.
ModulePtr load_module(const Request& request, std::string& source);
/// Parses it, with the values that --elided asks for.
ModulePtr parsed(const Request& request, const std::string& source);
/// Throws UsageError for values that are out of range, whichever way they came.
void check_request(const Request& request);
Options compile_options(const Request& request);
/// Refuses to leave out what native code needs; `opt` may.
void check_disabled(const Request& request);
/// An array: floats uniform in [-1,1), integers in their range cut to [-8,8], pred fair.
Buffer random_leaf(const Shape& shape, uint64_t seed);
/// Values for all parameter leaves, in the layouts the program takes.
std::vector<Buffer> gather_inputs(const Request& request, const ModulePtr& module);
/// The same for several devices: as many sets as devices, if that many values are given or asked
/// for by number; else one set for all.
std::vector<std::vector<Buffer>> gather_input_sets(const Request& request, const ModulePtr& module, int64_t devices);
/// What a run gave on one device, and the folder that --output-dir means for it.
struct DeviceResults {
  std::vector<Buffer> results, outfeed;
  std::string folder;
};
/// Runs on all devices the program is compiled for, device by device in the result.
std::vector<DeviceResults> run_everywhere(const Request& request, const ModulePtr& module, const Executable& e);
/// The elements in row-major order, whatever the layout.
Literal dense(const Buffer& buffer);
/// Makes a folder and those above it. Throws Error(kFailed).
void make_folder(const std::string& path);
/// The shape of a layout request with its answers.
struct LayoutAnswer {
  std::optional<int64_t> linear;
  std::optional<std::string> index;
  int64_t elements = 0, bytes = 0;
};
LayoutAnswer layout_answer(const Request& request);

}  // namespace hlojit::tools
