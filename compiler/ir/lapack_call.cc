// See lapack_call.h.
#include "compiler/ir/lapack_call.h"

#include <charconv>

namespace hlojit {
namespace {

constexpr std::string_view kPrefix = "lapack_", kSuffix = "_ffi";

}  // namespace

bool is_lapack_call(const Instruction& call) {
  const std::string_view target = call.attrs.custom_call_target;
  const bool named = target.size() > kPrefix.size() + kSuffix.size();
  return call.is(Opcode::kCustomCall) && named && target.starts_with(kPrefix) && target.ends_with(kSuffix);
}

char lapack_type(const Instruction& call) { return call.attrs.custom_call_target[kPrefix.size()]; }

std::string_view lapack_function(const Instruction& call) {
  std::string_view name = call.attrs.custom_call_target;
  name.remove_suffix(kSuffix.size());
  return name.substr(kPrefix.size() + 1);
}

int lapack_option(const Instruction& call, std::string_view name, int missing) {
  const std::string& text = call.attrs.backend_config;
  for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
    size_t value = text.find_first_not_of(' ', at + name.size());
    if (value == std::string::npos || text[value] != '=') continue;
    value = text.find_first_not_of(' ', value + 1);
    if (value == std::string::npos) return missing;
    if (text.compare(value, 4, "true") == 0) return 1;
    if (text.compare(value, 5, "false") == 0) return 0;
    int n = missing;
    std::from_chars(text.data() + value, text.data() + text.size(), n);
    return n;
  }
  return missing;
}

}  // namespace hlojit
