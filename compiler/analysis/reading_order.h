// Whether a kernel goes through its operands in the order in which it goes through its results: then cores that share
// it out, each a stretch, find what they read where cores that shared out its maker by stretches have left it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "compiler/ir/module.h"

namespace hlojit {

struct Reading {
  /// The first results, in memory, depend on elements of the operand's first half alone, the last ones on elements of
  /// its second half. False for what is read at places that are known at run time only, and of ops without an access
  /// relation that move elements.
  bool in_order = true;
  int64_t bytes = 0;  ///< of the caches' lines that what is read lies in, at most
};

/// How a fusion reads each of its operands. Fusions of many instructions are taken to read all of them in order.
std::vector<Reading> readings(const Instruction& fusion);

/// How many elements of its result number `leaf` a fusion writes: of one updated in place those of the update.
int64_t written_elements(const Instruction& fusion, size_t leaf);

}  // namespace hlojit
