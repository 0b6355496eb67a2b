// The promises of the public header, one case each: what a buffer may be, who owns what, which error
// says what, and that a call is one entry into native code and nothing else.
#include <hlojit/hlojit.h>

#include <xmmintrin.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "codegen/kernel_units.h"

namespace hlojit {
namespace {

constexpr const char* kTwice = R"(HloModule twice
ENTRY e {
  p = f32[3]{0} parameter(0)
  ROOT r = f32[3]{0} add(p, p)
})";

// Rows of exponentials, summed in two ways: an order of additions is there to be got wrong.
constexpr const char* kSums = R"(HloModule sums
sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
ENTRY e {
  p = f32[257,1031]{1,0} parameter(0)
  x = f32[257,1031]{1,0} exponential(p)
  z = f32[] constant(0)
  rows = f32[257]{0} reduce(x, z), dimensions={1}, to_apply=sum
  columns = f32[1031]{0} reduce(x, z), dimensions={0}, to_apply=sum
  ROOT t = (f32[257]{0}, f32[1031]{0}) tuple(rows, columns)
})";

Executable compile_text(const char* text, const Options& options = {}) { return compile(parse(text), options); }

std::vector<float> values(size_t count) {
  std::vector<float> v(count);
  for (size_t i = 0; i < count; ++i) v[i] = std::sin(static_cast<float>(i) * 0.37f);
  return v;
}

std::vector<float> floats(const Buffer& buffer) {
  const float* data = buffer.data<float>();
  return {data, data + buffer.size_bytes() / sizeof(float)};
}

ErrorKind kind_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    CHECK(std::string(error.what()).find('\n') == std::string::npos);
    return error.kind();
  }
  FAIL("nothing was thrown");
  return ErrorKind::kFailed;
}

TEST_CASE("parse, compile, run") {
  const Executable e = compile_text(kTwice);
  const float x[] = {1, 2, 3};
  const std::vector<Buffer> out = e.run({Buffer::borrow(x, Shape::parse("f32[3]"))});
  REQUIRE(out.size() == 1);
  CHECK(floats(out[0]) == std::vector<float>{2, 4, 6});
  CHECK(out[0].shape() == e.result_shapes()[0]);
  CHECK(x[0] == 1);
}

TEST_CASE("a buffer is aligned to its element only") {
  const Executable e = compile_text(kSums);
  const std::vector<float> x = values(257 * 1031);
  const Shape shape = e.parameter_shapes()[0];
  const std::vector<Buffer> plain = e.run({Buffer::borrow(x.data(), shape)});
  for (size_t shift : {4u, 12u, 28u, 60u}) {
    std::vector<char> room(x.size() * sizeof(float) + 128);
    char* odd = room.data() + (64 - reinterpret_cast<uintptr_t>(room.data()) % 64) + shift;
    std::memcpy(odd, x.data(), x.size() * sizeof(float));
    const std::vector<Buffer> moved = e.run({Buffer::borrow(odd, shape)});
    CHECK(floats(moved[0]) == floats(plain[0]));
    CHECK(floats(moved[1]) == floats(plain[1]));
  }
}

TEST_CASE("results belong to the caller, and calls do not share them") {
  std::vector<Buffer> first;
  {
    const Executable e = compile_text(kTwice);
    const float x[] = {1, 2, 3}, y[] = {10, 20, 30};
    first = e.run({Buffer::borrow(x, Shape::parse("f32[3]"))});
    const std::vector<Buffer> second = e.run({Buffer::borrow(y, Shape::parse("f32[3]"))});
    CHECK(first[0].raw() != second[0].raw());
    CHECK(floats(second[0]) == std::vector<float>{20, 40, 60});
  }
  CHECK(floats(first[0]) == std::vector<float>{2, 4, 6});  // the executable is gone
}

TEST_CASE("borrowed memory is read only, an owned buffer is not") {
  const float x[] = {1, 2, 3};
  Buffer borrowed = Buffer::borrow(x, Shape::parse("f32[3]"));
  CHECK(borrowed.borrowed());
  CHECK(kind_of([&] { borrowed.mutable_raw(); }) == ErrorKind::kInput);
  Buffer owned = Buffer::copy_of(x, Shape::parse("f32[3]"));
  static_cast<float*>(owned.mutable_raw())[0] = 7;
  CHECK(x[0] == 1);
  CHECK(owned.unique());
  Buffer shared = owned;
  CHECK_FALSE(owned.unique());
  CHECK(shared.raw() == owned.raw());
}

