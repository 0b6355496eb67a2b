// See fenced.h.
#include "tools/fenced.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "layout/divide.h"
#include "layout/error.h"

namespace hlojit::tools {

Fenced::Fenced(const Buffer& array, bool at_end) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE)), bytes = array.size_bytes();
  const auto inside = static_cast<size_t>(round_up(static_cast<int64_t>(bytes), static_cast<int64_t>(page)));
  const size_t all = inside + 2 * page;
  void* pages = mmap(nullptr, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) throw Error(ErrorKind::kFailed, "no memory between fences");
  pages_ = std::shared_ptr<void>(pages, [all](void* p) { munmap(p, all); });
  char* first = static_cast<char*>(pages) + page;
  if (inside > 0) mprotect(first, inside, PROT_READ | PROT_WRITE);
  if (at_end) first += inside - bytes;
  if (bytes > 0) std::memcpy(first, array.raw(), bytes);
  buffer_ = Buffer::borrow(first, array.shape());
}

std::vector<Buffer> between_fences(const Executable& executable, std::vector<Buffer> arguments, bool at_end,
                                   std::vector<Fenced>& fences) {
  const std::vector<int64_t>& donors = executable.donors();
  for (size_t k = 0; k < arguments.size(); ++k) {
    if (std::ranges::find(donors, static_cast<int64_t>(k)) == donors.end())
      arguments[k] = fences.emplace_back(arguments[k], at_end).buffer();
  }
  return arguments;
}

}  // namespace hlojit::tools
