// See operands_in_place.h.
#include "compiler/plan/operands_in_place.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>

#include "layout/divide.h"
#include "layout/index.h"
#include "layout/lists.h"

namespace hlojit {
namespace {

/// How many rows of a panel, read where they lie, the first cache keeps from one tile to the next. Rows at nearly a
/// page, or at half of one, share few sets, and what begins within a line takes two. (Columns of 1021x1021 floats in
/// panels of 64 bytes, AVX2: 1.35 times as long as packed, by 1024 rows and by 128; 1024x1023 1.5 times as long as
/// 1024x1024.)
int64_t rows_in_first_cache(int64_t stride, int64_t piece, int64_t rows, const TargetInfo& target) {
  constexpr int64_t kSets = 64;
  const int64_t ways = target.l1_bytes / (kCacheLine * kSets) * 3 / 4;  // the rest is for what meets the panel
  std::array<int64_t, kSets> used{};
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t first = row * std::abs(stride);  // sets meet alike in both directions
    for (int64_t line = first / kCacheLine; line <= (first + piece - 1) / kCacheLine; ++line) {
      if (++used[static_cast<size_t>(line % kSets)] > ways) return row;
    }
  }
  return rows;
}

// Entries of a row's pointers are made as one vector: more would take too long to compile.
constexpr int64_t kMostTaps = 64;

/// Rows of a convolution, by registers of them.
RowsInPlace registers_in_place(const Instruction& contraction, const MatrixProduct& p, const MultiplyAddForm& form) {
  // A register takes as long, however few of its rows there are: with seven it takes as long as packing.
  constexpr int64_t kFewestRows = 12;
  if (contraction.is(Opcode::kDot) || p.swapped || p.run != 1 || p.lhs_free.empty()) return {};
  int64_t in_line = kTileSide;
  while (p.lhs_free.back().size % in_line != 0) --in_line;
  if (in_line < kFewestRows) return {};
  const int64_t stretch = depth_stretch(contraction, p);
  if (stretch % form.step != 0 || p.k % stretch != 0 || p.k / stretch > kMostTaps) return {};
  const std::optional<int64_t> apart = row_stride_in_line(contraction, p, in_line);
  if (!apart || *apart <= 0 || *apart % form.terms != 0) return {};
  RowsInPlace rows;
  rows.stretch = stretch;
  rows.in_line = in_line;
  rows.apart = *apart;
  return rows;
}

}  // namespace

bool lies_along_depth(const Instruction& contraction, const MatrixProduct& p, size_t operand) {
  auto strides = operand_strides(contraction, p, operand);
  return strides && strides->depth == 1;
}

bool lies_in_groups(const Instruction& contraction, const MatrixProduct& p, size_t operand,
                    const MultiplyAddForm& form) {
  auto strides = operand_strides(contraction, p, operand);
  return strides && strides->depth == 1 && strides->along % form.terms == 0 && p.k % form.step == 0;
}

const Instruction* array_of_piece(const Instruction& i) {
  if (!i.is(Opcode::kReshape) && !i.is(Opcode::kSlice) && !i.is(Opcode::kDynamicSlice)) return nullptr;
  const Shape& from = i.operand(0)->shape;
  if (element_bits(from) != element_bits(i.shape)) return nullptr;
  VarSource vars;
  Coords at;
  for (int64_t n : i.shape.dims) at.push_back(IndexExpr::var(vars.fresh(), n));
  const int of_symbols = vars.fresh();
  const AccessRelation relation = access_relation(i, at, {}, vars);
  if (relation.reads.size() != 1 || !relation.reads[0].guards.empty()) return nullptr;
  const IndexExpr moved = linear_index(from, relation.reads[0].coords) - linear_index(i.shape, at);
  const std::vector<int> on = moved.variables();
  return std::ranges::all_of(on, [&](int var) { return var > of_symbols; }) ? i.operand(0) : nullptr;
}

bool from_memory(const Instruction& contraction, const MatrixProduct& p, const TargetInfo& target) {
  const int64_t elements = contraction.operand(p.columns_operand())->shape.element_count();
  return elements * dtype_bytes(sum_type(contraction)) > target.llc_bytes / 4;
}

