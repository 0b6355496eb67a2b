// The verbs that take a module: run, check, opt, compile.
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>

#include "tools/npy.h"
#include "tools/request.h"

namespace hlojit::tools {
namespace {

// --dump-to: HLO per pass, LLVM IR, assembly, buffer plan. --time: phases and kernels, to stderr.
void side_outputs(const Request& r, const ModulePtr& module, const Options& options, const Executable* compiled) {
  if (!r.dump_to.empty()) {
    write_file(r.dump_to + "/module.ll", emit(module, Emit::kLlvm, options));
    write_file(r.dump_to + "/module.s", emit(module, Emit::kAssembly, options));
    if (compiled) write_file(r.dump_to + "/buffers.txt", compiled->memory_report());
  }
  if (!r.time || !compiled) return;
  double total = 0;
  for (const PhaseTime& p : compiled->compile_times()) total += p.ms;
  std::string text = fmt::format("compile {:.2f} ms\n", total);
  for (const PhaseTime& p : compiled->compile_times()) text += fmt::format("  {:<20} {:8.3f} ms\n", p.name, p.ms);
  for (const KernelInfo& k : compiled->kernels()) text += fmt::format("  kernel {:<32} {}\n", k.name, k.kind);
  std::fputs(text.c_str(), stderr);
}

Options options_with_dumps(const Request& r) {
  Options o = compile_options(r);
  if (r.explain) {
    o.explain = [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); };
  }
  if (!r.dump_to.empty()) {
    make_folder(r.dump_to);
    o.after_pass = [dir = r.dump_to, n = 0](const std::string& pass, const std::string& hlo) mutable {
      write_file(fmt::format("{}/{:02}_{}.hlo", dir, n++, pass), hlo);
    };
  }
  return o;
}

Executable compiled(const Request& r, const ModulePtr& module) {
  Options options = options_with_dumps(r);
  Executable e = compile(module, options);
  options.after_pass = nullptr;
  options.explain = nullptr;
  side_outputs(r, module, options, &e);
  return e;
}

// ---- check --against-eval -----------------------------------------------------------------------------

// Reductions reassociate, so the bound is relative to the largest element of the result too.
double tolerance(DType type) {
  switch (component_type(type)) {
    case DType::kF64: return 1e-10;
    case DType::kF32: return 1e-4;
    case DType::kF16: return 1e-2;
    case DType::kBF16: return 4e-2;
    default: return is_float(type) ? 0.3 : 0;
  }
}

void compare(size_t leaf, const Buffer& got, const Buffer& want) {
  Shape dense = Shape::array(got.shape().type, got.shape().dims);
  Buffer x = got.to_layout(dense), y = want.to_layout(dense);
  if (x.size_bytes() == 0 || std::memcmp(x.raw(), y.raw(), x.size_bytes()) == 0) return;
  std::vector<double> a = to_doubles(x), b = to_doubles(y);
  double scale = 0;
  for (double v : b) {
    if (std::isfinite(v)) scale = std::max(scale, std::fabs(v));
  }
  double bound = tolerance(dense.type);
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
    if (std::fabs(a[i] - b[i]) <= bound * (std::fabs(b[i]) + 0.1 * scale)) continue;
    throw Error(ErrorKind::kFailed, fmt::format("result {} {}: element {} is {} compiled and {} evaluated", leaf,
                                                dense.to_string(false), i, a[i], b[i]));
  }
}

}  // namespace

void make_folder(const std::string& path) {
  std::error_code code;
  std::filesystem::create_directories(path, code);
  if (!code && !std::filesystem::is_directory(path, code)) code = std::make_error_code(std::errc::not_a_directory);
  if (code) throw Error(ErrorKind::kFailed, fmt::format("cannot make the folder {}: {}", path, code.message()));
}

void show_calls(const Request& r) {
  if (!r.time) return;
  Counters c = counters();
  std::fputs(fmt::format("calls   {} native entries, {} uses of the evaluator\n", c.entries, c.evaluations).c_str(), stderr);
}

void run_verb(const Request& r, std::string& source, const Sink& out) {
  if (r.output_dir.empty() && !r.print) throw UsageError("run: give --output-dir or --print");
  compile_options(r);
  ModulePtr module = load_module(r, source);
  verify(module);
  Executable e = compiled(r, module);
  std::vector<DeviceResults> devices = run_everywhere(r, module, e);
  show_calls(r);
  for (const DeviceResults& d : devices) {
    if (!r.output_dir.empty()) {
      make_folder(d.folder);
      for (size_t k = 0; k < d.results.size(); ++k) write_npy(fmt::format("{}/out_{}.npy", d.folder, k), d.results[k]);
      for (size_t k = 0; k < d.outfeed.size(); ++k) write_npy(fmt::format("{}/outfeed_{}.npy", d.folder, k), d.outfeed[k]);
    }
    if (!r.print) continue;
    for (const Buffer& b : d.results) out(b.shape().to_string() + " " + literal_text(b) + "\n");
  }
}

void check_verb(const Request& r, std::string& source, const Sink&) {
  compile_options(r);
  ModulePtr module = load_module(r, source);
  verify(module);
  if (!r.against_eval) return;
  Request with_values = r;
  if (!with_values.random) with_values.random = 1;
  std::vector<Buffer> inputs = gather_inputs(with_values, module);
  std::vector<Buffer> got = compiled(r, module).run(inputs);
  std::vector<Buffer> want = evaluate(module, inputs, compile_options(r));
  for (size_t k = 0; k < got.size(); ++k) compare(k, got[k], want[k]);
}

void opt_verb(const Request& r, std::string& source, const Sink& out) {
  if (r.list_passes) {
    for (const std::string& name : pass_list()) out(name + "\n");
    return;
  }
  if (r.module.empty()) throw UsageError("opt: MODULE is needed");
  std::vector<std::string> known = pass_list();
  std::vector<std::string> named = r.passes;
  if (!r.until.empty()) named.push_back(r.until);
  for (const std::string& name : named) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      throw UsageError(fmt::format("opt: there is no pass '{}' (see --list-passes)", name));
    }
  }
  Options options = options_with_dumps(r);
  ModulePtr module = load_module(r, source);
  module = run_passes(module, options, r.until, r.passes);
  if (!r.extract.empty()) module = extract(module, r.extract);
  out(to_text(module));
}

void compile_verb(const Request& r, std::string& source, const Sink& out) {
  Emit what;
  if (r.emit == "hlo") what = Emit::kHlo;
  else if (r.emit == "llvm") what = Emit::kLlvm;
  else if (r.emit == "asm") what = Emit::kAssembly;
  else if (r.emit == "obj") what = Emit::kObject;
  else throw UsageError("compile: --emit=hlo, llvm, asm or obj is needed");
  bool to_terminal = (r.output.empty() || r.output == "-") && isatty(STDOUT_FILENO);
  if (what == Emit::kObject && to_terminal) throw UsageError("compile: --emit=obj needs -o FILE");
  Options options = options_with_dumps(r);
  ModulePtr module = load_module(r, source);
  std::string text = emit(module, what, options);
  options.after_pass = nullptr;
  options.explain = nullptr;
  if (!r.dump_to.empty() || r.time) {
    Executable e = compile(module, options);
    side_outputs(r, module, options, &e);
  }
  if (r.output.empty() || r.output == "-") out(text);
  else write_file(r.output, text);
}

}  // namespace hlojit::tools
