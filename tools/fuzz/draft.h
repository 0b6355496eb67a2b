// A computation being drawn: the values that the next op may read, and what all computations of a module
// share. A family is a file of functions that each add an op, or a few that belong together, to a draft.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "compiler/builder.h"
#include "tools/random.h"

namespace hlojit::tools::fuzz {

/// What a module draws from.
struct Draw {
  Module& module;
  Random random;
  Ints sizes;                ///< of dimensions; few, so that shapes meet
  std::vector<DType> types;  ///< likewise
  int64_t most_elements = 4096;
  bool tame = false;                                ///< keep floats in a range where errors stay small
  int64_t devices = 1, partitions = 1;              ///< that run the module; of them those in a replica
  int depth = 0;                                    ///< computations within computations
  bool may_meet = true;                             ///< all devices come by here, equally often
  bool rules_loop = false;                          ///< what windows, updates and orders apply is drawn with loops
  std::set<const Instruction*> pinned = {};         ///< whose layout is part of what they mean
  std::vector<Instruction* (*)(class Draft&)> ops;  ///< an entry a unit of weight
  /// Called before, at this depth and below, by one instruction: a call's computation or a loop's two.
  struct Called {
    std::vector<Computation*> computations;
    int depth;
    bool met;  ///< may hold collectives
  };
  std::vector<Called> called = {};
  Instruction* token = nullptr;          ///< of the entry's last exchange with the host
  int channels = 0;                      ///< with the host
  std::vector<Instruction*> sized = {};  ///< of the entry, with sizes known at run time: for its results
};

class Draft {
 public:
  /// `entry`: may take parameters as it goes.
  Draft(Draw& draw, std::string_view name, bool entry = false)
      : draw(draw), random(draw.random), b(draw.module, name), entry_(entry) {}

  Draw& draw;
  Random& random;
  Builder b;
  std::vector<Instruction*> values;  ///< arrays, oldest first

  /// Remembers an array, or the elements of a tuple, as operands of later ops; returns `value`.
  Instruction* keep(Instruction* value);
  /// Adds one op of the module's families.
  void step();

  /// An array, young ones first.
  Instruction* any();
  /// An array for which `fits` holds, or null.
  template <class Fits>
  Instruction* any(Fits fits) {
    std::vector<Instruction*> found;
    for (Instruction* v : values) {
      if (fits(v->shape)) found.push_back(v);
    }
    return found.empty() ? nullptr : random.pick(found);
  }
  Instruction* any_float() {
    return any([](const Shape& s) { return is_float(s.type); });
  }
  /// A value of this type and these sizes: one at hand, or a new one made of what is at hand.
  Instruction* of(DType type, const Ints& sizes);
  Instruction* of(const Shape& shape) { return of(shape.type, shape.dims); }
  /// The same, always new.
  Instruction* fresh(DType type, const Ints& sizes);
  Instruction* splat(DType type, double value, const Ints& sizes);
  /// A scalar integer to index with, mostly within [0, size].
  Instruction* index(DType type, int64_t size);

  DType type() { return random.pick(draw.types); }
  Ints shape(int64_t least_rank = 0, int64_t most_rank = 4);
  bool fits(const Ints& sizes) const;
  /// Some of 0..n-1, ascending.
  Ints some(int64_t n, double chance = 0.5);
  Ints permutation(int64_t n);

  /// x made small integers, of which sums are exact in any order; NaN stays.
  Instruction* small(Instruction* x, double limit);
  /// x brought into [-limit, limit], continuously.
  Instruction* limited(Instruction* x, double limit);

