#include "codegen/nest/element_emitter.h"

#include <algorithm>

#include <fmt/format.h>
#include <llvm/IR/Module.h>

#include "codegen/nest/reducer.h"

namespace hlojit::codegen {
namespace {

bool contains(const Ints& list, int64_t x) { return std::find(list.begin(), list.end(), x) != list.end(); }

[[noreturn]] void unsupported(const Instruction* i, std::string_view what) {
  throw Error(ErrorKind::kUnsupported, i->location, fmt::format("{} {} is not compiled yet", op_name(i->opcode), what));
}

// Operands of one op brought to the same lane count.
void align_lanes(llvm::IRBuilderBase& b, std::vector<Value>& values) {
  int lanes = 1;
  for (const Value& v : values) lanes = std::max(lanes, lanes_of(v));
  for (Value& v : values) v = splat(b, v, lanes);
}

// A product, maybe moved or negated on its way.
bool is_product(const Instruction* i) {
  while (i->operand_count() == 1 && (i->is(Opcode::kNegate) || i->info().op_class == OpClass::kMoves)) i = i->operand(0);
  return i->is(Opcode::kMultiply);
}

// Which operand of the sum is a product to be contracted into it: one that nothing else uses, beside an
// operand that is no product. Of two products one would be rounded and the other not: x*y - y*x is 0.
std::optional<size_t> contractible_operand(const Instruction* sum) {
  bool adds = sum->is(Opcode::kAdd) || sum->is(Opcode::kSubtract);
  if (!adds || (sum->shape.type != DType::kF32 && sum->shape.type != DType::kF64)) return std::nullopt;
  bool left = is_product(sum->operand(0)), right = is_product(sum->operand(1));
  if (left == right) return std::nullopt;
  size_t m = left ? 0 : 1;
  const Instruction* product = sum->operand(m);
  return product->is(Opcode::kMultiply) && product->users().size() == 1 ? std::optional(m) : std::nullopt;
}

}  // namespace

ElementEmitter::ElementEmitter(Scope& root, const EmitOptions& options, VarSource& vars)
    : root_(root), options_(options), vars_(vars) {}

Value ElementEmitter::emit(const Instruction* i, const Coords& coords, Scope& scope) {
  if (auto it = providers_.find(i); it != providers_.end()) return it->second(*this, scope, coords);
  Scope& at = home(coords, scope);
  for (const auto& [known, value] : at.memo[i]) {
    if (known == coords) return value;
  }
  auto kept = kept_.find(i);
  Value value = kept == kept_.end() ? compute(i, coords, at) : keep(kept->second, i, coords, at);
  at.memo[i].emplace_back(coords, value);
  return value;
}

// Narrow floats are kept as the f32 their register holds.
Value ElementEmitter::keep(KeptRow& kept, const Instruction* i, const Coords& coords, Scope& scope) {
  Position p = kept.place(coords);
  DType stored = is_narrow_float(i->shape.type) ? DType::kF32 : i->shape.type;
  auto in = [&](const std::vector<Coords>& rows) { return std::find(rows.begin(), rows.end(), p.row) != rows.end(); };
  auto typed = [](Value v, DType type) { return v.type = type, v; };
  if (in(kept.complete)) return typed(load(scope, kept.buffer, stored, p.at), i->shape.type);
  Value value = compute(i, coords, scope);
  store(scope, kept.buffer, p.at, typed(value, stored));
  if (!in(kept.writing)) kept.writing.push_back(p.row);
  return value;
}

void ElementEmitter::complete_rows() {
  for (auto& [instruction, kept] : kept_) {
    kept.complete.insert(kept.complete.end(), kept.writing.begin(), kept.writing.end());
    kept.writing.clear();
  }
}

Value ElementEmitter::compute(const Instruction* i, const Coords& coords, Scope& scope) {
  using enum Opcode;
  switch (i->opcode) {
    case kParameter: return parameter(i, coords, scope);
    case kConstant: return constant_at(i, coords, scope);
    case kIota: {
      llvm::Value* n = index(coords[static_cast<size_t>(i->attrs.dimensions[0])], scope);
      return from_index(scope.builder, n, i->shape.type);
    }
    case kConcatenate: return concatenate(i, coords, scope);
    case kPad: return pad(i, coords, scope);
    case kGather: return gather(i, coords, scope);
    case kDynamicSlice: return dynamic_slice(i, coords, scope);
    case kDynamicUpdateSlice: return dynamic_update_slice(i, coords, scope);
    case kReduce:
    case kDot: return reduction(i, coords, scope)[0];
    case kGetTupleElement: {
      if (!i->operand(0)->is(kReduce)) unsupported(i, "of this operand inside a kernel");
      return reduction(i->operand(0), coords, scope)[static_cast<size_t>(i->attrs.tuple_index)];
    }
    case kBitcastConvert:
      if (i->operand(0)->shape.dims != i->shape.dims) return bitcast_convert(i, coords, scope);
      break;
    case kMap: {
      std::vector<Value> arguments;
      for (Instruction* o : i->operands()) arguments.push_back(emit(o, coords, scope));
      align_lanes(scope.builder, arguments);
      return inline_computation(scope.builder, number(), *i->to_apply(), arguments)[0];
    }
    default: break;
  }
  if (is_elementwise(i->opcode) && !i->is(kCopy)) return elementwise_at(i, coords, scope);
  if (i->operand_count() == 1) {
    if (auto c = operand_coords(*i, 0, coords)) return emit(i->operand(0), *c, scope);
  }
  unsupported(i, "inside a kernel");
}

Value ElementEmitter::parameter(const Instruction* i, const Coords& coords, Scope& scope) {
  auto it = buffers_.find(i);
  if (it == buffers_.end()) unsupported(i, "without a buffer");
  return load(scope, it->second, i->shape.type, linear_index(i->shape, coords));
}

Value ElementEmitter::constant_at(const Instruction* i, const Coords& coords, Scope& scope) {
  const Literal& literal = *i->literal;
  if (literal.shape().element_count() == 1 || literal.is_splat()) return constant(scope.builder, literal, 0);
  // A small array: bytes in the code's own data, row-major.
  llvm::Module* module = scope.builder.GetInsertBlock()->getModule();
  llvm::StringRef bytes(reinterpret_cast<const char*>(literal.bytes().data()), literal.bytes().size());
  llvm::Constant* data = llvm::ConstantDataArray::getString(module->getContext(), bytes, false);
  auto* global = new llvm::GlobalVariable(*module, data->getType(), true, llvm::GlobalValue::PrivateLinkage, data, i->name);
  global->setAlignment(llvm::Align(64));
  return load(scope, {global, nullptr, nullptr}, literal.shape().type, linearize(literal.shape().dims, coords));
}

Value ElementEmitter::elementwise_at(const Instruction* i, const Coords& coords, Scope& scope) {
  auto operand = [&](const Instruction* user, size_t k) {
    return emit(user->operand(k), *operand_coords(*user, k, coords), scope);
  };
  auto contracted = options_.strict ? std::nullopt : contractible_operand(i);
  if (contracted) {
    size_t m = *contracted;
    const Instruction* product = i->operand(m);
    std::vector<Value> v = {operand(product, 0), operand(product, 1), operand(i, 1 - m)};
    align_lanes(scope.builder, v);
    if (i->is(Opcode::kSubtract)) {
      size_t flip = m == 0 ? 2 : 0;  // a*b - c = fma(a, b, -c);  c - a*b = fma(-a, b, c)
      v[flip].v = scope.builder.CreateFNeg(v[flip].v);
    }
    return fma(scope.builder, v[0], v[1], v[2]);
  }
  std::vector<Value> values;
  for (size_t k = 0; k < i->operand_count(); ++k) values.push_back(operand(i, k));
  align_lanes(scope.builder, values);
  return elementwise(scope.builder, number(), *i, values);
}

// Wide to narrow: the part of the element the minor coordinate names. Narrow to wide: parts joined.
Value ElementEmitter::bitcast_convert(const Instruction* i, const Coords& coords, Scope& scope) {
  llvm::IRBuilder<>& b = scope.builder;
  DType from = i->operand(0)->shape.type, to = i->shape.type;
  unsigned from_bits = static_cast<unsigned>(8 * dtype_bytes(from)), to_bits = static_cast<unsigned>(8 * dtype_bytes(to));
  auto as_integer = [&](llvm::Value* v, unsigned bits) {
    return b.CreateBitCast(v, v->getType()->getWithNewType(b.getIntNTy(bits)));
  };
  auto finish = [&](llvm::Value* v) {
    llvm::Type* t = v->getType()->getWithNewType(storage_type(b, to, 1));
    return from_storage(b, to, b.CreateBitCast(v, t));
  };
  if (from_bits > to_bits) {
    Coords shared(coords.begin(), coords.end() - 1);
    llvm::Value* whole = as_integer(to_storage(b, emit(i->operand(0), shared, scope)), from_bits);
    llvm::Value* part = index(coords.back(), scope);
    int lanes = std::max(lanes_of({from, whole}), lanes_of({from, part}));
    whole = splat(b, {from, whole}, lanes).v;
    part = splat(b, {from, b.CreateIntCast(part, part->getType()->getWithNewType(b.getIntNTy(from_bits)), false)}, lanes).v;
    llvm::Value* shift = b.CreateMul(part, llvm::ConstantInt::get(part->getType(), to_bits));
    return finish(b.CreateTrunc(b.CreateLShr(whole, shift), whole->getType()->getWithNewType(b.getIntNTy(to_bits))));
  }
  llvm::Value* joined = nullptr;
  for (unsigned k = 0; k < to_bits / from_bits; ++k) {
    Coords part = coords;
    part.push_back(IndexExpr(k));
    llvm::Value* v = as_integer(to_storage(b, emit(i->operand(0), part, scope)), from_bits);
    v = b.CreateZExt(v, v->getType()->getWithNewType(b.getIntNTy(to_bits)));
    if (k > 0) v = b.CreateShl(v, llvm::ConstantInt::get(v->getType(), uint64_t{k} * from_bits));
    joined = joined ? b.CreateOr(joined, v) : v;
  }
  return finish(joined);
}

// The piece whose range holds the coordinate; where the loops could not be cut at the borders, a
// chain of selects over clamped reads.
Value ElementEmitter::concatenate(const Instruction* i, const Coords& coords, Scope& scope) {
  auto d = static_cast<size_t>(i->attrs.dimensions[0]);
  const IndexExpr& at = coords[d];
  Range range = at.range();
  llvm::IRBuilder<>& b = scope.builder;
  Value result;
  int64_t start = 0;
  for (Instruction* piece : i->operands()) {
    int64_t size = piece->shape.dims[d], end = start + size;
    int64_t begin = start;
    start = end;
    if (size == 0 || range.hi < begin || range.lo >= end) continue;
    Coords c = coords;
    c[d] = at - IndexExpr(begin);
    if (range.lo >= begin && range.hi < end) return emit(piece, c, scope);
    llvm::Value* n = index(c[d], scope);
    auto integer = [&](int64_t v) { return llvm::ConstantInt::get(n->getType(), static_cast<uint64_t>(v), true); };
    llvm::Value* inside = b.CreateICmpSGE(n, integer(0));
    llvm::Value* clamped = b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, n, integer(0));
    clamped = b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, clamped, integer(size - 1));
    c[d] = symbol(scope, clamped, Range{0, size - 1});
    Value v = emit(piece, c, scope);
    if (!result) {
      result = v;
      continue;
    }
    std::vector<Value> both = {{DType::kPred, inside}, v, result};
    align_lanes(b, both);
    result = select(b, both[0].v, both[1], both[2]);
  }
  return result;
}

