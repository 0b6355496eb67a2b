// A row is read once: an element that cannot beat the k-th best so far is passed over by vector
// compares, the others are collected, and when the collection is full it is cut to its k best. With
// values in random order some k log(n / k) elements are ever collected. A few best are kept in order instead, each
// one that belongs there put among them without a branch: then the bound is that of all elements so far.
#include "runtime/kernels/topk.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "runtime/kernels/integer_sort.h"
#include "runtime/kernels/sort_key_loops.h"
#include "runtime/kernels/sort_keys.h"

namespace hlojit {
namespace {

constexpr int64_t kPart = 1 << 16;
// Cutting the first few to k gives a bound early: of rows of 517 512 were collected before.
constexpr size_t kCollected = 64;
// Vectors sort so many faster than branches find the middle: the 50 best of 128 rows of 32000, on a Zen 4, 1.54 ms for
// 2.31.
constexpr size_t kSorted = 512;
// Up to so many are kept in order.
constexpr size_t kFew = 24;

struct Rows {
  int64_t count, length, k;
  bool largest;
};

/// Elements in the order they leave: `rank` ascending is best first, ties by place.
template <class Type>
class Selection {
 public:
  using Key = typename Type::Key;
  using Packed = std::conditional_t<sizeof(Key) == 8, Wide, uint64_t>;

  explicit Selection(const Rows& rows) : k_(static_cast<size_t>(rows.k)), flip_(rows.largest ? ~Key{0} : Key{0}) {
    full_ = std::max<size_t>(2 * k_, kCollected);
    if (!few()) best_.reserve(full_);
  }

  /// Of this row from now on.
  void start(const Key* row) {
    row_ = row;
    limit_ = std::numeric_limits<Key>::max();
    bounded_ = false;
    best_.clear();
    if (few()) best_.assign(k_, kLast);
  }

  void scan(int64_t begin, int64_t end) {
    int64_t at = begin;
    for (; at < end && !bounded_; at = std::min(at + kKeyStep, end)) take(at, std::min(at + kKeyStep, end));
    uint8_t below[kKeyStep];
    while (at < end && (at = next_below<Type>(row_, at, end, flip_, limit_, below)) + kKeyStep <= end) {
      for (uint64_t half = 0; half < kKeyStep; half += sizeof(uint64_t)) {
        uint64_t lanes;
        std::memcpy(&lanes, below + half, sizeof lanes);
        for (; lanes != 0; lanes &= lanes - 1) {
          const auto place = at + static_cast<int64_t>(half) + std::countr_zero(lanes) / 8;
          take(place, place + 1);
        }
      }
      at += kKeyStep;
    }
    take(at, end);
    cut();
  }

  void add(const Selection& other) {
    if (few())
      for (Packed p : other.best_) insert(p);
    else
      best_.insert(best_.end(), other.best_.begin(), other.best_.end());
  }

  /// The k best in order: values and places.
  void write(Key* values, int32_t* places) {
    cut();
    if (!std::is_sorted(best_.begin(), best_.end())) sort();  // not so if they are few, or cut by sorting
    for (size_t j = 0; j < k_; ++j) {
      int64_t place = place_of(best_[j]);
      values[j] = row_[place];
      places[j] = static_cast<int32_t>(place);
    }
  }

 private:
  Key rank(int64_t place) const { return static_cast<Key>(Type::to_key(row_[place]) ^ flip_); }
  static constexpr Packed packed(Key rank, int64_t place) {
    if constexpr (std::is_same_v<Packed, Wide>)
      return {static_cast<uint64_t>(place), rank};
    else
      return static_cast<uint64_t>(rank) << 32 | static_cast<uint64_t>(place);
  }
  static int64_t place_of(Packed p) {
    if constexpr (std::is_same_v<Packed, Wide>)
      return static_cast<int64_t>(p.low);
    else
      return static_cast<int64_t>(p & 0xffff'ffff);
  }
  static Key rank_of(Packed p) {
    if constexpr (std::is_same_v<Packed, Wide>)
      return p.high;
    else
      return static_cast<Key>(p >> 32);
  }

  bool few() const { return k_ <= kFew; }

  void take(int64_t begin, int64_t end) {
    if (few()) return insert(begin, end);
    for (int64_t j = begin; j < end; ++j) offer(j);
  }

  // Places ascend, so an element equal to the k-th best loses to it.
  void offer(int64_t place) {
    Key r = rank(place);
    if (bounded_ && r >= limit_) return;
    best_.push_back(packed(r, place));
    if (best_.size() >= full_) cut();
  }

  // The few best are in order, behind them what comes after every element.
  void insert(Packed p) {
    for (size_t j = k_ - 1; j > 0; --j) best_[j] = std::min(best_[j], std::max(best_[j - 1], p));
    best_[0] = std::min(best_[0], p);
  }
  void insert(int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; ++j) {
      const Packed p = packed(rank(j), j);
      if (p < best_.back()) insert(p);
    }
    limit_ = rank_of(best_.back());
    bounded_ = best_.back() < kLast;
  }

