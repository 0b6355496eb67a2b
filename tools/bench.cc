// bench: how long one call takes, and how far that is from what this machine can do.
#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "bench/roof/roof.h"
#include "codegen/kernel_units.h"
#include "layout/index.h"
#include "tools/host_side.h"
#include "tools/request.h"

namespace hlojit::tools {
namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// The type the multiply-adds run in: that of the first floating result.
DType compute_type(const Executable& e) {
  for (const Shape& s : e.result_shapes()) {
    if (is_float(s.type) || is_integral(s.type)) return s.type;
  }
  return DType::kF32;
}

// Bytes of a call: arguments, results that do not take an argument's memory, temporaries.
int64_t peak_bytes(const Executable& e) {
  int64_t bytes = e.arena_bytes();
  for (const Shape& s : e.parameter_shapes()) bytes += physical_size(s);
  for (size_t k = 0; k < e.result_shapes().size(); ++k) {
    if (e.donors()[k] < 0) bytes += physical_size(e.result_shapes()[k]);
  }
  return bytes;
}

}  // namespace

std::vector<double> call_times(const Request& r, const Executable& e, std::vector<Buffer> inputs,
                               const HostSide& host) {
  // Parameters that the program aliases to results are given away each call and the results fed back, as
  // a training or decoding loop does.
  auto call = [&](const RunOptions& options) {
    std::vector<Buffer> arguments = inputs;
    for (int64_t donor : e.donors()) {
      if (donor >= 0) inputs[static_cast<size_t>(donor)] = Buffer();
    }
    std::vector<Buffer> results = e.run(std::move(arguments), options);
    for (size_t k = 0; k < results.size(); ++k) {
      if (e.donors()[k] >= 0) inputs[static_cast<size_t>(e.donors()[k])] = results[k];
    }
  };
  auto fed = [&] {  // a call takes what the host has ready
    RunOptions options = run_options(r);
    options.queues = host.queues(1);
    return options;
  };
  call(fed());
  std::vector<double> us;
  auto begin = Clock::now();
  while (us.size() < 5 || ms_since(begin) < r.min_ms) {
    if (stop_of(r) && *stop_of(r)) throw Error(ErrorKind::kFailed, "stopped while measuring");
    const RunOptions options = fed();
    auto t = Clock::now();
    call(options);
    us.push_back(1e3 * ms_since(t));
  }
  std::sort(us.begin(), us.end());
  return us;
}

BenchResult bench(const Request& r, std::string& source, Executable* compiled) {
  check_disabled(r);
  Options options = compile_options(r);
  options.cache_dir.clear();
  codegen::forget_kernels();  // of what this process has compiled before
  load_module(r, source);     // reading the file is not compiling
  stage(r, "compiling");
  auto start = Clock::now();
  ModulePtr module = parsed(r, source);
  Executable e = compile(module, options);
  BenchResult b;
  b.compile_ms = ms_since(start);
  Request with_values = r;
  if (!with_values.random) with_values.random = 1;
  stage(r, "measuring");
  std::vector<double> us =
      call_times(r, e, gather_inputs(with_values, module), HostSide::random(*module, *with_values.random));
  b.min_us = us.front();
  b.median_us = us[us.size() / 2];
  b.max_us = us[us.size() * 95 / 100];
  b.runs = static_cast<int>(us.size());
  b.threads = e.threads();
  b.isa = e.isa();
  b.peak_bytes = peak_bytes(e);
  if (compiled) *compiled = e;
  return b;
}

void bench_verb(const Request& r, std::string& source, const Sink& out) {
  Executable e(nullptr);
  BenchResult b = bench(r, source, &e);
  double read = e.io_bytes_read(), written = e.io_bytes_written(), flops = e.flops();
  out(fmt::format("compile {:.2f} ms, {} kernels, {} threads, {}\n", b.compile_ms, e.kernels().size(), b.threads,
                  b.isa));
  out(fmt::format("run     median {:.2f} us, min {:.2f}, p95 {:.2f}, {} calls\n", b.median_us, b.min_us, b.max_us,
                  b.runs));
  out(fmt::format("memory  {:.2f} GB/s (reads {:.3f} MB, writes {:.3f} MB, temporaries {:.3f} MB)\n",
                  (read + written) / b.median_us / 1e3, read / 1e6, written / 1e6,
                  static_cast<double>(e.arena_bytes()) / 1e6));
  if (flops > 0) out(fmt::format("compute {:.2f} GFLOP/s\n", flops / b.median_us / 1e3));
  roof::Roof roof(b.threads);
  double best = 1e6 * roof.seconds(static_cast<int64_t>(read), static_cast<int64_t>(written), flops, compute_type(e));
  out(fmt::format("roof    {:.2f} us at this machine's measured limits: {:.0f} % of roof\n", best,
                  100 * best / b.median_us));
  show_calls(r);
  if (r.explain) explain_bench(r, source, e, roof, b, out);
}

void explain_bench(const Request& r, const std::string& source, const Executable& e, roof::Roof& roof,
                   const BenchResult& b, const Sink& out) {
  explain_kernels(r, parsed(r, source), roof, b.median_us, out);
  for (const PhaseTime& p : e.compile_times()) out(fmt::format("phase   {:<32} {:.3f} ms\n", p.name, p.ms));
  out(e.memory_report());
}

}  // namespace hlojit::tools
