// ElementEmitter: the value of any instruction of a fused computation at given coordinates, as IR.
//
// One mechanism serves every kernel kind. Coordinates are index expressions over loop variables; a
// value is emitted in the outermost scope where all variables of its coordinates are bound (so
// loop-invariant values are hoisted by construction), once per scope. A value whose coordinates involve
// the lane variable is a vector, any other a scalar. A reduction met on the way becomes loops of its
// own: with lanes over the reduced elements where its coordinates are scalar ("rows"), as serial
// loops over vectors where they carry lanes ("columns").
#pragma once

#include <functional>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "codegen/nest/loop_plan.h"
#include "codegen/nest/scope.h"
#include "codegen/options.h"
#include "codegen/target.h"

namespace hlojit::codegen {

/// A buffer the kernel reads or writes.
struct BufferRef {
  llvm::Value* pointer = nullptr;
  llvm::MDNode* alias_scope = nullptr;  ///< list holding the buffer's own scope
  llvm::MDNode* noalias = nullptr;      ///< scopes of all buffers that cannot overlap it
  /// Larger than its share of the last-level cache: aligned vector stores bypass it. The pointer is then
  /// known to be 64-byte aligned, and the function must end in a store fence.
  bool streaming = false;
  int64_t elements = 0;                 ///< of the type it holds, padding included; 0: not known
};

/// Values of one op brought to the same lane count.
void align_lanes(llvm::IRBuilderBase& b, std::vector<Value>& values);
/// `condition` (i1, scalar or a lane each) chooses between two values of one type.
Value choose(llvm::IRBuilderBase& b, llvm::Value* condition, const Value& yes, const Value& no);

class ElementEmitter {
 public:
  /// `root`: the function's outermost scope, positioned where code may be appended.
  ElementEmitter(Scope& root, const EmitOptions& options, VarSource& vars);

  void bind_parameter(const Instruction* parameter, BufferRef buffer) { buffers_[parameter] = buffer; }
  /// Reads `instruction` as if it had the given value wherever it is asked for (dot in an epilogue).
  using Provider = std::function<Value(ElementEmitter&, Scope&, const Coords&)>;
  void provide(const Instruction* instruction, Provider provider) { providers_[instruction] = std::move(provider); }

  /// Values of `instruction` are kept in a row of scratch memory by the first reduction that computes them and
  /// read back by whatever needs them later. `row` says which row the coordinates are in and where.
  struct Position {
    Coords row;       ///< coordinates that name the row
    IndexExpr at;     ///< element of the buffer
  };
  using Place = std::function<Position(const Coords&)>;
  void keep_row(const Instruction* instruction, BufferRef buffer, Place place) { kept_[instruction] = {buffer, std::move(place), {}, {}}; }

  /// The value at coords; `scope` is where the asking code stands.
  Value emit(const Instruction* instruction, const Coords& coords, Scope& scope);

  /// Runs `body` for every element of the piece: opens its loops from number `first` on (loops before
  /// that are bound already), vector part and tails. The coordinates given to body depend on a lane
  /// variable of `lanes` values when lanes > 1. `carried` values go around the loops; body returns the
  /// next ones. `width` counts the vector parts: 0 the widest, then narrower ones, ending in 1.
  using Carried = std::vector<llvm::Value*>;
  using Body = std::function<Carried(Scope&, const Coords&, int width, int lanes, const Carried&)>;
  Carried loops(Scope& scope, const LoopPiece& piece, size_t first, const std::vector<int>& widths,
                Carried carried, const Body& body);
  /// Lane counts a piece is run at: wide, then native, then 1, as far as its extent needs them.
  std::vector<int> widths(const LoopPiece& piece, int wide, int native) const;

  /// Stores value (scalar or vector over the lanes of address) into a buffer.
  void store(Scope& scope, const BufferRef& buffer, const IndexExpr& address, Value value);
  /// `mask`: which lanes may be read (i1, scalar or a lane each); others get zero. Null: all.
  Value load(Scope& scope, const BufferRef& buffer, DType type, const IndexExpr& address, llvm::Value* mask = nullptr);
  /// Stores the `unroll.count` values of a block, transposing in registers where that makes the
  /// stores contiguous. addresses[k] belongs to values[k].
  void store_block(Scope& scope, const BufferRef& buffer, const std::vector<IndexExpr>& addresses,
                   const std::vector<Value>& values);

  /// Variables: bind one to a scalar of this scope, or to constants of an unrolled block.
  void bind(int var, Scope& scope, llvm::Value* value) { bound_[var] = {&scope, value, 0}; }
  /// Fresh variable with the value of `value` (scalar or vector), home in `scope`.
  IndexExpr symbol(Scope& scope, llvm::Value* value, Range range);
  /// Block of unrolled digits: variables u[0..count) standing for the constants 0..count-1.
  void begin_block(Scope& scope, const Unroll& unroll);
  const std::vector<IndexExpr>& block() const { return block_; }
  IndexExpr block_var(size_t k) const { return block_[k]; }
  int block_id(size_t k) const { return block_ids_[k]; }

