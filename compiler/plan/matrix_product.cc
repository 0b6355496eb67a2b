// See matrix_product.h.
#include "compiler/plan/matrix_product.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "compiler/analysis/movement.h"
#include "compiler/ir/narrow.h"
#include "layout/divide.h"
#include "layout/index.h"

namespace hlojit {
namespace {

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

/// Coordinates of the batch, whichever it is: of a phase's taps, others may not be there in the first one.
Coords any_batch(const MatrixProduct& p, VarSource& vars) { return variables(sizes_of(p.batch), vars); }

/// What a product reads of an operand for a row (or column) `along` it at a position of the depth.
std::optional<Read> read_of(const Instruction& contraction, const MatrixProduct& p, size_t operand,
                            const IndexExpr& along, const IndexExpr& depth, std::span<const IndexExpr> batch,
                            VarSource& vars) {
  const bool left = operand == 0;
  const Coords at = p.split(left, along), others((left ? p.rhs_free : p.lhs_free).size(), IndexExpr(0));
  const Coords result = left ? p.join(batch, at, others) : p.join(batch, others, at);
  AccessRelation relation = access_relation(contraction, result, delinearize(p.contracting, depth), vars);
  auto read = std::ranges::find(relation.reads, operand, &Read::operand);
  return read == relation.reads.end() ? std::nullopt : std::optional(std::move(*read));
}

std::optional<Read> read_of_rows(const Instruction& contraction, const MatrixProduct& p, const IndexExpr& row,
                                 const IndexExpr& depth, VarSource& vars) {
  return read_of(contraction, p, p.rows_operand(), row, depth, any_batch(p, vars), vars);
}

/// Rows (or columns) and the depth have a stride each where the operand lies: in front of the moves that make it, which
/// fold into packing.
bool lies_at_strides(const Instruction& contraction, const MatrixProduct& p, size_t operand) {
  VarSource vars;
  const int along = vars.fresh(), k = vars.fresh();
  const IndexExpr position = IndexExpr::var(along, operand == p.rows_operand() ? p.m : p.n);
  const Coords batch = any_batch(p, vars);
  auto read = read_of(contraction, p, operand, position, IndexExpr::var(k, p.k), batch, vars);
  if (!read || !read->guards.empty()) return false;
  const Instruction* source = contraction.operand(operand);
  for (; moves_by_fixed_map(*source); source = source->operand(0)) {
    read->coords = *operand_coords(*source, 0, read->coords);
  }
  if (element_bits(source->shape) != dtype_bits(source->shape.type)) return false;
  const IndexExpr address = linear_index(source->shape, read->coords);
  return address.coefficient(along) && address.coefficient(k);
}

/// Elements that differ in the variable `inner` alone are neighbours in memory, and all in the padding or none.
bool neighbours(const Instruction& contraction, const std::optional<Read>& read, int inner) {
  if (!read) return false;
  const Shape& shape = contraction.operand(read->operand)->shape;
  if (element_bits(shape) != dtype_bits(shape.type)) return false;
  auto varies = [&](const Guard& g) { return g.expr.depends_on(inner); };
  return std::ranges::none_of(read->guards, varies) && linear_index(shape, read->coords).coefficient(inner) == 1;
}

/// How many neighbours along the last of some factors are neighbours in memory; one where the factor is filled up.
int64_t beside(const Shape& shape, const std::vector<Factor>& factors) {
  if (!shape.layout.tiled() || factors.empty() || shape.element_count() == 0) return 1;
  const Factor& last = factors.back();
  if ((last.size - 1) * last.step >= shape.dims[last.dim]) return 1;
  Ints at(shape.dims.size());
  int64_t n = 0;
  for (; n < last.size; ++n) {
    at[last.dim] = n * last.step;
    if (linear_index(shape, at) != n) break;
  }
  return std::max<int64_t>(n, 1);
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
  rows_beside = beside(result, swapped ? rhs_free : lhs_free);
  m = rows_of_column = size_of(swapped ? rhs_free : lhs_free);
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
  const bool along_line = step_of(lines.back()) == 1;
  if (step_of(reduced.back()) == 1 && !along_line) return;
  const std::vector<int> last = lines.back().variables();
  const bool guarded = !last.empty() && std::ranges::any_of(relation.reads[0].guards,
                                                            [&](const Guard& g) { return g.expr.depends_on(last[0]); });
  // A line that lies together needs no filling up, where tiles are parts of it, or where it is so short that vectors of
  // the depth are told apart in registers: 27 rows of three channels are 27, not 36. (Gradient of weights from 64x64 by
  // three channels to 32, a Zen 4: 0.80 of the time, of 7x7 0.70; of five or six channels 1.03.)
  constexpr int64_t kToldApart = 4;
  if (along_line && !guarded && !swapped && (shares_out_in_tiles(line) || line <= kToldApart)) {
    run = line;
    return;
  }
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

int64_t MatrixProduct::batches() const { return size_of(batch); }

MatrixProduct single_product(const Instruction& contraction, const Shape& result, int64_t lanes) {
  constexpr int64_t kFewestRows = 8, kFewestColumns = 32;
  MatrixProduct p(contraction, result, lanes);
  if (!contraction.is(Opcode::kDot) || contraction.shape.element_count() == 0) return p;
  for (size_t operand : {p.rows_operand(), p.columns_operand()}) {
    if (lies_at_strides(contraction, p, operand)) continue;
    const bool rows = operand == p.rows_operand();
    MatrixProduct inner = p;
    std::vector<Factor>& free = operand == 0 ? inner.lhs_free : inner.rhs_free;
    int64_t& size = rows ? inner.m : inner.n;
    bool at_stride = false;
    while (free.size() > 1 && !at_stride) {
      size /= free[0].size;
      inner.batch.push_back(free[0]);
      free.erase(free.begin());
      at_stride = lies_at_strides(contraction, inner, operand);
    }
    if (size >= (rows ? kFewestRows : kFewestColumns) && at_stride) p = std::move(inner);
  }
  return p;
}

int64_t depth_stretch(const Instruction& contraction, const MatrixProduct& p) {
  auto together = [&](int64_t stretch) {
    VarSource vars;
    const int row = vars.fresh(), k = vars.fresh(), inner = vars.fresh();
    IndexExpr depth = IndexExpr::var(k, ceil_div(p.k, stretch)) * stretch + IndexExpr::var(inner, stretch);
    return neighbours(contraction, read_of_rows(contraction, p, IndexExpr::var(row, p.m), depth, vars), inner);
  };
  int64_t stretch = 1;
  for (auto size = p.contracting.rbegin(); size != p.contracting.rend() && together(stretch * *size); ++size)
    stretch *= *size;
  // Of a tiled array as much as is in a tile's row. The last may be a part.
  const Layout& layout = contraction.operand(p.rows_operand())->shape.layout;
  const int64_t of_tile = layout.tiled() ? layout.tiles[0].dims.back() : 1;
  const bool cuts = p.contracting.size() == 1 || p.contracting.back() % of_tile == 0;
  return stretch == 1 && of_tile > 1 && of_tile < p.k && cuts && together(of_tile) ? of_tile : stretch;
}

bool shares_out_in_tiles(int64_t rows) {
  for (int64_t tile = 4; tile <= 12; ++tile) {
    if (rows >= 8 && rows % tile == 0) return true;
  }
  return false;
}

int64_t row_stretch(const Instruction& contraction, const MatrixProduct& p) {
  const std::vector<Factor>& free = p.swapped ? p.rhs_free : p.lhs_free;
  if (free.empty()) return 1;
  const Factor& last = free.back();
  if (last.step != 1 || last.size != contraction.shape.dims[last.dim]) return 1;
  VarSource vars;
  const int row = vars.fresh(), inner = vars.fresh(), k = vars.fresh();
  IndexExpr position = IndexExpr::var(row, p.m / last.size) * last.size + IndexExpr::var(inner, last.size);
  auto read = read_of_rows(contraction, p, position, IndexExpr::var(k, p.k), vars);
  return neighbours(contraction, read, inner) ? last.size : 1;
}

std::optional<int64_t> row_stride_in_line(const Instruction& contraction, const MatrixProduct& p, int64_t rows) {
  VarSource vars;
  const int first = vars.fresh(), inner = vars.fresh(), k = vars.fresh();
  const IndexExpr row = IndexExpr::var(first, p.m / rows) * rows + IndexExpr::var(inner, rows);
  auto read = read_of_rows(contraction, p, row, IndexExpr::var(k, p.k), vars);
  if (!read || !read->guards.empty() || p.m % rows != 0) return std::nullopt;
  const Shape& shape = contraction.operand(p.rows_operand())->shape;
  if (element_bits(shape) != dtype_bits(shape.type)) return std::nullopt;
  return linear_index(shape, read->coords).coefficient(inner);
}

int64_t sum_lanes(const Instruction& contraction, int64_t vector_bytes) {
  return std::max<int64_t>(1, vector_bytes / dtype_bytes(sum_type(contraction)));
}

DType sum_type(const Instruction& dot) {
  DType type = working_type(dot.shape.type);
  // Integers wrap around: the low bits of wider sums are the sums.
  if (is_integral(type)) return dtype_bits(type) > 32 ? DType::kS64 : DType::kS32;
  return type;
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
  const int row = vars.fresh(), k = vars.fresh();
  auto read = read_of_rows(contraction, p, IndexExpr::var(row, p.m), IndexExpr::var(k, p.k), vars);
  return read && read->coords[static_cast<size_t>(minor)].depends_on(k);
}

std::optional<OperandStrides> operand_strides(const Instruction& contraction, const MatrixProduct& p, size_t operand) {
  VarSource vars;
  return operand_strides(contraction, p, operand, any_batch(p, vars), vars);
}

std::optional<OperandStrides> operand_strides(const Instruction& contraction, const MatrixProduct& p, size_t operand,
                                              std::span<const IndexExpr> batch, VarSource& vars) {
  const int along = vars.fresh(), k = vars.fresh();
  const IndexExpr position = IndexExpr::var(along, operand == p.rows_operand() ? p.m : p.n);
  auto read = read_of(contraction, p, operand, position, IndexExpr::var(k, p.k), batch, vars);
  if (!read || !read->guards.empty()) return std::nullopt;
  const Shape& shape = contraction.operand(operand)->shape;
  if (element_bits(shape) != dtype_bits(shape.type)) return std::nullopt;
  IndexExpr address = linear_index(shape, read->coords);
  auto step = address.coefficient(along), deeper = address.coefficient(k);
  if (!step || !deeper) return std::nullopt;
  return OperandStrides{*step, *deeper};
}

}  // namespace hlojit
