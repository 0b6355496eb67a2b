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
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "codegen/nest/lane_widths.h"
#include "codegen/nest/loop_plan.h"
#include "codegen/nest/scope.h"
#include "codegen/number/memory.h"
#include "codegen/options.h"
#include "codegen/target.h"
#include "compiler/analysis/movement.h"
#include "compiler/ir/instruction_set.h"

namespace hlojit::codegen {

/// A buffer the kernel reads or writes.
struct BufferRef {
  llvm::Value* pointer = nullptr;
  llvm::MDNode* alias_scope = nullptr;  ///< list holding the buffer's own scope
  llvm::MDNode* noalias = nullptr;      ///< scopes of all buffers that cannot overlap it
  /// Larger than its share of the last-level cache: aligned vector stores bypass it. The pointer is then
  /// known to be 64-byte aligned, and the function must end in a store fence.
  bool streaming = false;
  int64_t elements = 0;       ///< of the type it holds, padding included; 0: not known
  bool read_only = false;     ///< nothing that the kernel writes overlaps it
  int64_t element_bits = 0;   ///< from one element to the next; 0: the type's own bytes
  Scope* known_in = nullptr;  ///< where the pointer is computed; null: it is known everywhere
};

/// Where the elements of these numbers (i64, a lane each) are. Numbers of words take half the registers, and gathers
/// and scatters as many lanes again: where there are no more elements, they are what is added to the pointer.
llvm::Value* pointers_at(llvm::IRBuilderBase& b, const BufferRef& buffer, llvm::Type* element, llvm::Value* numbers);

/// Tells LLVM which buffers the access cannot overlap.
void annotate(llvm::Instruction* access, const BufferRef& buffer);
/// The first `there` elements of a vector of `lanes`.
llvm::Value* load_beginning(llvm::IRBuilderBase& b, const BufferRef& buffer, llvm::Type* element, llvm::Value* pointer,
                            int lanes, int there);

/// Values of one op brought to the same lane count.
void align_lanes(llvm::IRBuilderBase& b, std::vector<Value>& values);
/// `condition` (i1, scalar or a lane each) chooses between two values of one type.
Value choose(llvm::IRBuilderBase& b, llvm::Value* condition, const Value& yes, const Value& no);
/// The lanes of one body of a loop.
struct Lanes {
  int count = 1;
  IndexExpr number;  ///< of the lane
};

/// Sums in levels: loops from a cut on start from `fresh`, and what they end with is `add`ed to the outer ones.
struct Cascade {
  using Carried = std::vector<llvm::Value*>;
  std::vector<size_t> cuts;
  std::function<Carried(Scope&)> fresh;
  std::function<Carried(Scope&, const Carried& total, const Carried& part)> add;
};

/// A value with a place: made by one stage of the plan, loaded by later ones. Asked for earlier, the plan is
/// wrong and refused.
struct Placed {
  BufferRef buffer;
  size_t stage = 0;
  bool scratch = true;  ///< the making stage stores it where it is first asked for; else (a result) it is stored anyway
  DType stored = DType::kInvalid;
  std::function<IndexExpr(const Coords&)> address;
};

/// Are `lanes` rows of `count` elements, of a block, transposed in registers? Squares, rows of at most 16 bytes, and
/// fewer rows than elements, all in powers of two.
bool fits_transposed(int64_t count, int64_t lanes, DType type);

/// Where elements of so many bytes, a power of two, are whose numbers (i64) an even number of lanes hold: offsets in
/// bytes, less than 2^32.
std::vector<llvm::Value*> offsets_of_lanes(llvm::IRBuilderBase& b, llvm::Value* numbers, uint64_t bytes);
/// No machine gathers less than a word; a Zen takes half as long again to gather elements as to load them.
bool gathers_slowly(const Target& target, DType type);
/// Are elements of an array of this shape that lie where indices say loaded one by one?
bool gathers_each(const Target& target, const Shape& shape);

struct LanePattern;
struct Pass;

class ElementEmitter {
 public:
  /// `root`: the function's outermost scope, positioned where code may be appended.
  ElementEmitter(Scope& root, const EmitOptions& options, VarSource& vars);