constexpr const char* kDonates = R"(HloModule m, input_output_alias={ {}: (0, {}, may-alias) }
ENTRY e {
  p = f32[1000]{0} parameter(0)
  c = f32[] constant(1)
  b = f32[1000]{0} broadcast(c), dimensions={}
  ROOT r = f32[1000]{0} add(p, b)
})";

TEST_CASE("a donated buffer becomes the result; a borrowed or shared one is left alone") {
  const Executable e = compile_text(kDonates);
  const Shape shape = e.parameter_shapes()[0];
  const std::vector<float> x = values(1000);
  std::vector<float> want = x;
  for (float& v : want) v += 1;

  Buffer mine = Buffer::copy_of(x.data(), shape);
  const void* memory = mine.raw();
  std::vector<Buffer> inputs;
  inputs.push_back(std::move(mine));
  const std::vector<Buffer> donated = e.run(std::move(inputs));
  CHECK(donated[0].raw() == memory);
  CHECK(floats(donated[0]) == want);

  const std::vector<Buffer> from_borrowed = e.run({Buffer::borrow(x.data(), shape)});
  CHECK(from_borrowed[0].raw() != x.data());
  CHECK(floats(from_borrowed[0]) == want);

  const Buffer kept = Buffer::copy_of(x.data(), shape);
  const std::vector<Buffer> from_shared = e.run({kept});
  CHECK(floats(kept) == x);
  CHECK(floats(from_shared[0]) == want);
}

TEST_CASE("inputs that do not fit are the caller's error") {
  const Executable e = compile_text(kTwice);
  const float x[8] = {};
  CHECK(kind_of([&] { e.run({}); }) == ErrorKind::kInput);
  CHECK(kind_of([&] { e.run({Buffer::borrow(x, Shape::parse("f32[4]"))}); }) == ErrorKind::kInput);
  CHECK(kind_of([&] { e.run({Buffer::borrow(x, Shape::parse("s32[3]"))}); }) == ErrorKind::kInput);
  const Buffer tiled = Buffer::borrow(x, Shape::parse("f32[3]{0:T(8)}"));
  CHECK(kind_of([&] { e.run({tiled}); }) == ErrorKind::kInput);
  CHECK(kind_of([&] { e.run({Buffer()}); }) == ErrorKind::kInput);
  CHECK(kind_of([&] { Buffer::borrow(nullptr, Shape::parse("f32[3]")); }) == ErrorKind::kInput);
  CHECK(kind_of([&] { Buffer::borrow(x, Shape::parse("(f32[3])")); }) == ErrorKind::kInput);
}

TEST_CASE("each stage says whose fault it is") {
  CHECK(kind_of([] { parse("HloModule m\nENTRY e { ROOT r = f32[3]{0} frobnicate() }"); }) == ErrorKind::kInvalid);
  const ModulePtr unfit =
      parse("HloModule m\nENTRY e {\n p = f32[3]{0} parameter(0)\n ROOT r = s32[3]{0} add(p, p)\n}");
  CHECK(kind_of([&] { verify(unfit); }) == ErrorKind::kInvalid);
  CHECK(kind_of([&] { compile(unfit); }) == ErrorKind::kInvalid);
  const ModulePtr unknown = parse(
      "HloModule m\nENTRY e {\n p = f32[3]{0} parameter(0)\n"
      " ROOT r = f32[3]{0} custom-call(p), custom_call_target=\"nobody\"\n}");
  verify(unknown);
  CHECK(kind_of([&] { compile(unknown); }) == ErrorKind::kUnsupported);
  CHECK(kind_of([] { Buffer::allocate(Shape::parse("f32[1099511627776]")); }) == ErrorKind::kFailed);
}

TEST_CASE("any layout at the border, converted by an explicit call") {
  const Executable e = compile_text(R"(HloModule m
ENTRY e {
  p = f32[5,9]{0,1:T(2,4)} parameter(0)
  ROOT r = f32[5,9]{1,0:T(4,2)} negate(p)
})");
  const std::vector<float> x = values(45);
  const Shape dense = Shape::parse("f32[5,9]");
  const Buffer in = Buffer::copy_of(x.data(), dense).to_layout(e.parameter_shapes()[0]);
  const Buffer out = e.run({in})[0].to_layout(dense);
  std::vector<float> want = x;
  for (float& v : want) v = -v;
  CHECK(floats(out) == want);
}

