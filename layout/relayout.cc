// Copying an array from one layout to another on the host.
//
// Without '*' every digit of a place in memory belongs to one dimension, so the linear index is a
// sum of one table a dimension; a copy is then nested loops over table look-ups, the inner ones
// over the dimension whose neighbours lie side by side in the destination and, in blocks that stay in the first-level
// cache, the one whose neighbours do in the source. Where both tables step by one, whole runs are copied;
// where each steps by one along its own of the two, panels are turned in vectors. Combined dimensions and packed
// elements go element by element.
#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>
#include <utility>

#include "layout/digits.h"
#include "layout/index.h"
#include "layout/index_expr.h"
#include "layout/tiling.h"

namespace hlojit {
namespace {

bool combines(const Shape& shape) {
  return std::ranges::any_of(shape.layout.tiles,
                             [](const Tile& t) { return std::ranges::find(t.dims, Tile::kCombine) != t.dims.end(); });
}

// The linear index as an expression over variables 0..rank-1: much cheaper to evaluate often than
// the plain formula.
IndexExpr address(const Shape& shape) {
  std::vector<IndexExpr> index;
  for (int64_t n : shape.dims) index.push_back(IndexExpr::var(static_cast<int>(index.size()), n));
  return linear_index(shape, index);
}

// From i to where something wraps next.
int64_t run_to(const Break& b, int64_t i) {
  const int64_t at = mod(i + b.offset, b.within > 0 ? b.within : b.width), run = b.width - at % b.width;
  return b.within > 0 ? std::min(run, b.within - at) : run;
}

using Places = std::vector<std::vector<int64_t>>;

// place[d][i]: how many bytes index i of dimension d adds to the address. Between breaks it steps evenly, so that few
// are computed by the formula.
Places places(const Shape& shape) {
  Places out(shape.dims.size());
  Index index(shape.dims.size(), 0);
  for (size_t d = 0; d < out.size(); ++d) {
    const int64_t n = shape.dims[d];
    std::vector<IndexExpr> along(shape.dims.size());
    along[d] = IndexExpr::var(static_cast<int>(d), n);
    const IndexExpr place = linear_index(shape, along);
    const std::vector<Break> breaks = breaks_of(place, static_cast<int>(d));
    auto at = [&](int64_t i) {
      index[d] = i;
      return place.evaluate(index) * dtype_bytes(shape.type);
    };
    out[d].resize(n);
    for (int64_t i = 0, end = 0; i < n; i = end) {
      end = n;
      for (const Break& b : breaks) end = std::min(end, i + run_to(b, i));
      const int64_t first = at(i), step = i + 1 < end ? at(i + 1) - first : 0;
      for (int64_t k = i; k < end; ++k) out[d][k] = first + (k - i) * step;
    }
    index[d] = 0;
  }
  return out;
}

// A copy as tables over the dimensions that do not lie side by side in both.
struct Tables {
  Tables(const Shape& source, const Shape& destination)
      : from(places(source)), to(places(destination)), width(dtype_bytes(source.type)) {
    const auto &inner = source.layout.minor_to_major, &order = destination.layout.minor_to_major;
    size_t same = 0;
    while (same < order.size() && inner[same] == order[same] && steps(from[order[same]]) && steps(to[order[same]])) {
      width *= static_cast<int64_t>(to[order[same++]].size());
    }
    dims.assign(order.begin() + static_cast<int64_t>(same), order.end());
    if (dims.empty()) return;
    near_in_source = near(from, static_cast<size_t>(inner[same]));
    near_in_destination = near(to, dims[0]);
  }

  // Index i lies i elements on.
  bool steps(const std::vector<int64_t>& place) const {
    for (size_t i = 0; i < place.size(); ++i) {
      if (place[i] != static_cast<int64_t>(i) * width) return false;
    }
    return true;
  }

  // The dimension whose neighbours lie side by side: not the minor one where a tile has several rows in each column.
  size_t near(const Places& place, size_t minor) const {
    for (size_t d : dims) {
      if (place[d].size() > 1 && place[d][1] - place[d][0] == width) return d;
    }
    return minor;
  }

