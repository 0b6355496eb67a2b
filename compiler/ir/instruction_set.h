// Sets of instructions and tables keyed by them, for passes that make many: planning a kernel takes a dozen, and
// fuse plans a kernel at each join. All of one lies in two arrays, without an allocation an entry, and in order of
// insertion, so that going through it depends on no address.
#pragma once

#include <bit>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

namespace hlojit {

class Instruction;

/// Numbers instructions from 0 in order of insertion.
class InstructionIndex {
 public:
  using Key = const Instruction*;

  /// The number of `i`, and whether it is new.
  std::pair<size_t, bool> insert(Key i) {
    if (slots_.empty()) {
      const size_t known = find(i);
      if (known < keys_.size()) return {known, false};
      keys_.push_back(i);
      if (keys_.size() > kFew) spread(std::bit_ceil(4 * keys_.size()));
      return {known, true};
    }
    uint32_t& at = slots_[slot(i)];
    if (at > 0) return {at - 1, false};
    keys_.push_back(i);
    at = static_cast<uint32_t>(keys_.size());
    if (2 * keys_.size() > slots_.size()) spread(std::bit_ceil(4 * keys_.size()));
    return {keys_.size() - 1, true};
  }
  /// The number of `i`; size() if it is not there.
  size_t find(Key i) const {
    if (slots_.empty()) {
      size_t k = 0;
      while (k < keys_.size() && keys_[k] != i) ++k;
      return k;
    }
    uint32_t at = slots_[slot(i)];
    return at > 0 ? at - 1 : keys_.size();
  }
  size_t size() const { return keys_.size(); }
  const std::vector<Key>& keys() const { return keys_; }
  /// Room for `n` in all.
  void reserve(size_t n) {
    keys_.reserve(n);
    if (n > kFew && 2 * n > slots_.size()) spread(std::bit_ceil(4 * n));
  }

 private:
  static constexpr size_t kFew = 8;  // that many are searched one by one

  void spread(size_t slots) {
    slots_.assign(slots, 0);
    for (size_t k = 0; k < keys_.size(); ++k) slots_[slot(keys_[k])] = static_cast<uint32_t>(k + 1);
  }
  // Where `i` stands or would stand. There are always free slots.
  size_t slot(Key i) const {
    size_t mask = slots_.size() - 1;
    size_t at = (reinterpret_cast<uintptr_t>(i) * 0x9e3779b97f4a7c15ull >> 32) & mask;
    while (slots_[at] > 0 && keys_[slots_[at] - 1] != i) at = (at + 1) & mask;
    return at;
  }

  std::vector<Key> keys_;
  std::vector<uint32_t> slots_;  // of a power of two: number + 1, or 0; none while there are few keys
};

class InstructionSet {
 public:
  InstructionSet() = default;
  template <class Range>
  explicit InstructionSet(const Range& range) {
    index_.reserve(range.size());
    insert_all(range);
  }
  /// Whether it is new.
  bool insert(const Instruction* i) { return index_.insert(i).second; }
  template <class Range>
  void insert_all(const Range& range) {
    for (const Instruction* i : range) insert(i);
  }
  bool contains(const Instruction* i) const { return index_.find(i) < index_.size(); }
  bool empty() const { return index_.size() == 0; }
  void reserve(size_t n) { index_.reserve(n); }
  size_t size() const { return index_.size(); }
  auto begin() const { return index_.keys().begin(); }
  auto end() const { return index_.keys().end(); }

 private:
  InstructionIndex index_;
};

/// Values lie side by side: references to them hold until the next one is added.
template <class T>
class InstructionMap {
 public:
  /// The value, and whether it is new.
  std::pair<T&, bool> insert(const Instruction* i) {
    auto [at, fresh] = index_.insert(i);
    if (fresh) values_.emplace_back();
    return {values_[at], fresh};
  }
  /// A new value if there is none.
  T& operator[](const Instruction* i) { return insert(i).first; }
  /// nullptr if there is none.
  const T* find(const Instruction* i) const {
    size_t at = index_.find(i);
    return at < values_.size() ? &values_[at] : nullptr;
  }
  T* find(const Instruction* i) { return const_cast<T*>(std::as_const(*this).find(i)); }
  const T& at(const Instruction* i) const {
    if (const T* value = find(i)) return *value;
    throw std::out_of_range("no value of this instruction");
  }
  bool contains(const Instruction* i) const { return find(i) != nullptr; }
  bool empty() const { return values_.empty(); }
  void reserve(size_t n) {
    index_.reserve(n);
    values_.reserve(n);
  }
  const std::vector<const Instruction*>& keys() const { return index_.keys(); }

 private:
  InstructionIndex index_;
  std::vector<T> values_;
};

}  // namespace hlojit
