// Compiled code kept on disk, so that a program seen before skips emitting and code generation.
//
// The passes still run: they give shapes and buffers, and what they made is the key, hashed together
// with everything else that code depends on (options, instruction set, this very build of the
// library). An entry is a file of its own named by its key, written beside its place and renamed into
// it, so that processes that share a folder never see half of one. An entry that does not check out is
// treated as absent and written anew; a folder that cannot be used costs the caching, nothing else.
// Either is seen in the phases: "cache" (a hit), "cache miss", "cache unusable: why".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/lower.h"

namespace hlojit {

struct Digest;

/// Everything of a compiled module that cannot be had from its plan.
struct CompiledCode {
  std::vector<std::string> objects;  ///< object files, to be linked
  int64_t arena_bytes = 0;
  int64_t kernels = 0;
};

/// Code for what plan() made: from the cache if options.cache_dir is set and holds it, else emitted
/// and compiled (and put there). Appends the phases to planned.times.
CompiledCode compile_planned(Lowered& planned, const Options& options, const codegen::Target& target);

/// An entry as bytes and back; false if the bytes are not the whole of an entry of that key.
std::string pack_entry(const Digest& key, const CompiledCode& code);
bool unpack_entry(const Digest& key, std::string_view bytes, CompiledCode& code);

}  // namespace hlojit
