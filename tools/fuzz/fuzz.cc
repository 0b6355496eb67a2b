// fuzz: random modules, each compiled in several ways and compared with the evaluator; failures are shrunk.
#include <chrono>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "compiler/text/printer.h"
#include "tools/fuzz/census.h"
#include "tools/fuzz/generate.h"
#include "tools/fuzz/shrink.h"
#include "tools/fuzz/trial.h"
#include "tools/npy.h"
#include "tools/request.h"

namespace hlojit::tools {
namespace {

using namespace fuzz;

constexpr int kShrunk = 20;  // failures that are cut down; the others are counted
constexpr int kShrinkTries = 400;
constexpr double kShrinkSeconds = 120;
constexpr double kSeconds = 60;  // for one module, before it counts as hanging

struct Tally {
  std::map<Result, int64_t> results;
  std::map<std::string, int64_t> unsupported;
  int64_t modules = 0, failed = 0;
};

// The module as a file that tells what is wrong with it.
std::string report(const std::string& text, const Verdict& v, uint64_t seed, const std::vector<std::string>& always) {
  std::string draw = always.empty() ? "" : fmt::format(" --draw '{}'", fmt::join(always, ","));
  return fmt::format(
      "// {}: {}\n// options: {}\n// hlojit check --against-eval --random {} {}FILE   (from fuzz --seed {} --count "
      "1{})\n{}",
      result_name(v.result), v.what, v.config.options(), seed, v.config.strict ? "--strict " : "", seed, draw, text);
}

Verdict tested(uint64_t seed, const std::vector<std::string>& always, std::string& text) {
  try {
    text = to_string(*generate(seed, always));
  } catch (const Error& e) {
    return {Result::kInvalid, fmt::format("the generator itself: {}", e.what()), {}};
  }
  return judge(text, configs_for(seed), seed, kSeconds);
}

// Still the same failure: the kind of it, and for errors their text but for names and numbers.
bool alike(const Verdict& a, const Verdict& b) {
  if (a.result != b.result) return false;
  if (a.result != Result::kError && a.result != Result::kInvalid) return true;
  return a.what.substr(0, a.what.find_first_of("0123456789%\"'")) ==
         b.what.substr(0, b.what.find_first_of("0123456789%\"'"));
}

}  // namespace

void fuzz_verb(const Request& r, const Sink& out) {
  if (r.census) return out(census(r.seed.value_or(1), r.count.value_or(1000), r.draw));
  auto start = std::chrono::steady_clock::now();
  auto elapsed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  Tally tally;
  bool terminal = isatty(STDERR_FILENO);
  uint64_t first = r.seed.value_or(1);
  for (uint64_t seed = first;; ++seed) {
    if (r.seconds ? elapsed() >= *r.seconds : tally.modules >= r.count.value_or(1000)) break;
    std::string text;
    Verdict v = tested(seed, r.draw, text);
    ++tally.modules;
    ++tally.results[v.result];
    if (v.result == Result::kUnsupported) ++tally.unsupported[v.what];
    if (terminal) {
      std::fprintf(stderr, "\r%lld modules, %lld failed ", static_cast<long long>(tally.modules),
                   static_cast<long long>(tally.failed));
    }
    if (!v.failed()) continue;
    if (++tally.failed > kShrunk) continue;
    std::string small =
        text.empty() ? text
                     : shrink(
                           text, [&](const std::string& t) { return alike(v, judge(t, {v.config}, seed, kSeconds)); },
                           kShrinkTries, kShrinkSeconds);
    Verdict last = text.empty() ? v : judge(small, {v.config}, seed, kSeconds);
    if (!alike(v, last)) small = text, last = v;
    std::string file = report(small, last, seed, r.draw);
    if (r.out.empty())
      out(file + "\n");
    else
      write_file(fmt::format("{}/{}_{}.hlo", r.out, seed, result_name(v.result)), file);
  }
  if (terminal) std::fputs("\r\033[K", stderr);
  out(fmt::format("{} modules from seed {} in {:.1f} s: {} right, {} unsupported, {} failed\n", tally.modules, first,
                  elapsed(), tally.results[Result::kRight], tally.results[Result::kUnsupported], tally.failed));
  for (auto& [what, times] : tally.unsupported) out(fmt::format("  {} times: {}\n", times, what));
  if (tally.failed > 0) {
    throw Error(ErrorKind::kFailed, fmt::format("{} of {} modules fail", tally.failed, tally.modules));
  }
}

}  // namespace hlojit::tools
