// What a kernel computes with: a value of some lanes, in registers.
//
// In registers a pred is i1; an integer its own width, but at least 8 bits, in which narrower ones are kept
// sign- or zero-extended; f32 and f64 themselves. Narrower floats are an f32 that is exactly representable
// in their type, so that a chain of bf16 ops rounds after each op but converts only at loads and stores.
// Complex numbers are two parts of their component type.
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

class Target;
struct EmitOptions;

/// A value of `lanes` elements (1: a scalar, not a vector of one). Complex numbers have two parts, real and
/// imaginary, of one lane count; every other type has one.
struct Value {
  DType type = DType::kInvalid;
  llvm::Value* v = nullptr;
  llvm::Value* imag = nullptr;
  explicit operator bool() const { return v != nullptr; }
};

/// How ops are emitted.
struct NumberOptions {
  bool avx512 = false;
  bool contract = true;  ///< single-use multiply feeding an add becomes an fma
  /// Whose instructions the ops may be made of besides those of AVX-512; null: none's.
  const Target* target = nullptr;

  static NumberOptions of(const EmitOptions& options);
};

/// What moves values moves all their parts: f(llvm::Value*) -> llvm::Value* applied to each.
template <class F>
Value map_parts(const Value& x, F f) {
  return {x.type, f(x.v), x.imag ? f(x.imag) : nullptr};
}
/// The parts of several values in a row, and back: values that go around loops as phi nodes.
void append_parts(std::vector<llvm::Value*>& parts, const Value& value);
Value take_parts(DType type, std::span<llvm::Value* const> parts, size_t& at);

/// In-register type of one part of `lanes` elements.
llvm::Type* register_type(llvm::IRBuilderBase& b, DType type, int lanes);
int lanes_of(const Value& value);
/// Repeats a scalar over lanes (identity if already that wide).
Value splat(llvm::IRBuilderBase& b, const Value& value, int lanes);
/// x where the i1 condition holds, else y; all of one lane count.
Value select(llvm::IRBuilderBase& b, llvm::Value* condition, const Value& x, const Value& y);
/// Element `index` (row-major) of a literal as a scalar constant.
Value constant(llvm::IRBuilderBase& b, const Literal& literal, int64_t index);
Value constant(llvm::IRBuilderBase& b, DType type, double value, int lanes);
/// The largest (or smallest) value of a type, infinities included: what min (or max) begins with. Complex
/// numbers are ordered by real part, then by imaginary part.
Value extreme(llvm::IRBuilderBase& b, DType type, bool largest);

}  // namespace hlojit::codegen
