// See pack.h.
#include "compiler/passes/pack.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "compiler/analysis/dataflow.h"
#include "compiler/analysis/invariant.h"
#include "compiler/builder.h"
#include "compiler/passes/explain.h"
#include "compiler/passes/wrap.h"
#include "compiler/plan/contraction.h"
#include "compiler/plan/operands_in_place.h"
#include "layout/lists.h"

namespace hlojit {
namespace {

// Panels that leave the last level before the last block of rows has read them cost more than packing slices again
// and again: a product of 2048x2048 by its transpose took 55.5 ms without and 59.5 with them.
constexpr int64_t kPartOfLastLevel = 4;

// Padding is worth a copy where packing would copy each element more often; more so where registers of rows are filled
// for each step, too.
constexpr int64_t kWorthPadding = 4, kWorthPaddingRegisters = 2;

// So few blocks of a convolution's positions pack its weights each for itself: 3x3 by 512 features to 512, two blocks,
// took 1.09 of the time by a copy (Granite Rapids).
constexpr int64_t kFewBlocks = 4;

// Rows and columns from which on a copy of the rows costs little beside the product.
constexpr int64_t kWorthCopy = 256;

class Packer {
 public:
  /// `same`: the values that a loop would have packed in each of its rounds, and `hoist` will pack before it.
  Packer(Computation& c, InstructionSet same, const PipelineOptions& options)
      : c_(c), same_(std::move(same)), options_(options) {}

  bool run() {
    bool changed = false;
    for (Instruction* i : c_.snapshot()) {
      if (i->is(Opcode::kDot)) changed |= name_anew(i);
      if (i->is(Opcode::kDot)) changed |= lay_rows_along_depth(i);
      if (i->is(Opcode::kDot)) changed |= visit(i);
      if (i->is(Opcode::kConvolution)) changed |= pad(i);
      if (i->is(Opcode::kConvolution)) changed |= visit(i);
    }
    return changed;
  }

 private:
  static bool in_memory(const Instruction* i) { return i->is(Opcode::kBitcast) || !folds_into_packing(i); }

  /// An operand that only names the dims of a parameter anew is read where it lies.
  bool name_anew(Instruction* dot) {
    bool changed = false;
    for (size_t k = 0; k < 2; ++k) {
      Instruction* o = dot->operand(k);
      if (!o->is(Opcode::kReshape) || !o->operand(0)->is(Opcode::kParameter) || !keeps_memory(*o)) continue;
      dot->set_operand(k, c_.add(Opcode::kBitcast, o->shape, {o->operand(0)}, o->name, dot));
      changed = true;
    }
    return changed;
  }

  /// Rows whose elements lie apart would be packed for each slice of the depth. Where panels are packed all of the
  /// depth at once, a copy in which they lie side by side is read in place, if the rows are so many that the second
  /// cache would not keep them for all columns. (An Emerald Rapids, one thread and two, ms: 2048x2048 transposed by as
  /// much 138 and 91, 118 and 77 so; 4096x784 by 4096x512 57 and 21, 28 and 17; 1024x1024 24 and 9.9, 22 and 9.7;
  /// 1024x256, which it keeps, by 1024x1024 5.8 and 2.1, 5.7 and 2.7.)
  bool lay_rows_along_depth(Instruction* dot) {
    const MatrixProduct product = product_of(*dot);
    const size_t side = product.rows_operand();
    Instruction* rows = dot->operand(side);
    if (!packs_for_second_cache(*dot, product, options_.target) || rows->shape.type != sum_type(*dot)) return false;
    if (!is_float(rows->shape.type) || rows->shape.layout.tiled() || lies_along_depth(*dot, product, side))
      return false;
    const int64_t bytes = product.m * product.k * dtype_bytes(rows->shape.type);
    if (std::min(product.m, product.n) < kWorthCopy || bytes <= options_.target.l2_bytes / 2) return false;
    const Ints& depth = dot->attrs.dot->contracting(side);
    Shape as = rows->shape;
    Ints& order = as.layout.minor_to_major;
    std::ranges::stable_partition(order, [&](int64_t d) { return contains(depth, d); });
    dot->set_operand(side, copied(rows, as, ".rows", dot));
    explain(options_, "pack", c_, "{} of {} as {}", rows->name, dot->name, as.to_string());
    return true;
  }

