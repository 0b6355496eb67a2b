// See blocks.h.
#include "compiler/plan/blocks.h"

#include <algorithm>
#include <cstdio>
#include <numeric>

#include <fmt/format.h>

#include "layout/divide.h"
#include "layout/lists.h"

namespace hlojit {
namespace {

// Below this many products in all, calling a micro-kernel and packing for it costs more than it wins.
constexpr int64_t kFewProducts = 1 << 14;

// Depth from which on a micro-kernel is worth it.
constexpr int64_t kShallow = 3;

// Sums side by side that keep the multiply-adds busy.
constexpr int64_t kEnoughSums = 8;

// Depth of a slice from which on going through the sums once more costs little.
constexpr int64_t kDeepEnough = 64;

/// A slice of the depth that divides it evenly where one of good size exists. The reduction variables are its
/// digits: a slice holds whole numbers of the inner ones, or is an even part of one.
int64_t slice_of(const Ints& digits) {
  constexpr int64_t kBest = 256, kMost = kBest * 3 / 2;
  int64_t k = product(digits), inner = 1;
  if (k <= kMost) return k;
  size_t d = digits.size();
  while (d > 0 && inner * digits[d - 1] <= kMost) inner *= digits[--d];
  // `inner` whole digits fit, digit d - 1 is cut.
  int64_t digit = digits[d - 1], best = std::max<int64_t>(1, kBest / inner);
  for (int64_t unit : {8, 1}) {
    for (int64_t s = best / unit * unit; s >= std::max<int64_t>(1, best / 2); s -= unit) {
      if (digit % s == 0) return s * inner;
    }
  }
  return inner > kBest / 2 ? inner : best * inner;
}

/// What the bias of bytes adds is summed up beside the tile, which must leave registers for that, a row of B, a
/// broadcast and a constant.
bool has_registers_for_bytes(const Blocks& b, int64_t lanes, const TargetInfo& target) {
  const int64_t vectors = b.tile_columns / lanes;
  return b.tile_rows * vectors + 2 * vectors + 2 <= target.vector_registers;
}

/// A slice of all the depth is filled up with zeros to whole groups of terms.
int64_t depth_by(MultiplyAdd kind, const MatrixProduct& p, int64_t depth) {
  return p.k <= depth ? round_up(depth, form_of(kind).terms) : depth;
}

MultiplyAdd choose_multiply_add(const Instruction& contraction, const MatrixProduct& p, const Blocks& blocks,
                                int64_t lanes, const TargetInfo& target) {
  if (lanes < 8) return MultiplyAdd::kOne;
  auto fits = [&](MultiplyAdd kind) { return suits(kind, contraction, p, depth_by(kind, p, blocks.depth), target); };
  if (target.multiplies_bfloats && fits(MultiplyAdd::kBfloats)) return MultiplyAdd::kBfloats;
  if (target.multiplies_bytes && fits(MultiplyAdd::kBytes) && has_registers_for_bytes(blocks, lanes, target)) {
    return MultiplyAdd::kBytes;
  }
  return fits(MultiplyAdd::kWords) ? MultiplyAdd::kWords : MultiplyAdd::kOne;
}

/// Rows and columns of a register tile: accumulators, a row of B and one broadcast must fit.
void choose_tile(Blocks& b, const MatrixProduct& p, DType type, int64_t lanes, const TargetInfo& target) {
  // Rows share out evenly: 16 of them are two tiles of 8 where 12 fit, not 12 and 4. Fewer rows leave
  // registers for more columns.
  int64_t registers = target.vector_registers, most_rows = registers >= 32 ? 12 : 6;
  auto even_rows = [&](int64_t most) { return ceil_div(p.m, ceil_div(p.m, most)); };
  b.tile_rows = even_rows(most_rows);
  int64_t vectors = std::clamp<int64_t>((registers - 1) / (b.tile_rows + 1), 2, 6);
  vectors = std::min(vectors, ceil_div(p.n, lanes));
  // A width that leaves no narrow panel behind is worth one vector less.
  for (int64_t v = vectors; v >= 2; --v) {
    if (p.n % (v * lanes) != 0) continue;
    vectors = v;
    break;
  }
  // So is one that leaves much less of the last panel, or of the last rows, empty worth fewer rows: of 19 columns 24
  // are computed, not 32, and 16 rows by four, not six. Integers are multiplied and added by two instructions, with a
  // register between.
  const int64_t taken = is_integral(type) ? 2 : 1;
  auto columns = [&](int64_t v) { return round_up(p.n, v * lanes); };
  for (int64_t v = 2; v <= 6; ++v) {
    int64_t rows = even_rows(std::clamp<int64_t>((registers - taken - v) / v, 1, most_rows));
    bool narrower = columns(v) * 10 <= columns(vectors) * 9;
    // Tiles of two rows read the right side too often: for 26 rows they took 1.26 times as long as six.
    bool fewer =
        rows > 2 && round_up(p.m, rows) * columns(v) * 15 <= round_up(p.m, b.tile_rows) * columns(vectors) * 14;
    if (!(narrower || fewer) || rows * v < std::min(kEnoughSums, b.tile_rows * vectors)) continue;
    vectors = v;
    b.tile_rows = rows;
  }
  b.tile_columns = vectors * lanes;
}

int64_t choose_depth(const Instruction& contraction, const MatrixProduct& p) {
  const int64_t depth = slice_of(p.contracting);
  if (!contraction.is(Opcode::kConvolution) || p.groups() == 1 || p.contracting.size() < 2) return depth;
  // The positions that a group's features lie at are as far apart as all groups' together, and share few cache sets:
  // one line of the window after the other, several would push each other out.
  int64_t line = p.contracting.back() * p.contracting.end()[-2];
  return line >= kDeepEnough ? std::min(depth, line) : depth;
}

// Of a block that is cut to get more tasks. With fewer rows, packing the right side costs too much.
constexpr int64_t kFewRows = 128;

/// The blocks of the grid. The left block fills most of L2, for then packing costs least; blocks are equal in size. A
/// dot's rows are cut before its columns: its right side is packed once for all of them (passes/pack), the left one
/// again for each block of columns.
void choose_grid(Blocks& b, const MatrixProduct& p, int64_t bytes, bool dot, const TargetInfo& target) {
  int64_t mr = b.tile_rows, nr = b.tile_columns;
  int64_t most = std::clamp<int64_t>(target.l2_bytes * 11 / 16 / (b.depth * bytes), 48, 480) / mr * mr;
  int64_t unit = p.swapped || p.run == 0 ? mr : std::lcm(mr, p.run);  // a run is in one block
  auto equal_rows = [&](int64_t blocks) { return round_up(ceil_div(p.m, blocks), unit); };
  b.rows = equal_rows(ceil_div(p.m, std::max(most, unit)));
  b.columns = round_up(ceil_div(p.n, ceil_div(p.n, 512)), nr);
  int64_t batches = p.batches();
  double flops = 2.0 * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k) *
                 static_cast<double>(batches);
  auto wanted = std::clamp<int64_t>(static_cast<int64_t>(flops / 1e6), 1, 8);
  auto tasks = [&] { return batches * ceil_div(p.m, b.rows) * ceil_div(p.n, b.columns); };
  while (dot && tasks() < wanted) {
    int64_t fewer = equal_rows(ceil_div(p.m, b.rows) + 1);
    if (fewer < kFewRows || fewer == b.rows) break;
    b.rows = fewer;
  }
  while (tasks() < wanted && b.columns > 8 * nr) b.columns = round_up(b.columns / 2, nr);
  while (tasks() < wanted && b.rows > 8 * unit) b.rows = round_up(b.rows / 2, unit);
}

}  // namespace

