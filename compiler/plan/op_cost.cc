// See op_cost.h.
#include "compiler/plan/op_cost.h"

#include <bit>

#include "compiler/plan/kernel.h"
#include "layout/lists.h"

namespace hlojit {

OpPrice price_of(const Instruction& i) {
  const OpPrice price = i.info().price;
  if (price != OpPrice::kDivide || i.operand_count() < 2 || !is_integral(i.shape.type)) return price;
  const Instruction* by = i.operand(1);
  while (by->is(Opcode::kBroadcast)) by = by->operand(0);
  const bool splat = by->is(Opcode::kConstant) && by->literal->is_splat();
  return splat && std::has_single_bit(static_cast<uint64_t>(by->literal->as_int(0))) ? OpPrice::kCheap : price;
}

const OpCost& op_cost(OpPrice price) {
  static constexpr OpCost kCosts[] = {
      {.cycles = 0, .instructions = 0.5, .operations = 0},   // free
      {.cycles = 0.5, .instructions = 1, .operations = 1},   // cheap
      {.cycles = 5, .instructions = 3, .operations = 1},     // divide
      {.cycles = 20, .instructions = 40, .operations = 12},  // transcendental
  };
  return kCosts[static_cast<size_t>(price)];
}

OpCost cost_of(const Instruction& i) {
  constexpr int kFunctionsOfPower = 4;
  const OpCost& one = op_cost(price_of(i));
  const int times = i.is(Opcode::kPower) ? kFunctionsOfPower : 1;
  return {one.cycles * times, one.instructions * times, one.operations * times};
}

double cycles_per_vector(const Instruction& i) {
  if (is_reduction(i)) return 0.5 * product<double>(reduction_sizes(i));
  // A root takes as long as two divisions, and of its inverse there is one more. (118,000 of f32, a Zen 4: quotients 12
  // us, most of which is memory's, roots 20, inverse ones 32.)
  const double divisions = i.is(Opcode::kRsqrt) ? 3 : i.is(Opcode::kSqrt) ? 2 : 1;
  return cost_of(i).cycles * divisions;
}

double conversion_code(DType type) {
  constexpr double kFields = 15, kHalf = 5;
  if (!is_narrow_float(type)) return 0;
  return dtype_bits(type) <= 8 ? kFields : kHalf;
}

double code_size(const Instruction& i) {
  if (has_trait(i, op_trait::kRandomPlaces)) return kOneByOne;
  // Functions of complex numbers are several of real ones, and choose between them.
  constexpr double kComplex = 6;
  const double own = cost_of(i).instructions * (is_complex(i.shape.type) ? kComplex : 1);
  return is_elementwise(i.opcode) ? own + conversion_code(i.shape.type) : own;
}

}  // namespace hlojit