  /// `is_product`: what it holds was multiplied (compiler/analysis/products.h).
  void bind_parameter(const Instruction* parameter, BufferRef buffer, bool is_product) {
    buffers_[parameter] = buffer;
    if (is_product) products_.insert(parameter);
  }
  /// Reads `instruction` as if it had the given value wherever it is asked for (dot in an epilogue).
  using Provider = std::function<Value(ElementEmitter&, Scope&, const Coords&)>;
  void provide(const Instruction* instruction, Provider provider) { providers_[instruction] = std::move(provider); }

  /// While `emit_values` runs nothing is made outside of `scope`: what is read there is not the same in each of its
  /// turns, though no coordinate may say so.
  template <class F>
  void within(Scope& scope, F emit_values) {
    Scope* before = std::exchange(outermost_, &scope);
    emit_values();
    outermost_ = before;
  }

  /// Values of these types are only moved (compiler/analysis/movement.h): they are kept as the integers that their
  /// bits are, and a NaN keeps its payload.
  void move_in_bits(std::set<DType> types) { in_bits_ = std::move(types); }

  /// Wide vectors are stored in halves where they may cross the end of a line (TargetInfo::dear_line_ends) and memory
  /// is what the loops wait for.
  void store_in_halves() { stores_in_halves_ = target_.dear_line_ends; }
  /// So few elements are gathered that the loads of each can be written out.
  void write_out_gathers() { few_gathers_ = true; }

  /// The value at coords; `scope` is where the asking code stands.
  Value emit(const Instruction* instruction, const Coords& coords, Scope& scope);
  /// Both factors, for whoever sums it, of a product that nothing else uses; the value itself if it is none.
  std::vector<Value> factors(const Instruction* value, Coords coords, Scope& scope);

  /// Runs `body` for every element of the piece: opens its loops from number `first` on (loops before
  /// that are bound already). The coordinates given to body depend on a lane variable where lanes.count > 1.
  /// `carried` values go around the loops; body returns the next ones.
  using Carried = std::vector<llvm::Value*>;
  using Body = std::function<Carried(Scope&, const Coords&, const Lanes&, const Carried&)>;
  Carried loops(Scope& scope, const LoopPiece& piece, size_t first, const LaneWidths& widths, Carried carried,
                const Body& body, const Cascade* cascade = nullptr);
  /// Runs a pass (pass.h) in `at`. Results of its reductions are known in `at` from then on.
  void run_pass(const Pass& pass, Scope& at);
  /// Values that an earlier stage of the plan makes; see Placed.
  void place(const Instruction* instruction, Placed placed) { placed_[instruction] = std::move(placed); }
  /// The stage being emitted: values placed in it are stored, those of earlier ones loaded.
  void begin_stage(size_t number) { stage_ = number; }

  /// Stores value (scalar or vector over the lanes of address) into a buffer.
  /// `mask`: a lane each, which of them are stored (null: all).
  void store(Scope& scope, const BufferRef& buffer, const IndexExpr& address, Value value, llvm::Value* mask = nullptr);
  /// `mask`: which lanes may be read (i1, scalar or a lane each); others get zero. Null: all.
  Value load(Scope& scope, const BufferRef& buffer, DType type, const IndexExpr& address, llvm::Value* mask = nullptr);
  /// Brings the vector that is read, which may lie behind all there is, into a cache. Single elements come by
  /// themselves.
  void prefetch(Scope& scope, const Access& access, Cache cache = Cache::kSecond);
  /// The values of a block, so many at addresses like this one, are more than there are registers, and each is stored
  /// by itself: none has to wait for others.
  bool stores_each(const BufferRef& buffer, const IndexExpr& address, DType type, int64_t count) const;
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
  /// Emits `body` for a block, or in a loop for one part of it after the other, each a block of its own. Without a
  /// block, for the element.
  void in_parts(Scope& scope, const Coords& at, const Unroll& unroll,
                const std::function<void(Scope&, const Coords&, const Unroll&)>& body);
  const std::vector<IndexExpr>& block() const { return block_; }
  /// The coordinates of each element of the block; without one, of the element.
  std::vector<Coords> elements(const Coords& at, const Unroll& unroll) const;
  int block_id(size_t k) const { return block_ids_[k]; }