bool worth_blocks(const MatrixProduct& p, int64_t lanes) {
  bool large = p.m >= 4 && p.n >= lanes && p.k >= kShallow;
  bool odd = p.m >= 2 && p.n >= 2 && p.k >= kShallow && p.m * p.n >= kFewProducts / p.k;
  // Groups of a few features would leave most of a vector empty: lanes go across groups instead.
  return (large || odd) && (p.groups() == 1 || 2 * p.n >= lanes);
}

bool suits(MultiplyAdd kind, const Instruction& contraction, const MatrixProduct& p, int64_t depth,
           const TargetInfo& target) {
  if (kind == MultiplyAdd::kOne) return true;
  const MultiplyAddForm& form = form_of(kind);
  if (sum_type(contraction) != form.sums || depth % form.terms != 0) return false;
  const DType left = contraction.operand(p.rows_operand())->shape.type;
  const DType right = contraction.operand(p.columns_operand())->shape.type;
  auto both = [&](std::initializer_list<DType> types) {
    return std::ranges::count(types, left) > 0 && std::ranges::count(types, right) > 0;
  };
  switch (kind) {
    case MultiplyAdd::kWords: return both({DType::kS8, DType::kU8, DType::kS16});
    case MultiplyAdd::kBytes: return both({DType::kS8});
    default: return both({DType::kBF16}) && !target.keeps_subnormals;
  }
}

