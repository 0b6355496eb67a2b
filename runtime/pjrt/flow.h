// Where the shardings of results follow from those of what they are made of.
//
// A frontend may leave a result's sharding open and then asks which one it became:
//
//   r = f32[8,8] custom-call(part), custom_call_target="xla.sdy.LocalToGlobalShape", out_shardings=[{"x"}, {}]
//   ROOT y = f32[8,8] sine(r)               y is cut as r is
//
// Shardings go forward from parameters, annotations and the ends of manual regions, dimension by dimension,
// wherever an operand is read along a dimension by the index of one of the result's that is as long
// (compiler/analysis/access.h). What this does not reach every device has whole. Nothing is computed differently: only
// who gets which part.
#pragma once

#include <map>
#include <vector>

#include "compiler/ir/module.h"
#include "runtime/pjrt/sdy.h"
#include "runtime/pjrt/shards.h"

namespace hlojit::pjrt {

/// Starts and ends of manual regions; the shardings of their values stand in frontend attributes.
bool enters_region(const Instruction& instruction);
bool leaves_region(const Instruction& instruction);

/// Shards of the values of a computation whose calls have been inlined.
class ShardFlow {
 public:
  /// `parameters`: of the computation's, an array each.
  ShardFlow(const Computation& computation, const Meshes& meshes, const std::vector<Shards>& parameters,
            int64_t devices);
  /// Of a value of the computation that is an array, or of element `index` of one that is a tuple.
  const Shards& of(const Instruction& value, size_t index = 0) const;

 private:
  std::vector<Shards> compute(const Instruction& i, const Meshes& meshes) const;
  Shards combined(const Instruction& i) const;
  std::vector<Shards> at_border(const Instruction& i, const Meshes& meshes) const;

  int64_t devices_;
  std::map<const Instruction*, std::vector<Shards>> known_;
};

/// The module's meshes, as its frontend attributes give them.
Meshes meshes_of(const Module& module);

/// An OpSharding, serialised.
std::string sharding_proto(const Shards& shards);

/// Tells each InspectSharding call, which carries a callback of the frontend's, how its operand is cut, and
/// takes it away. Throws Error(kFailed) if a callback fails.
void answer_inspections(Computation& computation, const ShardFlow& flow);

}  // namespace hlojit::pjrt
