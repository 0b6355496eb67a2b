// The accumulators of a pass, as the values that its loops carry: for each lane count in use, each member, each
// result, its parts.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "codegen/nest/pass.h"
#include "codegen/nest/reducer.h"

namespace hlojit::codegen {

class Accumulators {
 public:
  using Carry = ElementEmitter::Carried;

  /// `running`: members are prefix windows, whose initial values come first, not last. `in_memory`: what is carried is
  /// stored and loaded again.
  Accumulators(ElementEmitter& e, Scope& root, Scope& at, const std::vector<Pass::Member>& members, int outer_lanes,
               bool running, bool in_memory = false);

  bool reorderable() const { return std::ranges::all_of(reducers_, &Reducer::reorderable); }
  bool ascend() const { return std::ranges::any_of(reducers_, &Reducer::ascends); }
  /// No member minds whether an element is met twice.
  bool idempotent() const { return std::ranges::all_of(reducers_, &Reducer::idempotent); }
  /// Some member rounds at each step.
  bool sums() const { return std::ranges::any_of(reducers_, &Reducer::rounds); }
  const Reducer& reducer(size_t m) const { return reducers_[m]; }
  /// Of the members' results.
  int lanes() const { return outer_lanes_; }

  /// Can lanes follow each other? What is before the first of them must be nothing.
  bool have_identities() const { return std::ranges::all_of(reducers_, &Reducer::has_identity); }
  void use_widths(std::vector<int> counts) { counts_ = std::move(counts); }
  const bool running;
  bool own_lanes = false;

  Carry start(Scope& s) const;
  /// The carried values after one more element of member m (a vector of them). `counts`: where there is one at all
  /// (null: everywhere).
  Carry step(Scope& s, const Carry& in, const Lanes& lanes, size_t m, std::span<const Value> values,
             llvm::Value* counts) const;
  /// Running values: every lane combined with those before it and with what is carried, in all lanes of the
  /// widest vectors; the last lane takes its place. `results`: a member each.
  Carry run(Scope& s, const Carry& in, int lanes, const std::vector<std::vector<Value>>& values,
            std::vector<std::vector<Value>>& results) const;
  Carry add(Scope& s, const Carry& total, const Carry& more) const;
  /// Results of member m.
  std::vector<Value> finish(Scope& s, const Carry& carried, size_t m) const;
  /// The type of each carried value of one lane count, as registers hold it: of complex ones, of their parts.
  std::vector<DType> types() const;

 private:
  std::vector<Value> take(size_t m, const Carry& carried, size_t& at) const;
  size_t parts_before(size_t m) const;

  ElementEmitter& e_;
  const std::vector<Pass::Member>& members_;
  int outer_lanes_;
  std::vector<Reducer> reducers_;
  std::vector<std::vector<Value>> initial_;  // scalars, a member each
  std::vector<int> counts_;
  size_t parts_ = 0;
};

}  // namespace hlojit::codegen
