// `opt`, `text` and `verify`: what becomes of a module's text.
#include <algorithm>
#include <sstream>
#include <stdexcept>

#include "compiler/pipeline.h"
#include "compiler/text/parser.h"
#include "compiler/text/printer.h"
#include "compiler/verify/verifier.h"
#include "tests/runner/test_file.h"

namespace hlojit::test {
namespace {

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> parts;
  std::istringstream stream(list);
  for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
  return parts;
}

PipelineOptions options_of(const TestFile& file) {
  PipelineOptions options;
  for (const std::string& option : file.options) {
    const size_t equals = option.find('=');
    const std::string name = option.substr(0, equals);
    const std::string value = equals == option.npos ? "" : option.substr(equals + 1);
    if (name == "--passes") {
      options.only = split(value);
    } else if (name == "--until") {
      options.until = value;
    } else if (name == "--disable") {
      options.disabled = split(value);
    } else if (name == "--strict") {
      options.strict = true;
    } else {
      throw std::runtime_error(file.path + ": unknown option " + option);
    }
  }
  return options;
}

}  // namespace

// The module is valid before and after, and prints what the claims say.
void check_opt(const TestFile& file, const Section& section, Failures& failures) {
  std::unique_ptr<Module> module = parse_module(section.text);
  check(*module);
  run_pipeline(*module, options_of(file));
  const std::string printed = to_string(*module);
  for (const Diagnostic& d : verify(*module)) {
    failures.push_back(at(file, section.first_line) + "invalid after the passes: " + d.message + "\n" + printed);
  }
  match_claims(file, section, printed, failures);
}

void check_text(const TestFile& file, const Section& section, Failures& failures) {
  const std::string printed = to_string(*parse_module(section.text));
  const std::string again = to_string(*parse_module(printed));
  if (printed != again) {
    failures.push_back(at(file, section.first_line) + "the print of the print differs:\n" + printed + "----\n" + again);
  }
  match_claims(file, section, printed, failures);
}

void check_verify(const TestFile& file, const Section& section, Failures& failures) {
  std::vector<Diagnostic> found;
  try {
    found = verify(*parse_module(section.text));
  } catch (const Error& error) {
    found = error.diagnostics();
  }
  bool expected_any = false;
  for (const Claim& claim : section.claims) {
    if (claim.word != "ERROR") continue;
    expected_any = true;
    const bool said = std::ranges::any_of(found, [&](const Diagnostic& d) { return d.message.contains(claim.text); });
    if (!said) failures.push_back(at(file, claim.line) + "no diagnostic says: " + claim.text);
  }
  if (expected_any) return;
  for (const Diagnostic& d : found) {
    const int line = d.location.known() ? section.first_line + d.location.line - 1 : section.first_line;
    failures.push_back(at(file, line) + d.message);
  }
}

}  // namespace hlojit::test
