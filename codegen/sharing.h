// Which kernels are handed out to several cores. What one core has computed lies in its own caches, and for another to
// read it, and then for the first to write there again, takes longer than from memory: ten steps of a wave on 150x167,
// a kernel of 3 us in halves beside smaller ones on one core, took 280 us instead of 62 (two cores of a Sapphire
// Rapids); a line that two cores have read costs the next who writes it 28 ns on a Zen 4, one at a time. So all of a
// program is looked at before any of it is decided: kernels are nodes, what one writes and another reads an edge, which
// costs where one of both is handed out and the other is not, and, if the reader goes through it in another order than
// the writer, where both are.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/analysis/reading_order.h"
#include "compiler/ir/module.h"
#include "compiler/plan/buffers.h"
#include "compiler/plan/target_info.h"

namespace hlojit::codegen {

class Sharing {
 public:
  explicit Sharing(const TargetInfo& target) : most_(target.l2_bytes), near_(kNearCaches * target.l2_bytes) {}

  /// What a kernel does.
  struct Work {
    int64_t cost_ns = 0;   ///< of all chunks together, for one core
    int loops = 0;         ///< around it
    double rounds = 1;     ///< of all of these, a call
    bool may = false;      ///< it has several chunks
    bool in_order = true;  ///< they make the results from the first in memory to the last
  };

  /// Told in the order in which they run, each as often as that order tells something new: a loop's body twice, for its
  /// second round reads what the first has left.
  void add(const Instruction* i, std::span<const BufferSlice> operands, std::span<const BufferSlice> results,
           const Work& work);
  /// A step has written to some of these: on as many cores as it likes.
  void forget(std::span<const BufferSlice> slices);
  /// Of all that were told of. Linear, but for a few rounds.
  void decide();
  bool hands_out(const Instruction* i) const { return nodes_.at(number_.at(i)).several; }

 private:
  using Place = std::pair<BufferSlice::Kind, int64_t>;
  struct Edge {
    size_t other;
    double read_ns, write_ns;
    bool crossed;  ///< written and read in different orders
    double ns = 0;
  };
  struct Node {
    const Instruction* kernel = nullptr;
    double saves = 0;  ///< nanoseconds, if it is handed out
    Work work;
    bool several = false;
    std::vector<Reading> readings;  ///< by operand; empty until asked for
    std::vector<Edge> edges;
  };
  static Place place(const BufferSlice& slice);
  size_t node(const Instruction* i);
  const Reading& reading(size_t n, size_t operand);
  bool crossed(size_t writer, size_t reader, const Reading& reading) const;
  void connect(size_t writer, size_t reader, size_t operand, int64_t bytes);
  void touch(const BufferSlice& slice, int loops);
  void price();
  double gain(size_t n, bool several) const;
  bool take_back_pairs();
  double settle(bool several);

  static constexpr int64_t kNearCaches = 4;

  const int64_t most_, near_;
  std::vector<Node> nodes_;
  std::unordered_map<const Instruction*, size_t> number_;
  struct Writer {
    size_t node;
    int64_t bytes;
  };
  std::map<Place, Writer> writer_;  ///< of what lies there
  struct Touched {
    int64_t bytes = 0;
    int loops = 0;
  };
  std::map<Place, Touched> touched_;
};

}  // namespace hlojit::codegen
