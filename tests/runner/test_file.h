// The format of text tests. Line one names the mode; sections are separated by `// -----`; a
// section is a module with its claims beside it, each a comment line of the form `// WORD: text`.
//
//     // RUN: run                         or: opt --passes=a,b | verify | text
//     HloModule m
//     ENTRY e { p = f32[3] parameter(0)  ROOT r = f32[3] negate(p) }
//     // INPUT: f32[3] {1, 2, 3}
//     // EXPECT: f32[3] {-1, -2, -3}
//     // -----
//
// Claims of `run`, on the oracle and on compiled code:
//   INPUT: SHAPE LITERAL     the next leaf of the parameters     INPUT: random SEED   all further
//   leaves EXPECT: SHAPE LITERAL    the next leaf of the result, bit for bit (NaNs are one class);
//   without
//                            any, compiled code is compared with the oracle
//   An INPUT after an EXPECT begins another case of the same module.
//   ULP: n / TOL: x          tolerance of the section, in units in the last place / relative to the
//                            larger of the value and the leaf's typical magnitude
//   OPTION: scatter-oob-window      run with this switch
//   UNSUPPORTED: text        compiling is refused with an error that says so; the oracle still runs
//   ERROR: text              running fails on the oracle with an error that says so
// Claims of `opt` and `text`, on the printed module: CHECK: text, CHECK-NOT: text, in this order,
// as substrings of lines; CHECK begins its search on the line after the last match, CHECK-NOT holds
// between its neighbours. `text` also demands that the print reads back to the same print.
// `codegen` [--isa=avx2] [--vector-bytes=32] matches CHECK and CHECK-NOT against the LLVM IR of the innermost
// loops, each under a line `loop %HEADER of @FUNCTION`; no such loop may divide, nor fill or read lanes one
// at a time (--gathers allows that, for programs without a stride-1 digit).
// --smaller=N compiles as if caches were so many times smaller.
// `verify` demands a valid module; ERROR: text demands that a diagnostic says so.
// ROWS: 17, 18-20   in any mode: what the section proves of tests/conformance.md
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hlojit::test {

struct Claim {
  int line = 0;  // in the file
  std::string word, text;
};

struct Section {
  int first_line = 1;
  std::string text;  // the module; claims are comments in it
  std::vector<Claim> claims;
  std::string rows;  // of the conformance table
};

struct TestFile {
  std::string path, mode;
  std::vector<std::string> options;
  std::vector<Section> sections;
};

/// Reads a file; throws std::runtime_error for a file that is not a test or whose words are
/// unknown.
TestFile read_test_file(const std::string& path);

/// What went wrong, a line each, beginning with `PATH:LINE: `.
using Failures = std::vector<std::string>;
/// The layouts of the entry under which all cases ran compiled: "written", "permuted", "tiled".
using LayoutsRun = std::vector<std::string_view>;

// The modes; each checks one section.
LayoutsRun check_run(const TestFile& file, const Section& section, Failures& failures);
void check_opt(const TestFile& file, const Section& section, Failures& failures);
void check_text(const TestFile& file, const Section& section, Failures& failures);
void check_codegen(const TestFile& file, const Section& section, Failures& failures);
void check_verify(const TestFile& file, const Section& section, Failures& failures);

/// A program of bench/ against the answers of XLA:CPU beside it, on the oracle and compiled:
/// `manifest` is the path of manifest.json, `name` one of its programs.
void check_golden(const std::string& manifest, const std::string& name, Failures& failures);

/// Matches the CHECK and CHECK-NOT claims of a section against printed text.
void match_claims(const TestFile& file, const Section& section, std::string_view printed, Failures& failures);
std::string at(const std::string& path, int line);
inline std::string at(const TestFile& file, int line) { return at(file.path, line); }

}  // namespace hlojit::test
