// Lanes whose places to each other are known: the runs of memory in which they lie are loaded as vectors, each lane is
// taken out of the one that has it by constant shuffles.
#include <algorithm>
#include <bit>

#include "codegen/nest/element_emitter.h"
#include "codegen/nest/lane_pattern.h"
#include "codegen/number/parts.h"

namespace hlojit::codegen {
namespace {

// Is the lane read? `mask`: constants, null: each is.
bool reads(const llvm::Value* mask, size_t lane) { return !mask || !never_holds(mask, static_cast<unsigned>(lane), 1); }

}  // namespace

// `lanes` elements of which [first, last] from the base are wanted, nothing beyond the buffer read: from the first on,
// up to the last, or fewer than all. The vector, and where it begins.
std::pair<llvm::Value*, int64_t> ElementEmitter::window_at(Scope& scope, const BufferRef& buffer, llvm::Type* element,
                                                           const IndexExpr& base, int64_t first, int64_t last,
                                                           int64_t lanes) {
  llvm::IRBuilder<>& b = scope.builder;
  const Range range = base.range();
  auto loaded = [&](int64_t count, int64_t start) {
    llvm::Value* v = vector_at(scope, buffer, element, count, base + IndexExpr(start));
    if (!v->getType()->isVectorTy()) v = b.CreateVectorSplat(1, v);
    return std::pair(lanes_from(b, v, 0, static_cast<unsigned>(lanes)), start);
  };
  const int64_t least = last - first + 1;
  for (int64_t count = lanes; count >= least && count > 1; count /= 2) {
    if (range.hi + first + count <= buffer.elements) return loaded(count, first);
    if (range.lo + last + 1 >= count && buffer.elements > 0) return loaded(count, last + 1 - count);
  }
  return loaded(least, first);
}

std::optional<Value> ElementEmitter::load_pattern(Scope& scope, const BufferRef& buffer, DType type,
                                                  const IndexExpr& in_block, llvm::Value* mask) {
  const int lane = lane_var(in_block), lanes = lane_count(in_block);
  if (lane < 0 || vector_bound(in_block) || dtype_bytes(type) > 8) return std::nullopt;
  const IndexExpr address = of_block_values(in_block);
  if (!address.depends_on(lane) && !mask)
    return splat(scope.builder, load_one(scope, buffer, type, address, nullptr), lanes);
  if (address.coefficient(lane).value_or(0) != 0) return load(scope, buffer, type, address, mask);
  const auto pattern = lane_pattern(address, lane, lanes);
  if (!pattern) return std::nullopt;
  std::vector<int64_t> wanted;
  for (size_t l = 0; l < pattern->offsets.size(); ++l) {
    if (reads(mask, l)) wanted.push_back(pattern->offsets[l]);
  }
  if (wanted.empty()) return std::nullopt;
  const std::vector<int64_t> starts = windows_of(wanted, lanes);
  if (std::ssize(starts) > std::max<int64_t>(kMostWindows, lanes / 4)) return std::nullopt;
  llvm::Type* element = storage_type(scope.builder, type, 1);
  std::vector<LaneOf> places(pattern->offsets.size());
  for (size_t w = 0; w < starts.size(); ++w) {
    const int64_t end = w + 1 < starts.size() ? starts[w + 1] : INT64_MAX;
    int64_t last = starts[w];
    for (int64_t at : wanted) {
      if (at < end) last = std::max(last, at);
    }
    const auto [vector, begin] = window_at(scope, buffer, element, pattern->base, starts[w], last, lanes);
    for (size_t l = 0; l < places.size(); ++l) {
      const int64_t at = pattern->offsets[l];
      if (!reads(mask, l))
        places[l] = {vector, 0};
      else if (at >= starts[w] && at < end)
        places[l] = {vector, static_cast<int>(at - begin)};
    }
  }
  return from_storage(scope.builder, type, put_together(scope.builder, places));
}

}  // namespace hlojit::codegen
