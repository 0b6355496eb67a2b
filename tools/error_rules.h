// What each op makes of errors: from bounds on its operands' errors, and their values, one on its result's.
//
// A bound is for the largest error over all elements; infinite where a value that is off could tip the result
// into anything. One rule an op, with what hlojit may do in it: its own functions' errors, sums in another
// order, products contracted into sums.
#pragma once

#include <cmath>
#include <functional>
#include <memory>
#include <vector>

#include "compiler/ir/module.h"

namespace hlojit::tools {

inline constexpr double kUnbounded = INFINITY;

/// A value of the evaluator's and how far a right one may be from it.
struct BoundedValue {
  std::shared_ptr<const Literal> leaf;
  double error = 0;
  double rounding = 0;    ///< of a product, which contraction leaves out; through ops that move elements
  bool open = false;      ///< whether a product is known for one: handed by a loop or a branch, folded or simplified
  bool constant = false;  ///< made from nothing but constants: a pass may have folded it, or what it is put into
  std::vector<BoundedValue> elements;

  /// All of it, elements of tuples included, with the same error.
  static BoundedValue with(Literal literal, double error);
  Literal literal() const;
  /// The largest of its elements'.
  double largest_error() const;
  void set_error(double error);
  void hand_over();
};

/// Half the distance of 1 to its next neighbour; 0 of integers.
double unit_roundoff(DType type);
/// Of an array's finite elements; 0 of what is no array.
double largest_magnitude(const Literal& values);

class ErrorRules {
 public:
  using In = std::vector<const BoundedValue*>;
  using Evaluate = std::function<Literal(const Instruction&, const std::vector<Literal>&)>;

  /// `strict`: elementwise results have the evaluator's bits.
  ErrorRules(bool strict, Evaluate evaluate) : strict_(strict), evaluate_(std::move(evaluate)) {}
  /// The result of an op that is no control and no tuple.
  BoundedValue apply(const Instruction& i, const In& in) const;

 private:
  double elementwise(const Instruction& i, const In& in, const Literal& out) const;
  double power(const In& in, const Literal& out) const;
  double unary(const Instruction& i, const BoundedValue& x, const Literal& out) const;
  double reduced(const Instruction& i, const In& in, size_t k, const Literal& out) const;
  double contracted(const Instruction& i, const In& in, const Literal& out) const;
  double summed(const Instruction& i, const In& in, size_t k, const Literal& out) const;

  bool strict_;
  Evaluate evaluate_;
};

}  // namespace hlojit::tools
