// See bundle.h. A serialised executable is a line that names the version, then texts behind their sizes: the
// options that change code, the program, the bundle.
#include "runtime/bundle.h"

#include <utility>

#include "codegen/number_bytes.h"
#include "compiler/text/printer.h"
#include "hlojit/version.h"
#include "runtime/cache.h"
#include "runtime/executable.h"

namespace hlojit {
namespace {

using codegen::put_number;
using codegen::put_text;
using codegen::take_number;
using codegen::take_text;

constexpr std::string_view kMark = "hlojit executable " HLOJIT_VERSION "\n";

std::string pack_options(const Options& o) {
  std::string out;
  put_text(out, o.isa);
  for (int64_t n : {int64_t{o.strict}, int64_t{o.effort}, int64_t{o.scatter_oob_window}, o.replicas, o.partitions,
                    int64_t{o.vector_bytes}, int64_t{o.smaller}, std::ssize(o.disabled_passes)})
    put_number(out, n);
  for (const std::string& pass : o.disabled_passes) put_text(out, pass);
  return out;
}

void unpack_options(std::string_view in, Options& o) {
  o.isa = take_text(in);
  o.strict = take_number(in) != 0;
  o.effort = static_cast<int>(take_number(in));
  o.scatter_oob_window = take_number(in) != 0;
  o.replicas = take_number(in);
  o.partitions = take_number(in);
  o.vector_bytes = static_cast<int>(take_number(in));
  o.smaller = static_cast<int>(take_number(in));
  o.disabled_passes.clear();
  for (int64_t n = take_number(in); n > 0; --n) o.disabled_passes.emplace_back(take_text(in));
}

}  // namespace

Bundle::Bundle(std::string_view packed) {
  while (!packed.empty()) {
    std::string key(take_text(packed)), entry(take_text(packed));
    if (unpack_entry(key, entry)) entries_.emplace(std::move(key), std::move(entry));
  }
}

std::string Bundle::pack() const {
  std::lock_guard lock(mutex_);
  std::string out;
  for (const auto& [key, entry] : entries_) {
    put_text(out, key);
    put_text(out, entry);
  }
  return out;
}

std::optional<std::string> Bundle::load(const std::string& key) {
  std::lock_guard lock(mutex_);
  auto found = entries_.find(key);
  return found == entries_.end() ? std::nullopt : unpack_entry(key, found->second);
}
void Bundle::store(const std::string& key, const std::string& bytes) {
  std::lock_guard lock(mutex_);
  entries_[key] = pack_entry(key, bytes);
}
bool Bundle::contains(const std::string& key) {
  std::lock_guard lock(mutex_);
  return entries_.contains(key);
}

std::string Executable::serialize() const {
  Bundle bundle;
  impl_->code.keep_in(bundle);
  std::string out(kMark);
  put_text(out, pack_options(impl_->options));
  put_text(out, to_text(impl_->source));
  put_text(out, bundle.pack());
  return out;
}

Executable load(std::string_view bytes, const Options& options) {
  if (!bytes.starts_with(kMark)) {
    throw Error(ErrorKind::kInput,
                "these are not the bytes of an executable that hlojit " HLOJIT_VERSION " serialised");
  }
  bytes.remove_prefix(kMark.size());
  Options o = options;
  unpack_options(take_text(bytes), o);
  ModulePtr module = parse(take_text(bytes));
  Bundle bundle(take_text(bytes));
  return compile_with(module, o, &bundle);
}

}  // namespace hlojit