  /// The expression's value: i64 scalar, or vector where it depends on lanes. Terms of outer
  /// variables are added up in their own scopes.
  llvm::Value* index(const IndexExpr& expr, Scope& scope);
  /// Binds symbols of a relation of `i` to their operands' elements.
  void bind_symbols(const Instruction* i, std::span<const Symbol> symbols, Scope& scope);
  /// Whether all guards hold: i1, scalar or a lane each. Null where they always do.
  llvm::Value* holds(std::span<const Guard> guards, Scope& scope);
  /// Runs `emit_values` knowing that what it asks for is used only where `condition` holds (null: always).
  template <class F>
  void under(llvm::Value* condition, F emit_values) {
    bool before = std::exchange(guarded_, guarded_ || condition);
    emit_values();
    guarded_ = before;
  }
  /// Under a guard: whether coordinates lie inside an array of these sizes; null where they always do.
  llvm::Value* inside(std::span<const int64_t> dims, const Coords& coords, Scope& scope);
  llvm::Value* trip_count(const LoopDigit& loop, const IndexExpr& so_far, Scope& scope);
  /// The outermost scope in which all variables of the coordinates are bound.
  Scope& home(const Coords& coords, Scope& scope);

  const EmitOptions& options() const { return options_; }
  NumberOptions number() const { return {options_.target->isa() == Isa::kAvx512, !options_.strict}; }
  int vector_bytes() const {
    return options_.vector_bytes ? options_.vector_bytes : options_.target->vector_bytes();
  }
  VarSource& vars() { return vars_; }

 private:
  struct Bound {
    Scope* scope;
    llvm::Value* value;  // null for a lane variable
    int lanes;           // > 0: vector of this many
  };

  Value compute(const Instruction* i, const Coords& coords, Scope& scope);
  Value parameter(const Instruction* i, const Coords& coords, Scope& scope);
  Value constant_at(const Instruction* i, const Coords& coords, Scope& scope);
  Value moved(const Instruction* i, const Coords& coords, Scope& scope);
  Value bitcast_convert(const Instruction* i, const Coords& coords, Scope& scope);
  Value elementwise_at(const Instruction* i, const Coords& coords, Scope& scope);
  const std::vector<Value>& reduction(const Instruction* i, const Coords& coords, Scope& scope);
  std::vector<std::vector<Value>> reduce_loops(std::span<const Instruction* const> group, const Coords& coords,
                                               Scope& home);
  std::optional<Value> load_block(Scope& scope, const BufferRef& buffer, DType type, const IndexExpr& address);
  std::optional<Value> load_groups(Scope& scope, const BufferRef& buffer, DType type, const IndexExpr& address,
                                   int64_t stride);
  int lane_count(const IndexExpr& expr) const;
  int lane_var(const IndexExpr& expr) const;
  llvm::Value* address_of(Scope& scope, const BufferRef& buffer, llvm::Type* element, const IndexExpr& address);
  void annotate(llvm::Instruction* access, const BufferRef& buffer);
  void store_vector(Scope& scope, const BufferRef& buffer, llvm::Type* element, llvm::Value* vector, const IndexExpr& address);
  bool vector_bound(const IndexExpr& expr) const;
  Scope& deepest(const IndexExpr& expr, Scope& scope);
  llvm::Value* atom_value(const IndexExpr::Atom& atom, Scope& scope);

  // A row kept in scratch: rows being written by the reduction under way, rows that are complete.
  struct KeptRow {
    BufferRef buffer;
    Place place;
    std::vector<Coords> writing, complete;
  };
  Value keep(KeptRow& kept, const Instruction* i, const Coords& coords, Scope& scope);
  void complete_rows();

  Scope& root_;
  EmitOptions options_;
  VarSource& vars_;
  std::unordered_map<const Instruction*, BufferRef> buffers_;
  std::unordered_map<const Instruction*, Provider> providers_;
  std::unordered_map<int, Bound> bound_;
  std::unordered_map<const Instruction*, KeptRow> kept_;
  std::vector<IndexExpr> block_;
  std::vector<int> block_ids_;
  struct BlockLoad {
    Scope* scope;
    llvm::Value* pointer;
    IndexExpr address;
    std::vector<llvm::Value*> values;
  };
  std::vector<BlockLoad> block_loads_;
  bool guarded_ = false;  ///< values are asked for that may lie outside their arrays
};

}  // namespace hlojit::codegen