  /// The expression's value: i64 scalar, or vector where it depends on lanes. Terms of outer
  /// variables are added up in their own scopes.
  llvm::Value* index(const IndexExpr& expr, Scope& scope);
  /// Binds symbols of a relation of `i` to their operands' elements. Returns which of them older variables stand for
  /// too: with these in their place, addresses that are the same can be told.
  std::vector<IndexExpr::Substitution> bind_symbols(const Instruction* i, std::span<const Symbol> symbols,
                                                    Scope& scope);
  /// Whether all guards hold: i1, scalar or a lane each. Null where they always do.
  llvm::Value* holds(std::span<const Guard> guards, Scope& scope);
  /// Runs `emit_values` knowing that what it asks for is used only where `condition` holds (null: always).
  template <class F>
  void under(llvm::Value* condition, F emit_values) {
    bool before = std::exchange(guarded_, guarded_ || condition);
    emit_values();
    guarded_ = before;
  }
  /// Runs `emit_values` for a block's value where these guards of its own hold: with it are read only those of the
  /// block of which they hold, too.
  template <class F>
  void where(std::span<const Guard> guards, F emit_values) {
    if (block_ids_.empty()) return emit_values();
    const int block = block_ids_[0];  // no other one's
    const BlockPart before = std::exchange(read_together_, with_it(guards));
    emit_values();
    if (block_ids_[0] == block) read_together_ = before;  // else loops in it have begun one of their own
  }
  /// Runs `emit_values` on the way of a branch in `scope` that is taken only where all they read lies inside of its
  /// arrays. What is made in scopes outside of it is made on either way.
  template <class F>
  auto on_way(const Scope& scope, F emit_values) {
    struct Way {
      const Scope*& at;
      const Scope* before;
      ~Way() { at = before; }
    } way{way_, std::exchange(way_, &scope)};
    return emit_values();
  }
  /// Under a guard, or outside of the way on which one holds: whether coordinates lie inside an array of these sizes;
  /// null where they always do.
  llvm::Value* inside(std::span<const int64_t> dims, const Coords& coords, Scope& scope);
  llvm::Value* trip_count(const LoopDigit& loop, const IndexExpr& so_far, Scope& scope);
  /// What a digit's variable stands for where its loop's counter has this value.
  llvm::Value* digit_value(const LoopDigit& loop, llvm::Value* counter, Scope& scope);
  /// The outermost scope in which all variables of the coordinates are bound.
  Scope& home(const Coords& coords, Scope& scope);

  const EmitOptions& options() const { return options_; }
  NumberOptions number() const { return NumberOptions::of(options_); }
  int vector_bytes() const { return options_.vector_size(); }
  VarSource& vars() { return vars_; }
  Scope& root() { return root_; }
  /// Of the vector that the expression is; 1: a scalar.
  int lane_count(const IndexExpr& expr) const;

 private:
  friend class PassRun;

  struct Bound {
    Scope* scope;
    llvm::Value* value;  // null for a lane variable
    int lanes;           // > 0: vector of this many
    int pairs = 0;       // of a lane variable: the lanes are in pairs
  };

