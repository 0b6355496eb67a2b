// Fields of a protobuf message, written: what the answers to a frontend need.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hlojit::pjrt {

inline void put_varint(std::string& out, uint64_t v) {
  for (; v >= 128; v >>= 7) out.push_back(static_cast<char>(v | 128));
  out.push_back(static_cast<char>(v));
}

inline void put_integer(std::string& out, int field, uint64_t v) {
  put_varint(out, static_cast<uint64_t>(field) << 3);
  put_varint(out, v);
}

inline void put_bytes(std::string& out, int field, std::string_view bytes) {
  put_varint(out, static_cast<uint64_t>(field) << 3 | 2);
  put_varint(out, bytes.size());
  out += bytes;
}

}  // namespace hlojit::pjrt
