// See guards.h.
#include "runtime/guards.h"

#include <bit>

#include <fmt/format.h>

namespace hlojit {
namespace {

constexpr int kMaxThreads = 4096;
constexpr int kMaxVectorBytes = 64;
constexpr int kMostSmaller = 1 << 16;

void check_range(std::string_view option, int value, int least, int most) {
  if (value >= least && value <= most) return;
  throw Error(ErrorKind::kInput, fmt::format("option {} is {}, it goes from {} to {}", option, value, least, most));
}

}  // namespace

const Module& program(const ModulePtr& module) {
  if (!module) throw Error(ErrorKind::kInput, "no program was given: the module is a null pointer");
  return *module;
}

void check_options(const Options& options) {
  check_range("threads", options.threads, 0, kMaxThreads);
  check_range("effort", options.effort, 0, 2);
  check_range("vector_bytes", options.vector_bytes, 0, kMaxVectorBytes);
  check_range("smaller", options.smaller, 1, kMostSmaller);
  int bytes = options.vector_bytes;
  if (bytes != 0 && (bytes < 4 || !std::has_single_bit(static_cast<unsigned>(bytes)))) {
    throw Error(ErrorKind::kInput, fmt::format("option vector_bytes is {}, it is 0, 4, 8, 16, 32 or 64", bytes));
  }
}

}  // namespace hlojit
