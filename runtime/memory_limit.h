// How much memory this process may have: the machine's, or what its control groups leave it.
#pragma once

#include <cstddef>
#include <string>

namespace hlojit {

/// In bytes; read once. Asking for more must fail at once instead of being granted by an
/// overcommitting kernel and killed later.
size_t memory_limit();

/// In bytes: what this process has touched and still holds, the allocator's and the caller's memory included.
size_t resident_memory();
/// In bytes: what this process has asked for as memory of its own, touched or not.
size_t reserved_memory();

/// The smallest limit of the control groups (version 1 or 2) that `membership` (the text of
/// /proc/self/cgroup) names, and of those above them, in the tree at `root`; SIZE_MAX if none has one.
size_t cgroup_memory_limit(const std::string& membership, const std::string& root);

}  // namespace hlojit