TEST_CASE("the same bits on any number of threads") {
  const std::vector<float> x = values(257 * 1031);
  std::vector<std::vector<float>> first;
  for (int threads : {1, 2, 3, 7}) {
    Options options;
    options.threads = threads;
    const Executable e = compile_text(kSums, options);
    CHECK(e.threads() == threads);
    for (int again = 0; again < 3; ++again) {
      std::vector<std::vector<float>> got;
      for (const Buffer& b : e.run({Buffer::borrow(x.data(), e.parameter_shapes()[0])})) {
        got.push_back(floats(b));
      }
      if (first.empty()) first = got;
      CHECK(got == first);
    }
  }
}

TEST_CASE("many callers use one executable at once") {
  const Executable e = compile_text(kSums);
  const size_t count = 257 * 1031;
  constexpr int kCallers = 6;
  std::vector<int> wrong(kCallers, 0);
  std::vector<std::thread> callers;
  for (int caller = 0; caller < kCallers; ++caller) {
    callers.emplace_back([&, caller] {
      std::vector<float> x = values(count);
      for (float& v : x) v += static_cast<float>(caller);
      const Buffer in = Buffer::borrow(x.data(), e.parameter_shapes()[0]);
      const std::vector<float> want = floats(e.run({in})[0]);
      for (int i = 0; i < 20; ++i) wrong[static_cast<size_t>(caller)] += floats(e.run({in})[0]) != want;
    });
  }
  for (std::thread& caller : callers) caller.join();
  CHECK(wrong == std::vector<int>(kCallers, 0));
}

TEST_CASE("subnormal numbers are zeros to arithmetic unless they are wanted, on all threads, and bits stay bits") {
  ModulePtr module = parse(R"(HloModule small
ENTRY e {
  p = f32[200000]{0} parameter(0)
  tenth = f32[] constant(0.1)
  tenths = f32[200000]{0} broadcast(tenth), dimensions={}
  q = f32[200000]{0} multiply(p, tenths)
  n = f32[200000]{0} negate(p)
  ROOT t = (f32[200000]{0}, f32[200000]{0}) tuple(q, n)
})");
  const std::vector<float> in(200000, 2e-38f), below(200000, 1e-39f);
  auto run = [&](const std::vector<float>& values, bool flush) {
    Options options;
    options.threads = 3;
    options.keep_subnormals = !flush;
    const Shape shape = Shape::parse("f32[200000]");
    const unsigned before = _mm_getcsr();
    std::vector<Buffer> out = compile(module, options).run({Buffer::borrow(values.data(), shape)});
    CHECK((_mm_getcsr() & ~0x3fu) == (before & ~0x3fu));
    return out;
  };
  for (bool flush : {false, true}) {
    const auto out = run(in, flush), other = run(below, flush);
    for (int64_t k : {0, 1, 77777, 199999}) {
      CHECK((out[0].data<float>()[k] == 0) == flush);
      CHECK((other[0].data<float>()[k] == 0) == flush);
      CHECK(other[1].data<float>()[k] == -1e-39f);
    }
  }
  // It changes no code: what is loaded does as the loader says.
  Options flushes, keeps;
  keeps.keep_subnormals = true;
  const std::string bytes = compile(module, flushes).serialize();
  for (const Options& options : {flushes, keeps}) {
    const auto out = load(bytes, options).run({Buffer::borrow(in.data(), Shape::parse("f32[200000]"))});
    CHECK((out[0].data<float>()[0] == 0) != options.keep_subnormals);
  }
  Options strict;
  strict.strict = true;
  const auto out = compile(module, strict).run({Buffer::borrow(in.data(), Shape::parse("f32[200000]"))});
  CHECK(out[0].data<float>()[0] != 0);
}