  Places from, to;
  int64_t width;             // bytes of an element
  std::vector<size_t> dims;  // minor first, in the order of the destination
  size_t near_in_source = 0, near_in_destination = 0;
};

// Length of the run of consecutive elements that begins at each index, in both tables at once.
std::vector<int64_t> runs(const std::vector<int64_t>& a, const std::vector<int64_t>& b, int64_t width) {
  std::vector<int64_t> out(a.size(), 1);
  for (size_t i = a.size(); i-- > 1;) {
    if (a[i] == a[i - 1] + width && b[i] == b[i - 1] + width) out[i - 1] = out[i] + 1;
  }
  return out;
}

// Panels of I times J elements of `Bytes` bytes, up to four: I indices of a dimension whose neighbours lie side by side
// in the destination, J of one whose neighbours do in the source. Of one these are as many as a vector of 16 bytes
// holds; of the other as many, or fewer if a tile has so many rows in each column. (f32[1024,1024] turned 2.9 ms
// element by element, 0.7 so; bf16[1000,777] 600 us, 118; into tiles of (8,128)(2,1) 570, 290; s8[1024,1024] into
// (8,128)(4,1) 740, 130; of 8 bytes nothing is gained. A Zen 4.)
template <size_t Bytes>
struct Panel {
  using Word = std::conditional_t<Bytes == 1, uint8_t, std::conditional_t<Bytes == 2, uint16_t, uint32_t>>;
  static constexpr int64_t kLanes = 16 / sizeof(Word);
  using Vector __attribute__((vector_size(16))) = Word;

  // `from`: places of the I indices, `src` is with the first of the J; `to`: of the J. An element's number is that of
  // its I index above that of its J index, and the other way round in the end. Vectors that are half of all apart are
  // interleaved, which moves the number's bits up by one and the highest to the end, as often as the I index has bits.
  template <int64_t I, int64_t J>
  static void turn(const std::byte* src, const int64_t* from, std::byte* dst, const int64_t* to) {
    constexpr int64_t kCount = I * J / kLanes;
    Vector now[kCount], next[kCount];
    for (int64_t v = 0; v < kCount; ++v) std::memcpy(&now[v], src + from[v * kLanes / J], 16);
    for (int64_t step = 1; step < I; step *= 2) {
      for (int64_t v = 0; v < kCount / 2; ++v) interleave(now[v], now[v + kCount / 2], &next[2 * v]);
      std::memcpy(now, next, sizeof(now));
    }
    for (int64_t v = 0; v < kCount; ++v) std::memcpy(dst + to[v * kLanes / I], &now[v], 16);
  }

 private:
  static void interleave(Vector a, Vector b, Vector* out) {
    constexpr int n = kLanes;
    [&]<int... K>(std::integer_sequence<int, K...>) {
      out[0] = __builtin_shufflevector(a, b, (K / 2 + K % 2 * n)...);
      out[1] = __builtin_shufflevector(a, b, (n / 2 + K / 2 + K % 2 * n)...);
    }(std::make_integer_sequence<int, n>());
  }
};

// An element of `Bytes` bytes is copied by a memcpy of constant size, which is one move; 0: of any width.
template <size_t Bytes>
class Copy {
 public:
  Copy(const Tables& tables, const std::byte* src, std::byte* dst)
      : from_(tables.from), to_(tables.to), width_(static_cast<size_t>(tables.width)), src_(src), dst_(dst) {
    inner_ = tables.near_in_destination;
    count_ = static_cast<int64_t>(to_[inner_].size());
    std::vector<int64_t> along_runs = runs(from_[inner_], to_[inner_], tables.width);
    // Runs make the source's order of no matter; otherwise block over both minor dimensions.
    bool long_runs = along_runs.front() * tables.width >= 64 || along_runs.front() == count_;
    if (long_runs) run_ = std::move(along_runs);
    for (size_t k = tables.dims.size(); k-- > 0;) {
      size_t d = tables.dims[k];
      if (d == inner_) continue;
      if (!long_runs && d == tables.near_in_source) {
        second_ = d;
      } else {
        outer_.push_back(d);
      }
    }
    if (Bytes > 0 && Bytes <= 4 && second_ != kNone) find_panels();
  }

  void operator()() { outer(0, 0, 0); }

 private:
  /// Of the second dimension as many as a panel has.
  using Turned = void (Copy::*)(int64_t i, int64_t end, int64_t j, int64_t from, int64_t to);
  static constexpr int64_t kBlock = 32, kLanes = Panel<Bytes>::kLanes;
  static constexpr size_t kNone = static_cast<size_t>(-1);

