// See memory_limit.h.
#include "runtime/memory_limit.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <sstream>

namespace hlojit {
namespace {

/// The number in a file; SIZE_MAX for "max", for no file and for no number.
size_t number_in(const std::string& path) {
  std::ifstream in(path);
  size_t n = 0;
  return in >> n ? n : SIZE_MAX;
}

/// Field `k` of /proc/self/statm (from 0: size, resident, shared, text, library, data), in bytes.
size_t pages_of_process(int k) {
  std::ifstream in("/proc/self/statm");
  size_t pages = 0;
  for (int n = 0; n <= k; ++n) in >> pages;
  return pages * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

size_t cgroup_memory_limit(const std::string& membership, const std::string& root) {
  size_t least = SIZE_MAX;
  std::istringstream lines(membership);
  for (std::string line; std::getline(lines, line);) {
    // ID:CONTROLLERS:PATH; version 2 has no controllers.
    size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) continue;
    std::string controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
    bool unified = controllers.empty();
    if (!unified && ("," + controllers + ",").find(",memory,") == std::string::npos) continue;
    std::string tree = unified ? root : root + "/memory";
    const char* file = unified ? "/memory.max" : "/memory.limit_in_bytes";
    while (path.ends_with('/')) path.pop_back();
    for (;; path.resize(path.rfind('/'))) {
      least = std::min(least, number_in(tree + path + file));
      if (path.rfind('/') == path.npos) break;
    }
  }
  return least;
}

size_t memory_limit() {
  static const size_t bytes = [] {
    std::ifstream in("/proc/self/cgroup");
    std::string membership(std::istreambuf_iterator<char>(in), {});
    size_t physical = static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
    return std::min(physical, cgroup_memory_limit(membership, "/sys/fs/cgroup"));
  }();
  return bytes;
}

size_t resident_memory() { return pages_of_process(1); }
size_t reserved_memory() { return pages_of_process(5); }

}  // namespace hlojit