Value ElementEmitter::pad(const Instruction* i, const Coords& coords, Scope& scope) {
  llvm::IRBuilder<>& b = scope.builder;
  const Instruction* operand = i->operand(0);
  auto filler = [&] { return emit(i->operand(1), {}, scope); };
  if (operand->shape.element_count() == 0) return filler();
  Coords c = coords;
  llvm::Value* inside = nullptr;
  auto require = [&](llvm::Value* condition) {
    if (!inside) {
      inside = condition;
      return;
    }
    std::vector<Value> both = {{DType::kPred, inside}, {DType::kPred, condition}};
    align_lanes(b, both);
    inside = b.CreateAnd(both[0].v, both[1].v);
  };
  for (size_t d = 0; d < coords.size(); ++d) {
    const PadDim& p = i->attrs.padding[d];
    int64_t n = operand->shape.dims[d];
    c[d] = coords[d] - IndexExpr(p.low);
    if (p.interior > 0) {
      IndexExpr phase = mod(c[d], p.interior + 1);
      if (phase.is_constant() && phase.constant() != 0) return filler();
      if (!phase.is_constant()) {
        llvm::Value* v = index(phase, scope);
        require(b.CreateICmpEQ(v, llvm::Constant::getNullValue(v->getType())));
      }
      c[d] = floordiv(c[d], p.interior + 1);
    }
    Range r = c[d].range();
    if (r.lo >= 0 && r.hi < n) continue;
    if (r.hi < 0 || r.lo >= n) return filler();
    llvm::Value* v = index(c[d], scope);
    auto integer = [&](int64_t x) { return llvm::ConstantInt::get(v->getType(), static_cast<uint64_t>(x), true); };
    require(b.CreateICmpULT(v, integer(n)));  // negative is huge unsigned
    llvm::Value* clamped = b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, v, integer(0));
    clamped = b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, clamped, integer(n - 1));
    c[d] = symbol(scope, clamped, Range{0, n - 1});
  }
  Value value = emit(operand, c, scope);
  if (!inside) return value;
  std::vector<Value> all = {{DType::kPred, inside}, value, filler()};
  align_lanes(b, all);
  return select(b, all[0].v, all[1], all[2]);
}

