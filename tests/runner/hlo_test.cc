// Runs text tests: `hlo_test FILE...`. The format is described in test_file.h. Prints what fails and
// ends with 1 if anything did.
#include <cstdio>
#include <exception>

#include "layout/error.h"
#include "tests/runner/test_file.h"

namespace hlojit::test {
namespace {

void check_section(const TestFile& file, const Section& section, Failures& failures) {
  if (file.mode == "run") return check_run(file, section, failures);
  if (file.mode == "opt") return check_opt(file, section, failures);
  if (file.mode == "text") return check_text(file, section, failures);
  if (file.mode == "verify") return check_verify(file, section, failures);
  failures.push_back(at(file, 1) + "unknown mode " + file.mode);
}

Failures check_file(const char* path) {
  Failures failures;
  try {
    const TestFile file = read_test_file(path);
    for (const Section& section : file.sections) {
      try {
        check_section(file, section, failures);
      } catch (const Error& error) {
        for (const Diagnostic& d : error.diagnostics()) {
          const int line = d.location.known() ? section.first_line + d.location.line - 1
                                              : section.first_line;
          failures.push_back(at(file, line) + std::string(error_kind_name(error.kind())) + ": " +
                             d.message);
        }
      }
    }
  } catch (const std::exception& error) {
    failures.push_back(error.what());
  }
  return failures;
}

}  // namespace
}  // namespace hlojit::test

int main(int argc, char** argv) {
  size_t failed = 0;
  for (int i = 1; i < argc; ++i) {
    const auto failures = hlojit::test::check_file(argv[i]);
    for (const std::string& failure : failures) std::fprintf(stderr, "%s\n", failure.c_str());
    failed += failures.size();
  }
  if (argc < 2) std::fprintf(stderr, "usage: hlo_test FILE...\n");
  return argc < 2 || failed > 0 ? 1 : 0;
}
