// Packing: an operand's part of a block of a product, copied into the order in which the micro-kernel reads it.
//
// The copy is a nest through the operand's access relation, so any layout can be read, producers are emitted on
// the way, and what a convolution finds in its padding is zero. (Times a weight that is inf or NaN that is NaN, where
// a sum that is pulled leaves it out, as the evaluator does. So it is in XLA:CPU, too; to look for such weights would
// be one more pass over them each call, and a second way to compute each product.)
//
// Two forms: panels, [k][width], and rows, [row][k]. Where an operand is looked up in runs (MatrixProduct::run) their
// first positions are taken apart into coordinates once a run, and runs that lie inside of the operand whatever the
// window's position are copied without guards.
#pragma once

#include <functional>
#include <optional>

#include "codegen/nest/element_emitter.h"
#include "compiler/plan/blocks.h"
#include "layout/divide.h"

namespace hlojit::codegen {

/// Emits `yes` and `no` into `scope`, to run where the condition holds and where not.
void guarded(Scope& scope, llvm::Value* condition, const std::function<void()>& yes, const std::function<void()>& no);

/// Where a product's operands are read, for a task's batch.
class ProductReads {
 public:
  ProductReads(ElementEmitter& emitter, VarSource& vars, const Instruction& contraction, const MatrixProduct& product,
               Coords batch)
      : e_(emitter), vars_(vars), contraction_(contraction), product_(product), batch_(std::move(batch)) {}

  /// Operand numbers of the rows' side and the columns'.
  int left_side() const { return static_cast<int>(product_.rows_operand()); }
  int right_side() const { return static_cast<int>(product_.columns_operand()); }
  /// Rows (or columns) along this operand are looked up run by run.
  bool in_runs(int side) const { return side == 0 && product_.run > 0; }
  const Instruction* operand(int side) const { return contraction_.operand(static_cast<size_t>(side)); }
  /// The parameter that the operand is or is a piece of, which lies in its own order; null if it is computed.
  const Instruction* array(int side) const;
  /// Where in that array an element of the operand is.
  Coords place_in_array(Scope& scope, int side, Coords at);
  const MatrixProduct& product() const { return product_; }
  ElementEmitter& emitter() const { return e_; }
  VarSource& vars() const { return vars_; }

  /// Coordinates of the result, from a row and a column, or from indices of their factors.
  Coords result_coords(const IndexExpr& m, const IndexExpr& n) const;
  Coords joined(const Coords& rows, const Coords& columns) const;
  /// Indices of an operand's factors at a position; where runs are looked up, numbers in `scope`.
  Coords starts(Scope& scope, int side, const IndexExpr& position);
  /// The operand's element for an element of the result at position k of the depth.
  Read read_at(int side, const Coords& result, const IndexExpr& k);
  /// Where runs go beyond the last image, which no window guards: only if there is such an image.
  Read of_images(Read read, const Coords& result) const;
  /// How many images there are then; else 0.
  int64_t overhung_images(int side) const;
  void walk(AccessWalk& walk, Read read) const;
  /// Whether no guard of the operand can fail along a run, whatever the depth: null if none ever does, nullopt if
  /// some may always. `result_at`: the result's coordinates at a position in the run.
  std::optional<llvm::Value*> always_inside(Scope& scope, int side,
                                            const std::function<Coords(const IndexExpr&)>& result_at);
  /// Emits for a slice of full `depth`, or for the last one's: the one that begins at k0. Of the last it is known where
  /// that is: `emit` is given the beginning, too.
  void in_slice(Scope& scope, const IndexExpr& k0, int64_t depth,
                const std::function<void(const IndexExpr&, int64_t)>& emit) const;

 private:
  friend class Packing;
  ElementEmitter& e_;
  VarSource& vars_;
  const Instruction& contraction_;
  const MatrixProduct& product_;
  Coords batch_;
};

struct PackedForm {
  DType type = DType::kF32;
  int64_t terms = 1;    ///< neighbours of the depth that lie together
  int64_t step = 1;     ///< of the depth, up to which it is filled with zeros
  bool biased = false;  ///< the left operand's bytes are made unsigned: 128 is added
  int64_t depth = 256;  ///< of a slice
  int vector_bytes = 32;

