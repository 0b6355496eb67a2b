// See contraction.h. The rows of a block and what stands in them:
//
//   making   a dot whose result is a value of the domain: [batch, rows, inner]
//   taking   a dot that contracts the domain's inner dims of a value that depends on the kernel's rows
//
// Everything else that depends on either meets the domain as a row meets its elements (DimMaps); the other
// operands of dots depend on parameters alone, and fold into packing.
#include "compiler/plan/contraction.h"

#include <algorithm>
#include <numeric>

#include "compiler/analysis/access.h"
#include "compiler/analysis/movement.h"
#include "compiler/ir/narrow.h"
#include "compiler/plan/dim_maps.h"
#include "compiler/plan/op_cost.h"
#include "compiler/plan/stages.h"
#include "layout/divide.h"

namespace hlojit {
namespace {

// Blocks that a kernel has at least where its rows allow, so that any machine's cores are busy.
constexpr int64_t kFewestBlocks = 8;

/// Refuses if something below `values` does not fold into packing. What is in `made` is not packed.
void check_packing(const KernelGraph& g, std::span<const Instruction* const> values, const InstructionSet& made) {
  InstructionSet packed(values);
  for (auto at = g.members.rbegin(); at != g.members.rend(); ++at) {
    const Instruction* i = *at;
    if (!packed.contains(i) || made.contains(i)) continue;
    if (!folds_into_packing(i)) refuse(quoted(i) + " does not fold into the packing of a dot");
    packed.insert_all(i->operands());
  }
}

Stage product_stage(const Instruction* dot, const Blocks& blocks, std::vector<size_t> stores = {}) {
  Stage s;
  s.product = dot;
  s.blocks = blocks;
  s.stores = std::move(stores);
  return s;
}

/// In which the sums of a product stage leave it.
Shape shape_of_sums(const KernelPlan& plan, const Stage& stage) {
  if (!stage.stores.empty()) return plan.roots[stage.stores[0]]->shape;
  const Instruction* dot = stage.product;
  if (!plan.by_blocks()) return dot->shape;
  // The inner dims are the columns, whatever the dot's layout.
  Shape as = Shape::array(dot->shape.type, dot->shape.dims);
  std::vector<int64_t>& order = as.layout.minor_to_major;
  std::ranges::stable_partition(order, [&](int64_t d) { return std::ranges::binary_search(plan.inner, d); });
  return as;
}

// ---- one dot ---------------------------------------------------------------------------------------

KernelPlan plan_product(const KernelGraph& g, const Instruction* dot, Products& products, std::string_view config) {
  KernelPlan plan;
  plan.kind = KernelKind::kContraction;
  plan.roots = g.roots;
  plan.hero = dot;
  plan.domain = dot->shape.dims;
  auto dependent = g.dependents(std::vector<const Instruction*>{dot});
  for (const Instruction* i : g.members) {
    if (i == dot || !dependent.contains(i)) continue;
    if (!is_elementwise(i->opcode) || i->shape.dims != dot->shape.dims) {
      refuse(quoted(i) + " after a dot is not elementwise");
    }
    for (const Instruction* o : i->operands()) {
      if (dependent.contains(o) && o->shape.dims != i->shape.dims) {
        refuse(quoted(i) + " spreads the result of a dot");
      }
    }
  }
  if (!dependent.contains(g.roots[0])) refuse("the result does not come from the dot");
  std::vector<const Instruction*> packed(dot->operands().begin(), dot->operands().end());
  check_packing(g, packed, {});
  if (auto given = stages_in(config); given && read_stages(g, *given, products.target(), plan)) return plan;
  Products::Product& product = products.of(*dot, g.roots[0]->shape, true);
  auto in_memory = [&](size_t operand) {
    const Instruction* o = dot->operand(operand);
    return o->is(Opcode::kParameter) || !g.has(o);
  };
  auto blocks = products.blocks(product, {.rows_in_memory = in_memory(product.matrices.rows_operand()),
                                          .columns_in_memory = in_memory(product.matrices.columns_operand()),
                                          .along_depth = true});
  Stage all = blocks ? product_stage(dot, *blocks) : Stage{};
  all.stores = {0};
  plan.stages = {std::move(all)};
  return plan;
}

// ---- blocks of rows --------------------------------------------------------------------------------

class BlockPlanner {
 public:
  BlockPlanner(const KernelGraph& g, Products& products) : g_(g), products_(products), target_(products.target()) {
    plan_.kind = KernelKind::kContraction;
    plan_.roots = g.roots;
    plan_.hero = g.dots[0];
  }

