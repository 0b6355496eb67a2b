// A forked child has none of its parent's threads: what the parent compiled runs there on the one it has, what needs
// more is refused, and nothing waits for what will never come.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <future>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "hlojit/hlojit.h"

namespace hlojit {
namespace {

// Enough work that it is shared with other threads.
constexpr const char* kRows = R"(HloModule rows
sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
ENTRY e {
  p = f32[4099,257] parameter(0)
  x = f32[4099,257] exponential(p)
  z = f32[] constant(0)
  ROOT rows = f32[4099] reduce(x, z), dimensions={1}, to_apply=sum
})";
constexpr const char* kAllReduce = R"(HloModule m, replica_count=2
sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
ENTRY e { p = f32[3] parameter(0)  ROOT r = f32[3] all-reduce(p), replica_groups={{0,1}}, to_apply=sum })";

// Whether f() throws an error with these words.
bool refuses(const char* words, const auto& f) {
  try {
    f();
  } catch (const Error& e) {
    return std::string(e.what()).find(words) != std::string::npos;
  }
  return false;
}

// What the child found to be as it should, a bit each; -1 if it did not end by itself.
int in_child(const auto& f) {
  std::fflush(nullptr);  // or the child prints it, too
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    std::exit(f());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool same(const Buffer& a, const Buffer& b) { return std::memcmp(a.raw(), b.raw(), a.size_bytes()) == 0; }

}  // namespace

TEST_CASE("a forked child runs on its one thread, and refuses what needs the others") {
  Executable rows = compile(parse(kRows)), sums = compile(parse(kAllReduce));
  const std::vector<float> x(4099 * 257, 0.5f);
  const std::vector<Buffer> in = {Buffer::copy_of(x.data(), rows.parameter_shapes()[0])};
  const Buffer small = Buffer::copy_of(x.data(), sums.parameter_shapes()[0]);
  Buffer want, over;
  for (int k = 0; k < 3; ++k) want = rows.run(in).at(0);
  over = rows.run_async(in).results().at(0);
  over.wait();
  CHECK(sums.run_devices({{small}}).at(1).at(0).data<float>()[0] == 1);
  std::promise<void> later;
  PendingRun under_way = rows.run_async(in, [until = later.get_future().share()] { until.wait(); });
  const int found = in_child([&] {
    int bits = 0;
    for (int k = 0; k < 3; ++k) bits |= static_cast<int>(same(rows.run(in).at(0), want));
    bits |= static_cast<int>(same(over, want)) << 1;
    bits |= static_cast<int>(refuses("was forked off", [&] { rows.run_async(in); })) << 2;
    bits |= static_cast<int>(refuses("was forked off", [&] { sums.run_devices({{small}}); })) << 3;
    Executable fresh = compile(parse(kRows));
    bits |= static_cast<int>(same(fresh.run_async(in).get().at(0), want)) << 4;
    return bits;
  });
  CHECK(found == 31);
  later.set_value();
  CHECK(same(under_way.get().at(0), want));
  CHECK(same(rows.run_async(in).get().at(0), want));
  CHECK(sums.run_devices({{small}}).at(1).at(0).data<float>()[0] == 1);
}

TEST_CASE("a forked child does not wait for a run that its parent had under way") {
  Executable loops = compile(parse(R"(HloModule m
condition { i = s32[] parameter(0)  n = s32[] constant(2147483647)  ROOT r = pred[] compare(i, n), direction=LT }
body { i = s32[] parameter(0)  zero = s32[] constant(0)
  ROOT r = s32[] maximum(zero, zero) }
ENTRY e { p = s32[] parameter(0)  ROOT w = s32[] while(p), condition=condition, body=body })"));
  std::atomic<bool> stop = false;
  const int32_t zero = 0;
  RunOptions options;
  options.stop = &stop;
  PendingRun endless = loops.run_async({Buffer::copy_of(&zero, loops.parameter_shapes()[0])}, {}, options);
  const int found = in_child([&] {
    int bits = static_cast<int>(refuses("was forked off", [&] { endless.wait(); }));
    const PendingRun gone = std::move(endless);
    return bits;
  });
  CHECK(found == 1);
  stop = true;
  CHECK(refuses("stop", [&] { endless.get(); }));
}

}  // namespace hlojit
