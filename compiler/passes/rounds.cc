// See rounds.h.
#include "compiler/passes/rounds.h"

#include <fmt/format.h>

#include <charconv>
#include <unordered_map>

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
