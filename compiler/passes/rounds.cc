// See rounds.h.
#include "compiler/passes/rounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <unordered_map>
#include <vector>

#include "compiler/analysis/invariant.h"
#include "layout/divide.h"

namespace hlojit {
namespace {

constexpr std::string_view kKnown = R"("known_trip_count":{"n":")";

std::optional<int64_t> integer(const Instruction* i) {
  if (!i->is(Opcode::kConstant) || !i->shape.is_scalar() || !is_integral(i->shape.type)) {
    return std::nullopt;
  }
  const int64_t value = i->literal->as_int(0);
  if (value < 0 && !is_signed(i->shape.type)) return std::nullopt;  // more than int64_t holds
  return value;
}

// Small numbers only: no wrapping to think about.
constexpr int64_t kSmall = 1 << 20;

bool is_small(int64_t n) { return -kSmall <= n && n <= kSmall; }

std::optional<Progress> small(Progress p) {
  return is_small(p.first) && is_small(p.step) ? std::optional(p) : std::nullopt;
}

/// Of element k of the state.
std::optional<Progress> counter(const Instruction& loop, int64_t k) {
  const Computation& body = *loop.while_body();
  if (!loop.operand(0)->is(Opcode::kTuple) || !body.root()->is(Opcode::kTuple)) return std::nullopt;
  const auto first = integer(loop.operand(0)->operand(static_cast<size_t>(k)));
  const Instruction* next = body.root()->operand(static_cast<size_t>(k));
  if (!first || dtype_bits(next->shape.type) < 32) return std::nullopt;
  if (state_element(next, body) == k) return small({*first, 0});
  if (!next->is(Opcode::kAdd)) return std::nullopt;
  const size_t counted = state_element(next->operand(0), body) == k ? 0 : 1;
  const auto step = integer(next->operand(1 - counted));
  if (!step || state_element(next->operand(counted), body) != k) return std::nullopt;
  return small({*first, *step});
}

/// The element of the loop's state as the body gets it, if that is read there once and nowhere else. Null if not.
const Instruction* read_once(const Instruction& loop, int64_t k) {
  const Instruction* found = nullptr;
  for (const Computation* c : loop.called) {
    for (const Instruction* user : c->parameters()[0]->users()) {
      const int64_t element = state_element(user, *c);
      if (element >= 0 && element != k) continue;
      if (element < 0 || found || c != loop.while_body()) return nullptr;
      found = user;
    }
  }
  return found && found->users().size() == 1 ? found : nullptr;
}

/// Of dim `dim` the places that an update replaces: in each round `size` of them, from `from` on.
struct Replaced {
  int64_t dim, size;
  Progress from;
};

/// nullopt if that is not known, or if not whole rows of the other dims are replaced.
std::optional<Replaced> replaced_by(const Instruction& update, const Instruction& loop) {
  const Ints &all = update.shape.dims, &part = update.operand(1)->shape.dims;
  if (update.operand_count() != all.size() + 2) return std::nullopt;  // one vector of starts
  std::optional<Replaced> found;
  for (size_t d = 0; d < all.size(); ++d) {
    if (part[d] == all[d]) continue;
    const auto from = progress_of(*update.operand(d + 2), loop);
    if (found || !from) return std::nullopt;
    found = Replaced{static_cast<int64_t>(d), part[d], *from};
  }
  return found;
}

/// The parts of a round lie side by side, the next round's behind them or before them, and the last is the end.
bool are_whole(std::vector<Replaced> parts, int64_t rounds, const Shape& shape) {
  std::ranges::sort(parts, {}, [](const Replaced& r) { return r.from.first; });
  const int64_t dim = parts[0].dim, step = parts[0].from.step;
  int64_t end = parts[0].from.first;
  for (const Replaced& p : parts) {
    if (p.dim != dim || p.from.step != step || p.from.first != end) return false;
    end += p.size;
  }
  const int64_t each = end - parts[0].from.first, last = parts[0].from.first + (rounds - 1) * step;
  const int64_t size = shape.dims[static_cast<size_t>(dim)];
  if (size > INT32_MAX) return false;  // counters of 32 bits would begin anew
  return std::abs(step) == each && std::min(parts[0].from.first, last) == 0 && rounds * each == size;
}

}  // namespace

