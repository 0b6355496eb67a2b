// A fault of LLVM 19, kept away from: lanes that a constant mask makes zero came out as nothing at all.
#pragma once

namespace llvm {
class FunctionPass;
}

namespace hlojit::codegen {

/// Freezes what is masked by a constant with zeros in some lanes only. For just before instruction selection.
llvm::FunctionPass* freeze_masked_lanes();

}  // namespace hlojit::codegen
