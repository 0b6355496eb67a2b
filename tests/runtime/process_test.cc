// What the library leaves as it was: signal handlers, locale, rounding and limits of the process belong to the program
// that uses it; and several threads may compile at once, as others run.
#include <sys/resource.h>
#include <xmmintrin.h>

#include <clocale>
#include <csignal>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <tbb/global_control.h>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "hlojit/hlojit.h"

namespace hlojit {
namespace {

// Rows of exponentials, summed: parallel work, and code of several kernels.
std::string rows_of(int64_t columns) {
  return fmt::format(R"(HloModule rows
sum {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }}
ENTRY e {{
  p = f32[4099,{0}] parameter(0)
  x = f32[4099,{0}] exponential(p)
  z = f32[] constant(0)
  ROOT rows = f32[4099] reduce(x, z), dimensions={{1}}, to_apply=sum
}})",
                     columns);
}

float first_of(const Executable& program) {
  const Shape& shape = program.parameter_shapes()[0];
  const std::vector<float> zeros(static_cast<size_t>(shape.element_count()));
  return program.run({Buffer::borrow(zeros.data(), shape)}).at(0).data<float>()[0];
}

// What a process has one of, as text.
std::string state_of_process() {
  std::string state =
      fmt::format("locale {} mxcsr {:#x} tbb {}", std::setlocale(LC_ALL, nullptr), _mm_getcsr() & ~0x3fU,
                  tbb::global_control::active_value(tbb::global_control::max_allowed_parallelism));
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction action = {};
    if (sigaction(signal, nullptr, &action) != 0) continue;
    state += fmt::format(" {}:{}", signal, reinterpret_cast<uintptr_t>(action.sa_handler));
  }
  sigset_t blocked;
  pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  for (int signal = 1; signal < NSIG; ++signal) state += sigismember(&blocked, signal) == 1 ? 'b' : '.';
  for (const auto resource : {RLIMIT_AS, RLIMIT_DATA, RLIMIT_STACK, RLIMIT_CORE, RLIMIT_NOFILE, RLIMIT_NPROC}) {
    rlimit limit = {};
    getrlimit(resource, &limit);
    state += fmt::format(" {}/{}", limit.rlim_cur, limit.rlim_max);
  }
  return state;
}

}  // namespace

TEST_CASE("nothing of the process is changed") {
  const std::string before = state_of_process();
  for (int threads : {0, 1, 7}) {
    Options options;
    options.threads = threads;
    const Executable program = compile(parse(rows_of(311)), options);
    for (int again = 0; again < 3; ++again) CHECK(first_of(program) == 311);
    program.run_async({Buffer::allocate(program.parameter_shapes()[0])}).wait();
    CHECK(state_of_process() == before);
  }
}

TEST_CASE("several compiles at once, while others run") {
  const Executable first = compile(parse(rows_of(301)));
  std::vector<float> found(6);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < found.size(); ++t) {
    threads.emplace_back([&, t] {
      if (first_of(first) != 301) return;
      found[t] = first_of(compile(parse(rows_of(302 + static_cast<int64_t>(t) / 2))));  // some of them the same program
    });
  }
  for (std::thread& t : threads) t.join();
  CHECK(found == std::vector<float>{302, 302, 303, 303, 304, 304});
}

}  // namespace hlojit
