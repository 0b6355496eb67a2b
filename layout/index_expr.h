// Symbolic index arithmetic: integer expressions over bounded variables, kept in the normal form
//     constant + sum of coefficient * atom,   atom = variable | floordiv(expr, w) | mod(expr, w)
// and simplified by ranges. This is how an address becomes affine by construction: when loop
// variables are the digits of a dimension, floordiv and mod of the linear-index formula vanish
// because each part is either a multiple of the width or provably smaller than it.
//
//   d0 = 8*k + j, k in [0,4), j in [0,8):   floordiv(d0, 8) = k,   mod(d0, 8) = j
//
// Values are immutable and shared; equality is structural. Rules are exact (integers), each
// division rounds towards minus infinity.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "layout/shape.h"

namespace hlojit {

/// Closed interval of values.
struct Range {
  int64_t lo = 0;
  int64_t hi = 0;
  bool operator==(const Range&) const = default;
};

class IndexExpr {
 public:
  enum class AtomKind : uint8_t { kVar, kFloorDiv, kMod };
  struct Atom;  // shared, immutable
  struct Term {
    std::shared_ptr<const Atom> atom;
    int64_t coefficient;
  };
  struct Atom {
    AtomKind kind;
    int var = -1;                              // kVar: identity of the variable
    std::shared_ptr<const IndexExpr> operand;  // kFloorDiv, kMod
    int64_t width = 0;                         // kFloorDiv, kMod: > 0
    Range range;                               // values the atom can take
    size_t hash = 0;                           // of the structure, kept because it is asked often
  };

  IndexExpr(int64_t constant = 0) : constant_(constant) {}  // NOLINT: implicit on purpose
  /// Variable number `id` with values in range. With a single value it is that constant.
  static IndexExpr var(int id, Range range);
  static IndexExpr var(int id, int64_t extent) { return var(id, Range{0, extent > 0 ? extent - 1 : 0}); }

  int64_t constant() const { return constant_; }
  std::span<const Term> terms() const { return terms_; }
  bool is_constant() const { return terms_.empty(); }
  /// Bounds from the ranges of the atoms (exact for affine forms, else conservative).
  Range range() const;
  /// No floordiv or mod anywhere.
  bool is_affine() const;
  /// Coefficient of variable id at top level; nullopt if the variable also occurs inside a
  /// floordiv or mod (the expression is then not affine in it). 0 if it does not occur.
  std::optional<int64_t> coefficient(int id) const;
  bool depends_on(int id) const;
  /// Ids of all variables that occur, ascending.
  std::vector<int> variables() const;
  /// The id of the variable that this is, and nothing else; -1 if it is more.
  int sole_variable() const;
  /// Every floordiv / mod atom, innermost first, without duplicates.
  std::vector<std::shared_ptr<const Atom>> div_mod_atoms() const;
  /// Replaces variables, all at once, simplifying again.
  struct Substitution;
  IndexExpr substitute(std::span<const Substitution> values) const;
  IndexExpr substitute(int id, const IndexExpr& value) const;
  /// Value for given variable values.
  int64_t evaluate(std::span<const int64_t> values) const;
  std::string to_string() const;
  size_t hash() const;
  bool operator==(const IndexExpr& other) const;

  friend IndexExpr operator+(const IndexExpr& a, const IndexExpr& b);
  friend IndexExpr operator-(const IndexExpr& a, const IndexExpr& b);
  friend IndexExpr operator*(const IndexExpr& a, int64_t factor);
  /// Simplifications: split off multiples of w (also of the constant part, keeping the remainder in
  /// range), nested divisions, mod of mod, div/mod of what is already in [0,w), and the rejoining
  /// w*floordiv(e,w) + mod(e,w) = e that reshape of reshape produces.
  friend IndexExpr floordiv(const IndexExpr& a, int64_t width);
  friend IndexExpr mod(const IndexExpr& a, int64_t width);

 private:
  friend struct IndexExprBuilder;  // the simplifier's own way in
  int64_t constant_;
  std::vector<Term> terms_;  // sorted by a structural order, coefficients non-zero
};

struct IndexExpr::Substitution {
  int var;
  IndexExpr value;
};

/// Each expression of a list with its variables replaced.
std::vector<IndexExpr> substitute(std::span<const IndexExpr> list, std::span<const IndexExpr::Substitution> values);
std::vector<IndexExpr> substitute(std::span<const IndexExpr> list, int id, const IndexExpr& value);

/// Position in elements (as linear_index) of symbolic coordinates, one per logical dimension.
/// `coordinates` must be in bounds for the shape.
IndexExpr linear_index(const Shape& shape, std::span<const IndexExpr> coordinates);

/// Row-major logical position of coordinates in an array of sizes dims, and its inverse.
IndexExpr linearize(std::span<const int64_t> dims, std::span<const IndexExpr> coordinates);
std::vector<IndexExpr> delinearize(std::span<const int64_t> dims, const IndexExpr& position);
/// Coordinates of a reshape's operand, from those of its result. Groups of dimensions with equal
/// products are handled one by one, so that unchanged dims pass through untouched.
std::vector<IndexExpr> reshape_coordinates(std::span<const int64_t> operand_dims, std::span<const int64_t> result_dims,
                                           std::span<const IndexExpr> result_coordinates);

}  // namespace hlojit
