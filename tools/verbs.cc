// The verbs that take a module: run, opt, compile.
#include <unistd.h>

#include <filesystem>

#include <fmt/format.h>

#include "tools/npy.h"
#include "tools/request.h"

namespace hlojit::tools {
namespace {

void show_times(const std::vector<PhaseTime>& times) {
  double total = 0;
  for (const PhaseTime& p : times) total += p.ms;
  std::string text = fmt::format("compile {:.2f} ms\n", total);
  for (const PhaseTime& p : times) text += fmt::format("  {:<20} {:8.3f} ms\n", p.name, p.ms);
  std::fputs(text.c_str(), stderr);
}

Options explained_options(const Request& r) {
  Options o = compile_options(r);
  if (r.explain) {
    o.explain = [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); };
  }
  return o;
}

}  // namespace

Executable compiled(const Request& r, const ModulePtr& module) {
  check_disabled(r);
  stage(r, "compiling");
  Executable e = compile(module, explained_options(r));
  if (r.time) {
    show_times(e.compile_times());
    for (const KernelInfo& k : e.kernels())
      std::fputs(fmt::format("  kernel {:<32} {}\n", k.name, k.kind).c_str(), stderr);
    return e;
  }
  for (const PhaseTime& p : e.compile_times()) {
    if (p.name.starts_with("cache unusable")) std::fprintf(stderr, "hlojit: warning: %s\n", p.name.c_str());
  }
  return e;
}

void make_folder(const std::string& path) {
  std::error_code code;
  std::filesystem::create_directories(path, code);
  if (!code && !std::filesystem::is_directory(path, code)) code = std::make_error_code(std::errc::not_a_directory);
  if (code) throw Error(ErrorKind::kFailed, fmt::format("cannot make the folder {}: {}", path, code.message()));
}

void show_calls(const Request& r) {
  if (!r.time) return;
  Counters c = counters();
  std::fputs(fmt::format("calls   {} native entries, {} uses of the evaluator\n", c.entries, c.evaluations).c_str(),
             stderr);
}

void run_verb(const Request& r, std::string& source, const Sink& out) {
  if (r.output_dir.empty() && !r.print) throw UsageError("run: give --output-dir or --print");
  compile_options(r);
  ModulePtr module = load_module(r, source);
  verify(module);
  Executable e = compiled(r, module);
  stage(r, "running");
  std::vector<DeviceResults> devices = run_everywhere(r, module, e);
  show_calls(r);
  for (const DeviceResults& d : devices) {
    if (!r.output_dir.empty()) {
      make_folder(d.folder);
      for (size_t k = 0; k < d.results.size(); ++k) write_npy(fmt::format("{}/out_{}.npy", d.folder, k), d.results[k]);
      for (size_t k = 0; k < d.outfeed.size(); ++k)
        write_npy(fmt::format("{}/outfeed_{}.npy", d.folder, k), d.outfeed[k]);
    }
    if (!r.print) continue;
    for (const Buffer& b : d.results) out(b.shape().to_string() + " " + literal_text(b) + "\n");
  }
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
  ModulePtr module = load_module(r, source);
  module = run_passes(module, explained_options(r), r.until, r.passes);
  if (!r.extract.empty()) module = extract(module, r.extract);
  out(to_text(module));
}

void compile_verb(const Request& r, std::string& source, const Sink& out) {
  Emit what;
  if (r.emit == "hlo")
    what = Emit::kHlo;
  else if (r.emit == "llvm")
    what = Emit::kLlvm;
  else if (r.emit == "asm")
    what = Emit::kAssembly;
  else if (r.emit == "obj")
    what = Emit::kObject;
  else
    throw UsageError("compile: --emit=hlo, llvm, asm or obj is needed");
  bool to_terminal = (r.output.empty() || r.output == "-") && isatty(STDOUT_FILENO);
  if (what == Emit::kObject && to_terminal) throw UsageError("compile: --emit=obj needs -o FILE");
  check_disabled(r);
  ModulePtr module = load_module(r, source);
  stage(r, "compiling");
  std::vector<PhaseTime> times;
  std::string text = emit(module, what, explained_options(r), &times);
  if (r.time) show_times(times);
  if (r.output.empty() || r.output == "-")
    out(text);
  else
    write_file(r.output, text);
}

}  // namespace hlojit::tools
