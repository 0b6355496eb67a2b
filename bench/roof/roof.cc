// How the roof is measured: threads that start each pass together, each on its own slice of every
// stream, the same slice each time, so that what fits in a core's cache is measured there. The best
// pass counts: noise only ever makes a pass slower.
#include "bench/roof/roof.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <thread>
#include <vector>

#include "bench/roof/kernels.h"

namespace hlojit::roof {
namespace {

using Clock = std::chrono::steady_clock;

// Above this, more bytes measure the same memory.
constexpr int64_t kMostBytes = int64_t{512} << 20;
// A pass is long enough that starting it does not count.
constexpr double kPassSeconds = 100e-6;
constexpr size_t kPageBytes = size_t{2} << 20;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Threads meet here; they spin, since waking one up costs more than a pass. Gives way now and then,
// so that more threads than cores still finish.
class Barrier {
 public:
  explicit Barrier(int threads) : threads_(threads) {}

  void meet() {
    const int round = round_.load(std::memory_order_acquire);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
      arrived_.store(0, std::memory_order_relaxed);
      round_.store(round + 1, std::memory_order_release);
      return;
    }
    for (int spins = 0; round_.load(std::memory_order_acquire) == round; ++spins) {
      if (spins % 4096 == 4095) std::this_thread::yield();
    }
  }

