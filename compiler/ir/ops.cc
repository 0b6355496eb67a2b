// The rows of the op table, and the way back from a text name to its row.
#include "compiler/ir/ops.h"

#include <algorithm>
#include <array>

namespace hlojit {
namespace {

using namespace op_trait;

constexpr OpInfo kOps[] = {
#define X(name, text, arity, op_class, price, ...) \
  {Opcode::k##name, text, arity, OpClass::k##op_class, OpPrice::k##price, 0 __VA_OPT__(| (__VA_ARGS__))},
    HLOJIT_OPS(X)
#undef X
};
constexpr size_t kOpCount = std::size(kOps);

// Rows ordered by text name, for binary search.
constexpr auto kByName = [] {
  std::array<const OpInfo*, kOpCount> rows{};
  for (size_t i = 0; i < kOpCount; ++i) rows[i] = &kOps[i];
  std::ranges::sort(rows, {}, &OpInfo::name);
  return rows;
}();

}  // namespace

const OpInfo& op_info(Opcode opcode) { return kOps[static_cast<size_t>(opcode)]; }

std::optional<Opcode> op_from_name(std::string_view name) {
  auto row = std::ranges::lower_bound(kByName, name, {}, &OpInfo::name);
  if (row == kByName.end() || (*row)->name != name) return std::nullopt;
  return (*row)->opcode;
}

int op_count() { return static_cast<int>(kOpCount); }

}  // namespace hlojit