  bool visit(Instruction* dot) {
    const MatrixProduct product = product_of(*dot);
    // Few rows gain from panels that are packed once, though they could do without; few columns do not.
    const bool few = product.n < sum_lanes(*dot, options_.target.vector_bytes);
    auto blocks = choose_blocks(*dot, product, options_.target,
                                {.rows_in_memory = in_memory(dot->operand(product.rows_operand())),
                                 .columns_in_memory = in_memory(dot->operand(product.columns_operand())),
                                 .along_depth = few});
    if (!blocks || blocks->along_depth) return false;
    const bool one = blocks->multiply_add == MultiplyAdd::kOne;
    if (one && !is_float(sum_type(*dot))) return false;
    auto panels = panel_layout(*dot, product, *blocks);
    size_t side = product.columns_operand();
    Instruction* operand = dot->operand(side);
    if (product.rows_of_column <= kMostBlockRows && !same_.contains(operand)) return false;
    if (dot->is(Opcode::kConvolution) && product.m <= kFewBlocks * blocks->rows && !same_.contains(operand))
      return false;
    if (in_memory(operand) && columns_in_place(*dot, product, *blocks, options_.target)) return false;
    if (packed_once(*dot, product, *blocks)) return false;
    if (!panels || dot->operand(0) == dot->operand(1) || operand->shape.layout == *panels) return false;
    Shape as = operand->shape;
    as.type = one ? sum_type(*dot) : form_of(blocks->multiply_add).packed;
    as.layout = *panels;
    if (as.dense_bytes() > options_.target.llc_bytes / kPartOfLastLevel) return false;
    if (as.type != operand->shape.type && !is_narrow_float(operand->shape.type)) return false;
    dot->set_operand(side, copied(operand, as, ".panels", dot));
    explain(options_, "pack", c_, "{} of {} as {}", operand->name, dot->name, as.to_string());
    return true;
  }

  /// A single block of rows packs each column once, too, and of many no copy need be kept: 1024x1024 by 1024x1024 took
  /// 0.91 of the time so (Zen 4). Where something is reduced behind the dot they may all be one kernel, of smaller
  /// blocks, each of which would pack for itself.
  bool packed_once(const Instruction& dot, const MatrixProduct& product, const Blocks& blocks) const {
    const Instruction* operand = dot.operand(product.columns_operand());
    const int64_t bytes = product.n * product.k * dtype_bytes(operand->shape.type);
    if (product.m > blocks.rows || product.rows_of_column > product.m || bytes <= options_.target.l2_bytes)
      return false;
    return !operand->is(Opcode::kConstant) && !same_.contains(operand) && !reduced(&dot);
  }

  /// A value, or one that follows from it elementwise, is reduced.
  static bool reduced(const Instruction* value) {
    InstructionSet seen;
    std::vector<const Instruction*> open = {value};
    while (!open.empty()) {
      const Instruction* i = open.back();
      open.pop_back();
      for (const Instruction* user : i->users()) {
        if (user->is(Opcode::kReduce)) return true;
        if (is_elementwise(user->opcode) && seen.insert(user)) open.push_back(user);
      }
    }
    return false;
  }