  void find_panels() {
    const std::vector<int64_t> written = runs_of(to_[inner_], 1), read = runs_of(from_[second_], 1);
    auto most = [](const std::vector<int64_t>& run) {
      return std::min(kLanes, static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::ranges::max(run)))));
    };
    wide_ = most(written);
    high_ = most(read);
    if (std::max(wide_, high_) < kLanes) return;
    begins_ = beginnings(written, wide_, from_[inner_], high_);
    begins_second_ = beginnings(read, high_, to_[second_], wide_);
    if (std::ranges::max(begins_) && std::ranges::max(begins_second_)) turned_ = turned_by(wide_, high_);
  }

  // Null where an index is alone.
  template <int64_t K = kLanes>
  static Turned turned_by(int64_t wide, int64_t high) {
    if constexpr (K < 2) {
      return nullptr;
    } else {
      if (wide == kLanes && high == K) return &Copy::turned<kLanes, K>;
      if (wide == K && high == kLanes) return &Copy::turned<K, kLanes>;
      return turned_by<K / 2>(wide, high);
    }
  }

  // Length of the run of indices so many elements apart that begins at each.
  std::vector<int64_t> runs_of(const std::vector<int64_t>& place, int64_t apart) const {
    return runs(place, place, apart * static_cast<int64_t>(width_));
  }

  // Where a panel may begin: `count` indices are neighbours in one array; in the other each has `beside` of the other
  // dimension beside it, and those of a vector follow each other.
  std::vector<char> beginnings(const std::vector<int64_t>& near, int64_t count, const std::vector<int64_t>& other,
                               int64_t beside) const {
    const std::vector<int64_t> run = runs_of(other, beside);
    const int64_t group = kLanes / beside;
    std::vector<char> out(near.size());
    for (size_t i = 0; i < out.size(); ++i) {
      bool fits = near[i] >= count;
      for (size_t k = i; fits && k < i + static_cast<size_t>(count); k += static_cast<size_t>(group))
        fits = run[k] >= group;
      out[i] = fits;
    }
    return out;
  }

  void outer(size_t k, int64_t from, int64_t to) {
    if (k < outer_.size()) {
      const std::vector<int64_t>&a = from_[outer_[k]], &b = to_[outer_[k]];
      for (size_t i = 0; i < a.size(); ++i) outer(k + 1, from + a[i], to + b[i]);
    } else if (!run_.empty()) {
      along_runs(from, to);
    } else if (second_ == kNone) {
      elements(0, count_, from, to);
    } else {
      blocks(from, to);
    }
  }

  void along_runs(int64_t from, int64_t to) {
    for (int64_t i = 0; i < count_; i += run_[i]) {
      std::memcpy(dst_ + to + to_[inner_][i], src_ + from + from_[inner_][i], static_cast<size_t>(run_[i]) * width_);
    }
  }

  void blocks(int64_t from, int64_t to) {
    const auto second = static_cast<int64_t>(to_[second_].size());
    for (int64_t j0 = 0; j0 < second; j0 += kBlock) {
      int64_t j1 = std::min(second, j0 + kBlock);
      for (int64_t i0 = 0; i0 < count_; i0 += kBlock) {
        int64_t i1 = std::min(count_, i0 + kBlock);
        for (int64_t j = j0; j < j1;) {
          const bool panels = turned_ != nullptr && j1 - j >= high_ && begins_second_[j];
          if (panels) {
            (this->*turned_)(i0, i1, j, from, to);
          } else {
            elements(i0, i1, from + from_[second_][j], to + to_[second_][j]);
          }
          j += panels ? high_ : 1;
        }
      }
    }
  }

  template <int64_t I, int64_t J>
  void turned(int64_t i, int64_t end, int64_t j, int64_t from, int64_t to) {
    const int64_t *a = from_[inner_].data(), *b = to_[second_].data() + j;
    while (i < end) {
      const bool fits = end - i >= I && begins_[i];
      if (fits) {
        Panel<Bytes>::template turn<I, J>(src_ + from + from_[second_][j], a + i, dst_ + to + to_[inner_][i], b);
      } else {
        for (int64_t k = j; k < j + J; ++k) elements(i, i + 1, from + from_[second_][k], to + to_[second_][k]);
      }
      i += fits ? I : 1;
    }
  }

  void elements(int64_t begin, int64_t end, int64_t from, int64_t to) {
    const int64_t* a = from_[inner_].data();
    const int64_t* b = to_[inner_].data();
    for (int64_t i = begin; i < end; ++i) {
      std::memcpy(dst_ + to + b[i], src_ + from + a[i], Bytes ? Bytes : width_);
    }
  }

  const Places &from_, &to_;
  size_t width_;
  const std::byte* src_;
  std::byte* dst_;
  size_t inner_, second_ = kNone;
  int64_t count_;                             // indices of the inner dimension
  std::vector<size_t> outer_;                 // outermost first, in the order of the destination
  std::vector<int64_t> run_;                  // empty: element by element
  int64_t wide_ = 0, high_ = 0;               // of a panel: indices of the inner dimension and of the second one
  std::vector<char> begins_, begins_second_;  // where one may, along each
  Turned turned_ = nullptr;                   // null: no panels
};

