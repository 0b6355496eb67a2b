// Which kernels are handed out to several cores. What one core has computed lies in its own caches, and for another to
// read it takes longer than from memory: ten steps of a wave on 150x167, a kernel of 3 us in halves beside smaller ones
// on one core, took 280 us instead of 62; a hashed embedding, handed out, whose product is not, 22 us instead of 6.5
// (two cores of a Sapphire Rapids). So all of a program is looked at before any of it is decided: kernels are nodes,
// what one writes and another reads an edge, which costs where one of both is handed out and the other is not.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/ir/module.h"
#include "compiler/plan/buffers.h"
#include "compiler/plan/target_info.h"

namespace hlojit::codegen {

class Sharing {
 public:
  explicit Sharing(const TargetInfo& target) : most_(target.l2_bytes / 4) {}

  /// Told in the order in which they run, each as often as that order tells something new: a loop's body twice, for its
  /// second round reads what the first has left. `cost_ns`: of all chunks together, for one core. `may`: it has
  /// several. `loops`: around it.
  void add(const Instruction* i, std::span<const BufferSlice> operands, std::span<const BufferSlice> results,
           int64_t cost_ns, bool may, int loops);
  /// A step has written to some of these: on as many cores as it likes.
  void forget(std::span<const BufferSlice> slices);
  /// Of all that were told of. Linear, but for a few rounds.
  void decide();
  bool hands_out(const Instruction* i) const { return nodes_.at(number_.at(i)).several; }

 private:
  using Place = std::pair<BufferSlice::Kind, int64_t>;
  struct Edge {
    size_t other;
    double ns;
  };
  struct Node {
    double saves = 0;  ///< nanoseconds, if it is handed out
    int loops = 0;
    bool may = false, several = false;
    std::vector<Edge> edges;
  };
  static Place place(const BufferSlice& slice);
  size_t node(const Instruction* i);
  void connect(size_t writer, size_t reader, int64_t bytes);
  double settle(bool several);

  const int64_t most_;
  std::vector<Node> nodes_;
  std::unordered_map<const Instruction*, size_t> number_;
  std::map<Place, size_t> writer_;  ///< of what lies there
};

}  // namespace hlojit::codegen
