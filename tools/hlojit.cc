// The command line: verbs and options to Requests (tools/request.h). The contract with users is the
// table of exit codes in outcome.cc and what README and --help say.
#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "runtime/memory_limit.h"
#include "tools/fuzz/generate.h"
#include "tools/request.h"

namespace hlojit::tools {
namespace {

// Standard output is written at once and its failure noticed.
class Output {
 public:
  void write(const std::string& text) { text_ += text; }
  void flush() {
    bool ok = std::fwrite(text_.data(), 1, text_.size(), stdout) == text_.size();
    ok = std::fflush(stdout) == 0 && ok;
    text_.clear();
    if (!ok) throw Error(ErrorKind::kFailed, "cannot write to standard output");
  }

 private:
  std::string text_;
};

// A kernel that overcommits grants any allocation and ends the process when it is touched; with a limit of its own
// the process is told in time, and answers with exit code 6. Memory that sanitizers reserve is beyond any limit.
void bound_memory() {
  if (reserved_memory() >= memory_limit()) return;
  rlimit data{};
  if (getrlimit(RLIMIT_DATA, &data) != 0) return;
  data.rlim_cur = std::min<rlim_t>(data.rlim_max, memory_limit());
  setrlimit(RLIMIT_DATA, &data);
}

// Numbers are read here rather than by CLI11, which saturates what does not fit.
template <class T>
CLI::Validator number(T low = std::numeric_limits<T>::lowest(), T high = std::numeric_limits<T>::max()) {
  return CLI::Validator(
      [=](std::string& text) -> std::string {
        T value{};
        const char* end = text.data() + text.size();
        auto [stop, failed] = std::from_chars(text.data(), end, value);
        if (failed == std::errc() && stop == end && value >= low && value <= high) return {};
        if constexpr (std::is_floating_point_v<T>)
          return fmt::format("'{}' is not a number", text);
        else
          return fmt::format("'{}' is not a number from {} to {}", text, low, high);
      },
      "");
}

void common_options(CLI::App* verb, Request& r) {
  verb->add_option("--threads", r.threads, "Worker threads, also more than cores (default: a core each)")
      ->check(number(1, 4096));
  verb->add_option(
      "--device-isa", r.device_isa,
      "Instructions to be used: avx2, avx512 or, by LLVM's name for it, those of a CPU (default: native, what "
      "this machine has)");
  verb->add_flag("--strict", r.strict, "No contraction: elementwise results equal the evaluator's bits");
  verb->add_flag("--keep-subnormals", r.keep_subnormals,
                 "Subnormal floats keep their value, as with --strict (default: zeros to arithmetic)");
  verb->add_option("--disable", r.disable, "Leave out a pass (repeatable)")->delimiter(',');
  verb->add_option("--effort", r.effort, "0 compiles faster and runs slower; 1, the default, and 2 are the same")
      ->check(number(0, 2));
  verb->add_option("--cache", r.cache, "Keep compiled objects in this folder")->envname("HLOJIT_CACHE_DIR");
  verb->add_option("--dump-to", r.dump_to, "Write HLO per pass, LLVM IR, assembly and the buffer plan here");
  verb->add_flag("--time", r.time, "Show compile phases and the emitter of every kernel");
  verb->add_option("--scatter-oob", r.scatter_oob,
                   "Of a scatter's window that is partly out of bounds, what is left out (default: element)")
      ->check(CLI::IsMember({"element", "window"}));
  verb->add_option("--load", r.load, "Library with custom-call targets (repeatable)");
  verb->add_option("--timeout-s", r.timeout_s, "Seconds that all of it may take (default: no limit)")
      ->check(number<double>());
  verb->add_option("--replicas", r.replicas, "Replicas of the program (default: as the module says)")
      ->check(number<int64_t>(1, 256));
  verb->add_option("--partitions", r.partitions, "Partitions a replica (default: as the module says)")
      ->check(number<int64_t>(1, 256));
}

void module_argument(CLI::App* verb, Request& r, bool required = true) {
  auto* o = verb->add_option("MODULE", r.module, "HLO text or binary proto; - is standard input");
  if (required) o->required();
  verb->add_option("--elided", r.elided,
                   "Seed for constants whose values were left out, {...}, when they were printed (default: an error)")
      ->check(number<uint64_t>());
}

void input_options(CLI::App* verb, Request& r) {
  verb->add_option("--input", r.inputs, "F.npy: value of the next leaf; K=F.npy: of leaf K (repeatable)");
  verb->add_option("--random", r.random, "Seed for every leaf not given")->check(number<uint64_t>());
}

/// The verbs with their options, read into one Request.
class CommandLine {
 public:
  CommandLine() {
    app_.require_subcommand(1);
    app_.set_version_flag("--version", "hlojit " + version());
    run();
    batch();
    check();
    opt();
    compile();
    bench();
    layout();
    fuzz();
    for (CLI::App* verb : app_.get_subcommands({})) {
      verb->set_version_flag("--version", "hlojit " + version());
      // What follows the value of a list (--passes dce m.hlo) is the module, not a second value.
      for (CLI::Option* option : verb->get_options()) option->allow_extra_args(false);
    }
  }

