// See reducer.h.
#include "codegen/nest/reducer.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include <llvm/IR/IRBuilder.h>

#include "codegen/nest/element_emitter.h"
#include "codegen/number/extrema.h"
#include "codegen/number/ir_number.h"
#include "codegen/number/parts.h"
#include "codegen/target.h"
#include "compiler/analysis/reorder.h"
#include "compiler/ir/combining.h"
#include "compiler/ir/module.h"
#include "compiler/ir/narrow.h"
#include "layout/index.h"
#include "layout/lists.h"

namespace hlojit::codegen {
namespace {

llvm::Constant* all_ones(llvm::Type* t) { return llvm::Constant::getAllOnesValue(t); }

// `count` lanes of each value from number `first` on.
std::vector<Value> part_of(llvm::IRBuilderBase& b, std::span<const Value> values, int first, int count) {
  const auto from = static_cast<unsigned>(first), lanes = static_cast<unsigned>(count);
  std::vector<Value> part;
  for (const Value& v : values) {
    part.push_back(map_parts(v, [&](llvm::Value* x) { return lanes_from(b, x, from, lanes); }));
  }
  return part;
}

// Lanes of one register of so many bits of these values if there are as many of each; 0 if not.
int lanes_of_register(std::span<const Value> values, unsigned register_bits) {
  auto bits = [](const Value& v) { return v.v->getType()->getScalarSizeInBits(); };
  bool equal = std::ranges::all_of(values, [&](const Value& v) { return bits(v) == bits(values[0]); });
  return equal && bits(values[0]) >= 8 ? static_cast<int>(register_bits / bits(values[0])) : 0;
}

// Of one register, as wide as any is.
int register_lanes(llvm::Value* x) { return static_cast<int>(512 / x->getType()->getScalarSizeInBits()); }

// Whether all are numbers: of a vector of several registers, in the lanes of one.
llvm::Value* are_numbers(llvm::IRBuilderBase& b, llvm::Value* x) {
  const int lanes = lanes_of({DType::kInvalid, x}), most = register_lanes(x);
  if (lanes <= most) return b.CreateFCmpORD(x, x);
  llvm::Value* all = nullptr;
  for (int k = 0; k < lanes; k += 2 * most) {
    auto part = [&](int from) {
      return lanes_from(b, x, static_cast<unsigned>(from % lanes), static_cast<unsigned>(most));
    };
    llvm::Value* two = b.CreateFCmpORD(part(k), part(k + most));
    all = all ? b.CreateAnd(all, two) : two;
  }
  return all;
}

// Whether extrema of floats are those of integers. AVX2 takes as many instructions for a key as for a step without one,
// and only their chain becomes shorter: windows of a few terms are no chains. It has no extrema of long integers.
bool as_integers(const Instruction& reduction, Opcode op, const NumberOptions& options) {
  constexpr int64_t kChain = 32;
  const DType type = reduction.shape.type;
  if (compares_stored(reduction)) return true;
  if ((op != Opcode::kMaximum && op != Opcode::kMinimum) || !is_float(type)) return false;
  return options.avx512 || (type != DType::kF64 && product(reduction_sizes(reduction)) >= kChain);
}

// Whether these are three of the bits, not one of a key. Results of their own have them in registers: AVX2 has too few,
// and what a few terms save is spent at the end. Windows that come from memory wait for it longer. (3x3 of 8 images of
// 112x112x64, a Zen 4: 1.20 ms by keys, 1.52; of 3 such 237 us and 206.)
bool takes_three(const Instruction& reduction, const NumberOptions& options, Held held) {
  constexpr int64_t kFew = 3;
  if (held == Held::kAsOne || reduction.shape.type == DType::kF64) return false;
  if (held == Held::kParts) return true;
  const int64_t llc = options.target ? options.target->info().llc_bytes : 0;
  const bool far = !reduction.is(Opcode::kReduce) && physical_size(reduction.operand(0)->shape) > llc / 2;
  return options.avx512 && !far && product(reduction_sizes(reduction)) > kFew;
}

using ValueOf = std::unordered_map<const Instruction*, Value>;

/// What a comparison of two results' values number `n` is, of which the first is known to be less.
std::optional<bool> of_numbers(const Instruction& i, int n, size_t values) {
  if (!i.is(Opcode::kCompare)) return std::nullopt;
  const auto number = [](const Instruction* o) {
    return o->is(Opcode::kParameter) ? static_cast<int>(o->attrs.parameter_number) : -1;
  };
  const int x = number(i.operand(0)), y = number(i.operand(1)), other = n + static_cast<int>(values);
  if (std::minmax(x, y) != std::minmax(n, other)) return std::nullopt;
  // All of them, or two of them contradict each other where the numbers are equal, as with what is begun with.
  const bool swapped = x == other;
  switch (i.attrs.direction) {
    case Direction::kEq: return false;
    case Direction::kNe: return true;
    case Direction::kLt:
    case Direction::kLe: return !swapped;
    case Direction::kGt:
    case Direction::kGe: return swapped;
  }
  return std::nullopt;
}

/// Of what is left of "greater, or equal and before it", if that is all one comparison says; null for others.
llvm::Value* one_comparison(llvm::IRBuilderBase& b, const Instruction& i, const ValueOf& values) {
  const bool both = i.is(Opcode::kAnd), either = i.is(Opcode::kOr);
  if (!is_pred(i.shape.type) || (!both && !either)) return nullptr;
  llvm::Value *x = values.at(i.operand(0)).v, *y = values.at(i.operand(1)).v;
  auto is = [](llvm::Value* v, bool all) {
    auto* c = llvm::dyn_cast<llvm::Constant>(v);
    return c && (all ? c->isAllOnesValue() : c->isNullValue());
  };
  if (is(x, both)) return y;
  if (is(y, both)) return x;
  auto *p = llvm::dyn_cast<llvm::ICmpInst>(x), *q = llvm::dyn_cast<llvm::ICmpInst>(y);
  if (!either || !p || !q || p->getOperand(0) != q->getOperand(0) || p->getOperand(1) != q->getOperand(1))
    return nullptr;
  if (p->getPredicate() == llvm::ICmpInst::ICMP_EQ) std::swap(p, q);
  if (q->getPredicate() != llvm::ICmpInst::ICMP_EQ || !p->isRelational()) return nullptr;
  return b.CreateICmp(p->getNonStrictPredicate(), p->getOperand(0), p->getOperand(1));
}

}  // namespace

bool compares_stored(const Instruction& reduction) {
  if (!is_reduction(reduction) || !reduction.shape.is_array() || !is_half(reduction.shape.type)) return false;
  if (reduction.info().op_class == OpClass::kContracts) return false;
  const auto op = combining_op(*reduction.to_apply());
  return op == Opcode::kMaximum || op == Opcode::kMinimum;
}

std::vector<Value> inline_computation(llvm::IRBuilderBase& b, const NumberOptions& options, const Computation& c,
                                      std::span<const Value> arguments, bool plain, int less) {
  std::unordered_map<const Instruction*, Value> values;
  int lanes = 1;
  for (const Value& v : arguments) lanes = std::max(lanes, lanes_of(v));
  for (const auto& i : c.instructions()) {
    if (i->is(Opcode::kParameter)) {
      values[i.get()] = splat(b, arguments[static_cast<size_t>(i->attrs.parameter_number)], lanes);
    } else if (i->is(Opcode::kConstant)) {
      values[i.get()] = splat(b, constant(b, *i->literal, 0), lanes);
    } else if (i->is(Opcode::kTuple)) {
      continue;
    } else if (const auto known = less < 0 ? std::nullopt : of_numbers(*i, less, arguments.size() / 2)) {
      values[i.get()] = splat(b, {DType::kPred, b.getInt1(*known)}, lanes);
    } else if (llvm::Value* one = less < 0 ? nullptr : one_comparison(b, *i, values)) {
      values[i.get()] = {DType::kPred, one};
    } else {
      std::vector<Value> operands;
      for (Instruction* o : i->operands()) operands.push_back(values.at(o));
      bool forwards = i->is(Opcode::kBroadcast) || i->is(Opcode::kReshape) || i->is(Opcode::kCopy);
      values[i.get()] = forwards ? operands[0]
                        : plain  ? binary(b, options, i->opcode, operands[0], operands[1])
                                 : elementwise(b, options, *i, operands);
    }
  }
  std::vector<Value> results;
  const Instruction* root = c.root();
  if (!root->is(Opcode::kTuple)) return {values.at(root)};
  for (Instruction* o : root->operands()) results.push_back(values.at(o));
  return results;
}

Reducer Reducer::of(const Instruction& reduction, const NumberOptions& options, Held held) {
  Reducer r;
  if (reduction.info().op_class == OpClass::kContracts) {
    r.contracts_ = r.reorderable_ = true;
    r.result_ = reduction.shape.type;
    r.accumulator_ = working_type(r.result_);
    r.op_ = is_pred(r.result_) ? Opcode::kOr : Opcode::kAdd;
    return r;
  }
  r.computation_ = reduction.to_apply();
  if (reduction.shape.is_array()) {
    r.op_ = combining_op(*r.computation_);
    r.accumulator_ = r.result_ = reduction.shape.type;
  }
  r.plain_ = is_plain_float(*r.computation_);
  r.sums_ = r.op_ == Opcode::kAdd && is_float(r.result_);
  if (r.op_ && is_pred(r.result_)) {
    if (r.op_ == Opcode::kMultiply || r.op_ == Opcode::kMinimum) r.op_ = Opcode::kAnd;
    if (r.op_ == Opcode::kAdd || r.op_ == Opcode::kMaximum) r.op_ = Opcode::kOr;
    r.as_bytes_ = true;
    r.accumulator_ = DType::kS8;
  }
  const bool parts = held == Held::kParts && reduction.is(Opcode::kReduce);
  if (r.op_ && as_integers(reduction, *r.op_, options)) {
    r.as_numbers_ = options.avx512 && parts && r.result_ != DType::kF16;
    r.as_bits_ = !r.as_numbers_ && takes_three(reduction, options, held);
    r.as_keys_ = !r.as_numbers_ && !r.as_bits_;
  }
  if (r.as_keys_) r.accumulator_ = key_type(r.result_);
  // Windows pick by position (the first of equals): their elements keep their order.
  Reorder order = r.op_                           ? Reorder{true, -1}
                  : reduction.is(Opcode::kReduce) ? selection_order(reduction)
                                                  : Reorder{false, -1};
  r.reorderable_ = order.allowed;
  r.position_ = order.position;
  r.numbers_ = order.numbers;
  return r;
}

bool Reducer::rounds() const { return op_ && !idempotent() && (is_float(accumulator_) || is_complex(accumulator_)); }

std::vector<Value> Reducer::identity(llvm::IRBuilderBase& b) const {
  if (as_numbers_) return {extreme(b, accumulator_, op_ == Opcode::kMinimum), {DType::kPred, b.getTrue()}};
  if (as_bits_) return extrema_of_none(b, result_);
  if (has_trait(*op_, op_trait::kFromOne)) return {constant(b, accumulator_, 1, 1)};
  if (has_trait(*op_, op_trait::kFromOnes)) return {{accumulator_, all_ones(register_type(b, accumulator_, 1))}};
  if (has_trait(*op_, op_trait::kFromLeast)) return {extreme(b, accumulator_, false)};
  if (has_trait(*op_, op_trait::kFromGreatest)) return {extreme(b, accumulator_, true)};
  // -0 + -0 is -0; a product's sum starts from 0.
  return {constant(b, accumulator_, is_float(accumulator_) && !contracts_ ? -0.0 : 0, 1)};
}

std::vector<Value> Reducer::of_lanes(llvm::IRBuilderBase& b, std::vector<Value> values, int lanes) const {
  const int most = as_numbers_ ? register_lanes(values[0].v) : lanes;
  for (size_t k = 0; k < values.size(); ++k)
    values[k] = splat(b, values[k], as_numbers_ && k == 1 ? std::min(lanes, most) : lanes);
  return values;
}

std::vector<Value> Reducer::operands(ElementEmitter& emitter, Scope& scope, const Instruction& reduction,
                                     const AccessRelation& relation) const {
  std::vector<Value> values;
  for (const Read& r : relation.reads) {
    const Instruction* operand = reduction.operand(r.operand);
    if (sums_) {
      values = emitter.factors(operand, r.coords, scope);
      continue;
    }
    Value v = emitter.emit(operand, r.coords, scope);
    values.push_back(contracts_ ? convert(scope.builder, emitter.number(), v, accumulator_) : v);
  }
  return values;
}

std::vector<Value> Reducer::accumulated(llvm::IRBuilderBase& b, std::span<const Value> values) const {
  const bool largest = op_ == Opcode::kMaximum;
  if (as_bits_) return bits_of_float(b, values[0], largest);
  std::vector<Value> held(values.begin(), values.end());
  for (Value& v : held) {
    if (v.type == accumulator_) continue;
    if (as_bytes_) v = {accumulator_, b.CreateSExt(v.v, v.v->getType()->getWithNewType(b.getInt8Ty()))};
    if (as_keys_) v = key_of_float(b, v, largest);
  }
  if (as_numbers_) held.push_back({DType::kPred, are_numbers(b, held[0].v)});
  return held;
}

std::vector<Value> Reducer::step(llvm::IRBuilderBase& b, const NumberOptions& options,
                                 std::span<const Value> accumulators, std::span<const Value> values) const {
  if (sums_ && values.size() == 2) return {fma(b, values[0], values[1], accumulators[0])};
  if (!contracts_) return apply(b, options, accumulators, accumulated(b, values), numbers_);
  if (is_pred(accumulator_)) {
    return {binary(b, options, Opcode::kOr, accumulators[0], binary(b, options, Opcode::kAnd, values[0], values[1]))};
  }
  if (is_float(accumulator_)) return {fma(b, values[0], values[1], accumulators[0])};
  if (is_complex(accumulator_)) {
    const Value &x = values[0], &y = values[1], &sum = accumulators[0];
    DType part = component_type(accumulator_);
    auto fma_part = [&](llvm::Value* p, llvm::Value* q, llvm::Value* r) {
      return fma(b, {part, p}, {part, q}, {part, r}).v;
    };
    llvm::Value* re = fma_part(b.CreateFNeg(x.imag), y.imag, fma_part(x.v, y.v, sum.v));
    return {{accumulator_, re, fma_part(x.imag, y.v, fma_part(x.v, y.imag, sum.imag))}};
  }
  return {
      binary(b, options, Opcode::kAdd, accumulators[0], binary(b, options, Opcode::kMultiply, values[0], values[1]))};
}

std::vector<Value> Reducer::combine(llvm::IRBuilderBase& b, const NumberOptions& options, std::span<const Value> left,
                                    std::span<const Value> right) const {
  if (position_ < 0) return apply(b, options, left, right);
  const Value &x = left[static_cast<size_t>(position_)], &y = right[static_cast<size_t>(position_)];
  llvm::Value* in_order = is_signed(x.type) ? b.CreateICmpSLE(x.v, y.v) : b.CreateICmpULE(x.v, y.v);
  std::vector<Value> first, second;
  for (size_t k = 0; k < left.size(); ++k) {
    first.push_back({left[k].type, b.CreateSelect(in_order, left[k].v, right[k].v)});
    second.push_back({left[k].type, b.CreateSelect(in_order, right[k].v, left[k].v)});
  }
  return apply(b, options, first, second);
}

std::vector<Value> Reducer::apply(llvm::IRBuilderBase& b, const NumberOptions& options, std::span<const Value> left,
                                  std::span<const Value> right, int less) const {
  if (as_numbers_) {
    llvm::Value* number = ir::extreme_number_avx512(b, left[0].v, right[0].v, op_ == Opcode::kMaximum);
    return {{left[0].type, number}, {DType::kPred, b.CreateAnd(left[1].v, right[1].v)}};
  }
  if (as_bits_) return extrema_of_bits(b, options, left, right);
  if (op_) return {binary(b, options, *op_, left[0], right[0])};
  std::vector<Value> arguments(left.begin(), left.end());
  arguments.insert(arguments.end(), right.begin(), right.end());
  return apply_in_parts(b, options, arguments, less);
}

// The conditions of a vector wider than the machine's are packed, into bytes or one mask of all lanes, and unpacked
// again between a comparison and a select: the halves of such vectors go each its own way. (Argmax of 1024 rows of 4096
// on a Zen 4, AVX-512: 692 us packed, 477 so; down the columns 1230 and 800.)
std::vector<Value> Reducer::apply_in_parts(llvm::IRBuilderBase& b, const NumberOptions& options,
                                           std::span<const Value> arguments, int less) const {
  int lanes = lanes_of(arguments[0]), part = lanes_of_register(arguments, options.avx512 ? 512 : 256);
  if (part == 0 || lanes <= part) return inline_computation(b, options, *computation_, arguments, plain_, less);
  std::vector<Value> low = apply_in_parts(b, options, part_of(b, arguments, 0, lanes / 2), less);
  std::vector<Value> high = apply_in_parts(b, options, part_of(b, arguments, lanes / 2, lanes / 2), less);
  auto join = [&](llvm::Value* x, llvm::Value* y) { return x ? joined(b, std::array{x, y}) : nullptr; };
  for (size_t k = 0; k < low.size(); ++k)
    low[k] = {low[k].type, join(low[k].v, high[k].v), join(low[k].imag, high[k].imag)};
  return low;
}

std::vector<Value> Reducer::across_lanes(llvm::IRBuilderBase& b, const NumberOptions& options,
                                         std::vector<Value> parts) const {
  if (as_numbers_ && lanes_of(parts[1]) > 1) parts[1].v = b.CreateAndReduce(parts[1].v);
  while (lanes_of(parts[0]) > 1) {
    int half = lanes_of(parts[0]) / 2;
    const std::span<const Value> values(parts.begin(), as_numbers_ ? 1 : parts.size());
    std::vector<Value> low = part_of(b, values, 0, half), high = part_of(b, values, half, half);
    if (as_numbers_) low.push_back(parts[1]), high.push_back(parts[1]);
    parts = combine(b, options, low, high);
  }
  return parts;
}

std::vector<Value> Reducer::finish(llvm::IRBuilderBase& b, const NumberOptions& options,
                                   std::vector<Value> totals) const {
  if (contracts_) return {convert(b, options, totals[0], result_)};
  if (as_bytes_) return {{result_, b.CreateICmpSLT(totals[0].v, llvm::Constant::getNullValue(totals[0].v->getType()))}};
  if (as_numbers_) {
    auto* none = llvm::ConstantFP::getNaN(totals[0].v->getType());
    totals = {{result_, b.CreateSelect(totals[1].v, totals[0].v, none)}};
  }
  if (as_keys_) totals = {float_of_key(b, result_, totals[0], op_ == Opcode::kMaximum)};
  if (as_bits_) totals = {float_of_extrema(b, result_, totals, op_ == Opcode::kMaximum)};
  if (plain_) {
    for (Value& total : totals) total = round_to_type(b, options, total);
  }
  return totals;
}

}  // namespace hlojit::codegen
