// See depth_code.h. Vector registers hold the sums row by row, then the columns, then a row or what is being summed up.
#include "codegen/kernels/depth_code.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "codegen/kernels/depth_tile.h"
#include "codegen/target.h"

namespace hlojit::codegen {
namespace {

using enum Register;

constexpr int kVector = 64, kBlock = 16, kBlocks = kVector / kBlock;  // bytes; what shuffles move as a whole or within

/// Of the parts that vectors consist of: the lower halves of two vectors side by side, the upper ones, or each part's
/// halves swapped.
struct Halves {
  VectorOp shuffle;
  uint8_t lower, upper, swapped;
};
constexpr VectorOp kShuffleBlocks{1, 3, 1, 0x23}, kShuffleFloats{0, 1, 0, 0xC6}, kShuffleDoubles{1, 1, 1, 0xC6};
constexpr Halves kHalves[] = {{kShuffleBlocks, 0x44, 0xEE, 0x4E}, {kShuffleBlocks, 0x88, 0xDD, 0xB1}};
constexpr Halves kHalvesOfFloats[] = {{kShuffleFloats, 0x44, 0xEE, 0x4E}, {kShuffleFloats, 0x88, 0xDD, 0xB1}};
constexpr Halves kHalvesOfDoubles[] = {{kShuffleDoubles, 0x00, 0xFF, 0x55}};

class DepthCode {
 public:
  DepthCode(const MicroKernelShape& shape, const TileOps& ops, int columns)
      : shape_(shape),
        ops_(ops),
        size_(static_cast<int>(dtype_bytes(shape.type))),
        columns_(columns),
        halves_(std::begin(kHalves), std::end(kHalves)) {
    if (size_ == 4)
      halves_.insert(halves_.end(), std::begin(kHalvesOfFloats), std::end(kHalvesOfFloats));
    else
      halves_.insert(halves_.end(), std::begin(kHalvesOfDoubles), std::end(kHalvesOfDoubles));
  }

  std::string code() {
    const int element = std::countr_zero(static_cast<unsigned>(size_));
    c_.shift_left(kSumsStride, element);
    c_.shift_left(kDepth, element);
    c_.address(kWhole, {kDepth});
    c_.keep_bits(kWhole, -kVector);
    if (has_rest()) c_.set_mask(kLoaded, shape_.last_lanes);
    int left = shape_.stored_lanes > 0 ? shape_.stored_lanes : shape_.vectors * shape_.lanes;
    if (const int times = left / columns_; times > 0) {
      set_masks();
      c_.clear(kTimes);
      c_.add(kTimes, times);
      const size_t head = c_.here();
      sum_columns();
      c_.subtract(kTimes, 1);
      c_.jump_if_more(head);
    }
    for (left %= columns_; left > 0; left -= columns_) {
      while (columns_ > left) columns_ /= 2;
      set_masks();
      sum_columns();
    }
    c_.end();
    return c_.code();
  }

 private:
  // Arguments and what is made of them; strides, the depth and its whole vectors in bytes.
  static constexpr Register kLeft = kRdi, kPanel = kRsi, kSums = kRdx, kSumsStride = kRcx, kDepth = kR8,
                            kAccumulate = kR9, kAlong = kRax, kPlace = kRax, kWhole = kR10, kTimes = kR11;
  static constexpr Mask kLoaded = 1, kStored = 2, kFirsts = 3;

  bool has_rest() const { return shape_.last_lanes < shape_.lanes; }

  /// Lanes that are stored, and those that hold a column's sum first.
  void set_masks() {
    if (stored()) c_.set_mask(kStored, columns_);
    if (!compresses()) return;
    int64_t firsts = 0;
    for (int j = 0; j < columns_; ++j) firsts |= int64_t{1} << j * (shape_.lanes / columns_);
    c_.set_mask_of(kFirsts, firsts);
  }

  /// The next columns, and on to those behind them.
  void sum_columns() {
    for (int n = 0; n < shape_.rows * columns_; ++n) c_.clear_vector(n);
    c_.clear(kAlong);
    products();
    for (int i = 0; i < shape_.rows; ++i) sum_lanes(sum(i, 0));
    if (shape_.accumulates) {
      const size_t jump = c_.jump_unless(kAccumulate);
      each_row([&](int n, Place at) { c_.vector(ops_.add, stored_bytes(), n, n, at, stored()); });
      c_.land(jump);
    }
    each_row([&](int n, Place at) { c_.vector(ops_.store, stored_bytes(), n, 0, at, stored(), false); });
    c_.add(kPanel, offset(columns_ * shape_.panel_stride));
    c_.add(kSums, offset(columns_));
  }

