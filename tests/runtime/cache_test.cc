// The cache on disk: a hit gives the same bits, and no state of the folder can hurt.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include <doctest/doctest.h>

#include "codegen/kernel_units.h"
#include "hlojit/hlojit.h"
#include "runtime/cache.h"

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

// As a process would that has compiled nothing before.
Executable compiled(const std::string& folder, Options options = {}, std::string_view program = kProgram) {
  codegen::forget_kernels();
  options.cache_dir = folder;
  options.threads = 1;
  return compile(parse(program), options);
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  size_t at = text.find(from);
  REQUIRE(at != text.npos);
  return text.replace(at, from.size(), to);
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
  CHECK(second.arena_bytes() == first.arena_bytes());
  CHECK(second.kernels().size() == first.kernels().size());
  CHECK(bits(first) == bits(none));
  CHECK(bits(second) == bits(none));
  for (const fs::path& f : folder.entries()) CHECK(f.extension() == ".hlojit");  // no temporary is left
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
}

// Entries of two compilations that differ by one change of the text.
size_t new_entries(std::string_view from, std::string_view to) {
  Folder folder;
  compiled(folder.path);
  size_t before = folder.entries().size();
  compiled(folder.path, {}, replaced(std::string(kProgram), from, to));
  return folder.entries().size() - before;
}

TEST_CASE("names and weights change no code, shapes do") {
  CHECK(new_entries("multiply(p, b)", "multiply(p, b), metadata={op_name=\"x\"}") == 0);
  CHECK(new_entries("constant({0, 1,", "constant({7, 8,") == 0);
  CHECK(new_entries("{0, 1, 2, 3,", "{3, 2, 1, 0,") == 0);
  CHECK(new_entries("tanh(x)", "negate(x)") > 0);
}

TEST_CASE("a changed module recompiles only its changed kernels") {
  constexpr std::string_view kTwo = R"(
HloModule m
ENTRY e {
  p = f32[8,8]{1,0} parameter(0)
  q = f32[8,8]{1,0} parameter(1)
  d = f32[8,8]{1,0} dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  r = f32[8,8]{1,0} dot(q, p), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  ROOT t = (f32[8,8]{1,0}, f32[8,8]{1,0}) tuple(d, r)
}
)";
  Folder folder;
  compiled(folder.path, {}, kTwo);
  size_t before = folder.entries().size();
  compiled(folder.path, {},
           replaced(std::string(kTwo), "dot(q, p), lhs_contracting_dims={0}", "dot(q, p), lhs_contracting_dims={1}"));
  // Now both dots are one kernel, which was there; entry calls it twice.
  CHECK(folder.entries().size() == before + 1);
}

TEST_CASE("what the process knows is put into a new folder as well") {
  Folder folder;
  Options options;
  options.threads = 1;
  compile(parse(kProgram), options);
  options.cache_dir = folder.path;
  compile(parse(kProgram), options);
  CHECK(cache_phase(compiled(folder.path)) == "cache");
}

TEST_CASE("a folder that others can write to is refused") {
  Folder folder;
  REQUIRE(chmod(folder.path.c_str(), 0777) == 0);
  CHECK(cache_phase(compiled(folder.path)) == "cache unusable: others can write to the folder");
  CHECK(folder.entries().empty());
}

TEST_CASE("a folder is kept under its bound, the entries used last stay") {
  Folder folder;
  DiskCache cache(folder.path, 10'000);
  std::string block(1'000, 'x');
  for (int k = 0; k < 9; ++k) {
    cache.store(std::to_string(k), block);
    usleep(10'000);  // longer than the clock of files takes to move on
  }
  cache.trim();
  CHECK(folder.entries().size() == 9);
  REQUIRE(cache.load("0"));
  usleep(10'000);
  cache.store("9", block);
  cache.trim();
  CHECK(folder.entries().size() < 8);
  CHECK(cache.contains("0"));
  CHECK(cache.contains("9"));
  CHECK_FALSE(cache.contains("1"));
}

// The kernel's or entry's.
void check_damaged(size_t which) {
  Folder folder;
  std::string good = bits(compiled(folder.path));
  REQUIRE(folder.entries().size() == 2);
  fs::path entry = folder.entries().at(which);
  std::ifstream in(entry, std::ios::binary);
  std::string whole(std::istreambuf_iterator<char>(in), {});
  std::vector<std::string> damaged = {"", "x", whole.substr(0, 20), whole.substr(0, whole.size() - 1), whole + "x"};
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

TEST_CASE("a damaged entry is written anew") {
  check_damaged(0);
  check_damaged(1);
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
  std::string content = "first object" + std::string(1000, '\0');
  std::string bytes = pack_entry("key", content);
  REQUIRE(unpack_entry("key", bytes) == content);
  CHECK_FALSE(unpack_entry("other", bytes));
  for (size_t n = 0; n < bytes.size(); ++n) CHECK_FALSE(unpack_entry("key", std::string_view(bytes).substr(0, n)));
  for (size_t n = 0; n < bytes.size(); ++n) {
    std::string wrong = bytes;
    wrong[n] ^= static_cast<char>(1 << (n % 8));
    CHECK_FALSE(unpack_entry("key", wrong));
  }
}

}  // namespace
}  // namespace hlojit
