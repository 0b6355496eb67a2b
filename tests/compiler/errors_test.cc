// Runs tests/errors/*.hlo: modules that are wrong, with what must be said about them beside the
// offending line:
//
//     ROOT r = f32[3] negate(x)  // error: result-shape: is declared f32[3]
//
// that is, a finding on this line with this rule, whose message contains the rest (if any). A line
// may have several. Modules in one file are separated by lines that start with `// -----`; lines
// count from the start of the module's part. A part without any `// error:` must be valid. What is
// found and not expected, or expected and not found, fails. Every rule of verify/rule_list.h must
// be met.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "compiler/text/parser.h"
#include "compiler/verify/rule_list.h"
#include "compiler/verify/verifier.h"

namespace {

namespace fs = std::filesystem;
using namespace hlojit;

// Rules that the parser enforces on text in other words or by construction; verify_test.cc breaks
// them in modules built by hand.
const std::set<std::string_view> kNotInText = {
    "parameter-numbers", "constant-literal", "root", "name-unique", "operand-order", "entry",
    "call-order",        "called-count",
};

struct Expectation {
  int line;
  std::string rule, fragment;
};

std::string read(const fs::path& path) {
  std::ifstream in(path);
  REQUIRE_MESSAGE(in, path.string());
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<fs::path> hlo_files(const char* folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(fs::path(HLOJIT_SOURCE_DIR) / folder)) {
    if (entry.path().extension() == ".hlo") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

// Parts of a file, each with the number of lines before it.
std::vector<std::pair<std::string, int>> parts_of(const std::string& text) {
  std::vector<std::pair<std::string, int>> parts(1);
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.starts_with("// -----")) {
      parts.push_back({"", number});
    } else {
      parts.back().first += line + "\n";
    }
  }
  return parts;
}

std::vector<Expectation> expectations(const std::string& text) {
  constexpr std::string_view kMark = "// error: ";
  std::vector<Expectation> expected;
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    for (size_t at = line.find(kMark); at != line.npos;) {
      size_t next = line.find(kMark, at + 1);
      std::string one = line.substr(at + kMark.size(), next - at - kMark.size());
      one.erase(one.find_last_not_of(' ') + 1);
      size_t colon = one.find(": ");
      std::string fragment = colon == one.npos ? "" : one.substr(colon + 2);
      expected.push_back({number, one.substr(0, colon), fragment});
      at = next;
    }
  }
  return expected;
}

std::vector<Diagnostic> findings(const std::string& text) {
  try {
    return verify(*parse_module(text));
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kInvalid);
    return error.diagnostics();
  }
}

std::string show(const Diagnostic& d) {
  return fmt::format("{}:{}: {}: {}", d.location.line, d.location.column, d.rule, d.message);
}

// Removes each finding's expectation; returns what is left over on either side.
std::string mismatches(std::vector<Expectation> expected, const std::vector<Diagnostic>& found) {
  std::string report;
  for (const Diagnostic& d : found) {
    auto match = std::ranges::find_if(expected, [&](const Expectation& e) {
      return e.line == d.location.line && e.rule == d.rule && d.message.contains(e.fragment);
    });
    if (match == expected.end()) {
      report += "not expected: " + show(d) + "\n";
    } else {
      expected.erase(match);
    }
  }
  for (const Expectation& e : expected) {
    report += fmt::format("not found: {}: {}: {}\n", e.line, e.rule, e.fragment);
  }
  return report;
}

}  // namespace

TEST_CASE("every wrong module gives the findings written beside its lines") {
  std::set<std::string> met;
  for (const fs::path& path : hlo_files("tests/errors")) {
    for (const auto& [text, before] : parts_of(read(path))) {
      CAPTURE(path.filename().string());
      CAPTURE(before + 1);
      std::vector<Expectation> expected = expectations(text);
      for (const Expectation& e : expected) met.insert(e.rule);
      std::vector<Diagnostic> found = findings(text);
      std::string report = mismatches(expected, found);
      CHECK_MESSAGE(report.empty(), report);
      CHECK(std::ranges::is_sorted(found, {},
                                   [](const Diagnostic& d) { return std::pair(d.location.line, d.location.column); }));
      for (const Diagnostic& d : found) CHECK_FALSE(d.message.contains('\n'));
    }
  }
  for (const RuleInfo& rule : kRules) {
    bool in_text = met.contains(std::string(rule.id));
    CHECK_MESSAGE(in_text != kNotInText.contains(rule.id), rule.id);
  }
}

TEST_CASE("the programs of the benchmarks are valid") {
  std::vector<fs::path> files = hlo_files("bench/hlo");
  for (const fs::path& path : hlo_files("bench/hlo/big")) files.push_back(path);
  CHECK(files.size() > 50);
  for (const fs::path& path : files) {
    CAPTURE(path.string());
    std::string report = mismatches({}, findings(read(path)));
    CHECK_MESSAGE(report.empty(), report);
  }
}
