// Two ways through a scope, of which one is taken at run time.
#pragma once

#include <functional>
#include <vector>

#include "codegen/nest/scope.h"

namespace hlojit::codegen {

/// Emits `yes` and `no` into `scope`, to run where `condition` (i1) holds and where not; they carry as many values
/// each, which are returned joined. What one of them computed in the scope is known neither to the other nor to
/// what follows.
std::vector<llvm::Value*> branch(Scope& scope, llvm::Value* condition,
                                 const std::function<std::vector<llvm::Value*>()>& yes,
                                 const std::function<std::vector<llvm::Value*>()>& no);

}  // namespace hlojit::codegen
