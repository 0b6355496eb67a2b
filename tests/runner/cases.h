// Cases: a module with inputs and what is claimed of its results, run on the oracle and compiled.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/ir/module.h"
#include "tests/runner/compare.h"
#include "tests/runner/test_file.h"

namespace hlojit::test {

struct Case {
  int line = 0;                           ///< to blame
  std::vector<Literal> inputs, expected;  ///< leaves; nothing expected: what the oracle says
  std::vector<Tolerance> tolerances;      ///< one an expected leaf
};

struct Cases {
  std::string path;
  std::vector<Case> cases;
  bool thorough = true;  ///< every width with every layout
  bool scatter_oob_window = false;
  std::optional<Claim> unsupported;  ///< compiling is refused with this
  std::optional<Claim> error;        ///< the oracle fails with this
};

/// Leaves of a module's entry parameters.
std::vector<Shape> parameter_leaves(const Module& module);

/// Runs them all; the module is valid.
LayoutsRun check_cases(const Module& module, const Cases& cases, Failures& failures);

}  // namespace hlojit::test