  /// The exit code.
  int answer(int argc, char** argv) {
    Outcome o;
    try {
      parse(argc, argv);
    } catch (const CLI::Success& e) {
      return app_.exit(e);
    } catch (const CLI::ParseError& e) {
      o.code = 2;
      o.message = fmt::format("usage: {}", e.what());
    }
    if (o.code == 0) {
      o = of_many_ ? guarded(action_, &source_) : watched(request_, true, action_, &source_);
      Outcome written = guarded([&] { output_.flush(); }, nullptr);  // what a failing verb said counts too
      if (o.code == 0) o = written;
    }
    if (o.code != 0) std::fprintf(stderr, "hlojit: %s\n%s", o.message.c_str(), o.details.c_str());
    return o.code != 0 ? o.code : batch_code_;
  }

 private:
  CLI::App* add_verb(const std::string& name, const std::string& what, const std::string& examples) {
    CLI::App* verb = app_.add_subcommand(name, what);
    verb->footer("Examples:\n" + examples);
    return verb;
  }

  void parse(int argc, char** argv) {
    if (argc < 2) throw CLI::ParseError("give a verb (see hlojit --help)", 2);
    std::string word = argv[1];
    bool known =
        std::ranges::any_of(app_.get_subcommands({}), [&](CLI::App* verb) { return verb->get_name() == word; });
    if (!word.starts_with("-") && !known) {
      throw CLI::ParseError(fmt::format("there is no verb '{}' (see hlojit --help)", word.substr(0, 60)), 2);
    }
    app_.parse(argc, argv);
  }

  void run() {
    CLI::App* verb = add_verb("run", "Compile and run the entry computation",
                              "  hlojit run bench/hlo/softmax.hlo --random 1 --print\n"
                              "  hlojit run bench/hlo/gelu.hlo --input bench/golden/gelu/in_0.npy --output-dir out");
    module_argument(verb, request_);
    input_options(verb, request_);
    verb->add_option("--output-dir", request_.output_dir, "Write out_0.npy, out_1.npy, ... here");
    verb->add_flag("--print", request_.print, "Print each result leaf as SHAPE LITERAL");
    verb->add_option("--infeed", request_.infeed,
                     "F.npy: next leaf of every device's infeed; D:F.npy: of device D's (repeatable)");
    verb->add_option("--wait-s", request_.wait_s, "Seconds a device waits for another or for the host (default 60)")
        ->check(number<double>());
    verb->callback([this] { action_ = [this] { run_verb(request_, source_, out_); }; });
    common_options(verb, request_);
  }

  void batch() {
    CLI::App* verb = add_verb(
        "batch", "Answer JSON requests, a line each",
        "  echo '{\"cmd\": \"layout\", \"shape\": \"f32[3,5]{1,0:T(2,2)}\", \"index\": [2,3]}' | hlojit batch\n"
        "  echo '{\"cmd\": \"bench\", \"module\": \"bench/hlo/gelu.hlo\"}' | hlojit batch");
    verb->callback([this] {
      of_many_ = true;
      action_ = [this] { batch_code_ = batch_verb(); };
    });
  }

  void check() {
    CLI::App* verb = add_verb("check", "Parse and verify a module",
                              "  hlojit check bench/hlo/transformer_block.hlo\n"
                              "  hlojit check bench/hlo/softmax.hlo --against-eval --random 7");
    module_argument(verb, request_);
    input_options(verb, request_);
    verb->add_flag("--compiles", request_.compiles, "Also list every op and type of it that is not compiled");
    verb->add_flag("--against-eval", request_.against_eval, "Also run it compiled and on the evaluator, and compare");
    verb->add_option("--rtol", request_.rtol, "Allow this error relative to each value")->check(number<double>());
    verb->add_option("--ulp", request_.ulp, "Allow this error in units in the last place")->check(number<double>());
    verb->callback([this] { action_ = [this] { check_verb(request_, source_, out_); }; });
    common_options(verb, request_);
  }