  Value compute(const Instruction* i, const Coords& coords, Scope& scope);
  Value parameter(const Instruction* i, const Coords& coords, Scope& scope);
  Value array_at(const BufferRef& buffer, const Shape& shape, const Coords& coords, Scope& scope);
  /// The type in which values of `type` are kept in registers.
  DType kept(DType type) const { return in_bits_.contains(type) ? integer_of(dtype_bits(type), false) : type; }
  const BufferRef& constant_data(const Instruction* i, llvm::Module& module);
  Value constant_at(const Instruction* i, const Coords& coords, Scope& scope);
  Coords wrapped(const Shape& shape, Coords coords) const;
  Value moved(const Instruction* i, const Coords& coords, Scope& scope);
  Value bitcast_convert(const Instruction* i, const Coords& coords, Scope& scope);
  std::vector<int> parts_of_wholes(const Coords& coords, int parts) const;
  std::optional<Value> parts_as_bits(const Instruction* i, Coords coords, Scope& scope);
  std::optional<Value> wholes_as_bits(const Instruction* i, const Coords& coords, Scope& scope);
  Value in_bits(const Value& x, DType type, Scope& scope);
  Value operand_at(const Instruction* user, size_t k, const Coords& coords, Scope& scope);
  Value elementwise_at(const Instruction* i, const Coords& coords, Scope& scope);
  const Instruction* sole_product(const Instruction* value) const;
  std::optional<size_t> contractible_operand(const Instruction* sum) const;
  std::pair<const Instruction*, Coords> before_broadcasts(const Instruction* i, Coords coords);
  std::optional<Divisor> shared_divisor(const Instruction* quotient, const Coords& coords, Scope& scope);
  bool may_be_left_out(const Instruction* i, InstructionSet& seen) const;
  std::optional<Value> one_array(const Instruction* select, const Coords& coords, Scope& scope);
  struct Own {
    const Instruction* of;
    bool moved;  ///< its coordinates are others than the select's
  };
  std::vector<Own> only_for(const Instruction* select, size_t operand) const;
  void emit_shared(const std::vector<Own>& own, const Coords& coords, Scope& scope);
  std::optional<Value> where_needed(const Instruction* i, const Value& condition, const Coords& coords, Scope& scope);
  const std::vector<Value>& reduction(const Instruction* i, const Coords& coords, Scope& scope);
  Value placed(const Placed& placed, const Instruction* i, const Coords& coords, Scope& scope);
  Carried lane_loops(Scope& scope, const LoopPiece& piece, const LaneWidths& shape, Carried carried, const Body& body);
  void line_vectors(Scope& scope, const LoopPiece& piece, const LaneWidths& shape, const Body& body);
  void some_lanes(Scope& scope, const LoopPiece& piece, llvm::Value* position, int lanes, const Body& body);
  Lanes lanes_in(Scope& scope, int64_t first, int count, bool in_pairs = false);
  /// Of how many lanes each pairs of a vector are, if they are; 0: lanes are as in memory.
  int pairs_of(int lanes) const {
    const int pairs = vector_bytes() / 2;
    return pairs >= 4 && lanes % pairs == 0 ? pairs : 0;
  }
  /// Of the lanes of `address`, those that belong to the row; null: all.
  llvm::Value* belonging(const IndexExpr& address) const;
  /// Vectors along a digit, one after the other.
  struct VectorRun {
    llvm::Value* count = nullptr;
    int64_t most = 1;  ///< that there may be
    int lanes = 1;
    int at_a_time = 0;  ///< see LaneWidths
    IndexExpr start{0};
    int64_t last = -1;  ///< >= 0: where the last one begins, moved back
    int fresh = 0;      ///< > 0: so many of its lanes hold elements that no earlier vector held
  };
  IndexExpr vector_position(Scope& s, Scope& in, const LoopDigit& loop, const VectorRun& run);
  Carried lane_vectors(Scope& scope, const LoopPiece& piece, const VectorRun& run, Carried carried, const Body& body);
  Carried moved_back_vectors(Scope& scope, const LoopPiece& piece, const LaneWidths& shape, Carried carried,
                             const Body& body);
  Value load_apart(Scope& scope, const BufferRef& buffer, DType type, const IndexExpr& address);
  Value load_one(Scope& scope, const BufferRef& buffer, DType type, const IndexExpr& address, llvm::Value* mask);
  Value load_run(Scope& scope, const BufferRef& buffer, DType type, const IndexExpr& address, int64_t stride,
                 llvm::Value* mask);
  Value load_packed(Scope& scope, const BufferRef& buffer, DType type, const IndexExpr& address, llvm::Value* mask);
  void store_packed(Scope& scope, const BufferRef& buffer, const IndexExpr& address, const Value& value,
                    llvm::Value* mask);
  BlockPart with_it(std::span<const Guard> guards) const;
  bool fills_bytes(const IndexExpr& address, int64_t per_byte) const;
  std::optional<Value> load_block(Scope& scope, const BufferRef& buffer, DType type, const IndexExpr& address);
  std::optional<Value> load_groups(Scope& scope, const BufferRef& buffer, DType type, const IndexExpr& address,
                                   int64_t stride);
  int64_t strides_picked(DType type) const;
  std::optional<Value> load_strided(Scope& scope, const BufferRef& buffer, DType type, const IndexExpr& address,
                                    int64_t stride);
  std::optional<Value> load_by_shuffles(Scope& scope, const BufferRef& buffer, DType type, const IndexExpr& address,
                                        std::optional<int64_t> stride, llvm::Value* mask);
  std::optional<Value> load_pattern(Scope& scope, const BufferRef& buffer, DType type, const IndexExpr& address,
                                    llvm::Value* mask);
  std::optional<Value> load_wrapping(Scope& scope, const BufferRef& buffer, DType type, const IndexExpr& address,
                                     llvm::Value* mask);
  Value load_anywhere(Scope& scope, const BufferRef& buffer, DType type, const IndexExpr& address, llvm::Value* mask);
  void share_windows(const IndexExpr& in_block, const LanePattern& pattern, const std::vector<int64_t>& wanted,
                     std::vector<int64_t>& starts) const;
  bool fits_table(const BufferRef& buffer, DType type, int lanes) const;
  Value load_from_table(Scope& scope, const BufferRef& buffer, DType type, const IndexExpr& address, int lanes,
                        llvm::Value* mask);
  std::optional<Value> load_found(Scope& scope, const BufferRef& buffer, DType type, const IndexExpr& address);
  /// Of the rows that a block's vectors lie across.
  struct RowNumbers {
    IndexExpr first;               ///< coordinate
    int64_t count = 0;             ///< all that there are
    std::vector<int64_t> of_lane;  ///< from the first on
  };
  std::optional<RowNumbers> row_numbers(const IndexExpr& coordinate, int lane, int lanes) const;
  /// Of these rows, the indices that say where each lies.
  struct FoundRows {
    struct Index {
      const Instruction* of;
      Symbol symbol;
      std::vector<size_t> along;  ///< its coordinates that rows have their own of
      Ints sizes;                 ///< of these dims
      IndexExpr first;            ///< what they are together for the first row
      int64_t step;               ///< elements that the index counts
    };
    std::vector<Index> indices;
    int64_t count = 0;
    std::vector<int64_t> of_lane;
  };
  std::optional<FoundRows> found_rows(const IndexExpr& found, int lane, int lanes) const;
  llvm::Value* elements_of(const FoundRows& rows, const IndexExpr& base, Scope& scope);
  Value words_found(Scope& scope, const BufferRef& buffer, DType type, const FoundRows& rows,
                    const LanePattern& pattern);
  Value integers_found(Scope& scope, const BufferRef& buffer, DType type, const FoundRows& rows,
                       const LanePattern& pattern);
  std::pair<llvm::Value*, int64_t> window_at(Scope& scope, const BufferRef& buffer, llvm::Type* element,
                                             const IndexExpr& base, int64_t first, int64_t last, int64_t lanes);
  llvm::Value* vector_at(Scope& scope, const BufferRef& buffer, llvm::Type* element, int64_t lanes,
                         const IndexExpr& address);
  std::vector<llvm::Value*> rows_at(Scope& scope, const BufferRef& buffer, DType type, const IndexExpr& start, int per,
                                    int there);
  bool found_by_block(const IndexExpr& asked) const;
  std::optional<Value> load_rows(Scope& scope, const BufferRef& buffer, DType type, const IndexExpr& asked);
  int lane_var(const IndexExpr& expr) const;
  /// Of how many lanes each pairs of the expression's vector are, if its lanes are in pairs; else 0.
  int pairs_along(const IndexExpr& expr) const;
  llvm::Value* address_of(Scope& scope, const BufferRef& buffer, llvm::Type* element, const IndexExpr& in_block);
  void store_apart(Scope& scope, const BufferRef& buffer, llvm::Value* lanes, const IndexExpr& address);
  void store_squares(Scope& scope, const BufferRef& buffer, std::span<llvm::Value* const> rows, const IndexExpr& base);
  bool stores_across(const BufferRef& buffer, const IndexExpr& address, DType type, int64_t count) const;
  bool copy_square(Scope& scope, const BufferRef& buffer, const std::vector<IndexExpr>& addresses,
                   const std::vector<Value>& values);
  /// The address with the numbers of the block, which are variables elsewhere, as what they are.
  IndexExpr of_block_values(const IndexExpr& address) const;
  void store_vector(Scope& scope, const BufferRef& buffer, llvm::Type* element, llvm::Value* vector,
                    const IndexExpr& address);
  bool vector_bound(const IndexExpr& expr) const;
  Scope& deepest(const IndexExpr& expr, Scope& scope);
  llvm::Value* atom_value(const IndexExpr::Atom& atom, Scope& scope);
  struct Part {
    Scope* scope;
    const IndexExpr::Term* term;
  };
  std::vector<Part> parts(const IndexExpr& expr, Scope& scope);
  llvm::Value* part_value(const Part& part);

