// The work is either split over lines or, for few long ones, within a line. Both give the same
// bits: what is sorted are integers that differ wherever order matters.
#include "runtime/kernels/sort.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>

#include "compiler/analysis/sort_order.h"
#include "runtime/kernels/integer_sort.h"
#include "runtime/kernels/row_sorts.h"
#include "runtime/kernels/sort_key_loops.h"
#include "runtime/pool.h"

namespace hlojit {
namespace {

constexpr int64_t kLongLine = 1 << 16;  // elements from which a line is worth splitting
constexpr int64_t kPiece = 1 << 15;

/// The arrays of a sort as lines: contiguous ones of `length` elements, `count` of them.
struct Lines {
  int64_t count = 0, length = 0;
  std::vector<int64_t> widths;  // bytes of an element of each operand

  explicit Lines(const Instruction& sort) {
    const Shape& shape = sort.operand(0)->shape;
    length = shape.dims[static_cast<size_t>(sort.attrs.dimensions.at(0))];
    count = length == 0 ? 0 : shape.element_count() / length;
    for (const Instruction* o : sort.operands()) widths.push_back(dtype_bytes(o->shape.type));
  }
  char* at(const StepCall& call, size_t buffer, int64_t line) const {
    return static_cast<char*>(call.buffers[buffer]) + line * length * widths[buffer % widths.size()];
  }
};

/// Runs on the calling thread, on lines that lie one behind the other.
struct Serial {
  template <class F>
  void pieces(int64_t n, F&& f) const {
    f(int64_t{0}, n);
  }
  template <class Key>
  Key* sort(Key* keys, Key*, int64_t n, int64_t count) const {
    if constexpr (!std::is_same_v<Key, Wide>) {
      if (sorts_in_columns<Key>(n, count)) {
        sort_rows(keys, n, count);
        return keys;
      }
    }
    for (int64_t k = 0; k < count; ++k) sort_integers(keys + k * n, static_cast<size_t>(n));
    return keys;
  }
};

/// Runs on the pool, on one line.
struct Parallel {
  ThreadPool& pool;
  template <class F>
  void pieces(int64_t n, F&& f) const {
    run_chunks(pool, (n + kPiece - 1) / kPiece, n, [&](int64_t c) { f(c * kPiece, std::min(n, (c + 1) * kPiece)); });
  }
  template <class Key>
  Key* sort(Key* keys, Key* scratch, int64_t n, int64_t) const {
    return sort_integers(pool, keys, scratch, static_cast<size_t>(n));
  }
};

/// Calls f(way, first, count) for all lines, count of them from the first on at a time, by the better of the two ways.
template <class F>
void each_line(ThreadPool& pool, const Lines& lines, F&& f) {
  if (lines.length >= kLongLine && lines.count < 4 * pool.threads()) {
    for (int64_t line = 0; line < lines.count; ++line) f(Parallel{pool}, line, 1);
    return;
  }
  int64_t group = std::max<int64_t>(1, 4096 / lines.length);
  int64_t cost = lines.count * lines.length * 5;
  run_chunks(pool, (lines.count + group - 1) / group, cost,
             [&](int64_t c) { f(Serial{}, c * group, std::min(lines.count - c * group, group)); });
}

// ---- keys alone
// --------------------------------------------------------------------------------------

/// Copies those of in[0, n) that `wanted` picks, in order, to `out`.
template <class Bits, class Wanted>
void collect(const Bits* in, int64_t n, Bits* out, Wanted&& wanted) {
  for (int64_t k = 0; k < n; ++k) {
    if (wanted(in[k])) *out++ = in[k];
  }
}

/// Lines whose results are their keys: mapped, sorted and mapped back in the result's memory. Where
/// the canonical form lost bits (-0, NaNs), these are put back in the order in which they came.
template <class Type, class Way>
void sort_keys(const Way& way, const SortKey& order, const typename Type::Key* in, typename Type::Key* out, int64_t n,
               int64_t count) {
  using Key = typename Type::Key;
  const Key flip = order.descending ? static_cast<Key>(~Key{0}) : Key{0};
  std::atomic<bool> exact = true;  // the keys hold all bits of the elements
  way.pieces(n * count, [&](int64_t begin, int64_t end) {
    if (make_keys<Type>(in + begin, out + begin, end - begin, order.canonical, flip) != 0) exact = false;
  });
  std::shared_ptr<void> scratch;
  Key* other = nullptr;
  if (std::is_same_v<Way, Parallel>) {
    scratch = pool_allocate(static_cast<size_t>(n) * sizeof(Key));
    other = static_cast<Key*>(scratch.get());
  }
  const Key* sorted = way.sort(out, other, n, count);
  std::vector<std::array<Key*, 2>> lost;  // of each line, where zeros and NaNs begin
  for (int64_t at = 0; !exact && at < n * count; at += n) {
    auto first = [&](Key bits) {
      const Key key = static_cast<Key>(Type::to_key(bits) ^ flip);
      return out + (std::lower_bound(sorted + at, sorted + at + n, key) - sorted);
    };
    lost.push_back({first(0), first(Type::kNan)});
  }
  way.pieces(n * count,
             [&](int64_t begin, int64_t end) { take_keys<Type>(sorted + begin, out + begin, end - begin, flip); });
  for (const auto& [zeros, nans] : lost) {
    collect(in, n, zeros, [](Key bits) { return Type::canonical(bits) == 0; });
    collect(in, n, nans, [](Key bits) { return Type::canonical(bits) == Type::kNan; });
    in += n;
  }
}

// ---- keys with what follows them
// ---------------------------------------------------------------------

/// A key above its place in the line: different for every element, so that any sort is stable.
template <class Packed>
Packed pack(uint64_t key, int64_t place, int bits) {
  if constexpr (std::is_same_v<Packed, Wide>) {
    return {static_cast<uint64_t>(place), key};
  } else {
    return static_cast<Packed>(key << bits | static_cast<uint64_t>(place));
  }
}
template <class Packed>
int64_t place_of(Packed packed, int bits) {
  if constexpr (std::is_same_v<Packed, Wide>) {
    return static_cast<int64_t>(packed.low);
  } else {
    return static_cast<int64_t>(packed & ((Packed{1} << bits) - 1));
  }
}

template <class Key, class Packed>
Key key_of(Packed packed, int bits) {
  if constexpr (std::is_same_v<Packed, Wide>) {
    return static_cast<Key>(packed.high);
  } else {
    return static_cast<Key>(packed >> bits);
  }
}

template <size_t kBytes, class Packed>
void gather(const Packed* from, int bits, const char* in, char* out, int64_t begin, int64_t end) {
  for (int64_t k = begin; k < end; ++k) std::memcpy(out + k * kBytes, in + place_of(from[k], bits) * kBytes, kBytes);
}

constexpr int64_t kNone = -1;

/// The lines of `call` that are sorted together.
struct Some {
  const Lines& lines;
  const StepCall& call;
  int64_t first, count;

