// Products of few terms, such as those of points in space.
//
//   y = f32[301,203] dot(a, b), a = f32[301,3], b = f32[3,203]
//     ->  y = 0 + a[:,0] * b[0,:] + a[:,1] * b[1,:] + a[:,2] * b[2,:]
//
// There is hardly more to multiply than to write. A kernel of blocks spends its time on packing operands and on tiles'
// edges (301x3 by 3x203: 9.9 us, 5.9 so); and what is elementwise belongs to whatever uses it: distances between points
// are compared or summed up without ever being in memory.
#include <algorithm>

#include "compiler/passes/expansions.h"
#include "layout/lists.h"

namespace hlojit {
namespace {

using enum Opcode;

/// One term's factor, in the result's sizes.
class Factor {
 public:
  Factor(Builder& b, const Instruction& dot, size_t side) : b_(b), x_(dot.operand(side)), sizes_(dot.shape.dims) {
    const DotDims& d = dot.attrs.dot;
    const Ints& batch = d.batch(side);
    contracting_ = d.contracting(side);
    const int64_t free = x_->shape.rank() - std::ssize(batch) - std::ssize(contracting_);
    int64_t next = side == 0 ? std::ssize(batch) : std::ssize(sizes_) - free;
    for (int64_t k = 0; k < x_->shape.rank(); ++k) {
      if (std::ranges::count(contracting_, k) > 0) continue;
      const auto at = std::ranges::find(batch, k);
      kept_.push_back(x_->shape.dims[static_cast<size_t>(k)]);
      places_.push_back(at != batch.end() ? at - batch.begin() : next++);
    }
  }

  /// `term`: its coordinates along the contracting dims.
  Instruction* at(const Ints& term) const {
    Ints starts(x_->shape.dims.size(), 0), limits = x_->shape.dims;
    for (size_t c = 0; c < term.size(); ++c) {
      const auto k = static_cast<size_t>(contracting_[c]);
      starts[k] = term[c];
      limits[k] = term[c] + 1;
    }
    return b_.broadcast_in_dim(b_.reshape(b_.slice(x_, starts, limits), kept_), sizes_, places_);
  }

 private:
  Builder& b_;
  Instruction* x_;
  Ints sizes_, contracting_, kept_, places_;
};

}  // namespace

Instruction* expand_short_dot(Builder& b, const Instruction& op, const TargetInfo& target) {
  constexpr int64_t kMostTerms = 4;
  const DType t = op.shape.type;
  const Shape& rhs = op.operand(1)->shape;
  if ((t != DType::kF32 && t != DType::kF64) || rhs.type != t || op.operand(0)->shape.type != t) return nullptr;
  const DotDims& d = op.attrs.dot;
  int64_t terms = 1, columns = 1;
  for (int64_t k = 0; k < rhs.rank(); ++k) {
    const int64_t n = rhs.dims[static_cast<size_t>(k)];
    if (std::ranges::count(d.rhs_contracting, k) > 0)
      terms *= n;
    else if (std::ranges::count(d.rhs_batch, k) == 0)
      columns *= n;
  }
  // A row of less than a vector shares it with others (few results are blocks across the lanes). Not where nothing is
  // summed: a thousand outer products of 4 by 4 took 13.6 us in blocks, 1.7 so; of 3 by 3 6.2, 0.8.
  const bool is_narrow = terms > 1 && columns * dtype_bytes(t) < target.vector_bytes;
  if (terms < 1 || terms > kMostTerms || is_narrow) return nullptr;
  if (!op.attrs.dot_algorithm->empty()) return nullptr;
  // Terms next to each other are picked out of several vectors for each row, which takes longer than packing them once:
  // 301x203 of four terms with AVX2 24 us, 9.7 packed, of three 10.5 and 9.4; with AVX-512 of four 12.7 and 7.8, but
  // 1000x64 of three 3.9 and 5.1.
  const bool picked = std::ranges::count(d.rhs_contracting, rhs.rank() - 1) > 0;
  if (picked && terms > (target.vector_bytes < 64 ? 2 : 3)) return nullptr;
  Ints sizes;
  for (int64_t k : d.rhs_contracting) sizes.push_back(rhs.dims[static_cast<size_t>(k)]);
  const Factor left(b, op, 0), right(b, op, 1);
  Instruction* sum = b.broadcast(b.constant(t, 0), op.shape.dims);
  for (int64_t k = 0; k < terms; ++k) {
    Ints term(sizes.size());
    int64_t rest = k;
    for (size_t c = sizes.size(); c-- > 0; rest /= sizes[c]) term[c] = rest % sizes[c];
    sum = b.binary(kAdd, sum, b.binary(kMultiply, left.at(term), right.at(term)));
  }
  return sum;
}

}  // namespace hlojit