TEST_CASE("a caller's flush-to-zero changes no bits and is still set afterwards") {
  Options keeps;
  keeps.keep_subnormals = true;
  const Executable e = compile(parse(R"(HloModule m
ENTRY e {
  p = f32[100000]{0} parameter(0)
  c = f32[] constant(0.5)
  b = f32[100000]{0} broadcast(c), dimensions={}
  ROOT r = f32[100000]{0} multiply(p, b)
})"),
                               keeps);
  const std::vector<float> tiny(100000, 1e-38f);
  const Buffer in = Buffer::borrow(tiny.data(), e.parameter_shapes()[0]);
  const std::vector<float> want = floats(e.run({in})[0]);
  CHECK(want[0] == 0.5e-38f);
  const unsigned saved = _mm_getcsr();
  _mm_setcsr(saved | 0x8040);  // flush results and operands that are denormal
  const std::vector<Buffer> out = e.run({in});
  const unsigned after = _mm_getcsr();
  _mm_setcsr(saved);
  CHECK((after & 0x8040) == 0x8040);
  CHECK(std::memcmp(out[0].raw(), want.data(), want.size() * sizeof(float)) == 0);
}

TEST_CASE("nor does it reach what is folded while compiling") {
  constexpr const char* text = R"(HloModule m
ENTRY e {
  c = f32[2]{0} constant({1e-38, 1e-40})
  h = f32[2]{0} constant({0.5, 1})
  ROOT r = f32[2]{0} multiply(c, h)
})";
  const std::vector<float> want = floats(compile_text(text).run({})[0]);
  CHECK(want[0] == 0.5e-38f);
  CHECK(want[1] == 1e-40f);
  const unsigned saved = _mm_getcsr();
  _mm_setcsr(saved | 0x8040);
  const std::vector<Buffer> out = compile_text(text).run({});
  const std::vector<Buffer> evaluated = evaluate(parse(text), {});
  _mm_setcsr(saved);
  CHECK(floats(out[0]) == want);
  CHECK(floats(evaluated[0]) == want);
}

TEST_CASE("nothing given is the caller's error") {
  const ModulePtr none;
  CHECK(kind_of([&] { compile(none); }) == ErrorKind::kInput);
  CHECK(kind_of([&] { verify(none); }) == ErrorKind::kInput);
  CHECK(kind_of([&] { to_text(none); }) == ErrorKind::kInput);
  CHECK(kind_of([&] { parameter_leaves(none); }) == ErrorKind::kInput);
  CHECK(kind_of([&] { result_leaves(none); }) == ErrorKind::kInput);
  CHECK(kind_of([&] { evaluate(none, {}); }) == ErrorKind::kInput);
  CHECK(kind_of([&] { emit(none, Emit::kHlo); }) == ErrorKind::kInput);
  CHECK(kind_of([&] { run_passes(none, {}, ""); }) == ErrorKind::kInput);
  CHECK(kind_of([&] { extract(none, "x"); }) == ErrorKind::kInput);
  CHECK(kind_of([&] { Buffer::copy_of(nullptr, Shape::parse("f32[3]")); }) == ErrorKind::kInput);
  CHECK(kind_of([&] { literal_text(Buffer()); }) == ErrorKind::kInput);
  CHECK(Buffer::copy_of(nullptr, Shape::parse("f32[0]")).size_bytes() == 0);
}

