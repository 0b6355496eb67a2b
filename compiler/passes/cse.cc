// See cse.h. Values are numbered in order; a value's key is its op, its attributes and the numbers
// of its operands, so one walk with a hash table finds all. Computations get numbers the same way:
// two are the same if instruction by instruction they are. Nothing depends on addresses.
#include "compiler/passes/cse.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "compiler/analysis/dataflow.h"
#include "compiler/analysis/effects.h"
#include "compiler/ir/allocation.h"
#include "compiler/ir/instruction_table.h"
#include "compiler/passes/dce.h"

namespace hlojit {
namespace {

size_t mix(size_t h, size_t v) { return (h ^ v) * 0x9E3779B97F4A7C15u + (h >> 29); }

size_t mix(size_t h, const Ints& list) {
  for (int64_t v : list) h = mix(h, static_cast<size_t>(v));
  return mix(h, list.size());
}

size_t hash_of(const Shape& shape) {
  size_t h = mix(static_cast<size_t>(shape.type), shape.dims);
  for (const Shape& e : shape.elements) h = mix(h, hash_of(e));
  return h;
}

// Of a large constant pieces, evenly spread: to read 800 MB of one three times took a second, all but 5 % of a compile.
// Those that differ between the pieces same_literal tells apart.
size_t hash_of(const Literal& literal) {
  constexpr size_t kPiece = 64, kPieces = 1024;
  const auto bytes = literal.bytes();
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::hash<std::string_view> hash;
  if (text.size() <= kPiece * kPieces) return hash(text);
  size_t h = text.size();
  for (size_t k = 0; k < kPieces; ++k)
    h = mix(h, hash(text.substr((text.size() - kPiece) / (kPieces - 1) * k, kPiece)));
  return h;
}

bool same_literal(const Instruction& x, const Instruction& y) {
  if (!x.literal || !y.literal || x.literal == y.literal) return x.literal == y.literal;
  return x.literal->identical(*y.literal);
}

/// Numbers of computations: equal where the computations do the same.
using ComputationNumbers = std::unordered_map<const Computation*, size_t>;

/// Numbers the instructions of one computation as it goes through them in order.
class Numbering {
 public:
  Numbering(const Computation& c, const ComputationNumbers& computations) : computations_(computations), numbers_(c) {}

  struct Key {
    const Instruction* instruction;
    std::vector<size_t> operands, called;
    size_t hash;
  };

  Key key(const Instruction& i) const {
    Key k{&i, {}, {}, 0};
    for (const Instruction* o : i.operands()) k.operands.push_back(numbers_[o]);
    if (has_trait(i, op_trait::kCombines)) std::ranges::sort(k.operands);
    for (const Computation* c : i.called) k.called.push_back(computations_.at(c));
    const Attributes& a = i.attrs;
    size_t h = mix(static_cast<size_t>(i.opcode), hash_of(i.shape));
    for (size_t n : k.operands) h = mix(h, n);
    for (size_t n : k.called) h = mix(h, n);
    h = mix(mix(h, a.dimensions), static_cast<size_t>(a.tuple_index * 64 + a.parameter_number));
    for (const SliceRange& s : a.slice) h = mix(h, static_cast<size_t>(s.start));
    h = mix(h, static_cast<size_t>(a.direction));
    if (i.literal && i.shape.is_array()) h = mix(h, hash_of(*i.literal));
    k.hash = h;
    return k;
  }
  void set(const Instruction* i, size_t number) { numbers_[i] = number; }

 private:
  const ComputationNumbers& computations_;
  InstructionTable<size_t> numbers_;
};

/// Ops whose layout is part of what they mean. All others are laid out later, by `layouts`: told apart by layouts that
/// are overwritten there, values became one in the next compiler of what we print only, and products of theirs, used
/// twice by then, were no longer contracted.
bool says_layout(const Instruction& i) { return i.is(Opcode::kCustomCall) || i.is(Opcode::kBitcast); }

bool same_shape(const Instruction& a, const Instruction& b) {
  return says_layout(a) ? a.shape == b.shape : compatible(a.shape, b.shape);
}

bool same(const Numbering::Key& x, const Numbering::Key& y) {
  const Instruction &a = *x.instruction, &b = *y.instruction;
  return x.hash == y.hash && a.opcode == b.opcode && x.operands == y.operands && x.called == y.called &&
         same_shape(a, b) && same_literal(a, b) && same_but_for_source(a.attrs, b.attrs);
}

/// A computation as the keys of its instructions.
struct Signature {
  std::vector<Numbering::Key> keys;
  size_t root = 0, hash = 0;

  Signature(const Computation& c, const ComputationNumbers& computations) {
    Numbering numbering(c, computations);
    for (const auto& i : c.instructions()) {
      if (i.get() == c.root()) root = keys.size();
      numbering.set(i.get(), keys.size());
      keys.push_back(numbering.key(*i));
      hash = mix(hash, keys.back().hash);
    }
  }
  bool operator==(const Signature& other) const {
    return hash == other.hash && root == other.root && std::ranges::equal(keys, other.keys, same);
  }
};

ComputationNumbers number_computations(const Module& module) {
  ComputationNumbers numbers;
  std::unordered_map<size_t, std::vector<std::pair<Signature, size_t>>> seen;
  for (const auto& c : module.computations()) {
    Signature signature(*c, numbers);
    auto& alike = seen[signature.hash];
    auto known = std::ranges::find(alike, signature, &std::pair<Signature, size_t>::first);
    if (known != alike.end()) {
      numbers[c.get()] = known->second;
    } else {
      size_t fresh = numbers.size();
      numbers[c.get()] = fresh;
      alike.emplace_back(std::move(signature), fresh);
    }
  }
  return numbers;
}

bool may_merge(const Instruction& i, const Effects& effects) {
  if (i.shape.has_dynamic_dims() || !i.control_predecessors.empty()) return false;
  switch (i.info().op_class) {
    case OpClass::kEffect: return false;
    case OpClass::kControl:
      if (i.is(Opcode::kWhile) || i.is(Opcode::kConditional)) return !effects.has(i);
      return i.is(Opcode::kTuple) || i.is(Opcode::kGetTupleElement);
    case OpClass::kLibrary: return !effects.has(i) && !is_allocation(i);
    default: return !i.is(Opcode::kParameter);
  }
}

bool merge_in(Computation& c, const ComputationNumbers& computations, const Effects& effects) {
  Numbering numbering(c, computations);
  std::unordered_map<size_t, std::vector<std::pair<Numbering::Key, Instruction*>>> seen;
  bool changed = false;
  size_t next = 0;
  for (Instruction* i : c.snapshot()) {
    numbering.set(i, next++);
    const bool is_read = i->is_root() || !i->users().empty();  // of what a rule made in vain nothing becomes equal
    if (!is_read || !may_merge(*i, effects)) continue;
    Numbering::Key key = numbering.key(*i);
    auto& alike = seen[key.hash];
    auto known = std::ranges::find_if(alike, [&](const auto& k) { return same(k.first, key); });
    if (known == alike.end()) {
      alike.emplace_back(std::move(key), i);
    } else {
      i->replace_all_uses_with(known->second);
      changed = true;
    }
  }
  return changed;
}

}  // namespace

bool cse(Module& module, const PipelineOptions& options) {
  const ComputationNumbers numbers = number_computations(module);
  const Effects effects(module);
  bool changed = false;
  for (Computation* c : sequential_computations(module)) changed |= merge_in(*c, numbers, effects);
  if (changed) dce(module, options);
  return changed;
}

}  // namespace hlojit
