// Protobuf's wire format, read in place: a message is a view of bytes that is searched on demand.
//
// A field is a key (number and wire type) and a value; the schema is the reader's business. Nothing is
// copied or allocated before its bytes are seen to be there, so that memory is bounded by the size of
// the input. Damage is Error(kInvalid).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "layout/error.h"

namespace hlojit::proto {

[[noreturn]] void fail(std::string message);

enum class Wire : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

struct Field {
  uint32_t number = 0;
  Wire wire = Wire::kVarint;
  uint64_t value = 0;      ///< of varints and fixed numbers
  std::string_view bytes;  ///< of strings, messages, packed lists
};

/// Takes varints and fields off the front of bytes.
uint64_t take_varint(std::string_view& from);
Field take_field(std::string_view& from);

class Message {
 public:
  Message() = default;  ///< empty: every field absent
  /// `bytes` must outlive the message and every view taken from it.
  explicit Message(std::string_view bytes) : bytes_(bytes) {}

  std::string_view bytes() const { return bytes_; }
  template <class F>
  void each(F f) const {
    for (std::string_view rest = bytes_; !rest.empty();) f(take_field(rest));
  }
  /// True if every field is whole.
  bool well_formed() const;

  // One value: the last one given; 0, empty or false if absent. A wrong wire type is an error.
  bool has(uint32_t number) const;
  int64_t integer(uint32_t number) const;
  bool boolean(uint32_t number) const { return integer(number) != 0; }
  double real(uint32_t number) const;   ///< a double
  float real32(uint32_t number) const;  ///< a float
  std::string_view text(uint32_t number) const;
  Message message(uint32_t number) const { return Message(text(number)); }

  // All values of a repeated field; numbers packed or not.
  std::vector<int64_t> integers(uint32_t number) const;
  std::vector<Message> messages(uint32_t number) const;
  /// Fixed numbers of `width` bytes as they lie in memory.
  std::string fixed(uint32_t number, size_t width) const;

 private:
  std::string_view bytes_;
};

}  // namespace hlojit::proto
