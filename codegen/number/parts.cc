// See parts.h.
#include "codegen/number/parts.h"

#include <algorithm>
#include <vector>

#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstrTypes.h>

namespace hlojit::codegen {
namespace {

unsigned lane_count(const llvm::Value* x) {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
  return vector ? vector->getNumElements() : 1;
}

bool never_holds(const llvm::Value* mask, unsigned lane) {
  if (auto* c = llvm::dyn_cast<llvm::Constant>(mask)) {
    const llvm::Constant* bit = c->getAggregateElement(lane);
    return bit && bit->isNullValue();
  }
  if (auto* s = llvm::dyn_cast<llvm::ShuffleVectorInst>(mask)) {
    const int from = s->getMaskValue(lane), lanes = static_cast<int>(lane_count(s->getOperand(0)));
    return from >= 0 && never_holds(s->getOperand(from < lanes ? 0 : 1), static_cast<unsigned>(from % lanes));
  }
  auto* both = llvm::dyn_cast<llvm::BinaryOperator>(mask);
  if (!both || both->getOpcode() != llvm::Instruction::And) return false;
  return never_holds(both->getOperand(0), lane) || never_holds(both->getOperand(1), lane);
}

}  // namespace

llvm::Type* vector_of(llvm::Type* element, int64_t lanes) {
  return lanes == 1 ? element : llvm::FixedVectorType::get(element, static_cast<unsigned>(lanes));
}

llvm::Value* lanes_from(llvm::IRBuilderBase& b, llvm::Value* x, unsigned first, unsigned count) {
  const unsigned lanes = lane_count(x);
  if (first == 0 && count == lanes) return x;
  if (count == 1) return b.CreateExtractElement(x, uint64_t{first});
  if (!x->getType()->isVectorTy()) {
    return b.CreateInsertElement(llvm::PoisonValue::get(vector_of(x->getType(), count)), x, uint64_t{0});
  }
  std::vector<int> mask;
  for (unsigned k = first; k < first + count; ++k) mask.push_back(k < lanes ? static_cast<int>(k) : -1);
  return b.CreateShuffleVector(x, mask);
}

llvm::Value* joined(llvm::IRBuilderBase& b, std::span<llvm::Value* const> parts) {
  return parts.size() == 1 ? parts[0] : llvm::concatenateVectors(b, {parts.data(), parts.size()});
}

llvm::Value* put_together(llvm::IRBuilderBase& b, std::span<const LaneOf> lanes) {
  std::vector<llvm::Value*> vectors;
  for (const LaneOf& l : lanes) {
    if (l.vector && std::ranges::find(vectors, l.vector) == vectors.end()) vectors.push_back(l.vector);
  }
  const auto length = static_cast<int>(lane_count(vectors[0]));
  llvm::Value* all = vectors[0];
  for (size_t k = std::min<size_t>(1, vectors.size() - 1); k < vectors.size(); ++k) {
    std::vector<int> mask;
    for (size_t l = 0; l < lanes.size(); ++l) {
      const auto [from, lane] = lanes[l];
      const bool first = k <= 1 && from == vectors[0];
      if (!from)
        mask.push_back(-1);
      else if (from == vectors[k])
        mask.push_back((k == 0 ? 0 : k == 1 ? length : static_cast<int>(lanes.size())) + lane);
      else
        mask.push_back(first ? lane : k <= 1 ? -1 : static_cast<int>(l));
    }
    all = b.CreateShuffleVector(all, vectors[k], mask);
  }
  return all;
}

llvm::Constant* first_lanes(llvm::IRBuilderBase& b, int lanes, int set) {
  std::vector<llvm::Constant*> bits;
  for (int k = 0; k < lanes; ++k) bits.push_back(b.getInt1(k < set));
  return llvm::ConstantVector::get(bits);
}

bool never_holds(const llvm::Value* mask, unsigned first, unsigned count) {
  for (unsigned lane = first; lane < first + count; ++lane) {
    if (!never_holds(mask, lane)) return false;
  }
  return true;
}

llvm::Value* reversed(llvm::IRBuilderBase& b, llvm::Value* x) {
  std::vector<int> mask;
  for (int k = static_cast<int>(lane_count(x)) - 1; k >= 0; --k) mask.push_back(k);
  return b.CreateShuffleVector(x, mask);
}

namespace {

// Elements of x and y in turns, each `width` lanes for themselves: from the lower halves of these, or the upper ones.
llvm::Value* zipped(llvm::IRBuilderBase& b, llvm::Value* x, llvm::Value* y, unsigned width, bool upper) {
  const unsigned lanes = lane_count(x);
  std::vector<int> mask;
  for (unsigned k = 0; k < lanes; ++k) {
    unsigned within = k % width, from = k - within + within / 2 + (upper ? width / 2 : 0);
    mask.push_back(static_cast<int>(within % 2 ? lanes + from : from));
  }
  return b.CreateShuffleVector(x, y, mask);
}

// The lower half of x and that of y, or the upper ones.
llvm::Value* halves(llvm::IRBuilderBase& b, llvm::Value* x, llvm::Value* y, bool upper) {
  const int lanes = static_cast<int>(lane_count(x)), half = lanes / 2;
  std::vector<int> mask;
  for (int first : {0, lanes}) {
    for (int k = 0; k < half; ++k) mask.push_back(first + (upper ? half : 0) + k);
  }
  return b.CreateShuffleVector(x, y, mask);
}

// Every second run of `width` lanes of x, then of y, from the first on or from the second.
llvm::Value* every_second(llvm::IRBuilderBase& b, llvm::Value* x, llvm::Value* y, unsigned width, bool second) {
  const unsigned lanes = lane_count(x);
  std::vector<int> mask;
  for (unsigned first : {0u, lanes}) {
    for (unsigned k = 0; k < lanes; ++k) {
      if ((k / width % 2 == 1) == second) mask.push_back(static_cast<int>(first + k));
    }
  }
  return b.CreateShuffleVector(x, y, mask);
}

// Vectors that LLVM is not to look behind: it tries each shuffle with all that it is made of, round by round, and finds
// nothing better. (A square of 16 floats each way compiled in 4.3 ms, as the same instructions; 5.7 without.)
std::vector<llvm::Value*> fenced(llvm::IRBuilderBase& b, std::vector<llvm::Value*> vectors) {
  for (llvm::Value*& x : vectors) {
    llvm::Type* type = x->getType();
    llvm::Type* floats = vector_of(b.getFloatTy(), lane_count(x) * type->getScalarSizeInBits() / 32);
    x = b.CreateIntrinsic(llvm::Intrinsic::arithmetic_fence, {floats}, {b.CreateBitCast(x, floats)});
    x = b.CreateBitCast(x, type);
  }
  return vectors;
}

// Two or four vectors of as many runs of `width` lanes: runs for elements, transposed.
std::vector<llvm::Value*> runs_transposed(llvm::IRBuilderBase& b, std::span<llvm::Value* const> v, unsigned width) {
  std::vector<llvm::Value*> paired;
  for (bool upper : {false, true}) {
    for (size_t i = 0; i < v.size(); i += 2) paired.push_back(halves(b, v[i], v[i + 1], upper));
  }
  if (v.size() == 2) return paired;
  paired = fenced(b, std::move(paired));
  std::vector<llvm::Value*> all;
  for (size_t i = 0; i < paired.size(); i += 2) {
    for (bool second : {false, true}) all.push_back(every_second(b, paired[i], paired[i + 1], width, second));
  }
  return all;
}

// A square of so many runs of `few` elements in each row and column, without taking rows apart: what LLVM makes of the
// parts are loads of 16 bytes, and each line comes again for each part of it. (1024x1024 floats on a Zen 4: 305 us so,
// 200 by whole rows; 1025x1025 805, 640; 2000x2000 2600, 1600.)
std::vector<llvm::Value*> square_transposed(llvm::IRBuilderBase& b, std::span<llvm::Value* const> rows, unsigned few) {
  const size_t groups = rows.size() / few;
  std::vector<std::vector<llvm::Value*>> by_column(few);  // of each run, from each group of rows
  for (size_t g = 0; g < groups; ++g) {
    std::vector<llvm::Value*> state(rows.begin() + static_cast<std::ptrdiff_t>(g * few),
                                    rows.begin() + static_cast<std::ptrdiff_t>((g + 1) * few));
    for (unsigned turned = 1; turned < few; turned *= 2) {
      std::vector<llvm::Value*> next;
      for (size_t i = 0; i < few / 2; ++i) {
        for (bool upper : {false, true}) next.push_back(zipped(b, state[i], state[i + few / 2], few, upper));
      }
      state = fenced(b, std::move(next));
    }
    for (size_t k = 0; k < few; ++k) by_column[k].push_back(state[k]);
  }
  std::vector<llvm::Value*> columns(rows.size());
  for (size_t k = 0; k < few; ++k) {
    const auto runs = runs_transposed(b, by_column[k], few);
    for (size_t run = 0; run < groups; ++run) columns[run * few + k] = runs[run];
  }
  return columns;
}

}  // namespace

// All processors interleave two vectors within 16 bytes. So as many rows as a column has elements in 16 bytes are a
// group, groups stand side by side, and the halves of a group are interleaved: each round turns the bits of an
// element's number (row, column) by one, until it is (column, row). Of rows longer than 16 bytes each 16 are a matrix.
// (Swapping ever smaller parts of pairs of rows took twice the instructions for bytes, and LLVM 80 ms for eight rows of
// them.)
std::vector<llvm::Value*> transposed(llvm::IRBuilderBase& b, std::span<llvm::Value* const> rows) {
  const auto count = static_cast<unsigned>(rows.size());
  const unsigned per = lane_count(rows[0]);
  const unsigned few = std::max(128 / rows[0]->getType()->getScalarSizeInBits(), 2u);
  std::vector<llvm::Value*> columns;
  if (per == count && (per == 2 * few || per == 4 * few)) return square_transposed(b, rows, few);
  if (per > few) {
    for (unsigned first = 0; first < per; first += few) {
      std::vector<llvm::Value*> parts;
      for (llvm::Value* row : rows) parts.push_back(lanes_from(b, row, first, few));
      for (llvm::Value* column : transposed(b, parts)) columns.push_back(column);
    }
    return columns;
  }
  const unsigned group = std::min(few, count), beside = std::min(few / per, count / 2), width = beside * per;
  std::vector<llvm::Value*> state;
  for (unsigned i = 0; i < group; i += beside) {
    std::vector<llvm::Value*> parts;
    for (unsigned first = i; first < count; first += group) {
      for (llvm::Value* row : rows.subspan(first, beside)) parts.push_back(row);
    }
    state.push_back(joined(b, parts));
  }
  for (unsigned turned = 1; turned < group; turned *= 2) {
    std::vector<llvm::Value*> next;
    for (size_t i = 0; i < state.size() / 2; ++i) {
      for (bool upper : {false, true}) next.push_back(zipped(b, state[i], state[i + state.size() / 2], width, upper));
    }
    state = std::move(next);
  }
  if (width == group) return state;
  for (llvm::Value* several : state) {
    for (unsigned first = 0; first < width; first += group) columns.push_back(lanes_from(b, several, first, group));
  }
  return columns;
}

llvm::Value* in_parts(llvm::IRBuilderBase& b, std::span<llvm::Value* const> operands, unsigned count,
                      const std::function<llvm::Value*(std::span<llvm::Value* const>)>& f) {
  const unsigned lanes = lane_count(operands[0]);
  std::vector<llvm::Value*> results;
  for (unsigned first = 0; first < lanes; first += count) {
    std::vector<llvm::Value*> part;
    for (llvm::Value* x : operands) part.push_back(lanes_from(b, x, first, count));
    results.push_back(f(part));
  }
  return lanes_from(b, joined(b, results), 0, lanes);
}

}  // namespace hlojit::codegen
