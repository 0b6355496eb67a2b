// Straight-line code in pieces that instruction selection takes in time.
#pragma once

namespace llvm {
class FunctionPass;
}

namespace hlojit::codegen {

/// Cuts long blocks into such as fall through to each other. For just before instruction selection: passes over IR
/// would put them together again.
llvm::FunctionPass* cut_long_blocks();

}  // namespace hlojit::codegen
