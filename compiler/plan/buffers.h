// Buffer assignment: where every array value of the sequential computations (entry, while conditions
// and bodies, conditional branches) lives. One arena for temporaries, offsets by liveness; results of
// the entry are written straight into the caller's result buffers, which house temporaries until then;
// while state shares one buffer between init, parameter, body root and result (pass `alias` made that
// legal by inserting copies).
//
// Tuples do not exist at run time: an instruction of tuple shape has a slice for each leaf.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/ir/module.h"

namespace hlojit {

struct BufferSlice {
  enum class Kind : uint8_t {
    kParameter,  ///< index = leaf number over the entry's parameters, offset 0
    kResult,     ///< index = leaf number of the entry's result, offset 0
    kArena,      ///< offset into the arena
    kConstant,   ///< offset into the constant blob
  };
  Kind kind = Kind::kArena;
  int64_t index = 0;
  int64_t offset = 0;  ///< bytes; 64-byte aligned in arena and constants
  int64_t size = 0;    ///< bytes: physical_size of the leaf's shape
  bool operator==(const BufferSlice&) const = default;
};

struct BufferPlan {
  /// Slices of an instruction's leaves, depth first. Present for every instruction of a sequential
  /// computation whose shape has leaves.
  std::unordered_map<const Instruction*, std::vector<BufferSlice>> slices;
  /// Constants of the sequential computations, in their shape's layout.
  struct Constant {
    const Instruction* instruction;
    int64_t offset;
  };
  std::vector<Constant> constants;
  int64_t constant_bytes = 0;
  int64_t arena_bytes = 0;
  /// A stretch of the arena: what it holds (the value that first had it) and when, in instructions of
  /// the flattened schedule. For the report and for tests.
  struct Allocation {
    const Instruction* holder;
    int64_t offset, size;
    int64_t begin, end;  ///< first and last moment, inclusive
  };
  std::vector<Allocation> allocations;  ///< by begin
  std::string report() const;           ///< who holds the peak, a line a buffer

  const BufferSlice& slice(const Instruction* i, int64_t leaf = 0) const { return slices.at(i).at(leaf); }
};

/// Needs a scheduled module (instruction order is the schedule) on which `alias` has run.
/// Throws Error(kUnsupported) for values that cannot be placed (opaque).
BufferPlan assign_buffers(const Module& module);

}  // namespace hlojit
