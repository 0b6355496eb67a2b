// Loads of lanes that lie in rows of their own: several elements of each row are loaded and transposed in registers. Of
// an unrolled digit along which memory is contiguous, a block; else the neighbours that are asked for one after the
// other.
#include <algorithm>
#include <bit>

#include "codegen/nest/element_emitter.h"
#include "codegen/nest/packed.h"
#include "codegen/number/parts.h"

namespace hlojit::codegen {

bool fits_transposed(int64_t count, int64_t lanes, DType type) {
  constexpr int64_t kPart = 16;  // bytes that are turned at a time
  if (count == lanes) return true;
  if (!std::has_single_bit(static_cast<uint64_t>(count))) return false;
  const bool wide = count > lanes && std::has_single_bit(static_cast<uint64_t>(lanes));
  return count * dtype_bytes(type) <= kPart || (wide && lanes * dtype_bytes(type) >= kPart);
}

std::optional<Value> ElementEmitter::load_block(Scope& scope, const BufferRef& buffer, DType type,
                                                const IndexExpr& address) {
  int lane = lane_var(address);
  auto stride = address.coefficient(lane);
  if (block_ids_.empty() || !stride || *stride <= 1) return std::nullopt;
  size_t k = 0;
  while (k < block_ids_.size() && !address.depends_on(block_ids_[k])) ++k;
  if (k == block_ids_.size() || address.coefficient(block_ids_[k]) != 1) return std::nullopt;
  auto count = static_cast<int64_t>(block_ids_.size());
  int lanes = lane_count(address);
  const bool fits = fits_transposed(count, lanes, type);
  if (!fits && *stride != count) return std::nullopt;
  // The whole block is one run of memory. (Not squares, whose lanes LLVM moves one by one: packing 33x16 took 16 ms to
  // compile instead of 6.)
  const bool one_run = *stride == count && !(fits && count >= lanes);
  const BlockPart part{read_together_.first, std::min(read_together_.end, block_ids_.size())};
  const bool whole = part == BlockPart{0, block_ids_.size()};
  if (one_run && !whole) return std::nullopt;
  IndexExpr base = address.substitute(lane, 0).substitute(block_ids_[k], 0);
  llvm::IRBuilder<>& b = scope.builder;
  for (const BlockLoad& known : scope.blocks) {
    if (known.pointer == buffer.pointer && known.address == base && known.part == part) {
      return from_storage(b, type, known.values[k]);
    }
  }
  llvm::Type* element = storage_type(b, type, 1);
  llvm::Align align(static_cast<uint64_t>(dtype_bytes(type)));
  std::vector<llvm::Value*> values;
  llvm::Value* first_row = nullptr;
  if (one_run) {
    auto* wide =
        b.CreateAlignedLoad(vector_of(element, lanes * count), address_of(scope, buffer, element, base), align);
    annotate(wide, buffer);
    for (int64_t j = 0; j < count; ++j) {
      std::vector<int> mask;
      for (int l = 0; l < lanes; ++l) mask.push_back(static_cast<int>(l * count + j));
      values.push_back(b.CreateShuffleVector(wide, mask));
    }
  } else {
    std::vector<int> places(block_ids_.size(), -1);
    for (size_t j = part.first; j < part.end; ++j) places[j] = static_cast<int>(j - part.first);
    const auto there = static_cast<int64_t>(part.end - part.first);
    const IndexExpr first = base + IndexExpr(static_cast<int64_t>(part.first));
    for (int l = 0; l < lanes; ++l) {
      auto* row = b.CreateAlignedLoad(vector_of(element, there),
                                      address_of(scope, buffer, element, first + IndexExpr(l * *stride)), align);
      annotate(row, buffer);
      values.push_back(whole        ? row
                       : there == 1 ? b.CreateVectorSplat(static_cast<unsigned>(count), row)
                                    : b.CreateShuffleVector(row, places));
    }
    if (whole && buffer.read_only) first_row = llvm::cast<llvm::LoadInst>(values[0])->getPointerOperand();
    values = transposed(b, values);
  }
  scope.blocks.push_back({buffer.pointer, base, part, values, first_row, *stride});
  return from_storage(b, type, values[k]);
}

// Rows that begin at `start`, a lane each, `there` elements of `per`: their element k in the lanes of values[k].
std::vector<llvm::Value*> ElementEmitter::rows_at(Scope& scope, const BufferRef& buffer, DType type,
                                                  const IndexExpr& start, int per, int there) {
  llvm::IRBuilder<>& b = scope.builder;
  const int lane = lane_var(start), lanes = lane_count(start), bytes = static_cast<int>(dtype_bytes(type));
  const int native = std::min(lanes, vector_bytes() / std::max(bytes, 4));
  const bool found = vector_bound(start);
  llvm::Type* element = storage_type(b, type, 1);
  llvm::Value* numbers = found ? index(start, scope) : nullptr;
  auto row_at = [&](int l) {
    llvm::Value* at = found ? b.CreateGEP(element, buffer.pointer, b.CreateExtractElement(numbers, b.getInt64(l)))
                            : address_of(scope, buffer, element, start.substitute(lane, l));
    return load_beginning(b, buffer, element, at, per, there);
  };
  std::vector<std::vector<llvm::Value*>> parts(static_cast<size_t>(per));
  for (int from = 0; from < lanes; from += native) {
    std::vector<llvm::Value*> rows;
    for (int l = from; l < from + native; ++l) rows.push_back(row_at(l));
    auto columns = transposed(b, rows);
    for (size_t k = 0; k < columns.size(); ++k) parts[k].push_back(columns[k]);
  }
  std::vector<llvm::Value*> values;
  parts.resize(static_cast<size_t>(there));
  for (auto& p : parts) values.push_back(joined(b, p));
  return values;
}

// Does an index of its own say where each number of the block lies?
bool ElementEmitter::found_by_block(const IndexExpr& asked) const {
  auto in_block = [&](const IndexExpr& e) {
    return std::ranges::any_of(block_ids_, [&](int id) { return e.depends_on(id); });
  };
  return std::ranges::any_of(asked.terms(), [&](const IndexExpr::Term& t) {
    const auto at = t.atom->kind == IndexExpr::AtomKind::kVar ? found_at_.find(t.atom->var) : found_at_.end();
    return at != found_at_.end() && std::ranges::any_of(at->second.symbol.coords, in_block);
  });
}

// Lanes in rows of their own, far apart or where an index says: the elements next to each other in a row are mostly
// asked for one after the other, so four (two of 8 bytes) of each row are loaded and transposed. (One by one, rows of 9
// took 1.3 cycles an element; four elements of a row each by gathers three times as long, Zen 4.) Backwards if the last
// ones came so; never beyond the buffer.
std::optional<Value> ElementEmitter::load_rows(Scope& scope, const BufferRef& buffer, DType type,
                                               const IndexExpr& asked) {
  const int lane = lane_var(asked), bytes = static_cast<int>(dtype_bytes(type));
  const bool found = vector_bound(asked);
  if ((lane < 0 && !found) || packs(buffer, type) || bytes < 2 || bytes > 8) return std::nullopt;
  IndexExpr address = of_block_values(asked);
  const bool in_block = !(address == asked);
  // Of what an index says, neighbours are asked for where they are numbers of a block, or steps of a group.
  auto stride = found ? std::nullopt : address.coefficient(lane);
  if (found ? (!in_block && !in_groups_) || found_by_block(asked) : !stride || *stride <= kFewStrides)
    return std::nullopt;
  // What is contiguous along the block is load_block's.
  if (!found && std::ranges::any_of(block_ids_, [&](int id) { return asked.coefficient(id) == 1; }))
    return std::nullopt;
  int per = bytes == 8 ? 2 : 4;
  if (std::min(lane_count(address), vector_bytes() / std::max(bytes, 4)) < 2 * per) return std::nullopt;
  auto apart = [](const IndexExpr& x, const IndexExpr& y) -> std::optional<int64_t> {
    IndexExpr d = x - y;
    return d.terms().empty() ? std::optional(d.constant()) : std::nullopt;
  };
  int64_t behind = 0;  // the first element loaded
  std::vector<RowLoad>& loaded = scope.rows[buffer.pointer];
  for (const RowLoad& known : loaded) {
    auto at = apart(address, known.address);
    if (!at) continue;
    if (*at >= 0 && *at < std::ssize(known.values))
      return from_storage(scope.builder, type, known.values[static_cast<size_t>(*at)]);
    if (*at == -1) behind = per - 1;
  }
  const Range range = address.range();
  behind = std::max(behind, range.hi + per - buffer.elements);
  int there = per;
  if (range.lo < behind) {  // the beginnings of short rows, the last of which ends the buffer
    behind = 0;
    there = static_cast<int>(std::min<int64_t>(per, buffer.elements - range.hi));
    if (there == 2) per = 2;
    if (there < 2) return std::nullopt;
  }
  // (A range may be wider than what is read, and end behind the buffer.)
  if (range.lo < behind || behind >= per || buffer.elements < per) return std::nullopt;
  RowLoad made{address - IndexExpr(behind), {}};
  made.values = rows_at(scope, buffer, type, made.address, per, there);
  loaded.push_back(std::move(made));
  return from_storage(scope.builder, type, loaded.back().values[static_cast<size_t>(behind)]);
}

}  // namespace hlojit::codegen
