// See diagnostics.h.
#include "compiler/text/diagnostics.h"

#include <algorithm>

namespace hlojit {
namespace {

constexpr size_t kWidth = 100;  // of the shown part of a source line

// Line `number` (from 1) of the text, without its end.
std::string_view line_of(std::string_view source, int number) {
  for (int line = 1; line < number; ++line) {
    size_t end = source.find('\n');
    if (end == std::string_view::npos) return {};
    source.remove_prefix(end + 1);
  }
  return source.substr(0, source.find('\n'));
}

void append_lines(std::string_view text, std::string& out) {
  while (!text.empty()) {
    size_t end = std::min(text.find('\n'), text.size());
    out.append("  ").append(text.substr(0, end)).append("\n");
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

}  // namespace

std::string render(const Diagnostic& diagnostic, std::string_view source) {
  std::string out;
  std::string_view line = line_of(source, diagnostic.location.line);
  if (diagnostic.location.known() && !line.empty()) {
    size_t column = std::min<size_t>(std::max(diagnostic.location.column, 1) - 1, line.size());
    size_t first = line.size() <= kWidth || column < kWidth / 2 ? 0 : column - kWidth / 2;
    std::string shown(line.substr(first, kWidth));
    // One cell a byte, whatever it is, so that the caret stands where it should.
    for (char& c : shown) {
      if (c == '\t' || c == '\r') c = ' ';
      if (c < ' ' || c == 127) c = '?';
    }
    std::string left = first > 0 ? "..." : "";
    std::string right = first + shown.size() < line.size() ? "..." : "";
    out += "  " + left + shown + right + "\n";
    out += "  " + std::string(left.size() + column - first, ' ') + "^\n";
  }
  if (!diagnostic.rule.empty()) out += "  rule: " + diagnostic.rule + "\n";
  append_lines(diagnostic.details, out);
  return out;
}

}  // namespace hlojit