  KernelPlan run(std::string_view config) {
    find_domain();
    check_products();
    check_maps();
    check_minor();
    if (auto given = stages_in(config); given && read_stages(g_, *given, target_, plan_)) return std::move(plan_);
    make_row_stages(g_, target_, {making_, operands_, later_}, plan_);
    choose_product_stages();
    return std::move(plan_);
  }

 private:
  void find_domain() {
    InstructionSet sources(g_.dots);
    sources.insert_all(g_.reduces);
    dependent_ = g_.dependents(KernelGraph::Instructions(sources.begin(), sources.end()));
    for (const Instruction* d : g_.dots) {
      bool left = dependent_.contains(d->operand(0)), right = dependent_.contains(d->operand(1));
      if (left && right) refuse(quoted(d) + " multiplies two values of a block");
      if (left || right) {
        taking_.push_back(d);
        operands_.push_back(d->operand(left ? 0 : 1));
      } else {
        making_.push_back(d);
      }
    }
    if (!g_.reduces.empty()) {
      plan_.domain = g_.reduces[0]->operand(0)->shape.dims;
      plan_.inner = g_.reduces[0]->attrs.dimensions;
    } else if (!taking_.empty()) {
      plan_.domain = operands_[0]->shape.dims;
      plan_.inner = contracted(0);
    } else {
      refuse("two dots");
    }
    std::ranges::sort(plan_.inner);
    for (const Instruction* r : g_.reduces) {
      Ints reduced = r->attrs.dimensions;
      std::ranges::sort(reduced);
      if (r->operand(0)->shape.dims != plan_.domain || reduced != plan_.inner) {
        refuse(r->name + " reduces other dims than those of the rows");
      }
    }
  }

  const Ints& contracted(size_t t) const {
    return taking_[t]->attrs.dot->contracting(operands_[t] == taking_[t]->operand(0) ? 0 : 1);
  }

  void check_products() {
    for (const Instruction* d : making_) {
      if (d->shape.dims != plan_.domain) refuse(quoted(d) + " has other sizes than the rows");
      Ints batch = d->attrs.dot->lhs_batch;
      std::iota(batch.begin(), batch.end(), 0);
      if (d != making_[0] && batch != batch_) refuse(quoted(d) + " has other batch dims");
      batch_ = batch;
      MatrixProduct p(*d, Shape::array(d->shape.type, d->shape.dims), 1);
      auto first = static_cast<int64_t>(batch.size()), lhs = static_cast<int64_t>(p.lhs_free.size());
      Ints left(static_cast<size_t>(lhs)), right(p.rhs_free.size());
      std::iota(left.begin(), left.end(), first);
      std::iota(right.begin(), right.end(), first + lhs);
      if (plan_.inner.empty() || (plan_.inner != left && plan_.inner != right))
        refuse("the rows are not those of " + quoted(d));
    }
    for (size_t t = 0; t < taking_.size(); ++t) {
      const Instruction* d = taking_[t];
      Ints batch = d->attrs.dot->batch(operands_[t] == d->operand(0) ? 0 : 1);
      if (!std::ranges::is_sorted(batch)) refuse(quoted(d) + " has batch dims in another order");
      if ((t > 0 || !making_.empty()) && batch != batch_) refuse(quoted(d) + " has other batch dims");
      batch_ = batch;
      if (operands_[t]->shape.dims != plan_.domain || contracted(t) != plan_.inner)
        refuse(quoted(d) + " does not contract the rows");
      DType kept = operands_[t]->shape.type;
      if (!is_float(kept) || sum_type(*d) != working_type(kept))
        refuse(quoted(d) + " sums in another type than its rows are kept in");
    }
    for (const Instruction* d : g_.dots) {
      std::vector<const Instruction*> packed;
      for (const Instruction* o : d->operands()) {
        if (!dependent_.contains(o)) packed.push_back(o);
      }
      check_packing(g_, packed, dependent_);
    }
  }