  bool pad(Instruction* convolution) {
    const ConvDims& dims = convolution->attrs.conv;
    std::vector<PadDim> padding(convolution->operand(0)->shape.dims.size());
    std::vector<WindowDim> inside = convolution->attrs.window;
    bool any = false;
    for (size_t s = 0; s < inside.size(); ++s) {
      WindowDim& w = inside[s];
      if (w.pad_low < 0 || w.pad_high < 0 || w.lhs_dilate > 1) return false;
      any |= w.pad_low > 0 || w.pad_high > 0;
      padding[static_cast<size_t>(dims.lhs_spatial[s])] = {w.pad_low, w.pad_high};
      w.pad_low = w.pad_high = 0;
    }
    if (!any || convolution->shape.has_dynamic_dims()) return false;
    const std::optional<RowsInPlace> as_it_is = rows_of(*convolution, product_of(*convolution));
    if (as_it_is && as_it_is->pointed()) return false;
    // Asked of one made aside, that nothing has to be taken back.
    Instruction *x = convolution->operand(0), *w = convolution->operand(1);
    Module aside("aside");
    Builder b(aside, "padded");
    Instruction* zero = b.constant(x->shape.type, 0);
    Instruction* padded = b.pad(b.parameter(x->shape), zero, padding);
    padded->shape.layout = x->shape.layout;
    Instruction* of_padded = b.computation()->clone_instruction(*convolution, {padded, b.parameter(w->shape)});
    of_padded->attrs.window = inside;
    const MatrixProduct product = product_of(*of_padded);
    const std::optional<RowsInPlace> rows = rows_of(*of_padded, product);
    if (!rows || !rows->pointed()) return false;
    const int64_t worth = rows->in_line > 1 ? kWorthPaddingRegisters : kWorthPadding;
    if (product.m * product.k < worth * padded->shape.element_count()) return false;
    zero = c_.clone_instruction(*zero, {}, {}, convolution);
    convolution->set_operand(0, c_.clone_instruction(*padded, {x, zero}, {}, convolution));
    convolution->attrs.window = std::move(inside);
    explain(options_, "pack", c_, "{} of {} is padded by a copy", x->name, convolution->name);
    return true;
  }

  MatrixProduct product_of(const Instruction& contraction) const {
    return single_product(contraction, contraction.shape, sum_lanes(contraction, options_.target.vector_bytes));
  }

  std::optional<RowsInPlace> rows_of(const Instruction& convolution, const MatrixProduct& product) const {
    auto blocks = choose_blocks(convolution, product, options_.target, {.rows_in_memory = true});
    if (!blocks) return std::nullopt;
    return rows_in_place(convolution, product, blocks->multiply_add, blocks->tile_columns);
  }

  /// The operand with this shape; equal ones are one.
  Instruction* copied(Instruction* operand, const Shape& as, std::string_view suffix, Instruction* before) {
    for (auto& [from, to] : made_) {
      if (from == operand && to->shape == as) return to;
    }
    Instruction* value = operand;
    std::string name = operand->name + std::string(suffix);
    if (operand->is(Opcode::kConstant) && operand->shape.type == as.type) {
      value = c_.clone_instruction(*operand, {}, name, before);
      value->shape = as;
    } else {
      if (operand->shape.type != as.type) {
        Shape converted = operand->shape;
        converted.type = as.type;
        value = c_.add(Opcode::kConvert, converted, {value}, operand->name + ".convert", before);
      }
      value = c_.add(Opcode::kCopy, as, {value}, name, before);
    }
    made_.emplace_back(operand, value);
    return value;
  }

  Computation& c_;
  const InstructionSet same_;
  const PipelineOptions& options_;
  std::vector<std::pair<Instruction*, Instruction*>> made_;
};

}  // namespace

bool pack(Module& module, const PipelineOptions& options) {
  bool changed = false;
  const auto computations = sequential_computations(module);
  std::unordered_set<const Computation*> bodies;
  for (const Computation* c : computations) {
    for (const auto& i : c->instructions()) {
      if (i->is(Opcode::kWhile)) bodies.insert(i->while_body());
    }
  }
  for (Computation* c : computations) {
    changed |= Packer(*c, bodies.contains(c) ? invariant_values(*c) : InstructionSet(), options).run();
  }
  return changed;
}

}  // namespace hlojit
