// Words for the kinds of errors, as the command line prints them.
#include "layout/error.h"

namespace hlojit {

std::string_view error_kind_name(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kUnsupported: return "unsupported";
    case ErrorKind::kInvalid: return "invalid";
    case ErrorKind::kInput: return "input";
    case ErrorKind::kFailed: return "failed";
  }
  return "failed";
}

}  // namespace hlojit