llvm::Value* ElementEmitter::clamp_index(Scope& scope, const Value& start, int64_t limit) {
  llvm::IRBuilder<>& b = scope.builder;
  llvm::Type* wide = start.v->getType()->getWithNewType(b.getInt64Ty());
  auto integer = [&](int64_t v) { return llvm::ConstantInt::get(wide, static_cast<uint64_t>(v), true); };
  llvm::Value* v = b.CreateIntCast(start.v, wide, is_signed(start.type));
  if (is_signed(start.type)) {
    v = b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, v, integer(0));
    return b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, v, integer(limit));
  }
  return b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, v, integer(limit));
}

Value ElementEmitter::dynamic_slice(const Instruction* i, const Coords& coords, Scope& scope) {
  Coords c = coords;
  for (size_t d = 0; d < coords.size(); ++d) {
    int64_t slack = i->operand(0)->shape.dims[d] - i->shape.dims[d];
    if (slack <= 0) continue;
    Value start = emit(i->operand(d + 1), {}, scope);
    c[d] = coords[d] + symbol(root_, clamp_index(root_, start, slack), Range{0, slack});
  }
  return emit(i->operand(0), c, scope);
}

std::vector<IndexExpr> update_starts(ElementEmitter& emitter, const Instruction* update, Scope& scope) {
  std::vector<IndexExpr> starts;
  for (size_t d = 0; d < update->shape.dims.size(); ++d) {
    int64_t slack = update->shape.dims[d] - update->operand(1)->shape.dims[d];
    if (slack <= 0) {
      starts.push_back(0);
      continue;
    }
    Value start = emitter.emit(update->operand(d + 2), {}, scope);
    llvm::IRBuilder<>& b = scope.builder;
    llvm::Value* v = b.CreateIntCast(start.v, b.getInt64Ty(), is_signed(start.type));
    if (is_signed(start.type)) {
      v = b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, v, b.getInt64(0));
      v = b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, v, b.getInt64(static_cast<uint64_t>(slack)));
    } else {
      v = b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, v, b.getInt64(static_cast<uint64_t>(slack)));
    }
    starts.push_back(emitter.symbol(scope, v, Range{0, slack}));
  }
  return starts;
}

