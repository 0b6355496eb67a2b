// See element_emitter.h. Data movement is in movement.cc, reductions in reduction.cc.
#include "codegen/nest/element_emitter.h"

#include <algorithm>

#include <fmt/format.h>
#include <llvm/IR/Module.h>

#include "codegen/nest/branch.h"
#include "codegen/nest/reducer.h"
#include "codegen/number/table.h"
#include "compiler/analysis/products.h"
#include "compiler/ir/narrow.h"

namespace hlojit::codegen {
namespace {

[[noreturn]] void unsupported(const Instruction* i, std::string_view what) {
  throw Error(ErrorKind::kUnsupported, i->location, fmt::format("{} {} is not compiled yet", op_name(i->opcode), what));
}

// A value whose elements have other coordinates only, for its one user.
bool is_renamed(const Instruction* i) {
  return (i->is(Opcode::kReshape) || i->is(Opcode::kTranspose)) && i->users().size() == 1;
}

// Hardly ever true, or never false: the one side is for all, the other costs little.
bool asks_for_nan(const Instruction* condition) {
  return condition->is(Opcode::kCompare) && condition->operand(0) == condition->operand(1);
}

// How many elements of this value differ at most, as far as broadcasts a few operations back tell.
int64_t different_elements(const Instruction* value) {
  constexpr size_t kMost = 50;
  int64_t most = 1;
  InstructionSet seen;
  std::vector<const Instruction*> left = {value};
  while (!left.empty()) {
    const Instruction* i = left.back();
    left.pop_back();
    if (!seen.insert(i)) continue;
    if (seen.size() > kMost) return value->shape.element_count();
    if (is_elementwise(i->opcode)) {
      left.insert(left.end(), i->operands().begin(), i->operands().end());
    } else {
      most = std::max(most, (i->is(Opcode::kBroadcast) ? i->operand(0) : i)->shape.element_count());
    }
  }
  return most;
}

}  // namespace

ElementEmitter::ElementEmitter(Scope& root, const EmitOptions& options, VarSource& vars)
    : root_(root), options_(options), target_(options.target_info()), vars_(vars) {}

Value ElementEmitter::emit(const Instruction* i, const Coords& coords, Scope& scope) {
  if (auto it = providers_.find(i); it != providers_.end()) return it->second(*this, scope, coords);
  Scope& at = home(coords, scope);
  if (const auto& known = at.memo[i]; !known.empty()) {
    if (auto it = known.find(coords); it != known.end()) return it->second;
  }
  auto place = placed_.find(i);
  Value value = place == placed_.end() ? compute(i, coords, at) : placed(place->second, i, coords, at);
  at.memo[i].emplace(coords, value);
  return value;
}

Value ElementEmitter::placed(const Placed& place, const Instruction* i, const Coords& coords, Scope& scope) {
  if (stage_ < place.stage)
    throw Error(ErrorKind::kFailed, i->location,
                fmt::format("the plan reads {} before the stage that makes it", i->name));
  if (stage_ > place.stage) {
    Value loaded = load(scope, place.buffer, place.stored, place.address(coords));
    loaded.type = i->shape.type;
    return loaded;
  }
  Value value = compute(i, coords, scope);
  if (place.scratch) {
    Value as_stored = value;
    as_stored.type = place.stored;
    store(scope, place.buffer, place.address(coords), as_stored);
  }
  return value;
}

Value ElementEmitter::compute(const Instruction* i, const Coords& coords, Scope& scope) {
  using enum Opcode;
  switch (i->opcode) {
    case kParameter: return parameter(i, coords, scope);
    case kConstant: return constant_at(i, coords, scope);
    case kIota: {
      const auto along = static_cast<size_t>(i->attrs.dimensions[0]);
      llvm::Value* n = index(coords[along], scope);
      // Of larger numbers an f32 on the way to a narrower type would round once more.
      constexpr int64_t kExact = 1 << 24;
      if (i->shape.dims[along] > kExact && is_narrow_float(i->shape.type))
        return convert(scope.builder, number(), {DType::kS64, n}, i->shape.type);
      return from_index(scope.builder, n, i->shape.type);
    }
    case kGetTupleElement: {
      if (!is_reduction(*i->operand(0))) unsupported(i, "of this operand inside a kernel");
      return reduction(i->operand(0), coords, scope)[static_cast<size_t>(i->attrs.tuple_index)];
    }
    case kBitcastConvert:
      if (i->operand(0)->shape.rank() != i->shape.rank()) return bitcast_convert(i, coords, scope);
      if (!in_bits_.contains(i->shape.type) && !in_bits_.contains(i->operand(0)->shape.type)) break;
      return in_bits(emit(i->operand(0), coords, scope), i->shape.type, scope);
    case kMap: {
      std::vector<Value> arguments;
      for (Instruction* o : i->operands()) arguments.push_back(emit(o, coords, scope));
      align_lanes(scope.builder, arguments);
      return inline_computation(scope.builder, number(), *i->to_apply(), arguments)[0];
    }
    default: break;
  }
  if (is_reduction(*i)) return reduction(i, coords, scope)[0];
  if (is_elementwise(i->opcode)) return elementwise_at(i, coords, scope);
  return moved(i, coords, scope);
}

Value ElementEmitter::parameter(const Instruction* i, const Coords& coords, Scope& scope) {
  auto it = buffers_.find(i);
  if (it == buffers_.end()) unsupported(i, "without a buffer");
  return array_at(it->second, i->shape, coords, scope);
}

Value ElementEmitter::array_at(const BufferRef& buffer, const Shape& shape, const Coords& coords, Scope& scope) {
  const DType type = kept(shape.type);
  const int64_t bytes = dtype_bytes(type);
  IndexExpr address = linear_index(shape, coords);
  llvm::Value* mask = inside(shape.dims, coords, scope);
  // Rows at a known distance are turned at less than they take to be picked out of several registers. (61 products of
  // matrices of 8 x 8 floats, one thread of a Zen 4: 5.0 us by picking, 2.5.)
  const bool anywhere = vector_bound(address) || buffer.elements <= table_lanes(*options_.target, bytes);
  if (!mask && !(anywhere && fits_table(buffer, type, lane_count(address)))) {
    if (auto v = load_found(scope, buffer, type, address)) return *v;
    if (auto v = load_rows(scope, buffer, type, address)) return *v;
  }
  return load(scope, buffer, type, address, mask);
}

// A small array: bytes in the code's own data, row-major, there once however often it is read.
const BufferRef& ElementEmitter::constant_data(const Instruction* i, llvm::Module& module) {
  auto [it, is_new] = constants_.try_emplace(i);
  if (!is_new) return it->second;
  const Literal& literal = *i->literal;
  llvm::StringRef bytes(reinterpret_cast<const char*>(literal.bytes().data()), literal.bytes().size());
  llvm::Constant* data = llvm::ConstantDataArray::getString(module.getContext(), bytes, false);
  auto* global =
      new llvm::GlobalVariable(module, data->getType(), true, llvm::GlobalValue::PrivateLinkage, data, i->name);
  global->setAlignment(llvm::Align(64));
  return it->second = {.pointer = global, .elements = literal.shape().element_count(), .read_only = true};
}

Value ElementEmitter::constant_at(const Instruction* i, const Coords& coords, Scope& scope) {
  const Literal& literal = *i->literal;
  if (literal.shape().element_count() == 1 || literal.is_splat()) {
    if (!in_bits_.contains(literal.shape().type)) return constant(scope.builder, literal, 0);
    Literal bits(Shape::scalar(kept(literal.shape().type)));
    std::ranges::copy(literal.bytes().first(bits.bytes().size()), bits.bytes().begin());
    return constant(scope.builder, bits, 0);
  }
  const Ints& dims = literal.shape().dims;
  const BufferRef& data = constant_data(i, *scope.builder.GetInsertBlock()->getModule());
  return load(scope, data, kept(literal.shape().type), linearize(dims, coords), inside(dims, coords, scope));
}

// x with its bits as those of `type`, one of the two kept as bits.
Value ElementEmitter::in_bits(const Value& x, DType type, Scope& scope) {
  llvm::IRBuilder<>& b = scope.builder;
  type = kept(type);
  return from_storage(b, type, b.CreateBitCast(to_storage(b, x), storage_type(b, type, lanes_of(x))));
}

// The product that the value is, of floats that nothing else uses: to be contracted into a sum. Dims of size 1 that
// come and go on the way make no difference.
const Instruction* ElementEmitter::sole_product(const Instruction* value) const {
  if (options_.strict || (value->shape.type != DType::kF32 && value->shape.type != DType::kF64)) return nullptr;
  while (is_renamed(value)) value = value->operand(0);
  return value->is(Opcode::kMultiply) && value->users().size() == 1 && !placed_.contains(value) ? value : nullptr;
}

std::vector<Value> ElementEmitter::factors(const Instruction* value, Coords coords, Scope& scope) {
  if (!sole_product(value)) return {emit(value, coords, scope)};
  for (; is_renamed(value); value = value->operand(0)) {
    coords = access_relation(*value, coords, {}, vars_).reads[0].coords;
  }
  return {operand_at(value, 0, coords, scope), operand_at(value, 1, coords, scope)};
}

// Which operand of the sum is a product to be contracted into it: beside an operand that is no product.
std::optional<size_t> ElementEmitter::contractible_operand(const Instruction* sum) const {
  if (!sum->is(Opcode::kAdd) && !sum->is(Opcode::kSubtract)) return std::nullopt;
  auto holds_product = [&](const Instruction* parameter) { return products_.contains(parameter); };
  bool left = is_product(sum->operand(0), holds_product), right = is_product(sum->operand(1), holds_product);
  if (left == right) return std::nullopt;
  const size_t m = left ? 0 : 1;
  return sole_product(sum->operand(m)) ? std::optional(m) : std::nullopt;
}

// What a value at these coordinates is an element of, and which.
std::pair<const Instruction*, Coords> ElementEmitter::before_broadcasts(const Instruction* i, Coords coords) {
  if (i->shape.rank() == 0) coords.clear();
  for (; i->is(Opcode::kBroadcast); i = i->operand(0)) coords = access_relation(*i, coords, {}, vars_).reads[0].coords;
  return {i, std::move(coords)};
}

// Of a division by a value that many vectors of the loops here are divided by. (Not where it is kept: what is emitted
// before it is used may forget it, a way of a branch that ends.)
std::optional<Divisor> ElementEmitter::shared_divisor(const Instruction* i, const Coords& coords, Scope& scope) {
  constexpr int64_t kMany = 8;  // vectors: about what it takes to make one
  const bool floats = is_float(i->shape.type) && dtype_bits(i->shape.type) > 8, exact = options_.strict || !floats;
  if (!i->is(Opcode::kDivide) || exact) return std::nullopt;
  const auto [by, at] = before_broadcasts(i->operand(1), coords);
  const int64_t lanes = std::max<int64_t>(1, vector_bytes() / dtype_bytes(working_type(i->shape.type)));
  Scope& outside = home(at, scope);
  if (by->is(Opcode::kConstant) || outside.depth >= scope.depth) return std::nullopt;
  if (i->shape.element_count() < kMany * lanes * by->shape.element_count()) return std::nullopt;
  const Value d = emit(by, at, outside);
  const auto [known, fresh] = outside.divisors.try_emplace(d.v);
  if (fresh) known->second = divisor(outside.builder, d);
  return known->second;
}

// May this value and all that it needs be left out where it is not asked for? What a stage keeps may not.
bool ElementEmitter::may_be_left_out(const Instruction* i, InstructionSet& seen) const {
  constexpr size_t kMost = 50;
  if (!seen.insert(i)) return true;
  if (seen.size() > kMost || placed_.contains(i) || providers_.contains(i)) return false;
  if (is_reduction(*i) || i->is(Opcode::kGetTupleElement)) return false;
  return std::ranges::all_of(i->operands(), [&](const Instruction* o) { return may_be_left_out(o, seen); });
}

// What only this operand of a select is computed or read for, itself first. What something else needs too is none of
// it, and what is moved only with all that it is made of.
std::vector<ElementEmitter::Own> ElementEmitter::only_for(const Instruction* select, size_t operand) const {
  constexpr size_t kMost = 50;
  std::vector<Own> found;
  InstructionSet own;
  auto join = [&](const Instruction* o, bool moved) {
    if (own.contains(o) || placed_.contains(o) || providers_.contains(o)) return;
    InstructionSet seen;
    if (!is_elementwise(o->opcode) && !may_be_left_out(o, seen)) return;
    for (const Instruction* user : o->users()) {
      if (user != select && !own.contains(user)) return;
    }
    found.push_back({o, moved}), own.insert(o);
  };
  const std::span operands = select->operands();
  if (std::ranges::count(operands, operands[operand]) == 1) join(operands[operand], false);
  for (size_t at = 0; at < found.size() && found.size() < kMost; ++at) {
    const Own user = found[at];
    for (const Instruction* o : user.of->operands()) {
      if (std::ranges::find(operands, o) == operands.end()) join(o, user.moved || !is_elementwise(user.of->opcode));
    }
  }
  return found;
}

// What these need at the select's own coordinates, and others too.
void ElementEmitter::emit_shared(const std::vector<Own>& own, const Coords& coords, Scope& scope) {
  for (const Own& o : own) {
    if (o.moved || !is_elementwise(o.of->opcode)) continue;
    for (size_t k = 0; k < o.of->operand_count(); ++k) {
      if (std::ranges::find(own, o.of->operand(k), &Own::of) == own.end()) operand_at(o.of, k, coords, scope);
    }
  }
}

// A select, a side of which is long to compute and for nothing else: that is left out where it is not needed. What it
// shares with others is computed before. By a condition that is the same for several vectors, one of two sides is (exp
// of some rows of 41x129, one thread of a Zen 4: 1.35 us, with half of them 0.82; gelu of half of 200 rows of 70 8.9,
// 4.6). By one of lanes, the longer one where no lane needs it (reflections for small arguments in a logarithm of
// gamma; 25,725 probabilities of Poisson's, a Zen 4 limited to AVX2: 167 us, 96 so; where some lane needs it nearly
// always 0.98 to 1).
std::optional<Value> ElementEmitter::where_needed(const Instruction* i, const Value& condition, const Coords& coords,
                                                  Scope& scope) {
  constexpr int64_t kSeveral = 3;  // vectors: a condition that was not foreseen takes as long as one
  constexpr int64_t kLong = 2;     // functions: to leave out one does not pay for asking the lanes
  if (!i->is(Opcode::kSelect) || is_complex(i->shape.type) || !block_.empty()) return std::nullopt;
  if (llvm::isa<llvm::Constant>(condition.v)) return std::nullopt;
  int lanes = 1;
  for (const IndexExpr& c : coords) lanes = std::max(lanes, lane_count(c));
  if (lanes == 1) return std::nullopt;
  auto functions = [](const std::vector<Own>& own) {
    return std::ranges::count_if(own, [](const Own& o) { return o.of->info().price == OpPrice::kTranscendental; });
  };
  const bool same_for_all = lanes_of(condition) == 1;
  if (!same_for_all && asks_for_nan(i->operand(0))) return std::nullopt;
  std::vector<Own> yes = only_for(i, 1), no = only_for(i, 2);
  const bool leaves_yes = functions(yes) >= functions(no);
  if (same_for_all) {
    if (functions(yes) + functions(no) == 0) return std::nullopt;
    if (i->shape.element_count() < kSeveral * lanes * different_elements(i->operand(0))) return std::nullopt;
  } else {
    (leaves_yes ? no : yes).clear();
    if (functions(yes) + functions(no) < kLong) return std::nullopt;
  }
  const auto side = [&](size_t k) { return splat(scope.builder, operand_at(i, k, coords, scope), lanes); };
  emit_shared(yes, coords, scope);
  emit_shared(no, coords, scope);
  const auto one = [&](const Value& value) { return std::vector<llvm::Value*>{value.v}; };
  if (same_for_all) {
    return Value{kept(i->shape.type),
                 branch(scope, condition.v, [&] { return one(side(1)); }, [&] { return one(side(2)); })[0]};
  }
  const size_t left_side = leaves_yes ? 1 : 2;
  const Value other = side(3 - left_side);
  const auto both = [&] {
    std::vector<Value> values = {condition, other, other};
    values[left_side] = operand_at(i, left_side, coords, scope);
    align_lanes(scope.builder, values);
    return one(elementwise(scope.builder, number(), *i, values));
  };
  llvm::Value* needed = leaves_yes ? condition.v : scope.builder.CreateNot(condition.v);
  return Value{kept(i->shape.type),
               branch(scope, scope.builder.CreateOrReduce(needed), both, [&] { return one(other); })[0]};
}

// A select between two arrays that lie alike, by a condition that is known outside of the loop: the other array is not
// read. (One of two f32[1000,1000], one thread of a Zen 4: 140 us by reading both, 83; rows of 1003 in L2 7.5, 4.9.)
std::optional<Value> ElementEmitter::one_array(const Instruction* i, const Coords& coords, Scope& scope) {
  if (!i->is(Opcode::kSelect)) return std::nullopt;
  const Instruction *yes = i->operand(1), *no = i->operand(2);
  const auto alone = [&](const Instruction* o) {
    return o->is(Opcode::kParameter) && o->users().size() == 1 && buffers_.contains(o) && !providers_.contains(o);
  };
  if (yes == no || !alone(yes) || !alone(no) || !(yes->shape == no->shape)) return std::nullopt;
  const auto [condition, at] = before_broadcasts(i->operand(0), coords);
  Scope& outside = home(at, scope);
  if (condition->is(Opcode::kConstant) || outside.depth >= scope.depth) return std::nullopt;
  const Value known = emit(condition, at, outside);
  if (lanes_of(known) > 1) return std::nullopt;
  const BufferRef &a = buffers_.at(yes), &b = buffers_.at(no);
  llvm::Value*& pointer = outside.chosen[{i, known.v}];
  if (!pointer) pointer = outside.builder.CreateSelect(known.v, a.pointer, b.pointer);
  BufferRef buffer = a;
  buffer.pointer = pointer;
  buffer.alias_scope = llvm::MDNode::getMostGenericAliasScope(a.alias_scope, b.alias_scope);
  buffer.noalias = llvm::MDNode::intersect(a.noalias, b.noalias);
  buffer.read_only = a.read_only && b.read_only;
  buffer.known_in = &outside;
  return array_at(buffer, yes->shape, coords, scope);
}

// A scalar beside arrays is the same everywhere.
Value ElementEmitter::operand_at(const Instruction* user, size_t k, const Coords& coords, Scope& scope) {
  const Instruction* operand = user->operand(k);
  return emit(operand, operand->shape.rank() == 0 ? Coords{} : coords, scope);
}

Value ElementEmitter::elementwise_at(const Instruction* i, const Coords& coords, Scope& scope) {
  if (const auto contracted = contractible_operand(i)) {
    const size_t m = *contracted;
    std::vector<Value> v = factors(i->operand(m), coords, scope);
    v.push_back(operand_at(i, 1 - m, coords, scope));
    align_lanes(scope.builder, v);
    if (i->is(Opcode::kSubtract)) {
      size_t flip = m == 0 ? 2 : 0;  // a*b - c = fma(a, b, -c);  c - a*b = fma(-a, b, c)
      v[flip].v = scope.builder.CreateFNeg(v[flip].v);
    }
    return fma(scope.builder, v[0], v[1], v[2]);
  }
  if (const auto by = shared_divisor(i, coords, scope))
    return round_to_type(scope.builder, number(), quotient(scope.builder, operand_at(i, 0, coords, scope), *by));
  if (const auto value = one_array(i, coords, scope)) return *value;
  std::vector<Value> values;
  for (size_t k = 0; k < i->operand_count(); ++k) {
    values.push_back(operand_at(i, k, coords, scope));
    if (k > 0) continue;
    if (const auto value = where_needed(i, values[0], coords, scope)) return *value;
  }
  align_lanes(scope.builder, values);
  return elementwise(scope.builder, number(), *i, values);
}

}  // namespace hlojit::codegen