bool walks_rows(const Instruction& contraction, const MatrixProduct& p, const Blocks& b, const TargetInfo& target) {
  const int64_t bytes = dtype_bytes(sum_type(contraction)), tiles = from_memory(contraction, p, target) ? 4 : 2;
  if (!contraction.is(Opcode::kDot) || p.m > tiles * b.tile_rows || p.contracting.size() != 1) return false;
  if (p.n * p.k * bytes <= target.l2_bytes) return false;
  auto strides = operand_strides(contraction, p, p.columns_operand());
  return strides && strides->along == 1;
}

bool walks_memory(const Instruction& contraction, const MatrixProduct& p, const Blocks& b, const TargetInfo& target) {
  const bool walks = b.along_depth || walks_rows(contraction, p, b, target);
  return walks && from_memory(contraction, p, target);
}

bool packs_for_second_cache(const Instruction& contraction, const MatrixProduct& p, const TargetInfo& target) {
  // An Emerald Rapids: 2048x500 by 500x500 takes 0.94 of the time packed, 3000x300 by 300x600 0.95, 1000x256 by
  // 256x1000 0.90; 512x512 by 512x512 1.02, 384x500 by 500x400 1.05.
  constexpr int64_t kManyRows = 768;
  // Of panels that would be one slice, or hardly more, the first cache keeps all; and products of a batch, as heads of
  // attention, take 1.02 to 1.04 of the time by copies, which take memory.
  constexpr int64_t kSeveralSlices = 256;
  if (target.l2_keeps_up) return false;
  const int64_t bytes = dtype_bytes(sum_type(contraction));
  const bool alone = contraction.is(Opcode::kDot) && p.batches() == 1;
  const bool many = alone && p.m >= kManyRows && p.k >= kSeveralSlices;
  return many || p.n * p.k * bytes > target.l2_bytes / 2;
}

int64_t depth_in_place(const Instruction& contraction, const MatrixProduct& p, const Blocks& b,
                       const TargetInfo& target) {
  const Shape& shape = contraction.operand(p.columns_operand())->shape;
  if (b.multiply_add != MultiplyAdd::kOne || shape.type != sum_type(contraction)) return 0;
  auto strides = operand_strides(contraction, p, p.columns_operand());
  if (!strides || strides->along != 1) return 0;
  // Only a panel's last vector may be a part; of a plan that was read the panel may be any.
  const int64_t lanes = sum_lanes(contraction, target.vector_bytes);
  if (p.n < b.tile_columns && round_up(p.n, lanes) != b.tile_columns) return 0;
  const int64_t rows = std::min(p.m, b.rows);  // that meet a panel while it is near
  if (rows <= 2 * b.tile_rows || walks_rows(contraction, p, b, target)) return p.k;
  constexpr int64_t kWay = 64 << 10;  // of the second cache, on most machines
  const int64_t bytes = dtype_bytes(shape.type), piece = b.tile_columns * bytes;
  // Narrow ones that the first cache keeps are not worth a copy.
  if (p.n < b.tile_columns) return p.n * p.k * bytes <= target.l1_bytes / 2 ? p.k : 0;
  // From further away a dot's is packed, if enough rows go by: 64 by 1024x1024 took 1.06 of the time so, 1024 0.95 (Zen
  // 4). A convolution's blocks of rows would pack it again and again.
  constexpr int64_t kEnoughTiles = 24;
  const int64_t size = p.n * p.k * bytes;
  if (packs_for_second_cache(contraction, p, target)) return 0;
  if (contraction.is(Opcode::kDot) && size > target.l2_bytes && p.m > kEnoughTiles * b.tile_rows) return 0;
  const int64_t apart = std::max(std::gcd(strides->depth * bytes, kWay), piece);
  // Several lines side by side are brought in together: from the last level they come as fast as they are used.
  const int64_t lines = size > target.llc_bytes / 4 ? 1 : std::max<int64_t>(piece / 128, 1);
  const int64_t deepest = target.l2_bytes / 2 * lines / apart;
  // Panels of a line stay in the first cache if packed, which pays for itself from some tiles on.
  constexpr int64_t kNarrow = 64, kManyTiles = 8;
  // A few rows are gone through for each panel, and stay in the second cache with it; not measured for the wider panels
  // of AVX-512. (AVX2 on a Zen 3: 47 rows by 2546x1000 in one slice 5.94 ms, in slices of 640 or 320 3.52, 24 by
  // 2000x1000 2.17 and 1.41, 24 by 1019x509, which all fits, the same.)
  constexpr int64_t kFewRows = 48;
  if (rows < kFewRows && !target.many_registers()) {
    const int64_t lines_end = strides->depth * bytes % kCacheLine == 0 ? 0 : kCacheLine;
    const int64_t step = piece + lines_end + rows * bytes;
    return step * p.k <= target.l2_bytes / 2 ? deepest : std::min(deepest, target.l2_bytes / 4 / step);
  }
  if (piece > kNarrow || rows < kManyTiles * b.tile_rows) return deepest;
  return rows_in_first_cache(strides->depth * bytes, piece, std::min(deepest, p.k), target);
}

