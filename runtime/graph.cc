// A module's entry computation as a graph for people: what reads what, and the bytes that pass between them.
// Tuples, their elements, bitcasts and small constants are looked through, as no work is done for them.
#include <algorithm>
#include <unordered_map>

#include "compiler/plan/kernel.h"
#include "layout/index.h"
#include "runtime/executable.h"
#include "runtime/guards.h"

namespace hlojit {
namespace {

constexpr int64_t kSmallBytes = 1024;

int64_t bytes_of(const Shape& shape) {
  int64_t n = 0;
  for (const Shape* leaf : leaves(shape)) n += leaf->is_array() ? physical_size(*leaf) : 0;
  return n;
}

bool passes_on(const Instruction& i) {
  return has_trait(i, op_trait::kForwards) || (i.is(Opcode::kConstant) && bytes_of(i.shape) <= kSmallBytes);
}

}  // namespace

std::vector<GraphNode> graph(const ModulePtr& module) {
  std::vector<GraphNode> nodes;
  std::unordered_map<const Instruction*, std::vector<size_t>> stands_for;
  for (const auto& i : program(module).entry()->instructions()) {
    std::vector<size_t> reads;
    int64_t bytes_read = 0;
    for (size_t k = 0; k < i->operand_count(); ++k) {
      bytes_read += bytes_of(i->operand(k)->shape);
      for (size_t node : stands_for[i->operand(k)]) {
        if (std::ranges::find(reads, node) == reads.end()) reads.push_back(node);
      }
    }
    if (passes_on(*i)) {
      stands_for[i.get()] = std::move(reads);
      continue;
    }
    stands_for[i.get()] = {nodes.size()};
    nodes.push_back({i->name, std::string(op_name(i->opcode)), std::string(planned_kind(*i)), i->shape,
                     std::move(reads), bytes_read, bytes_of(i->shape)});
  }
  return nodes;
}

}  // namespace hlojit