 private:
  bool entry_;
};

// Computations that several families call.
/// (a, b) -> op(a, b) on scalars.
Computation* combiner(Draft& s, Opcode op, DType type);
/// The reduction of x by one op, from that op's identity on.
Instruction* reduce_by(Draft& s, Opcode op, Instruction* x, const Ints& dims);
/// An operand of which the products' sums are exact, unless the module is tame anyway.
Instruction* factor(Draft& s, Instruction* x);
/// Sums in a wider type than the operands'.
void widen(Draft& s, Instruction* product);
/// A value of this type and these sizes that others were moved, widened or narrowed to.
Instruction* moved(Draft& s, DType type, const Ints& sizes);
/// A function of `arguments` drawn at random; results: an array or, if `tuple`, a tuple of arrays.
Computation* function(Draft& s, std::string_view name, const std::vector<Instruction*>& arguments, int steps,
                      bool tuple);

/// The bits of x as another of the types drawn: as wide a one, narrower ones along a new dimension, a wider one of what
/// is last. Null if none suits.
Instruction* bits_of(Draft& s, Instruction* x);

enum class Loops : uint8_t { kNone, kMaybe, kOne };
/// Scalars in, scalars out (one, or a tuple of several), with branches and calls between, and if asked with loops.
Computation* applied(Draft& s, const std::vector<DType>& parameters, const std::vector<DType>& results, Loops loops);
/// The same for what combines: scalars of these types, twice, in; once, out. It loops by this chance.
Computation* applied_rule(Draft& s, const std::vector<DType>& types, double loops);

/// Of an array: windows over it, what they pick, updates of it, its elements in order. Null if the draw does not suit.
Instruction* windows_of(Draft& s, Instruction* x);
Instruction* picked_of(Draft& s, Instruction* x);
Instruction* scatter_into(Draft& s, Instruction* x);
Instruction* sort_of(Draft& s, Instruction* x);

/// A way to add to a draft: null if nothing at hand suits it.
using Op = Instruction* (*)(Draft&);
/// Those that scalars have, too.
Instruction* branching_op(Draft& s);
Instruction* calling_op(Draft& s);
Instruction* looping_op(Draft& s);
struct Family {
  std::string_view name;
  std::vector<std::pair<Op, int>> ops;  ///< with weights
  double chance = 1;                    ///< that a module draws from it
};
Family elementwise_family();
Family complex_family();
Family row_choice_family();
Family like_arms_family();
Family dear_side_family();
Family movement_family();
Family indexing_family();
Family scatter_family();
Family element_places_family();
Family batched_gather_family();
Family transposed_gather_family();
Family known_gather_family();
Family part_update_family();
Family part_row_family();
Family stack_family();
Family parts_family();
Family repeats_family();
Family long_row_family();
Family short_row_family();
Family halves_family();
Family counter_family();
Family width_family();
Family part_of_word_family();
Family reduction_family();
Family wide_column_family();
Family narrowed_sum_family();
Family bfloat_row_family();
Family falling_power_family();
Family row_number_family();
Family rows_apart_family();
Family rows_by_long_columns_family();
Family tuple_of_one_family();
Family chain_family();
Family long_sum_family();
Family joint_sum_family();
Family tiled_order_family();
Family selection_family();
Family dot_family();
Family batched_dot_family();
Family spread_dot_family();
Family convolution_family();
Family wide_convolution_family();
Family spread_convolution_family();
Family moved_product_family();
Family part_product_family();
Family counted_loop_family();
Family rows_of_rounds_family();
Family products_of_rounds_family();
Family put_back_family();
Family states_in_part_family();
Family places_of_rows_family();
Family short_loop_family();
Family shared_branch_family();
Family alike_family();
Family control_family();
Family kept_fusion_family();
Family kept_part_family();
Family applied_family();
Family applied_twice_family();
Family applied_in_turn_family();
Family norm_family();
Family window_family();
Family running_window_family();
Family joined_window_family();
Family divided_window_family();
Family scan_family();
Family size_family();
Family order_family();
Family first_family();
Family top_k_call_family();
Family factor_call_family();
Family algebra_family();
Family effect_family();
Family host_family();
Family collective_family();

/// A layout for an array of this shape: permuted, maybe tiled.
Layout draw_layout(const Shape& shape, Random& random, double tiled);
/// Draws layouts for all arrays of a module but the pinned ones, and an entry layout.
void draw_layouts(Module& module, Random& random, const std::set<const Instruction*>& pinned);
/// Draws aliases between parameters and results.
void draw_aliases(Module& module, Random& random);

}  // namespace hlojit::tools::fuzz
