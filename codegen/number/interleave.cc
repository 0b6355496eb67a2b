// See interleave.h.
#include "codegen/number/interleave.h"

#include <algorithm>
#include <array>
#include <bit>
#include <iterator>

#include <llvm/IR/IRBuilder.h>

#include "codegen/number/parts.h"

namespace hlojit::codegen {
namespace {

// Where no permutation takes two vectors, these have so many bits, and what crosses their halves is dear.
constexpr size_t kBitsInHalves = 256;

// Of three vectors: an element's kind (its number modulo 3) has other places in each, as 3 divides no power of two. So
// the first two are blended, and one permutation takes the rest from the third.
llvm::Value* third(llvm::IRBuilderBase& b, const MemoryVectors& run, const std::vector<int64_t>& wanted) {
  std::vector<int> blend(static_cast<size_t>(run.n), -1), order;
  for (int64_t at : wanted) {
    const auto place = static_cast<int>(run.place_of(at)), v = static_cast<int>(run.vector_of(at));
    const int n = static_cast<int>(run.n);
    if (v < 2) blend[static_cast<size_t>(place)] = v * n + place;
    order.push_back(v < 2 ? place : n + place);
  }
  return b.CreateShuffleVector(b.CreateShuffleVector(run.vectors[0], run.vectors[1], blend), run.vectors[2], order);
}

// Of four: of every two, halves of two kinds next to each other are brought together, which both of these share. (A
// machine that permutes once a cycle: areas of 20001 boxes of four corners 4.2 us by inserting from each vector, 3.2.)
llvm::Value* fourth(llvm::IRBuilderBase& b, const MemoryVectors& run, const std::vector<int64_t>& wanted) {
  const int64_t half = run.n / 2, kind = wanted[0] % 4, first = kind / 2 * 2;
  std::vector<int> pairs, order;
  for (int64_t k = 0; k < run.n; ++k) pairs.push_back(static_cast<int>(k % half * 4 + first + k / half));
  for (int64_t at : wanted)
    order.push_back(static_cast<int>(at / 4 / half * run.n + (kind - first) * half + at / 4 % half));
  return b.CreateShuffleVector(b.CreateShuffleVector(run.vectors[0], run.vectors[1], pairs),
                               b.CreateShuffleVector(run.vectors[2], run.vectors[3], pairs), order);
}

// Two of the four elements of each 16 bytes of `low`, then two of `high`.
llvm::Value* within_16_bytes(llvm::IRBuilderBase& b, llvm::Value* low, llvm::Value* high, std::array<int, 4> places) {
  std::vector<int> order;
  for (int lane : {0, 4}) {
    for (int k = 0; k < 4; ++k) order.push_back((k < 2 ? 0 : 8) + lane + places[static_cast<size_t>(k)]);
  }
  return b.CreateShuffleVector(low, high, order);
}

// Number `kind` of every `step`, of 4 or 8 bytes in vectors of 32, where no permutation takes two vectors: what goes
// from anywhere to anywhere is two of them and a blend there. So the 16 bytes that belong to the first half of the
// lanes are put beside those that belong to the other, in which everything lies alike; the rest is within 16 bytes, an
// instruction a shuffle, and kinds next to each other share all but the last. (Areas of 20001 boxes of four corners, a
// Zen 3: 11.7 us by permutations of whole vectors, 6.5 so; rows of three 1.1 times as fast.)
llvm::Value* in_halves(llvm::IRBuilderBase& b, const MemoryVectors& run, int64_t step, int64_t kind) {
  const int64_t per = run.n / 2;
  auto both_halves = [&](int64_t chunk) {
    std::vector<int> order;
    for (int64_t k = 0; k < per; ++k) order.push_back(static_cast<int>(chunk % 2 * per + k));
    for (int64_t k = 0; k < per; ++k) order.push_back(static_cast<int>(run.n + (chunk + step) % 2 * per + k));
    return b.CreateShuffleVector(run.vectors[static_cast<size_t>(chunk / 2)],
                                 run.vectors[static_cast<size_t>((chunk + step) / 2)], order);
  };
  auto chunk_of = [&](int64_t row, int64_t of) { return (row * step + of) / per; };
  auto place_in = [&](int64_t row) { return static_cast<int>((row * step + kind) % per); };
  if (per == 2) {
    const int first = place_in(0), last = place_in(1);
    return b.CreateShuffleVector(both_halves(chunk_of(0, kind)), both_halves(chunk_of(1, kind)),
                                 {first, 4 + last, 2 + first, 6 + last});
  }
  struct Two {
    llvm::Value* vector;
    int first, last;
  };
  auto rows_from = [&](int64_t row) -> Two {
    const int64_t first = chunk_of(row, kind), last = chunk_of(row + 1, kind);
    const int at = place_in(row), next = place_in(row + 1);
    if (first == last) return {both_halves(first), at, next};
    // The kinds that lie in the same two, in twos.
    auto alike = [&](int64_t of) { return chunk_of(row, of) == first && chunk_of(row + 1, of) == last; };
    int64_t begin = kind;
    while (begin > 0 && alike(begin - 1)) --begin;
    const int before = static_cast<int>((kind - begin) % 2);
    const int behind = before == 0 && kind + 1 < step && alike(kind + 1) ? 1 : 0;
    auto* twos = within_16_bytes(b, both_halves(first), both_halves(last),
                                 {at - before, at + behind, next - before, next + behind});
    return {twos, before, 2 + before};
  };
  const Two low = rows_from(0), high = rows_from(2);
  return within_16_bytes(b, low.vector, high.vector, {low.first, low.last, high.first, high.last});
}

// Of eight: of every two, the four kinds of which the wanted one is; what is left is every fourth of four.
llvm::Value* eighth(llvm::IRBuilderBase& b, const MemoryVectors& run, std::vector<int64_t> wanted) {
  const int64_t first = wanted[0] % 8 / 4 * 4;
  std::vector<int> kinds;
  for (int64_t at = 0; at < 2 * run.n; ++at) {
    if (at % 8 / 4 * 4 == first) kinds.push_back(static_cast<int>(at));
  }
  MemoryVectors half{{}, {}, run.n};
  for (size_t v = 0; v < run.vectors.size(); v += 2)
    half.vectors.push_back(b.CreateShuffleVector(run.vectors[v], run.vectors[v + 1], kinds));
  for (int64_t& at : wanted) at = at / 8 * 4 + at % 4;
  return fourth(b, half, wanted);
}

}  // namespace

llvm::Value* from_each(llvm::IRBuilderBase& b, const MemoryVectors& run, const std::vector<int64_t>& wanted) {
  llvm::Value* all = llvm::PoisonValue::get(run.vectors[0]->getType());
  for (int64_t v = 0; v < std::ssize(run.vectors); ++v) {
    std::vector<int> mask(static_cast<size_t>(run.n), -1);
    for (size_t k = 0; k < wanted.size(); ++k) {
      const int64_t from = run.vector_of(wanted[k]);
      if (from <= v) mask[k] = static_cast<int>(from == v ? run.n + run.place_of(wanted[k]) : static_cast<int64_t>(k));
    }
    all = b.CreateShuffleVector(all, run.vectors[static_cast<size_t>(v)], mask);
  }
  return std::ssize(wanted) == run.n ? all : lanes_from(b, all, 0, static_cast<unsigned>(wanted.size()));
}

llvm::Value* every_few(llvm::IRBuilderBase& b, const MemoryVectors& run, const std::vector<int64_t>& wanted,
                       int64_t step, bool permutes_two) {
  const bool whole = run.starts.back() == (step - 1) * run.n;
  const size_t bits = run.vectors[0]->getType()->getScalarSizeInBits();
  if (whole && step > 2 && !permutes_two && bits >= 32 && static_cast<size_t>(run.n) * bits == kBitsInHalves) {
    llvm::Value* forwards = in_halves(b, run, step, wanted[0] % step);
    return wanted[0] < wanted[1] ? forwards : reversed(b, forwards);
  }
  if (whole && step == 3) return third(b, run, wanted);
  if (whole && step == 4) return fourth(b, run, wanted);
  if (whole && step == 8) return eighth(b, run, wanted);
  return from_each(b, run, wanted);
}

namespace {

size_t lanes_in(const llvm::Value* x) { return llvm::cast<llvm::FixedVectorType>(x->getType())->getNumElements(); }

// Three rows, four elements of each within 16 bytes: pairs of every two rows, each of which two of the vectors share.
std::vector<llvm::Value*> three_of_four(llvm::IRBuilderBase& b, std::span<llvm::Value* const> rows) {
  llvm::Value* xy = within_16_bytes(b, rows[0], rows[1], {0, 2, 0, 2});
  llvm::Value* yz = within_16_bytes(b, rows[1], rows[2], {1, 3, 1, 3});
  llvm::Value* zx = within_16_bytes(b, rows[2], rows[0], {0, 2, 1, 3});
  return {within_16_bytes(b, xy, zx, {0, 2, 0, 2}), within_16_bytes(b, yz, xy, {0, 2, 1, 3}),
          within_16_bytes(b, zx, yz, {1, 3, 1, 3})};
}

// The elements of rows in turn, `within` so many elements of a vector, each of these for themselves. By prime factors:
// nine rows are three times three, each three of which take nine shuffles.
std::vector<llvm::Value*> in_turn(llvm::IRBuilderBase& b, std::span<llvm::Value* const> rows, size_t within) {
  const size_t count = rows.size(), lanes = lanes_in(rows[0]);
  if (count == 1) return {rows[0]};
  size_t factor = 2;
  while (count % factor != 0) ++factor;
  std::vector<llvm::Value*> vectors;
  if (count == 3 && within == 4 && lanes == 8) return three_of_four(b, rows);
  if (factor >= count) {
    for (size_t part = 0; part < count; ++part) {
      std::vector<LaneOf> made;
      for (size_t l = 0; l < lanes; ++l) {
        const size_t at = part * within + l % within;
        made.push_back({rows[at % count], static_cast<int>(l / within * within + at / count)});
      }
      vectors.push_back(put_together(b, made));
    }
    return vectors;
  }
  // Every so many-th row: sequences of `factor` vectors, which alternate in turn.
  const size_t apart = count / factor;
  std::vector<std::vector<llvm::Value*>> sequences;
  for (size_t first = 0; first < apart; ++first) {
    std::vector<llvm::Value*> some;
    for (size_t row = first; row < count; row += apart) some.push_back(rows[row]);
    sequences.push_back(in_turn(b, some, within));
  }
  for (size_t k = 0; k < factor; ++k) {
    std::vector<llvm::Value*> side_by_side;
    for (const std::vector<llvm::Value*>& sequence : sequences) side_by_side.push_back(sequence[k]);
    std::ranges::move(in_turn(b, side_by_side, within), std::back_inserter(vectors));
  }
  return vectors;
}

// Vectors of 32 bytes, each half for itself first: what the lower halves make comes before all of the upper ones. (1000
// rows of four floats put together from four arrays, a Zen 3: 1.18 us by permutations of whole vectors, 0.54 so.) Of
// more rows than a half has elements, no chunk of the result has elements of more than so many next to each other:
// these are turned alone.
std::vector<llvm::Value*> in_turn_by_halves(llvm::IRBuilderBase& b, std::span<llvm::Value* const> rows) {
  const size_t count = rows.size(), half = lanes_in(rows[0]) / 2;
  const size_t groups = count % half == 0 ? count / half : 1, in_group = count / groups;
  std::vector<llvm::Value*> both(count);
  for (size_t group = 0; group < groups; ++group) {
    const std::vector<llvm::Value*> some = in_turn(b, rows.subspan(group * in_group, in_group), half);
    for (size_t k = 0; k < in_group; ++k) both[k * groups + group] = some[k];
  }
  std::vector<llvm::Value*> vectors;
  for (size_t part = 0; part < count; ++part) {
    std::vector<LaneOf> made;
    for (size_t chunk = 2 * part; chunk < 2 * part + 2; ++chunk) {
      for (size_t l = 0; l < half; ++l)
        made.push_back({both[chunk % count], static_cast<int>(chunk / count * half + l)});
    }
    vectors.push_back(put_together(b, made));
  }
  return vectors;
}

// A power of two of rows: pairs of rows in turn until a single vector is left.
llvm::Value* in_turn_as_one(llvm::IRBuilderBase& b, std::vector<llvm::Value*> rows) {
  while (rows.size() > 1) {
    std::vector<llvm::Value*> next;
    const size_t half = rows.size() / 2;
    std::vector<int> mask;
    for (int l = 0, n = static_cast<int>(lanes_in(rows[0])); l < n; ++l) mask.push_back(l), mask.push_back(n + l);
    for (size_t k = 0; k < half; ++k) next.push_back(b.CreateShuffleVector(rows[k], rows[k + half], mask));
    rows = std::move(next);
  }
  return rows[0];
}

}  // namespace

std::vector<llvm::Value*> interleaved(llvm::IRBuilderBase& b, std::span<llvm::Value* const> rows, bool permutes_two) {
  const size_t lanes = lanes_in(rows[0]), bits = rows[0]->getType()->getScalarSizeInBits();
  if (!permutes_two && lanes * bits % kBitsInHalves == 0) {
    const auto native = static_cast<unsigned>(kBitsInHalves / bits);
    std::vector<llvm::Value*> vectors;
    for (unsigned first = 0; first < lanes; first += native) {
      std::vector<llvm::Value*> part;
      for (llvm::Value* row : rows) part.push_back(lanes_from(b, row, first, native));
      std::ranges::move(in_turn_by_halves(b, part), std::back_inserter(vectors));
    }
    return vectors;
  }
  if (std::has_single_bit(rows.size())) return {in_turn_as_one(b, {rows.begin(), rows.end()})};
  return in_turn(b, rows, lanes);
}

}  // namespace hlojit::codegen
