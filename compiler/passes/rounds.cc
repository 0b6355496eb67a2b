// See rounds.h.
#include "compiler/passes/rounds.h"

#include <fmt/format.h>

#include <charconv>
#include <unordered_map>

#include "compiler/analysis/invariant.h"

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

}  // namespace

std::optional<int64_t> counted_rounds(const Instruction& loop) {
  const Computation& condition = *loop.while_condition();
  const Computation& body = *loop.while_body();
  const Instruction* test = condition.root();
  if (has_side_effect(condition)) return std::nullopt;  // it is asked once more than there are rounds
  if (!loop.operand(0)->is(Opcode::kTuple) || !body.root()->is(Opcode::kTuple)) return std::nullopt;
  if (!test->is(Opcode::kCompare) || test->attrs.direction != Direction::kLt) return std::nullopt;
  int64_t k = state_element(test->operand(0), condition);
  auto bound = integer(test->operand(1));
  if (k < 0 || !bound) return std::nullopt;
  auto first = integer(loop.operand(0)->operand(k));
  const Instruction* next = body.root()->operand(k);
  if (!first || !next->is(Opcode::kAdd)) return std::nullopt;
  int counter = state_element(next->operand(0), body) == k ? 0 : 1;
  if (state_element(next->operand(counter), body) != k) return std::nullopt;
  auto step = integer(next->operand(1 - counter));
  // Small numbers only: no wrapping to think about.
  constexpr int64_t kSmall = 1 << 20;
  if (!step || *step <= 0 || *step > kSmall || std::abs(*first) > kSmall || std::abs(*bound) > kSmall) {
    return std::nullopt;
  }
  if (dtype_bits(next->shape.type) < 32) return std::nullopt;
  return *bound <= *first ? 0 : (*bound - *first + *step - 1) / *step;
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
