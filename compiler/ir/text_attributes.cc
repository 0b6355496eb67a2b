// See text_attributes.h.
#include "compiler/ir/text_attributes.h"

#include <charconv>

#include "layout/error.h"

namespace hlojit {

std::string_view text_attribute(const Attributes& attributes, std::string_view name) {
  for (const auto& [key, text] : attributes.other) {
    if (key == name) return text;
  }
  return {};
}

int64_t int_attribute(const Attributes& attributes, std::string_view name, int64_t otherwise) {
  Ints found = numbers_in(text_attribute(attributes, name));
  return found.empty() ? otherwise : found[0];
}

Ints numbers_in(std::string_view text) {
  Ints found;
  const char *at = text.data(), *end = at + text.size();
  while (at < end) {
    int64_t value;
    auto [next, error] = std::from_chars(at, end, value);
    if (error == std::errc::invalid_argument) {
      ++at;
      continue;
    }
    if (error != std::errc()) {
      Diagnostic d;
      d.rule = "size-overflow";
      d.message = "the number " + std::string(at, next) + " exceeds 63 bits";
      throw Error(ErrorKind::kInvalid, std::vector<Diagnostic>{std::move(d)});
    }
    found.push_back(value);
    at = next;
  }
  return found;
}

}  // namespace hlojit
