#include "runtime/pool.h"

#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cstdlib>
#include <map>
#include <mutex>
#include <vector>

#include <fmt/format.h>

#include "layout/error.h"

namespace hlojit {
namespace {

constexpr size_t kHuge = size_t{2} << 20;
constexpr size_t kSlack = 64;

// Classes at 1, 1.25, 1.5, 1.75 times a power of two: at most a quarter wasted.
size_t size_class(size_t bytes) {
  if (bytes <= 256) return 256;
  size_t quarter = std::bit_floor(bytes) / 4;
  return (bytes + quarter - 1) / quarter * quarter;
}

// What the machine could give at most; asking for more must fail at once instead of being
// granted by an overcommitting kernel and killed later.
size_t physical_memory() {
  static const size_t bytes = static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

class Pool {
 public:
  void* take(size_t size) {
    {
      std::lock_guard lock(mutex_);
      auto it = free_.find(size);
      if (it != free_.end() && !it->second.empty()) {
        void* p = it->second.back();
        it->second.pop_back();
        idle_ -= size;
        return p;
      }
    }
    void* p = fresh(size);
    if (p) return p;
    release_all();
    return fresh(size);
  }

  void give(void* p, size_t size) noexcept {
    std::lock_guard lock(mutex_);
    if (idle_ + size > physical_memory() / 4) {
      std::free(p);
      return;
    }
    try {
      free_[size].push_back(p);
      idle_ += size;
    } catch (...) {
      std::free(p);
    }
  }

  size_t idle() {
    std::lock_guard lock(mutex_);
    return idle_;
  }

 private:
  static void* fresh(size_t size) {
    if (size > physical_memory()) return nullptr;
    size_t align = size >= kHuge ? kHuge : 64;
    void* p = std::aligned_alloc(align, (size + align - 1) / align * align);
    if (p && size >= kHuge) madvise(p, size, MADV_HUGEPAGE);
    return p;
  }

  void release_all() {
    std::lock_guard lock(mutex_);
    for (auto& [size, blocks] : free_) {
      for (void* p : blocks) std::free(p);
      blocks.clear();
    }
    idle_ = 0;
  }

  std::mutex mutex_;
  std::map<size_t, std::vector<void*>> free_;
  size_t idle_ = 0;
};

// Never destroyed: buffers may outlive static destruction.
Pool& pool() {
  static Pool* p = new Pool;
  return *p;
}

}  // namespace

std::shared_ptr<void> pool_allocate(size_t bytes) {
  auto short_of = [&] {
    return Error(ErrorKind::kFailed, fmt::format("out of memory: {} bytes asked for", bytes));
  };
  if (bytes > physical_memory()) throw short_of();
  size_t size = size_class(bytes + kSlack);
  void* p = pool().take(size);
  if (!p) throw short_of();
  return std::shared_ptr<void>(p, [size](void* q) { pool().give(q, size); });
}

size_t pool_idle_bytes() { return pool().idle(); }

}  // namespace hlojit