  char* at(size_t buffer, int64_t k) const { return lines.at(call, buffer, first + k); }
};

/// Elements [begin, end) of line k of the results, from its packed keys; `keys`: of the operand of these bytes all bits
/// are in the keys.
template <class Type, class Packed>
void take_packed(const Some& some, const SortKey& order, const Packed* sorted, int bits, bool keys, int64_t k,
                 int64_t begin, int64_t end) {
  using Key = typename Type::Key;
  const Key flip = order.descending ? static_cast<Key>(~Key{0}) : Key{0};
  const std::vector<int64_t>& widths = some.lines.widths;
  for (size_t o = 0; o < widths.size(); ++o) {
    const char* source = some.at(o, k);
    char* target = some.at(o + widths.size(), k);
    if (keys && static_cast<int64_t>(o) == order.operand) {
      auto* out = reinterpret_cast<Key*>(target);
      for (int64_t e = begin; e < end; ++e)
        out[e] = Type::from_key(static_cast<Key>(key_of<Key>(sorted[e], bits) ^ flip));
      continue;
    }
    switch (widths[o]) {
      case 1: gather<1>(sorted, bits, source, target, begin, end); break;
      case 2: gather<2>(sorted, bits, source, target, begin, end); break;
      case 4: gather<4>(sorted, bits, source, target, begin, end); break;
      case 8: gather<8>(sorted, bits, source, target, begin, end); break;
      default: gather<16>(sorted, bits, source, target, begin, end); break;
    }
  }
}

/// By `in`, lines of operand order.operand (kNone: of what is made of several).
template <class Type, class Packed, class Way>
void sort_packed(const Way& way, const SortKey& order, const typename Type::Key* in, const Some& some, int bits) {
  using Key = typename Type::Key;
  const int64_t n = some.lines.length, all = n * some.count;
  const Key flip = order.descending ? static_cast<Key>(~Key{0}) : Key{0};
  const bool both = std::is_same_v<Way, Parallel>;
  std::shared_ptr<void> memory = pool_allocate(static_cast<size_t>(all) * sizeof(Packed) * (both ? 2 : 1));
  auto* packed = static_cast<Packed*>(memory.get());
  std::atomic<bool> exact = true;  // the keys hold all bits of the elements
  for (int64_t line = 0; line < all; line += n) {
    way.pieces(n, [&](int64_t begin, int64_t end) {
      Key difference = 0;
      for (int64_t k = begin; k < end; ++k) {
        Key canonical = order.canonical ? Type::canonical(in[line + k]) : in[line + k];
        difference |= static_cast<Key>(canonical ^ in[line + k]);
        packed[line + k] = pack<Packed>(static_cast<Key>(Type::to_key(canonical) ^ flip), k, bits);
      }
      if (difference != 0) exact = false;
    });
  }
  const Packed* sorted = way.sort(packed, both ? packed + all : nullptr, n, some.count);
  for (int64_t k = 0; k < some.count; ++k) {
    way.pieces(n, [&](int64_t begin, int64_t end) {
      take_packed<Type>(some, order, sorted + k * n, bits, exact, k, begin, end);
    });
  }
}

/// Packed as narrow as the bits of the key and of the place allow.
template <class Type, class Way>
void sort_narrow(const Way& way, const SortKey& order, int key_bits, const typename Type::Key* in, const Some& some) {
  const int bits = std::bit_width(static_cast<uint64_t>(some.lines.length)), all = bits + key_bits;
  if (all <= 32) {
    sort_packed<Type, uint32_t>(way, order, in, some, bits);
  } else if (all <= 64) {
    sort_packed<Type, uint64_t>(way, order, in, some, bits);
  } else {
    sort_packed<Type, Wide>(way, order, in, some, bits);
  }
}

template <class Type>
StepFunction sort_by_key(Lines lines, SortKey order) {
  using Key = typename Type::Key;
  return [=](const StepCall& call) {
    each_line(call.pool, lines, [&](const auto& way, int64_t first, int64_t count) {
      const Some some{lines, call, first, count};
      const auto* in = reinterpret_cast<const Key*>(some.at(static_cast<size_t>(order.operand), 0));
      if (lines.widths.size() == 1) {
        sort_keys<Type>(way, order, in, reinterpret_cast<Key*>(some.at(1, 0)), lines.length, count);
      } else {
        sort_narrow<Type>(way, order, 8 * sizeof(Key), in, some);
      }
    });
  };
}

/// joint[begin, end) with one more key below those that are there.
template <class Type>
void join_key(const SortKey& order, const char* in, uint64_t* joint, int64_t begin, int64_t end) {
  using Key = typename Type::Key;
  constexpr int kBits = 8 * sizeof(Key);
  const Key flip = order.descending ? static_cast<Key>(~Key{0}) : Key{0};
  std::array<Key, 256> keys;
  for (int64_t at = begin; at < end; at += std::ssize(keys)) {
    const int64_t some = std::min<int64_t>(std::ssize(keys), end - at);
    make_keys<Type>(reinterpret_cast<const Key*>(in) + at, keys.data(), some, order.canonical, flip);
    // (A single key of 64 bits would be shifted out of the type: there are several.)
    for (int64_t k = 0; k < some; ++k) joint[at + k] = joint[at + k] << (kBits % 64) | keys[static_cast<size_t>(k)];
  }
}

/// All keys side by side are one, the first at the top.
StepFunction sort_by_keys(Lines lines, std::vector<SortKey> keys) {
  using Joint = KeyType<uint64_t, DTypeClass::kUnsigned>;
  int key_bits = 0;
  for (const SortKey& key : keys) key_bits += 8 * static_cast<int>(dtype_bytes(key.type));
  return [=, keys = std::move(keys)](const StepCall& call) {
    each_line(call.pool, lines, [&](const auto& way, int64_t first, int64_t count) {
      const int64_t all = lines.length * count;
      std::shared_ptr<void> memory = pool_allocate(static_cast<size_t>(all) * sizeof(uint64_t));
      auto* joint = static_cast<uint64_t*>(memory.get());
      way.pieces(all, [&](int64_t begin, int64_t end) {
        std::fill(joint + begin, joint + end, 0);
        for (const SortKey& key : keys) {
          const char* in = lines.at(call, static_cast<size_t>(key.operand), first);
          with_key_type(key.type, [&](auto type) { join_key<decltype(type)>(key, in, joint, begin, end); });
        }
      });
      sort_narrow<Joint>(way, {.operand = kNone}, key_bits, joint, Some{lines, call, first, count});
    });
  };
}

// ---- any comparator
// ----------------------------------------------------------------------------------

/// A merge sort by the emitted kernel. Runs up to a block are merged block by block, in the cache;
/// then each level is a region over its pairs of runs. Levels alternate between the result and
/// scratch so that the last one ends in the result.
class MergeSort {
 public:
  MergeSort(const Lines& lines, const StepCall& call, int64_t line)
      : lines_(lines), call_(call), line_(line), levels_(std::bit_width(static_cast<uint64_t>(lines.length - 1))) {
    size_t bytes = 0;
    for (int64_t w : lines.widths) bytes += static_cast<size_t>((w * lines.length + 63) / 64 * 64);
    if (levels_ > 1) memory_ = pool_allocate(bytes);
  }

