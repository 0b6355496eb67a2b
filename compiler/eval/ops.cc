// From an op to its meaning; see ops.h.
#include "compiler/eval/ops.h"

#include <array>

namespace hlojit::eval {

Meaning meaning_of(Opcode opcode) {
  static const std::array<Meaning, 256> meanings = [] {
    std::array<Meaning, 256> made{};
    for (auto file : {elementwise_array_ops, moves_ops, gather_ops, reduce_ops, window_ops, scan_ops, contract_ops,
                      order_ops, random_ops, linalg_ops, fft_ops, norm_ops}) {
      for (const Row& row : file()) made[static_cast<size_t>(row.opcode)] = row.meaning;
    }
    return made;
  }();
  return meanings[static_cast<size_t>(opcode)];
}

}  // namespace hlojit::eval
