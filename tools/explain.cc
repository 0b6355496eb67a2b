// bench --explain: why a program takes the time it takes, kernel by kernel. Each kernel and each step of the compiled
// program is made a module of its own and timed alone, on random values; beside that stands its bound, the longest of
// what memory, multiply-adds (both measured, bench/roof) and arithmetic (the planner's prices) need, and what the
// passes decided about it: which instructions were joined to it, and what keeps it apart from its neighbours.
#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "bench/roof/roof.h"
#include "codegen/target.h"
#include "compiler/analysis/dataflow.h"
#include "compiler/analysis/steps.h"
#include "compiler/plan/cost.h"
#include "runtime/guards.h"
#include "tools/host_side.h"
#include "tools/request.h"

namespace hlojit::tools {
namespace {

constexpr double kKernelMs = 20;    // each is timed for
constexpr size_t kMostReasons = 4;  // of what splits it from others

constexpr double kAll = std::numeric_limits<double>::infinity();

struct Kernel {
  const Instruction* instruction;
  std::string name;                                  // COMPUTATION/NAME
  std::string kind;                                  // of the kernel, or the step's opcode
  double arithmetic_us = 0;                          // by the planner's prices, on one core
  double price_us = 0;                               // all of it, likewise
  double wanted_read = kAll, wanted_written = kAll;  // bytes of operands and results
  std::set<std::string> members;                     // names of the instructions inside
  int joined = 0;
  double saved_ns = 0;
  std::vector<std::string> others;                              // lines of other passes
  std::vector<std::pair<const Kernel*, std::string>> split_by;  // the other kernel, the last reason
};

// One line of fuse's: "fuse COMPUTATION: WHAT A B[: apart X ns, together Y ns]: yes|no[, WHY]".
struct Decision {
  std::string computation, a, b, rest;
  bool yes = false;
  double saved_ns = 0;
};

std::string_view take_until(std::string_view& text, std::string_view end) {
  size_t at = text.find(end);
  std::string_view head = text.substr(0, at);
  text.remove_prefix(at == text.npos ? text.size() : at + end.size());
  return head;
}

std::optional<Decision> fuse_decision(std::string_view line) {
  if (take_until(line, " ") != "fuse") return std::nullopt;
  Decision d;
  d.computation = take_until(line, ": ");
  std::string what(take_until(line, " "));
  d.a = take_until(line, " ");
  d.b = take_until(line, ": ");
  d.rest = fmt::format("{} {} {}: {}", what, d.a, d.b, line);
  if (line.starts_with("apart ")) {
    std::string costs(take_until(line, ": "));
    double apart = 0, together = 0;
    if (std::sscanf(costs.c_str(), "apart %lf ns, together %lf", &apart, &together) == 2) d.saved_ns = apart - together;
  }
  d.yes = line.starts_with("yes");
  return d;
}

std::vector<Kernel> kernels_of(const Module& module, const TargetInfo& target) {
  std::vector<Kernel> kernels;
  for (const Computation* c : sequential_computations(module)) {
    for (const auto& i : c->instructions()) {
      if (!i->is(Opcode::kFusion) && !is_step(*i)) continue;
      Kernel k;
      k.instruction = i.get();
      k.name = c->name + "/" + i->name;
      k.kind = op_name(i->opcode);
      k.members.insert(i->name);
      if (i->is(Opcode::kFusion)) {
        for (const auto& inside : i->to_apply()->instructions()) {
          if (!inside->is(Opcode::kParameter)) k.members.insert(inside->name);
        }
        if (auto plan = plan_kernel(*i->to_apply(), target, i->attrs.backend_config)) {
          k.kind = kernel_kind_name(plan->kind);
          const KernelCost cost = kernel_cost(*i->to_apply(), *plan, target);
          k.price_us = cost.work_ns() / 1e3;
          k.wanted_read = cost.bytes_read;
          k.wanted_written = cost.bytes_written;
          // A product's own price is the multiply-adds, which are measured.
          if (plan->kind != KernelKind::kContraction) k.arithmetic_us = cost.compute_ns / 1e3;
        }
      }
      kernels.push_back(std::move(k));
    }
  }
  return kernels;
}

// The kernel of that computation with an instruction of that name inside.
Kernel* holder(std::vector<Kernel>& kernels, std::string_view computation, const std::string& member) {
  for (Kernel& k : kernels) {
    if (k.instruction->parent()->name == computation && k.members.contains(member)) return &k;
  }
  return nullptr;
}

void note_split(Kernel& k, const Kernel* other, const std::string& why) {
  auto known = std::ranges::find(k.split_by, other, [](const auto& s) { return s.first; });
  if (known != k.split_by.end()) {
    known->second = why;
  } else {
    k.split_by.emplace_back(other, why);
  }
}

// Hands each decision to the kernels it is about.
void attach(std::vector<Kernel>& kernels, const std::vector<std::string>& lines) {
  for (const std::string& line : lines) {
    if (auto d = fuse_decision(line)) {
      Kernel *a = holder(kernels, d->computation, d->a), *b = holder(kernels, d->computation, d->b);
      if (a && a == b && d->yes) {
        ++a->joined;
        a->saved_ns += d->saved_ns;
      } else if (a && b && a != b && !d->yes) {
        note_split(*a, b, d->rest);
        note_split(*b, a, d->rest);
      }
    } else if (line.starts_with("split_") || line.starts_with("pack ")) {
      for (Kernel& k : kernels) {
        bool named = std::ranges::any_of(k.members, [&](const std::string& m) {
          size_t at = line.find(" " + m + " ");
          return at != line.npos;
        });
        if (named) k.others.push_back(line);
      }
    }
  }
}

struct Bound {
  double us = 0;
  const char* what = "nothing";
};

struct Traffic {
  double read, written;  // bytes
};

// Of a slice's operand what it takes, of an array that is updated in place the update.
Traffic traffic_of(const Executable& e, const Kernel& k) {
  return {std::min(e.io_bytes_read(), k.wanted_read), std::min(e.io_bytes_written(), k.wanted_written)};
}

Bound bound_of(const Executable& e, const Kernel& k, roof::Roof& roof) {
  const Traffic t = traffic_of(e, k);
  auto read = static_cast<int64_t>(t.read), written = static_cast<int64_t>(t.written);
  DType type = e.parameter_shapes().empty() ? DType::kF32 : e.parameter_shapes()[0].type;
  const std::array<Bound, 3> bounds = {
      Bound{1e6 * roof.seconds(read, written, 0, type), "memory"},
      Bound{e.flops() > 0 ? 1e6 * e.flops() / roof.flops(type) : 0, "multiply-adds"},
      Bound{k.arithmetic_us / e.threads(), "arithmetic"},
  };
  return *std::ranges::max_element(bounds, {}, &Bound::us);
}

// The kernel as a module, to which what it updates in place is given, as it is in the program.
ModulePtr made_alone(const ModulePtr& module, const Kernel& k) {
  ModulePtr own = extract(module, k.name);
  if (!k.instruction->is(Opcode::kFusion)) return own;
  std::unique_ptr<Module> copy = own->clone();
  const bool several = k.instruction->shape.is_tuple();
  for (const Update& u : updated_parameters(*k.instruction->to_apply())) {
    auto& alias = copy->config.input_output_alias.emplace_back();
    if (several) alias.output_index = {u.result};
    alias.operand = u.parameter;
  }
  return copy;
}

// The line of figures of a kernel that is timed alone.
std::string figures(const Request& r, const ModulePtr& module, const Kernel& k, const Options& options,
                    roof::Roof& roof, double call_us) {
  Request alone = r;
  alone.inputs.clear();
  if (!alone.random) alone.random = 1;
  alone.min_ms = std::min(r.min_ms, kKernelMs);
  ModulePtr own = made_alone(module, k);
  Executable e = compile(own, options);
  std::vector<double> us = call_times(alone, e, gather_inputs(alone, own), HostSide::random(*own, *alone.random));
  double median = us[us.size() / 2];
  Bound bound = bound_of(e, k, roof);
  const Traffic traffic = traffic_of(e, k);
  bool in_entry = k.instruction->parent() == module->entry();
  return fmt::format("{:.2f} us{}, {:.3f} MB, {:.3f} MFLOP, {:.0f} % of {:.2f} us by {}{}", median,
                     in_entry ? fmt::format(" ({:.0f} % of a call)", 100 * median / call_us) : " an iteration",
                     (traffic.read + traffic.written) / 1e6, e.flops() / 1e6, 100 * bound.us / median, bound.us,
                     bound.what, k.price_us > 0 ? fmt::format(", priced {:.2f}", k.price_us) : "");
}

}  // namespace

void explain_kernels(const Request& r, const ModulePtr& module, roof::Roof& roof, double call_us, const Sink& out) {
  Options options = compile_options(r);
  options.cache_dir.clear();
  options.dump_dir.clear();
  std::vector<std::string> lines;
  options.explain = [&](const std::string& line) { lines.push_back(line); };
  ModulePtr compiled = run_passes(module, options, "");
  options.explain = nullptr;
  std::vector<Kernel> kernels = kernels_of(*compiled, codegen::Target::get(r.device_isa).info());
  attach(kernels, lines);
  for (const Kernel& k : kernels) {
    std::string told;
    try {
      told = figures(r, compiled, k, options, roof, call_us);
    } catch (const Error& error) {
      told = fmt::format("not run alone: {}", error.what());
    }
    out(fmt::format("kernel  {:<24} {:<12} {}\n", k.name, k.kind, told));
    if (k.joined > 0) {
      out(fmt::format("  fused by {} joins, which save {:.0f} ns by the planner's prices\n", k.joined, k.saved_ns));
    }
    for (const std::string& line : k.others) out(fmt::format("  {}\n", line));
    for (size_t n = 0; n < std::min(k.split_by.size(), kMostReasons); ++n) {
      out(fmt::format("  apart from {}: {}\n", k.split_by[n].first->name, k.split_by[n].second));
    }
  }
}

}  // namespace hlojit::tools
