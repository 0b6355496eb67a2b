// See blocks.h.
#include "compiler/plan/blocks.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <numeric>

#include <fmt/format.h>

#include "compiler/analysis/access.h"
#include "compiler/ir/narrow.h"
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

int64_t size_of(const std::vector<Factor>& factors) {
  int64_t n = 1;
  for (const Factor& f : factors) n *= f.size;
  return n;
}

std::vector<IndexExpr> variables(const Ints& sizes, VarSource& vars) {
  std::vector<IndexExpr> all;
  for (int64_t n : sizes) all.push_back(IndexExpr::var(vars.fresh(), n));
  return all;
}

Ints sizes_of(const std::vector<Factor>& factors) {
  Ints sizes;
  for (const Factor& f : factors) sizes.push_back(f.size);
  return sizes;
}

/// Where the left operand's element lies, tiles aside; nullopt if it may be none (padding).
std::optional<IndexExpr> left_address(const Instruction& contraction, std::span<const IndexExpr> result,
                                      std::span<const IndexExpr> reduced) {
  auto at = operand_coords(contraction, 0, result, reduced);
  if (!at) return std::nullopt;
  Shape plain = contraction.operand(0)->shape;
  plain.layout.tiles.clear();
  return linear_index(plain, *at);
}

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
  auto fits = [&](MultiplyAdd kind) { return suits(kind, contraction, p, depth_by(kind, p, blocks.depth)); };
  if (target.multiplies_bfloats && fits(MultiplyAdd::kBfloats)) return MultiplyAdd::kBfloats;
  if (target.multiplies_bytes && fits(MultiplyAdd::kBytes) && has_registers_for_bytes(blocks, lanes, target)) {
    return MultiplyAdd::kBytes;
  }
  return fits(MultiplyAdd::kWords) ? MultiplyAdd::kWords : MultiplyAdd::kOne;
}

}  // namespace

MatrixProduct::MatrixProduct(const Instruction& contraction, const Shape& result, int64_t lanes)
    : contracting(reduction_sizes(contraction)), rank_(result.dims.size()) {
  auto whole = [&](int64_t dim) { return Factor{result.dims[static_cast<size_t>(dim)], static_cast<size_t>(dim), 1}; };
  if (contraction.is(Opcode::kDot)) {
    const DotDims& d = contraction.attrs.dot;
    auto batches = static_cast<int64_t>(d.lhs_batch.size());
    int64_t left = contraction.operand(0)->shape.rank() - static_cast<int64_t>(d.lhs_contracting.size());
    for (int64_t dim = 0; dim < result.rank(); ++dim) {
      (dim < batches ? batch : dim < left ? lhs_free : rhs_free).push_back(whole(dim));
    }
  } else {
    const ConvDims& c = contraction.attrs.conv;
    // Features of a group are neighbours.
    int64_t groups = contraction.attrs.feature_group_count * contraction.attrs.batch_group_count;
    Factor features = whole(c.out_feature);
    features.size /= std::max<int64_t>(groups, 1);
    if (groups > 1) batch.push_back({groups, features.dim, features.size});
    rhs_free = {features};
    // What a position reads of the window repeats with its index modulo the base's dilation: a product a phase.
    for (size_t s = 0; s < c.out_spatial.size(); ++s) {
      const WindowDim& w = contraction.attrs.window[s];
      Factor positions = whole(c.out_spatial[s]);
      int64_t phases = std::min(w.lhs_dilate / std::gcd(w.lhs_dilate, w.stride), positions.size);
      if (phases > 1) {
        batch.push_back({phases, positions.dim, 1});
        phases_ *= phases;
        overhangs_ |= positions.size % phases != 0;
        positions = {ceil_div(positions.size, phases), positions.dim, phases};
      }
      lhs_free.push_back(positions);
    }
    lhs_free.push_back(whole(c.out_batch));
  }
  // Neighbours in the result's memory are neighbours along rows and columns.
  const Ints& order = result.layout.minor_to_major;
  auto depth_in_memory = [&](const Factor& f) {
    return std::ranges::find(order, static_cast<int64_t>(f.dim)) - order.begin();
  };
  for (auto* free : {&lhs_free, &rhs_free}) std::ranges::stable_sort(*free, std::greater<>(), depth_in_memory);
  auto minor = std::ranges::find_if(order, [&](int64_t d) { return result.dims[static_cast<size_t>(d)] != 1; });
  swapped = minor != order.end() &&
            std::ranges::any_of(lhs_free, [&](const Factor& f) { return static_cast<int64_t>(f.dim) == *minor; });
  if (contraction.is(Opcode::kConvolution)) choose_run(contraction, lanes);
  m = size_of(swapped ? rhs_free : lhs_free);
  n = size_of(swapped ? lhs_free : rhs_free);
  k = product(contracting);
}

