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
