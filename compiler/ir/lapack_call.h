// The custom calls that JAX makes its linear algebra of: lapack_{s,d,c,z}NAME_ffi, column-major matrices in batches,
// options as attributes ({uplo = 76 : ui8}: a character's code).
#pragma once

#include <string_view>

#include "compiler/ir/module.h"

namespace hlojit {

/// Whether the target is of this family. (Its function may still be none that is served.)
bool is_lapack_call(const Instruction& call);
/// The letter of its type, and the function's name.
char lapack_type(const Instruction& call);
std::string_view lapack_function(const Instruction& call);
/// An attribute's number, `missing` if it is not there.
int lapack_option(const Instruction& call, std::string_view name, int missing);

}  // namespace hlojit
