// Compiled code kept beyond the process, by key: what codegen asks of whoever keeps files.
#pragma once

#include <optional>
#include <string>

namespace hlojit::codegen {

class ObjectStore {
 public:
  virtual ~ObjectStore() = default;
  /// The bytes stored under this key, whole, or none. Called from several threads; never throws.
  virtual std::optional<std::string> load(const std::string& key) = 0;
  virtual void store(const std::string& key, const std::string& bytes) = 0;
  virtual bool contains(const std::string& key) = 0;
};

}  // namespace hlojit::codegen