  template <class Way>
  void run(const Way& way) {
    if (levels_ == 0) {
      for (size_t o = 0; o < lines_.widths.size(); ++o) {
        std::memcpy(lines_.at(call_, o + lines_.widths.size(), line_), lines_.at(call_, o, line_),
                    static_cast<size_t>(lines_.widths[o]));
      }
      return;
    }
    int inside = std::is_same_v<Way, Parallel> ? std::min(kBlockLevels, levels_) : levels_;
    int64_t block = int64_t{1} << inside, n = lines_.length;
    auto first = [&](int64_t c) {
      for (int level = 0; level < inside; ++level) merge(level, block, c);
    };
    if constexpr (std::is_same_v<Way, Parallel>) {
      run_chunks(way.pool, (n + block - 1) / block, n * 5 * inside, first);
      for (int level = inside; level < levels_; ++level) {
        int64_t pair = int64_t{2} << level;
        run_chunks(way.pool, (n + pair - 1) / pair, n * 5, [&](int64_t c) { merge(level, pair, c); });
      }
    } else {
      first(0);
    }
  }

 private:
  static constexpr int kBlockLevels = 12;

  void merge(int level, int64_t block, int64_t chunk) const {
    std::vector<void*> buffers;
    append(level - 1, buffers);
    append(level, buffers);
    int64_t scalars[] = {lines_.length, int64_t{1} << level, block};
    if (call_.kernel(buffers.data(), scalars, chunk, nullptr) != abi::kOk) throw std::runtime_error("sort failed");
  }

