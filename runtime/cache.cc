// See cache.h.
#include "runtime/cache.h"

#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <vector>

#include <fmt/format.h>

#include "codegen/digest.h"
#include "hlojit/version.h"

namespace hlojit {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic = "hlojit object 2\n";
constexpr std::string_view kSuffix = ".hlojit";
constexpr uint64_t kMaxEntryBytes = uint64_t{1} << 30;

// ---- the build ------------------------------------------------------------------------------

// The linker's identifier of the program or library that this function is in: two builds of one
// version may make different code.
struct BuildId {
  uintptr_t inside = reinterpret_cast<uintptr_t>(&pack_entry);
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
std::string write_file(const std::string& path, const std::string& bytes) {
  static std::atomic<uint64_t> count{0};
  std::string temporary = fmt::format("{}.{}.{}.tmp", path, getpid(), count++);
  std::FILE* f = std::fopen(temporary.c_str(), "wb");
  if (!f) return std::strerror(errno);
  bool ok = std::fwrite(bytes.data(), 1, bytes.size(), f) == bytes.size();
  ok = std::fclose(f) == 0 && ok;
  std::string why = ok ? "" : std::strerror(errno);
  std::error_code code;
  if (ok) {
    fs::rename(temporary, path, code);
    if (code) why = code.message();
  }
  if (!why.empty()) fs::remove(temporary, code);
  return why;
}

// Makes the folder if need be; the reason why it must not be used, or none.
std::string prepare_folder(const std::string& folder) {
  std::error_code code;
  if (fs::create_directories(folder, code)) fs::permissions(folder, fs::perms::owner_all, code);
  if (code) return code.message();
  struct stat s;
  if (stat(folder.c_str(), &s) != 0) return std::strerror(errno);
  if (!S_ISDIR(s.st_mode)) return "not a folder";
  if (s.st_uid != geteuid() && s.st_uid != 0) return "the folder belongs to another user";
  if (s.st_mode & (S_IWGRP | S_IWOTH)) return "others can write to the folder";
  return {};
}

}  // namespace

// magic, key, digest of the content, content.
std::string pack_entry(std::string_view key, std::string_view content) {
  return fmt::format("{}{}\n{}\n", kMagic, key, codegen::digest(content)).append(content);
}

std::optional<std::string> unpack_entry(std::string_view key, std::string_view bytes) {
  for (std::string_view expected : {kMagic, key, std::string_view("\n")}) {
    if (!bytes.starts_with(expected)) return std::nullopt;
    bytes.remove_prefix(expected.size());
  }
  size_t line = bytes.find('\n');
  if (line == bytes.npos) return std::nullopt;
  std::string_view content = bytes.substr(line + 1);
  if (bytes.substr(0, line) != codegen::digest(content)) return std::nullopt;
  return std::string(content);
}

DiskCache::DiskCache(std::string folder, uint64_t most_bytes) : folder_(std::move(folder)), most_bytes_(most_bytes) {
  std::string why = build_id().empty() ? "this build has no identifier" : prepare_folder(folder_);
  usable_ = why.empty();
  complain(why);
}

std::string DiskCache::path_of(const std::string& key) const {
  return fmt::format("{}/{}{}", folder_, codegen::digest(HLOJIT_VERSION + build_id() + key), kSuffix);
}

std::optional<std::string> DiskCache::load(const std::string& key) {
  if (!usable_) return std::nullopt;
  std::string path = path_of(key);
  std::optional<std::string> bytes = read_file(path);
  if (!bytes) return std::nullopt;
  std::optional<std::string> content = unpack_entry(key, *bytes);
  if (content) utimensat(AT_FDCWD, path.c_str(), nullptr, 0);  // used now
  return content;
}

void DiskCache::store(const std::string& key, const std::string& bytes) {
  if (!usable_) return;
  complain(write_file(path_of(key), pack_entry(key, bytes)));
  std::lock_guard lock(mutex_);
  stored_ = true;
}

bool DiskCache::contains(const std::string& key) { return usable_ && access(path_of(key).c_str(), F_OK) == 0; }

void DiskCache::trim() {
  if (!stored_) return;
  struct Entry {
    fs::file_time_type used;
    uint64_t bytes;
    fs::path path;
  };
  std::vector<Entry> entries;
  uint64_t total = 0;
  std::error_code code;
  for (fs::directory_iterator at(folder_, code), end; !code && at != end; at.increment(code)) {
    if (at->path().extension() != kSuffix) continue;
    std::error_code gone;  // another process may trim, too
    Entry e{at->last_write_time(gone), at->file_size(gone), at->path()};
    if (gone) continue;
    total += e.bytes;
    entries.push_back(std::move(e));
  }
  if (total <= most_bytes_) return;
  // A quarter more than needed, so that this is rare.
  std::ranges::sort(entries, {}, &Entry::used);
  for (const Entry& e : entries) {
    if (total <= most_bytes_ - most_bytes_ / 4) break;
    fs::remove(e.path, code);
    total -= e.bytes;
  }
}

std::string DiskCache::trouble() const {
  std::lock_guard lock(mutex_);
  return trouble_;
}

void DiskCache::complain(const std::string& why) {
  std::lock_guard lock(mutex_);
  if (trouble_.empty()) trouble_ = why;
}

}  // namespace hlojit
