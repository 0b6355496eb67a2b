// Numbers and texts in byte strings, for what is kept in files of this machine. Taking what is not there throws
// Error (kInput): bytes that were cut short never pass for shorter content.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "layout/error.h"

namespace hlojit::codegen {

inline void put_number(std::string& out, int64_t n) { out.append(reinterpret_cast<const char*>(&n), sizeof n); }
inline void put_text(std::string& out, std::string_view text) {
  put_number(out, std::ssize(text));
  out += text;
}

/// Takes so many bytes off the front.
inline std::string_view take_bytes(std::string_view& in, uint64_t size) {
  if (size > in.size()) throw Error(ErrorKind::kInput, "the stored bytes are damaged: they end too early");
  std::string_view bytes = in.substr(0, size);
  in.remove_prefix(size);
  return bytes;
}
inline int64_t take_number(std::string_view& in) {
  int64_t n = 0;
  std::memcpy(&n, take_bytes(in, sizeof n).data(), sizeof n);
  return n;
}
/// What put_text put, inside `in`.
inline std::string_view take_text(std::string_view& in) {
  auto size = static_cast<uint64_t>(take_number(in));
  return take_bytes(in, size);
}

}  // namespace hlojit::codegen
