// Copying an array from one layout to another on the host.
//
// Without '*' every digit of a place in memory belongs to one dimension, so the linear index is a
// sum of one table a dimension; a copy is then nested loops over table look-ups, the inner ones
// over the dimension that is minor in the destination and, in blocks that stay in the first-level
// cache, the one that is minor in the source. Where both tables step by one, whole runs are copied;
// where each steps by one along its own of the two, vectors are transposed. Combined dimensions and packed elements go
// element by element.
#include <algorithm>
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

// place[d][i]: how many bytes index i of dimension d adds to the address. Between breaks it steps evenly, so that few
// are computed by the formula.
std::vector<std::vector<int64_t>> places(const Shape& shape) {
  std::vector<std::vector<int64_t>> out(shape.dims.size());
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
    if (!dims.empty()) minor_of_source = static_cast<size_t>(inner[same]);
  }

  // Index i lies i elements on.
  bool steps(const std::vector<int64_t>& place) const {
    for (size_t i = 0; i < place.size(); ++i) {
      if (place[i] != static_cast<int64_t>(i) * width) return false;
    }
    return true;
  }

  std::vector<std::vector<int64_t>> from, to;
  int64_t width;             // bytes of an element
  std::vector<size_t> dims;  // minor first, in the order of the destination
  size_t minor_of_source = 0;
};

// Length of the run of consecutive elements that begins at each index, in both tables at once.
std::vector<int64_t> runs(const std::vector<int64_t>& a, const std::vector<int64_t>& b, int64_t width) {
  std::vector<int64_t> out(a.size(), 1);
  for (size_t i = a.size(); i-- > 1;) {
    if (a[i] == a[i - 1] + width && b[i] == b[i - 1] + width) out[i - 1] = out[i] + 1;
  }
  return out;
}

// Squares of elements of `Bytes` bytes, up to four, as large as vectors of 16 bytes make them. (f32[1024,1024] turned
// 2.9 ms element by element, 0.7 so; bf16[1000,777] 600 us, 118; of 8 bytes nothing is gained. A Zen 4.)
template <size_t Bytes>
struct Square {
  using Word = std::conditional_t<Bytes == 1, uint8_t, std::conditional_t<Bytes == 2, uint16_t, uint32_t>>;
  static constexpr int64_t kSide = 16 / sizeof(Word);
  using Vector __attribute__((vector_size(16))) = Word;

  // The rows at these places become columns. Rows that are half of all apart are interleaved, as often as there are
  // bits in a row's number.
  static void turn(const std::byte* src, const int64_t* from, std::byte* dst, const int64_t* to) {
    Vector rows[kSide], next[kSide];
    for (int64_t i = 0; i < kSide; ++i) std::memcpy(&rows[i], src + from[i], 16);
    for (int64_t step = 1; step < kSide; step *= 2) {
      for (int64_t i = 0; i < kSide / 2; ++i) interleave(rows[i], rows[i + kSide / 2], &next[2 * i]);
      std::memcpy(rows, next, sizeof(rows));
    }
    for (int64_t i = 0; i < kSide; ++i) std::memcpy(dst + to[i], &rows[i], 16);
  }

 private:
  static void interleave(Vector a, Vector b, Vector* out) {
    constexpr int n = kSide;
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
    inner_ = tables.dims.front();
    count_ = static_cast<int64_t>(to_[inner_].size());
    std::vector<int64_t> along_runs = runs(from_[inner_], to_[inner_], tables.width);
    // Runs make the source's order of no matter; otherwise block over both minor dimensions.
    bool long_runs = along_runs.front() * tables.width >= 64 || along_runs.front() == count_;
    if (long_runs) run_ = std::move(along_runs);
    for (size_t k = tables.dims.size(); k-- > 1;) {
      size_t d = tables.dims[k];
      if (!long_runs && d == tables.minor_of_source) {
        second_ = d;
      } else {
        outer_.push_back(d);
      }
    }
    if (Bytes == 0 || Bytes > 4 || second_ == kNone) return;
    read_ = runs(from_[second_], from_[second_], tables.width);
    written_ = runs(to_[inner_], to_[inner_], tables.width);
    turns_ = std::ranges::max(read_) >= kSide && std::ranges::max(written_) >= kSide;
  }

  void operator()() { outer(0, 0, 0); }

 private:
  static constexpr int64_t kBlock = 32, kSide = Square<Bytes>::kSide;
  static constexpr size_t kNone = static_cast<size_t>(-1);

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
          const bool rows = turns_ && j1 - j >= kSide && read_[j] >= kSide;
          const int64_t end = j + (rows ? kSide : 1);
          rows ? turned(i0, i1, j, from, to) : elements(i0, i1, from + from_[second_][j], to + to_[second_][j]);
          j = end;
        }
      }
    }
  }

  // kSide of the dimension that is minor in the source, from j on.
  void turned(int64_t i, int64_t end, int64_t j, int64_t from, int64_t to) {
    const int64_t *a = from_[inner_].data(), *b = to_[second_].data() + j;
    while (i < end) {
      const bool fits = end - i >= kSide && written_[i] >= kSide;
      if (fits) {
        Square<Bytes>::turn(src_ + from + from_[second_][j], a + i, dst_ + to + to_[inner_][i], b);
      } else {
        for (int64_t k = j; k < j + kSide; ++k) elements(i, i + 1, from + from_[second_][k], to + to_[second_][k]);
      }
      i += fits ? kSide : 1;
    }
  }

  void elements(int64_t begin, int64_t end, int64_t from, int64_t to) {
    const int64_t* a = from_[inner_].data();
    const int64_t* b = to_[inner_].data();
    for (int64_t i = begin; i < end; ++i) {
      std::memcpy(dst_ + to + b[i], src_ + from + a[i], Bytes ? Bytes : width_);
    }
  }

  const std::vector<std::vector<int64_t>>&from_, &to_;
  size_t width_;
  const std::byte* src_;
  std::byte* dst_;
  size_t inner_, second_ = kNone;
  int64_t count_;                        // indices of the inner dimension
  std::vector<size_t> outer_;            // outermost first, in the order of the destination
  std::vector<int64_t> run_;             // empty: element by element
  std::vector<int64_t> read_, written_;  // runs of the second dimension in the source, of the inner one here
  bool turns_ = false;                   // of which some make squares
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
