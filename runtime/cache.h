// Compiled code kept on disk, so that a program seen before, or a kernel of it, skips code generation.
//
// The passes still run: they give the kernels, whose keys are the names of the entries (codegen/kernel_key.h),
// together with this very build of the library. An entry is a file of its own, written beside its place and
// renamed into it, so that processes that share a folder never see half of one. An entry that does not check out
// is treated as absent and written anew; a folder that cannot be used costs the caching, nothing else; one that
// others can write to is refused, for what is found in it is run. The folder is kept under kCacheBytes: what
// was used longest ago goes first.
// How it went is seen in the phases: "cache" (all was there), "cache miss", "cache unusable: why".
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "codegen/object_store.h"

namespace hlojit {

/// Bytes of a cache folder, roughly: it is looked at when something was stored.
inline constexpr uint64_t kCacheBytes = uint64_t{1} << 30;

/// A folder of entries for one compilation.
class DiskCache final : public codegen::ObjectStore {
 public:
  explicit DiskCache(std::string folder, uint64_t most_bytes = kCacheBytes);

  std::optional<std::string> load(const std::string& key) override;
  void store(const std::string& key, const std::string& bytes) override;
  bool contains(const std::string& key) override;

  /// Removes the entries used longest ago if the folder holds too much. Call once all is stored.
  void trim();
  /// The first reason why something could not be read or written; empty if all went well.
  std::string trouble() const;

 private:
  std::string path_of(const std::string& key) const;
  void complain(const std::string& why);

  const std::string folder_;
  const uint64_t most_bytes_;
  bool usable_ = false, stored_ = false;
  mutable std::mutex mutex_;
  std::string trouble_;
};

/// An entry as bytes and back: none if the bytes are not the whole of an entry of that key.
std::string pack_entry(std::string_view key, std::string_view content);
std::optional<std::string> unpack_entry(std::string_view key, std::string_view bytes);

}  // namespace hlojit
