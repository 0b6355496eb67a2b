// One module under test: every way it is compiled, compared with the evaluator, in a process of its own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hlojit::tools::fuzz {

/// A way to compile and run. With `until`, the program is printed after that pass, read back and must give
/// the bits that it gives without; with `relaid`, layouts are drawn anew for what is printed, but inside fusions,
/// which carry our plans; with `again`, the bits that one thread gives.
struct Config {
  bool strict = false;
  bool wide = false;           ///< 64-byte vectors instead of 32
  std::string isa = "native";  ///< or "avx2", whatever this machine has, or the name of another maker's CPU
  bool small = false;          ///< a machine of tiny caches, whose threads share out little work
  int threads = 1;
  std::string until = {};
  bool again = false;
  uint64_t relaid = 0;  ///< seed of the layouts; 0: as printed

  std::string options() const;  ///< as on the command line
};

/// The configurations for a seed: strict and default, two widths, 1 to 3 threads, a pass to stop after.
std::vector<Config> configs_for(uint64_t seed);

enum class Result : uint8_t { kRight, kUnsupported, kInvalid, kWrong, kError, kCrash, kHang };
std::string_view result_name(Result r);

struct Verdict {
  Result result = Result::kRight;
  std::string what;  ///< one line: the message, or which element differs
  Config config;     ///< that failed
  bool failed() const { return result > Result::kUnsupported; }
};

/// Runs a module, given as text, under all configurations up to the first failure; `inputs` seeds its
/// parameters. In a child process, so that a crash or a loop without end is a verdict.
Verdict judge(const std::string& text, const std::vector<Config>& configs, uint64_t inputs, double seconds);

}  // namespace hlojit::tools::fuzz