void copy_by_tables(const Shape& from, const std::byte* src, const Shape& to, std::byte* dst) {
  const Tables tables(from, to);
  if (tables.dims.empty()) {
    std::memcpy(dst, src, static_cast<size_t>(tables.width));
    return;
  }
  switch (tables.width) {
    case 1: return Copy<1>(tables, src, dst)();
    case 2: return Copy<2>(tables, src, dst)();
    case 4: return Copy<4>(tables, src, dst)();
    case 8: return Copy<8>(tables, src, dst)();
    case 16: return Copy<16>(tables, src, dst)();
    default: return Copy<0>(tables, src, dst)();
  }
}

// One element of any width, as bytes; packed ones in the low bits.
struct Element {
  std::byte bytes[16] = {};
};

Element load(const std::byte* buffer, int64_t bits, int64_t at, size_t bytes) {
  Element e;
  if (bits < 8) {
    int64_t bit = at * bits;
    unsigned v = std::to_integer<unsigned>(buffer[bit / 8]) >> (bit % 8);
    e.bytes[0] = static_cast<std::byte>(v & ((1u << bits) - 1));
  } else {
    std::memcpy(e.bytes, buffer + at * (bits / 8), std::min<size_t>(bytes, 16));
  }
  return e;
}

void store(std::byte* buffer, int64_t bits, int64_t at, size_t bytes, const Element& e) {
  if (bits < 8) {
    int64_t bit = at * bits;
    unsigned v = std::to_integer<unsigned>(e.bytes[0]) & ((1u << bits) - 1);
    buffer[bit / 8] |= static_cast<std::byte>(v << (bit % 8));
  } else {
    std::memcpy(buffer + at * (bits / 8), e.bytes, std::min<size_t>(bytes, 16));
  }
}

// An unpacked element narrower than a byte holds its value as an int8_t or uint8_t does.
void widen_sign(DType type, Element& e) {
  int unused = 8 - dtype_bits(type);
  if (!is_signed(type) || unused <= 0) return;
  auto v = static_cast<int8_t>(std::to_integer<unsigned>(e.bytes[0]) << unused);
  e.bytes[0] = static_cast<std::byte>(v >> unused);
}

void copy_each(const Shape& from, const std::byte* src, const Shape& to, std::byte* dst) {
  int64_t from_bits = element_bits(from), to_bits = element_bits(to);
  size_t bytes = static_cast<size_t>(dtype_bytes(to.type));
  IndexExpr from_address = address(from), to_address = address(to);
  Index index(to.dims.size(), 0);
  for (;;) {
    Element e = load(src, from_bits, from_address.evaluate(index), bytes);
    if (from_bits < 8 && to_bits >= 8) widen_sign(to.type, e);
    store(dst, to_bits, to_address.evaluate(index), bytes, e);
    size_t d = index.size();
    while (d-- > 0 && ++index[d] == to.dims[d]) index[d] = 0;
    if (d == static_cast<size_t>(-1)) return;
  }
}

}  // namespace

void relayout(const Shape& from, const void* src, const Shape& to, void* dst) {
  if (!from.is_array() || !compatible(from, to)) {
    throw Error(ErrorKind::kInput,
                "cannot convert " + from.to_string() + " to " + to.to_string() + ": type and sizes must be equal");
  }
  int64_t count = to.element_count();
  const auto* in = static_cast<const std::byte*>(src) + from.layout.metadata_prefix_bytes;
  auto* out = static_cast<std::byte*>(dst);
  if (physical_size(to) == 0) return;
  if (from.layout == to.layout && physical_elements(to) == count && element_bits(to) >= 8) {
    std::memcpy(dst, src, static_cast<size_t>(physical_size(to)));
    return;
  }
  bool whole_bytes = element_bits(to) == 8 * dtype_bytes(to.type);
  if (physical_elements(to) != count || !whole_bytes || to.layout.metadata_prefix_bytes > 0) {
    std::memset(dst, 0, static_cast<size_t>(physical_size(to)));
  }
  if (count == 0) return;
  out += to.layout.metadata_prefix_bytes;
  bool plain =
      whole_bytes && element_bits(from) == element_bits(to) && !combines(from) && !combines(to) && to.rank() > 0;
  (plain ? copy_by_tables : copy_each)(from, in, to, out);
}

}  // namespace hlojit