  /// What level `level` has written; -1: the operands.
  void append(int level, std::vector<void*>& buffers) const {
    size_t count = lines_.widths.size();
    bool result = (levels_ - 1 - level) % 2 == 0;
    char* scratch = static_cast<char*>(memory_.get());
    for (size_t o = 0; o < count; ++o) {
      char* line = level < 0 ? lines_.at(call_, o, line_) : result ? lines_.at(call_, o + count, line_) : scratch;
      buffers.push_back(line);
      scratch += (lines_.widths[o] * lines_.length + 63) / 64 * 64;
    }
  }

  const Lines& lines_;
  const StepCall& call_;
  int64_t line_;
  int levels_;
  std::shared_ptr<void> memory_;
};

StepFunction sort_by_merging(Lines lines) {
  return [=](const StepCall& call) {
    each_line(call.pool, lines, [&](const auto& way, int64_t first, int64_t count) {
      for (int64_t line = first; line < first + count; ++line) MergeSort(lines, call, line).run(way);
    });
  };
}

}  // namespace

StepFunction sort_step(const Instruction& sort) {
  Lines lines(sort);
  if (lines.count == 0) return [](const StepCall&) {};
  std::vector<SortKey> keys = integer_order(*sort.to_apply());
  if (keys.empty()) return sort_by_merging(lines);
  if (keys.size() > 1) return sort_by_keys(lines, std::move(keys));
  StepFunction step;
  with_key_type(keys[0].type, [&](auto key) { step = sort_by_key<decltype(key)>(lines, keys[0]); });
  return step;
}

}  // namespace hlojit