// In the middle of a kernel: the update where the element lies in its box, else the operand.
Value ElementEmitter::dynamic_update_slice(const Instruction* i, const Coords& coords, Scope& scope) {
  llvm::IRBuilder<>& b = scope.builder;
  std::vector<IndexExpr> starts = update_starts(*this, i, root_);
  Coords c = coords;
  llvm::Value* inside = nullptr;
  if (i->operand(1)->shape.element_count() == 0) return emit(i->operand(0), coords, scope);
  for (size_t d = 0; d < coords.size(); ++d) {
    int64_t n = i->operand(1)->shape.dims[d];
    if (n == i->shape.dims[d]) continue;
    llvm::Value* v = index(coords[d] - starts[d], scope);
    auto integer = [&](int64_t x) { return llvm::ConstantInt::get(v->getType(), static_cast<uint64_t>(x), true); };
    std::vector<Value> both = {{DType::kPred, b.CreateICmpULT(v, integer(n))}};
    if (inside) {
      both.push_back({DType::kPred, inside});
      align_lanes(b, both);
      inside = b.CreateAnd(both[0].v, both[1].v);
    } else {
      inside = both[0].v;
    }
    llvm::Value* clamped = b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, v, integer(0));
    clamped = b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, clamped, integer(n - 1));
    c[d] = symbol(scope, clamped, Range{0, n - 1});
  }
  Value update = emit(i->operand(1), c, scope);
  if (!inside) return update;
  std::vector<Value> all = {{DType::kPred, inside}, update, emit(i->operand(0), coords, scope)};
  align_lanes(b, all);
  return select(b, all[0].v, all[1], all[2]);
}

