// The table of element types; every question about a type is a look-up in it.
#include "layout/dtype.h"

#include <array>
#include <cstddef>

namespace hlojit {
namespace {

struct Row {
  DType type;
  std::string_view name;
  DTypeClass cls;
  int bits;
};

using C = DTypeClass;

// In the order of the enum, so that a type is its own index.
constexpr std::array<Row, 35> kRows = {{
    {DType::kInvalid, "(invalid)", C::kNone, 0},
    {DType::kPred, "pred", C::kPred, 1},
    {DType::kS8, "s8", C::kSigned, 8},
    {DType::kS16, "s16", C::kSigned, 16},
    {DType::kS32, "s32", C::kSigned, 32},
    {DType::kS64, "s64", C::kSigned, 64},
    {DType::kU8, "u8", C::kUnsigned, 8},
    {DType::kU16, "u16", C::kUnsigned, 16},
    {DType::kU32, "u32", C::kUnsigned, 32},
    {DType::kU64, "u64", C::kUnsigned, 64},
    {DType::kF16, "f16", C::kFloat, 16},
    {DType::kF32, "f32", C::kFloat, 32},
    {DType::kF64, "f64", C::kFloat, 64},
    {DType::kTuple, "(tuple)", C::kNone, 0},
    {DType::kOpaque, "opaque", C::kNone, 0},
    {DType::kC64, "c64", C::kComplex, 64},
    {DType::kBF16, "bf16", C::kFloat, 16},
    {DType::kToken, "token", C::kNone, 0},
    {DType::kC128, "c128", C::kComplex, 128},
    {DType::kF8E5M2, "f8e5m2", C::kFloat, 8},
    {DType::kF8E4M3FN, "f8e4m3fn", C::kFloat, 8},
    {DType::kS4, "s4", C::kSigned, 4},
    {DType::kU4, "u4", C::kUnsigned, 4},
    {DType::kF8E4M3B11FNUZ, "f8e4m3b11fnuz", C::kFloat, 8},
    {DType::kF8E5M2FNUZ, "f8e5m2fnuz", C::kFloat, 8},
    {DType::kF8E4M3FNUZ, "f8e4m3fnuz", C::kFloat, 8},
    {DType::kS2, "s2", C::kSigned, 2},
    {DType::kU2, "u2", C::kUnsigned, 2},
    {DType::kF8E4M3, "f8e4m3", C::kFloat, 8},
    {DType::kF8E3M4, "f8e3m4", C::kFloat, 8},
    {DType::kS1, "s1", C::kSigned, 1},
    {DType::kU1, "u1", C::kUnsigned, 1},
    {DType::kF4E2M1FN, "f4e2m1fn", C::kFloat, 4},
    {DType::kF8E8M0FNU, "f8e8m0fnu", C::kFloat, 8},
    {DType::kBuffer, "(buffer)", C::kNone, 0},
}};

constexpr bool in_enum_order() {
  for (size_t i = 0; i < kRows.size(); ++i) {
    if (static_cast<size_t>(kRows[i].type) != i) return false;
  }
  return true;
}
static_assert(in_enum_order());

// Protos may carry any number: what is not in the table is the invalid type.
const Row& row(DType type) {
  size_t i = static_cast<size_t>(type);
  return kRows[i < kRows.size() ? i : 0];
}

}  // namespace

std::string_view dtype_name(DType type) { return row(type).name; }

std::optional<DType> dtype_from_name(std::string_view name) {
  if (name.empty() || name.front() == '(') return std::nullopt;
  for (const Row& r : kRows) {
    if (r.name == name) return r.type;
  }
  return std::nullopt;
}

DTypeClass dtype_class(DType type) { return row(type).cls; }
int dtype_bits(DType type) { return row(type).bits; }
int dtype_bytes(DType type) { return (row(type).bits + 7) / 8; }

DType component_type(DType type) {
  if (type == DType::kC64) return DType::kF32;
  if (type == DType::kC128) return DType::kF64;
  return type;
}

DType complex_of(DType type) {
  if (type == DType::kF32) return DType::kC64;
  if (type == DType::kF64) return DType::kC128;
  return DType::kInvalid;
}

DType integer_of(int bits, bool is_signed) {
  for (const Row& r : kRows) {
    if (r.cls == (is_signed ? C::kSigned : C::kUnsigned) && r.bits == bits) return r.type;
  }
  return DType::kInvalid;
}

}  // namespace hlojit