  /// Values that depend on a taking dot form its epilogue: elementwise, with nothing else of the block.
  void check_epilogues() {
    InstructionSet after = g_.dependents(taking_);
    for (const Instruction* i : g_.members) {
      if (!after.contains(i) || std::ranges::count(taking_, i) > 0) continue;
      if (!is_elementwise(i->opcode)) refuse(quoted(i) + " after a dot is not elementwise");
      for (const Instruction* o : i->operands()) {
        if (!dependent_.contains(o)) continue;
        if (!after.contains(o)) refuse(quoted(i) + " reads a row's value after the last product");
        if (o->shape.dims != i->shape.dims) refuse(quoted(i) + " spreads the result of a dot");
        const Instruction* below = product(o);
        if (!product_of_.contains(i)) product_of_[i] = below;
        if (product_of_.at(i) != below) refuse(quoted(i) + " reads two products");
      }
    }
    for (size_t k = 0; k < plan_.roots.size(); ++k) {
      const Instruction* r = plan_.roots[k];
      if (!after.contains(r)) continue;
      later_.push_back(k);
      const Instruction* d = product(r);
      bool left = operands_[index(d)] == d->operand(0);
      if (MatrixProduct(*d, r->shape, 1).swapped == left) refuse("result " + r->name + " has the block's rows minor");
    }
    for (const Instruction* d : taking_) {
      bool stored = std::ranges::any_of(later_, [&](size_t k) { return product(plan_.roots[k]) == d; });
      if (!stored) refuse(quoted(d) + " has no result");
    }
  }
  const Instruction* product(const Instruction* i) const {
    return std::ranges::count(taking_, i) > 0 ? i : product_of_.at(i);
  }
  size_t index(const Instruction* taking) const {
    return static_cast<size_t>(std::ranges::find(taking_, taking) - taking_.begin());
  }

  void check_maps() {
    check_epilogues();
    const RowMaps rows(plan_.domain, plan_.inner);
    DimMaps maps(g_, dependent_);
    for (size_t k = 0; k < plan_.roots.size(); ++k) {
      const Instruction* r = plan_.roots[k];
      if (std::ranges::count(later_, k) > 0) continue;
      if (!dependent_.contains(r)) refuse("result " + r->name + " does not come from the block's rows");
      maps.reach_result(r, rows);
    }
    for (const Instruction* o : operands_) maps.reach(o, rows.all);
    for (auto at = g_.members.rbegin(); at != g_.members.rend(); ++at) {
      const Instruction* i = *at;
      if (!maps.reached(i)) continue;
      if (std::ranges::count(making_, i) > 0) {
        if (maps.map(i) != rows.all) refuse(i->name + " is read across rows");
      } else if (i->is(Opcode::kReduce)) {
        maps.step_reduce(i, rows);
      } else {
        maps.step(i);
      }
    }
  }

  /// The stages' lanes go along the rows, which must be contiguous where they are read and stored.
  void check_minor() const {
    for (const Instruction* i : g_.members) {
      for (const Instruction* o : i->operands()) {
        if (!g_.has(o)) check_minor(o);
      }
    }
    for (size_t k = 0; k < plan_.roots.size(); ++k) {
      if (std::ranges::count(later_, k) == 0) check_minor(plan_.roots[k]);
    }
  }
  void check_minor(const Instruction* value) const {
    if (dims_of(value) != plan_.domain || !value->shape.is_array()) return;
    const int64_t minor = minor_dim(value->shape);
    if (minor >= 0 && !std::ranges::binary_search(plan_.inner, minor))
      refuse("the rows of " + value->name + " are not contiguous");
  }

