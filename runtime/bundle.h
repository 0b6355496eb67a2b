// Compiled kernels kept in memory, to be written with the program they belong to (Executable::serialize).
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "codegen/object_store.h"
#include "runtime/lower.h"

namespace hlojit {

class Bundle final : public codegen::ObjectStore {
 public:
  Bundle() = default;
  /// What pack() made. Entries that are not whole, or of another build, are left out.
  explicit Bundle(std::string_view packed);
  std::string pack() const;

  std::optional<std::string> load(const std::string& key) override;
  void store(const std::string& key, const std::string& bytes) override;
  bool contains(const std::string& key) override;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::string> entries_;  // packed (cache.h), by key
};

/// compile(), with what the bundle holds taken from it and what it does not hold added; null: as compile().
Executable compile_with(const ModulePtr& module, const Options& options, Bundle* bundle);

}  // namespace hlojit