// Long runs are packed by vectors, but may fill up lines with positions computed for nothing.
void MatrixProduct::choose_run(const Instruction& convolution, int64_t lanes) {
  VarSource vars;
  Coords groups = variables(sizes_of(batch), vars), features = variables(sizes_of(rhs_free), vars);
  Coords reduced = variables(contracting, vars);
  int along = vars.fresh();
  Coords positions = split(true, IndexExpr::var(along, size_of(lhs_free)));
  auto flat = left_address(convolution, join(groups, positions, features), reduced);
  if (flat && flat->coefficient(along) && !overhangs_) return;

  // Guards aside: the window's positions in the first place, where does the next feature lie, where the next row?
  VarSource others(1 << 20);
  Coords lines = variables(sizes_of(lhs_free), vars), first(contracting.size(), IndexExpr(0));
  first.back() = reduced.back();
  AccessRelation relation = access_relation(convolution, join(groups, lines, features), first, others);
  Shape plain = convolution.operand(0)->shape;
  plain.layout.tiles.clear();
  IndexExpr address = linear_index(plain, relation.reads[0].coords);
  auto step_of = [&](const IndexExpr& x) {
    std::vector<int> var = x.variables();
    return var.empty() ? 0 : address.coefficient(var[0]).value_or(0);
  };
  run = 1;
  int64_t line = lhs_free.back().size;
  if (step_of(reduced.back()) == 1 && step_of(lines.back()) != 1) return;
  double best = 0;
  for (int64_t r = 1; r <= lanes; r *= 2) {
    double products = static_cast<double>(size_of(rhs_free)) / 16, packing = 2.0 / static_cast<double>(r);
    double price = static_cast<double>(round_up(line, r)) * (products + packing);
    if (r == 1 || price < best) best = price, run = r;
  }
  lhs_free.back().size = round_up(line, run);
  overhangs_ |= lhs_free.back().size != line;
}

std::vector<IndexExpr> MatrixProduct::split(bool lhs, const IndexExpr& position) const {
  return delinearize(sizes_of(lhs ? lhs_free : rhs_free), position);
}

std::vector<IndexExpr> MatrixProduct::join(std::span<const IndexExpr> batch_at, std::span<const IndexExpr> lhs_at,
                                           std::span<const IndexExpr> rhs_at) const {
  std::vector<IndexExpr> c(rank_, IndexExpr(0));
  auto add = [&](const std::vector<Factor>& factors, std::span<const IndexExpr> at) {
    for (size_t f = 0; f < factors.size(); ++f) c[factors[f].dim] = c[factors[f].dim] + at[f] * factors[f].step;
  };
  add(batch, batch_at);
  add(lhs_free, lhs_at);
  add(rhs_free, rhs_at);
  return c;
}

bool MatrixProduct::holds_runs(const Blocks& b) const {
  return run == 0 || (swapped ? b.tile_columns : b.rows) % run == 0;
}

int64_t MatrixProduct::batches() const { return size_of(batch); }

int64_t sum_lanes(const Instruction& contraction, int64_t vector_bytes) {
  return std::max<int64_t>(1, vector_bytes / dtype_bytes(sum_type(contraction)));
}

DType sum_type(const Instruction& dot) {
  DType type = working_type(dot.shape.type);
  // Integers wrap around: the low bits of wider sums are the sums.
  if (is_integral(type)) return dtype_bits(type) > 32 ? DType::kS64 : DType::kS32;
  return type;
}

bool worth_blocks(const MatrixProduct& p, int64_t lanes) {
  bool large = p.m >= 4 && p.n >= lanes && p.k >= kShallow;
  bool odd = p.m >= 2 && p.n >= 2 && p.k >= kShallow && p.m * p.n >= kFewProducts / p.k;
  // Groups of a few features would leave most of a vector empty: lanes go across groups instead.
  return (large || odd) && (p.groups() == 1 || 2 * p.n >= lanes);
}

bool suits(MultiplyAdd kind, const Instruction& contraction, const MatrixProduct& p, int64_t depth) {
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
    default: return both({DType::kBF16});
  }
}

bool left_depth_is_minor(const Instruction& contraction, const MatrixProduct& p) {
  const Instruction& left = *contraction.operand(p.rows_operand());
  const Instruction& source = left.is(Opcode::kTranspose) ? *left.operand(0) : left;
  if (source.shape.layout.minor_to_major.empty()) return false;
  int64_t minor = source.shape.layout.minor_to_major[0];
  if (&source != &left) {
    const Ints& from = left.attrs.dimensions;
    minor = std::ranges::find(from, minor) - from.begin();
  }
  VarSource vars;
  int row = vars.fresh(), k = vars.fresh();
  Coords rows = p.split(!p.swapped, IndexExpr::var(row, p.m));
  Coords others((p.swapped ? p.lhs_free : p.rhs_free).size(), IndexExpr(0)), batch(p.batch.size(), IndexExpr(0));
  Coords at = p.swapped ? p.join(batch, others, rows) : p.join(batch, rows, others);
  AccessRelation relation = access_relation(contraction, at, delinearize(p.contracting, IndexExpr::var(k, p.k)), vars);
  auto read = std::ranges::find(relation.reads, p.rows_operand(), &Read::operand);
  return read != relation.reads.end() && read->coords[static_cast<size_t>(minor)].depends_on(k);
}

