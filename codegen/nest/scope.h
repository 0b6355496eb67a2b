// Scopes and loops of a function under construction.
//
// A scope is a place where code can be appended: the function's start, or a loop's body. Its block
// has no terminator while it is open, so that code found to be independent of an inner loop can be
// appended to the outer scope: loop-invariant values are hoisted by construction, not by a pass.
#pragma once

#include <memory>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include <llvm/ADT/DenseMap.h>
#include <llvm/IR/IRBuilder.h>

#include "codegen/number/divisor.h"
#include "codegen/number/elementwise.h"
#include "compiler/analysis/access.h"

namespace hlojit::codegen {

/// How often y goes into x, rounded up: of counts, x >= 0.
llvm::Value* ceil_quotient(llvm::IRBuilderBase& b, llvm::Value* x, llvm::Value* y);

/// A variable that stands for an index of a type, clamped to a range.
struct Clamped {
  DType type;
  Range range;
  int var;
};

/// Elements next to each other, of as many rows as there are lanes: values[k] has the element k behind the one at
/// `address` (in the lanes' own; the numbers of a block are constants in it).
struct RowLoad {
  IndexExpr address;
  std::vector<llvm::Value*> values;
};

/// Of a block, the values from number `first` to `end`.
struct BlockPart {
  size_t first = 0, end = SIZE_MAX;
  bool operator==(const BlockPart&) const = default;
};

/// A block of memory in registers, from `address` on: values[k] has the lanes of the block's value k, if that is in the
/// part that was read.
struct BlockLoad {
  llvm::Value* pointer;
  IndexExpr address;
  BlockPart part;
  std::vector<llvm::Value*> values;
  llvm::Value* first_row = nullptr;  ///< of rows that were transposed, all of them, if nothing writes to these
  int64_t row_stride = 0;            ///< of these, in elements
};

/// A vector of memory.
struct VectorLoad {
  llvm::Value* pointer;
  IndexExpr address;
  llvm::Value* value;
};

/// An operation on numbers: its opcode, its operands and, of a pointer that moves on, the type of its steps.
using Operation = std::tuple<unsigned, llvm::Type*, llvm::Value*, llvm::Value*>;

/// What code that stands at the end of a scope may use again.
struct Known {
  /// Values of (instruction, coordinates) whose home is this scope. Written out, a loop has thousands of one's.
  std::unordered_map<const Instruction*, std::unordered_map<Coords, Value, CoordsHash>> memo;
  /// The same for reductions, which may have several results.
  std::unordered_map<const Instruction*, std::vector<std::pair<Coords, std::vector<Value>>>> reductions;
  /// Of each buffer, by its pointer.
  std::unordered_map<llvm::Value*, std::vector<RowLoad>> rows;
  std::vector<BlockLoad> blocks;
  std::vector<VectorLoad> vectors;
  /// Small tables in registers (codegen/number/table.h), by their pointer.
  std::unordered_map<llvm::Value*, std::vector<llvm::Value*>> tables;
  /// Of a select between arrays, by its condition: where the one is that is taken.
  llvm::DenseMap<std::pair<const Instruction*, llvm::Value*>, llvm::Value*> chosen;
  /// By what is divided by.
  std::unordered_map<llvm::Value*, Divisor> divisors;
  /// Of address arithmetic: most of what an access needs is what others have. (Half of what a kernel was emitted as was
  /// found again and left out by the passes that follow.)
  llvm::DenseMap<Operation, llvm::Value*> numbers;
  /// By an index that was computed: variables that stand for it.
  std::unordered_map<llvm::Value*, std::vector<Clamped>> symbols;
};

struct Scope : Known {
  Scope(llvm::BasicBlock* block, Scope* parent)
      : builder(block), parent(parent), depth(parent ? parent->depth + 1 : 0) {}

  /// It is `outer` or somewhere in it.
  bool is_in(const Scope& outer) const {
    const Scope* s = this;
    while (s && s != &outer) s = s->parent;
    return s != nullptr;
  }

  llvm::Value* sum(llvm::Value* x, llvm::Value* y);
  llvm::Value* product(llvm::Value* x, int64_t factor);
  /// Of numbers that are not negative, and at most so large.
  llvm::Value* quotient(llvm::Value* x, int64_t most, int64_t divisor);
  llvm::Value* remainder(llvm::Value* x, int64_t most, int64_t divisor);
  llvm::Value* moved_on(llvm::Type* element, llvm::Value* pointer, llvm::Value* steps);

  llvm::IRBuilder<> builder;
  Scope* parent;
  int depth;
  /// Variables of the lanes, by their count: vectors that are written out here have the same one, so that what one
  /// stage has made of an element is known in the next.
  std::unordered_map<int, int> lanes, lanes_in_pairs;

  // A loop's own.
  llvm::BasicBlock* header = nullptr;
  llvm::PHINode* counter = nullptr;
  llvm::Value* trip = nullptr;
  int64_t step = 1;
  bool once = false;    ///< the trip is none or one
  bool enters = false;  ///< the trip is not none
  bool likely = false;  ///< it hardly ever is
  std::vector<llvm::PHINode*> carried;
  std::vector<llvm::Value*> initial;

 private:
  llvm::Value* binary(llvm::Instruction::BinaryOps op, llvm::Value* x, llvm::Value* y);
};

/// Opens a loop in `parent`: counter = 0, step, 2*step ... < trip. `initial` values are carried around it.
/// The loop's scope starts in its header; close it before anything is appended to the parent that
/// must run after it. (What must run before it may still be appended to the parent.)
std::unique_ptr<Scope> open_loop(Scope& parent, llvm::Value* trip, int64_t step, std::string_view name,
                                 std::vector<llvm::Value*> initial = {});
/// Ends the body with the carried values' next values; returns their final values, usable in the parent.
std::vector<llvm::Value*> close_loop(Scope& parent, std::unique_ptr<Scope> loop,
                                     const std::vector<llvm::Value*>& next = {});

}  // namespace hlojit::codegen
