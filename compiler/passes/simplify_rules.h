// What the rule tables of `simplify` are written in. A rule looks at one instruction and returns
// the value that stands for it, an existing one or one it made, or nullptr. It goes one way only,
// towards fewer or cheaper instructions, so that rewriting ends; it never changes the instruction
// itself.
#pragma once

#include <span>

#include "compiler/builder.h"
#include "compiler/ir/module.h"

namespace hlojit {

struct SimplifyContext {
  Builder b;  ///< appends to the computation at hand
  bool strict;
  const Instruction* loop = nullptr;  ///< whose rounds the computation is the body of
};

struct SimplifyRule {
  Opcode opcode;
  Instruction* (*apply)(SimplifyContext&, Instruction*);
};

std::span<const SimplifyRule> arithmetic_rules();
std::span<const SimplifyRule> movement_rules();
std::span<const SimplifyRule> control_rules();
std::span<const SimplifyRule> counter_rules();
std::span<const SimplifyRule> width_rules();

/// Words made of bytes (simplify_widths.cc) none of which is below zero.
bool never_below_zero(const Instruction* i);

/// The one value of a constant or of a broadcast scalar constant; nullptr if it has several.
/// Element 0 of the literal is the value.
const Literal* splat_value(const Instruction* i);

/// Powers to so few different exponents become products, which fold makes constants for it.
inline constexpr int64_t kFewExponents = 16;

}  // namespace hlojit
