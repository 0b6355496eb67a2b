// Numbers in byte strings, for what is kept in files of this machine.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace hlojit::codegen {

inline void put_number(std::string& out, int64_t n) { out.append(reinterpret_cast<const char*>(&n), sizeof n); }

/// Takes a number off the front; 0, and nothing left, if there is none.
inline int64_t take_number(std::string_view& in) {
  int64_t n = 0;
  if (in.size() < sizeof n) {
    in = {};
    return 0;
  }
  std::memcpy(&n, in.data(), sizeof n);
  in.remove_prefix(sizeof n);
  return n;
}

}  // namespace hlojit::codegen
