// Index expressions to IR, loads and stores: the part of ElementEmitter that turns addresses into
// memory accesses. The coefficient of the lane variable decides how a vector moves: 0 a splat, 1
// contiguous, -1 reversed, a block of an unrolled digit transposed in registers, else a gather.
#include <algorithm>
#include <bit>

#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/MDBuilder.h>

#include "codegen/nest/element_emitter.h"
#include "codegen/nest/packed.h"
#include "codegen/number/parts.h"

namespace hlojit::codegen {
namespace {

// Lanes by value: v[0..n) as one vector of 0..n-1.
llvm::Constant* lane_numbers(llvm::IRBuilderBase& b, int lanes) {
  std::vector<llvm::Constant*> numbers;
  for (int k = 0; k < lanes; ++k) numbers.push_back(b.getInt64(static_cast<uint64_t>(k)));
  return llvm::ConstantVector::get(numbers);
}

llvm::Value* reversed(llvm::IRBuilderBase& b, llvm::Value* v, int lanes) {
  std::vector<int> mask;
  for (int k = 0; k < lanes; ++k) mask.push_back(lanes - 1 - k);
  return b.CreateShuffleVector(v, mask);
}

// Eklundh: swaps halves of pairs of rows, log2(n) rounds, two-input shuffles only.
void transpose_square(llvm::IRBuilderBase& b, std::vector<llvm::Value*>& rows) {
  int n = static_cast<int>(rows.size());
  for (int h = n / 2; h >= 1; h /= 2) {
    for (int i = 0; i < n; ++i) {
      if (i & h) continue;
      auto low = static_cast<size_t>(i), high = static_cast<size_t>(i + h);
      std::vector<int> first, second;
      for (int j = 0; j < n; ++j) {
        first.push_back(j & h ? n + j - h : j);
        second.push_back(j & h ? n + j : j + h);
      }
      llvm::Value* x = b.CreateShuffleVector(rows[low], rows[high], first);
      llvm::Value* y = b.CreateShuffleVector(rows[low], rows[high], second);
      rows[low] = x;
      rows[high] = y;
    }
  }
}

llvm::FixedVectorType* vector_of(llvm::Type* element, int64_t lanes) {
  return llvm::FixedVectorType::get(element, static_cast<unsigned>(lanes));
}

// Lanes at addresses of their own, a masked one left out (zero). No machine moves 16 bytes so: of c128 each part goes
// on its own. `annotate` is told of each access.
using Annotate = llvm::function_ref<void(llvm::Instruction*)>;

Value gather(llvm::IRBuilderBase& b, DType type, llvm::Value* pointers, llvm::Value* mask, Annotate annotate) {
  int lanes = static_cast<int>(llvm::cast<llvm::FixedVectorType>(mask->getType())->getNumElements());
  auto part = [&](llvm::Type* element, llvm::Value* from) {
    llvm::Type* whole = vector_of(element, lanes);
    llvm::Align align(element->getScalarSizeInBits() / 8);
    auto* l = b.CreateMaskedGather(whole, from, align, mask, llvm::Constant::getNullValue(whole));
    annotate(l);
    return l;
  };
  if (type != DType::kC128) return from_storage(b, type, part(storage_type(b, type, 1), pointers));
  llvm::Type* f64 = b.getDoubleTy();
  llvm::Value* imaginary = b.CreateConstGEP1_64(f64, pointers, 1);
  llvm::Value* real = part(f64, pointers);
  return {type, real, part(f64, imaginary)};
}

void scatter(llvm::IRBuilderBase& b, const Value& value, llvm::Value* pointers, llvm::Value* mask, Annotate annotate) {
  auto part = [&](llvm::Value* v, llvm::Value* to) {
    annotate(b.CreateMaskedScatter(v, to, llvm::Align(v->getType()->getScalarSizeInBits() / 8), mask));
  };
  if (value.type != DType::kC128) return part(to_storage(b, value), pointers);
  part(value.v, pointers);
  part(value.imag, b.CreateConstGEP1_64(b.getDoubleTy(), pointers, 1));
}

}  // namespace

IndexExpr ElementEmitter::symbol(Scope& scope, llvm::Value* value, Range range) {
  int id = vars_.fresh();
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
  bound_[id] = {&scope, value, vector ? static_cast<int>(vector->getNumElements()) : 0};
  return IndexExpr::var(id, range);
}

void ElementEmitter::begin_block(Scope& scope, const Unroll& unroll) {
  block_.clear();
  block_ids_.clear();
  block_loads_.clear();
  for (int64_t k = 0; k < unroll.count; ++k) {
    int id = vars_.fresh();
    bound_[id] = {&scope, scope.builder.getInt64(static_cast<uint64_t>(k)), 0};
    block_ids_.push_back(id);
    // The range of the whole digit: a variable of one value would be folded away.
    block_.push_back(IndexExpr::var(id, unroll.count));
  }
}

Scope& ElementEmitter::deepest(const IndexExpr& expr, Scope& scope) {
  Scope* best = &root_;
  for (int v : expr.variables()) {
    auto it = bound_.find(v);
    if (it != bound_.end() && it->second.scope->depth > best->depth) best = it->second.scope;
  }
  return best->depth > scope.depth ? scope : *best;
}

Scope& ElementEmitter::home(const Coords& coords, Scope& scope) {
  Scope* best = &root_;
  for (const IndexExpr& e : coords) {
    Scope& s = deepest(e, scope);
    if (s.depth > best->depth) best = &s;
  }
  return *best;
}

int ElementEmitter::lane_var(const IndexExpr& expr) const {
  for (int v : expr.variables()) {
    auto it = bound_.find(v);
    if (it != bound_.end() && it->second.lanes > 0 && !it->second.value) return v;
  }
  return -1;
}

int ElementEmitter::lane_count(const IndexExpr& expr) const {
  int lanes = 1;
  for (int v : expr.variables()) {
    auto it = bound_.find(v);
    if (it != bound_.end()) lanes = std::max(lanes, it->second.lanes);
  }
  return lanes;
}

// Depends on a variable whose value is a vector already (gathered indices).
bool ElementEmitter::vector_bound(const IndexExpr& expr) const {
  for (int v : expr.variables()) {
    auto it = bound_.find(v);
    if (it != bound_.end() && it->second.lanes > 0 && it->second.value) return true;
  }
  return false;
}

llvm::Value* ElementEmitter::atom_value(const IndexExpr::Atom& atom, Scope& scope) {
  llvm::IRBuilder<>& b = scope.builder;
  if (atom.kind == IndexExpr::AtomKind::kVar) {
    const Bound& bound = bound_.at(atom.var);
    return bound.value ? bound.value : lane_numbers(b, bound.lanes);
  }
  llvm::Value* x = index(*atom.operand, scope);
  llvm::Value* w = llvm::ConstantInt::get(x->getType(), static_cast<uint64_t>(atom.width));
  bool divides = atom.kind == IndexExpr::AtomKind::kFloorDiv;
  if (atom.operand->range().lo >= 0) return divides ? b.CreateUDiv(x, w) : b.CreateURem(x, w);
  llvm::Value* r = b.CreateSRem(x, w);
  llvm::Value* negative = b.CreateICmpSLT(r, llvm::Constant::getNullValue(r->getType()));
  if (!divides) return b.CreateSelect(negative, b.CreateAdd(r, w), r);
  llvm::Value* q = b.CreateSDiv(x, w);
  return b.CreateSelect(negative, b.CreateSub(q, llvm::ConstantInt::get(q->getType(), 1)), q);
}

llvm::Value* ElementEmitter::index(const IndexExpr& expr, Scope& scope) {
  struct Part {
    Scope* scope;
    const IndexExpr::Term* term;
  };
  std::vector<Part> parts;
  for (const IndexExpr::Term& t : expr.terms()) {
    IndexExpr alone;
    if (t.atom->kind == IndexExpr::AtomKind::kVar)
      alone = IndexExpr::var(t.atom->var, t.atom->range);
    else
      alone = *t.atom->operand;
    parts.push_back({&deepest(alone, scope), &t});
  }
  std::stable_sort(parts.begin(), parts.end(),
                   [](const Part& x, const Part& y) { return x.scope->depth < y.scope->depth; });
  int lanes = lane_count(expr);
  llvm::Value* sum = nullptr;
  for (const Part& p : parts) {
    llvm::IRBuilder<>& b = p.scope->builder;
    llvm::Value* v = atom_value(*p.term->atom, *p.scope);
    if (p.term->coefficient != 1) {
      v = b.CreateMul(v, llvm::ConstantInt::get(v->getType(), static_cast<uint64_t>(p.term->coefficient), true));
    }
    if (sum && sum->getType() != v->getType()) {
      auto widen = [&](llvm::Value* s) {
        return s->getType()->isVectorTy() ? s : b.CreateVectorSplat(static_cast<unsigned>(lanes), s);
      };
      sum = widen(sum);
      v = widen(v);
    }
    sum = sum ? b.CreateAdd(sum, v) : v;
  }
  llvm::IRBuilder<>& b = scope.builder;
  if (!sum) return b.getInt64(static_cast<uint64_t>(expr.constant()));
  if (expr.constant() == 0) return sum;
  Scope& last = *parts.back().scope;
  return last.builder.CreateAdd(sum,
                                llvm::ConstantInt::get(sum->getType(), static_cast<uint64_t>(expr.constant()), true));
}

void ElementEmitter::annotate(llvm::Instruction* access, const BufferRef& buffer) {
  if (buffer.alias_scope) access->setMetadata(llvm::LLVMContext::MD_alias_scope, buffer.alias_scope);
  if (buffer.noalias) access->setMetadata(llvm::LLVMContext::MD_noalias, buffer.noalias);
}

llvm::Value* ElementEmitter::address_of(Scope& scope, const BufferRef& buffer, llvm::Type* element,
                                        const IndexExpr& address) {
  return scope.builder.CreateGEP(element, buffer.pointer, index(address, scope));
}

std::optional<Value> ElementEmitter::load_block(Scope& scope, const BufferRef& buffer, DType type,
                                                const IndexExpr& address) {
  int lane = lane_var(address);
  auto stride = address.coefficient(lane);
  if (block_ids_.empty() || !stride || *stride <= 1) return std::nullopt;
  size_t k = 0;
  while (k < block_ids_.size() && !address.depends_on(block_ids_[k])) ++k;
  if (k == block_ids_.size() || address.coefficient(block_ids_[k]) != 1) return std::nullopt;
  auto count = static_cast<int64_t>(block_ids_.size());
  int lanes = lane_count(address);
  if (count != lanes && *stride != count) return std::nullopt;

  std::vector<std::optional<IndexExpr>> zero(static_cast<size_t>(std::max(lane, block_ids_[k])) + 1);
  zero[static_cast<size_t>(lane)] = IndexExpr(0);
  zero[static_cast<size_t>(block_ids_[k])] = IndexExpr(0);
  IndexExpr base = address.substitute(zero);
  llvm::IRBuilder<>& b = scope.builder;
  for (const BlockLoad& known : block_loads_) {
    if (known.scope == &scope && known.pointer == buffer.pointer && known.address == base) {
      return from_storage(b, type, known.values[k]);
    }
  }
  llvm::Type* element = storage_type(b, type, 1);
  llvm::Align align(static_cast<uint64_t>(dtype_bytes(type)));
  std::vector<llvm::Value*> values;
  if (*stride == count) {
    // The whole block is one run of memory: load it and pick every count-th element.
    auto* wide =
        b.CreateAlignedLoad(vector_of(element, lanes * count), address_of(scope, buffer, element, base), align);
    annotate(wide, buffer);
    for (int64_t j = 0; j < count; ++j) {
      std::vector<int> mask;
      for (int l = 0; l < lanes; ++l) mask.push_back(static_cast<int>(l * count + j));
      values.push_back(b.CreateShuffleVector(wide, mask));
    }
  } else {
    for (int l = 0; l < lanes; ++l) {
      auto* row = b.CreateAlignedLoad(vector_of(element, count),
                                      address_of(scope, buffer, element, base + IndexExpr(l * *stride)), align);
      annotate(row, buffer);
      values.push_back(row);
    }
    transpose_square(b, values);
  }
  block_loads_.push_back({&scope, buffer.pointer, base, values});
  return from_storage(b, type, values[k]);
}

namespace {

// Columns of the rows, each given as `per` elements, in the order of the rows: rows `per` apart stand side
// by side in a vector, the squares in it are transposed at once.
std::vector<llvm::Value*> columns_of(llvm::IRBuilderBase& b, const std::vector<llvm::Value*>& rows, int per) {
  std::vector<llvm::Value*> columns;
  for (int l = 0; l < per; ++l) {
    std::vector<llvm::Value*> beside;
    for (size_t r = static_cast<size_t>(l); r < rows.size(); r += static_cast<size_t>(per)) beside.push_back(rows[r]);
    columns.push_back(joined(b, beside));
  }
  const auto n = static_cast<int>(rows.size());
  for (int h = per / 2; h >= 1; h /= 2) {
    for (int i = 0; i < per; ++i) {
      if (i & h) continue;
      std::vector<int> first, second;
      for (int j = 0; j < n; ++j) {
        first.push_back(j & h ? n + j - h : j);
        second.push_back(j & h ? n + j : j + h);
      }
      llvm::Value *&low = columns[static_cast<size_t>(i)], *&high = columns[static_cast<size_t>(i + h)];
      llvm::Value* x = b.CreateShuffleVector(low, high, first);
      high = b.CreateShuffleVector(low, high, second);
      low = x;
    }
  }
  return columns;
}

}  // namespace

// Lanes in rows of their own: the elements next to each other in a row are mostly asked for one after the other, so
// four (two of 8 bytes) of each row are loaded and transposed. (One by one, rows of 9 took 1.3 cycles an element.)
// Backwards if the last ones came so; never beyond the buffer.
std::optional<Value> ElementEmitter::load_rows(Scope& scope, const BufferRef& buffer, DType type,
                                               const IndexExpr& address) {
  const int lane = lane_var(address), bytes = static_cast<int>(dtype_bytes(type)), per = bytes == 8 ? 2 : 4;
  if (lane < 0 || vector_bound(address) || packs(buffer, type) || bytes < 2 || bytes > 8) return std::nullopt;
  auto stride = address.coefficient(lane);
  const int lanes = lane_count(address), native = std::min(lanes, vector_bytes() / std::max(bytes, 4));
  if (!stride || *stride <= kFewStrides || native < 2 * per) return std::nullopt;
  if (std::ranges::any_of(block_ids_, [&](int id) { return address.depends_on(id); })) return std::nullopt;
  auto apart = [](const IndexExpr& x, const IndexExpr& y) -> std::optional<int64_t> {
    IndexExpr d = x - y;
    return d.terms().empty() ? std::optional(d.constant()) : std::nullopt;
  };
  llvm::IRBuilder<>& b = scope.builder;
  int64_t behind = 0;  // the first element loaded
  for (const RowLoad& known : scope.rows) {
    auto at = known.pointer == buffer.pointer ? apart(address, known.address) : std::nullopt;
    if (!at || std::ssize(known.values) != per) continue;
    if (*at >= 0 && *at < per) return from_storage(b, type, known.values[static_cast<size_t>(*at)]);
    if (*at == -1) behind = per - 1;
  }
  const Range range = address.range();
  behind = std::max(behind, range.hi + per - buffer.elements);
  // (A range may be wider than what is read, and end behind the buffer.)
  if (range.lo < behind || behind >= per || buffer.elements < per) return std::nullopt;
  IndexExpr start = address - IndexExpr(behind);
  llvm::Type* element = storage_type(b, type, 1);
  std::vector<std::vector<llvm::Value*>> parts(static_cast<size_t>(per));
  for (int from = 0; from < lanes; from += native) {
    std::vector<llvm::Value*> rows;
    for (int l = from; l < from + native; ++l) {
      std::vector<std::optional<IndexExpr>> row(static_cast<size_t>(lane) + 1);
      row[static_cast<size_t>(lane)] = IndexExpr(l);
      auto* x = b.CreateAlignedLoad(vector_of(element, per), address_of(scope, buffer, element, start.substitute(row)),
                                    llvm::Align(static_cast<uint64_t>(bytes)));
      annotate(x, buffer);
      rows.push_back(x);
    }
    auto columns = columns_of(b, rows, per);
    for (size_t k = 0; k < columns.size(); ++k) parts[k].push_back(columns[k]);
  }
  RowLoad made{buffer.pointer, start, {}};
  for (auto& p : parts) made.values.push_back(joined(b, p));
  scope.rows.push_back(made);
  return from_storage(b, type, made.values[static_cast<size_t>(behind)]);
}

// Every stride-th element, where stride elements make an integer: whole groups are loaded and each lane
// shifts its element out (one row of a bf16 pair in T(8,128)(2,1), every second f32). The buffer must
// consist of whole groups, so that nothing behind its end is read.
std::optional<Value> ElementEmitter::load_groups(Scope& scope, const BufferRef& buffer, DType type,
                                                 const IndexExpr& address, int64_t stride) {
  int64_t bytes = dtype_bytes(type);
  bool fits = stride > 1 && stride * bytes <= 8 && std::has_single_bit(static_cast<uint64_t>(stride * bytes));
  if (!fits || buffer.elements == 0 || buffer.elements % stride != 0) return std::nullopt;
  IndexExpr phase = mod(address, stride);
  if (lane_count(phase) > 1) return std::nullopt;
  IndexExpr base = address - phase;
  int lane = lane_var(base);
  std::vector<std::optional<IndexExpr>> first(static_cast<size_t>(lane) + 1);
  first[static_cast<size_t>(lane)] = IndexExpr(0);
  llvm::IRBuilder<>& b = scope.builder;
  int lanes = lane_count(address);
  auto group_bits = static_cast<unsigned>(8 * stride * bytes);
  auto* groups = vector_of(b.getIntNTy(group_bits), lanes);
  llvm::Type* element = storage_type(b, type, 1);
  auto* wide = b.CreateAlignedLoad(groups, address_of(scope, buffer, element, base.substitute(first)),
                                   llvm::Align(static_cast<uint64_t>(bytes)));
  annotate(wide, buffer);
  llvm::Value* shift = b.CreateMul(index(phase, scope), b.getInt64(static_cast<uint64_t>(8 * bytes)));
  shift = b.CreateVectorSplat(static_cast<unsigned>(lanes), b.CreateTrunc(shift, b.getIntNTy(group_bits)));
  llvm::Value* narrow =
      b.CreateTrunc(b.CreateLShr(wide, shift), vector_of(b.getIntNTy(static_cast<unsigned>(8 * bytes)), lanes));
  return from_storage(b, type, b.CreateBitCast(narrow, vector_of(element, lanes)));
}

// Every few elements, forwards or backwards: the vectors from the first of them to the last, the last vector
// moved back to end there, and each lane picked out of the one that has it. Nothing beyond is read. Eight
// lanes of stride 2 took 10 cycles as a gather, take 2 so.
std::optional<Value> ElementEmitter::load_strided(Scope& scope, const BufferRef& buffer, DType type,
                                                  const IndexExpr& address, int64_t stride) {
  int64_t step = std::abs(stride), lanes = lane_count(address);
  int64_t n = std::min<int64_t>(lanes, vector_bytes() / dtype_bytes(type));
  if (step < 2 || step > kFewStrides || n < 4) return std::nullopt;
  int lane = lane_var(address);
  llvm::IRBuilder<>& b = scope.builder;
  llvm::Type* element = storage_type(b, type, 1);
  llvm::Align align(static_cast<uint64_t>(dtype_bytes(type)));
  int64_t last = (n - 1) * step + 1 - n;  // where the last vector begins
  std::vector<llvm::Value*> parts;
  for (int64_t part = 0; part < lanes; part += n) {
    std::vector<std::optional<IndexExpr>> lowest(static_cast<size_t>(lane) + 1);
    lowest[static_cast<size_t>(lane)] = IndexExpr(stride > 0 ? part : part + n - 1);
    IndexExpr base = address.substitute(lowest);
    llvm::Value* picked = nullptr;
    for (int64_t v = 0; v < step; ++v) {
      int64_t start = std::min(v * n, last);
      auto* l = b.CreateAlignedLoad(vector_of(element, n), address_of(scope, buffer, element, base + IndexExpr(start)),
                                    align);
      annotate(l, buffer);
      std::vector<int> mask;
      for (int64_t k = 0; k < n; ++k) {
        int64_t at = (stride > 0 ? k : n - 1 - k) * step;
        mask.push_back(static_cast<int>(at / n == v ? n + at - start : k));
      }
      picked = b.CreateShuffleVector(picked ? picked : llvm::PoisonValue::get(l->getType()), l, mask);
    }
    parts.push_back(picked);
  }
  return from_storage(b, type, joined(b, parts));
}

Value ElementEmitter::load(Scope& scope, const BufferRef& buffer, DType type, const IndexExpr& address,
                           llvm::Value* mask) {
  if (packs(buffer, type)) return load_packed(scope, buffer, type, address, mask);
  llvm::IRBuilder<>& b = scope.builder;
  llvm::Type* element = storage_type(b, type, 1);
  llvm::Align align(static_cast<uint64_t>(dtype_bytes(type)));
  int lanes = lane_count(address);
  auto* mask_lanes = mask ? llvm::dyn_cast<llvm::FixedVectorType>(mask->getType()) : nullptr;
  if (lanes == 1 && !mask_lanes) {
    llvm::Value* at = index(address, scope);
    // The first element is there to be read whenever the array has one.
    if (mask) at = b.CreateSelect(mask, at, b.getInt64(0));
    auto* l = b.CreateAlignedLoad(element, b.CreateGEP(element, buffer.pointer, at), align);
    annotate(l, buffer);
    return from_storage(b, type, l);
  }
  // Where all lanes are read or none, a vector from the buffer's beginning does for none: a masked load whose
  // address is no memory takes a processor hundreds of cycles.
  llvm::Value* all = mask && !mask_lanes && buffer.elements >= lanes ? mask : nullptr;
  if (mask_lanes)
    lanes = static_cast<int>(mask_lanes->getNumElements());
  else if (mask)
    mask = b.CreateVectorSplat(static_cast<unsigned>(lanes), mask);
  auto* whole = vector_of(element, lanes);
  int lane = lane_var(address);
  auto stride = lane < 0 || vector_bound(address) ? std::nullopt : address.coefficient(lane);
  if (stride && (*stride == 1 || *stride == -1)) {
    std::vector<std::optional<IndexExpr>> first(static_cast<size_t>(lane) + 1);
    first[static_cast<size_t>(lane)] = IndexExpr(*stride == 1 ? 0 : lanes - 1);
    llvm::Value* pointer = address_of(scope, buffer, element, address.substitute(first));
    if (all) pointer = b.CreateSelect(all, pointer, buffer.pointer);
    llvm::Instruction* l;
    if (!mask || all)
      l = b.CreateAlignedLoad(whole, pointer, align);
    else
      l = b.CreateMaskedLoad(whole, pointer, align, *stride == 1 ? mask : reversed(b, mask, lanes),
                             llvm::Constant::getNullValue(whole));
    annotate(l, buffer);
    return from_storage(b, type, *stride == 1 ? static_cast<llvm::Value*>(l) : reversed(b, l, lanes));
  }
  if (stride && !mask) {
    if (auto v = load_block(scope, buffer, type, address)) return *v;
    if (auto v = load_groups(scope, buffer, type, address, *stride)) return *v;
    if (auto v = load_strided(scope, buffer, type, address, *stride)) return *v;
  }
  llvm::Value* at = splat(b, {DType::kS64, index(address, scope)}, lanes).v;
  // No machine gathers elements of less than a word: they are loaded one by one. Under a mask each would be a branch
  // and a block of its own (50 gathers of 32 bytes took LLVM 1.2 s); what is not wanted reads the first element.
  if (mask && element->getPrimitiveSizeInBits() < 32 && buffer.elements > 0) {
    at = b.CreateSelect(mask, at, llvm::Constant::getNullValue(at->getType()));
    mask = nullptr;
  }
  if (!mask) mask = llvm::Constant::getAllOnesValue(vector_of(b.getInt1Ty(), lanes));
  return gather(b, type, b.CreateGEP(element, buffer.pointer, at), mask,
                [&](llvm::Instruction* access) { annotate(access, buffer); });
}

// A contiguous store; past the cache where the buffer asks for it and the address is aligned by form.
void ElementEmitter::store_vector(Scope& scope, const BufferRef& buffer, llvm::Type* element, llvm::Value* vector,
                                  const IndexExpr& address) {
  llvm::IRBuilder<>& b = scope.builder;
  auto bytes = static_cast<int64_t>(element->getScalarSizeInBits() / 8);
  auto* s = b.CreateAlignedStore(vector, address_of(scope, buffer, element, address),
                                 llvm::Align(static_cast<uint64_t>(bytes)));
  annotate(s, buffer);
  if (!buffer.streaming) return;
  int64_t unit = std::gcd(int64_t{64}, address.constant() * bytes);
  for (const IndexExpr::Term& t : address.terms()) unit = std::gcd(unit, t.coefficient * bytes);
  auto whole = static_cast<int64_t>(vector->getType()->getPrimitiveSizeInBits() / 8);
  if (unit < std::min<int64_t>(whole, options_.target->vector_bytes())) return;
  s->setAlignment(llvm::Align(static_cast<uint64_t>(unit)));
  s->setMetadata(llvm::LLVMContext::MD_nontemporal,
                 llvm::MDNode::get(b.getContext(), llvm::ConstantAsMetadata::get(b.getInt32(1))));
}

void ElementEmitter::store(Scope& scope, const BufferRef& buffer, const IndexExpr& address, Value value,
                           llvm::Value* mask) {
  llvm::IRBuilder<>& b = scope.builder;
  int lanes = lane_count(address);
  value = splat(b, value, lanes);
  if (packs(buffer, value.type)) return store_packed(scope, buffer, address, value, mask);
  llvm::Type* element = storage_type(b, value.type, 1);
  llvm::Align align(static_cast<uint64_t>(dtype_bytes(value.type)));
  llvm::Value* raw = to_storage(b, value);
  if (lanes == 1)
    return annotate(b.CreateAlignedStore(raw, address_of(scope, buffer, element, address), align), buffer);
  int lane = lane_var(address);
  auto stride = lane < 0 || vector_bound(address) ? std::nullopt : address.coefficient(lane);
  if (mask && !mask->getType()->isVectorTy()) mask = b.CreateVectorSplat(static_cast<unsigned>(lanes), mask);
  if (mask && stride == 1) {
    std::vector<std::optional<IndexExpr>> first(static_cast<size_t>(lane) + 1);
    first[static_cast<size_t>(lane)] = IndexExpr(0);
    return annotate(
        b.CreateMaskedStore(raw, address_of(scope, buffer, element, address.substitute(first)), align, mask), buffer);
  }
  if (!mask && stride && (*stride == 1 || *stride == -1)) {
    std::vector<std::optional<IndexExpr>> first(static_cast<size_t>(lane) + 1);
    first[static_cast<size_t>(lane)] = IndexExpr(*stride == 1 ? 0 : lanes - 1);
    return store_vector(scope, buffer, element, *stride == 1 ? raw : reversed(b, raw, lanes),
                        address.substitute(first));
  }
  if (!mask) mask = llvm::Constant::getAllOnesValue(vector_of(b.getInt1Ty(), lanes));
  scatter(b, value, b.CreateInBoundsGEP(element, buffer.pointer, index(address, scope)), mask,
          [&](llvm::Instruction* access) { annotate(access, buffer); });
}

void ElementEmitter::store_block(Scope& scope, const BufferRef& buffer, const std::vector<IndexExpr>& addresses,
                                 const std::vector<Value>& values) {
  const IndexExpr& address = addresses[0];
  int lane = lane_var(address);
  int lanes = lane_count(address);
  auto count = static_cast<int64_t>(values.size());
  auto stride = lane < 0 ? std::nullopt : address.coefficient(lane);
  auto unit = address.coefficient(block_ids_[0]);
  bool block = !packs(buffer, values[0].type) && stride && *stride > 1 && unit == 1 && !vector_bound(address) &&
               (count == lanes || *stride == count);
  if (!block) {
    for (size_t k = 0; k < values.size(); ++k) store(scope, buffer, addresses[k], values[k]);
    return;
  }
  llvm::IRBuilder<>& b = scope.builder;
  std::vector<std::optional<IndexExpr>> zero(static_cast<size_t>(std::max(lane, block_ids_[0])) + 1);
  zero[static_cast<size_t>(lane)] = IndexExpr(0);
  zero[static_cast<size_t>(block_ids_[0])] = IndexExpr(0);
  IndexExpr base = address.substitute(zero);
  DType type = values[0].type;
  llvm::Type* element = storage_type(b, type, 1);
  llvm::Align align(static_cast<uint64_t>(dtype_bytes(type)));
  std::vector<llvm::Value*> rows;
  for (const Value& v : values) rows.push_back(to_storage(b, splat(b, v, lanes)));
  if (*stride == count && count != lanes) {
    // One run of memory: its elements come from the rows in turn, interleaved pairwise until a single vector is left,
    // or a vector at a time.
    bool pairs = std::has_single_bit(static_cast<uint64_t>(count));
    while (pairs && rows.size() > 1) {
      std::vector<llvm::Value*> next;
      size_t half = rows.size() / 2;
      auto n = static_cast<int>(llvm::cast<llvm::FixedVectorType>(rows[0]->getType())->getNumElements());
      std::vector<int> mask;
      for (int l = 0; l < n; ++l) mask.push_back(l), mask.push_back(n + l);
      for (size_t k = 0; k < half; ++k) next.push_back(b.CreateShuffleVector(rows[k], rows[k + half], mask));
      rows = std::move(next);
    }
    if (pairs) return store_vector(scope, buffer, element, rows[0], base);
    for (int64_t part = 0; part < count; ++part) {
      llvm::Value* run = nullptr;
      for (int64_t k = 0; k < count; ++k) {
        std::vector<int> mask;
        for (int64_t l = 0; l < lanes; ++l) {
          int64_t at = part * lanes + l;
          mask.push_back(static_cast<int>(at % count == k ? lanes + at / count : l));
        }
        auto* row = rows[static_cast<size_t>(k)];
        run = b.CreateShuffleVector(run ? run : llvm::PoisonValue::get(row->getType()), row, mask);
      }
      store_vector(scope, buffer, element, run, base + IndexExpr(part * lanes));
    }
    return;
  }
  transpose_square(b, rows);
  for (int l = 0; l < lanes; ++l) {
    IndexExpr at = base + IndexExpr(l * *stride);
    store_vector(scope, buffer, element, rows[static_cast<size_t>(l)], at);
  }
}

llvm::Value* ElementEmitter::trip_count(const LoopDigit& loop, const IndexExpr& so_far, Scope& scope) {
  llvm::IRBuilder<>& b = scope.builder;
  llvm::Value* extent = b.getInt64(static_cast<uint64_t>(loop.extent));
  if (!loop.clip) return extent;
  const Clip& c = *loop.clip;
  IndexExpr left = IndexExpr(c.limit) - so_far;
  llvm::Value* n = index(left, scope);
  n = b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, n, b.getInt64(0));
  if (c.stride > 1) n = ceil_quotient(b, n, b.getInt64(static_cast<uint64_t>(c.stride)));
  if (c.factor > 1) n = b.CreateMul(n, b.getInt64(static_cast<uint64_t>(c.factor)));
  return b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, n, extent);
}

}  // namespace hlojit::codegen
