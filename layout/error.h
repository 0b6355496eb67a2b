// Errors of the whole library: one exception type that says whose fault it is, where, and which
// rule was broken. Nothing in the library prints, aborts or exits; faces (CLI, C, PJRT) turn the
// kind into their own codes.
#pragma once

#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "export.h"

namespace hlojit {

/// Whose fault an error is. The values are the command line's exit codes.
enum class ErrorKind {
  kUnsupported = 3,  ///< Known HLO that this version does not compile.
  kInvalid = 4,      ///< Not valid HLO: syntax, names, types, layouts, shapes.
  kInput = 5,        ///< A file or a buffer given by the caller does not fit.
  kFailed = 6,       ///< Failed while running: memory, time-out, output not writable.
};

/// A place in the user's text; line and column count from 1, 0 = unknown.
struct Location {
  int line = 0;
  int column = 0;
  bool known() const { return line > 0; }
};

/// One finding. `rule` is a short stable identifier ("dot-contracting-size"), empty if none applies.
struct Diagnostic {
  Location location = {};
  std::string instruction = {};  ///< Name of the instruction at fault, if any (stands in for a location).
  std::string rule = {};
  std::string message = {};  ///< One line.
  std::string details = {};  ///< Further lines (shapes, a suggestion); may be empty.
};

/// The only exception the library throws on purpose.
class HLOJIT_API Error : public std::exception {
 public:
  Error(ErrorKind kind, std::string message) : kind_(kind) {
    diagnostics_.push_back({.message = std::move(message)});
    compose();
  }
  Error(ErrorKind kind, Location where, std::string message, std::string rule = {}) : kind_(kind) {
    diagnostics_.push_back({.location = where, .rule = std::move(rule), .message = std::move(message)});
    compose();
  }
  /// At least one diagnostic; the first one becomes what().
  Error(ErrorKind kind, std::vector<Diagnostic> diagnostics) : kind_(kind), diagnostics_(std::move(diagnostics)) {
    compose();
  }

  ErrorKind kind() const { return kind_; }
  const std::vector<Diagnostic>& diagnostics() const { return diagnostics_; }
  /// First line without a prefix: `LINE:COLUMN: message`, or `NAME: message`, or `message`.
  const char* what() const noexcept override { return what_.c_str(); }

 private:
  void compose() {
    const Diagnostic& d = diagnostics_.front();
    if (d.location.known()) {
      what_ = std::to_string(d.location.line) + ":" + std::to_string(d.location.column) + ": ";
    } else if (!d.instruction.empty()) {
      what_ = d.instruction + ": ";
    }
    what_ += d.message;
  }

  ErrorKind kind_;
  std::vector<Diagnostic> diagnostics_;
  std::string what_;
};

/// The word for a kind that messages begin with: "unsupported", "invalid", "input", "failed".
HLOJIT_API std::string_view error_kind_name(ErrorKind kind);

}  // namespace hlojit
