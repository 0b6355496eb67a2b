// See brief.h. Work is added up as if on one core, every computation once.
#include "runtime/pjrt/brief.h"

#include <algorithm>
#include <cmath>

#include "compiler/analysis/access.h"
#include "compiler/ir/lapack_call.h"
#include "layout/lists.h"
#include "runtime/kernels/lapack_calls.h"
#include "runtime/kernels/linalg.h"
#include "runtime/pjrt/sdy.h"

namespace hlojit::pjrt {
namespace {

constexpr double kBriefNs = 50'000;
constexpr double kElementNs = 0.1, kProductNs = 0.025, kComparisonNs = 5;

// Products that are summed into one element of a dot or a convolution, else 0.
double products_an_element(const Instruction& i) {
  return i.is(Opcode::kDot) || i.is(Opcode::kConvolution) ? product<double>(reduction_sizes(i)) : 0;
}

// Comparisons that an element of a sort takes part in, else 0.
double comparisons_an_element(const Instruction& i) {
  if (!i.is(Opcode::kSort)) return 0;
  const Shape& keys = i.operand(0)->shape;
  return std::log2(static_cast<double>(keys.dims[static_cast<size_t>(i.attrs.dimensions[0])]) + 1);
}

bool calls_lapack(const Instruction& i) { return is_lapack_call(i); }

double work_ns(const Instruction& i) {
  if (!i.shape.is_array() && !i.is(Opcode::kCustomCall) && !i.is(Opcode::kSort)) return 0;
  const double each = kElementNs + kProductNs * products_an_element(i) + kComparisonNs * comparisons_an_element(i);
  double ns = 0;
  for (const Shape* leaf : leaves(i.shape)) ns += each * static_cast<double>(leaf->element_count());
  if (calls_lapack(i)) ns += lapack_call_ns(i);
  if (i.is(Opcode::kCholesky)) ns += cholesky_ns(i);
  if (i.is(Opcode::kTriangularSolve)) ns += triangular_solve_ns(i);
  return ns;
}

bool is_opaque(const Instruction& i) {
  switch (i.opcode) {
    case Opcode::kCustomCall: return !calls_lapack(i);
    case Opcode::kWhile:
    case Opcode::kInfeed:
    case Opcode::kOutfeed: return true;
    default: return false;
  }
}

}  // namespace

bool is_brief(const Module& module) {
  double ns = 0;
  for (const auto& c : module.computations()) {
    for (const auto& i : c->instructions()) {
      if (is_opaque(*i)) return false;
      ns += work_ns(*i);
    }
  }
  return ns < kBriefNs;
}

bool calls_python(const Module& module) {
  auto calls = [](const auto& i) {
    return i->is(Opcode::kCustomCall) &&
           frontend_attribute(*i->attrs.frontend_attributes, "hlojit.calls_python") == "true";
  };
  return std::ranges::any_of(module.computations(),
                             [&](const auto& c) { return std::ranges::any_of(c->instructions(), calls); });
}

}  // namespace hlojit::pjrt
