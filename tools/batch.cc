// batch: a worker. One JSON request a line in, one JSON answer a line out, in order, flushed.
#include <malloc.h>

#include <cstdlib>
#include <iostream>
#include <string>
#include <type_traits>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench/roof/roof.h"
#include "tools/request.h"

namespace hlojit::tools {
namespace {

using Json = nlohmann::json;

constexpr int64_t kTrimEvery = 100;

// A key of the wrong JSON type is wrong usage of that key; so is a number that its type does not hold.
template <class T>
void take(const Json& request, const char* key, T& value) {
  auto it = request.find(key);
  if (it == request.end() || it->is_null()) return;
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    bool fits = it->is_number_unsigned() ? std::in_range<T>(it->template get<uint64_t>())
                                         : it->is_number_integer() && std::in_range<T>(it->template get<int64_t>());
    if (!fits) throw UsageError(fmt::format("key '{}' has the wrong type or is out of range", key));
  }
  try {
    value = it->get<T>();
  } catch (const Json::exception&) {
    throw UsageError(fmt::format("key '{}' has the wrong type", key));
  }
}

template <class T>
void take(const Json& request, const char* key, std::optional<T>& value) {
  if (!request.contains(key) || request[key].is_null()) return;
  T inner{};
  take(request, key, inner);
  value = std::move(inner);
}

// A list, or one string with commas as on the command line.
void take_list(const Json& request, const char* key, std::vector<std::string>& value) {
  if (request.contains(key) && request[key].is_string()) {
    std::string text = request[key], item;
    for (char c : text + ",") {
      if (c != ',') {
        item += c;
      } else {
        if (!item.empty()) value.push_back(item);
        item.clear();
      }
    }
    return;
  }
  take(request, key, value);
}

Request parse_request(const Json& j) {
  Request r;
  if (const char* folder = std::getenv("HLOJIT_CACHE_DIR")) r.cache = folder;
  take(j, "module", r.module);
  take(j, "inputs", r.inputs);
  take(j, "input", r.inputs);
  take(j, "random", r.random);
  take(j, "elided", r.elided);
  take(j, "output_dir", r.output_dir);
  take(j, "print", r.print);
  take(j, "compiles", r.compiles);
  take(j, "against_eval", r.against_eval);
  take(j, "rtol", r.rtol);
  take(j, "ulp", r.ulp);
  take_list(j, "passes", r.passes);
  take(j, "until", r.until);
  take(j, "extract", r.extract);
  take(j, "list_passes", r.list_passes);
  take(j, "explain", r.explain);
  take(j, "emit", r.emit);
  take(j, "output", r.output);
  take(j, "shape", r.shape);
  take(j, "index", r.index);
  take(j, "linear", r.linear);
  take(j, "min_ms", r.min_ms);
  take(j, "threads", r.threads);
  take(j, "device_isa", r.device_isa);
  take(j, "strict", r.strict);
  take(j, "keep_subnormals", r.keep_subnormals);
  take_list(j, "disable", r.disable);
  take(j, "effort", r.effort);
  take(j, "cache", r.cache);
  take(j, "dump_to", r.dump_to);
  take(j, "time", r.time);
  take(j, "scatter_oob", r.scatter_oob);
  take_list(j, "load", r.load);
  take(j, "timeout_s", r.timeout_s);
  take(j, "replicas", r.replicas);
  take(j, "partitions", r.partitions);
  take_list(j, "infeed", r.infeed);
  take(j, "wait_s", r.wait_s);
  if (j.contains("threads") && r.threads < 1) throw UsageError("key 'threads': a number from 1 to 4096 is needed");
  if (r.module == "-") throw UsageError("key 'module': standard input holds the requests");
  check_request(r);
  return r;
}

void answer_request(const Json& j, Request& r, Json& answer, std::string& source) {
  std::string verb;
  if (!j.contains("cmd")) throw UsageError("a request needs the key 'cmd'");
  take(j, "cmd", verb);
  std::string text;
  Sink sink = [&](const std::string& s) { text += s; };
  bool takes_module = verb == "run" || verb == "check" || verb == "opt" || verb == "compile" || verb == "bench";
  if (takes_module && r.module.empty() && !r.list_passes) throw UsageError(verb + ": the key 'module' is needed");
  if (verb == "run") {
    run_verb(r, source, sink);
  } else if (verb == "check") {
    check_verb(r, source, sink);
  } else if (verb == "opt") {
    opt_verb(r, source, sink);
  } else if (verb == "compile") {
    compile_verb(r, source, sink);
  } else if (verb == "layout") {
    if (!j.contains("shape")) throw UsageError("layout: the key 'shape' is needed");
    LayoutAnswer a = layout_answer(r);
    if (a.linear) answer["linear"] = *a.linear;
    if (a.index) answer["index"] = *a.index == "padding" ? Json() : Json::parse("[" + *a.index + "]");
    answer["elements"] = a.elements;
    answer["bytes"] = a.bytes;
  } else if (verb == "bench") {
    if (!j.contains("min_ms")) r.min_ms = 40;
    Executable e(nullptr);
    BenchResult b = bench(r, source, &e);
    answer["compile_ms"] = b.compile_ms;
    answer["us"] = {b.min_us, b.median_us, b.runs};
    answer["threads"] = b.threads;
    answer["isa"] = b.isa;
    answer["peak_bytes"] = b.peak_bytes;
    if (roof::Roof roof(b.threads); r.explain) explain_bench(r, source, e, roof, b, sink);
  } else {
    throw UsageError(fmt::format("there is no cmd '{}'", verb));
  }
  if (!text.empty()) answer["output"] = text;
}

}  // namespace

int batch_verb() {
  std::string line;
  int64_t answers = 0;
  while (std::getline(std::cin, line)) {
    Json answer = Json::object();
    std::string source;
    Outcome answered, outcome = guarded(
                          [&] {
                            Json j = Json::parse(line, nullptr, false);
                            if (j.is_discarded() || !j.is_object()) throw UsageError("a line must be one JSON object");
                            if (j.contains("id")) answer["id"] = j["id"];
                            Request r = parse_request(j);
                            answered = watched(r, false, [&] { answer_request(j, r, answer, source); }, &source);
                          },
                          &source);
    if (outcome.code == 0) outcome = answered;
    if (outcome.code != 0) {
      Json failed = Json::object();
      if (answer.contains("id")) failed["id"] = answer["id"];
      failed["msg"] = outcome.message;
      if (outcome.errors.size() > 0 && outcome.code == 4) failed["errors"] = outcome.errors;
      answer = std::move(failed);
    }
    answer["rc"] = outcome.code;
    std::cout << answer.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n' << std::flush;
    if (!std::cout) return 6;
    // What compilers free lies between what they keep: unasked, the heap grows by 26 MB from the 1,000th request to the
    // 10,000th.
    if (++answers % kTrimEvery == 0) malloc_trim(0);
  }
  return 0;
}

}  // namespace hlojit::tools
