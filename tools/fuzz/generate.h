// Random valid modules. A seed decides everything: the sizes and types a module is made of, the families
// of ops it draws from, its computations, its layouts, its root. Each module draws only some of the
// families, so that each of them also occurs in large doses and what is not compiled spoils few modules.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "compiler/ir/module.h"

namespace hlojit::tools::fuzz {

/// Names of the families.
std::vector<std::string> family_names();
/// Valid HLO with an entry computation whose parameters may hold any values. It draws from the families named, too.
std::unique_ptr<Module> generate(uint64_t seed, const std::vector<std::string>& always = {});

}  // namespace hlojit::tools::fuzz
