// See tile_code.h. Vector registers hold the tile's sums row by row, then a step's vectors of B, then an element of A.
#include "codegen/kernels/tile_code.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <span>
#include <vector>

#include "codegen/kernels/depth_code.h"
#include "codegen/kernels/tile_ops.h"
#include "codegen/number/machine_code.h"
#include "codegen/number/multiply_add.h"
#include "codegen/target.h"
#include "compiler/plan/target_info.h"

namespace hlojit::codegen {
namespace {

using enum Register;

class TileCode {
 public:
  TileCode(const MicroKernelShape& shape, const TileOps& ops, bool avx512)
      : c_(avx512),
        shape_(shape),
        ops_(ops),
        from_memory_(avx512),
        size_(static_cast<int>(dtype_bytes(shape.type))),
        last_(shape.vectors - 1) {
    if (shape_.row_stride_is_argument()) saved_ = {kOnce, kThrice, kFiveTimes};
    if (shape_.looks_ahead && !has_pointers()) saved_.push_back(kAhead);
    if (has_pointers()) saved_ = {kRbx, kRbp, kR12, kR13, kR14, kR15};
  }

  std::string code() {
    begin();
    if (shape_.accumulates) under_accumulate([&] { each_sum([&](int, int v, Place at) { prefetch_sum(v, at); }); });
    for (int n = 0; n < shape_.rows * shape_.vectors; ++n) c_.clear_vector(n);
    products();
    if (shape_.takes_off) take_off_bias();
    if (shape_.accumulates)
      under_accumulate(
          [&] { each_sum([&](int n, int v, Place at) { c_.vector(ops_.add, bytes(v), n, n, at, stored(v)); }); });
    each_sum([&](int n, int v, Place at) { c_.vector(ops_.store, bytes(v), n, 0, at, stored(v), false); });
    pop(saved_);
    c_.end();
    return c_.code();
  }

  static constexpr int kLeastBytes = 32;  ///< of a vector: an element of 8 bytes comes into all lanes of no shorter one
  static constexpr int kMostPointers = 13;  ///< to rows

 private:
  // Arguments and what is made of them. The strides are in elements; in registers they are bytes.
  static constexpr Register kLeft = kRdi, kPanel = kRsi, kSums = kRdx, kSumsStride = kRcx, kSteps = kR8,
                            kAccumulate = kR9, kPlace = kRax;
  static constexpr Register kLeftMove = kR10, kPanelMove = kR11, kAhead = kR13;
  // Multiples of the rows' stride, of which an address takes 1, 2, 4 and 8.
  static constexpr Register kOnce = kRbx, kThrice = kRbp, kFiveTimes = kR12, kSevenTimes = kRax;
  // Where A is a table of pointers: what all of them are moved on by; those of a stretch, and how far along it.
  static constexpr Register kFrom = kR10, kAlong = kR9;
  static constexpr Register kPointers[] = {kRax, kR10, kR11, kRdx, kRcx, kRdi, kR8, kRbx, kRbp, kR12, kR13, kR14, kR15};
  static constexpr Mask kLoaded = 1, kStored = 2;
  static constexpr int kWord = 8;

  void begin() {
    push(saved_);
    if (loaded()) c_.set_mask(kLoaded, shape_.last_lanes);
    if (const int lanes = lanes_if_part(shape_.stored_lanes)) c_.set_mask(kStored, lanes);
    c_.shift_left(kSumsStride, std::countr_zero(static_cast<unsigned>(size_)));
    if (shape_.looks_ahead && !has_pointers()) {
      c_.multiply(kAhead, kSteps, shape_.rows * size_);
      c_.add(kAhead, kLeft);
    }
  }

  void take_strides() {
    if (shape_.strides_are_arguments) {
      take_stride(kLeftMove, 8);
      take_stride(kPanelMove, 9);
    }
    if (shape_.row_stride_is_argument()) {
      take_stride(kOnce, 10);
      c_.address(kThrice, {kOnce, 0, 2, kOnce});
      c_.address(kFiveTimes, {kOnce, 0, 4, kOnce});
      c_.address(kSevenTimes, {kThrice, 0, 4, kOnce});
    }
  }

