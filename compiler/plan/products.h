// How contractions are cut, found once for all the kernels that they are tried in: it depends on them, on the shape in
// which their sums leave and on which operands are in memory, on nothing else of a kernel. (Of planning a train step's
// kernels it took a fifth.)
#pragma once

#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/ir/instruction_set.h"
#include "compiler/plan/blocks.h"

namespace hlojit {

/// Instructions and the target must outlive it, and stay as they are.
class Products {
 public:
  explicit Products(const TargetInfo& target) : target_(target) {}
  const TargetInfo& target() const { return target_; }

  /// A contraction whose sums leave in a shape.
  struct Product {
    const Instruction* contraction;
    Shape result;
    bool single;  ///< the only product of its kernel: single_product
    MatrixProduct matrices;
    std::vector<std::pair<ProductOperands, std::optional<Blocks>>> asked = {};
  };
  /// Stays where it is.
  Product& of(const Instruction& contraction, const Shape& result, bool single);
  /// choose_blocks of it.
  std::optional<Blocks> blocks(Product& product, ProductOperands operands);

 private:
  const TargetInfo& target_;
  std::deque<Product> all_;
  InstructionMap<std::vector<Product*>> known_;
};

}  // namespace hlojit
