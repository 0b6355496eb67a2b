// See blocks.h.
#include "compiler/plan/blocks.h"

#include <algorithm>
#include <cstdio>

#include "compiler/analysis/access.h"

namespace hlojit {
namespace {

// Below this many products in all, calling a micro-kernel and packing for it costs more than it wins.
constexpr int64_t kFewProducts = 1 << 14;

int64_t product(const Ints& sizes) {
  int64_t n = 1;
  for (int64_t s : sizes) n *= s;
  return n;
}

int64_t round_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }
int64_t blocks_of(int64_t n, int64_t size) { return (n + size - 1) / size; }

/// Sizes of the dims that are neither batch nor contracted.
Ints free_sizes(const Shape& s, const Ints& batch, const Ints& contracting) {
  Ints sizes;
  for (int64_t d = 0; d < s.rank(); ++d) {
    bool taken = std::ranges::count(batch, d) > 0 || std::ranges::count(contracting, d) > 0;
    if (!taken) sizes.push_back(s.dims[static_cast<size_t>(d)]);
  }
  return sizes;
}

/// A slice of the contracted size that divides it evenly where one of good size exists.
int64_t slice_of(int64_t k) {
  constexpr int64_t kBest = 256;
  if (k <= kBest * 3 / 2) return k;
  for (int64_t unit : {8, 1}) {
    for (int64_t s = kBest / unit * unit; s >= kBest / 2; s -= unit) {
      if (k % s == 0) return s;
    }
  }
  return kBest;
}

}  // namespace

MatrixProduct::MatrixProduct(const Instruction& dot, const Shape& result) {
  const DotDims& d = dot.attrs.dot;
  for (int64_t b : d.lhs_batch) batch.push_back(dot.operand(0)->shape.dims[static_cast<size_t>(b)]);
  lhs_free = free_sizes(dot.operand(0)->shape, d.lhs_batch, d.lhs_contracting);
  rhs_free = free_sizes(dot.operand(1)->shape, d.rhs_batch, d.rhs_contracting);
  contracting = reduction_sizes(dot);
  const auto& order = result.layout.minor_to_major;
  auto minor = order.empty() ? 0 : order[0], first = static_cast<int64_t>(batch.size());
  swapped = minor >= first && minor < first + static_cast<int64_t>(lhs_free.size());
  m = product(swapped ? rhs_free : lhs_free);
  n = product(swapped ? lhs_free : rhs_free);
  k = product(contracting);
}

DType sum_type(const Instruction& dot) { return is_narrow_float(dot.shape.type) ? DType::kF32 : dot.shape.type; }

std::optional<Blocks> choose_blocks(const Instruction& dot, const MatrixProduct& p, const TargetInfo& target) {
  DType type = sum_type(dot);
  if (type != DType::kF32 && type != DType::kF64 && type != DType::kS32) return std::nullopt;
  int64_t bytes = dtype_bytes(type), lanes = std::max<int64_t>(1, target.vector_bytes / bytes);
  bool large = p.m >= 4 && p.n >= lanes && p.k >= 8;
  bool odd = p.m >= 2 && p.n >= 2 && p.k >= 8 && p.m * p.n >= kFewProducts / p.k;
  if (!large && !odd) return std::nullopt;

  Blocks b;
  // Rows share out evenly: 16 of them are two tiles of 8 where 12 fit, not 12 and 4. Fewer rows leave
  // registers for more columns: accumulators, a row of B and one broadcast must fit.
  int64_t registers = target.vector_registers, most_rows = registers >= 32 ? 12 : 6;
  b.tile_rows = blocks_of(p.m, blocks_of(p.m, most_rows));
  int64_t vectors = std::clamp<int64_t>((registers - 1) / (b.tile_rows + 1), 2, 6);
  vectors = std::min(vectors, std::max<int64_t>(1, p.n / lanes));
  // A width that leaves no narrow panel behind is worth one vector less.
  for (int64_t v = vectors; v >= 2; --v) {
    if (p.n % (v * lanes) != 0) continue;
    vectors = v;
    break;
  }
  b.tile_columns = vectors * lanes;
  b.depth = slice_of(p.k);

  // The left block fills most of L2, for then packing costs least; blocks are equal in size.
  int64_t mr = b.tile_rows, nr = b.tile_columns;
  int64_t most = std::clamp<int64_t>(target.l2_bytes * 11 / 16 / (b.depth * bytes), 48, 480) / mr * mr;
  b.rows = round_up(blocks_of(p.m, blocks_of(p.m, std::max(most, mr))), mr);
  b.columns = round_up(blocks_of(p.n, blocks_of(p.n, 512)), nr);
  int64_t batches = product(p.batch);
  double flops = 2.0 * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k) *
                 static_cast<double>(batches);
  auto wanted = std::clamp<int64_t>(static_cast<int64_t>(flops / 2e6), 1, 8);
  auto tasks = [&] { return batches * blocks_of(p.m, b.rows) * blocks_of(p.n, b.columns); };
  while (tasks() < wanted && b.columns > 8 * nr) b.columns = round_up(b.columns / 2, nr);
  while (tasks() < wanted && b.rows > 8 * mr) b.rows = round_up(b.rows / 2, mr);
  return b;
}

std::string blocks_text(const Blocks& b) {
  char text[160];
  std::snprintf(text, sizeof text, "tile %lldx%lld block %lldx%lldx%lld", static_cast<long long>(b.tile_rows),
                static_cast<long long>(b.tile_columns), static_cast<long long>(b.rows),
                static_cast<long long>(b.columns), static_cast<long long>(b.depth));
  return text;
}

std::optional<Blocks> read_blocks(std::string_view text) {
  long long v[5];
  std::string copy(text);
  if (std::sscanf(copy.c_str(), "tile %lldx%lld block %lldx%lldx%lld", &v[0], &v[1], &v[2], &v[3], &v[4]) != 5)
    return std::nullopt;
  for (long long x : v) {
    if (x < 1 || x > (1 << 20)) return std::nullopt;
  }
  Blocks b{v[0], v[1], v[2], v[3], v[4]};
  bool whole = b.rows % b.tile_rows == 0 && b.columns % b.tile_columns == 0;
  return whole && b.tile_rows <= 16 && b.tile_columns <= 256 ? std::optional(b) : std::nullopt;
}

}  // namespace hlojit
