#include "runtime/cache.h"

#include <algorithm>
#include <thread>
#include <link.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>

#include <fmt/format.h>

#include "compiler/text/printer.h"
#include "hlojit/version.h"
#include "runtime/hash.h"

namespace hlojit {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic = "hlojit object 1\n";
constexpr uint64_t kMaxEntryBytes = uint64_t{1} << 30;

class Stopwatch {
 public:
  double ms() {
    auto now = std::chrono::steady_clock::now();
    return std::chrono::duration<double, std::milli>(now - std::exchange(start_, now)).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// ---- the key --------------------------------------------------------------------------------

// The linker's identifier of the program or library that this function is in: two builds of one
// version may make different code.
struct BuildId {
  uintptr_t inside = reinterpret_cast<uintptr_t>(&compile_planned);
  std::string id;

  static int visit(dl_phdr_info* info, size_t, void* self) {
    auto& wanted = *static_cast<BuildId*>(self);
    bool mine = false;
    for (int k = 0; k < info->dlpi_phnum; ++k) {
      const ElfW(Phdr)& p = info->dlpi_phdr[k];
      uintptr_t begin = info->dlpi_addr + p.p_vaddr;
      mine |= p.p_type == PT_LOAD && wanted.inside - begin < p.p_memsz;
    }
    for (int k = 0; mine && k < info->dlpi_phnum; ++k) {
      const ElfW(Phdr)& p = info->dlpi_phdr[k];
      if (p.p_type == PT_NOTE) wanted.read_notes(info->dlpi_addr + p.p_vaddr, p.p_memsz);
    }
    return mine;
  }

  void read_notes(uintptr_t address, size_t size) {
    std::string_view notes(reinterpret_cast<const char*>(address), size);
    auto padded = [](size_t n) { return (n + 3) / 4 * 4; };
    while (notes.size() >= sizeof(ElfW(Nhdr))) {
      ElfW(Nhdr) note;
      std::memcpy(&note, notes.data(), sizeof note);
      notes.remove_prefix(sizeof note);
      size_t whole = padded(note.n_namesz) + padded(note.n_descsz);
      if (whole > notes.size()) return;
      bool gnu = notes.substr(0, note.n_namesz) == std::string_view("GNU\0", 4);
      if (gnu && note.n_type == NT_GNU_BUILD_ID) {
        id = notes.substr(padded(note.n_namesz), note.n_descsz);
      }
      notes.remove_prefix(whole);
    }
  }
};

const std::string& build_id() {
  static const std::string id = [] {
    BuildId wanted;
    dl_iterate_phdr(&BuildId::visit, &wanted);
    return wanted.id;
  }();
  return id;
}

Digest key_of(const Lowered& planned, const Options& options, const codegen::Target& target) {
  Hasher h;
  h.add(HLOJIT_VERSION);
  h.add(build_id());
  h.add(target.isa_name());
  h.add(target.features());
  TargetInfo info = target.info();
  for (int64_t n : {int64_t{info.vector_bytes}, int64_t{info.vector_registers}, info.l1_bytes,
                    info.l2_bytes, info.llc_bytes}) {
    h.add(static_cast<uint64_t>(n));
  }
  h.add(static_cast<uint64_t>(options.strict));
  h.add(static_cast<uint64_t>(options.effort));
  h.add(static_cast<uint64_t>(options.scatter_oob_window));
  h.add(static_cast<uint64_t>(options.vector_bytes));
  h.add(to_string(*planned.module));
  const BufferPlan& buffers = planned.buffers;
  for (const auto& c : planned.module->computations()) {
    for (const auto& i : c->instructions()) {
      auto slices = buffers.slices.find(i.get());
      if (slices == buffers.slices.end()) continue;
      h.add(i->name);
      for (const BufferSlice& s : slices->second) {
        for (int64_t n : {static_cast<int64_t>(s.kind), s.index, s.offset, s.size}) {
          h.add(static_cast<uint64_t>(n));
        }
      }
    }
  }
  for (const BufferPlan::Constant& c : buffers.constants) {
    h.add(c.instruction->name);
    h.add(static_cast<uint64_t>(c.offset));
  }
  h.add(static_cast<uint64_t>(buffers.constant_bytes));
  h.add(static_cast<uint64_t>(buffers.arena_bytes));
  return h.digest();
}

// ---- files ----------------------------------------------------------------------------------

std::optional<std::string> read_file(const std::string& path) {
  std::FILE* f = std::fopen(path.c_str(), "rb");
  if (!f) return std::nullopt;
  std::string bytes;
  char block[1 << 16];
  for (size_t n; (n = std::fread(block, 1, sizeof block, f)) > 0 && bytes.size() < kMaxEntryBytes;) {
    bytes.append(block, n);
  }
  bool ok = !std::ferror(f);
  std::fclose(f);
  return ok ? std::optional(std::move(bytes)) : std::nullopt;
}

// The reason of a failure, empty if the file is there, whole.
std::string write_file(const std::string& folder, const std::string& path, const std::string& bytes) {
  static std::atomic<uint64_t> count{0};
  std::error_code code;
  fs::create_directories(folder, code);
  if (code) return code.message();
  std::string temporary = fmt::format("{}.{}.{}.tmp", path, getpid(), count++);
  std::FILE* f = std::fopen(temporary.c_str(), "wb");
  if (!f) return std::strerror(errno);
  bool ok = std::fwrite(bytes.data(), 1, bytes.size(), f) == bytes.size();
  ok = std::fclose(f) == 0 && ok;
  std::string why = ok ? "" : std::strerror(errno);
  if (ok) {
    fs::rename(temporary, path, code);
    if (code) why = code.message();
  }
  if (!why.empty()) fs::remove(temporary, code);
  return why;
}

// A module costs 0.6 ms of its own: only programs of several kernels are cut up.
int parallel_parts(const Module& module) {
  int64_t kernels = 0;
  for (const auto& c : module.computations()) {
    for (const auto& i : c->instructions()) kernels += i->is(Opcode::kFusion);
  }
  if (kernels < 4) return 1;
  return static_cast<int>(std::min<int64_t>({kernels, 4, std::max(1u, std::thread::hardware_concurrency())}));
}

CompiledCode compile_now(Lowered& planned, const Options& options, const codegen::Target& target) {
  emit_code(planned, options, target, parallel_parts(*planned.module));
  Stopwatch watch;
  CompiledCode code{{}, planned.code.arena_bytes, planned.code.kernels};
  std::vector<codegen::IrModule> modules;
  modules.push_back(std::move(planned.code.ir));
  for (codegen::IrModule& m : planned.code.more) modules.push_back(std::move(m));
  code.objects = compile_objects(target, std::move(modules), options.effort == 0);
  planned.times.push_back({"jit", watch.ms()});
  return code;
}

void put(std::string& out, uint64_t n) { out.append(reinterpret_cast<const char*>(&n), sizeof n); }

// Takes a number off the front; 0 if there is none.
uint64_t take(std::string_view& in) {
  uint64_t n = 0;
  if (in.size() < sizeof n) {
    in = {};
    return 0;
  }
  std::memcpy(&n, in.data(), sizeof n);
  in.remove_prefix(sizeof n);
  return n;
}

}  // namespace

// magic, key, check sum of the rest; arena bytes, kernels, number of objects, their sizes, the objects.
std::string pack_entry(const Digest& key, const CompiledCode& code) {
  std::string rest;
  put(rest, static_cast<uint64_t>(code.arena_bytes));
  put(rest, static_cast<uint64_t>(code.kernels));
  put(rest, code.objects.size());
  for (const std::string& o : code.objects) put(rest, o.size());
  for (const std::string& o : code.objects) rest += o;
  Digest sum = digest_of(rest);
  std::string bytes(kMagic);
  for (uint64_t n : {key.high, key.low, sum.high, sum.low}) put(bytes, n);
  return bytes + rest;
}

bool unpack_entry(const Digest& key, std::string_view bytes, CompiledCode& code) {
  if (!bytes.starts_with(kMagic)) return false;
  bytes.remove_prefix(kMagic.size());
  Digest stored, sum;
  for (uint64_t* n : {&stored.high, &stored.low, &sum.high, &sum.low}) *n = take(bytes);
  if (stored != key || sum != digest_of(bytes)) return false;
  code.arena_bytes = static_cast<int64_t>(take(bytes));
  code.kernels = static_cast<int64_t>(take(bytes));
  uint64_t count = take(bytes);
  if (count > bytes.size() / sizeof(uint64_t)) return false;
  std::vector<uint64_t> sizes(count);
  for (uint64_t& n : sizes) n = take(bytes);
  for (uint64_t n : sizes) {
    if (n > bytes.size()) return false;
    code.objects.emplace_back(bytes.substr(0, n));
    bytes.remove_prefix(n);
  }
  return bytes.empty();
}

CompiledCode compile_planned(Lowered& planned, const Options& options, const codegen::Target& target) {
  if (options.cache_dir.empty()) return compile_now(planned, options, target);
  if (build_id().empty()) {
    planned.times.push_back({"cache unusable: this build has no identifier", 0});
    return compile_now(planned, options, target);
  }
  Stopwatch watch;
  Digest key = key_of(planned, options, target);
  std::string path = options.cache_dir + "/" + key.to_hex() + ".hlojit";
  if (std::optional<std::string> bytes = read_file(path)) {
    CompiledCode code;
    if (unpack_entry(key, *bytes, code)) {
      planned.times.push_back({"cache", watch.ms()});
      return code;
    }
  }
  double spent = watch.ms();
  CompiledCode code = compile_now(planned, options, target);
  watch.ms();
  std::string why = write_file(options.cache_dir, path, pack_entry(key, code));
  spent += watch.ms();
  planned.times.push_back({why.empty() ? "cache miss" : "cache unusable: " + why, spent});
  return code;
}

}  // namespace hlojit