std::optional<Progress> progress_of(const Instruction& value, const Instruction& loop) {
  constexpr int kMostSteps = 8;
  const Computation& body = *loop.while_body();
  auto of = [&](const Instruction* i, int left, auto& self) -> std::optional<Progress> {
    if (!i->shape.is_scalar() || !is_integral(i->shape.type) || dtype_bits(i->shape.type) < 32) return std::nullopt;
    if (const int64_t k = state_element(i, body); k >= 0) return counter(loop, k);
    if (const auto number = integer(i)) return small({*number, 0});
    const bool sum = i->is(Opcode::kAdd) || i->is(Opcode::kSubtract), product = i->is(Opcode::kMultiply);
    if (left == 0 || !(sum || product)) return std::nullopt;
    const auto a = self(i->operand(0), left - 1, self), b = a ? self(i->operand(1), left - 1, self) : std::nullopt;
    if (!b) return std::nullopt;
    if (product) {
      if (a->step != 0 && b->step != 0) return std::nullopt;
      return small({a->first * b->first, a->step * b->first + a->first * b->step});
    }
    const int64_t sign = i->is(Opcode::kSubtract) ? -1 : 1;
    return small({a->first + sign * b->first, a->step + sign * b->step});
  };
  return of(&value, kMostSteps, of);
}

std::optional<int64_t> counted_rounds(const Instruction& loop) {
  const Computation& condition = *loop.while_condition();
  const Instruction* test = condition.root();
  if (has_side_effect(condition)) return std::nullopt;  // it is asked once more than there are rounds
  if (!test->is(Opcode::kCompare) || test->attrs.direction != Direction::kLt) return std::nullopt;
  const int64_t k = state_element(test->operand(0), condition);
  const auto bound = integer(test->operand(1));
  const auto counted = k < 0 ? std::nullopt : counter(loop, k);
  if (!counted || counted->step <= 0 || !bound || !is_small(*bound)) return std::nullopt;
  return *bound <= counted->first ? 0 : ceil_div(*bound - counted->first, counted->step);
}

bool is_overwritten(const Instruction& loop, int64_t k, int64_t rounds) {
  const Instruction* value = read_once(loop, k);
  const Instruction* root = loop.while_body()->root();
  std::vector<Replaced> parts;
  while (value && value->users().size() == 1) {
    const Instruction* next = value->users()[0];
    if (next == root) break;
    if (!next->is(Opcode::kDynamicUpdateSlice) || next->is_root()) return false;
    if (next->operand(0) != value || std::ranges::count(next->operands(), value) > 1) return false;
    const auto part = replaced_by(*next, loop);
    if (!part) return false;
    parts.push_back(*part);
    value = next;
  }
  if (!value || parts.empty() || root->operand(static_cast<size_t>(k)) != value) return false;
  return std::ranges::count(root->operands(), value) == 1 && are_whole(std::move(parts), rounds, value->shape);
}

std::optional<Range> range_in_rounds(const Instruction& value, const Instruction& loop) {
  const auto rounds = counted_rounds(loop);
  const auto progress = rounds && *rounds > 0 ? progress_of(value, loop) : std::nullopt;
  if (!progress) return std::nullopt;
  const int64_t last = progress->first + (*rounds - 1) * progress->step;
  return Range{std::min(progress->first, last), std::max(progress->first, last)};
}

std::optional<int64_t> known_rounds(const Instruction& loop) {
  const std::string& config = loop.attrs.backend_config;
  size_t at = config.find(kKnown);
  if (at == std::string::npos) return std::nullopt;
  int64_t rounds = 0;
  const char* first = config.data() + at + kKnown.size();
  auto [end, error] = std::from_chars(first, config.data() + config.size(), rounds);
  if (error != std::errc() || end == first || *end != '"' || rounds < 0) return std::nullopt;
  return rounds;
}

void set_known_rounds(Instruction& loop, int64_t rounds) {
  loop.attrs.backend_config = fmt::format("{{{}{}\"}}}}", kKnown, rounds);
}

Instruction* paste_round(Computation& c, const Computation& body, Instruction* state) {
  std::unordered_map<const Instruction*, Instruction*> copies;
  for (const Instruction* i : body.snapshot()) {
    Instruction*& copy = copies[i];
    if (i->is(Opcode::kParameter)) {
      copy = state;
    } else if (i->is(Opcode::kGetTupleElement) && copies.at(i->operand(0))->is(Opcode::kTuple)) {
      copy = copies.at(i->operand(0))->operand(i->attrs.tuple_index);
    } else {
      std::vector<Instruction*> operands;
      for (Instruction* o : i->operands()) operands.push_back(copies.at(o));
      copy = c.clone_instruction(*i, std::move(operands));
    }
  }
  return copies.at(body.root());
}

}  // namespace hlojit
