// Lanes along a coordinate that wraps somewhere, who knows where: a row of another length, behind a reshape, or the
// next turn of what is repeated. Between two wraps they lie at one distance, and most vectors are there whole: those
// are loaded as if nothing wrapped, the others lane by lane.
#include <optional>
#include <vector>

#include "codegen/nest/branch.h"
#include "codegen/nest/element_emitter.h"
#include "codegen/nest/lane_pattern.h"

namespace hlojit::codegen {

// (A softmax of f16[284989] twice, the second behind the first, whose largest element is looked for by rows of 2192,
// one thread of a Zen 4: 1361 us with no lanes along these, 557.)
std::optional<Value> ElementEmitter::load_wrapping(Scope& scope, const BufferRef& buffer, DType type,
                                                   const IndexExpr& in_block, llvm::Value* mask) {
  const IndexExpr address = of_block_values(in_block);
  const int lane = lane_var(address), lanes = lane_count(address);
  if (lane < 0 || vector_bound(address) || pairs_along(address) > 0) return std::nullopt;
  const auto between = between_wraps(address, lane, lanes);
  if (!between) return std::nullopt;
  const IndexExpr straight = address.substitute(lane, 0) + IndexExpr::var(lane, lanes) * between->step;
  auto parts = [&](const Value& v) {
    std::vector<llvm::Value*> all;
    append_parts(all, splat(scope.builder, v, lanes));
    return all;
  };
  llvm::Value* whole = holds(between->guards, scope);
  if (!whole) return load(scope, buffer, type, straight, mask);
  const auto joined = branch(
      scope, whole, [&] { return parts(load(scope, buffer, type, straight, mask)); },
      [&] { return parts(load_anywhere(scope, buffer, type, address, mask)); });
  size_t at = 0;
  return take_parts(type, joined, at);
}

}  // namespace hlojit::codegen
