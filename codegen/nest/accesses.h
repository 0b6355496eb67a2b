// The accesses of a computation: a dry walk from a value back to the parameters that collects every
// address as an index expression, before anything is emitted. Loop planning cuts and orders loops by
// them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <unordered_map>
#include <vector>

#include "compiler/analysis/access.h"

namespace hlojit::codegen {

/// One read or write, or an index used as a value: iota, a bound test.
struct Access {
  IndexExpr address = {};
  int bytes = 0;  ///< of one element; 0 for an index used as a value
  bool write = false;
  bool halves = false;                     ///< of bf16, computed with as floats
  bool random = false;                     ///< the address depends on loaded values, others for other elements
  Coords looked_up = {};                   ///< where those lie
  const Instruction* parameter = nullptr;  ///< that is read; null: none
};

/// An array is read along `lane`, at the same places for each `row`: variables of loops.
bool is_shared_by_rows(const Access& access, int row, int lane);

/// A boundary at which another source takes over (concatenate, pad): expr < bound vs. expr >= bound.
struct Edge {
  IndexExpr expr;
  int64_t bound;
  bool upper;  ///< the guard holds below the bound, not from it on
};

/// Where a dim has one element, that is the one meant: under a guard another would have to be masked. (Rows of a stack:
/// 3x3 matrices of nine stacked vectors took 29 us instead of 8.)
Coords first_of_ones(const Shape& shape, Coords coords);

class AccessWalk {
 public:
  explicit AccessWalk(VarSource& vars) : vars_(vars) {}
  /// Adds the accesses of `value` at `coords`.
  void read(const Instruction* value, const Coords& coords);
  /// The same of an operand of `user`, for its sake.
  void read_operand(const Instruction* user, size_t operand, const Coords& coords);
  /// Adds what one element of `value` needs, by its relation.
  void follow(const Instruction* value, const AccessRelation& relation);
  void write(const Shape& shape, const Coords& coords);
  void write(DType type, IndexExpr address) {
    accesses_.push_back({.address = std::move(address), .bytes = dtype_bytes(type), .write = true});
  }
  /// An index that is used as a value.
  void add_index(const IndexExpr& expr) { accesses_.push_back({.address = expr}); }
  /// Values of these types are moved as bits (compiler/analysis/movement.h), not widened.
  void move_in_bits(const std::set<DType>& types) { in_bits_ = &types; }
  /// The lanes are not parts of what reductions within result in.
  void lanes_outside() { lanes_outside_ = true; }
  /// `value` stands in scratch: reading it is an access at this address, and nothing below it is read.
  void stop_at(const Instruction* value, std::function<IndexExpr(const Coords&)> address) {
    stops_[value] = std::move(address);
  }

  const std::vector<Access>& accesses() const { return accesses_; }
  const std::vector<Edge>& edges() const { return edges_; }
  /// Elementary operations met, weighted by price: how large the loop body is.
  int operations() const { return operations_; }
  /// Those of them that are the same wherever the variable is.
  int operations_without(int var) const;
  /// Elements read and written that are found without looking one up: what an element of the body has in hand at once.
  int places() const {
    return static_cast<int>(std::ranges::count_if(accesses_, [](const Access& a) { return a.bytes > 0 && !a.random; }));
  }
  bool has_reduction() const { return has_reduction_; }
  /// Every address lies within its array's buffer, padding included, and no element is of another kind than the rest.
  bool within_buffers() const { return within_buffers_; }
  /// Conditions are combined with conditions.
  bool combines_masks() const { return combines_masks_; }
  /// Elements are seen as their bits.
  bool takes_bits() const { return takes_bits_; }
  /// Bytes of the element that vectors should be filled with: the widest one that takes a good part of the
  /// operations (narrow floats count as f32). One u64 index beside much f32 arithmetic must not halve all
  /// lanes: random normals took 2.4 times as long.
  int lane_bytes() const;

 private:
  bool visited(const Instruction* value, const Coords& coords);
  bool halves(DType type) const { return type == DType::kBF16 && !stored_ && !(in_bits_ && in_bits_->contains(type)); }
  void check_bounds(const Shape& shape, const IndexExpr& address);

  VarSource& vars_;
  std::vector<Access> accesses_;
  std::vector<Edge> edges_;
  std::unordered_map<const Instruction*, std::vector<Coords>> seen_;
  std::unordered_map<int, Coords> symbols_;  // by variable: where the value lies that it stands for
  std::unordered_map<const Instruction*, std::function<IndexExpr(const Coords&)>> stops_;
  const std::set<DType>* in_bits_ = nullptr;
  bool lanes_outside_ = false;
  bool stored_ = false;  // what is met is only moved and compared (compares_stored)
  int operations_ = 0;
  std::map<int, double, std::greater<>> weight_;  // of operations, by the bytes of their elements
  bool has_reduction_ = false;
  bool within_buffers_ = true;
  bool combines_masks_ = false;
  bool takes_bits_ = false;
};

}  // namespace hlojit::codegen