TEST_CASE("options out of their range are the caller's error") {
  const ModulePtr module = parse(kTwice);
  auto kind_with = [&](auto set) {
    return kind_of([&] {
      Options options;
      set(options);
      compile(module, options);
    });
  };
  CHECK(kind_with([](Options& o) { o.threads = -1; }) == ErrorKind::kInput);
  CHECK(kind_with([](Options& o) { o.threads = 1'000'000'000; }) == ErrorKind::kInput);
  CHECK(kind_with([](Options& o) { o.effort = 9; }) == ErrorKind::kInput);
  CHECK(kind_with([](Options& o) { o.vector_bytes = 3; }) == ErrorKind::kInput);
  CHECK(kind_with([](Options& o) { o.vector_bytes = 1'000'000; }) == ErrorKind::kInput);
}

// Compiling and running what JAX wrote: one native entry a call, and the evaluator never. While
// compiling, the pass `fold` alone asks it, for constants of at most 1 MiB; so it is left out once.
TEST_CASE("a call is one entry into native code, and no path to it uses the evaluator") {
  int programs = 0;
  for (const auto& file : std::filesystem::directory_iterator(HLOJIT_SOURCE_DIR "/bench/hlo")) {
    if (file.path().extension() != ".hlo") continue;
    std::ifstream stream(file.path());
    const std::string text{std::istreambuf_iterator<char>(stream), {}};
    CAPTURE(file.path().filename().string());
    const ModulePtr module = parse(text);
    Options no_folding;
    no_folding.disabled_passes = {"fold"};
    Counters before = counters();
    try {
      compile(module, no_folding);
      CHECK(counters().evaluations == before.evaluations);
      const Executable e = compile(module);
      before.evaluations = counters().evaluations;
      std::vector<Buffer> inputs;
      for (const Shape& shape : e.parameter_shapes()) {
        Buffer b = Buffer::allocate(shape);
        std::memset(b.mutable_raw(), 0, b.size_bytes());
        inputs.push_back(std::move(b));
      }
      CHECK(counters().entries == before.entries);
      for (int i = 0; i < 3; ++i) e.run(inputs);
      CHECK(counters().entries == before.entries + 3);
      CHECK(counters().evaluations == before.evaluations);
      ++programs;
    } catch (const Error& error) {
      // Said by name, not done another way.
      CHECK(error.kind() == ErrorKind::kUnsupported);
    }
  }
  CHECK(programs > 50);

  // The counter counts: the evaluator is there, for those who ask for it.
  const float x[] = {1, 2, 3};
  const Counters before = counters();
  evaluate(parse(kTwice), {Buffer::borrow(x, Shape::parse("f32[3]"))});
  CHECK(counters().evaluations == before.evaluations + 1);
  CHECK(counters().entries == before.entries);
}

// Resident memory of this process in bytes.
size_t resident() {
  std::ifstream stream("/proc/self/statm");
  size_t pages = 0;
  stream >> pages >> pages;
  return pages * 4096;
}

TEST_CASE("code and memory of a module are freed with it") {
  const float x[] = {1, 2, 3};
  auto once = [&] {
    const Executable e = compile_text(kTwice);
    e.run({Buffer::borrow(x, Shape::parse("f32[3]"))});
  };
  for (int i = 0; i < 50; ++i) once();
  const size_t before = resident();
  for (int i = 0; i < 300; ++i) once();
  CHECK(resident() < before + (size_t{16} << 20));
}

}  // namespace
TEST_CASE("a run on a thread of its own tells when it is over") {
  Executable e = compile_text(kTwice);
  const float x[3] = {1, 2, 3};
  std::atomic<int> told{0};
  PendingRun run = e.run_async({Buffer::copy_of(x, Shape::parse("f32[3]"))}, [&] { ++told; });
  CHECK(floats(run.get().at(0)) == std::vector<float>{2, 4, 6});
  CHECK(run.ready());
  CHECK(kind_of([&] { run.get(); }) == ErrorKind::kInput);
  PendingRun wrong = e.run_async({});
  CHECK(kind_of([&] { wrong.get(); }) == ErrorKind::kInput);
  {
    PendingRun dropped = e.run_async({Buffer::copy_of(x, Shape::parse("f32[3]"))}, [&] { ++told; });
  }
  {
    PendingRun moved = std::move(run);
  }
  CHECK(told == 2);
}

TEST_CASE("runs on threads of their own do not wait for each other, but end with their last holder") {
  Executable e = compile_text(kTwice);
  const float x[3] = {1, 2, 3};
  const Buffer input = Buffer::copy_of(x, Shape::parse("f32[3]"));
  int ended = 0;
  for (int k = 0; k < 4; ++k) e.run_async({input}, [&] { ++ended; });
  CHECK(ended == 4);
  std::promise<void> second;
  {
    PendingRun waits = e.run_async({input}, [over = second.get_future().share()] { over.wait(); });
    PendingRun tells = e.run_async({input}, [&] { second.set_value(); });
  }
  compile_text(kTwice).run_async({input});  // the run is the last to hold the executable
  CHECK(e.run_async({input}).get().at(0).data<float>()[2] == 6);
}

TEST_CASE("results are promised, given to other runs, and donated to them") {
  Executable e = compile_text(kTwice);
  Executable adds = compile_text(
      "HloModule m, input_output_alias={ {}: (0, {}, may-alias) }\n"
      "ENTRY e { p = f32[3] parameter(0)  q = f32[3] parameter(1)  ROOT r = f32[3] add(p, q) }");
  const float x[3] = {1, 2, 3};
  const Buffer input = Buffer::copy_of(x, Shape::parse("f32[3]"));
  CHECK(input.ready());
  std::promise<void> later;
  PendingRun first = e.run_async({input}, [over = later.get_future().share()] { over.wait(); });
  std::vector<Buffer> twice = first.results();
  CHECK(kind_of([&] { first.get(); }) == ErrorKind::kInput);
  CHECK(twice.at(0).shape() == Shape::parse("f32[3]{0}"));
  const Buffer other = twice[0];
  CHECK(!twice[0].unique());
  CHECK(!twice[0].borrowed());
  std::vector<Buffer> sums = adds.run_async({twice[0], other}).results();
  later.set_value();
  CHECK(floats(sums.at(0)) == std::vector<float>{4, 8, 12});
  CHECK(other.ready());
  CHECK(floats(other) == std::vector<float>{2, 4, 6});
  // The last to hold a result gives its memory away.
  Buffer last = e.run_async({input}).results().at(0);
  CHECK(last.unique());
  const void* memory = last.raw();
  std::vector<Buffer> inputs(2, input);
  inputs[0] = std::move(last);
  CHECK(adds.run(std::move(inputs)).at(0).raw() == memory);
  Buffer wrong = e.run_async({}).results().at(0);
  CHECK(kind_of([&] { wrong.wait(); }) == ErrorKind::kInput);
  CHECK(kind_of([&] { wrong.raw(); }) == ErrorKind::kInput);
  CHECK(kind_of([&] { e.run({wrong}); }) == ErrorKind::kInput);
}

TEST_CASE("sizes of a promised result that the run finds out are waited for") {
  Executable e = compile_text("HloModule m\nENTRY e { p = f32[<=4] parameter(0)  ROOT r = f32[<=4] negate(p) }");
  const float x[2] = {1, 2};
  Buffer promised = e.run_async({Buffer::copy_of(x, Shape::parse("f32[2]"))}).results().at(0);
  CHECK(promised.shape().dims == std::vector<int64_t>{2});
  CHECK(floats(promised) == std::vector<float>{-1, -2});
}

TEST_CASE("an executable is written and read again without generating code") {
  Options options;
  options.strict = true;
  Executable e = compile_text(kSums, options);
  codegen::forget_kernels();  // what is serialised is the executable's own
  std::string bytes = e.serialize();
  Executable again = load(bytes);
  Buffer x = Buffer::copy_of(values(257 * 1031).data(), e.parameter_shapes()[0]);
  auto first = e.run({x}), second = again.run({x});
  CHECK(floats(first[0]) == floats(second[0]));
  CHECK(floats(first[1]) == floats(second[1]));
  CHECK(again.compile_times().back().name == "cache");  // all was there
  CHECK(kind_of([&] { load("hlojit executable 0.0.0\n"); }) == ErrorKind::kInput);
  CHECK(kind_of([&] { load(std::string_view(bytes).substr(0, 100)); }) == ErrorKind::kInput);
  CHECK(kind_of([&] { load(std::string_view(bytes).substr(0, bytes.size() / 2)); }) == ErrorKind::kInput);
}

TEST_CASE("parallel work goes to the caller's threads") {
  struct Pool {
    std::atomic<int64_t> calls{0}, tasks{0};
    bool idle = false;
  } pool;
  Options options;
  options.threads = 3;
  options.parallel_for = {[](void* context, int64_t tasks, void (*f)(void*, int64_t), void* argument) {
                            auto& p = *static_cast<Pool*>(context);
                            ++p.calls;
                            std::vector<std::thread> threads;
                            for (int64_t t = 0; t < 3 && !p.idle; ++t) {
                              threads.emplace_back([=, &p] {
                                for (int64_t k = tasks - 1 - t; k >= 0; k -= 3, ++p.tasks) f(argument, k);
                              });
                            }
                            for (std::thread& t : threads) t.join();
                          },
                          &pool};
  Executable own = compile_text(kSums), given = compile_text(kSums, options);
  Buffer x = Buffer::copy_of(values(257 * 1031).data(), own.parameter_shapes()[0]);
  auto first = own.run({x}), second = given.run({x});
  CHECK(floats(first[0]) == floats(second[0]));
  CHECK(floats(first[1]) == floats(second[1]));
  CHECK(pool.calls > 0);
  CHECK(pool.tasks > pool.calls);
  pool.idle = true;  // a pool that runs nothing is found out
  CHECK(kind_of([&] { given.run({x}); }) == ErrorKind::kFailed);
}

TEST_CASE("a program that takes more memory than it may is refused") {
  Options options;
  options.memory_limit = 1000;
  CHECK_NOTHROW(compile_text(kTwice, options));
  CHECK(kind_of([&] { compile_text(kSums, options); }) == ErrorKind::kFailed);
}

}  // namespace hlojit