bool columns_in_place(const Instruction& contraction, const MatrixProduct& p, const Blocks& b,
                      const TargetInfo& target) {
  const bool as_summed = contraction.operand(p.columns_operand())->shape.type == sum_type(contraction);
  const MultiplyAddForm& form = form_of(b.multiply_add);
  if (b.along_depth) return (as_summed || form.terms > 1) && lies_in_groups(contraction, p, p.columns_operand(), form);
  return std::min(b.depth, p.k) <= depth_in_place(contraction, p, b, target);
}

RowsInPlace rows_in_place(const Instruction& contraction, const MatrixProduct& p, MultiplyAdd kind,
                          int64_t tile_columns) {
  // Steps of the depth in pages of their own are met again for each panel of columns: 1024x1024 transposed by 1024x64
  // take 1.9 times as long packed (AVX-512), by 1024x256 0.78 (AVX2), by 1024x1024 0.97 and 0.72.
  constexpr int64_t kManyPanels = 8;
  constexpr int64_t kFewBytes = 48;
  const MultiplyAddForm& form = form_of(kind);
  const DType type = contraction.operand(p.rows_operand())->shape.type;
  const bool as_it_is = type == (kind == MultiplyAdd::kOne ? sum_type(contraction) : form.packed);
  if (!as_it_is || kind == MultiplyAdd::kBytes) return {};
  RowsInPlace rows;
  if (form.terms > 1) {
    rows.at_strides = lies_in_groups(contraction, p, p.rows_operand(), form);
    rows.along_depth = rows.at_strides && !form.tiles();
    if (form.tiles() && !rows.at_strides) return registers_in_place(contraction, p, form);
    if (rows.at_strides) return rows;
  } else if (auto strides = operand_strides(contraction, p, p.rows_operand())) {
    const bool many = p.n >= kManyPanels * tile_columns;
    rows.along_depth = strides->depth == 1;
    rows.at_strides = rows.along_depth ||
                      (many ? std::max(strides->along, strides->depth) : strides->along) * dtype_bytes(type) < kPage;
  }
  const bool dot = contraction.is(Opcode::kDot);
  if (p.swapped || (dot && rows.at_strides)) return rows;
  if (dot || p.run == 1) {
    const int64_t stretch = depth_stretch(contraction, p);
    const bool enough = stretch * dtype_bytes(type) >= kFewBytes && ceil_div(p.k, stretch) <= kMostTaps;
    const bool whole = stretch % form.terms == 0 && (p.k % stretch == 0 || form.step == 1);
    if (enough && whole) rows.stretch = stretch;
  } else if (p.run > 1 && form.terms == 1) {
    const int64_t together = row_stretch(contraction, p);
    if (shares_out_in_tiles(together)) rows.together = together;
  }
  return rows;
}

}  // namespace hlojit
