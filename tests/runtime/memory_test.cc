// What is moved and what is kept: donated buffers and loop state are updated in place, memory comes back to
// the pool, and asking for more than the machine has is an error and not the end of the process.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "hlojit/hlojit.h"
#include "runtime/memory_limit.h"
#include "runtime/pool.h"

namespace hlojit {
namespace {

// 64 MiB: far beyond any cache, so that a copy is seen.
constexpr int64_t kRows = 16'384, kColumns = 1024;
const std::string kState = fmt::format("f32[{},{}]", kRows, kColumns);

double best_seconds(int repeats, const auto& f) {
  double best = 1e9;
  for (int i = 0; i < repeats; ++i) {
    const auto start = std::chrono::steady_clock::now();
    f();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

Buffer filled(const Shape& shape, float value) {
  Buffer b = Buffer::allocate(shape);
  auto* data = static_cast<float*>(b.mutable_raw());
  std::fill(data, data + shape.element_count(), value);
  return b;
}

double copy_seconds(const Buffer& from) {
  Buffer to = filled(from.shape(), 0);
  return best_seconds(3, [&] { std::memcpy(to.mutable_raw(), from.raw(), from.size_bytes()); });
}

std::vector<Buffer> list(auto... buffers) {
  std::vector<Buffer> all;
  (all.push_back(std::move(buffers)), ...);
  return all;
}

TEST_CASE("a step of a key-value cache writes one row of the donated buffer") {
  const Executable step = compile(parse(fmt::format(R"(
HloModule m, input_output_alias={{ {{0}}: (0, {{}}, may-alias) }}
ENTRY e {{
  cache = {0} parameter(0)
  row = f32[1,{1}] parameter(1)
  at = s32[] parameter(2)
  zero = s32[] constant(0)
  updated = {0} dynamic-update-slice(cache, row, at, zero)
  next = s32[] constant(1)
  after = s32[] add(at, next)
  ROOT r = ({0}, s32[]) tuple(updated, after)
}})",
                                                    kState, kColumns)));
  Buffer cache = filled(step.parameter_shapes()[0], 0);
  const double copy = copy_seconds(cache);
  const void* memory = cache.raw();
  const Buffer row = filled(step.parameter_shapes()[1], 3);
  const int32_t first = 0;
  Buffer at = Buffer::copy_of(&first, step.parameter_shapes()[2]);
  const double update = best_seconds(20, [&] {
    std::vector<Buffer> out = step.run(list(std::move(cache), row, std::move(at)));
    cache = std::move(out[0]);
    at = std::move(out[1]);
  });
  CHECK(cache.raw() == memory);
  CHECK(at.data<int32_t>()[0] == 20);
  const auto* x = cache.data<float>();
  CHECK(std::count(x, x + kRows * kColumns, 3.0f) == 20 * kColumns);
  CHECK(x[20 * kColumns - 1] == 3.0f);
  CHECK_MESSAGE(update < copy / 20, "update " << update * 1e6 << " us, copy " << copy * 1e6 << " us");

  // Memory that the caller keeps is not written.
  const Buffer kept = cache;
  const int32_t last = kRows - 1;
  std::vector<Buffer> out = step.run(list(kept, row, Buffer::copy_of(&last, step.parameter_shapes()[2])));
  CHECK(out[0].raw() != kept.raw());
  CHECK(kept.data<float>()[last * kColumns] == 0);
  CHECK(out[0].data<float>()[last * kColumns] == 3);
  CHECK(out[0].data<float>()[0] == 3);
}

TEST_CASE("a loop moves only what it updates of a large state") {
  const Executable loop = compile(parse(fmt::format(R"(
HloModule m, input_output_alias={{ {{}}: (0, {{}}, may-alias) }}
condition {{
  s = (s32[], {0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(10)
  ROOT r = pred[] compare(i, n), direction=LT
}}
body {{
  s = (s32[], {0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = {0} get-tuple-element(s), index=1
  zero = s32[] constant(0)
  one = s32[] constant(1)
  row = f32[1,{1}] dynamic-slice(x, i, zero), dynamic_slice_sizes={{1,{1}}}
  twice = f32[1,{1}] add(row, row)
  y = {0} dynamic-update-slice(x, twice, i, zero)
  j = s32[] add(i, one)
  ROOT r = (s32[], {0}) tuple(j, y)
}}
ENTRY e {{
  p = {0} parameter(0)
  zero = s32[] constant(0)
  state = (s32[], {0}) tuple(zero, p)
  w = (s32[], {0}) while(state), condition=condition, body=body
  ROOT r = {0} get-tuple-element(w), index=1
}})",
                                                    kState, kColumns)));
  Buffer state = filled(loop.parameter_shapes()[0], 1);
  const double copy = copy_seconds(state);
  const void* memory = state.raw();
  CHECK(loop.arena_bytes() < 1 << 20);
  const double ten = best_seconds(5, [&] { state = std::move(loop.run(list(std::move(state)))[0]); });
  CHECK(state.raw() == memory);
  CHECK(state.data<float>()[0] == 32);
  CHECK(state.data<float>()[9 * kColumns + 5] == 32);
  CHECK(state.data<float>()[10 * kColumns] == 1);
  CHECK_MESSAGE(ten < copy / 20, "ten updates " << ten * 1e6 << " us, copy " << copy * 1e6 << " us");
}

TEST_CASE("what is freed is used again") {
  const Shape shape = Shape::parse(kState);
  const void* first;
  {
    const Buffer b = Buffer::allocate(shape);
    first = b.raw();
  }
  const size_t idle = pool_idle_bytes();
  CHECK(idle >= static_cast<size_t>(4 * kRows * kColumns));
  const Buffer again = Buffer::allocate(shape);
  CHECK(again.raw() == first);
  CHECK(pool_idle_bytes() < idle);
}

TEST_CASE("the pool gives memory of any size, apart from all other") {
  std::vector<std::pair<char*, size_t>> blocks;
  std::vector<std::shared_ptr<void>> owners;
  for (size_t n : {0u, 1u, 63u, 64u, 255u, 256u, 257u, 4096u, 100'000u, (2u << 20) - 64, (2u << 20) + 1, 5u << 20}) {
    for (int twice = 0; twice < 2; ++twice) {
      owners.push_back(pool_allocate(n));
      auto* p = static_cast<char*>(owners.back().get());
      REQUIRE(p != nullptr);
      CHECK(reinterpret_cast<uintptr_t>(p) % 64 == 0);
      std::memset(p, static_cast<int>(blocks.size()), n);
      blocks.push_back({p, n});
    }
  }
  for (size_t k = 0; k < blocks.size(); ++k) {
    const auto [p, n] = blocks[k];
    CHECK(std::count(p, p + n, static_cast<char>(k)) == static_cast<std::ptrdiff_t>(n));
  }
}

std::string failure(const auto& f) {
  try {
    f();
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kFailed);
    return error.what();
  }
  return "nothing was thrown";
}

TEST_CASE("what is not taken any more goes back to the system") {
  release_idle_memory();
  CHECK(pool_idle_bytes() == 0);
  pool_allocate(size_t{64} << 20);
  CHECK(pool_idle_bytes() >= size_t{64} << 20);
  for (int k = 0; k < 2000; ++k) pool_allocate(1000);
  CHECK(pool_idle_bytes() < size_t{1} << 20);
  pool_allocate(1000);
  CHECK(release_idle_memory() >= 1000);
}

TEST_CASE("all that is given together is no more than there is") {
  std::vector<std::shared_ptr<void>> held;  // never touched, so that it costs address space alone
  const size_t part = memory_limit() / 4;
  auto take = [&] { held.push_back(pool_allocate(part)); };
  CHECK_THROWS_AS((take(), take(), take(), take(), take()), Error);
  CHECK(held.size() >= 2);
  held.clear();
  CHECK_NOTHROW(take());
}

TEST_CASE("the limits of control groups are seen") {
  const std::filesystem::path root = std::filesystem::temp_directory_path() / "hlojit_cgroup_test";
  std::filesystem::remove_all(root);
  auto write = [&](const std::string& folder, const char* file, const char* text) {
    std::filesystem::create_directories(root / folder);
    std::ofstream(root / folder / file) << text << '\n';
  };
  auto limit = [&](const char* membership) { return cgroup_memory_limit(membership, root.string()); };
  CHECK(limit("0::/a/b\n") == SIZE_MAX);
  write("a/b", "memory.max", "max");
  CHECK(limit("0::/a/b\n") == SIZE_MAX);
  write("a", "memory.max", "1000");
  CHECK(limit("0::/a/b\n") == 1000);
  write("a/b", "memory.max", "300");
  CHECK(limit("0::/a/b\n") == 300);
  CHECK(limit("0::/\n") == SIZE_MAX);
  write("", "memory.max", "200");  // inside a container the root is its own
  CHECK(limit("0::/\n") == 200);
  write("memory/c", "memory.limit_in_bytes", "50");
  CHECK(limit("5:cpu,memory:/c\n3:pids:/c\n") == 50);
  CHECK(limit("3:pids:/c\nnonsense\n") == SIZE_MAX);
  std::filesystem::remove_all(root);
}

TEST_CASE("more memory than there is: an error, and the next call works") {
  // A result of 4 TiB; a temporary of 4 TiB; a constant's broadcast that no loop may even begin.
  const ModulePtr result = parse(R"(HloModule m
ENTRY e { p = f32[] parameter(0)  ROOT b = f32[1048576,1048576] broadcast(p), dimensions={} })");
  const float one = 1;
  const Buffer scalar = Buffer::copy_of(&one, Shape::parse("f32[]"));
  CHECK(failure([&] { compile(result).run({scalar}); }).find("memory") != std::string::npos);

  const ModulePtr temporary = parse(R"(HloModule m
less { a = f32[] parameter(0) b = f32[] parameter(1) ROOT l = pred[] compare(a, b), direction=LT }
ENTRY e {
  p = f32[] parameter(0)
  b = f32[1048576,1048576] broadcast(p), dimensions={}
  t = f32[1048576,1048576] sort(b), dimensions={1}, to_apply=less
  i = s32[] constant(3)
  ROOT s = f32[2,2] dynamic-slice(t, i, i), dynamic_slice_sizes={2,2}
})");
  CHECK(failure([&] { compile(temporary).run({scalar}); }).find("memory") != std::string::npos);
  CHECK(failure([&] { Buffer::allocate(Shape::parse("f32[1099511627776]")); }).find("memory") != std::string::npos);

  const Executable small = compile(parse("HloModule m\nENTRY e { p = f32[] parameter(0) ROOT r = f32[] add(p, p) }"));
  CHECK(small.run({scalar})[0].data<float>()[0] == 2);
}

TEST_CASE("what does not fit is said with both shapes") {
  const Executable e =
      compile(parse("HloModule m\nENTRY e { p = f32[3]{0} parameter(0) ROOT r = f32[3]{0} add(p, p) }"));
  auto text = [&](std::vector<Buffer> inputs) -> std::string {
    try {
      e.run(std::move(inputs));
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::kInput);
      return error.what();
    }
    return "nothing was thrown";
  };
  const float x[8] = {};
  CHECK(text({}).find("takes 1 input leaves, 0 were given") != std::string::npos);
  for (const char* wrong : {"f32[4]{0}", "s32[3]{0}", "f32[3]{0:T(4)}", "f32[3,1]{1,0}"}) {
    const std::string said = text({Buffer::borrow(x, Shape::parse(wrong))});
    CHECK(said.find(wrong) != std::string::npos);
    CHECK(said.find("f32[3]{0}") != std::string::npos);
  }
}

}  // namespace
}  // namespace hlojit
