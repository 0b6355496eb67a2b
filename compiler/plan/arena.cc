// See arena.h.
#include "compiler/plan/arena.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "layout/error.h"

namespace hlojit {
namespace {

constexpr size_t kMostBySize = 500;

/// Gaps of the arena, to be found by size and joined with their neighbours.
class Arena {
 public:
  int64_t allocate(int64_t size) {
    auto fit = by_size_.lower_bound({size, 0});
    if (fit == by_size_.end()) {
      // Grow, from the last gap if it touches the end.
      int64_t offset = end_;
      if (!gaps_.empty() && gaps_.rbegin()->first + gaps_.rbegin()->second == end_) {
        offset = gaps_.rbegin()->first;
        erase(offset);
      }
      end_ = add_bytes(offset, size);
      return offset;
    }
    auto [gap, offset] = *fit;
    erase(offset);
    if (gap > size) insert(offset + size, gap - size);
    return offset;
  }

  void release(int64_t offset, int64_t size) {
    auto after = gaps_.lower_bound(offset);
    if (after != gaps_.end() && after->first == offset + size) {
      size += after->second;
      erase(after->first);
    }
    auto before = gaps_.lower_bound(offset);
    if (before != gaps_.begin() && std::prev(before)->first + std::prev(before)->second == offset) {
      --before;
      size += before->second;
      offset = before->first;
      erase(offset);
    }
    insert(offset, size);
  }

  int64_t bytes() const { return end_; }

 private:
  void insert(int64_t offset, int64_t size) {
    gaps_[offset] = size;
    by_size_.insert({size, offset});
  }
  void erase(int64_t offset) {
    auto at = gaps_.find(offset);
    by_size_.erase({at->second, offset});
    gaps_.erase(at);
  }

  std::map<int64_t, int64_t> gaps_;  // offset -> size
  std::set<std::pair<int64_t, int64_t>> by_size_;
  int64_t end_ = 0;
};

/// As they come. `least`: what live at once, at most.
int64_t place_by_time(std::span<Tenant> tenants, int64_t& least) {
  Arena arena;
  std::multimap<int64_t, const Tenant*> ends;
  int64_t live = 0;
  for (Tenant& t : tenants) {
    while (!ends.empty() && ends.begin()->first < t.begin) {
      const Tenant& over = *ends.begin()->second;
      arena.release(over.offset, over.size);
      live -= over.size;
      ends.erase(ends.begin());
    }
    t.offset = arena.allocate(t.size);
    ends.emplace(t.end, &t);
    live += t.size;
    least = std::max(least, live);
  }
  return arena.bytes();
}

/// The largest first.
int64_t place_by_size(std::span<Tenant> tenants) {
  std::vector<Tenant*> order, placed;
  for (Tenant& t : tenants) order.push_back(&t);
  std::ranges::stable_sort(order, std::greater(), &Tenant::size);
  int64_t bytes = 0;
  for (Tenant* t : order) {
    t->offset = 0;
    // Those placed lie in the order of their offsets.
    for (const Tenant* other : placed) {
      if (other->end < t->begin || t->end < other->begin) continue;
      if (t->offset + t->size <= other->offset) break;
      t->offset = std::max(t->offset, other->offset + other->size);
    }
    bytes = std::max(bytes, t->offset + t->size);
    placed.insert(std::ranges::upper_bound(placed, t->offset, {}, &Tenant::offset), t);
  }
  return bytes;
}

}  // namespace

int64_t add_bytes(int64_t a, int64_t b) {
  int64_t sum;
  if (__builtin_add_overflow(a, b, &sum)) {
    throw Error(ErrorKind::kFailed, "the module's values need more memory than there are addresses");
  }
  return sum;
}

int64_t place_tenants(std::span<Tenant> tenants) {
  int64_t least = 0;
  const int64_t by_time = place_by_time(tenants, least);
  if (by_time == least || tenants.size() > kMostBySize) return by_time;
  std::vector<Tenant> other(tenants.begin(), tenants.end());
  const int64_t by_size = place_by_size(other);
  if (by_size >= by_time) return by_time;
  std::ranges::copy(other, tenants.begin());
  return by_size;
}

}  // namespace hlojit
