// Lanes of vectors taken apart and put together: of vectors wider than a machine's registers, which an instruction
// takes part by part, and of vectors that lie across the order wanted.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace llvm {
class IRBuilderBase;
class Type;
class Value;
}  // namespace llvm

namespace hlojit::codegen {

/// The type of `lanes` elements; of one, the element's own.
llvm::Type* vector_of(llvm::Type* element, int64_t lanes);

/// Lanes [first, first + count) of a vector or scalar; those that it does not have are poison. One lane is a scalar.
llvm::Value* lanes_from(llvm::IRBuilderBase& b, llvm::Value* x, unsigned first, unsigned count);

/// The lanes of vectors of one type, one vector after the other.
llvm::Value* joined(llvm::IRBuilderBase& b, std::span<llvm::Value* const> parts);

/// A lane of a vector.
struct LaneOf {
  llvm::Value* vector = nullptr;
  int lane = 0;
};

/// A vector put together from lanes of others, all of one type: one shuffle takes them from the first two of these, one
/// more from each further one. Without a vector: any value.
llvm::Value* put_together(llvm::IRBuilderBase& b, std::span<const LaneOf> lanes);

/// A mask that holds in the first `set` lanes.
llvm::Constant* first_lanes(llvm::IRBuilderBase& b, int lanes, int set);

/// None of lanes [first, first + count) of a mask can hold, as far as constants in it tell.
bool never_holds(const llvm::Value* mask, unsigned first, unsigned count);

/// The last lane first.
llvm::Value* reversed(llvm::IRBuilderBase& b, llvm::Value* x);

/// The columns of a matrix, given its rows of a power of two of elements, at least as many rows as columns.
std::vector<llvm::Value*> transposed(llvm::IRBuilderBase& b, std::span<llvm::Value* const> rows);

/// What `f` makes of `count` lanes of each operand at a time; as many lanes as the operands have.
llvm::Value* in_parts(llvm::IRBuilderBase& b, std::span<llvm::Value* const> operands, unsigned count,
                      const std::function<llvm::Value*(std::span<llvm::Value* const>)>& f);

}  // namespace hlojit::codegen