Value ElementEmitter::gather(const Instruction* i, const Coords& coords, Scope& scope) {
  const GatherDims& g = i->attrs.gather;
  const Shape& operand = i->operand(0)->shape;
  const Shape& indices = i->operand(1)->shape;
  Coords batch;
  for (size_t d = 0; d < coords.size(); ++d) {
    if (!contains(g.offset_dims, static_cast<int64_t>(d))) batch.push_back(coords[d]);
  }
  Coords c(operand.dims.size(), IndexExpr(0));
  bool explicit_vector = g.index_vector_dim < indices.rank();
  for (size_t k = 0; k < g.start_index_map.size(); ++k) {
    auto d = static_cast<size_t>(g.start_index_map[k]);
    int64_t limit = operand.dims[d] - g.slice_sizes[d];
    Coords at = batch;
    if (explicit_vector) at.insert(at.begin() + g.index_vector_dim, IndexExpr(static_cast<int64_t>(k)));
    if (limit <= 0) continue;
    Value start = emit(i->operand(1), at, scope);
    Scope& where = home(at, scope);
    c[d] = symbol(where, clamp_index(where, start, limit), Range{0, limit});
  }
  for (size_t k = 0; k < g.operand_batching_dims.size(); ++k) {
    // Batch coordinates skip the index vector's dimension.
    int64_t at = g.start_indices_batching_dims[k];
    if (explicit_vector && at > g.index_vector_dim) --at;
    c[static_cast<size_t>(g.operand_batching_dims[k])] = batch[static_cast<size_t>(at)];
  }
  size_t next = 0;
  for (size_t d = 0; d < operand.dims.size(); ++d) {
    auto n = static_cast<int64_t>(d);
    if (contains(g.collapsed_slice_dims, n) || contains(g.operand_batching_dims, n)) continue;
    c[d] = c[d] + coords[static_cast<size_t>(g.offset_dims[next++])];
  }
  return emit(i->operand(0), c, scope);
}

}  // namespace hlojit::codegen
