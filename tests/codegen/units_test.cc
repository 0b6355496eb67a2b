// Kernels as units: shared, found again, compiled from many threads at once.
#include <doctest/doctest.h>

#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "codegen/native.h"
#include "codegen/target.h"
#include "compiler/pipeline.h"
#include "compiler/text/parser.h"

namespace hlojit::codegen {
namespace {

NativeCode compiled(const std::string& text, int threads = 2, ObjectStore* store = nullptr) {
  const Target& target = Target::get("avx2");
  auto module = parse_module(text);
  PipelineOptions options;
  options.target = target.info();
  run_pipeline(*module, options);
  return compile_module(*module, assign_buffers(*module), {.target = &target}, store, threads);
}

class Store final : public ObjectStore {
 public:
  std::optional<std::string> load(const std::string& key) override {
    std::lock_guard lock(mutex_);
    auto at = kept_.find(key);
    return at == kept_.end() ? std::nullopt : std::optional(at->second);
  }
  void store(const std::string& key, const std::string& bytes) override {
    std::lock_guard lock(mutex_);
    kept_[key] = bytes;
  }
  bool contains(const std::string& key) override {
    std::lock_guard lock(mutex_);
    return kept_.contains(key);
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::string> kept_;
};

/// Products of as many matrices with one.
std::string dots(int count, int size) {
  std::string shape = "f32[" + std::to_string(size) + "," + std::to_string(size) + "]{1,0}", results;
  std::string text = "HloModule m\nENTRY e {\n  w = " + shape + " parameter(" + std::to_string(count) + ")\n";
  for (int k = 0; k < count; ++k) {
    const std::string n = std::to_string(k);
    text += "  p" + n + " = " + shape + " parameter(" + n + ")\n  d" + n + " = " + shape + " dot(p" + n +
            ", w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n";
    results += (k > 0 ? ", d" : "d") + n;
  }
  return text + (count > 1 ? "  ROOT t = tuple(" + results + ")\n}\n" : "}\n");
}

/// A matrix times another, again and again.
std::string chain(int count, int size) {
  std::string shape = "f32[" + std::to_string(size) + "," + std::to_string(size) + "]{1,0}";
  std::string text = "HloModule m\nENTRY e {\n  d0 = " + shape + " parameter(0)\n  w = " + shape + " parameter(1)\n";
  for (int k = 1; k <= count; ++k) {
    text += "  d" + std::to_string(k) + " = " + shape + " dot(d" + std::to_string(k - 1) +
            ", w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n";
  }
  return text + "}\n";
}

TEST_CASE("equal kernels are one unit") {
  forget_kernels();
  NativeCode one = compiled(dots(1, 24)), many = compiled(dots(40, 24));
  CHECK(many.facts.kernels == 40);
  CHECK(many.kernels.size() == one.kernels.size());
  CHECK(many.units_compiled == 1);  // entry
  CHECK(many.kernels.back() == one.kernels.back());
}

TEST_CASE("an executable keeps its kernels though they are forgotten") {
  NativeCode code = compiled(dots(1, 24));
  forget_kernels();
  std::vector<float> a(24 * 24, 1.0f), w(24 * 24, 2.0f), result(24 * 24);
  void* params[] = {a.data(), w.data()};
  void* results[] = {result.data()};
  std::vector<char> arena(static_cast<size_t>(code.facts.arena_bytes) + 64);
  auto aligned = (reinterpret_cast<uintptr_t>(arena.data()) + 63) / 64 * 64;
  abi::Context context;
  CHECK(code.entry(&context, params, results, reinterpret_cast<char*>(aligned)) == abi::kOk);
  CHECK(result[5] == 48.0f);
}

TEST_CASE("functions of a kernel are compiled beside each other") {
  // Rows and columns moved on by one, the last ones to the front: a function for each corner and border.
  const std::string text = R"(HloModule m
ENTRY e {
  x = bf16[200,200] parameter(0)
  up = bf16[199,200] slice(x), slice={[1:200], [0:200]}
  first = bf16[1,200] slice(x), slice={[0:1], [0:200]}
  y = bf16[200,200] concatenate(up, first), dimensions={0}
  left = bf16[200,199] slice(y), slice={[0:200], [1:200]}
  begin = bf16[200,1] slice(y), slice={[0:200], [0:1]}
  z = bf16[200,200] concatenate(left, begin), dimensions={1}
  a = bf16[200,200] add(x, y)
  b = bf16[200,200] tanh(a)
  ROOT r = bf16[200,200] multiply(z, b)
})";
  forget_kernels();
  Store store;
  const std::vector<std::string> objects = compiled(text, 2, &store).kernels[0]->objects;
  CHECK(objects.size() > 1);
  CHECK(compiled(text, 1).kernels[0]->objects == objects);
  forget_kernels();
  NativeCode again = compiled(text, 2, &store);
  CHECK(again.units_compiled == 0);
  CHECK(again.kernels[0]->objects == objects);
  forget_kernels();
  CHECK(compiled(text, 1).kernels[0]->objects == objects);
}

TEST_CASE("any number of threads may compile at once") {
  forget_kernels();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (int k = 0; k < 3; ++k) compiled(dots(2, 20 + (t + k) % 3), 1 + t % 2);
    });
  }
  for (std::thread& t : threads) t.join();
  CHECK(compiled(dots(2, 20)).units_compiled == 1);
}

TEST_CASE("long sequences are cut, and fail and succeed as short ones") {
  NativeCode code = compiled(chain(2'500, 2));
  CHECK(code.facts.kernels == 2'500);
  std::vector<float> a = {1, 0, 0, 1}, w = {0, 1, 1, 0}, result(4);
  void* params[] = {a.data(), w.data()};
  void* results[] = {result.data()};
  std::vector<char> arena(static_cast<size_t>(code.facts.arena_bytes) + 64);
  auto aligned = (reinterpret_cast<uintptr_t>(arena.data()) + 63) / 64 * 64;
  abi::Context context;
  CHECK(code.entry(&context, params, results, reinterpret_cast<char*>(aligned)) == abi::kOk);
  CHECK(result == a);                     // an even number of swaps
  CHECK(code.facts.arena_bytes < 4'000);  // calls with equal lists of buffers share them
}

TEST_CASE("the group of bytes that an odd depth ends within is packed by vectors") {
  const Target& target = Target::get("avx2");
  auto module = parse_module(R"(HloModule m
ENTRY e {
  a = s8[96,251]{1,0} parameter(0)
  b = s8[251,96]{1,0} parameter(1)
  ROOT r = s32[96,96]{1,0} dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
})");
  PipelineOptions options;
  options.target = target.info();
  run_pipeline(*module, options);
  const std::string ir = emit_module(*module, assign_buffers(*module), {.target = &target}).to_string();
  CHECK_FALSE(ir.contains("@llvm.masked.scatter"));
}

}  // namespace
}  // namespace hlojit::codegen