std::optional<Blocks> choose_blocks(const Instruction& dot, const MatrixProduct& p, const TargetInfo& target) {
  DType type = sum_type(dot);
  if (type != DType::kF32 && type != DType::kF64 && !is_integral(type)) return std::nullopt;
  int64_t bytes = dtype_bytes(type), lanes = sum_lanes(dot, target.vector_bytes);
  if (dot.shape.element_count() == 0 || !worth_blocks(p, lanes)) return std::nullopt;  // a batch of none has no chunks
  // Few columns of narrow integers: pulled, a vector holds more of them than of their wider sums.
  if (is_integral(dot.shape.type) && dtype_bits(dot.shape.type) < 32 && p.n < lanes) return std::nullopt;

  Blocks b;
  // Rows share out evenly: 16 of them are two tiles of 8 where 12 fit, not 12 and 4. Fewer rows leave
  // registers for more columns: accumulators, a row of B and one broadcast must fit.
  int64_t registers = target.vector_registers, most_rows = registers >= 32 ? 12 : 6;
  auto even_rows = [&](int64_t most) { return ceil_div(p.m, ceil_div(p.m, most)); };
  b.tile_rows = even_rows(most_rows);
  int64_t vectors = std::clamp<int64_t>((registers - 1) / (b.tile_rows + 1), 2, 6);
  vectors = std::min(vectors, std::max<int64_t>(1, p.n / lanes));
  // A width that leaves no narrow panel behind is worth one vector less.
  for (int64_t v = vectors; v >= 2; --v) {
    if (p.n % (v * lanes) != 0) continue;
    vectors = v;
    break;
  }
  // So is one that leaves much less of the last panel empty worth fewer rows: of 19 columns 24 are computed, not 32.
  // Integers are multiplied and added by two instructions, with a register between.
  const int64_t taken = is_integral(type) ? 2 : 1;
  for (int64_t v = 2; v <= 6; ++v) {
    int64_t rows = even_rows(std::clamp<int64_t>((registers - taken - v) / v, 1, most_rows));
    bool emptier = round_up(p.n, v * lanes) * 10 > round_up(p.n, vectors * lanes) * 9;
    if (emptier || rows * v < std::min(kEnoughSums, b.tile_rows * vectors)) continue;
    vectors = v;
    b.tile_rows = rows;
  }
  b.tile_columns = vectors * lanes;
  b.depth = slice_of(p.contracting);
  if (dot.is(Opcode::kConvolution) && p.groups() > 1 && p.contracting.size() >= 2) {
    // The positions that a group's features lie at are as far apart as all groups' together, and share few cache sets:
    // one line of the window after the other, several would push each other out.
    int64_t line = p.contracting.back() * p.contracting.end()[-2];
    if (line >= kDeepEnough) b.depth = std::min(b.depth, line);
  }
  b.multiply_add = choose_multiply_add(dot, p, b, lanes, target);
  b.depth = depth_by(b.multiply_add, p, b.depth);

  // The left block fills most of L2, for then packing costs least; blocks are equal in size.
  int64_t mr = b.tile_rows, nr = b.tile_columns;
  int64_t most = std::clamp<int64_t>(target.l2_bytes * 11 / 16 / (b.depth * bytes), 48, 480) / mr * mr;
  int64_t unit = p.swapped || p.run == 0 ? mr : std::lcm(mr, p.run);  // a run is in one block
  b.rows = round_up(ceil_div(p.m, ceil_div(p.m, std::max(most, unit))), unit);
  b.columns = round_up(ceil_div(p.n, ceil_div(p.n, 512)), nr);
  int64_t batches = p.batches();
  double flops = 2.0 * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k) *
                 static_cast<double>(batches);
  auto wanted = std::clamp<int64_t>(static_cast<int64_t>(flops / 2e6), 1, 8);
  auto tasks = [&] { return batches * ceil_div(p.m, b.rows) * ceil_div(p.n, b.columns); };
  while (tasks() < wanted && b.columns > 8 * nr) b.columns = round_up(b.columns / 2, nr);
  while (tasks() < wanted && b.rows > 8 * unit) b.rows = round_up(b.rows / 2, unit);
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
