// See pricer.h.
#include "compiler/plan/pricer.h"

#include <algorithm>
#include <bit>

#include "compiler/plan/contraction.h"
#include "compiler/plan/op_cost.h"
#include "compiler/plan/operands_in_place.h"
#include "layout/divide.h"
#include "layout/index.h"
#include "layout/lists.h"

namespace hlojit {
namespace {

constexpr double kCallNs = 50;
// A plan must not depend on the machine's cores; that there are a few is what it may count on.
constexpr double kCores = 4;
// Bytes a nanosecond from each level; a gather or a transposed read moves whole cache lines.
constexpr double kL1 = 200, kL2 = 100, kLlc = 50, kMemory = 20;
constexpr double kStridedFactor = 3;
// A term of a window, pulled by the loops of who reads it, takes so many times what one of a product does: its address,
// its guards. (A depthwise convolution of 7x7 on 56x56x48: 266 us, priced 77; 5x5 maxima of 300x333: 132, 26.)
constexpr double kPulled = 3;
// Nanoseconds for an element that is stored on its own: rows of 64, divided by their lengths and stored as panels. For
// one that is loaded so, too. (A softmax's gradient of 8x109x109 that lies as 109x109x8: 370 us by rows, priced 113
// with neither and 151 so, 139 by columns, priced 75.)
constexpr double kApart = 0.4;
// Cycles that an element looked up where another lookup says waits for that one, if they are not done lane by lane.
// (The mean of 257 rows of 4 that a search finds took 7.8 us in one kernel, 0.9 beside the search.)
constexpr double kWaits = 12;
// Nanoseconds for an operation on what says where a row is, done for each row on its own, or in all lanes to transpose
// rows to and fro. (1155 pixels of 8 channels, looked up at coordinates that 20 operations make: 4.9 us in one kernel,
// 1.6 apart; of 40 5.2 and 3.6; of 64 5.1 and 5.2.)
constexpr double kInFront = 0.05;

/// Neighbours along one of the dims are neighbours in memory, or so close that they are stored as words with what lies
/// between them: bf16 in T(8,128)(2,1).
bool lies_together(const Shape& shape, const Ints& dims) {
  constexpr int64_t kWord = 4;
  return std::ranges::any_of(dims, [&](int64_t d) {
    if (shape.dims[static_cast<size_t>(d)] < 2) return false;
    Ints next(shape.dims.size());
    next[static_cast<size_t>(d)] = 1;
    const int64_t step = linear_index(shape, next);
    return step == 1 || (std::has_single_bit(static_cast<uint64_t>(step)) && step * dtype_bytes(shape.type) <= kWord);
  });
}

double reduce_cycles(const Instruction* i, double lanes) {
  double steps = 0;
  for (const auto& s : i->to_apply()->instructions()) {
    steps += s->is(Opcode::kParameter) ? 0 : cycles_per_vector(*s);
  }
  return elements_in(i->operand(0)->shape) / lanes * steps;
}

double lane_bytes(const Shape& shape) {
  if (is_narrow_float(shape.type)) return 4;  // computed in f32
  return dtype_bytes(shape.type);
}

/// Whether that dim of the columns' operand is of the depth.
bool lies_along(const Instruction& contraction, const MatrixProduct& p, int64_t dim) {
  if (contraction.is(Opcode::kConvolution)) return dim != contraction.attrs.conv->rhs_output_feature;
  return contains(contraction.attrs.dot->contracting(p.columns_operand()), dim);
}

}  // namespace

Pricer::Pricer(std::span<const Instruction* const> members, const KernelPlan& plan, Products& products)
    : members_(members), plan_(plan), products_(products), target_(products.target()) {}

bool Pricer::once_a_row(const Instruction& i) const {
  return rows_ && i.shape.is_array() && i.shape.rank() > 0 && i.shape.dims == outer_;
}

void Pricer::finish() {
  if (plan_.stages.size() > 1) repeat_in_stages();
  const bool near = keeps_columns_near();
  for (const Stage& s : plan_.stages) {
    if (!s.product) continue;
    bring_columns(s, near);
    add_up_slices(s);
  }
  cost_.call_ns = kCallNs;
  cost_.cores = cores();
  if (!plan_.by_blocks() || cost_.cores > 1) return;
  for (const Stage& s : plan_.stages) {
    if (s.product) bring_columns_alone(s);
  }
}

void Pricer::compute_one_by_one(const Instruction* i, const Demand& d) {
  if (!i->shape.is_array()) return;
  double alone = 0;
  switch (price_of(*i)) {
    case OpPrice::kTranscendental: alone = std::min(d.hoisted, d.elements()); break;
    case OpPrice::kDivide: alone = std::min(d.bare, d.elements()); break;
    default: break;
  }
  if (d.manner.spacing > kMostSpacing) alone = d.elements();
  if (alone > 0) compute(i, alone * (vector_lanes(i->shape) - 1));
  if (d.manner.in_front && is_elementwise(i->opcode)) cost_.compute_ns += std::min(d.hoisted, d.elements()) * kInFront;
  if (d.manner.decides && has_trait(*i, op_trait::kRandomPlaces))
    cost_.compute_ns += std::min(d.hoisted, d.elements()) * kWaits / kCyclesPerNs;
}

bool Pricer::goes_by_rows() const {
  if (plan_.kind == KernelKind::kRows) return true;
  if (plan_.kind != KernelKind::kContraction || plan_.has_products() || !plan_.hero->is(Opcode::kDot)) return false;
  if (product<double>(reduction_sizes(*plan_.hero)) < target_.vector_bytes / 4) return false;
  const bool left = elements_in(plan_.hero->operand(0)->shape) >= elements_in(plan_.hero->operand(1)->shape);
  const size_t larger = left ? 0 : 1;
  return contains(plan_.hero->attrs.dot->contracting(larger), int64_t{minor_dim(plan_.hero->operand(larger)->shape)});
}

bool Pricer::places_elements() const {
  if (plan_.kind != KernelKind::kScatter) return false;
  double window = 1;
  for (int64_t d : plan_.hero->attrs.scatter->update_window_dims)
    window *= static_cast<double>(plan_.domain[static_cast<size_t>(d)]);
  return window < target_.vector_bytes / 4;
}

bool Pricer::keeps_columns_near() const {
  double bytes = static_cast<double>(plan_.tile_bytes);
  for (const Stage& s : plan_.stages) {
    if (!s.product) continue;
    const MatrixProduct& p = product_of(plan_, s, products_).matrices;
    const DType type = s.product->operand(p.columns_operand())->shape.type;
    bytes += static_cast<double>(p.k) * static_cast<double>(p.n) * dtype_bytes(type);
  }
  return bytes <= static_cast<double>(target_.l2_bytes);
}

void Pricer::bring_columns(const Stage& s, bool near) {
  // Measured: a copy along its own minor dim, and one that transposes in registers.
  constexpr double kCopied = 0.2, kTransposed = 0.5;
  if (!s.product->is(Opcode::kDot) && form_of(s.blocks->multiply_add).terms == 1) return;
  const MatrixProduct& p = product_of(plan_, s, products_).matrices;
  const auto panels = panel_layout(*s.product, p, *s.blocks);
  const Instruction* columns = s.product->operand(p.columns_operand());
  const bool inside = std::ranges::find(members_, columns) != members_.end();
  const bool lies =
      !inside && ((panels && columns->shape.layout == *panels) || columns_in_place(*s.product, p, *s.blocks, target_));
  if (inside && columns->is(Opcode::kCopy)) columns = columns->operand(0);
  const double elements = static_cast<double>(p.k) * static_cast<double>(p.n);
  const auto blocks = static_cast<double>(p.batches() * ceil_div(p.m, s.blocks->rows));
  if (lies && near) return;
  const bool along = lies_along(*s.product, p, minor_dim(columns->shape));
  const bool transposes = !lies && !s.blocks->along_depth && along;
  cost_.compute_ns += blocks * elements * (transposes ? kTransposed : kCopied) / kCyclesPerNs;
}

void Pricer::bring_columns_alone(const Stage& s) {
  const MatrixProduct& p = product_of(plan_, s, products_).matrices;
  const Shape& columns = s.product->operand(p.columns_operand())->shape;
  const double bytes = elements_in(columns) * dtype_bytes(columns.type);
  if (bytes >= 2 * kBroughtByTask) cost_.memory_ns += bytes / kLlc;
}

void Pricer::add_up_slices(const Stage& s) {
  // Measured, of what a sum takes each time that it is read and stored again.
  constexpr double kAddedUp = 1;
  const MatrixProduct& p = product_of(plan_, s, products_).matrices;
  if (!s.product->is(Opcode::kDot) || s.blocks->multiply_add != MultiplyAdd::kOne || s.blocks->along_depth) return;
  if (taken_operand(plan_, s.product) >= 0) return;  // those of a block's own values stay in its scratch
  const auto again = static_cast<double>(ceil_div(p.k, s.blocks->depth) - 1);
  const double sums = static_cast<double>(p.batches()) * static_cast<double>(p.m) * static_cast<double>(p.n);
  cost_.compute_ns += again * sums * kAddedUp / kCyclesPerNs;
}

void Pricer::repeat_in_stages() {
  InstructionSet inside(members_), placed;
  InstructionMap<int> visits;
  for (const Stage& s : plan_.stages) {
    if (s.product) placed.insert(s.product);
    if (!s.inner) continue;
    InstructionSet seen;
    std::vector<const Instruction*> open = s.keeps;
    for (const Instruction* r : s.reduces) {
      for (size_t k = 0; k < r->operand_count() / 2; ++k) open.push_back(r->operand(k));
    }
    for (size_t k : s.stores) open.push_back(plan_.roots[k]);
    while (!open.empty()) {
      const Instruction* i = open.back();
      open.pop_back();
      if (!i->shape.is_array() || elements_in(i->shape) != product<double>(plan_.domain) || !seen.insert(i)) continue;
      ++visits[i];
      if (placed.contains(i) || !inside.contains(i)) continue;
      open.insert(open.end(), i->operands().begin(), i->operands().end());
    }
    placed.insert_all(s.keeps);
    for (size_t k : s.rereads) placed.insert(plan_.roots[k]);
  }
  double row = product<double>(plan_.inner_sizes()), row_bytes = 0;
  for (const Instruction* i : visits.keys()) {
    if (!inside.contains(i) || placed.contains(i)) row_bytes += row * dtype_bytes(i->shape.type);
  }
  if (plan_.kind == KernelKind::kColumns) row_bytes *= target_.vector_bytes / 4;
  for (const Instruction* i : visits.keys()) {
    double again = visits.at(i) - 1;
    if (inside.contains(i) && !placed.contains(i)) {
      compute(i, again * elements_in(i->shape));
    } else if (again > 0) {
      double bytes = again * elements_in(i->shape) * dtype_bytes(i->shape.type);
      cost_.memory_ns +=
          bytes / std::max(bandwidth(row_bytes), bandwidth(elements_in(i->shape) * dtype_bytes(i->shape.type)));
    }
  }
}

double Pricer::cores() const {
  double outer = product<double>(plan_.outer_sizes());
  if (plan_.kind == KernelKind::kColumns) outer /= target_.vector_bytes / 4;
  if (!plan_.by_blocks()) return std::clamp(outer, 1.0, kCores);
  int64_t batches = 1;
  for (int64_t d : batch_dims(plan_)) batches *= plan_.domain[static_cast<size_t>(d)];
  const int64_t block = plan_.block_rows(), rows = product<int64_t>(plan_.outer_sizes()) / batches;
  const double even = outer / 2 / static_cast<double>(busier_core_rows(batches, rows, block));
  return std::clamp(outer / static_cast<double>(block), 1.0, std::max(1.0, kCores * even));
}

void Pricer::compute(const Instruction* i, double elements) {
  double lanes = lanes_used(i, vector_lanes(i->shape.is_tuple() ? i->shape.elements[0] : i->shape));
  if (places_elements_ && is_elementwise(i->opcode)) lanes = 1;
  bool one_by_one = has_trait(*i, op_trait::kRandomPlaces) || (plan_.kind == KernelKind::kScan && i == plan_.hero);
  double cycles = i->is(Opcode::kReduce) ? reduce_cycles(i, lanes)
                  : one_by_one           ? elements
                                         : elements / lanes * cycles_per_vector(*i);
  if (i->info().op_class == OpClass::kContracts) cycles *= multiply_add_cost(i);
  if (is_reduction(*i) && !i->attrs.window.empty() && i != plan_.hero) cycles *= kPulled;
  if (!is_load(i)) cost_.compute_ns += cycles / kCyclesPerNs;
}

double Pricer::multiply_add_cost(const Instruction* contraction) const {
  constexpr double kCounted = 2;
  double at_once = target_.multiply_adds;
  for (const Stage& s : plan_.stages) {
    if (s.product == contraction) at_once *= static_cast<double>(form_of(s.blocks->multiply_add).terms);
  }
  return kCounted / at_once;
}

bool Pricer::is_load(const Instruction* i) const {
  if (plan_.kind != KernelKind::kNest || !i->is(Opcode::kConvert) || !is_integral(i->shape.type)) return false;
  const Instruction* from = i->operand(0);
  return is_integral(from->shape.type) && dtype_bits(from->shape.type) < dtype_bits(i->shape.type) &&
         std::ranges::find(members_, from) == members_.end();
}

double Pricer::lanes_used(const Instruction* i, double lanes) const {
  const Shape& shape = i->is(Opcode::kReduce) ? i->operand(0)->shape : i->shape;
  if (plan_.kind != KernelKind::kRows || !shape.is_array() || shape.dims != plan_.domain) return lanes;
  const auto row = product<int64_t>(plan_.inner_sizes()), most = static_cast<int64_t>(lanes);
  if (row == 0 || row >= 2 * most) return lanes;
  const int64_t vectors = row < most ? std::popcount(static_cast<uint64_t>(row)) : (row + most - 1) / most;
  return static_cast<double>(row) / static_cast<double>(vectors);
}

double Pricer::vector_lanes(const Shape& shape) const {
  return std::max(1.0, target_.vector_bytes / lane_bytes(shape));
}

double Pricer::bandwidth(double buffer_bytes) const {
  if (buffer_bytes <= static_cast<double>(target_.l1_bytes)) return kL1;
  if (buffer_bytes <= static_cast<double>(target_.l2_bytes)) return kL2;
  if (buffer_bytes <= static_cast<double>(target_.llc_bytes)) return kLlc;
  return kMemory;
}

double Pricer::move(const Shape& shape, double elements, double factor) {
  double size = elements_in(shape) * dtype_bytes(shape.type);
  double bytes = std::min(elements * dtype_bytes(shape.type), size);
  cost_.memory_ns += factor * bytes / bandwidth(size);
  ++cost_.buffers;
  if (elements_in(shape) >= product<double>(plan_.domain) && shape.rank() > 0) ++cost_.streams;
  return bytes;
}

void Pricer::read(const Instruction* outside, const Demand& demand) {
  if (is_inline_constant(*outside)) return;
  cost_.instructions += static_cast<int64_t>(conversion_code(outside->shape.type) * demand.code());
  bool packs = plan_.kind == KernelKind::kContraction;  // packing reads in any order
  cost_.bytes_read += move(outside->shape, demand.elements(), demand.manner.strided && !packs ? kStridedFactor : 1);
  if (demand.manner.each) find_each(outside->shape, demand.elements());
  if (demand.manner.across || by_rows_across(outside->shape)) cost_.compute_ns += demand.elements() * kApart;
}

bool Pricer::by_rows_across(const Shape& shape) const {
  return plan_.kind == KernelKind::kRows && shape.dims == plan_.domain && shape.element_count() > 0 &&
         !lies_together(shape, plan_.inner);
}

// Of what lies beyond the second cache a line is waited for, whatever is wanted of it. (4096 floats, each in a row of
// 4096x1024, a Granite Rapids: 24 us, priced 1.5 without.)
void Pricer::find_each(const Shape& shape, double elements) {
  const double size = elements_in(shape) * dtype_bytes(shape.type);
  if (size <= static_cast<double>(target_.l2_bytes)) return;
  cost_.memory_ns += kStridedFactor * elements * (kCacheLine - dtype_bytes(shape.type)) / bandwidth(size);
}

void Pricer::write(const Instruction* root, double elements) {
  if (!root->shape.is_array()) return;
  cost_.bytes_written += move(root->shape, elements, 1);
  if (by_rows_across(root->shape)) cost_.compute_ns += elements * kApart;
}

}  // namespace hlojit