  void products() {
    size_t none = 0;
    if (has_rest() && shape_.accumulates) {  // of several slices the last may be shorter than a vector
      c_.compare(kAlong, kWhole);
      none = c_.jump_unless_less();
    }
    constexpr size_t kLine = 16;
    c_.align(kLine);
    const size_t head = c_.here();
    look_across();
    add_products(0);
    c_.add(kAlong, kVector);
    c_.compare(kAlong, kWhole);
    c_.jump_if_less(head);
    if (!has_rest()) return;
    if (none > 0) c_.land(none);
    c_.compare(kAlong, kDepth);
    const size_t all = c_.jump_unless_less();
    add_products(kLoaded);
    c_.land(all);
  }

  /// The columns that come next: no prefetcher gets far in pieces of a page.
  void look_across() {
    for (int j = 0; shape_.looks_down > 0 && j < columns_; ++j)
      c_.prefetch(right(columns_ + j), MachineCode::Prefetch::kSecond);
  }

  /// Of a vector's worth of the depth. What one sum alone asks for is multiplied from where it lies.
  void add_products(Mask mask) {
    const bool one_row = shape_.rows == 1 && mask == 0, one_column = columns_ == 1 && shape_.rows > 1 && mask == 0;
    for (int j = 0; j < columns_ && !one_row; ++j) c_.vector(ops_.load, kVector, column(j), 0, right(j), mask);
    for (int i = 0; i < shape_.rows; ++i) {
      if (one_column) {
        c_.vector(ops_.multiply_add, kVector, sum(i, 0), column(0), left(i));
        continue;
      }
      c_.vector(ops_.load, kVector, spare(), 0, left(i), mask);
      for (int j = 0; j < columns_; ++j) {
        if (one_row)
          c_.vector(ops_.multiply_add, kVector, sum(i, j), spare(), right(j));
        else
          c_.vector(ops_.multiply_add, kVector, sum(i, j), spare(), column(j));
      }
    }
  }

  /// Into `first` the sum of each one's lanes, of the columns' registers from it on. Halves of two go side by side and
  /// are added, so that the work is shared by all; one that is left alone goes with itself. Blocks are paired first, so
  /// that a column's number is its block's, and then its place in the block.
  void sum_lanes(int first) {
    std::vector<int> vectors;
    for (int k = 0; k < columns_; ++k)
      vectors.push_back(first + (columns_ > kBlocks ? k % kBlocks * (columns_ / kBlocks) + k / kBlocks : k));
    for (const Halves& h : halves_) {
      if (vectors.size() == 1) {
        c_.shuffle(h.shuffle, kVector, spare(), first, first, h.swapped);
        c_.vector(ops_.add, kVector, first, first, spare());
        continue;
      }
      std::vector<int> next;
      for (size_t k = 0; k < vectors.size(); k += 2) {
        const int x = vectors[k], y = vectors[k + 1];
        c_.shuffle(h.shuffle, kVector, spare(), x, y, h.lower);
        c_.shuffle(h.shuffle, kVector, x, x, y, h.upper);
        c_.vector(ops_.add, kVector, x, spare(), x);
        next.push_back(x);
      }
      vectors = next;
    }
    if (compresses()) c_.vector(compress(), kVector, first, 0, first, kFirsts);
  }

  bool compresses() const { return columns_ > 1 && columns_ * size_ < kVector; }
  VectorOp compress() const { return {1, 2, static_cast<uint8_t>(size_ == 8), 0x8A}; }

  /// The register of a row's sums, and where they belong.
  template <class F>
  void each_row(const F& f) {
    c_.address(kPlace, {kSums});
    for (int i = 0; i < shape_.rows; ++i) {
      if (i > 0) c_.add(kPlace, kSumsStride);
      f(sum(i, 0), Place{kPlace});
    }
  }
  int stored_bytes() const { return std::max(columns_ * size_, kBlock); }
  Mask stored() const { return columns_ * size_ < kBlock ? kStored : 0; }

  int sum(int i, int j) const { return i * columns_ + j; }
  int column(int j) const { return shape_.rows * columns_ + j; }
  int spare() const { return column(columns_); }
  int32_t offset(int64_t elements) const { return static_cast<int32_t>(elements * size_); }
  Place left(int i) const { return {kLeft, offset(i * shape_.left.row_stride), 1, kAlong}; }
  Place right(int j) const { return {kPanel, offset(j * shape_.panel_stride), 1, kAlong}; }

  MachineCode c_{true};
  const MicroKernelShape& shape_;
  const TileOps& ops_;
  const int size_;
  int columns_;  // at a time
  std::vector<Halves> halves_;
};

}  // namespace

std::optional<std::string> depth_code(const MicroKernelShape& shape, const TileOps& ops, const Target& target) {
  const int columns = columns_at_once(shape, target.vector_registers());
  if (target.isa() != Isa::kAvx512 || !is_float(shape.type)) return std::nullopt;
  if (shape.lanes * dtype_bytes(shape.type) != kVector) return std::nullopt;
  if ((shape.rows + 1) * columns + 1 > target.vector_registers()) return std::nullopt;
  return DepthCode(shape, ops, columns).code();
}

}  // namespace hlojit::codegen