bool holds_runs(const Blocks& b, const MatrixProduct& p) {
  return p.run == 0 || (p.swapped ? b.tile_columns : b.rows) % p.run == 0;
}

std::optional<Blocks> choose_blocks(const Instruction& contraction, const MatrixProduct& p, const TargetInfo& target,
                                    bool packs) {
  DType type = sum_type(contraction);
  if (type != DType::kF32 && type != DType::kF64 && !is_integral(type)) return std::nullopt;
  const int64_t lanes = sum_lanes(contraction, target.vector_bytes);
  if (contraction.shape.element_count() == 0) return std::nullopt;  // a batch of none has no chunks
  if (!worth_blocks(p, lanes)) return std::nullopt;
  // Few columns of narrow integers: pulled, a vector holds more of them than of their wider sums.
  DType result = contraction.shape.type;
  if (is_integral(result) && dtype_bits(result) < 32 && p.n < lanes) return std::nullopt;

  Blocks b;
  choose_tile(b, p, type, lanes, target);
  b.depth = choose_depth(contraction, p);
  if (packs) b.multiply_add = choose_multiply_add(contraction, p, b, lanes, target);
  b.depth = depth_by(b.multiply_add, p, b.depth);
  choose_grid(b, p, dtype_bytes(type), contraction.is(Opcode::kDot), target);
  return b;
}

std::string blocks_text(const Blocks& b) {
  std::string text = fmt::format("tile {}x{} block {}x{}x{}", b.tile_rows, b.tile_columns, b.rows, b.columns, b.depth);
  return b.multiply_add == MultiplyAdd::kOne ? text : fmt::format("{} by {}", text, form_of(b.multiply_add).name);
}

std::optional<Blocks> read_blocks(std::string_view text) {
  long long v[5];
  char by[16] = "";
  std::string copy(text);
  int read = std::sscanf(copy.c_str(), "tile %lldx%lld block %lldx%lldx%lld by %15[a-z_]", &v[0], &v[1], &v[2], &v[3],
                         &v[4], by);
  if (read < 5) return std::nullopt;
  for (long long x : v) {
    if (x < 1 || x > (1 << 20)) return std::nullopt;
  }
  auto form = std::ranges::find(multiply_add_forms(), std::string_view(by), &MultiplyAddForm::name);
  if (form == multiply_add_forms().end()) return std::nullopt;
  Blocks b{v[0], v[1], v[2], v[3], v[4], form->kind};
  bool whole = b.rows % b.tile_rows == 0 && b.columns % b.tile_columns == 0;
  return whole && b.tile_rows <= 16 && b.tile_columns <= 256 ? std::optional(b) : std::nullopt;
}

}  // namespace hlojit