  void push(std::span<const Register> registers) {
    for (Register r : registers) c_.push(r);
    pushed_ += static_cast<int>(registers.size());
  }
  void pop(std::span<const Register> registers) {
    for (size_t k = registers.size(); k > 0; --k) c_.pop(registers[k - 1]);
    pushed_ -= static_cast<int>(registers.size());
  }

  /// Argument number n, of those in memory.
  Place argument(int n) const {
    constexpr int kInRegisters = 6;
    return {kRsp, kWord * (1 + pushed_ + n - kInRegisters)};
  }
  void take_stride(Register to, int n) {
    c_.load(to, argument(n));
    c_.shift_left(to, std::countr_zero(static_cast<unsigned>(size_)));
  }

  void products() {
    if (has_pointers()) return along_pointers();
    take_strides();
    if (shares_pointers()) take_stride(kFrom, 7);
    const size_t head = loop();
    if (shape_.looks_ahead) {
      c_.prefetch({kAhead}, looks_to());
      c_.add(kAhead, shape_.unroll * shape_.rows * size_);
    }
    turn();
    if (shape_.strides_are_arguments)
      c_.add(kLeft, kLeftMove);
    else
      c_.add(kLeft, static_cast<int32_t>(shape_.unroll * shape_.left.k_stride * (shares_pointers() ? kWord : size_)));
    c_.subtract(kSteps, shape_.unroll);
    c_.jump_if_more(head);
  }

  size_t loop() {
    constexpr size_t kLine = 16;
    c_.align(kLine);
    return c_.here();
  }

  /// The steps of a turn of the innermost loop, and on to those of the next one in B.
  void turn() {
    for (int u = 0; u < shape_.unroll; ++u) step(u);
    if (shape_.strides_are_arguments)
      c_.add(kPanel, kPanelMove);
    else
      c_.add(kPanel, offset(shape_.unroll * shape_.panel_stride));
  }

  /// Stretch by stretch, each at its rows' pointers. These take all registers but the panel's; what else is needed
  /// between stretches waits in memory.
  void along_pointers() {
    constexpr Register kKept[] = {kSums, kSumsStride, kAccumulate, kPanel, kLeft, kSteps};
    push(kKept);
    constexpr Place kStepsLeft{kRsp}, kTable{kRsp, kWord}, kFirstPanel{kRsp, 2 * kWord};
    const RowsForm& form = shape_.left;
    const size_t head = c_.here();
    take_stride(kAlong, 7);
    const Register last = kPointers[shape_.rows - 1];
    if (form.skips) {
      c_.first_bit(kPanel, kStepsLeft);
      c_.multiply(last, kPanel, static_cast<int32_t>(form.k_stride * kWord));
      c_.add(last, kTable);
      c_.multiply(kPanel, kPanel, offset(form.stretch * shape_.panel_stride));
      c_.add(kPanel, kFirstPanel);
    } else {
      c_.load(last, kTable);
    }
    if (shape_.looks_ahead) look_along(last);
    for (int i = 0; i < shape_.rows; ++i) {
      c_.load(kPointers[i], {last, static_cast<int32_t>(i * form.row_stride * kWord)});
      c_.add(kPointers[i], kAlong);
    }
    c_.clear(kAlong);
    const size_t inner = loop();
    turn();
    c_.add(kAlong, offset(shape_.unroll));
    c_.compare(kAlong, offset(form.stretch));
    c_.jump_if_less(inner);
    if (form.skips) {
      c_.without_first_bit(kAlong, kStepsLeft);
      c_.store(kStepsLeft, kAlong);
      c_.jump_if_some(head);
    } else {
      c_.add(kTable, static_cast<int32_t>(form.k_stride * kWord));
      c_.subtract(kStepsLeft, static_cast<int32_t>(form.stretch));
      c_.jump_if_more(head);
    }
    pop(kKept);
  }

  MachineCode::Prefetch looks_to() const {
    return shape_.looks_ahead == Cache::kFirst ? MachineCode::Prefetch::kFirst : MachineCode::Prefetch::kSecond;
  }

