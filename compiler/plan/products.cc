// See products.h.
#include "compiler/plan/products.h"

#include <algorithm>

namespace hlojit {

Products::Product& Products::of(const Instruction& contraction, const Shape& result, bool single) {
  std::vector<Product*>& known = known_[&contraction];
  auto same = [&](const Product* p) { return p->single == single && p->result == result; };
  if (auto at = std::ranges::find_if(known, same); at != known.end()) return **at;
  const int64_t lanes = sum_lanes(contraction, target_.vector_bytes);
  known.push_back(&all_.emplace_back(
      &contraction, result, single,
      single ? single_product(contraction, result, lanes) : MatrixProduct(contraction, result, lanes)));
  return *known.back();
}

std::optional<Blocks> Products::blocks(Product& product, ProductOperands operands) {
  auto at = std::ranges::find(product.asked, operands, [](const auto& known) { return known.first; });
  if (at != product.asked.end()) return at->second;
  auto chosen = choose_blocks(*product.contraction, product.matrices, target_, operands);
  product.asked.emplace_back(operands, chosen);
  return chosen;
}

}  // namespace hlojit
