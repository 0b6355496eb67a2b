// See trial.h. The child does the work and sends its verdict through a pipe; the parent never compiles, so
// that it has no threads when it forks.
#include "tools/fuzz/trial.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <set>

#include <fmt/format.h>

#include "codegen/target.h"
#include "compiler/passes/dynamic.h"
#include "compiler/pipeline.h"
#include "compiler/text/parser.h"
#include "compiler/text/printer.h"
#include "runtime/spoiled_memory.h"
#include "tools/actual_sizes.h"
#include "tools/error_bound.h"
#include "tools/fenced.h"
#include "tools/fuzz/draft.h"
#include "tools/request.h"

namespace hlojit::tools::fuzz {
namespace {

using Bits = std::vector<Literal>;

// Arrays of a few kilobytes are then beyond all caches, and what takes some ten nanoseconds is many tasks.
constexpr int kSmaller = 1024;

Options options_of(const Config& c) {
  Options o;
  o.strict = c.strict;
  o.keep_subnormals = true;  // as the evaluator does
  o.threads = c.threads;
  o.vector_bytes = c.wide ? 64 : 32;
  o.isa = c.isa;
  if (c.small) o.smaller = kSmaller;
  return o;
}

// The same for every device.
struct Inputs {
  std::vector<Buffer> parameters;
  HostSide host;
  bool at_end;  // of the pages that they lie in
};

// A device's parameters.
std::vector<Buffer> given(const Executable& e, const Inputs& inputs, std::vector<Fenced>& fences) {
  std::vector<Buffer> all;
  for (size_t k = 0; k < inputs.parameters.size(); ++k) {
    Shape shape = e.parameter_shapes()[k];
    shape.dims = inputs.parameters[k].shape().dims;
    shape.dynamic.clear();
    all.push_back(inputs.parameters[k].to_layout(shape));
  }
  return between_fences(e, std::move(all), inputs.at_end, fences);
}

// Results of all devices, one after the other, each with what the device handed to the host.
Bits run(const ModulePtr& module, const Config& c, const Inputs& inputs) {
  Executable e = compile(module, options_of(c));
  if (std::ranges::count(e.compile_times(), kUnsettled, &PhaseTime::name) > 0)
    throw Error(ErrorKind::kFailed, "the passes do not settle");
  auto devices = static_cast<size_t>(e.replicas() * e.partitions());
  std::vector<Fenced> fences;
  std::vector<std::vector<Buffer>> own(devices), got;
  for (std::vector<Buffer>& set : own) set = given(e, inputs, fences);
  RunOptions options;
  options.queues = inputs.host.queues(static_cast<int64_t>(devices));
  spoil_memory(e);
  if (devices == 1)
    got.push_back(e.run(std::move(own[0]), options));
  else
    got = e.run_devices(std::move(own), options);
  Bits results;
  for (size_t d = 0; d < devices; ++d) {
    for (const Buffer& b : got[d]) results.push_back(dense(b));
    for (const Buffer& b : inputs.host.taken(options.queues, static_cast<int64_t>(d))) results.push_back(dense(b));
  }
  return results;
}

std::vector<ErrorBound> evaluated(const Module& module, const Inputs& inputs, bool strict) {
  std::vector<Literal> leaves;
  for (const Buffer& b : inputs.parameters) leaves.push_back(dense(b));
  auto devices = static_cast<size_t>(module.config.replica_count * module.config.num_partitions);
  std::vector<ErrorBound> all;
  for (auto& own : evaluate_with_bounds(module, {devices, leaves}, strict, false, &inputs.host)) {
    all.insert(all.end(), own.begin(), own.end());
  }
  return all;
}

std::string describe(const Literal& l, int64_t i) {
  if (is_complex(l.shape().type)) return fmt::format("({}, {})", l.as_complex(i).real(), l.as_complex(i).imag());
  if (is_float(l.shape().type)) return fmt::format("{}", l.as_double(i));
  return fmt::format("{}", l.as_int(i));
}

std::string difference(const Bits& got, const std::vector<ErrorBound>& want, std::string_view other) {
  if (got.size() != want.size()) return fmt::format("{} results instead of {}", got.size(), want.size());
  for (size_t k = 0; k < got.size(); ++k) {
    const Literal own = said_part(got[k], want[k]);
    if (own.shape().dims != want[k].value.shape().dims) {
      return fmt::format("result {} is {}, {} has {}", k, own.shape().to_string(false), other,
                         want[k].value.shape().to_string(false));
    }
    int64_t i = first_beyond(own, want[k]);
    if (i < 0) continue;
    return fmt::format("result {} {}, element {}: {}, {} has {}, may be off by {:.3g}", k, own.shape().to_string(false),
                       i, describe(own, i), other, describe(want[k].value, i), want[k].error);
  }
  return {};
}

std::vector<ErrorBound> exactly(const Bits& bits) {
  std::vector<ErrorBound> exact;
  for (const Literal& l : bits) exact.push_back({l, 0});
  return exact;
}

// Other layouts for all that is not in a fusion.
std::string relaid(const std::string& text, uint64_t seed) {
  std::unique_ptr<Module> module = parse_module(text);
  std::set<const Instruction*> pinned;
  for (const auto& c : module->computations()) {
    for (const auto& i : c->instructions()) {
      if (i->is(Opcode::kBitcast)) pinned.insert({i.get(), i->operand(0)});
      if (!i->attrs.operand_layout_constraints.empty()) pinned.insert(i.get());  // a call that asks for its layouts
      if (!i->is(Opcode::kFusion)) continue;
      for (const auto& inner : i->to_apply()->instructions()) {
        if (!inner->is(Opcode::kTuple)) pinned.insert(inner.get());  // tuples may disagree with their elements
      }
    }
  }
  module->config.input_output_alias.clear();
  module->config.entry_parameters.clear();
  module->config.has_entry_layout = false;
  Random random(seed);
  draw_layouts(*module, random, pinned);
  return to_string(*module);
}

// Where a parameter says `<=n`, it has any size up to that.
void cut_sizes(const Module& module, std::vector<Buffer>& inputs, uint64_t seed) {
  Random random(seed);
  size_t k = 0;
  for (const Instruction* p : module.entry()->parameters()) {
    for (const Shape* leaf : hlojit::leaves(p->shape)) {
      Buffer& input = inputs.at(k++);
      if (!leaf->has_dynamic_dims()) continue;
      Ints sizes = leaf->dims;
      for (size_t d = 0; d < sizes.size(); ++d) {
        if (leaf->dynamic[d]) sizes[d] = random.between(0, sizes[d]);
      }
      Literal cut = cut_to(dense(input), sizes);
      input = Buffer::copy_of(cut.bytes().data(), cut.shape());
    }
  }
}

// Of `module`, and of what it has become; `evaluates` is told when the compiler has done its part.
std::string against_evaluator(const Module& module, const ModulePtr& become, const Config& c, const Inputs& inputs,
                              const std::function<void()>& evaluates) {
  const Bits got = run(become, c, inputs);
  evaluates();
  return difference(got, evaluated(module, inputs, c.strict), "the evaluator");
}

std::string try_config(const ModulePtr& module, const Config& c, const Inputs& inputs,
                       const std::function<void()>& evaluates) {
  if (c.until.empty() && !c.again) return against_evaluator(*module, module, c, inputs, evaluates);
  // Printed after passes, sizes are parameters and results of their own.
  if (!c.until.empty() && has_dynamic_sizes(*module)) return {};
  Config plain = c;
  plain.threads = 1;
  Bits want = run(module, plain, inputs);
  if (c.again) return difference(run(module, c, inputs), exactly(want), "one thread");
  std::string text = to_text(run_passes(module, options_of(c), c.until));
  if (c.relaid) {
    ModulePtr other = parse(relaid(text, c.relaid));
    verify(other);
    return against_evaluator(*module, other, c, inputs, evaluates);
  }
  ModulePtr printed = parse(text);
  verify(printed);
  return difference(run(printed, plain, inputs), exactly(want), "the program before passes");
}

Verdict trial(const std::string& text, const std::vector<Config>& configs, uint64_t seed,
              const std::function<void()>& evaluates) {
  Verdict v;
  try {
    ModulePtr module = parse(text);
    verify(module);
    Request r;
    r.random = seed;
    Inputs inputs{gather_inputs(r, module), HostSide::random(*module, seed), at_end(seed)};
    cut_sizes(*module, inputs.parameters, seed);
    for (const Config& c : configs) {
      v.config = c;
      v.what = try_config(module, c, inputs, evaluates);
      if (v.what.empty()) continue;
      v.result = Result::kWrong;
      break;
    }
  } catch (const Error& e) {
    v.result = e.kind() == ErrorKind::kUnsupported ? Result::kUnsupported
               : e.kind() == ErrorKind::kInvalid   ? Result::kInvalid
                                                   : Result::kError;
    // Unsupported is said by name; of the others the whole line counts.
    v.what = e.diagnostics().front().message;
  } catch (const std::exception& e) {
    v.result = Result::kError;
    v.what = fmt::format("internal error: {}", e.what());
  }
  return v;
}

// What a child says before its verdict: which config it is at, by its place in the list, and that it evaluates.
constexpr char kConfig = 'c', kEvaluates = 'e', kVerdict = 'r';

[[noreturn]] void child(int pipe, const std::string& text, const std::vector<Config>& configs, uint64_t seed) {
  rlimit memory{int64_t{12} << 30, int64_t{12} << 30}, no_core{0, 0};
  setrlimit(RLIMIT_AS, &memory);
  setrlimit(RLIMIT_CORE, &no_core);
  int null = open("/dev/null", O_WRONLY);
  dup2(null, STDERR_FILENO);
  std::string answer;
  for (size_t k = 0; k < configs.size(); ++k) {
    auto say = [&](char what) {
      const char mark[2] = {what, static_cast<char>('0' + k)};
      if (write(pipe, mark, 2) != 2) _exit(1);
    };
    say(kConfig);
    Verdict v = trial(text, {configs[k]}, seed, [&] { say(kEvaluates); });
    if (v.result == Result::kRight && k + 1 < configs.size()) continue;
    answer = fmt::format("{}{}{}", kVerdict, static_cast<char>('0' + static_cast<int>(v.result)), v.what);
    break;
  }
  ssize_t sent = write(pipe, answer.data(), std::min<size_t>(answer.size(), 4000));
  _exit(sent > 0 ? 0 : 1);
}

// The verdict in what a child said, or in how it ended. An evaluator that takes long is no fault of the compiler.
Verdict heard(const std::string& said, const std::vector<Config>& configs, bool late, int status, double seconds) {
  Verdict v;
  size_t at = 0;
  bool evaluates = false;
  for (; at + 1 < said.size() && said[at] != kVerdict; at += 2) {
    v.config = configs.at(static_cast<size_t>(said[at + 1] - '0'));
    evaluates = said[at] == kEvaluates;
  }
  if (at + 1 < said.size()) {
    v.result = static_cast<Result>(said[at + 1] - '0');
    v.what = said.substr(at + 2);
  } else if (late) {
    v.result = evaluates ? Result::kUnsupported : Result::kHang;
    v.what = fmt::format("{} in {} s", evaluates ? "not evaluated" : "no answer", seconds);
  } else {
    v.result = Result::kCrash;
    v.what = fmt::format("ended by signal {}", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
  }
  return v;
}

}  // namespace

std::string Config::options() const {
  std::string text = strict ? "--strict " : "";
  text += fmt::format("--threads {}", threads);
  if (isa != "native") text += " --device-isa " + isa;
  if (wide) text += ", vectors of 64 bytes";
  if (small) text += fmt::format(", smaller by {}", kSmaller);
  if (!until.empty()) text += fmt::format(", after opt --until={}", until);
  if (relaid != 0) text += fmt::format(" and layouts of seed {}", relaid);
  if (again) text += ", against one thread";
  return text;
}

std::string_view result_name(Result r) {
  static constexpr std::string_view kNames[] = {"right", "unsupported", "invalid", "wrong", "error", "crash", "hang"};
  return kNames[static_cast<int>(r)];
}

std::vector<Config> configs_for(uint64_t seed) {
  Random random(seed * 31 + 7);
  std::vector<Config> list;
  bool wide = random.chance(0.5);
  list.push_back({.strict = true, .wide = wide, .threads = static_cast<int>(random.between(1, 3))});
  list.push_back({.wide = !wide, .threads = static_cast<int>(random.between(1, 3))});
  if (random.chance(0.3))
    list.push_back({.wide = wide, .threads = static_cast<int>(random.between(2, 3)), .again = true});
  if (random.chance(0.5)) list.push_back({.wide = wide, .until = random.pick(pass_list())});
  if (random.chance(0.15)) list.push_back({.wide = wide, .until = "wrap", .relaid = random.next() | 1});
  for (Config& c : list) {
    if (random.chance(c.wide ? 0.2 : 0.6)) {
      c.isa = "avx2";
    } else if (random.chance(0.3)) {
      c.isa = codegen::Target::of_another_maker();
    }
  }
  for (Config& c : list) c.small = random.chance(0.3);
  return list;
}

Verdict judge(const std::string& text, const std::vector<Config>& configs, uint64_t inputs, double seconds) {
  int ends[2];
  if (pipe(ends) != 0) throw Error(ErrorKind::kFailed, fmt::format("cannot open a pipe: {}", std::strerror(errno)));
  pid_t pid = fork();
  if (pid < 0) throw Error(ErrorKind::kFailed, fmt::format("cannot start a process: {}", std::strerror(errno)));
  if (pid == 0) {
    close(ends[0]);
    child(ends[1], text, configs, inputs);
  }
  close(ends[1]);
  std::string said;
  bool late = false;
  for (;;) {
    pollfd p{ends[0], POLLIN, 0};
    int ready = poll(&p, 1, static_cast<int>(1000 * seconds));
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) {
      late = true;
      kill(pid, SIGKILL);
      break;
    }
    char buffer[4096];
    ssize_t n = read(ends[0], buffer, sizeof buffer);
    if (n <= 0) break;
    said.append(buffer, static_cast<size_t>(n));
  }
  close(ends[0]);
  int status = 0;
  waitpid(pid, &status, 0);
  return heard(said, configs, late, status, seconds);
}

}  // namespace hlojit::tools::fuzz