  // (Vectors take longer to begin than 41 elements take.)
  void sort() {
    if (best_.size() > kCollected)
      sort_integers(best_.data(), best_.size());
    else
      std::sort(best_.begin(), best_.end());
  }

  void cut() {
    if (few() || best_.size() < k_) return;
    if (best_.size() > kCollected && best_.size() <= kSorted)
      sort();
    else
      std::nth_element(best_.begin(), best_.begin() + static_cast<std::ptrdiff_t>(k_ - 1), best_.end());
    best_.resize(k_);
    limit_ = rank_of(best_[k_ - 1]);
    bounded_ = true;
  }

  // Comes after every element: no place is as high.
  static constexpr Packed kLast = packed(std::numeric_limits<Key>::max(), int64_t{0xffff'ffff});

  const Key* row_ = nullptr;
  size_t k_, full_;
  Key flip_;
  Key limit_ = std::numeric_limits<Key>::max();
  bool bounded_ = false;
  std::vector<Packed> best_;
};

/// One row in parts: each selects k, of which the best k are taken.
template <class Type>
void in_parts(ThreadPool& pool, const Rows& rows, const typename Type::Key* row, typename Type::Key* values,
              int32_t* places) {
  const int64_t parts = (rows.length + kPart - 1) / kPart;
  std::vector<Selection<Type>> selections(static_cast<size_t>(parts), Selection<Type>(rows));
  run_chunks(pool, parts, rows.length / 4, [&](int64_t p) {
    Selection<Type>& part = selections[static_cast<size_t>(p)];
    part.start(row);
    part.scan(rows.length * p / parts, rows.length * (p + 1) / parts);
  });
  for (size_t p = 1; p < selections.size(); ++p) selections[0].add(selections[p]);
  selections[0].write(values, places);
}

template <class Type>
StepFunction select(Rows rows) {
  return [=](const StepCall& call) {
    using Key = typename Type::Key;
    const auto* in = static_cast<const Key*>(call.buffers[0]);
    auto* values = static_cast<Key*>(call.buffers[1]);
    auto* places = static_cast<int32_t*>(call.buffers[2]);
    // Parts of one row select k each: worth it while that is little beside reading them.
    if (rows.count < call.pool.threads() && rows.length >= 2 * kPart && rows.k <= kPart / 8) {
      for (int64_t r = 0; r < rows.count; ++r)
        in_parts<Type>(call.pool, rows, in + r * rows.length, values + r * rows.k, places + r * rows.k);
      return;
    }
    int64_t group = std::max<int64_t>(1, 8192 / std::max<int64_t>(1, rows.length));
    // As measured: few elements of a row are better than the k so far.
    const int64_t row_ns = rows.length / 4 + 20 * rows.k;
    run_chunks(call.pool, (rows.count + group - 1) / group, rows.count * row_ns, [&](int64_t c) {
      Selection<Type> selection(rows);
      for (int64_t r = c * group; r < std::min(rows.count, (c + 1) * group); ++r) {
        selection.start(in + r * rows.length);
        selection.scan(0, rows.length);
        selection.write(values + r * rows.k, places + r * rows.k);
      }
    });
  };
}

}  // namespace

StepFunction top_k_step(const Instruction& top_k) {
  const Shape& shape = top_k.operand(0)->shape;
  Rows rows{.count = 0, .length = shape.dims.back(), .k = top_k.attrs.k, .largest = top_k.attrs.largest};
  if (rows.k == 0 || shape.element_count() == 0) return [](const StepCall&) {};
  rows.count = shape.element_count() / rows.length;
  if (rows.length > std::numeric_limits<int32_t>::max()) {
    throw Error(ErrorKind::kUnsupported, top_k.location, "topk: places beyond 32 bits");
  }
  StepFunction step;
  if (!with_key_type(shape.type, [&](auto key) { step = select<decltype(key)>(rows); })) {
    throw Error(ErrorKind::kUnsupported, top_k.location,
                std::string("topk of ") + std::string(dtype_name(shape.type)) + " is not compiled yet");
  }
  return step;
}

}  // namespace hlojit
