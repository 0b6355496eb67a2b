// What the parts of a kernel take, of the work that cost.cc counts: computing elements in vectors or one by one, moving
// buffers, going through a row once more for each stage.
#pragma once

#include <span>

#include "compiler/plan/cost.h"
#include "compiler/plan/demand.h"
#include "compiler/plan/target_info.h"

namespace hlojit {

inline constexpr double kCyclesPerNs = 3;
// Padding between elements, and padding between these again: of one a kernel knows by its loops which elements are
// read; of more there would be pieces of loops for all combinations, or every element computes what few of them use.
inline constexpr double kMostSpacing = 2;

/// Adds up the cost of one kernel. `members` and `plan` outlive it.
class Pricer {
 public:
  Pricer(std::span<const Instruction* const> members, const KernelPlan& plan, Products& products);

  KernelCost& cost() { return cost_; }
  /// Of vectors that hold a value's elements as they are computed with.
  double vector_lanes(const Shape& shape) const;
  /// A value has an element for each row, and lanes go along the rows: what makes it is done one by one.
  bool once_a_row(const Instruction& i) const;

  /// So many of a value's elements, by vectors where there are any of that.
  void compute(const Instruction* i, double elements);
  /// One by one a dear op takes as long as in all lanes of a vector. A division or a root hides behind the vectors
  /// that follow it, if there are any: an rsqrt a pair of bodies, of three lanes each, took half of n_body's time.
  /// Between padding of several levels all is done so (a gradient of cumprod in one kernel: 1,045 us, in some 46).
  void compute_one_by_one(const Instruction* i, const Demand& d);
  /// A value that the kernel reads, so much of it as is wanted.
  void read(const Instruction* outside, const Demand& demand);
  /// A result.
  void write(const Instruction* root, double elements);
  /// What stages take besides, the call, and the cores. Last of all.
  void finish();

 private:
  /// Lanes go along what is reduced, so that what is done with the results is done one by one: a matrix along its rows
  /// times a vector, as rows are. (A logistic loss of 501 rows of 17 took 19 us, 2 as a kernel of its own.)
  bool goes_by_rows() const;
  /// A scatter of single elements or few: where they go, and what goes there, is computed one by one.
  bool places_elements() const;
  /// A core's cache holds what all products of a block of rows read of their columns' operands until the next block.
  /// (128 rows by 1 MB and by 2, in blocks of 18, an Emerald Rapids whose second cache is 2 MB: 1.85 ms with the copies
  /// into panels, 1.36 apart.)
  bool keeps_columns_near() const;
  /// Every block of rows packs the columns' operand for itself, or reads it where it lies: from further away each time
  /// if it is not `near`. (112 rows in blocks of 12, by 2.3 MB: 3.2 ms, 0.9 in one block.)
  void bring_columns(const Stage& s, bool near);
  /// A single block of rows brings all columns to one core; a kernel for each product would share them out.
  void bring_columns_alone(const Stage& s);
  /// What slices of a product's depth take to be added up in memory.
  void add_up_slices(const Stage& s);
  /// The sweep counts what an element needs once. A stage computes anew what no earlier one has placed, and
  /// reads its inputs anew: from the level that holds a row.
  void repeat_in_stages();
  /// Cores that the outer dims can keep busy, of the few that any machine has.
  double cores() const;
  /// Integers are made wider as they are read, if whole vectors are: sums of short rows read some bytes apart.
  /// (Differences of neighbours in bytes: those as s16 in a kernel of their own, 9.2 us for 240x321, 5.3 in one.)
  bool is_load(const Instruction* i) const;
  /// Of a vector, on average: rows shorter than two vectors leave some idle, and one shorter than a vector is taken in
  /// powers of two. (A softmax over rows of 3 took 10 us as one kernel, 1.5 with the rows' results apart.)
  double lanes_used(const Instruction* i, double lanes) const;
  /// What a contraction's takes of one as they are counted: two in a cycle, of one term each.
  double multiply_add_cost(const Instruction* contraction) const;
  double bandwidth(double buffer_bytes) const;
  /// Brings so many of an array's elements in or out; returns the bytes.
  double move(const Shape& shape, double elements, double factor);
  void find_each(const Shape& shape, double elements);
  /// Lanes go along the rows, which are not contiguous in it: each element is loaded, or stored, on its own.
  bool by_rows_across(const Shape& shape) const;

  std::span<const Instruction* const> members_;
  const KernelPlan& plan_;
  Products& products_;
  const TargetInfo& target_;
  const Ints outer_ = plan_.outer_sizes();
  const bool rows_ = goes_by_rows(), places_elements_ = places_elements();
  KernelCost cost_;
};

}  // namespace hlojit
