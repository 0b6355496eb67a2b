// See pool.h.
#include "runtime/pool.h"

#include <sys/mman.h>

#include <bit>
#include <cstdlib>
#include <map>
#include <mutex>
#include <vector>

#include <fmt/format.h>
#include <oneapi/tbb/mutex.h>

#include "layout/error.h"
#include "runtime/memory_limit.h"

namespace hlojit {
namespace {

constexpr size_t kHuge = size_t{2} << 20;
constexpr size_t kSlack = 64;
// From this size on a new block must also fit beside what others in the process hold: looking takes 20 us, touching
// so much fresh memory 20 ms.
constexpr size_t kLarge = size_t{64} << 20;

// Classes at 1, 1.25, 1.5, 1.75 times a power of two: at most a quarter wasted.
size_t size_class(size_t bytes) {
  if (bytes <= 256) return 256;
  size_t quarter = std::bit_floor(bytes) / 4;
  return (bytes + quarter - 1) / quarter * quarter;
}

// A block that nobody took while this many were returned goes back to the system.
constexpr uint64_t kMaxAge = 1000;
constexpr uint64_t kSweepEvery = 64;

class Pool {
 public:
  /// nullptr if that is more than the process may have, or gets.
  void* take(size_t size) {
    {
      std::lock_guard lock(mutex_);
      auto it = free_.find(size);
      if (it != free_.end() && !it->second.empty()) {
        void* p = it->second.back().memory;
        it->second.pop_back();
        idle_ -= size;
        in_use_ += size;
        return p;
      }
      if (!fits(size, in_use_)) return nullptr;
      if (!fits(size, in_use_ + idle_) || !fits_beside_others(size)) release(UINT64_MAX);
      if (!fits_beside_others(size)) return nullptr;
      in_use_ += size;
    }
    void* p = fresh(size);
    if (p) return p;
    release_idle();
    p = fresh(size);
    if (p) return p;
    std::lock_guard lock(mutex_);
    in_use_ -= size;
    return nullptr;
  }

  void give(void* p, size_t size) noexcept {
    std::lock_guard lock(mutex_);
    in_use_ -= size;
    if (++now_ % kSweepEvery == 0 && now_ > kMaxAge) release(now_ - kMaxAge);
    if (idle_ + size > memory_limit() / 4) {
      std::free(p);
      return;
    }
    try {
      free_[size].push_back({p, now_});
      idle_ += size;
    } catch (...) {
      std::free(p);
    }
  }

  size_t idle() {
    std::lock_guard lock(mutex_);
    return idle_;
  }

  size_t release_idle() {
    std::lock_guard lock(mutex_);
    return release(UINT64_MAX);
  }

 private:
  struct Block {
    void* memory;
    uint64_t since;
  };

  static bool fits(size_t size, size_t beside) { return size <= memory_limit() && beside <= memory_limit() - size; }
  static bool fits_beside_others(size_t size) { return size < kLarge || fits(size, resident_memory()); }

  static void* fresh(size_t size) {
    size_t align = size >= kHuge ? kHuge : 64;
    void* p = std::aligned_alloc(align, (size + align - 1) / align * align);
    if (p && size >= kHuge) madvise(p, size, MADV_HUGEPAGE);
    return p;
  }

  /// Frees what has lain idle since before `moment`; the mutex is held. Returns the bytes.
  size_t release(uint64_t moment) noexcept {
    size_t before = idle_;
    for (auto& [size, blocks] : free_) {
      auto young = blocks.begin();  // the oldest come first
      for (; young != blocks.end() && young->since < moment; ++young) {
        std::free(young->memory);
        idle_ -= size;
      }
      blocks.erase(blocks.begin(), young);
    }
    return before - idle_;
  }

  tbb::mutex mutex_;  // tasks that take blocks at once: one that sleeps for the other takes 20 us to wake
  std::map<size_t, std::vector<Block>> free_;
  size_t idle_ = 0, in_use_ = 0;
  uint64_t now_ = 0;  // blocks returned so far
};

// Never destroyed: buffers may outlive static destruction.
Pool& pool() {
  static Pool* p = new Pool;
  return *p;
}

}  // namespace

std::shared_ptr<void> pool_allocate(size_t bytes) {
  auto short_of = [&] { return OutOfMemory(fmt::format("out of memory: {} bytes asked for", bytes)); };
  if (bytes > memory_limit()) throw short_of();
  size_t size = size_class(bytes + kSlack);
  void* p = pool().take(size);
  if (!p) throw short_of();
  return std::shared_ptr<void>(p, [size](void* q) { pool().give(q, size); });
}

size_t pool_idle_bytes() { return pool().idle(); }
size_t pool_release() { return pool().release_idle(); }

}  // namespace hlojit
