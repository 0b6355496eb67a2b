// The cache on disk: a hit gives the same bits, and no state of the folder can hurt.
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include <doctest/doctest.h>

#include "hlojit/hlojit.h"
#include "runtime/cache.h"
#include "runtime/hash.h"

namespace hlojit {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kProgram = R"(
HloModule m
sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }
ENTRY e {
  p = f32[8,33]{1,0} parameter(0)
  c = f32[33]{0} constant({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20,
                           21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32})
  b = f32[8,33]{1,0} broadcast(c), dimensions={1}
  x = f32[8,33]{1,0} multiply(p, b)
  t = f32[8,33]{1,0} tanh(x)
  z = f32[] constant(0)
  ROOT r = f32[8]{0} reduce(t, z), dimensions={1}, to_apply=sum
}
)";

// A folder of its own, removed at the end.
struct Folder {
  std::string path;
  Folder() {
    std::string pattern = (fs::temp_directory_path() / "hlojit_cache_XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()));
    path = pattern;
  }
  ~Folder() { fs::remove_all(path); }
  std::vector<fs::path> entries() const {
    std::vector<fs::path> all;
    for (const auto& f : fs::directory_iterator(path)) all.push_back(f.path());
    return all;
  }
};

// The phase that begins with "cache"; empty if there is none.
std::string cache_phase(const Executable& e) {
  for (const PhaseTime& p : e.compile_times()) {
    if (p.name.starts_with("cache")) return p.name;
  }
  return {};
}

bool has_phase(const Executable& e, std::string_view name) {
  for (const PhaseTime& p : e.compile_times()) {
    if (p.name == name) return true;
  }
  return false;
}

Executable compiled(const std::string& folder, Options options = {}) {
  options.cache_dir = folder;
  options.threads = 1;
  return compile(parse(kProgram), options);
}

std::string bits(const Executable& e) {
  std::vector<float> x(8 * 33);
  for (size_t i = 0; i < x.size(); ++i) x[i] = 0.01f * static_cast<float>(i % 17) - 0.05f;
  Buffer out = e.run({Buffer::borrow(x.data(), Shape::parse("f32[8,33]"))}).at(0);
  return std::string(static_cast<const char*>(out.raw()), out.size_bytes());
}

TEST_CASE("the second compilation is a hit with the same bits") {
  Folder folder;
  Executable none = compile(parse(kProgram));
  Executable first = compiled(folder.path);
  Executable second = compiled(folder.path);
  CHECK(cache_phase(none).empty());
  CHECK(cache_phase(first) == "cache miss");
  CHECK(cache_phase(second) == "cache");
  CHECK(has_phase(first, "jit"));
  CHECK_FALSE(has_phase(second, "emit"));
  CHECK_FALSE(has_phase(second, "jit"));
  CHECK(second.arena_bytes() == first.arena_bytes());
  CHECK(second.kernels().size() == first.kernels().size());
  CHECK(bits(first) == bits(none));
  CHECK(bits(second) == bits(none));
  CHECK(folder.entries().size() == 1);  // no temporary is left
}

TEST_CASE("options that change code have entries of their own") {
  Folder folder;
  compiled(folder.path);
  Options strict;
  strict.strict = true;
  CHECK(cache_phase(compiled(folder.path, strict)) == "cache miss");
  Options scalar;
  scalar.vector_bytes = 4;
  CHECK(cache_phase(compiled(folder.path, scalar)) == "cache miss");
  CHECK(cache_phase(compiled(folder.path, scalar)) == "cache");
  CHECK(folder.entries().size() == 3);
}

TEST_CASE("a damaged entry is written anew") {
  Folder folder;
  std::string good = bits(compiled(folder.path));
  fs::path entry = folder.entries().at(0);
  std::ifstream in(entry, std::ios::binary);
  std::string whole(std::istreambuf_iterator<char>(in), {});
  std::vector<std::string> damaged = {"", "x", whole.substr(0, 20), whole.substr(0, whole.size() - 1),
                                      whole + "x"};
  for (size_t at : {size_t{3}, size_t{20}, size_t{40}, size_t{60}, size_t{90}, whole.size() / 2}) {
    damaged.push_back(whole);
    damaged.back()[at] ^= 1;
  }
  for (const std::string& bytes : damaged) {
    std::ofstream(entry, std::ios::binary | std::ios::trunc) << bytes;
    Executable e = compiled(folder.path);
    CHECK(cache_phase(e) == "cache miss");
    CHECK(bits(e) == good);
    CHECK(cache_phase(compiled(folder.path)) == "cache");
  }
}

TEST_CASE("a folder that cannot be used costs nothing but the caching") {
  Folder folder;
  std::string file = folder.path + "/file";
  std::ofstream(file) << "not a folder";
  for (const std::string& path : {file, file + "/below", std::string("/proc/nothing/here")}) {
    Executable e = compiled(path);
    CHECK(cache_phase(e).starts_with("cache unusable: "));
    CHECK_FALSE(bits(e).empty());
  }
}

TEST_CASE("compilations at once share a folder") {
  Folder folder;
  std::string good = bits(compile(parse(kProgram)));
  std::vector<std::thread> threads;
  std::vector<std::string> answers(4);
  for (std::string& answer : answers) {
    threads.emplace_back([&folder, &answer] {
      for (int k = 0; k < 3; ++k) answer = bits(compiled(folder.path + "/new"));
    });
  }
  for (std::thread& t : threads) t.join();
  for (const std::string& answer : answers) CHECK(answer == good);
  CHECK(fs::exists(folder.path + "/new"));
}

TEST_CASE("an entry is taken whole and for its own key, or not at all") {
  CompiledCode code{{"first object", std::string(1000, '\0'), ""}, 12345, 3};
  Digest key = digest_of("key");
  std::string bytes = pack_entry(key, code);
  CompiledCode back;
  REQUIRE(unpack_entry(key, bytes, back));
  CHECK(back.objects == code.objects);
  CHECK(back.arena_bytes == 12345);
  CHECK(back.kernels == 3);
  CHECK_FALSE(unpack_entry(digest_of("other"), bytes, back));
  for (size_t n = 0; n < bytes.size(); ++n) CHECK_FALSE(unpack_entry(key, std::string_view(bytes).substr(0, n), back));
  for (size_t n = 0; n < bytes.size(); ++n) {
    std::string wrong = bytes;
    wrong[n] ^= static_cast<char>(1 << (n % 8));
    CHECK_FALSE(unpack_entry(key, wrong, back));
  }
}

TEST_CASE("digests tell lengths, places and numbers apart") {
  Hasher ab, a_b;
  ab.add("ab");
  a_b.add("a");
  a_b.add("b");
  CHECK(ab.digest() != a_b.digest());
  CHECK(digest_of(std::string_view("\0", 1)) != digest_of(std::string_view("\0\0", 2)));
  std::vector<std::string> seen;
  for (int bit = 0; bit < 800; ++bit) {
    std::string bytes(100, '\0');
    bytes[static_cast<size_t>(bit / 8)] = static_cast<char>(1 << (bit % 8));
    seen.push_back(digest_of(bytes).to_hex());
  }
  std::sort(seen.begin(), seen.end());
  CHECK(std::adjacent_find(seen.begin(), seen.end()) == seen.end());
}

}  // namespace
}  // namespace hlojit