  void opt() {
    CLI::App* verb = add_verb("opt", "Print HLO after passes, in text that can be fed back in",
                              "  hlojit opt bench/hlo/softmax.hlo --until=fuse\n"
                              "  hlojit opt --list-passes");
    module_argument(verb, request_, false);
    verb->add_option("--passes", request_.passes, "Run just these passes, in this order")->delimiter(',');
    verb->add_option("--until", request_.until, "Stop after this pass");
    verb->add_flag("--list-passes", request_.list_passes, "Names of all passes, in order");
    verb->add_option("--extract", request_.extract,
                     "Print this instruction (NAME or COMPUTATION/NAME) as a module of its own");
    verb->add_flag("--explain", request_.explain, "Tell each decision with its costs (stderr)");
    verb->callback([this] { action_ = [this] { opt_verb(request_, source_, out_); }; });
    common_options(verb, request_);
  }

  void compile() {
    CLI::App* verb = add_verb("compile", "Print what the compiler makes of a module",
                              "  hlojit compile bench/hlo/gelu.hlo --emit=llvm\n"
                              "  hlojit compile bench/hlo/gelu.hlo --emit=asm -o gelu.s");
    module_argument(verb, request_);
    verb->add_option("--emit", request_.emit, "HLO after all passes, LLVM IR, assembly or an object file")
        ->required()
        ->check(CLI::IsMember({"hlo", "llvm", "asm", "obj"}));
    verb->add_option("-o,--output", request_.output, "Write to this file instead of standard output");
    verb->callback([this] { action_ = [this] { compile_verb(request_, source_, out_); }; });
    common_options(verb, request_);
  }

  void bench() {
    CLI::App* verb = add_verb("bench", "Time a module and compare with this machine's limits",
                              "  hlojit bench bench/hlo/big/softmax.hlo\n"
                              "  hlojit bench bench/hlo/transformer_block.hlo --explain --threads 1");
    module_argument(verb, request_);
    input_options(verb, request_);
    verb->add_flag("--explain", request_.explain,
                   "Also each kernel: time, what bounds it, what fused or split it; compile phases, memory");
    verb->add_option("--min-ms", request_.min_ms, "Measure for at least this long (default 200)")
        ->check(number<double>());
    verb->callback([this] { action_ = [this] { bench_verb(request_, source_, out_); }; });
    common_options(verb, request_);
  }

  void layout() {
    CLI::App* verb = add_verb("layout", "Where elements lie in memory",
                              "  hlojit layout 'f32[3,5]{1,0:T(2,2)}' --index 2,3\n"
                              "  hlojit layout 'bf16[10,130]{1,0:T(8,128)(2,1)}' --linear 1025 --json");
    verb->add_option("SHAPE", request_.shape, "Shape with layout")->required();
    auto* index = verb->add_option("--index", index_, "Multi-index i,j,...")->delimiter(',')->check(number<int64_t>());
    verb->add_option("--linear", request_.linear, "Position in the buffer")->check(number<int64_t>());
    verb->add_flag("--json", request_.json, "Print one JSON object");
    verb->callback([this, index] {
      if (index->count() > 0) request_.index = index_;
      action_ = [this] { layout_verb(request_, out_); };
    });
  }

  void fuzz() {
    CLI::App* verb = add_verb("fuzz", "Random modules, compiled and compared with the evaluator",
                              "  hlojit fuzz --seed 1 --count 5\n"
                              "  hlojit fuzz --seed 3 --seconds 0.5 --out failures");
    verb->add_option("--seed", request_.seed, "The first module's seed; each further module has the next (default 1)")
        ->check(number<uint64_t>());
    verb->add_option("--count", request_.count, "How many modules (default 1000)")->check(number<int64_t>());
    verb->add_option("--seconds", request_.seconds, "Go on for this long instead")->check(number<double>());
    verb->add_flag("--census", request_.census,
                   "Run nothing: count the ops, types and layouts that are drawn, and tell which are not and why");
    verb->add_option("--draw", request_.draw, "Families of ops that every module draws from")
        ->delimiter(',')
        ->check(CLI::IsMember(fuzz::family_names()));
    verb->add_option("--out", request_.out, "Write failing modules here instead of standard output");
    verb->callback([this] {
      of_many_ = true;
      action_ = [this] {
        check_request(request_);
        if (!request_.out.empty()) make_folder(request_.out);
        fuzz_verb(request_, out_);
      };
    });
  }

  CLI::App app_{"hlojit: HLO in, native SIMD code out", "hlojit"};
  Request request_;
  std::vector<int64_t> index_;
  std::string source_;
  Output output_;
  Sink out_ = [this](const std::string& text) { output_.write(text); };
  std::function<void()> action_;
  bool of_many_ = false;  // many requests or modules, each with bounds of its own
  int batch_code_ = 0;
};

}  // namespace

}  // namespace hlojit::tools

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is a write error, not a death
  hlojit::tools::bound_memory();
  return hlojit::tools::CommandLine().answer(argc, argv);
}
