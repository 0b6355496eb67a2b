// What an elementwise op means, in vector IR: one function from operand values to the result value.
//
// In registers a pred is i1, an integer its own width, f32 and f64 themselves; narrower floats are
// held as f32 that is exactly representable in their type, so that a chain of bf16 ops rounds after
// each op but converts only at loads and stores.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compiler/ir/module.h"

namespace llvm {
class Value;
class Type;
class IRBuilderBase;
}  // namespace llvm

namespace hlojit::codegen {

/// A value of `lanes` elements (1: a scalar, not a vector of one). Complex numbers have two parts, real and
/// imaginary, of one lane count; every other type has one.
struct Value {
  DType type = DType::kInvalid;
  llvm::Value* v = nullptr;
  llvm::Value* imag = nullptr;
  explicit operator bool() const { return v != nullptr; }
};

/// What moves values moves all their parts: f(llvm::Value*) -> llvm::Value* applied to each.
template <class F>
Value map_parts(const Value& x, F f) {
  return {x.type, f(x.v), x.imag ? f(x.imag) : nullptr};
}
/// The parts of several values in a row, and back: values that go around loops as phi nodes.
void append_parts(std::vector<llvm::Value*>& parts, const Value& value);
Value take_parts(DType type, std::span<llvm::Value* const> parts, size_t& at);

struct NumberOptions {
  bool avx512 = false;
  bool contract = true;  ///< single-use multiply feeding an add becomes an fma
};

/// Element types that kernels compute in; others throw Error(kUnsupported) where first met.
bool is_compiled_type(DType type);

/// In-register type of one part of `lanes` elements, and the type they have in memory: complex elements are
/// integers of their width there (real part in the low half).
llvm::Type* register_type(llvm::IRBuilderBase& b, DType type, int lanes);
llvm::Type* storage_type(llvm::IRBuilderBase& b, DType type, int lanes);
Value from_storage(llvm::IRBuilderBase& b, DType type, llvm::Value* raw);
llvm::Value* to_storage(llvm::IRBuilderBase& b, const Value& value);

int lanes_of(const Value& value);
/// Repeats a scalar over lanes (identity if already that wide).
Value splat(llvm::IRBuilderBase& b, const Value& value, int lanes);
/// x where the i1 condition holds, else y; all of one lane count.
Value select(llvm::IRBuilderBase& b, llvm::Value* condition, const Value& x, const Value& y);
/// Element `index` (row-major) of a literal as a scalar constant.
Value constant(llvm::IRBuilderBase& b, const Literal& literal, int64_t index);
Value constant(llvm::IRBuilderBase& b, DType type, double value, int lanes);

/// Result of an elementwise instruction (opcode, attributes and result type are read from it).
/// Operands all have the same lane count. bitcast-convert between equal widths included.
Value elementwise(llvm::IRBuilderBase& b, const NumberOptions& options, const Instruction& instruction,
                  std::span<const Value> operands);
Value convert(llvm::IRBuilderBase& b, const NumberOptions& options, const Value& value, DType to);
/// x * y + z with one rounding; f32 and f64 only.
Value fma(llvm::IRBuilderBase& b, const Value& x, const Value& y, const Value& z);
/// x + y, x * y and the like without an instruction at hand; narrow floats are rounded unless `wide`.
Value binary(llvm::IRBuilderBase& b, const NumberOptions& options, Opcode opcode, const Value& x,
             const Value& y);
/// Rounds the f32 in a register to a narrow float type (no-op for others). `any_nan`: a NaN may have any
/// payload; results of arithmetic on narrow values cannot (theirs, or the default one).
Value round_to_type(llvm::IRBuilderBase& b, const Value& value, bool any_nan = false);
/// An integer index (i64 scalar or vector) as an element of `type`, as iota defines it.
Value from_index(llvm::IRBuilderBase& b, llvm::Value* index, DType type);

}  // namespace hlojit::codegen