  /// Of a slice as it lies: zeros fill up its last step.
  int64_t packed_depth() const { return round_up(depth, step); }
};

class Packing {
 public:
  Packing(ElementEmitter& emitter, VarSource& vars, ProductReads& reads, const MatrixProduct& product, PackedForm form)
      : e_(emitter), vars_(vars), reads_(reads), product_(product), form_(form) {}

  const PackedForm& form() const { return form_; }

  /// What follows is about the slice of the depth from k0 on.
  void begin_slice(const IndexExpr& k0) { k0_ = k0; }
  using TargetAt = std::function<IndexExpr(const IndexExpr&, const IndexExpr&)>;
  /// Copies one slice of `run` neighbouring rows (or columns) of an operand, of which only the last coordinate
  /// differs, to where `target_at` (position in the run, in the slice) says.
  void pack_run(Scope& scope, const BufferRef& target, int side, const IndexExpr& first, int64_t run,
                const TargetAt& target_at);
  /// Packs `group` panels of `width` columns from `first` on, of `size`, one slice deep, each as
  /// [k/terms][width][terms]. Only whole panels come in groups. `from_memory`: the next slice is prefetched.
  void pack_columns(Scope& scope, const BufferRef& target, int64_t group, int64_t width, int64_t size,
                    const IndexExpr& first, bool from_memory);
  /// Packs `width` of the rows' operand's `size` rows from `first` on, one slice deep, as [k/terms][stride][terms];
  /// zeros follow the last up to a multiple of `tile`.
  void pack_across(Scope& scope, const BufferRef& target, int64_t width, int64_t stride, int64_t tile, int64_t size,
                   const IndexExpr& first);
  /// Packs `width` of the rows' operand's `size` rows from `first` on, one slice deep, as [width][k], at `offset`.
  void pack_rows(Scope& scope, const BufferRef& target, const IndexExpr& offset, int64_t width, int64_t size,
                 const IndexExpr& first);

 private:
  /// The same from indices of the operand's factors on.
  void pack_positions(Scope& scope, const BufferRef& target, int side, const Coords& start, int64_t run,
                      const TargetAt& target_at);
  /// What is copied at once. Along one of its dimensions go the slice's groups: the last slice's are fewer.
  struct Box {
    std::vector<int64_t> dims;
    size_t along;
    int64_t last;
    bool looks_down = false;  ///< the next slice is prefetched
  };
  /// What is read for an element of a box in the slice from k0 on; nothing where it is zero.
  using Source = std::function<std::optional<Read>(const IndexExpr& k0, const Coords&)>;
  void fill(Scope& scope, const BufferRef& target, const Box& box,
            const std::function<void(AccessWalk&, const Coords&)>& walk, const Source& source,
            const std::function<IndexExpr(const Coords&)>& place);
  void nest(Scope& scope, const Box& box, const std::function<void(AccessWalk&, const Coords&)>& walk,
            const std::function<void(Scope&, const Coords&, const Unroll&)>& body);
  /// Columns or rows side by side, in panels `stride` wide: from number `from` of each on `width`, which are read, or
  /// are zeros.
  struct Side {
    int64_t group, from, width, stride;
    bool left, zeros, looks_down;
  };
  void pack_side(Scope& scope, const BufferRef& target, const Side& side, const IndexExpr& first);
  /// Part of a slice: from position `first` on so many groups, in the last slice `last`, whose first `there` elements
  /// are read; zeros follow.
  struct Groups {
    int64_t first, count, last, there;
  };
  /// Packs a box of the operand's rows (or columns), one slice deep: `box` is given how many there are.
  void in_boxes(Scope& scope, int64_t width, int64_t size, const IndexExpr& first,
                const std::function<void(int64_t columns)>& box);
  void in_groups(Scope& scope, const std::function<void(const Groups&)>& pack);
  std::optional<Read> read_in(const Groups& groups, const IndexExpr& term, Read read) const;
  Value packed_value(Scope& scope, const std::optional<Read>& source);
  void prefetch_next(Scope& scope, const Source& source, const Coords& at);
  void deep(Scope& scope, const std::function<void(int64_t)>& emit_depth);

  ElementEmitter& e_;
  VarSource& vars_;
  ProductReads& reads_;
  const MatrixProduct& product_;
  PackedForm form_;
  IndexExpr k0_{0};
};

}  // namespace hlojit::codegen