  void choose_product_stages() {
    std::vector<Stage> before, after;
    int64_t rows = 1;
    for (const Instruction* d : making_) before.push_back(product_stage(d, {}));
    for (const Instruction* d : taking_) {
      Stage s = product_stage(d, {});
      for (size_t k : later_) {
        if (product(plan_.roots[k]) == d) s.stores.push_back(k);
      }
      after.push_back(std::move(s));
    }
    plan_.stages.insert(plan_.stages.begin(), before.begin(), before.end());
    plan_.stages.insert(plan_.stages.end(), after.begin(), after.end());
    int64_t batches = 1;
    for (Stage& s : plan_.stages) {
      if (!s.product) continue;
      Products::Product& product = product_of(plan_, s, products_);
      const MatrixProduct& p = product.matrices;
      // What an earlier stage left is read where it lies, as the sums' type.
      const bool packs = std::ranges::count(taking_, s.product) == 0;
      auto blocks = products_.blocks(product, {.packs = packs});
      if (!blocks) refuse(quoted(s.product) + " is too small for a micro-kernel");
      s.blocks = blocks;
      s.blocks->columns = round_up(p.n, blocks->tile_columns);
      rows = p.m;
      batches = p.batches();
    }
    share_rows();
    // As many rows as half of L2 holds, in equal blocks.
    int64_t most = kMostBlockRows / tile_rows_ * tile_rows_;
    while (most > tile_rows_ && batches * ceil_div(rows, most) < kFewestBlocks) most -= tile_rows_;
    for (;; most -= tile_rows_) {
      if (most <= 0) refuse("a row of the block does not fit into scratch");
      set_rows(most);
      if (plan_.tile_bytes <= target_.l2_bytes / 2) break;
    }
    set_rows(even_rows(batches, rows, most));
    // In slices a last panel that is moved left, which computes columns twice, would be packed, for each block again.
    // (25x1024 by 1024x121, each row by its norm, a Zen 4: 110 us in slices, 58 so; 25x314 32.7 and 17.8.)
    for (Stage& s : plan_.stages) {
      if (!s.product) continue;
      s.blocks = in_one_slice(*s.product, product_of(plan_, s, products_).matrices, *s.blocks, target_);
    }
  }

  /// Blocks are whole tiles of each product. Tiles by instructions take as long with any number of rows.
  void share_rows() {
    for (bool rounds : {false, true}) {
      tile_rows_ = 1;
      for (Stage& s : plan_.stages) {
        if (!s.blocks) continue;
        int64_t& rows = s.blocks->tile_rows;
        if (rounds && form_of(s.blocks->multiply_add).tiles()) rows = round_up(rows, kTileSide);
        tile_rows_ = std::lcm(tile_rows_, rows);
      }
      if (tile_rows_ <= kMostBlockRows) return;
    }
  }

  /// Of equal blocks of at most `most` rows, those that keep two cores busy alike; larger ones where it is the same.
  int64_t even_rows(int64_t batches, int64_t rows, int64_t most) const {
    constexpr double kClearly = 0.98;
    constexpr int64_t kManyBlocks = 64;  // one more or less is nothing
    const int64_t count = ceil_div(rows, most), last = batches * count < kManyBlocks ? 2 * count : count;
    int64_t best = 0;
    double least = 0;
    for (int64_t c = count; c <= last; ++c) {
      const int64_t block = round_up(ceil_div(rows, c), tile_rows_);
      const auto busier = static_cast<double>(busier_core_rows(batches, rows, block));
      if (best > 0 && busier >= kClearly * least) continue;
      best = block;
      least = busier;
    }
    return best;
  }

  void set_rows(int64_t rows) {
    for (Stage& s : plan_.stages) {
      if (s.blocks) s.blocks->rows = rows;
    }
    place_tiles(g_, target_, plan_);
  }

