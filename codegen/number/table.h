// Small tables in registers: elements picked by the instructions that move lanes anywhere, instead of gathered from
// memory one by one. (210,000 bytes by a table of 256: 69 us by loads, one thread of a Zen 4.)
#pragma once

#include <cstdint>
#include <span>

#include "codegen/target.h"

namespace llvm {
class IRBuilderBase;
class Value;
}  // namespace llvm

namespace hlojit::codegen {

/// How many elements of so many bytes one register of a table holds; 0 where the machine cannot pick from it.
int table_lanes(const Target& target, int64_t bytes);
/// How many elements a table may have in all.
int64_t largest_table(const Target& target, int64_t bytes);

/// Elements at `places` (integers as wide as the elements, any lanes) of a table in as few registers as hold it,
/// vectors of table_lanes() such integers. A place beyond the table gives any value.
llvm::Value* look_up(llvm::IRBuilderBase& b, const Target& target, std::span<llvm::Value* const> table,
                     llvm::Value* places);

}  // namespace hlojit::codegen
