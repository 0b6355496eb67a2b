// rng-bit-generator: ThreeFry-2x32-20 and Philox-4x32-10, counters and all. rng_default is Philox.
#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "compiler/eval/ops.h"
#include "compiler/eval/strided.h"

namespace hlojit::eval {
namespace {

uint32_t low(uint64_t v) { return static_cast<uint32_t>(v); }
uint32_t high(uint64_t v) { return static_cast<uint32_t>(v >> 32); }

std::pair<uint32_t, uint32_t> three_fry(uint64_t key, uint64_t counter) {
  const std::array<uint32_t, 3> ks = {low(key), high(key), low(key) ^ high(key) ^ 0x1BD11BDAu};
  constexpr int kRotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  uint32_t x0 = low(counter) + ks[0], x1 = high(counter) + ks[1];
  for (uint32_t group = 1; group <= 5; ++group) {
    for (int r : kRotations[(group - 1) % 2]) {
      x0 += x1;
      x1 = std::rotl(x1, r) ^ x0;
    }
    x0 += ks[group % 3];
    x1 += ks[(group + 1) % 3] + group;
  }
  return {x0, x1};
}

std::array<uint32_t, 4> philox(uint64_t key, uint64_t counter_low, uint64_t counter_high) {
  std::array<uint32_t, 4> c = {low(counter_low), high(counter_low), low(counter_high), high(counter_high)};
  uint32_t k0 = low(key), k1 = high(key);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53} * c[0], p1 = uint64_t{0xCD9E8D57} * c[2];
    c = {high(p1) ^ c[1] ^ k0, low(p1), high(p0) ^ c[3] ^ k1, low(p0)};
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return c;
}

// Each block's two words go side by side along one dimension, the first even one or else the
// largest; for an odd one the last surplus word is dropped.
uint64_t three_fry_words(uint64_t key, uint64_t counter, const Ints& dims, std::vector<uint64_t>& words) {
  if (dims.empty()) {
    words[0] = three_fry(key, counter).first;
    return 1;
  }
  auto even = std::ranges::find_if(dims, [](int64_t d) { return d % 2 == 0; });
  const size_t split = (even != dims.end() ? even : std::ranges::max_element(dims)) - dims.begin();
  Ints half = dims;
  half[split] = (dims[split] + 1) / 2;
  const Ints strides = row_major_strides(dims);
  uint64_t blocks = 0;
  for_each_index(half, [&](std::span<const int64_t> index) {
    auto [x0, x1] = three_fry(key, counter + blocks++);
    int64_t at = 0;
    for (size_t d = 0; d < dims.size(); ++d) at += index[d] * (d == split ? 2 : 1) * strides[d];
    words[at] = x0;
    if (2 * index[split] + 1 < dims[split]) words[at + strides[split]] = x1;
  });
  return blocks;
}

uint64_t philox_words(uint64_t key, uint64_t counter_low, uint64_t counter_high, int bytes,
                      std::vector<uint64_t>& words) {
  const size_t per_block = bytes == 8 ? 2 : 4;
  const uint64_t blocks = (words.size() + per_block - 1) / per_block;
  for (uint64_t b = 0; b < blocks; ++b) {
    const uint64_t at = counter_low + b;
    const auto w = philox(key, at, counter_high + (at < counter_low));
    for (size_t i = 0; i < per_block && b * per_block + i < words.size(); ++i) {
      words[b * per_block + i] = bytes == 8 ? w[2 * i] | uint64_t{w[2 * i + 1]} << 32 : w[i];
    }
  }
  return blocks;
}

Literal rng_bit_generator(const Instruction& op, Operands in) {
  const Literal& state = *in[0];
  const bool pair = op.shape.is_tuple();
  Literal data(pair ? op.shape.elements.at(1) : op.shape);
  const Shape& shape = data.shape();
  const int bytes = dtype_bytes(shape.type);
  std::vector<uint64_t> words(shape.element_count());
  const auto old = state.data<uint64_t>();
  std::vector<uint64_t> fresh(old.begin(), old.end());

  if (op.attrs.algorithm == RandomAlgorithm::kThreeFry) {
    if (bytes == 8) {
      for (size_t i = 0; i < words.size(); ++i) {
        auto [x0, x1] = three_fry(old[0], old[1] + i);
        words[i] = x0 | uint64_t{x1} << 32;
      }
      fresh[1] += words.size();
    } else if (!words.empty()) {
      fresh[1] += three_fry_words(old[0], old[1], shape.dims, words);
    }
  } else {
    // With two state words the key serves as the upper half of the counter and is not advanced.
    const uint64_t upper = old.size() == 3 ? old[2] : old[0];
    fresh[1] += philox_words(old[0], old[1], upper, bytes, words);
    if (old.size() == 3) fresh[2] += fresh[1] < old[1];
  }

  for (size_t i = 0; i < words.size(); ++i) {
    switch (bytes) {
      case 1: data.data<uint8_t>()[i] = static_cast<uint8_t>(words[i]); break;
      case 2: data.data<uint16_t>()[i] = static_cast<uint16_t>(words[i]); break;
      case 4: data.data<uint32_t>()[i] = static_cast<uint32_t>(words[i]); break;
      default: data.data<uint64_t>()[i] = words[i];
    }
  }
  if (!pair) return data;
  Literal next(op.shape.elements.at(0));
  std::ranges::copy(fresh, next.data<uint64_t>().begin());
  std::vector<Literal> both;
  both.push_back(std::move(next));
  both.push_back(std::move(data));
  return Literal::tuple(std::move(both));
}

constexpr Row kOps[] = {
    {Opcode::kRngBitGenerator, [](const Call& c) { return rng_bit_generator(c.op, c.in); }},
};

}  // namespace

std::span<const Row> random_ops() { return kOps; }

}  // namespace hlojit::eval