 private:
  const int threads_;
  std::atomic<int> arrived_{0};
  std::atomic<int> round_{0};
};

struct Pass {
  size_t repeats;
  double seconds;  // on one thread
};

// A pass of `work` that takes kPassSeconds on one thread. The least of three counts, so that being interrupted does
// not look like long work.
Pass pass_of(const std::function<void(int, size_t)>& work) {
  for (size_t repeats = 1;;) {
    double taken = INFINITY;
    for (int k = 0; k < 3; ++k) {
      const auto start = Clock::now();
      work(0, repeats);
      taken = std::min(taken, seconds_since(start));
    }
    if (taken >= kPassSeconds) return {repeats, taken};
    const double more = std::min(64.0, 1.5 * kPassSeconds / std::max(taken, 1e-8));
    repeats = std::max(repeats + 1, static_cast<size_t>(static_cast<double>(repeats) * more));
  }
}

// Least seconds of a pass of work(thread, repeats) on all threads, over about `budget` seconds, divided by the repeats.
// A pass begins with the first of them: one that was kept from its core meanwhile works alone after the others.
// Where other work keeps the threads from running together, which a pass slower than one thread after the other
// tells, it tries for longer.
double best_pass(int threads, double budget, const std::function<void(int, size_t)>& work) {
  const auto [repeats, alone] = pass_of(work);
  const double disturbed = 1.2 * threads * alone / static_cast<double>(repeats);
  Barrier barrier(threads);
  std::atomic<bool> over{false};
  std::vector<std::thread> others;
  std::vector<Clock::time_point> starts(static_cast<size_t>(threads));
  const auto timed_work = [&, repeats = repeats](int t) {
    starts[static_cast<size_t>(t)] = Clock::now();
    work(t, repeats);
  };
  for (int t = 1; t < threads; ++t) {
    others.emplace_back([&, t] {
      for (;;) {
        barrier.meet();
        if (over) return;
        timed_work(t);
        barrier.meet();
      }
    });
  }

  const auto begin = Clock::now();
  double best = INFINITY;
  for (int pass = 0; pass < 5 || seconds_since(begin) < (best > disturbed ? 20 * budget : budget); ++pass) {
    barrier.meet();
    timed_work(0);
    barrier.meet();
    if (pass > 0)
      best = std::min(best, seconds_since(*std::ranges::min_element(starts)) / static_cast<double>(repeats));
  }
  over = true;
  barrier.meet();
  for (std::thread& other : others) other.join();
  return best;
}

// Memory for the streams, in huge pages if the system gives them.
class Arena {
 public:
  explicit Arena(size_t bytes) : bytes_((bytes + kPageBytes - 1) / kPageBytes * kPageBytes) {
    void* memory =
        mmap(nullptr, bytes_ + kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    mapped_ = static_cast<char*>(memory);
    const size_t over = reinterpret_cast<uintptr_t>(mapped_) % kPageBytes;
    data_ = mapped_ + (over == 0 ? 0 : kPageBytes - over);
    madvise(data_, bytes_, MADV_HUGEPAGE);
    std::memset(data_, 0, bytes_);
  }
  ~Arena() { munmap(mapped_, bytes_ + kPageBytes); }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  char* data() const { return data_; }

 private:
  size_t bytes_;
  char* mapped_;
  char* data_;
};

struct Slices {
  std::vector<std::vector<const char*>> reads;  // per thread, per stream
  std::vector<std::vector<char*>> writes;
};

// The pair of stream counts whose share of reads is nearest; among equals the fewest streams.
std::pair<int, int> nearest_mix(int64_t bytes_read, int64_t bytes_written) {
  const double share = static_cast<double>(bytes_read) / static_cast<double>(bytes_read + bytes_written);
  std::pair<int, int> best{1, 1};
  double error = 2;
  for (int streams = 1; streams <= kMaxReads + kMaxWrites; ++streams) {
    for (int reads = 0; reads <= streams; ++reads) {
      const int writes = streams - reads;
      if (reads > kMaxReads || writes > kMaxWrites) continue;
      const double off = std::abs(share - static_cast<double>(reads) / streams);
      if (off < error - 1e-9) {
        error = off;
        best = {reads, writes};
      }
    }
  }
  return best;
}

}  // namespace

Bandwidth measure_bandwidth(int reads, int writes, int64_t bytes, int threads, double budget_seconds) {
  const int streams = reads + writes;
  const auto total = static_cast<size_t>(std::clamp<int64_t>(bytes, 1, kMostBytes));
  const size_t blocks = std::max<size_t>(1, total / kBlockBytes / static_cast<size_t>(streams * threads));
  const size_t slice = blocks * kBlockBytes;
  // Streams that start at the same place of a page would fight for the same sets of the first
  // cache.
  const size_t stream_bytes = slice * static_cast<size_t>(threads);
  const size_t pitch = (stream_bytes + 4095) / 4096 * 4096 + 832;
  const Arena arena(pitch * static_cast<size_t>(streams));

  Slices slices;
  for (int t = 0; t < threads; ++t) {
    slices.reads.emplace_back();
    slices.writes.emplace_back();
    for (int k = 0; k < streams; ++k) {
      char* at = arena.data() + pitch * static_cast<size_t>(k) + slice * static_cast<size_t>(t);
      if (k < reads) {
        slices.reads.back().push_back(at);
      } else {
        slices.writes.back().push_back(at);
      }
    }
  }

  const double moved = static_cast<double>(stream_bytes) * streams;
  const auto rate = [&](StreamKernel kernel) {
    return moved / best_pass(threads, budget_seconds, [&](int t, size_t repeats) {
             for (size_t i = 0; i < repeats; ++i) {
               kernel(slices.reads[t].data(), slices.writes[t].data(), slice);
             }
           });
  };
  Bandwidth result{reads, writes, 0, 0};
  result.normal = rate(kernels().normal[reads][writes]);
  if (writes > 0) result.streaming = rate(kernels().streaming[reads][writes]);
  return result;
}

double measure_flops(DType type, int threads, double budget_seconds) {
  const KernelTable& table = kernels();
  const ComputeEntry entry = type == DType::kF64                        ? table.f64
                             : type == DType::kBF16                     ? table.bf16
                             : type == DType::kS8 || type == DType::kU8 ? table.s8
                                                                        : table.f32;
  constexpr size_t kRounds = 1000;
  const double seconds = best_pass(threads, budget_seconds, [&](int, size_t repeats) { entry.run(repeats * kRounds); });
  return entry.operations_per_round * kRounds * threads / seconds;
}

double Roof::bandwidth(int64_t bytes_read, int64_t bytes_written) {
  if (bytes_read + bytes_written <= 0) return 0;
  double& known = bandwidth_[{bytes_read, bytes_written}];
  if (known == 0) {
    const auto [reads, writes] = nearest_mix(bytes_read, bytes_written);
    known = measure_bandwidth(reads, writes, bytes_read + bytes_written, threads_).best();
  }
  return known;
}

double Roof::flops(DType type) {
  double& known = flops_[type];
  if (known == 0) known = measure_flops(type, threads_);
  return known;
}

double Roof::seconds(int64_t bytes_read, int64_t bytes_written, double operations, DType type) {
  double least = 0;
  const double rate = bandwidth(bytes_read, bytes_written);
  if (rate > 0) least = static_cast<double>(bytes_read + bytes_written) / rate;
  if (operations > 0) least = std::max(least, operations / flops(type));
  return least;
}

const char* isa() { return kernels().isa; }

void limit_to_avx2() { kernels_limited_to_avx2() = true; }

}  // namespace hlojit::roof