  /// What each row's next pointer leads to.
  void look_along(Register table) {
    const RowsForm& form = shape_.left;
    const Register next = kPointers[shape_.rows > 1 ? 0 : 1];
    for (int i = 0; i < shape_.rows; ++i) {
      c_.load(next, {table, static_cast<int32_t>((i * form.row_stride + form.k_stride) * kWord)});
      for (int32_t at = 0; at < offset(form.stretch); at += kCacheLine) c_.prefetch({next, at, 1, kAlong}, looks_to());
    }
  }

  void step(int u) {
    for (int v = 0; v < shape_.vectors; ++v) {
      if (!folds(v)) c_.vector(ops_.load, bytes(v), column(v), 0, right(u, v), v == last_ ? loaded() : 0);
      if (shape_.looks_down > 0 && v * shape_.lanes * size_ % kCacheLine == 0)
        c_.prefetch(right(u + shape_.looks_down, v), MachineCode::Prefetch::kSecond);
    }
    if (shares_pointers()) c_.load(kPlace, {kLeft, u * kWord});
    for (int i = 0; i < shape_.rows; ++i) {
      if (multiplies_one()) {
        c_.vector_of_one(ops_.multiply_add, bytes(0), i, column(0), left(i, u), size_);
        continue;
      }
      c_.broadcast(ops_.broadcast, shape_.lanes * size_, element(), left(i, u), size_);
      for (int v = 0; v < shape_.vectors; ++v) {
        if (folds(v))
          c_.vector(ops_.multiply_add, bytes(v), v, element(), right(u, v));
        else
          c_.vector(ops_.multiply_add, bytes(v), i * shape_.vectors + v, element(), column(v));
      }
    }
  }

  int column(int v) const { return shape_.rows * shape_.vectors + v; }
  int element() const { return column(shape_.vectors); }
  /// An element of A that one vector alone asks for is multiplied from where it lies.
  bool multiplies_one() const { return from_memory_ && shape_.vectors == 1 && ops_.commutes; }
  /// A vector of B that one row alone asks for is multiplied from where it lies.
  bool folds(int v) const { return shape_.rows == 1 && !multiplies_one() && !(v == last_ && loaded()); }
  /// Where B has vector v of step u of a turn.
  Place right(int64_t u, int v) const { return {kPanel, offset(u * shape_.panel_stride + shape_.start(v))}; }

  /// Where A has row i's element at step u of a turn.
  Place left(int i, int u) const {
    if (has_pointers()) return {kPointers[i], offset(u), 1, kAlong};
    if (shares_pointers()) return {kPlace, offset(i), 1, kFrom};
    const int32_t at = offset(u * shape_.left.k_stride);
    if (!shape_.row_stride_is_argument()) return {kLeft, offset(u * shape_.left.k_stride + i * shape_.left.row_stride)};
    if (i == 0) return {kLeft, at};
    const int scale = i & -i, odd = i / scale;
    return {kLeft, at, scale, odd == 1 ? kOnce : odd == 3 ? kThrice : odd == 5 ? kFiveTimes : kSevenTimes};
  }

  void take_off_bias() {
    c_.load(kPlace, argument(6));
    for (int v = 0; v < shape_.vectors; ++v)
      c_.vector(ops_.load, bytes(v), column(v), 0, Place{kPlace, offset(shape_.start(v))});
    for (int n = 0; n < shape_.rows * shape_.vectors; ++n)
      c_.vector(ops_.subtract, bytes(n % shape_.vectors), n, n, column(n % shape_.vectors));
  }

  /// Before they are read: what is added to comes last, on its way into the cache all along.
  void prefetch_sum(int v, Place at) {
    if (v * shape_.lanes * size_ % kCacheLine == 0) c_.prefetch(at, MachineCode::Prefetch::kWrite);
  }

