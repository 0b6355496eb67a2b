// What each op does to run-time sizes; the walk over a module is in dynamic.cc.
#pragma once

#include <map>
#include <set>
#include <unordered_map>
#include <vector>

#include "compiler/builder.h"

namespace hlojit {

/// Sizes of one array: an s32[] a dynamic dimension, null for static ones. Empty: all static.
using DimSizes = std::vector<Instruction*>;
/// The same for each array in a value, depth first.
using LeafSizes = std::vector<DimSizes>;

/// Custom calls of XLA:CPU after its own passes: (x, sizes...) of a dynamic x; and x with the sizes behind it.
bool is_pad_to_static(const Instruction& i);
bool is_slice_to_dynamic(const Instruction& i);

class DynamicRules {
 public:
  DynamicRules(Builder& b, std::unordered_map<const Instruction*, LeafSizes>& known) : b_(b), known_(known) {}

  /// Masks the operands of `i` where padding would count, and records the sizes of its result.
  /// Returns what stands for `i`: itself, or another value. Throws Error(kUnsupported) by name.
  Instruction* apply(Instruction* i);

  /// Sizes of a value; of its only array.
  LeafSizes sizes(const Instruction* value) const;
  DimSizes dims(const Instruction* array) const;
  void set(const Instruction* value, LeafSizes sizes);
  bool is_dynamic(const Instruction* value) const { return known_.contains(value); }

  Instruction* s32(int64_t value) { return b_.constant(DType::kS32, static_cast<double>(value)); }
  Instruction* clamped(Instruction* size, int64_t bound);

 private:
  Instruction* runtime_size(const Instruction* x, int64_t d);
  /// The size of several that should be one, known by the sizes that it is of.
  struct Meeting {
    std::map<std::set<const Instruction*>, Instruction*> of;
    std::unordered_map<const Instruction*, std::set<const Instruction*>> sizes;  // the other way
  };
  template <class Make>
  Instruction* met(Meeting& known, Instruction* x, Instruction* y, Make make);
  Instruction* least(Instruction* x, Instruction* y);
  Instruction* joint(Instruction* x, Instruction* y);
  void spread_ones(Instruction* i);
  Instruction* inside(const Shape& shape, const DimSizes& sizes, const Ints& among);
  Instruction* masked(Instruction* x, const DimSizes& sizes, const Ints& among, Instruction* fill);
  Instruction* masked(Instruction* x, const Ints& among, Instruction* fill) { return masked(x, dims(x), among, fill); }
  Instruction* zero(DType type) { return b_.constant(Literal(Shape::scalar(type))); }
  Instruction* identity(const Computation& f, Instruction* init);
  Instruction* windowed(Instruction* size, const WindowDim& w);
  void set_dims(const Instruction* value, DimSizes sizes);

  Instruction* reverse(Instruction* i);
  Instruction* concatenate(Instruction* i);
  void follow(Instruction* i);
  void dynamic_update_slice(Instruction* i);
  void pad(Instruction* i);
  void refuse(const Instruction& i) const;
  Instruction* start_of(const Instruction* i, int64_t d);
  void slice(Instruction* i);
  Instruction* reshape(Instruction* i);
  Instruction* dynamic_reshape(Instruction* i);
  Instruction* compacted(Instruction* x, const Shape& shape, const DimSizes& sizes);
  Instruction* get_dimension_size(Instruction* i);
  Instruction* set_dimension_size(Instruction* i);
  Instruction* resized(Instruction* x, DimSizes sizes);
  Instruction* pad_to_static(Instruction* i);
  Instruction* slice_to_dynamic(Instruction* i);
  void reduce(Instruction* i);
  void reduce_window(Instruction* i);
  void select_and_scatter(Instruction* i);
  void dot(Instruction* i);
  void convolution(Instruction* i);
  void scatter(Instruction* i);
  Instruction* window_updates(const Instruction* i, size_t k);
  Instruction* sort(Instruction* i);
  void top_k(Instruction* i);
  Instruction* fft(Instruction* i);
  Instruction* batch_norm(Instruction* i);
  Instruction* continued(Instruction* a);
  void cholesky(Instruction* i);
  void triangular_solve(Instruction* i);
  void forward(Instruction* i);

  Builder& b_;
  std::unordered_map<const Instruction*, LeafSizes>& known_;
  std::map<std::pair<const Instruction*, int64_t>, Instruction*> clamped_;
  Meeting least_, joint_;
};

}  // namespace hlojit
