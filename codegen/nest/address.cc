// Index expressions to IR: where variables are bound, and each term of an expression computed in the outermost scope
// that knows its variables.
#include <algorithm>

#include <llvm/IR/IntrinsicInst.h>

#include "codegen/nest/element_emitter.h"

namespace hlojit::codegen {
namespace {

// Lanes by value: the numbers 0..n-1 of their elements as one vector.
llvm::Constant* lane_numbers(llvm::IRBuilderBase& b, int lanes, int pairs) {
  std::vector<llvm::Constant*> numbers;
  for (int k = 0; k < lanes; ++k) numbers.push_back(b.getInt64(static_cast<uint64_t>(element_of_lane(k, pairs))));
  return llvm::ConstantVector::get(numbers);
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
  block_values_.clear();
  block_numbers_.clear();
  scope.blocks.clear();
  read_together_ = {};
  for (int64_t k = 0; k < unroll.count; ++k) {
    int id = vars_.fresh();
    const int64_t value = unroll.value(k);
    bound_[id] = {&scope, scope.builder.getInt64(static_cast<uint64_t>(value)), 0};
    block_ids_.push_back(id);
    block_values_.push_back(value);
    block_numbers_.push_back({id, IndexExpr(value)});
    // The range of the whole digit: a variable of one value would be folded away.
    block_.push_back(IndexExpr::var(id, Range{0, unroll.value(unroll.count - 1)}));
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
  Scope* best = outermost_;
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

int ElementEmitter::pairs_along(const IndexExpr& expr) const {
  const int lane = lane_var(expr);
  return lane < 0 ? 0 : bound_.at(lane).pairs;
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

llvm::Value* ElementEmitter::belonging(const IndexExpr& address) const {
  return line_lane_ >= 0 && address.depends_on(line_lane_) ? in_row_ : nullptr;
}

llvm::Value* ElementEmitter::atom_value(const IndexExpr::Atom& atom, Scope& scope) {
  llvm::IRBuilder<>& b = scope.builder;
  if (atom.kind == IndexExpr::AtomKind::kVar) {
    const Bound& bound = bound_.at(atom.var);
    return bound.value ? bound.value : lane_numbers(b, bound.lanes, bound.pairs);
  }
  llvm::Value* x = index(*atom.operand, scope);
  bool divides = atom.kind == IndexExpr::AtomKind::kFloorDiv;
  const Range range = atom.operand->range();
  if (range.lo >= 0)
    return divides ? scope.quotient(x, range.hi, atom.width) : scope.remainder(x, range.hi, atom.width);
  llvm::Value* w = llvm::ConstantInt::get(x->getType(), static_cast<uint64_t>(atom.width));
  llvm::Value* r = b.CreateSRem(x, w);
  llvm::Value* negative = b.CreateICmpSLT(r, llvm::Constant::getNullValue(r->getType()));
  if (!divides) return b.CreateSelect(negative, b.CreateAdd(r, w), r);
  llvm::Value* q = b.CreateSDiv(x, w);
  return b.CreateSelect(negative, b.CreateSub(q, llvm::ConstantInt::get(q->getType(), 1)), q);
}

// The terms by where they are computed, outermost scope first.
std::vector<ElementEmitter::Part> ElementEmitter::parts(const IndexExpr& expr, Scope& scope) {
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
  return parts;
}

llvm::Value* ElementEmitter::part_value(const Part& part) {
  return part.scope->product(atom_value(*part.term->atom, *part.scope), part.term->coefficient);
}

llvm::Value* ElementEmitter::index(const IndexExpr& expr, Scope& scope) {
  int lanes = lane_count(expr);
  llvm::Value* sum = nullptr;
  Scope* last = &scope;
  for (const Part& p : parts(expr, scope)) {
    llvm::IRBuilder<>& b = p.scope->builder;
    llvm::Value* v = part_value(p);
    last = p.scope;
    if (sum && sum->getType() != v->getType()) {
      auto widen = [&](llvm::Value* s) {
        return s->getType()->isVectorTy() ? s : b.CreateVectorSplat(static_cast<unsigned>(lanes), s);
      };
      sum = widen(sum);
      v = widen(v);
    }
    sum = sum ? p.scope->sum(sum, v) : v;
  }
  if (!sum) return scope.builder.getInt64(static_cast<uint64_t>(expr.constant()));
  if (expr.constant() == 0) return sum;
  return last->sum(sum, llvm::ConstantInt::get(sum->getType(), static_cast<uint64_t>(expr.constant()), true));
}

IndexExpr ElementEmitter::of_block_values(const IndexExpr& address) const { return address.substitute(block_numbers_); }

void annotate(llvm::Instruction* access, const BufferRef& buffer) {
  if (buffer.alias_scope) access->setMetadata(llvm::LLVMContext::MD_alias_scope, buffer.alias_scope);
  if (buffer.noalias) access->setMetadata(llvm::LLVMContext::MD_noalias, buffer.noalias);
}

// The pointer moves on scope by scope and by the constant last: what a loop does not change is added outside of it, and
// what is left in it is an addressing mode of the machine. No pass over the code need look for that. (So are the
// numbers of a block: a pointer for each of 16 took LLVM 2 ms.)
llvm::Value* ElementEmitter::address_of(Scope& scope, const BufferRef& buffer, llvm::Type* element,
                                        const IndexExpr& in_block) {
  const IndexExpr address = of_block_values(in_block);
  llvm::Value* pointer = buffer.pointer;
  auto advance = [&](Scope& s, llvm::Value* by) {
    const bool known = !buffer.known_in || buffer.known_in->depth <= s.depth;
    pointer = (known ? s : *buffer.known_in).moved_on(element, pointer, by);
  };
  std::vector<Part> all = parts(address, scope);
  for (size_t k = 0; k < all.size();) {
    Scope& s = *all[k].scope;
    llvm::Value* sum = part_value(all[k]);
    for (++k; k < all.size() && all[k].scope == &s; ++k) sum = s.sum(sum, part_value(all[k]));
    advance(s, sum);
  }
  if (address.constant() != 0) advance(scope, scope.builder.getInt64(static_cast<uint64_t>(address.constant())));
  return pointer;
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
