// Several devices in one process: who waits for whom, and what happens when one does not come.
#include <hlojit/hlojit.h>

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

namespace hlojit {
namespace {

constexpr const char* kSum = R"(HloModule sum, replica_count=3
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
ENTRY e {
  x = f32[5]{0} parameter(0)
  ROOT s = f32[5]{0} all-reduce(x), replica_groups={}, to_apply=add
})";

// Each device takes its start from its infeed, then adds up neighbours in a loop.
constexpr const char* kRing = R"(HloModule ring, replica_count=3
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
less { p = (s32[], f32[5]) parameter(0) i = s32[] get-tuple-element(p), index=0 n = s32[] constant(20) ROOT c = pred[] compare(i, n), direction=LT }
step {
  p = (s32[], f32[5]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[5] get-tuple-element(p), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  y = f32[5] collective-permute(x), source_target_pairs={{0,1},{1,2},{2,0}}
  third = f32[] constant(0.3)
  w = f32[5] broadcast(third), dimensions={}
  z = f32[5] multiply(y, w)
  s = f32[5] all-reduce(z), replica_groups={}, to_apply=add
  ROOT t = (s32[], f32[5]) tuple(j, s)
}
ENTRY e {
  k = token[] after-all()
  f = (f32[5], token[]) infeed(k)
  x = f32[5] get-tuple-element(f), index=0
  i = s32[] constant(0)
  t = (s32[], f32[5]) tuple(i, x)
  w = (s32[], f32[5]) while(t), condition=less, body=step
  ROOT r = f32[5] get-tuple-element(w), index=1
})";

Executable compiled(const char* text) { return compile(parse(text)); }

Buffer values(std::vector<float> v) {
  return Buffer::copy_of(v.data(), Shape::array(DType::kF32, {static_cast<int64_t>(v.size())}));
}

std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

double seconds_of(const std::function<void()>& f) {
  auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

TEST_CASE("a set of inputs a device, a set of results a device") {
  Executable e = compiled(kSum);
  CHECK(e.replicas() == 3);
  auto out =
      e.run_devices({{values({1, 2, 3, 4, 5})}, {values({10, 20, 30, 40, 50})}, {values({100, 200, 300, 400, 500})}});
  REQUIRE(out.size() == 3);
  for (const auto& of : out) CHECK(to_doubles(of.at(0)) == std::vector<double>{111, 222, 333, 444, 555});
  CHECK(error_of([&] { e.run({values({1, 2, 3, 4, 5})}); }) == "the program is compiled for 3 devices, not one");
  CHECK(error_of([&] { e.run_devices({{}, {}}); }) == "2 sets of inputs for 3 devices: one for each, or one for all");
}

TEST_CASE("a device that never comes is an error in time") {
  Executable e = compiled(kSum);
  RunOptions options;
  options.wait_s = 0.2;
  DeviceRun run(e, options);
  std::string first, second;
  double took = seconds_of([&] {
    std::thread other([&] { second = error_of([&] { run.run(2, {values({1, 2, 3, 4, 5})}); }); });
    first = error_of([&] { run.run(0, {values({1, 2, 3, 4, 5})}); });
    other.join();
  });
  CHECK(took < 10);
  CHECK((first + second).find("waited 0.2 s for device 1") != std::string::npos);
}

TEST_CASE("a device that fails takes the others with it at once") {
  Executable e = compiled(kRing);
  RunOptions options;
  options.wait_s = 300;
  options.queues.push_infeed(0, values({1, 2, 3, 4, 5}));
  options.queues.push_infeed(1, values({1, 2, 3}));
  options.queues.push_infeed(2, values({1, 2, 3, 4, 5}));
  std::string why;
  CHECK(seconds_of([&] { why = error_of([&] { e.run_devices({{}}, options); }); }) < 60);
  CHECK(why.find("the queue gives f32[3], f32[5] is wanted") != std::string::npos);
}

TEST_CASE("results do not depend on who comes first") {
  Executable e = compiled(kRing);
  std::vector<std::vector<double>> first;
  for (int round = 0; round < 6; ++round) {
    RunOptions options;
    std::vector<std::thread> hosts;
    for (int d = 0; d < 3; ++d) {
      hosts.emplace_back([&options, d, late = (d + round) % 3] {
        std::this_thread::sleep_for(std::chrono::milliseconds(3 * late));
        auto x = static_cast<float>(d) + 0.1f;
        options.queues.push_infeed(d, values({x, x * 1e3f, x / 3, 1e-3f * x, x * x}));
      });
    }
    auto out = e.run_devices({{}}, options);
    for (std::thread& h : hosts) h.join();
    std::vector<std::vector<double>> got;
    for (const auto& of : out) got.push_back(to_doubles(of.at(0)));
    if (round == 0) first = got;
    CHECK(got == first);
  }
}

// ROWS: 201, 202 (written)
TEST_CASE("send and recv reach the host") {
  Executable e = compiled(R"(ENTRY e {
    x = f32[2] parameter(0)
    k = token[] after-all()
    s = (f32[2], u32[], token[]) send(x, k), channel_id=3, is_host_transfer=true
    d = token[] send-done(s), channel_id=3, is_host_transfer=true
    r = (f32[2], u32[], token[]) recv(d), channel_id=4, is_host_transfer=true
    q = (f32[2], token[]) recv-done(r), channel_id=4, is_host_transfer=true
    ROOT y = f32[2] get-tuple-element(q), index=0
  })");
  RunOptions options;
  std::thread host([&options] {
    std::vector<double> sent = to_doubles(options.queues.receive(0, 3));
    options.queues.send(0, 4, values({static_cast<float>(2 * sent[0]), static_cast<float>(2 * sent[1])}));
  });
  auto out = e.run({values({3, 4})}, options);
  host.join();
  CHECK(to_doubles(out.at(0)) == std::vector<double>{6, 8});
}

// ROWS: 201-203 (written)
TEST_CASE("a channel leads from device to device") {
  Executable e = compiled(R"(HloModule m, replica_count=2
  ENTRY e {
    i = u32[] replica-id()
    five = u32[] constant(5)
    j = u32[] add(i, five)
    x = u32[1] reshape(j)
    k = token[] after-all()
    r = (u32[1], u32[], token[]) recv(k), channel_id=1, frontend_attributes={_xla_send_recv_source_target_pairs={{0,1}}}
    s = (u32[1], u32[], token[]) send(x, k), channel_id=1, frontend_attributes={_xla_send_recv_source_target_pairs={{0,1}}}
    d = token[] send-done(s), channel_id=1
    q = (u32[1], token[]) recv-done(r), channel_id=1
    y = u32[1] get-tuple-element(q), index=0
    seven = u32[1] constant({7})
    ROOT z = u32[1] add(y, seven)
  })");
  auto out = e.run_devices({{}});
  CHECK(to_doubles(out.at(0).at(0)) == std::vector<double>{7});
  CHECK(to_doubles(out.at(1).at(0)) == std::vector<double>{12});
}

}  // namespace hlojit
