// See blocks.h.
#include "compiler/plan/blocks.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "compiler/plan/operands_in_place.h"
#include "layout/divide.h"
#include "layout/lists.h"

namespace hlojit {
namespace {

// Up to so many products in all, calling a micro-kernel costs more than it wins where columns do not fill a vector: at
// 8x8x8 it takes 1.4 times as long as a nest written out, at 10x10x10 half (AVX-512).
constexpr int64_t kFewProducts = 512;

// Depth from which on a micro-kernel is worth it.
constexpr int64_t kShallow = 3;

// Depth of a slice, of panels that leave most of the first cache to the other operand.
constexpr int64_t kBestDepth = 256;

// Terms that a sum takes before it is added to what earlier slices left: more would be off by more. (18,432 equal terms
// in three chains were off by 403 ulp.)
constexpr int64_t kLongestChain = 4096;

// Depth of a slice of rows that are packed: deeper, a block of enough of them is larger than it is worth. (2048x2048 in
// T(8,128) by as many, two threads: 258 rows 2048 deep 83.0 ms, 516 rows 1024 deep or 512 80.)
constexpr int64_t kDeepPacked = 1024;

// Depth of a slice in steps of tiles, the best, and of all there is.
constexpr int64_t kBestSteps = 12, kMostSteps = 18;

// Rows from which on products of tiles are faster than of vectors, though most of the tiles be empty: of bf16 by
// 4096x4096 two rows took 0.93 of the time, eight 0.53, of bytes eight 1.4, twelve 1.0 and 24 0.7.
constexpr int64_t kFewestTileRows = 2, kFewestByteRows = 12;

// Products of a batch from which on they are, beside setting the registers' sizes and packing for whole steps; of
// bytes, rows times depth. (16 of bf16, a Granite Rapids: 16x16x16 1.6 of the time by tiles, 16x32x16 1.16, 16x16x32
// 0.93, 32x32x16 0.81; 8 of bytes, 16 rows 96 deep 1.3, 128 deep 1.0, 32 rows 40 deep 1.2, 64 deep 0.8.)
constexpr int64_t kFewestTileProducts = 8193, kFewestByteTerms = 2048;

// Depth of a slice from which on going through the sums once more costs little.
constexpr int64_t kDeepEnough = 64;

// With fewer rows packing the right side costs too much, of a block that is cut to get more tasks, or all of the depth
// at once.
constexpr int64_t kFewRows = 128;

// Rows up to which a right side is rather read along its depth than packed (32 rows by 1024x1024: 0.98 of the time, 24
// 0.70, 8 0.46), or converted on the way (f16: 16 rows 0.96, 4 0.46), or multiplied in pairs as it lies (bf16 on a Zen
// 4, 13824x1152: 4 rows 0.17, 11 0.21, 32 0.46, 128 0.79, 256 0.89; 1024x1024 by 256 rows 0.97), and vectors of the
// depth from which on adding up their lanes costs little.
constexpr int64_t kMostAlongDepth = 24, kMostConverted = 8, kMostPairs = 128;
constexpr int64_t kDeepAlong = 8;

/// A slice of the depth, all of it up to `most`, else one that divides it evenly where one of about `best` exists. The
/// reduction variables are its digits: a slice holds whole numbers of the inner ones, or is an even part of one.
/// Several slices hold multiples of `unit`, though the last one be shorter.
int64_t slice_of(const Ints& digits, int64_t best, int64_t most, int64_t unit) {
  int64_t k = product(digits), inner = 1;
  if (k <= most) return k;
  size_t d = digits.size();
  while (d > 0 && inner * digits[d - 1] <= most) inner *= digits[--d];
  // `inner` whole digits fit, digit d - 1 is cut.
  int64_t digit = digits[d - 1], count = std::max<int64_t>(1, best / inner);
  for (int64_t step : {8, 1}) {
    for (int64_t s = count / step * step; s >= std::max<int64_t>(1, count / 2); s -= step) {
      if (digit % s == 0 && s * inner % unit == 0) return s * inner;
    }
  }
  return inner > best / 2 && inner % unit == 0 ? inner : count * inner;
}

/// Cycles that a tile takes for a step of the depth: as many multiply-adds each as the machine begins, or as long as a
/// sum waits for its last one; and what reading takes of that: a broadcast for each row, and for each vector of columns
/// its way from the second cache. Measured on Zen 5: 6x4 vectors take 0.96 of 12x2's time for a product of 2048, 2x4 of
/// AVX2's vectors 1.1 to 1.3 times 6x2's.
double step_cycles(int64_t rows, double vectors, bool integral, const TargetInfo& target) {
  const double latency = 4, sums = static_cast<double>(rows) * vectors / (integral ? 1 : target.multiply_adds);
  return std::max(sums, latency) + 0.12 * static_cast<double>(rows) + 0.4 * vectors + 0.3;
}

/// There is enough of a product for tiles: a step takes as long, however little of it is there.
bool fills_tiles(MultiplyAdd kind, const MatrixProduct& p) {
  const int64_t step = form_of(kind).step;
  if (kind == MultiplyAdd::kByteTiles) return p.m >= kFewestByteRows && p.k >= step && p.m * p.k >= kFewestByteTerms;
  return p.m >= kFewestTileRows && 2 * p.k >= step && p.m * p.n * p.k >= kFewestTileProducts;
}

/// The first that suits is the best; the last always does.
std::vector<MultiplyAdd> kinds_to_try(int64_t lanes, ProductOperands operands, const TargetInfo& target) {
  std::vector<MultiplyAdd> kinds;
  if (operands.packs && lanes >= 8) {
    if (target.multiplies_tiles) kinds.insert(kinds.end(), {MultiplyAdd::kBfloatTiles, MultiplyAdd::kByteTiles});
    if (target.multiplies_bfloats) kinds.push_back(MultiplyAdd::kBfloats);
    if (target.multiplies_bytes) kinds.push_back(MultiplyAdd::kBytes);
    kinds.push_back(MultiplyAdd::kWords);
  }
  kinds.push_back(MultiplyAdd::kOne);
  return kinds;
}

/// Rows and columns of a register tile: accumulators, a row of B and one broadcast must fit. What lies beyond the last
/// row and the last column is computed too, so the tile that wins depends on both.
void choose_tile(Blocks& b, const MatrixProduct& p, DType type, int64_t lanes, int64_t together,
                 const TargetInfo& target) {
  constexpr double kClearly = 0.978;
  const bool many = target.many_registers(), halves = target.multiply_adds == 1 && lanes > 1;
  // Integers are multiplied and added by two instructions, with a register between.
  const int64_t most_rows = many ? 12 : 6, taken = is_integral(type) ? 2 : 1;
  double least = 0;
  // Of two that cost nearly the same the first: a panel of all columns, for each pass over the rows has more to do than
  // to multiply. (3x3 by 36 features to 72, a Zen 4: 1.11 of the time in panels of three vectors and one and a half.)
  std::vector<int64_t> widths = many ? std::vector<int64_t>{4, 3, 5, 2, 6, 1} : std::vector<int64_t>{2, 1, 3, 4, 5, 6};
  std::ranges::stable_partition(widths, [&](int64_t vectors) { return vectors == ceil_div(p.n, lanes); });
  for (int64_t vectors : widths) {
    int64_t fit = std::min((target.vector_registers - taken - vectors) / vectors, most_rows);
    if (fit < 1 || vectors > ceil_div(p.n, lanes)) continue;
    // Rows that alternate in memory are stored together. (65x130 of bf16 in T(8,128)(2,1), nine rows, each element by
    // itself: 13.5 us and 130 ms to compile, eight rows 10.2 and 36.)
    const int64_t beside = p.rows_beside <= fit ? p.rows_beside : 1;
    fit = fit / beside * beside;
    // Rows share out evenly: 16 of them are two tiles of 8 where 12 fit, not 12 and 4.
    int64_t rows = round_up(ceil_div(p.m, ceil_div(p.m, fit)), beside);
    for (rows = together > 1 ? fit : rows; together > 1 && together % rows != 0;) --rows;
    const int64_t columns = vectors * lanes;
    const int64_t wide = (p.n - 1) / columns;
    const double last = static_cast<double>(last_panel(p.n, columns, lanes, halves)) / static_cast<double>(lanes);
    auto cycles_of = [&](double v) { return step_cycles(rows, v, is_integral(type), target); };
    const double cycles = static_cast<double>(ceil_div(p.m, rows)) *
                          (static_cast<double>(wide) * cycles_of(static_cast<double>(vectors)) + cycles_of(last));
    if (least > 0 && cycles >= least * kClearly) continue;
    least = cycles;
    b.tile_rows = rows;
    b.tile_columns = columns;
  }
}

/// The same where sums are tiles themselves: a step takes each 16 cycles, reading one 8, and as long as a sum waits for
/// its last one. (Sapphire Rapids) `in_line`: rows of a register where these are pointed to, else 1.
void choose_tile_of_tiles(Blocks& b, const MatrixProduct& p, int64_t in_line) {
  constexpr int64_t kMultiply = 16, kRead = 8, kLatency = 52;
  const int64_t side = in_line > 1 ? in_line : kTileSide;
  int64_t least = 0;
  for (auto [rows, columns] : {std::pair<int64_t, int64_t>{2, 2}, {1, 3}, {3, 1}, {1, 2}, {2, 1}, {1, 1}}) {
    const int64_t high = ceil_div(p.m, rows * side), wide = ceil_div(p.n, columns * kTileSide);
    const int64_t cycles = std::max({rows * columns * kMultiply, (rows + columns) * kRead, kLatency}) * high * wide;
    if (least > 0 && cycles >= least) continue;
    least = cycles;
    b.tile_rows = in_line > 1 ? rows * side : ceil_div(p.m, high);
    b.tile_columns = columns * kTileSide;
  }
}

/// Rows of a tile, which leave registers for four columns (AVX2: two) and vectors of both operands. (With eight rows
/// and two columns 4096x4096 from memory took 1.5 times as long: fewer pages at once.)
int64_t rows_along_depth(const TargetInfo& target) { return target.many_registers() ? 6 : 4; }

/// Of an operand's element as it is multiplied.
int64_t element_bytes(const Instruction& contraction, MultiplyAdd kind) {
  return dtype_bytes(kind == MultiplyAdd::kOne ? sum_type(contraction) : form_of(kind).packed);
}

/// The columns' operand may be read where it lies, but for its strides.
bool columns_as_summed(const Instruction& contraction, const MatrixProduct& p, ProductOperands operands) {
  return operands.columns_in_memory && contraction.operand(p.columns_operand())->shape.type == sum_type(contraction);
}

/// One row by columns along its depth, each of which is read once: several at a time come sooner from the second cache,
/// and with those prefetched that follow from memory; from the last cache one after the other. (On a Zen 4 a row by
/// 512x512 takes 0.87 of the time so, by 4096x4096 0.7 to 0.8, by 2048x2048 1.1 to 1.4.)
bool reads_several_columns(const Instruction& contraction, const MatrixProduct& p, const TargetInfo& target) {
  const int64_t each = p.n * p.k * dtype_bytes(sum_type(contraction));
  return p.batches() * each <= target.l2_bytes || each > target.llc_bytes / 2;
}

/// Rows and columns of bf16 lie so that vectors of pairs are multiplied as they lie, from a few rows on.
bool pairs_along_depth(const Instruction& contraction, const MatrixProduct& p, const TargetInfo& target,
                       ProductOperands operands) {
  constexpr MultiplyAdd kPairs = MultiplyAdd::kBfloats;
  if (!operands.along_depth || !operands.columns_in_memory || p.m == 1 || !target.multiplies_bfloats) return false;
  if (!suits(kPairs, contraction, p, p.k, target)) return false;
  return lies_in_groups(contraction, p, p.rows_operand(), form_of(kPairs)) &&
         lies_in_groups(contraction, p, p.columns_operand(), form_of(kPairs));
}

/// Fewer columns than a vector has lanes, and rows along the depth: however many there are, each is read once. (Zen 4:
/// 1000x1024 by eight columns takes 0.43 of the time of packing them, by 15 0.78, 16 products of 89x657 by four 0.36 of
/// that of summing each alone; 1000x131 by two 1.07.) Columns that lie across are packed for it: 1321x379 by four takes
/// 0.52 of the time in vectors that they leave partly empty, by six 0.8, by twelve 0.9; 40x200 by three 1.1.
bool few_columns(const Instruction& contraction, const MatrixProduct& p, ProductOperands operands, int64_t lanes) {
  constexpr int64_t kEnoughColumns = 3, kRowsToPackFor = 64;
  if (p.n >= lanes || p.n * p.k < kEnoughColumns * kDeepAlong * lanes || !operands.rows_in_memory) return false;
  if (!may_sum_along_depth(contraction, p, lanes) || !lies_along_depth(contraction, p, p.rows_operand())) return false;
  if (contraction.operand(p.rows_operand())->shape.type != sum_type(contraction)) return false;
  const bool packs = !lies_along_depth(contraction, p, p.columns_operand());
  return !packs || (2 * p.n < lanes && p.m >= kRowsToPackFor);
}

/// A few rows by a right side whose columns lie along the depth: packing would transpose all of it for them.
bool sums_along_depth(const Instruction& contraction, const MatrixProduct& p, const TargetInfo& target,
                      ProductOperands operands) {
  const int64_t lanes = sum_lanes(contraction, target.vector_bytes);
  const bool pairs = pairs_along_depth(contraction, p, target, operands);
  const bool as_summed = pairs || columns_as_summed(contraction, p, operands);
  if (!operands.along_depth || p.k < kDeepAlong * lanes || (p.n < lanes && !as_summed)) return false;
  if (few_columns(contraction, p, operands, lanes)) return true;
  if (p.m > (pairs ? kMostPairs : as_summed ? kMostAlongDepth : kMostConverted)) return false;
  if (p.m == 1 && !(as_summed && reads_several_columns(contraction, p, target))) return false;
  return may_sum_along_depth(contraction, p, lanes) && lies_along_depth(contraction, p, p.columns_operand());
}

/// One row by a right side that comes from far, but not from memory. Pulled, as wide as eight vectors of AVX-512, a
/// strip of sums touches another page at each step of the depth, and what prefetchers bring of it beyond the strip is
/// gone before the next strip reads it; a micro-kernel walks along whole rows. (Steps of an LSTM by 8 MB of weights, an
/// Emerald Rapids: one thread 0.72 of the time, two 0.76; 4096 by 4096x1024 0.74 to 0.90, 1024 by 1024x4096 1.04. With
/// AVX2, whose strips are half as wide, 1.07; 4096x4096, from memory, 1.03.)
bool row_of_far_columns(const Instruction& contraction, const MatrixProduct& p, const TargetInfo& target,
                        ProductOperands operands) {
  constexpr int64_t kSeveralVectors = 4;
  const int64_t lanes = sum_lanes(contraction, target.vector_bytes), bytes = dtype_bytes(sum_type(contraction));
  if (p.m != 1 || !contraction.is(Opcode::kDot) || p.n < kSeveralVectors * lanes || p.contracting.size() != 1)
    return false;
  if (!target.many_registers() || !columns_as_summed(contraction, p, operands)) return false;
  if (p.n * p.k * bytes <= target.near_bytes() || from_memory(contraction, p, target)) return false;
  const auto strides = operand_strides(contraction, p, p.columns_operand());
  return strides && strides->along == 1;
}

/// How many rows at a time: of narrow panels fewer, for going through the sums once more costs those less than the
/// pages do. Two rows by 3 MB took 0.85 of the time by 16 at a time instead of 256 (AVX2), four in panels of 384
/// bytes 1.1.
int64_t rows_at_once(const Instruction& contraction, const MatrixProduct& p, const Blocks& b,
                     const TargetInfo& target) {
  const int64_t few = target.vector_bytes / 4, bytes = element_bytes(contraction, b.multiply_add);
  return from_memory(contraction, p, target) ? few : std::max(few, b.tile_columns * bytes / 32 * 8);
}

/// Of what depths are multiples, where there are several: whole steps, and whole vectors of a tile's row. (Of
/// 107, a slice of T(8,128) was gathered, and a product of 2568 took 1.4 times as long as untiled.)
int64_t depth_unit(const Instruction& contraction, MultiplyAdd kind, const TargetInfo& target) {
  const bool tiled =
      std::ranges::any_of(contraction.operands(), [](const Instruction* o) { return o->shape.layout.tiled(); });
  return std::lcm(form_of(kind).step, tiled ? target.vector_bytes / 4 : 1);
}

int64_t choose_depth(const Instruction& contraction, const MatrixProduct& p, const Blocks& b, const RowsInPlace& rows,
                     const TargetInfo& target) {
  const int64_t bytes = element_bytes(contraction, b.multiply_add),
                unit = depth_unit(contraction, b.multiply_add, target);
  const bool walks = walks_rows(contraction, p, b, target);
  // One slice of all the depth adds nothing up in memory: 1024x1024 by 1024x1024 takes 0.91 of the time, 2048 0.95 (Zen
  // 4), if the second cache keeps up with the register tile. If not, only panels that are packed, for many rows which
  // are not: 1024 takes 0.75 of the time, 2048 0.66 (Emerald Rapids), 64 rows by as much 1.05, rows of 1024x1024
  // transposed, packed for each slice, 1.36.
  const bool packs = packs_for_second_cache(contraction, p, target);
  const bool pays = target.l2_keeps_up || (packs && rows.along_depth && p.m >= kFewRows);
  const bool deep = contraction.is(Opcode::kDot) && pays && !walks && !form_of(b.multiply_add).tiles();
  if ((rows.stretch > 0 && rows.in_line == 1) || deep) {
    const int64_t chain = rows.packed() ? kDeepPacked : kLongestChain;
    const int64_t panel = std::min(target.l2_bytes / 2 / (b.tile_columns * bytes), chain);
    const int64_t in_place = depth_in_place(contraction, p, b, target);
    const int64_t most = in_place >= kBestDepth ? std::min(panel, in_place) : panel;
    return slice_of(p.contracting, most, most,
                    std::lcm(unit, contraction.is(Opcode::kDot) ? std::max<int64_t>(rows.stretch, 1) : 1));
  }
  if (rows.together > 1) return slice_of(p.contracting, kBestDepth, 2 * kBestDepth, unit);
  if (walks) {
    // A tile's sums are more to go through than a vector's.
    const int64_t least = p.m > kTileSide ? 4 * unit : unit;
    const int64_t rows = form_of(b.multiply_add).tiles() ? least : rows_at_once(contraction, p, b, target);
    const bool one = b.multiply_add == MultiplyAdd::kOne;
    return one ? std::min(rows, p.k) : slice_of(p.contracting, rows, rows, unit);
  }
  const MultiplyAddForm& form = form_of(b.multiply_add);
  if (form.tiles()) {
    const int64_t depth = slice_of(p.contracting, kBestSteps * form.step, kMostSteps * form.step, unit);
    return rows.whole_stretches(depth, p.k) ? depth : rows.stretch;
  }
  const int64_t panel = target.l1_bytes * 2 / 3 / (b.tile_columns * bytes) / 64 * 64;
  const int64_t best = std::clamp<int64_t>(panel, kBestDepth / 2, kBestDepth);
  const int64_t depth = slice_of(p.contracting, best, std::max(best * 3 / 2, kBestDepth), unit);
  if (!contraction.is(Opcode::kConvolution) || p.groups() == 1 || p.contracting.size() < 2) return depth;
  // The positions that a group's features lie at are as far apart as all groups' together, and share few cache sets:
  // one line of the window after the other, several would push each other out.
  int64_t line = p.contracting.back() * p.contracting.end()[-2];
  return line >= kDeepEnough ? std::min(depth, line) : depth;
}

/// Rows of a block, of which most of the second cache is filled with what is read of them again and again; but of a
/// dot's so many that its columns are worth bringing anew.
int64_t most_rows(const Blocks& b, const Instruction& contraction, const RowsInPlace& rows, const TargetInfo& target) {
  const bool dot = contraction.is(Opcode::kDot);
  const int64_t row = (rows.stretch > 0 && !dot ? rows.stretch : b.depth) * element_bytes(contraction, b.multiply_add);
  const int64_t fewest = dot ? 4 * kFewRows + b.tile_rows : 48;
  return std::clamp<int64_t>(target.l2_bytes * 11 / 16 / row, fewest, 640) / b.tile_rows * b.tile_rows;
}

/// Tasks that a product is cut into where it can be: few rows take as long as their columns take to come.
int64_t tasks_wanted(const MatrixProduct& p, int64_t bytes, int64_t most, const TargetInfo& target) {
  const auto columns = static_cast<double>(p.batches() * p.n * p.k);
  const double computed = 2 * static_cast<double>(p.m) * columns / 1e6;
  const double brought = columns * static_cast<double>(bytes) / kBroughtByTask;
  const double work = std::max(computed, brought) * static_cast<double>(target.smaller);
  return std::clamp<int64_t>(static_cast<int64_t>(work), 1, most);
}

/// The blocks of the grid. The left block fills most of L2, for then packing costs least; blocks are equal in size. A
/// dot's rows are cut before its columns: its right side is packed once for all of them (passes/pack), the left one
/// again for each block of columns.
void choose_grid(Blocks& b, const MatrixProduct& p, const Instruction& contraction, const RowsInPlace& rows,
                 const TargetInfo& target) {
  const int64_t mr = b.tile_rows, nr = b.tile_columns, bytes = dtype_bytes(sum_type(contraction));
  const bool dot = contraction.is(Opcode::kDot), walks = walks_rows(contraction, p, b, target);
  const int64_t most = most_rows(b, contraction, rows, target);
  int64_t unit = p.swapped || p.run == 0 ? mr : std::lcm(mr, p.run);  // a run is in one block
  unit = std::lcm(unit, rows.together);
  auto equal_rows = [&](int64_t blocks) { return round_up(ceil_div(p.m, blocks), unit); };
  b.rows = equal_rows(ceil_div(p.m, std::max(most, unit)));
  // Of rows that come from memory a task takes a page each, which is read to its end.
  const int64_t wide = walks ? kPage / bytes : std::max<int64_t>(512, 16 * nr);
  b.columns = round_up(ceil_div(p.n, ceil_div(p.n, wide)), nr);
  const int64_t batches = p.batches();
  int64_t wanted = tasks_wanted(p, bytes, walks ? 4 : 8, target);
  auto tasks = [&] { return batches * ceil_div(p.m, b.rows) * ceil_div(p.n, b.columns); };
  // Rows that are packed are packed again for each block of columns, and pointed to again for each step. (Of a product
  // of 512 in T(8,128) blocks of 258x128 take 0.98 of the time of 132x256, of f16 0.86.)
  const bool again = rows.packed() || rows.together > 1;
  const int64_t fewest = again ? std::min<int64_t>(8 * nr, 128) : nr;
  const bool in_place = columns_in_place(contraction, p, b, target);
  const bool far = in_place && !walks && p.n * p.k * bytes > target.l2_bytes / 2;
  if (dot && !b.along_depth && !form_of(b.multiply_add).tiles() && (!in_place || far)) {
    // So are columns for each block of rows: the blocks that pack least. (1024x1024 by 1024x1024 in eight blocks of 132
    // rows 12.9 ms, of 516 rows and 256 columns 11.7.) Read where they lie they come from beyond the second cache,
    // which costs half as much. (In 258 rows and 512 columns, two threads 0.95 to 0.99 of the time.)
    const int64_t of_columns = far ? 1 : 2, of_rows = again ? 2 : far ? 1 : 0;
    // Where the columns alone give tasks enough, rows in place are as many as the last cache keeps.
    const bool enough = rows.along_depth && ceil_div(p.n, nr) * batches >= wanted;
    const int64_t kept = enough ? target.llc_bytes / 2 / (p.k * element_bytes(contraction, b.multiply_add)) : 0;
    const int64_t row_blocks = ceil_div(p.m, std::max(b.rows, kept));
    const int64_t column_blocks = ceil_div(p.n, b.columns);
    int64_t least = INT64_MAX;
    for (int64_t i = row_blocks; i == row_blocks || equal_rows(i) >= kFewRows; ++i) {
      int64_t j = std::max(column_blocks, ceil_div(wanted, i * batches));
      const int64_t columns = round_up(ceil_div(p.n, j), nr);
      if (columns < fewest || i * j * batches < wanted) continue;
      const int64_t packed = i * p.n * of_columns + j * p.m * of_rows;
      if (packed < least) {
        least = packed;
        b.rows = equal_rows(i);
        b.columns = columns;
      }
      if (j == column_blocks) break;  // more blocks of rows only pack more
    }
  }
  while (dot && tasks() < wanted) {
    int64_t fewer = equal_rows(ceil_div(p.m, b.rows) + 1);
    if (fewer < kFewRows || fewer == b.rows) break;
    b.rows = fewer;
  }
  while (tasks() < wanted && b.columns > std::max(fewest, again ? 3 * nr : 0)) b.columns = round_up(b.columns / 2, nr);
  // So few rows pack the right side again and again, or one core has packed it for another, and each line of it that
  // both have read is dear to write the next time: 28 ns on a Zen 4, 57 us for 256 KB. (256x256 by 256x256 in T(8,128),
  // two threads: 230 us in eight blocks of 36 rows, 160 in four of 132x128.)
  if (dot && !in_place) wanted = std::min<int64_t>(wanted, 4);
  while (tasks() < wanted && b.rows > 8 * unit) b.rows = round_up(b.rows / 2, unit);
}

}  // namespace

bool worth_blocks(const Instruction& contraction, const MatrixProduct& p, int64_t lanes) {
  bool large = p.m >= 4 && p.n >= lanes && p.k >= kShallow;
  bool odd = p.m >= 2 && p.n >= 2 && p.k >= kShallow && p.m * p.n * p.k > kFewProducts;
  if (!large && !odd) return false;
  if (sums_features(contraction, lanes)) return false;
  // Groups of a few features would leave most of a vector empty: lanes go across groups instead.
  if (!contraction.is(Opcode::kDot)) return p.groups() == 1 || 2 * p.n >= lanes;
  // So would few columns: sums are pulled, with lanes along the depth. (1000x131 by two columns: 4 us, 23 by blocks.)
  if (p.n < 3 || (p.n == 3 && p.k >= lanes)) return false;
  if (2 * p.n >= lanes || p.k < 4 * lanes) return true;
  auto strides = operand_strides(contraction, p, p.columns_operand());
  return !strides || strides->depth != 1;
}

bool sums_features(const Instruction& contraction, int64_t lanes) {
  constexpr int64_t kFew = 4;
  if (!contraction.is(Opcode::kConvolution)) return false;
  if (contraction.attrs.feature_group_count * contraction.attrs.batch_group_count > 1) return false;
  const ConvDims& c = contraction.attrs.conv;
  const Shape& x = contraction.operand(0)->shape;
  return contraction.shape.dims[static_cast<size_t>(c.out_feature)] <= kFew &&
         x.dims[static_cast<size_t>(c.lhs_feature)] >= lanes && !x.layout.minor_to_major.empty() &&
         x.layout.minor_to_major[0] == c.lhs_feature;
}

bool may_sum_along_depth(const Instruction& contraction, const MatrixProduct& p, int64_t lanes) {
  if (!contraction.is(Opcode::kDot) || !is_float(sum_type(contraction))) return false;
  if (p.contracting.size() != 1 || lanes < 2 || p.n < 2 || p.k < lanes) return false;
  return p.n < lanes || lies_along_depth(contraction, p, p.columns_operand());
}

bool suits(MultiplyAdd kind, const Instruction& contraction, const MatrixProduct& p, int64_t depth,
           const TargetInfo& target) {
  if (kind == MultiplyAdd::kOne) return true;
  const MultiplyAddForm& form = form_of(kind);
  if (sum_type(contraction) != form.sums) return false;
  // Packing fills a last step with zeros; of a dot in several slices the panels may lie packed, with none between.
  if (contraction.is(Opcode::kDot) && depth < p.k && depth % form.step != 0) return false;
  if (form.tiles() && !fills_tiles(kind, p)) return false;
  const DType left = contraction.operand(p.rows_operand())->shape.type;
  const DType right = contraction.operand(p.columns_operand())->shape.type;
  auto both = [&](std::initializer_list<DType> types) {
    return std::ranges::count(types, left) > 0 && std::ranges::count(types, right) > 0;
  };
  switch (kind) {
    case MultiplyAdd::kWords: return both({DType::kS8, DType::kU8, DType::kS16});
    case MultiplyAdd::kBytes:
    case MultiplyAdd::kByteTiles: return both({DType::kS8});
    default: return both({DType::kBF16}) && !target.keeps_subnormals;
  }
}

int64_t last_panel(int64_t n, int64_t tile_columns, int64_t lanes, bool halves) {
  const int64_t left = n - (n - 1) / tile_columns * tile_columns;
  return round_up(left, halves && 2 * (left % lanes) <= lanes ? lanes / 2 : lanes);
}

bool holds_runs(const Blocks& b, const MatrixProduct& p) {
  return p.run == 0 || (p.swapped ? b.tile_columns : b.rows) % p.run == 0;
}

std::optional<Blocks> choose_blocks(const Instruction& contraction, const MatrixProduct& p, const TargetInfo& target,
                                    ProductOperands operands) {
  DType type = sum_type(contraction);
  if (type != DType::kF32 && type != DType::kF64 && !is_integral(type)) return std::nullopt;
  const int64_t lanes = sum_lanes(contraction, target.vector_bytes);
  if (contraction.shape.element_count() == 0) return std::nullopt;  // a batch of none has no chunks
  const bool along_depth = sums_along_depth(contraction, p, target, operands);
  const bool worth =
      along_depth || worth_blocks(contraction, p, lanes) || row_of_far_columns(contraction, p, target, operands);
  if (!worth) return std::nullopt;
  // Few columns of narrow integers: pulled, a vector holds more of them than of their wider sums.
  DType result = contraction.shape.type;
  if (is_integral(result) && dtype_bits(result) < 32 && p.n < lanes) return std::nullopt;

  Blocks b;
  auto rows_by = [&](MultiplyAdd kind) {
    return operands.rows_in_memory ? rows_in_place(contraction, p, kind, b.tile_columns) : RowsInPlace{};
  };
  if (along_depth) {
    b.along_depth = true;
    if (pairs_along_depth(contraction, p, target, operands)) b.multiply_add = MultiplyAdd::kBfloats;
    const MultiplyAddForm& form = form_of(b.multiply_add);
    b.tile_rows = ceil_div(p.m, ceil_div(p.m, rows_along_depth(target)));
    b.tile_columns = lanes;
    // A tile's rows stay in the first cache, for each few columns go through them again; so do packed columns.
    const bool packs = form.terms == 1 && !columns_as_summed(contraction, p, operands);
    const int64_t longest = packs ? std::max(b.tile_rows, b.tile_columns) : b.tile_rows, each = lanes * form.terms;
    const int64_t most = target.l1_bytes * 2 / 3 / (longest * dtype_bytes(type)) / lanes * each;
    b.depth = slice_of(p.contracting, most, most, each);
    choose_grid(b, p, contraction, rows_by(b.multiply_add), target);
    return b;
  }
  RowsInPlace rows;
  for (MultiplyAdd kind : kinds_to_try(lanes, operands, target)) {
    b.multiply_add = kind;
    if (form_of(kind).tiles())
      choose_tile_of_tiles(b, p, rows_by(kind).in_line);
    else
      choose_tile(b, p, type, lanes, rows_by(MultiplyAdd::kOne).together, target);
    rows = rows_by(kind);
    b.depth = choose_depth(contraction, p, b, rows, target);
    if (suits(kind, contraction, p, b.depth, target)) break;
  }
  choose_grid(b, p, contraction, rows, target);
  return b;
}

Blocks in_one_slice(const Instruction& contraction, const MatrixProduct& p, const Blocks& b, const TargetInfo& target) {
  Blocks whole = b;
  whole.depth = p.k;
  const bool few = b.rows <= 2 * b.tile_rows && p.k <= kLongestChain;
  const bool near = p.n * p.k * dtype_bytes(sum_type(contraction)) <= target.l2_bytes;
  return few && near && columns_in_place(contraction, p, whole, target) ? whole : b;
}

}  // namespace hlojit
