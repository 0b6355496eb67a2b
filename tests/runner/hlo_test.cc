// Runs text tests: `hlo_test [--record RECORD] FILE...` (the format is described in test_file.h), and programs
// of the benchmarks against their golden answers: `hlo_test --golden MANIFEST PROGRAM...`. Prints what
// fails and ends with 1 if anything did. RECORD gets a line a section that passes and names rows of the
// conformance table: the rows, and the layouts that it ran compiled on.
#include <cstdio>
#include <exception>
#include <fstream>
#include <string_view>

#include "layout/error.h"
#include "tests/runner/test_file.h"

namespace hlojit::test {
namespace {

LayoutsRun check_section(const TestFile& file, const Section& section, Failures& failures) {
  if (file.mode == "run") return check_run(file, section, failures);
  if (file.mode == "opt") {
    check_opt(file, section, failures);
  } else if (file.mode == "text") {
    check_text(file, section, failures);
  } else if (file.mode == "codegen") {
    check_codegen(file, section, failures);
  } else if (file.mode == "verify") {
    check_verify(file, section, failures);
  } else {
    failures.push_back(at(file, 1) + "unknown mode " + file.mode);
  }
  return {};
}

std::string record_line(const Section& section, const LayoutsRun& layouts) {
  std::string line = section.rows + " (";
  for (const std::string_view layout : layouts) line += std::string(line.ends_with('(') ? "" : ", ").append(layout);
  return line + ")";
}

Failures check_file(const char* path, std::ostream* record) {
  Failures failures;
  try {
    const TestFile file = read_test_file(path);
    for (const Section& section : file.sections) {
      try {
        const size_t before = failures.size();
        const LayoutsRun layouts = check_section(file, section, failures);
        if (record && !section.rows.empty() && failures.size() == before) {
          *record << record_line(section, layouts) << "\n";
        }
      } catch (const Error& error) {
        for (const Diagnostic& d : error.diagnostics()) {
          const int line = d.location.known() ? section.first_line + d.location.line - 1 : section.first_line;
          failures.push_back(at(file, line) + std::string(error_kind_name(error.kind())) + ": " + d.message);
        }
      }
    }
  } catch (const std::exception& error) {
    failures.push_back(error.what());
  }
  return failures;
}

Failures check_program(const char* manifest, const char* name) {
  Failures failures;
  try {
    check_golden(manifest, name, failures);
  } catch (const std::exception& error) {
    failures.push_back(std::string(name) + ": " + error.what());
  }
  return failures;
}

int run(int argc, char** argv) {
  const bool golden = argc > 2 && std::string_view(argv[1]) == "--golden";
  const bool recording = argc > 2 && std::string_view(argv[1]) == "--record";
  const int first = golden || recording ? 3 : 1;
  if (argc <= first) {
    std::fprintf(stderr, "usage: hlo_test [--record RECORD] FILE... | --golden MANIFEST PROGRAM...\n");
    return 1;
  }
  std::ofstream record;
  if (recording) record.open(argv[2]);
  bool failed = false;
  for (int i = first; i < argc; ++i) {
    const Failures failures =
        golden ? check_program(argv[2], argv[i]) : check_file(argv[i], recording ? &record : nullptr);
    for (const std::string& failure : failures) std::fprintf(stderr, "%s\n", failure.c_str());
    failed |= !failures.empty();
  }
  return failed ? 1 : 0;
}

}  // namespace
}  // namespace hlojit::test

int main(int argc, char** argv) { return hlojit::test::run(argc, argv); }