  const KernelGraph& g_;
  Products& products_;
  const TargetInfo& target_;
  KernelPlan plan_;
  InstructionSet dependent_;
  std::vector<const Instruction*> making_, taking_;
  std::vector<const Instruction*> operands_;  // of the taking dots: the value of the block
  Ints batch_;                                // domain dims
  std::vector<size_t> later_;                 // roots behind a taking dot
  InstructionMap<const Instruction*> product_of_;
  int64_t tile_rows_ = 1;
};

/// The dims of the operand of the columns, minor ones first: those of the depth, as it counts, and all others behind
/// them. Empty where a layout cannot say how the columns are read.
Ints panel_order(const Instruction& contraction, const MatrixProduct& product, const MultiplyAddForm& form) {
  const size_t side = product.columns_operand();
  const Shape& shape = contraction.operand(side)->shape;
  if (contraction.is(Opcode::kDot)) {
    const DotDims& d = contraction.attrs.dot;
    const Ints &batch = d.batch(side), &contracting = d.contracting(side);
    if (contracting.size() != 1 || shape.rank() != static_cast<int64_t>(batch.size()) + 2) return {};
    Ints order = contracting;
    for (int64_t n = 0; n < shape.rank(); ++n) {
      if (n != contracting[0] && !contains(batch, n)) order.push_back(n);
    }
    order.insert(order.end(), batch.rbegin(), batch.rend());
    return order;
  }
  // Of a convolution with weights that lie as they are multiplied, term by term, packing costs too little for a copy.
  if (form.terms == 1 || product.swapped || product.batches() != 1) return {};
  if (std::ranges::any_of(contraction.attrs.window, &WindowDim::reversal)) return {};
  const ConvDims& c = contraction.attrs.conv;
  Ints order = c.rhs_spatial;
  order.push_back(c.rhs_input_feature);
  Ints sizes;
  for (int64_t d : order) sizes.push_back(shape.dims[static_cast<size_t>(d)]);
  // A window's elements that no position reads are left out of the depth; a group of terms is in one of the others.
  if (sizes != product.contracting || sizes.back() % form.terms != 0) return {};
  std::ranges::reverse(order);
  order.push_back(c.rhs_output_feature);
  return order;
}

}  // namespace

bool folds_into_packing(const Instruction* i) {
  // Less is copied at once, and lies as the product reads it. (A query's 128 floats of a cache, by its keys: 0.32 us,
  // 0.97 in place.)
  constexpr int64_t kWorthReadingInPlace = 16 << 10;
  if (is_elementwise(i->opcode)) return price_of(*i) <= OpPrice::kCheap;
  if (i->is(Opcode::kDynamicSlice)) return i->shape.dense_bytes() >= kWorthReadingInPlace;
  return i->is(Opcode::kConstant) || moves_by_fixed_map(*i);
}

KernelPlan plan_contraction(const KernelGraph& g, const std::vector<const Instruction*>& dots, Products& products,
                            std::string_view config) {
  if (g.updates_results()) refuse("an update beside a dot");
  if (dots.size() > 1 || !g.reduces.empty()) {
    if (!g.convolutions.empty()) refuse("a convolution among rows");
    return BlockPlanner(g, products).run(config);
  }
  if (g.roots.size() != 1) refuse("a dot with several results");
  return plan_product(g, dots[0], products, config);
}

int64_t busier_core_rows(int64_t batches, int64_t rows, int64_t block) {
  const int64_t blocks = ceil_div(rows, block), share = ceil_div(batches * blocks, 2);
  return share / blocks * rows + share % blocks * block;
}

std::optional<Layout> panel_layout(const Instruction& contraction, const MatrixProduct& product, const Blocks& blocks) {
  // Of a step that the depth ends within a layout does not say that the rest is zero.
  const MultiplyAddForm& form = form_of(blocks.multiply_add);
  if (product.k % form.step != 0) return std::nullopt;
  Layout panels;
  panels.minor_to_major = panel_order(contraction, product, form);
  if (panels.minor_to_major.empty()) return std::nullopt;
  const size_t depth_dims = product.contracting.size();
  Ints tile(depth_dims + 1, 1);
  tile.front() = blocks.tile_columns;
  tile.back() = form.terms;
  panels.tiles = {Tile{tile}};
  return panels;
}

int taken_operand(const KernelPlan& plan, const Instruction* dot) {
  for (const ScratchTile& t : plan.tiles) {
    for (int k = 0; k < 2; ++k) {
      if (t.value != dot && dot->operand(static_cast<size_t>(k)) == t.value) return k;
    }
  }
  return -1;
}

MatrixProduct matrix_product(const KernelPlan& plan, const Stage& stage, int64_t vector_bytes) {
  const Instruction& dot = *stage.product;
  const int64_t lanes = sum_lanes(dot, vector_bytes);
  const Shape sums = shape_of_sums(plan, stage);
  return plan.by_blocks() ? MatrixProduct(dot, sums, lanes) : single_product(dot, sums, lanes);
}

Products::Product& product_of(const KernelPlan& plan, const Stage& stage, Products& products) {
  return products.of(*stage.product, shape_of_sums(plan, stage), !plan.by_blocks());
}

std::vector<int64_t> batch_dims(const KernelPlan& plan) {
  for (const Stage& s : plan.stages) {
    if (!s.product) continue;
    const DotDims& d = s.product->attrs.dot;
    int taken = taken_operand(plan, s.product);
    if (taken >= 0) return d.batch(static_cast<size_t>(taken));
    std::vector<int64_t> leading(d.lhs_batch.size());
    std::iota(leading.begin(), leading.end(), 0);
    return leading;
  }
  return {};
}

}  // namespace hlojit
