// rng-bit-generator as integer arithmetic: block number i of the counter is an iota, the rounds are
// u32 ops, and the words of a block go side by side by concatenation in a new minor dim:
//
//   x0, x1 = rounds(counter + iota(u64[H]))
//   data   = reshape(concatenate(x0 as [H,1], x1 as [H,1]) as [2H])
//
// The blocks and their order are those of the evaluator (compiler/eval/random.cc).
#include <algorithm>
#include <array>
#include <bit>

#include "compiler/passes/expansions.h"

namespace hlojit {
namespace {

using enum Opcode;
using Values = Builder::Values;

/// u32 or u64 values of one length, with the operators the generators are written in.
struct Words {
  Builder* b;
  Instruction* v;

  Words constant(uint64_t c) const {
    Literal literal(Shape::scalar(v->shape.type));
    literal.set_int(0, static_cast<int64_t>(c));
    return {b, b->broadcast(b->constant(std::move(literal)), v->shape.dims)};
  }
  Words to(DType type) const { return {b, b->convert(v, type)}; }
  Words low() const { return to(DType::kU32); }
  Words high() const { return (*this >> 32).low(); }
  Words operator>>(uint64_t n) const { return {b, b->binary(kShiftRightLogical, v, constant(n).v)}; }
  Words operator<<(uint64_t n) const { return {b, b->binary(kShiftLeft, v, constant(n).v)}; }
  friend Words operator+(Words x, Words y) { return {x.b, x.b->binary(kAdd, x.v, y.v)}; }
  friend Words operator*(Words x, Words y) { return {x.b, x.b->binary(kMultiply, x.v, y.v)}; }
  friend Words operator^(Words x, Words y) { return {x.b, x.b->binary(kXor, x.v, y.v)}; }
  friend Words operator|(Words x, Words y) { return {x.b, x.b->binary(kOr, x.v, y.v)}; }
  Words rotl(uint64_t n) const { return *this << n | *this >> (32 - n); }
  Words spread(int64_t n) const { return {b, b->broadcast(v, {n})}; }
  /// 1 where x < y, of x's type.
  static Words less(Words x, Words y) {
    return {x.b, x.b->convert(x.b->compare(Direction::kLt, x.v, y.v), x.v->shape.type)};
  }
};

/// low | high << 32.
Words join(Words low, Words high) { return low.to(DType::kU64) | high.to(DType::kU64) << 32; }

class Generator {
 public:
  Generator(Builder& b, const Instruction& op)
      : b_(b), op_(op), data_(op.shape.is_tuple() ? op.shape.elements.at(1) : op.shape) {
    for (int64_t k = 0; k < op.operand(0)->shape.dims[0]; ++k) state_.push_back(word(k));
  }

  Instruction* run() {
    Instruction* data;
    if (data_.element_count() == 0) {
      data = b_.broadcast(b_.constant(data_.type, 0), data_.dims);
    } else if (op_.attrs.algorithm == RandomAlgorithm::kThreeFry) {
      data = typed(dtype_bits(data_.type) == 64 ? three_fry_wide() : three_fry_pairs());
    } else {
      data = typed(philox());
    }
    return op_.shape.is_tuple() ? b_.tuple({next_state(), data}) : data;
  }

 private:
  /// Element k of the state, a scalar.
  Words word(int64_t k) { return {&b_, b_.reshape(b_.slice(op_.operand(0), {k}, {k + 1}), {})}; }

  /// The counter of each of n blocks; the state advances by n.
  Words counters(int64_t n) {
    blocks_ = n;
    return state_[1].spread(n) + Words{&b_, b_.iota(Shape::array(DType::kU64, {n}), 0)};
  }

  std::array<Words, 2> three_fry(int64_t blocks) {
    Words counter = counters(blocks);
    Words key = state_[0].spread(blocks);
    const std::array<Words, 2> k = {key.low(), key.high()};
    const std::array<Words, 3> ks = {k[0], k[1], k[0] ^ k[1] ^ k[0].constant(0x1BD11BDA)};
    constexpr int kRotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
    Words x0 = counter.low() + ks[0], x1 = counter.high() + ks[1];
    for (uint64_t group = 1; group <= 5; ++group) {
      for (int r : kRotations[(group - 1) % 2]) {
        x0 = x0 + x1;
        x1 = x1.rotl(static_cast<uint64_t>(r)) ^ x0;
      }
      x0 = x0 + ks[group % 3];
      x1 = x1 + (ks[(group + 1) % 3] + x1.constant(group));
    }
    return {x0, x1};
  }

