// The passes, in order, and the loop that runs them. The loop also verifies, times, shows and stops;
// a pass only changes the module.
#include "compiler/pipeline.h"

#include <algorithm>
#include <chrono>

#include "compiler/passes/alias.h"
#include "compiler/passes/allocate.h"
#include "compiler/passes/batch_rounds.h"
#include "compiler/passes/bitcasts.h"
#include "compiler/passes/cse.h"
#include "compiler/passes/dce.h"
#include "compiler/passes/devices.h"
#include "compiler/passes/double_buffer.h"
#include "compiler/passes/dynamic.h"
#include "compiler/passes/expand.h"
#include "compiler/passes/fold.h"
#include "compiler/passes/fuse.h"
#include "compiler/passes/hoist.h"
#include "compiler/passes/inline_calls.h"
#include "compiler/passes/known_places.h"
#include "compiler/passes/layouts.h"
#include "compiler/passes/legalize_check.h"
#include "compiler/passes/pack.h"
#include "compiler/passes/schedule.h"
#include "compiler/passes/simplify.h"
#include "compiler/passes/sink.h"
#include "compiler/passes/split_concatenations.h"
#include "compiler/passes/split_contractions.h"
#include "compiler/passes/split_reductions.h"
#include "compiler/passes/split_scatters.h"
#include "compiler/passes/squeeze.h"
#include "compiler/passes/synchronous.h"
#include "compiler/passes/unroll.h"
#include "compiler/passes/update_parts.h"
#include "compiler/passes/wrap.h"
#include "compiler/verify/verifier.h"

namespace hlojit {
namespace {

struct Pass {
  std::string_view name;
  bool (*run)(Module&, const PipelineOptions&);
  bool needed = false;          ///< for more than speed
  std::string_view again = {};  ///< where to go on if it changed something
};

constexpr Pass kPasses[] = {
    // Before anything changes a layout or drops a copy: what reads bytes becomes ops that do not.
    {"bitcasts", bitcasts},
    // Asynchronous pairs become calls or plain ops, which the next pass can inline.
    {"synchronous", synchronous, true},
    // One flat graph a computation; foreign fusions are dissolved, ours kept.
    {"inline_calls", inline_calls, true},
    // Sizes known at run time only become values; from here on every shape is static.
    {"dynamic", dynamic, true},
    // Collectives become moves of blocks between devices and plain ops on what was moved.
    {"devices", devices, true},
    // Random bits, batch norms and maps become plain arithmetic, which all other passes know.
    {"expand", expand, true},
    {"unroll", unroll},
    // Constants first: what they decide (branches, neutral elements) is simplified away.
    {"fold", fold},
    {"simplify", simplify},
    // Masks, in their simplest form, before they meet what reads them.
    {"sink", sink},
    // What has become constants only now, and what these decide, until nothing is left. (Left for the next compiler of
    // what we print, sums and quotients had other bits there.)
    {"fold", fold, false, "simplify"},
    {"fold_places", fold_places, false, "simplify"},
    {"known_places", known_places, false, "simplify"},
    // What iotas make by functions, in its last form.
    {"fold_tables", fold_tables, false, "simplify"},
    {"squeeze", squeeze},
    // After squeeze, which makes equal what differed in dims of size 1. What has become equal decides things, too.
    {"cse", cse, false, "simplify"},
    {"split_scatters", split_scatters},
    {"split_concatenations", split_concatenations},
    // What no round changes is plain now; hoist, below, moves what comes of it out of loops.
    {"batch_rounds", batch_rounds},
    // Before fuse, which would make the parts.
    {"update_parts", update_parts},
    {"dce", dce},
    // From here on every array has the layout it will have in memory.
    {"layouts", layouts, true},
    // Which dims come first in memory says where to cut.
    {"split_contractions", split_contractions},
    {"split_reductions", split_reductions},
    // What reductions went over before: fuse counts readers.
    {"dce", dce},
    {"pack", pack},
    // With the copies that pack made.
    {"hoist", hoist},
    // Loops have the state now that they will run with.
    {"allocate", allocate},
    // What is left now must be in some kernel, or the module is refused by name.
    {"legalize_check", legalize_check, true},
    {"fuse", fuse},
    // From here on all computing is done by fusions, each of them one kernel.
    {"wrap", wrap, true},
    {"dce", dce},
    {"double_buffer", double_buffer},
    // Who shares memory with whom; copies where two live values would.
    {"alias", alias, true},
    // From here on the order of instructions is the order of execution.
    {"schedule", schedule, true},
};

// Of two passes that take turns; each makes constants of what is nested one deeper.
constexpr int kMostRounds = 16;

bool is_in(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

const Pass* find(std::string_view name) {
  auto at = std::ranges::find(kPasses, name, &Pass::name);
  if (at != std::end(kPasses)) return at;
  throw Error(ErrorKind::kInput, "there is no pass \"" + std::string(name) + "\"");
}

std::vector<Pass> chosen(const PipelineOptions& options) {
  for (const std::string& name : options.disabled) find(name);
  if (!options.until.empty()) find(options.until);
  std::vector<Pass> list;
  if (options.only.empty()) {
    list.assign(std::begin(kPasses), std::end(kPasses));
  } else {
    for (const std::string& name : options.only) list.push_back(*find(name));
  }
  std::erase_if(list, [&](const Pass& p) { return is_in(options.disabled, p.name); });
  return list;
}

// Where the pass of this name came last before `at`; behind `at` if it is left out.
size_t last_of(const std::vector<Pass>& passes, size_t at, std::string_view name) {
  for (size_t k = at; k > 0; --k) {
    if (passes[k - 1].name == name) return k - 1;
  }
  return at + 1;
}

void verify_after(const Pass& pass, const Module& module) {
  std::vector<Diagnostic> found = verify(module);
  if (found.empty()) return;
  found.front().message = "after pass " + std::string(pass.name) + ": " + found.front().message;
  throw Error(ErrorKind::kFailed, std::move(found));
}

}  // namespace

std::vector<PassTime> run_pipeline(Module& module, const PipelineOptions& options) {
  std::vector<PassTime> times;
  module.freeze_entry_layout();
  const std::vector<Pass> passes = chosen(options);
  int rounds = 0;
  for (size_t k = 0; k < passes.size();) {
    const Pass& pass = passes[k];
    auto start = std::chrono::steady_clock::now();
    bool changed = pass.run(module, options);
    std::chrono::duration<double, std::milli> ms = std::chrono::steady_clock::now() - start;
    times.push_back({std::string(pass.name), ms.count(), changed});
    if (changed && options.verify) verify_after(pass, module);
    if (changed && options.after_pass) options.after_pass(times.back().name, module);
    if (pass.name == options.until) break;
    const bool again = changed && !pass.again.empty();
    if (again && ++rounds == kMostRounds) times.push_back({std::string(kUnsettled)});
    k = again && rounds < kMostRounds ? last_of(passes, k, pass.again) : k + 1;
  }
  return times;
}

std::vector<std::string> needed_pass_names() {
  std::vector<std::string> names;
  for (const Pass& pass : kPasses) {
    if (pass.needed) names.emplace_back(pass.name);
  }
  return names;
}

std::vector<std::string> pass_names() {
  std::vector<std::string> names;
  for (const Pass& pass : kPasses) {
    if (!is_in(names, pass.name)) names.emplace_back(pass.name);
  }
  return names;
}

}  // namespace hlojit
