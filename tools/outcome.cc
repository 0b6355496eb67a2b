// Exceptions to exit codes and messages: the one place where exit codes are decided.
#include <new>

#include <fmt/format.h>

#include "compiler/text/diagnostics.h"
#include "tools/request.h"
#include "tools/watch.h"

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

Outcome watched(Request& request, bool progress, const std::function<void()>& f, const std::string* source) {
  // Before the clock runs: a time below 0 is over at once.
  if (Outcome wrong = guarded([&] { check_request(request); }, nullptr); wrong.code != 0) return wrong;
  Watch watch(request.timeout_s, progress, progress);
  request.watch = &watch;
  Outcome o = guarded(f, source);
  request.watch = nullptr;
  if (o.code != 0 && *watch.stop()) o = {6, fmt::format("failed: not done in {} s", *request.timeout_s), {}, {}};
  return o;
}

void stage(const Request& request, const char* what) {
  if (request.watch) request.watch->stage(what);
}

const std::atomic<bool>* stop_of(const Request& request) { return request.watch ? request.watch->stop() : nullptr; }

RunOptions run_options(const Request& request) {
  RunOptions options;
  options.stop = stop_of(request);
  return options;
}

}  // namespace hlojit::tools