  /// A block an element.
  Instruction* three_fry_wide() {
    auto [x0, x1] = three_fry(data_.element_count());
    return b_.reshape(join(x0, x1).v, data_.dims);
  }

  /// A block's two words are neighbours in one dim: the first even one, or else the largest, whose
  /// surplus word is dropped.
  Instruction* three_fry_pairs() {
    const Ints& dims = data_.dims;
    if (dims.empty()) return b_.reshape(three_fry(1)[0].v, {});
    auto even = std::ranges::find_if(dims, [](int64_t d) { return d % 2 == 0; });
    auto split = (even != dims.end() ? even : std::ranges::max_element(dims)) - dims.begin();
    Ints half = dims, paired = dims;
    half[split] = (dims[split] + 1) / 2;
    paired[split] = 2 * half[split];
    Shape blocks = Shape::array(DType::kU32, half);
    half.insert(half.begin() + split + 1, 1);
    Values parts;
    for (Words x : three_fry(blocks.element_count())) parts.push_back(b_.reshape(x.v, half));
    Instruction* pairs = b_.reshape(b_.concat_in_dim(std::move(parts), split + 1), paired);
    if (paired == dims) return pairs;
    return b_.slice(pairs, Ints(dims.size(), 0), dims);
  }

  Instruction* philox() {
    const bool wide = dtype_bits(data_.type) == 64;
    const int64_t n = data_.element_count(), per_block = wide ? 2 : 4;
    const int64_t blocks = n / per_block + (n % per_block != 0);
    // Without a third word the key serves as the upper half of the counter.
    Words at = counters(blocks), upper = (state_.size() == 3 ? state_[2] : state_[0]).spread(blocks);
    upper = upper + Words::less(at, state_[1].spread(blocks));
    std::array<Words, 4> c = {at.low(), at.high(), upper.low(), upper.high()};
    Words key = state_[0].spread(blocks), k0 = key.low(), k1 = key.high();
    for (int round = 0; round < 10; ++round) {
      Words p0 = c[0].to(DType::kU64) * at.constant(0xD2511F53);
      Words p1 = c[2].to(DType::kU64) * at.constant(0xCD9E8D57);
      c = {p1.high() ^ c[1] ^ k0, p1.low(), p0.high() ^ c[3] ^ k1, p0.low()};
      k0 = k0 + k0.constant(0x9E3779B9);
      k1 = k1 + k1.constant(0xBB67AE85);
    }
    Values parts;
    if (wide) {
      parts = {join(c[0], c[1]).v, join(c[2], c[3]).v};
    } else {
      for (Words w : c) parts.push_back(w.v);
    }
    for (Instruction*& p : parts) p = b_.reshape(p, {blocks, 1});
    Instruction* all = b_.reshape(b_.concat_in_dim(std::move(parts), 1), {blocks * per_block});
    return b_.reshape(b_.slice(all, {0}, {n}), data_.dims);
  }

  /// u32 or u64 words as the type asked for, which counts by its width alone.
  Instruction* typed(Instruction* words) {
    constexpr DType kBits[] = {DType::kU8, DType::kU16, DType::kU32, DType::kU64};
    DType bits = kBits[std::countr_zero(static_cast<unsigned>(dtype_bytes(data_.type)))];
    if (words->shape.type != bits) words = b_.convert(words, bits);
    return data_.type == bits ? words : b_.bitcast_convert(words, data_.type);
  }

  Instruction* next_state() {
    std::vector<Words> next = state_;
    next[1] = state_[1] + state_[1].constant(static_cast<uint64_t>(blocks_));
    if (next.size() == 3) next[2] = state_[2] + Words::less(next[1], state_[1]);
    Values parts;
    for (Words w : next) parts.push_back(b_.reshape(w.v, {1}));
    return b_.concat_in_dim(std::move(parts), 0);
  }

  Builder& b_;
  const Instruction& op_;
  Shape data_;
  std::vector<Words> state_;
  int64_t blocks_ = 0;
};

}  // namespace

Instruction* expand_random_bits(Builder& b, const Instruction& op) { return Generator(b, op).run(); }

}  // namespace hlojit