  /// Sum number n, vector v of its row, and where it belongs.
  template <class F>
  void each_sum(const F& f) {
    c_.address(kPlace, {kSums});
    for (int i = 0; i < shape_.rows; ++i) {
      if (i > 0) c_.add(kPlace, kSumsStride);
      for (int v = 0; v < shape_.vectors; ++v) f(i * shape_.vectors + v, v, Place{kPlace, offset(shape_.start(v))});
    }
  }

  template <class F>
  void under_accumulate(const F& f) {
    const size_t jump = c_.jump_unless(kAccumulate);
    f();
    c_.land(jump);
  }

  bool shares_pointers() const { return shape_.left.shares_pointers(); }
  /// One to each row.
  bool has_pointers() const { return shape_.left.stretch > 0 && !shares_pointers(); }

  int32_t offset(int64_t elements) const { return static_cast<int32_t>(elements * size_); }
  int lanes_of_last() const { return shape_.last_halved() ? shape_.lanes / 2 : shape_.lanes; }
  int bytes(int v) const { return size_ * (v == last_ ? lanes_of_last() : shape_.lanes); }
  /// 0 if all lanes of a row's last vector are meant.
  int lanes_if_part(int lanes) const { return lanes < lanes_of_last() ? lanes : 0; }
  Mask loaded() const { return !shape_.moves_back && lanes_if_part(shape_.last_lanes) ? kLoaded : 0; }
  Mask stored(int v) const { return v == last_ && lanes_if_part(shape_.stored_lanes) ? kStored : 0; }

  MachineCode c_;
  const MicroKernelShape& shape_;
  const TileOps& ops_;
  const bool from_memory_;  // in all lanes
  const int size_, last_;
  std::vector<Register> saved_;  // that belong to the caller
  int pushed_ = 0;
};

/// All offsets are small.
bool reaches(const MicroKernelShape& s) {
  constexpr int64_t kFar = INT32_MAX / 16;
  const int64_t left = s.unroll * std::abs(s.left.k_stride) + s.rows * std::abs(s.left.row_stride);
  const int64_t down = s.along_depth ? 2 * s.lanes : s.unroll + s.looks_down;
  return std::max(left, s.left.stretch) < kFar && down * std::abs(s.panel_stride) < kFar;
}

bool has_vectors(const MicroKernelShape& shape, const Target& target) {
  const int64_t bytes = shape.lanes * dtype_bytes(shape.type);
  return std::has_single_bit(static_cast<uint64_t>(bytes)) && bytes >= TileCode::kLeastBytes &&
         bytes <= target.vector_bytes();
}

/// Of one whose lanes are columns: the registers and masks that it takes.
bool fits(const MicroKernelShape& shape, const Target& target) {
  const bool avx512 = target.isa() == Isa::kAvx512, pointers = shape.left.stretch > 0 && !shape.left.shares_pointers();
  if (shape.left.ends_within || (pointers && shape.rows > TileCode::kMostPointers)) return false;
  const int lanes = shape.last_halved() ? shape.lanes / 2 : shape.lanes;
  const bool in_part =
      (shape.last_lanes < lanes && !shape.moves_back) || (shape.stored_lanes > 0 && shape.stored_lanes < lanes);
  if (!avx512 && (in_part || shape.multiply_add != MultiplyAdd::kOne)) return false;
  const int element = !avx512 || shape.vectors > 1 || shape.multiply_add == MultiplyAdd::kBytes ? 1 : 0;
  return (shape.rows + 1) * shape.vectors + element <= target.vector_registers();
}

}  // namespace

std::optional<std::string> tile_code(const MicroKernelShape& shape, const Target& target) {
  if (form_of(shape.multiply_add).tiles() || !reaches(shape) || !has_vectors(shape, target)) return std::nullopt;
  std::optional<TileOps> ops = tile_ops(shape, target);
  if (!ops) return std::nullopt;
  const bool avx512 = target.isa() == Isa::kAvx512;
  if (shape.along_depth) {
    return depth_code(shape, *ops, target);
  }
  if (!fits(shape, target)) return std::nullopt;
  if (!avx512) ops->broadcast.wide = 0;  // that of doubles is named otherwise
  return TileCode(shape, *ops, avx512).code();
}

}  // namespace hlojit::codegen
