// See split_contractions.h.
#include "compiler/passes/split_contractions.h"

#include <algorithm>
#include <optional>

#include "compiler/analysis/dataflow.h"
#include "compiler/builder.h"
#include "compiler/ir/narrow.h"
#include "compiler/passes/equal_parts.h"
#include "compiler/passes/replace_ops.h"

namespace hlojit {
namespace {

constexpr int64_t kFewestParts = 4;  // more are worth a second kernel

/// A dim of each operand, contracted with the other, in parts.
struct Cut {
  int64_t left, right, parts;
};

/// How large a contraction is: products of `rows` by `columns` of `depth`.
struct Sizes {
  int64_t products, rows, columns, depth;
};

bool is_plain(const Instruction& op) {
  auto plain = [](const Instruction* x) { return !x->shape.layout.tiled() && !x->shape.has_dynamic_dims(); };
  return std::ranges::all_of(op.operands(), plain) && !op.shape.layout.tiled() && op.control_predecessors.empty() &&
         op.shape.element_count() > 0 && !is_complex(op.shape.type);
}

Sizes sizes_of(const Instruction& op) {
  const int64_t results = op.shape.element_count();
  if (op.is(Opcode::kConvolution)) {
    const int64_t columns = op.shape.dims[op.attrs.conv->out_feature];
    return {1, results / columns, columns, op.operand(1)->shape.element_count() / columns};
  }
  const DotDims& d = op.attrs.dot;
  int64_t products = 1, depth = 1;
  for (int64_t k : d.lhs_batch) products *= op.operand(0)->shape.dims[k];
  for (int64_t k : d.lhs_contracting) depth *= op.operand(0)->shape.dims[k];
  if (depth == 0) return {products, 1, 1, 0};
  return {products, op.operand(0)->shape.element_count() / products / depth,
          op.operand(1)->shape.element_count() / products / depth, depth};
}

/// In how many parts a depth is worth cutting; 0 if it is not. Of products that are small beside it, and not thin, for
/// those have tasks enough and read what is large once: parts are made and added up in memory, an eighth of what the
/// operands take at most. (A Zen 4, one thread and two, rows and columns by depth, of f32, before -> after: 27x32 by
/// 16384 243 and 243 us -> 243 and 124, 64x64 1.22 and 0.65 ms -> 1.19 and 0.60, 256x256 22.4 and 11.2 -> 20.5
/// and 10.5, 512x512 161 and 71 -> 94 and 45, where both lie across. By 2048 the last two are as fast as before.
/// 16x2048 by 4096 3.8 and 1.9 ms -> 4.6 and 2.4.)
int64_t parts_of_depth(const Instruction& op, const Sizes& s, const TargetInfo& target) {
  constexpr int64_t kMost = 16, kShareOfOperands = 8;
  constexpr int64_t kFewest = 3, kFewResults = 2048, kThin = 4;
  const int64_t least_work = (1 << 19) / target.smaller, shallow = std::max<int64_t>(256 / target.smaller, 1);
  const int64_t results = s.rows * s.columns, sides = s.rows + s.columns, larger = std::max(s.rows, s.columns);
  if (std::min(s.rows, s.columns) < kFewest || results < kFewest * sides || s.depth < least_work / results / s.products)
    return 0;
  if (results > kFewResults && kThin * (sides - larger) < larger) return 0;
  const int64_t read = op.operand(0)->shape.element_count() + op.operand(1)->shape.element_count();
  const int64_t parts = std::min({kMost / s.products, s.depth / std::max(shallow, 8 * results / sides),
                                  read / kShareOfOperands / (s.products * results)});
  return parts >= kFewestParts ? parts : 0;
}

/// A divisor of n about as large as what is wanted; 0 if there is none.
int64_t divisor_near(int64_t n, int64_t wanted) {
  for (int64_t parts = std::min(wanted, n); parts >= kFewestParts; --parts) {
    if (n % parts == 0) return parts;
  }
  for (int64_t parts = wanted + 1; parts <= std::min(2 * wanted, n); ++parts) {
    if (n % parts == 0) return parts;
  }
  return 0;
}

/// The most major contracted dim that has steps enough; of a convolution features only where they lie as images do.
std::optional<Cut> cut_of_depth(const Instruction& op, const TargetInfo& target) {
  const Sizes sizes = sizes_of(op);
  const int64_t wanted = parts_of_depth(op, sizes, target);
  if (wanted == 0) return std::nullopt;
  const bool dot = op.is(Opcode::kDot);
  const Ints left = dot ? op.attrs.dot->lhs_contracting : Ints{op.attrs.conv->lhs_feature};
  const Ints right = dot ? op.attrs.dot->rhs_contracting : Ints{op.attrs.conv->rhs_input_feature};
  const Shape& shape = op.operand(0)->shape;
  const auto& minor = shape.layout.minor_to_major;
  for (auto d = minor.rbegin(); d != minor.rend(); ++d) {
    const int64_t n = shape.dims[*d];
    const auto k = std::ranges::find(left, *d) - left.begin();
    const int64_t parts = k < std::ssize(left) ? divisor_near(n, wanted) : 0;
    if (parts > 0) return Cut{*d, right[k], parts};
    if (!dot && n > 1) break;
  }
  return std::nullopt;
}

/// A vector times a matrix of short rows: sums of columns.
std::optional<Cut> cut_of_rows(const Instruction& dot, const TargetInfo& target) {
  const DotDims& d = dot.attrs.dot;
  const Shape &x = dot.operand(0)->shape, &y = dot.operand(1)->shape;
  const bool plain = d.lhs_batch.empty() && d.lhs_contracting == Ints{0} && d.rhs_contracting == Ints{0} &&
                     x.type == dot.shape.type && y.type == dot.shape.type && is_float(dot.shape.type) &&
                     x.rank() + y.rank() == 3;
  if (!plain) return std::nullopt;
  const Shape& matrix = x.rank() == 2 ? x : y;
  if (matrix.layout != Layout::descending(2) || !sums_short_rows(matrix, dot.shape.dense_bytes(), target)) {
    return std::nullopt;
  }
  return Cut{0, 0, parts_of_rows(matrix.dims[0], matrix.dims[1])};
}

std::optional<Cut> cut_of(const Instruction& op, const TargetInfo& target) {
  const bool groups = op.attrs.feature_group_count * op.attrs.batch_group_count > 1;
  if (op.is(Opcode::kConvolution)) return is_plain(op) && !groups ? cut_of_depth(op, target) : std::nullopt;
  if (!op.is(Opcode::kDot) || !is_plain(op)) return std::nullopt;
  const auto rows = cut_of_rows(op, target);
  return rows ? rows : cut_of_depth(op, target);
}

bool is_worth_cutting(const Instruction& op, const TargetInfo& target) {
  return op.is(Opcode::kDot) && is_plain(op) && parts_of_depth(op, sizes_of(op), target) > 0;
}

/// Dims behind one that is one with the next now.
void move_down(Ints& dims, int64_t from) {
  for (int64_t& d : dims) d -= d > from ? 1 : 0;
}

/// The same with contracted dims that follow each other in both operands, and in memory, as one, which has more
/// divisors, and parts that lie in a row. nullptr if there are none. (52 and 8 rows of 74x5x4, one core of a Zen 4: cut
/// at the five 30 us, 12 so; XLA:CPU 22.)
Instruction* with_joined_depth(Computation& c, const Instruction& dot) {
  Instruction *left = dot.operand(0), *right = dot.operand(1);
  DotDims dims = *dot.attrs.dot;
  for (size_t k = 0; k + 1 < dims.lhs_contracting.size();) {
    const int64_t l = dims.lhs_contracting[k], r = dims.rhs_contracting[k];
    const bool follow = dims.lhs_contracting[k + 1] == l + 1 && dims.rhs_contracting[k + 1] == r + 1;
    if (!follow || !lies_beside_next(left->shape, l) || !lies_beside_next(right->shape, r)) {
      ++k;
      continue;
    }
    left = join_with_next(c, left, l), right = join_with_next(c, right, r);
    dims.lhs_contracting.erase(dims.lhs_contracting.begin() + static_cast<std::ptrdiff_t>(k) + 1);
    dims.rhs_contracting.erase(dims.rhs_contracting.begin() + static_cast<std::ptrdiff_t>(k) + 1);
    move_down(dims.lhs_contracting, l), move_down(dims.lhs_batch, l);
    move_down(dims.rhs_contracting, r), move_down(dims.rhs_batch, r);
  }
  if (left == dot.operand(0)) return nullptr;
  Instruction* same = c.add(dot.opcode, dot.shape, {left, right}, dot.name);
  same->attrs = dot.attrs;
  same->attrs.dot.edit() = std::move(dims);
  same->location = dot.location;
  return same;
}

/// Dims behind one that has become two: of those that are named, and of itself, its second half.
void move_up(Ints& dims, int64_t from) {
  for (int64_t& d : dims) d += d >= from ? 1 : 0;
}

/// A batch dim in front of the depth that is left.
void cut_dims(DotDims& d, const Cut& cut) {
  move_up(d.lhs_batch, cut.left), move_up(d.lhs_contracting, cut.left);
  move_up(d.rhs_batch, cut.right), move_up(d.rhs_contracting, cut.right);
  d.lhs_batch.insert(d.lhs_batch.begin(), cut.left);
  d.rhs_batch.insert(d.rhs_batch.begin(), cut.right);
}

/// A spatial dim more, of the parts.
void cut_dims(Attributes& attrs, const Cut& cut) {
  ConvDims& c = attrs.conv.edit();
  auto moved = [](int64_t d, int64_t from) { return d + (d >= from ? 1 : 0); };
  c.lhs_batch = moved(c.lhs_batch, cut.left), c.lhs_feature = moved(c.lhs_feature, cut.left);
  c.rhs_input_feature = moved(c.rhs_input_feature, cut.right);
  c.rhs_output_feature = moved(c.rhs_output_feature, cut.right);
  ++c.out_batch, ++c.out_feature;
  move_up(c.lhs_spatial, cut.left), move_up(c.rhs_spatial, cut.right), move_up(c.out_spatial, 0);
  c.lhs_spatial.push_back(cut.left), c.rhs_spatial.push_back(cut.right), c.out_spatial.push_back(0);
  attrs.window.push_back(window_of_parts(cut.parts));
}

/// What is contracted, and to what.
struct Sides {
  Instruction *left, *right;
  Shape result;
};

/// Steps [start, limit) of what is contracted.
Sides steps_of(Computation& c, const Sides& all, const Cut& cut, int64_t start, int64_t limit) {
  return {slice_along(c, all.left, cut.left, start, limit), slice_along(c, all.right, cut.right, start, limit),
          all.result};
}

/// With the parts in front of the result's dims.
Instruction* contract_parts(Computation& c, const Instruction& op, const Sides& sides, const Cut& cut) {
  Shape shape = sides.result;
  shape.dims.insert(shape.dims.begin(), cut.parts);
  for (int64_t& d : shape.layout.minor_to_major) ++d;
  shape.layout.minor_to_major.push_back(0);
  Instruction* left = split_dim(c, sides.left, cut.left, cut.parts);
  Instruction* right = split_dim(c, sides.right, cut.right, cut.parts);
  Instruction* parts = c.add(op.opcode, std::move(shape), {left, right}, op.name);
  parts->attrs = op.attrs;
  parts->location = op.location;
  if (op.is(Opcode::kDot))
    cut_dims(parts->attrs.dot.edit(), cut);
  else
    cut_dims(parts->attrs, cut);
  return parts;
}

Instruction* split(Computation& c, const Instruction& op, const Cut& cut) {
  Builder b(&c);
  const DType type = is_narrow_float(op.shape.type) ? DType::kF32 : op.shape.type;
  Sides all{op.operand(0), op.operand(1), op.shape};
  all.result.type = type;
  const int64_t n = all.left->shape.dims[cut.left], even = n / cut.parts * cut.parts;
  Instruction* parts = contract_parts(c, op, even < n ? steps_of(c, all, cut, 0, even) : all, cut);
  Instruction* sum = b.reduce({parts}, {b.constant(type, 0)}, b.combiner(Opcode::kAdd, type), {0});
  sum->shape.layout = op.shape.layout;
  if (even < n) {
    const Sides rest = steps_of(c, all, cut, even, n);
    Instruction* last = c.add(op.opcode, rest.result, {rest.left, rest.right}, op.name);
    last->attrs = op.attrs;
    last->location = op.location;
    sum = c.add(Opcode::kAdd, all.result, {sum, last}, op.name);
  }
  return type == op.shape.type ? sum : c.add(Opcode::kConvert, op.shape, {sum}, op.name);
}

}  // namespace

bool split_contractions(Module& module, const PipelineOptions& options) {
  bool changed = false;
  for (Computation* c : sequential_computations(module)) {
    changed |= replace_ops(*c, "split_contractions", options, [&](const Instruction& op) -> Instruction* {
      const Instruction* joined = is_worth_cutting(op, options.target) ? with_joined_depth(*c, op) : nullptr;
      const Instruction& whole = joined ? *joined : op;
      const auto cut = cut_of(whole, options.target);
      return cut ? split(*c, whole, *cut) : nullptr;
    });
  }
  return changed;
}

}  // namespace hlojit
