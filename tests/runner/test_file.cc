// Reading test files and matching CHECK lines.
#include "tests/runner/test_file.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <optional>
#include <sstream>
#include <stdexcept>

namespace hlojit::test {
namespace {

constexpr std::array<std::string_view, 10> kWords = {"INPUT",       "EXPECT", "ULP",   "TOL",       "OPTION",
                                                     "UNSUPPORTED", "ERROR",  "CHECK", "CHECK-NOT", "ROWS"};

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  const size_t first = text.find_first_not_of(kBlank);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

bool is_separator(std::string_view line) { return trim(line) == "// -----"; }

// `// WORD: text`, where WORD is in capitals; other comments are comments.
std::optional<Claim> claim_of(std::string_view line, const std::string& path, int number) {
  line = trim(line);
  if (!line.starts_with("// ")) return std::nullopt;
  line.remove_prefix(3);
  const size_t colon = line.find(": ");
  if (colon == line.npos) return std::nullopt;
  const std::string_view word = line.substr(0, colon);
  const bool capitals =
      !word.empty() && std::ranges::all_of(word, [](char c) { return (c >= 'A' && c <= 'Z') || c == '-'; });
  if (!capitals) return std::nullopt;
  if (std::ranges::find(kWords, word) == kWords.end()) {
    throw std::runtime_error(path + ":" + std::to_string(number) + ": unknown claim " + std::string(word));
  }
  return Claim{number, std::string(word), std::string(trim(line.substr(colon + 2)))};
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  std::istringstream stream{std::string(text)};
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace

std::string at(const std::string& path, int line) { return path + ":" + std::to_string(line) + ": "; }

TestFile read_test_file(const std::string& path) {
  std::ifstream stream(path);
  if (!stream) throw std::runtime_error(path + ": cannot be read");
  TestFile file;
  file.path = path;
  std::string line;
  std::getline(stream, line);
  constexpr std::string_view kRun = "// RUN: ";
  if (!line.starts_with(kRun)) throw std::runtime_error(path + ": line one is not // RUN: MODE");
  std::istringstream words(line.substr(kRun.size()));
  words >> file.mode;
  for (std::string option; words >> option;) file.options.push_back(option);

  int number = 1;
  auto begin = [&] { file.sections.push_back({number + 1, {}, {}, {}}); };
  begin();
  while (std::getline(stream, line)) {
    ++number;
    if (is_separator(line)) {
      begin();
      continue;
    }
    Section& section = file.sections.back();
    section.text += line + "\n";
    const auto claim = claim_of(line, path, number);
    if (!claim) continue;
    if (claim->word == "ROWS") {
      section.rows = claim->text;
    } else {
      section.claims.push_back(*claim);
    }
  }
  return file;
}

void match_claims(const TestFile& file, const Section& section, std::string_view printed, Failures& failures) {
  const std::vector<std::string> lines = lines_of(printed);
  std::vector<const Claim*> forbidden;
  size_t from = 0;
  auto refuse = [&](size_t end) {
    for (const Claim* claim : forbidden) {
      for (size_t i = from; i < end; ++i) {
        if (lines[i].contains(claim->text)) {
          failures.push_back(at(file, claim->line) + "found what CHECK-NOT forbids: " + lines[i]);
          break;
        }
      }
    }
    forbidden.clear();
  };
  for (const Claim& claim : section.claims) {
    if (claim.word == "CHECK-NOT") forbidden.push_back(&claim);
    if (claim.word != "CHECK") continue;
    size_t found = from;
    while (found < lines.size() && !lines[found].contains(claim.text)) ++found;
    if (found == lines.size()) {
      failures.push_back(at(file, claim.line) + "CHECK not found: " + claim.text +
                         "\n---- printed, searched from line " + std::to_string(from + 1) + "\n" +
                         std::string(printed) + "----");
      return;
    }
    refuse(found);
    from = found + 1;
  }
  refuse(lines.size());
}

}  // namespace hlojit::test