  Scope& root_;
  EmitOptions options_;
  TargetInfo target_;
  std::set<DType> in_bits_;
  VarSource& vars_;
  std::unordered_map<const Instruction*, BufferRef> buffers_;
  InstructionSet products_;                                      // parameters
  std::unordered_map<const Instruction*, BufferRef> constants_;  ///< arrays in the code's own data
  std::unordered_map<const Instruction*, Provider> providers_;
  std::unordered_map<int, Bound> bound_;
  /// What a variable stands for whose value is an index: an operand's element.
  struct FoundAt {
    const Instruction* of;
    Symbol symbol;
  };
  std::unordered_map<int, FoundAt> found_at_;
  std::unordered_map<const Instruction*, Placed> placed_;
  size_t stage_ = 0;
  Scope* outermost_ = &root_;  ///< in which values are made
  std::vector<IndexExpr> block_;
  std::vector<int> block_ids_;
  std::vector<int64_t> block_values_;
  std::vector<IndexExpr::Substitution> block_numbers_;  ///< these for their variables
  BlockPart read_together_;     ///< what lies inside of its arrays wherever the value does that is being emitted
  bool in_groups_ = false;      ///< steps along rows are written out in groups
  bool guarded_ = false;        ///< values are asked for that may lie outside their arrays
  const Scope* way_ = nullptr;  ///< in which they do not
  bool stores_in_halves_ = false, few_gathers_ = false;
  bool in_lines_ = false;          ///< vectors begin with lines
  int line_lane_ = -1;             ///< the variable of lanes some of which do not belong to the row
  llvm::Value* in_row_ = nullptr;  ///< those that do
};

}  // namespace hlojit::codegen
