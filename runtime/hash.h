// A 128-bit hash of byte strings and numbers, for names of cache entries and their check sums: two
// 64-bit states that see every word in different ways. Not for adversaries.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hlojit {

struct Digest {
  uint64_t high = 0, low = 0;
  bool operator==(const Digest&) const = default;
  std::string to_hex() const;  ///< 32 digits
};

class Hasher {
 public:
  void add(uint64_t word);
  /// Length first, so that two strings in a row are not one.
  void add(std::string_view bytes);
  Digest digest() const;

 private:
  uint64_t a_ = 0x6c62272e07bb0142, b_ = 0x9ae16a3b2f90404f;
};

Digest digest_of(std::string_view bytes);

}  // namespace hlojit
