// Words made of bytes and of 16 bits, computed with and moved, on their way back or to a comparison: numbers on both
// sides of what 16 bits hold, signed and not, some of them wanted as words as well. And words as the bits of their
// parts.
#include "tools/fuzz/draft.h"

namespace hlojit::tools::fuzz {
namespace {

using enum Opcode;

Instruction* leaf(Draft& s, DType wide, const Ints& sizes) {
  using enum DType;
  const DType from = s.random.pick(std::vector{kU8, kU8, kS8, kPred, kU16, kS16});
  if (s.random.chance(0.3)) {
    const double value = s.random.pick(std::vector<double>{0, 1, 2, 3, 77, 128, 150, 255, 257, 32767, 40000});
    return s.splat(wide, is_signed(wide) && s.random.chance(0.2) ? -value : value, sizes);
  }
  if (s.random.chance(0.7)) return s.b.convert(s.of(from, sizes), wide);
  const int64_t d = s.random.below(std::ssize(sizes));
  Ints more = sizes;
  more[static_cast<size_t>(d)] += 2;
  const int64_t at = s.random.below(3);
  Ints starts(sizes.size(), 0), limits = sizes;
  starts[static_cast<size_t>(d)] = at;
  limits[static_cast<size_t>(d)] += at;
  return s.b.slice(s.b.convert(s.of(from, more), wide), starts, limits);
}

Instruction* word(Draft& s, DType wide, const Ints& sizes, int steps) {
  if (steps == 0) return leaf(s, wide, sizes);
  auto next = [&] { return word(s, wide, sizes, static_cast<int>(s.random.below(steps))); };
  switch (s.random.below(10)) {
    case 0: return s.b.unary(is_signed(wide) && s.random.chance(0.5) ? kAbs : kNegate, next());
    case 1: return s.b.select(s.of(DType::kPred, sizes), next(), next());
    case 2: {
      const double by = static_cast<double>(s.random.below(18));
      const Opcode op = s.random.pick(std::vector{kShiftRightArithmetic, kShiftRightLogical, kShiftLeft});
      return s.b.binary(op, next(), s.splat(wide, by, sizes));
    }
    case 3: {
      Instruction* least = s.splat(wide, is_signed(wide) ? -128 : 3, {});
      return s.b.op(kClamp, {least, next(), s.splat(wide, 255, {})});
    }
    case 4: return s.b.binary(kMultiply, next(), leaf(s, wide, sizes));
    case 5: {
      Instruction* by = s.splat(wide, static_cast<double>(s.random.between(1, 300)), sizes);
      return s.b.binary(s.random.chance(0.6) ? kDivide : kRemainder, next(), by);
    }
    case 6: return s.b.binary(s.random.pick(std::vector{kMaximum, kMinimum, kAnd}), next(), next());
    default: return s.b.binary(s.random.chance(0.5) ? kAdd : kSubtract, next(), next());
  }
}

Instruction* word_of_bytes(Draft& s) {
  using enum DType;
  const DType wide = s.random.pick(std::vector{kS32, kS32, kS32, kU32, kS64});
  Ints sizes = {s.random.between(1, 150)};
  if (s.random.chance(0.4)) sizes.insert(sizes.begin(), s.random.between(1, 9));
  const int steps = static_cast<int>(s.random.between(1, 5));
  Instruction* x = word(s, wide, sizes, steps);
  if (s.random.chance(0.1)) s.keep(x);
  if (s.random.chance(0.3)) {
    const Direction how = s.random.pick(std::vector{Direction::kLt, Direction::kGe, Direction::kEq});
    return s.b.compare(how, x, word(s, wide, sizes, static_cast<int>(s.random.below(2))));
  }
  return s.b.convert(x, s.random.pick(std::vector{kU8, kS8, kU16, kS16}));
}

// The parts of words as a row, or moved otherwise: from anywhere on, backwards, some of them, all first parts first.
Instruction* moved_parts(Draft& s, Instruction* x) {
  const Ints& sizes = x->shape.dims;
  const int64_t parts = sizes.back(), rank = std::ssize(sizes);
  Ints row(sizes.begin(), sizes.end() - 1);
  row.back() *= parts;
  Ints starts(sizes.size(), 0), limits = sizes;
  switch (s.random.below(9)) {
    case 0: return s.b.reshape(x, row);
    case 1: {
      starts.pop_back();
      starts.back() = s.random.below(row.back());
      return s.b.slice(s.b.reshape(x, row), starts, row);
    }
    case 2: return s.b.rev(s.b.reshape(x, row), {rank - 2});
    case 3: return s.b.rev(x, {rank - 1});
    case 4: {
      starts.back() = s.random.below(parts);
      return s.b.slice(x, starts, limits);
    }
    case 5: return s.b.transpose(x, s.permutation(rank));
    case 6: {
      // Some parts, each twice.
      if (parts < 4) return x;
      starts.back() = s.random.below(parts - 1);
      limits.back() = starts.back() + 2;
      Ints twice = sizes;
      twice.back() = 2;
      twice.push_back(2);
      Attributes a;
      for (int64_t d = 0; d < rank; ++d) a.dimensions.push_back(d);
      return s.b.op(kBroadcast, Shape::array(x->shape.type, twice), {s.b.slice(x, starts, limits)}, std::move(a));
    }
    case 7: {
      // Words' parts where indices say.
      GatherDims dims;
      dims.offset_dims = {1};
      dims.collapsed_slice_dims = {0};
      dims.start_index_map = {0};
      dims.index_vector_dim = 1;
      dims.slice_sizes = {1, parts};
      return rank == 2 ? s.b.gather(x, s.of(DType::kU8, {s.random.between(1, 90)}), dims) : x;
    }
    default: return x;
  }
}

// Words taken apart, or put together of what lies in turn, of what begins anywhere in a row, or of rows.
Instruction* parts_of_words(Draft& s) {
  using enum DType;
  const DType wide = s.random.pick(std::vector{kU32, kS32, kU64, kF32, kU16});
  std::vector<DType> narrower = {kU8, kS8};
  if (dtype_bits(wide) > 16) narrower.push_back(kU16);
  if (dtype_bits(wide) > 32) narrower.push_back(kU32);
  const DType narrow = s.random.pick(narrower);
  const int64_t parts = dtype_bits(wide) / dtype_bits(narrow), n = s.random.between(1, 120);
  Ints words = {n};
  if (s.random.chance(0.4)) words.insert(words.begin(), s.random.between(1, 4));
  Ints each = words, row = words;
  each.push_back(parts);
  row.back() *= parts;
  if (!s.fits(each)) return nullptr;
  auto mixed = [&](Instruction* x) {
    if (is_float(x->shape.type) || s.random.chance(0.4)) return x;
    return s.b.binary(s.random.chance(0.5) ? kXor : kAdd, x, s.of(x->shape.type, x->shape.dims));
  };
  if (s.random.chance(0.6)) {
    Instruction* from = s.random.chance(0.2) ? s.b.take(s.of(wide, {n}), s.of(DType::kU8, words)) : s.of(wide, words);
    Instruction* x = s.b.op(kBitcastConvert, Shape::array(narrow, each), {mixed(from)});
    return mixed(moved_parts(s, x));
  }
  Instruction* x = nullptr;
  switch (s.random.below(4)) {
    case 0: {
      const int64_t at = s.random.below(9);
      Ints longer = row, starts(row.size(), 0), limits = row;
      longer.back() += 9;
      starts.back() = at;
      limits.back() += at;
      x = s.b.reshape(s.b.slice(s.of(narrow, longer), starts, limits), each);
      break;
    }
    case 1: {
      Ints order, first = {parts};
      for (int64_t d = 0; d < std::ssize(words); ++d) {
        first.push_back(words[static_cast<size_t>(d)]);
        order.push_back(d + 1);
      }
      order.push_back(0);
      x = s.b.transpose(s.of(narrow, first), order);
      break;
    }
    case 2: x = s.b.rev(s.of(narrow, each), {std::ssize(words)}); break;
    default: x = s.of(narrow, each);
  }
  const DType whole = is_float(wide) ? kU32 : wide;
  Instruction* made = s.b.op(kBitcastConvert, Shape::array(whole, words), {mixed(x)});
  return mixed(s.random.chance(0.2) ? s.b.rev(made, {std::ssize(words) - 1}) : made);
}

}  // namespace

Family part_of_word_family() { return {"parts of words", {{parts_of_words, 12}}, 0.03}; }

Family width_family() { return {"words of bytes", {{word_of_bytes, 12}}, 0.03}; }

}  // namespace hlojit::tools::fuzz
