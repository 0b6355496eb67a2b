// See custom_call.h. A registry by target name; the three calling conventions that HLO knows become one step.
#include "runtime/kernels/custom_call.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>

#include "compiler/analysis/dataflow.h"
#include "compiler/ir/lapack_call.h"
#include "compiler/ir/text_attributes.h"
#include "hlojit/custom_call.h"
#include "layout/index.h"
#include "runtime/kernels/lapack_calls.h"

namespace hlojit {
namespace {

struct Registry {
  std::mutex mutex;
  std::map<std::string, CustomCallMaker> makers;
  std::vector<void*> libraries;
};

/// Never destroyed: other libraries register while they are loaded and unloaded.
Registry& registry() {
  static auto* r = new Registry;
  return *r;
}

/// A quoted string's content; braces stay as they are.
std::string unquoted(const std::string& text) {
  if (text.size() < 2 || text.front() != '"') return text;
  std::string out;
  for (size_t k = 1; k + 1 < text.size(); ++k) {
    if (text[k] == '\\' && k + 2 < text.size()) ++k;
    out += text[k];
  }
  return out;
}

CustomCallSite site_of(const Instruction& i) {
  CustomCallSite site;
  site.target = i.attrs.custom_call_target;
  site.api_version = text_attribute(i.attrs, "api_version");
  if (site.api_version.empty()) site.api_version = "API_VERSION_ORIGINAL";
  site.backend_config = unquoted(i.attrs.backend_config);
  site.frontend_attributes = *i.attrs.frontend_attributes;
  for (const Instruction* o : i.operands()) {
    for (const Shape* leaf : leaves(o->shape)) site.operands.push_back(*leaf);
  }
  for (const Shape* leaf : leaves(i.shape)) site.results.push_back(*leaf);
  site.result = i.shape;
  site.has_side_effect = i.attrs.custom_call_has_side_effect;
  return site;
}

// ---- extern "C" functions
// ----------------------------------------------------------------------------

using Original = void (*)(void* out, const void** in);

/// The memory of a value as such a function sees it: an array's own, a tuple's table of pointers.
/// Leaves are taken from `next`; tables are kept in `tables`.
void* memory_of(const Shape& shape, void* const*& next, std::vector<std::vector<void*>>& tables) {
  if (shape.is_array()) return *next++;
  if (!shape.is_tuple()) return nullptr;
  std::vector<void*> table;
  for (const Shape& e : shape.elements) table.push_back(memory_of(e, next, tables));
  tables.push_back(std::move(table));
  return tables.back().data();
}

StepFunction original_call(const Instruction& i, Original function) {
  std::vector<Shape> operands;
  for (const Instruction* o : i.operands()) operands.push_back(o->shape);
  return [function, operands, result = i.shape](const StepCall& call) {
    std::vector<std::vector<void*>> tables;
    void* const* next = call.buffers;
    std::vector<const void*> in;
    for (const Shape& s : operands) in.push_back(memory_of(s, next, tables));
    function(memory_of(result, next, tables), in.data());
  };
}

// ---- registered makers
// -------------------------------------------------------------------------------

StepFunction registered_call(const Instruction& i, const CustomCallMaker& maker) {
  CustomCallSite site = site_of(i);
  CustomCallFunction function;
  try {
    function = maker(site);
  } catch (const Error& e) {
    throw Error(e.kind(), i.location, "custom call \"" + site.target + "\": " + e.diagnostics()[0].message);
  } catch (const std::exception& e) {
    throw Error(ErrorKind::kUnsupported, i.location, "custom call \"" + site.target + "\": " + e.what());
  }
  if (!function) throw Error(ErrorKind::kUnsupported, i.location, "custom call \"" + site.target + "\" was refused");
  size_t operands = site.operands.size(), results = site.results.size();
  return [=, target = site.target](const StepCall& call) {
    CustomCallRun run{.operands = {const_cast<const void* const*>(call.buffers), operands},
                      .results = {call.buffers + operands, results},
                      .threads = call.pool.threads(),
                      .parallel = [&](int64_t count, const std::function<void(int64_t)>& f) {
                        constexpr int64_t kWorthIt = 1'000'000;  // ns; the caller has thought it is
                        run_chunks(call.pool, count, kWorthIt, f);
                      }};
    std::string error = function(run);
    if (!error.empty()) throw std::runtime_error("custom call \"" + target + "\": " + error);
  };
}

}  // namespace

void register_custom_call(const std::string& target, CustomCallMaker maker) {
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  if (maker) {
    r.makers[target] = std::move(maker);
  } else {
    r.makers.erase(target);
  }
}

void load_custom_calls(const std::string& path) {
  // A bare name would be looked for in the system's folders.
  void* library =
      dlopen(path.find('/') == std::string::npos ? ("./" + path).c_str() : path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) throw Error(ErrorKind::kInput, "cannot load custom calls: " + std::string(dlerror()));
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  if (std::ranges::find(r.libraries, library) == r.libraries.end()) r.libraries.push_back(library);
}

namespace {

StepFunction find_call(const Instruction& i) {
  const std::string& target = i.attrs.custom_call_target;
  CustomCallMaker maker;
  void* function = nullptr;
  {
    Registry& r = registry();
    std::lock_guard lock(r.mutex);
    if (auto at = r.makers.find(target); at != r.makers.end()) maker = at->second;
    for (void* library : r.libraries) {
      if (!function) function = dlsym(library, target.c_str());
    }
  }
  if (maker) return registered_call(i, maker);
  if (!function && is_lapack_call(i)) return lapack_call_step(i);
  if (!function) {
    throw Error(ErrorKind::kUnsupported, {{.location = i.location,
                                           .instruction = i.name,
                                           .rule = "not-compiled",
                                           .message = "no registered implementation of custom call \"" + target + "\"",
                                           .details = {}}});
  }
  std::string version(text_attribute(i.attrs, "api_version"));
  if (!version.empty() && version != "API_VERSION_ORIGINAL") {
    throw Error(ErrorKind::kUnsupported, i.location,
                "custom call \"" + target + "\": a loaded function is called as API_VERSION_ORIGINAL, not " + version);
  }
  return original_call(i, reinterpret_cast<Original>(function));
}

/// output_to_operand_aliasing: the function is given the result's memory for the operand, with the
/// operand in it.
StepFunction with_aliases(const Instruction& i, StepFunction function) {
  struct Pair {
    size_t operand, result, bytes;
  };
  std::vector<Pair> pairs;
  std::vector<size_t> first;  // number of each operand's first leaf
  size_t leaf = 0;
  for (const Instruction* o : i.operands()) {
    first.push_back(leaf);
    leaf += static_cast<size_t>(leaf_count(o->shape));
  }
  const size_t operands = leaf, all = leaf + static_cast<size_t>(leaf_count(i.shape));
  for (const Alias& a : i.attrs.output_to_operand_aliasing) {
    auto operand = static_cast<size_t>(a.operand);
    const Instruction* o = i.operand(operand);
    size_t from = first[operand] + static_cast<size_t>(leaf_at(o->shape, a.operand_index));
    size_t to = operands + static_cast<size_t>(leaf_at(i.shape, a.output_index));
    const Shape* shape = leaves(i.shape).at(to - operands);
    pairs.push_back({from, to, static_cast<size_t>(physical_size(*shape))});
  }
  if (pairs.empty()) return function;
  return [=](const StepCall& call) {
    std::vector<void*> buffers(call.buffers, call.buffers + all);
    for (const Pair& p : pairs) {
      std::memcpy(buffers[p.result], buffers[p.operand], p.bytes);
      buffers[p.operand] = buffers[p.result];
    }
    StepCall inner = call;
    inner.buffers = buffers.data();
    function(inner);
  };
}

}  // namespace

StepFunction custom_call_step(const Instruction& i) { return with_aliases(i, find_call(i)); }

}  // namespace hlojit
