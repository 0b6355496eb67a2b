// See suggestion.h.
#include "compiler/text/suggestion.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "compiler/ir/ops.h"

namespace hlojit {
namespace {

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t substituted = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({substituted, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string suggest_opcode(std::string_view word) {
  if (word.size() > 40) return {};
  size_t best = 3;
  std::string_view nearest;
  for (int i = 0; i < op_count(); ++i) {
    std::string_view name = op_name(static_cast<Opcode>(i));
    size_t distance = edit_distance(word, name);
    if (distance < std::min(best, word.size())) {
      best = distance;
      nearest = name;
    }
  }
  return nearest.empty() ? "" : "did you mean '" + std::string(nearest) + "'?";
}

}  // namespace hlojit
