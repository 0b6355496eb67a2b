// The command line: verbs and options to Requests (tools/request.h). The contract with users is the
// table of exit codes in outcome.cc and what README and --help say.
#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <limits>
#include <string>

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
  verb->add_option("--device-isa", r.device_isa, "Instructions to be used (default: native, what this machine has)")
      ->check(CLI::IsMember({"avx2", "avx512", "native"}));
  verb->add_flag("--strict", r.strict, "No contraction: elementwise results equal the evaluator's bits");
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
}

void input_options(CLI::App* verb, Request& r) {
  verb->add_option("--input", r.inputs, "F.npy: value of the next leaf; K=F.npy: of leaf K (repeatable)");
  verb->add_option("--random", r.random, "Seed for every leaf not given")->check(number<uint64_t>());
}

CLI::App* add_verb(CLI::App& app, const std::string& name, const std::string& what, const std::string& examples) {
  CLI::App* verb = app.add_subcommand(name, what);
  verb->footer("Examples:\n" + examples);
  return verb;
}

int main_with(int argc, char** argv) {
  CLI::App app{"hlojit: HLO in, native SIMD code out", "hlojit"};
  app.require_subcommand(1);
  app.set_version_flag("--version", "hlojit " + version());
  Request r;
  std::string source;
  Output output;
  Sink out = [&](const std::string& text) { output.write(text); };
  std::function<void()> action;
  int batch_code = 0;

  CLI::App* run = add_verb(app, "run", "Compile and run the entry computation",
                           "  hlojit run bench/hlo/softmax.hlo --random 1 --print\n"
                           "  hlojit run bench/hlo/gelu.hlo --input bench/golden/gelu/in_0.npy --output-dir out");
  module_argument(run, r);
  input_options(run, r);
  run->add_option("--output-dir", r.output_dir, "Write out_0.npy, out_1.npy, ... here");
  run->add_flag("--print", r.print, "Print each result leaf as SHAPE LITERAL");
  run->add_option("--infeed", r.infeed,
                  "F.npy: next leaf of every device's infeed; D:F.npy: of device D's (repeatable)");
  run->add_option("--wait-s", r.wait_s, "Seconds a device waits for another or for the host (default 60)")
      ->check(number<double>());
  run->callback([&] { action = [&] { run_verb(r, source, out); }; });

  CLI::App* batch =
      add_verb(app, "batch", "Answer JSON requests, a line each",
               "  echo '{\"cmd\": \"layout\", \"shape\": \"f32[3,5]{1,0:T(2,2)}\", \"index\": [2,3]}' | hlojit batch\n"
               "  echo '{\"cmd\": \"bench\", \"module\": \"bench/hlo/gelu.hlo\"}' | hlojit batch");
  batch->callback([&] { action = [&] { batch_code = batch_verb(); }; });

  CLI::App* check = add_verb(app, "check", "Parse and verify a module",
                             "  hlojit check bench/hlo/transformer_block.hlo\n"
                             "  hlojit check bench/hlo/softmax.hlo --against-eval --random 7");
  module_argument(check, r);
  input_options(check, r);
  check->add_flag("--compiles", r.compiles, "Also list every op and type of it that is not compiled");
  check->add_flag("--against-eval", r.against_eval, "Also run it compiled and on the evaluator, and compare");
  check->add_option("--rtol", r.rtol, "Allow this error relative to each value")->check(number<double>());
  check->add_option("--ulp", r.ulp, "Allow this error in units in the last place")->check(number<double>());
  check->callback([&] { action = [&] { check_verb(r, source, out); }; });

  CLI::App* opt = add_verb(app, "opt", "Print HLO after passes, in text that can be fed back in",
                           "  hlojit opt bench/hlo/softmax.hlo --until=fuse\n"
                           "  hlojit opt --list-passes");
  module_argument(opt, r, false);
  opt->add_option("--passes", r.passes, "Run just these passes, in this order")->delimiter(',');
  opt->add_option("--until", r.until, "Stop after this pass");
  opt->add_flag("--list-passes", r.list_passes, "Names of all passes, in order");
  opt->add_option("--extract", r.extract, "Print this instruction (NAME or COMPUTATION/NAME) as a module of its own");
  opt->add_flag("--explain", r.explain, "Tell each decision with its costs (stderr)");
  opt->callback([&] { action = [&] { opt_verb(r, source, out); }; });

  CLI::App* compile = add_verb(app, "compile", "Print what the compiler makes of a module",
                               "  hlojit compile bench/hlo/gelu.hlo --emit=llvm\n"
                               "  hlojit compile bench/hlo/gelu.hlo --emit=asm -o gelu.s");
  module_argument(compile, r);
  compile->add_option("--emit", r.emit, "HLO after all passes, LLVM IR, assembly or an object file")
      ->required()
      ->check(CLI::IsMember({"hlo", "llvm", "asm", "obj"}));
  compile->add_option("-o,--output", r.output, "Write to this file instead of standard output");
  compile->callback([&] { action = [&] { compile_verb(r, source, out); }; });

  CLI::App* bench = add_verb(app, "bench", "Time a module and compare with this machine's limits",
                             "  hlojit bench bench/hlo/big/softmax.hlo\n"
                             "  hlojit bench bench/hlo/transformer_block.hlo --explain --threads 1");
  module_argument(bench, r);
  input_options(bench, r);
  bench->add_flag("--explain", r.explain,
                  "Also each kernel: time, what bounds it, what fused or split it; compile phases, memory");
  bench->add_option("--min-ms", r.min_ms, "Measure for at least this long (default 200)")->check(number<double>());
  bench->callback([&] { action = [&] { bench_verb(r, source, out); }; });

  CLI::App* layout = add_verb(app, "layout", "Where elements lie in memory",
                              "  hlojit layout 'f32[3,5]{1,0:T(2,2)}' --index 2,3\n"
                              "  hlojit layout 'bf16[10,130]{1,0:T(8,128)(2,1)}' --linear 1025 --json");
  std::vector<int64_t> index;
  layout->add_option("SHAPE", r.shape, "Shape with layout")->required();
  auto* index_option =
      layout->add_option("--index", index, "Multi-index i,j,...")->delimiter(',')->check(number<int64_t>());
  layout->add_option("--linear", r.linear, "Position in the buffer")->check(number<int64_t>());
  layout->add_flag("--json", r.json, "Print one JSON object");
  layout->callback([&] {
    if (index_option->count() > 0) r.index = index;
    action = [&] { layout_verb(r, out); };
  });

  CLI::App* fuzz = add_verb(app, "fuzz", "Random modules, compiled and compared with the evaluator",
                            "  hlojit fuzz --seed 1 --count 5\n"
                            "  hlojit fuzz --seed 3 --seconds 0.5 --out failures");
  fuzz->add_option("--seed", r.seed, "The first module's seed; each further module has the next (default 1)")
      ->check(number<uint64_t>());
  fuzz->add_option("--count", r.count, "How many modules (default 1000)")->check(number<int64_t>());
  fuzz->add_option("--seconds", r.seconds, "Go on for this long instead")->check(number<double>());
  fuzz->add_flag("--census", r.census,
                 "Run nothing: count the ops, types and layouts that are drawn, and tell which are not and why");
  fuzz->add_option("--draw", r.draw, "Families of ops that every module draws from")
      ->delimiter(',')
      ->check(CLI::IsMember(fuzz::family_names()));
  fuzz->add_option("--out", r.out, "Write failing modules here instead of standard output");
  fuzz->callback([&] {
    action = [&] {
      check_request(r);
      if (!r.out.empty()) make_folder(r.out);
      fuzz_verb(r, out);
    };
  });

  for (CLI::App* verb : {run, check, opt, compile, bench}) common_options(verb, r);

  for (CLI::App* verb : app.get_subcommands({})) verb->set_version_flag("--version", "hlojit " + version());

  Outcome o;
  try {
    std::string word = argc > 1 ? argv[1] : "-";
    bool known = std::ranges::any_of(app.get_subcommands({}), [&](CLI::App* verb) { return verb->get_name() == word; });
    if (!word.starts_with("-") && !known) {
      throw CLI::ParseError(fmt::format("there is no verb '{}' (see hlojit --help)", word.substr(0, 60)), 2);
    }
    app.parse(argc, argv);
  } catch (const CLI::Success& e) {
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    o.code = 2;
    o.message = fmt::format("usage: {}", e.what());
  }
  if (o.code == 0) {
    bool of_many = batch->parsed() || fuzz->parsed();  // these are bounded by their parts
    o = of_many ? guarded(action, &source) : watched(r, true, action, &source);
    Outcome written = guarded([&] { output.flush(); }, nullptr);  // what a failing verb said counts too
    if (o.code == 0) o = written;
  }
  if (o.code != 0) std::fprintf(stderr, "hlojit: %s\n%s", o.message.c_str(), o.details.c_str());
  return o.code != 0 ? o.code : batch_code;
}

}  // namespace
}  // namespace hlojit::tools

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is a write error, not a death
  hlojit::tools::bound_memory();
  return hlojit::tools::main_with(argc, argv);
}
