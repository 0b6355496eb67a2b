// Exceptions to exit codes and messages: the one place where cli.md's codes are decided.
#include <new>

#include <fmt/format.h>

#include "compiler/text/diagnostics.h"
#include "tools/request.h"

namespace hlojit::tools {

Outcome guarded(const std::function<void()>& f, const std::string* source) {
  Outcome o;
  try {
    f();
  } catch (const UsageError& e) {
    o.code = 2;
    o.message = fmt::format("usage: {}", e.what());
  } catch (const Error& e) {
    o.code = static_cast<int>(e.kind());
    o.message = fmt::format("{}: {}", error_kind_name(e.kind()), e.what());
    bool first = true;
    for (const Diagnostic& d : e.diagnostics()) {
      std::string line = Error(e.kind(), std::vector<Diagnostic>{d}).what();
      o.errors.push_back(line);
      if (!first) o.details += line + "\n";
      if (source) o.details += render(d, *source);
      first = false;
    }
  } catch (const std::bad_alloc&) {
    o.code = static_cast<int>(ErrorKind::kFailed);
    o.message = "failed: out of memory";
  } catch (const std::exception& e) {
    o.code = static_cast<int>(ErrorKind::kFailed);
    o.message = fmt::format("failed: internal error: {}", e.what());
  }
  return o;
}

}  // namespace hlojit::tools
