// The custom calls of linear algebra that have a meaning here: LAPACK's as JAX makes them (compiler/ir/lapack_call.h):
// potrf, getrf, geqrf, orgqr, ormqr, trsm, gtsv, syevd; XLA's Qr, ProductOfElementaryHouseholderReflectors, Eigh.
#pragma once

#include <span>

#include "compiler/ir/module.h"

namespace hlojit::eval {

bool is_factor_call(const Instruction& call);
/// Those of eigenvectors and -values.
bool is_spectrum_call(const Instruction& call);
/// What such a call gives. Throws Error(kInput) if its arrays do not fit together.
Literal factors(const Instruction& call, std::span<const Literal* const> operands);

}  // namespace hlojit::eval
