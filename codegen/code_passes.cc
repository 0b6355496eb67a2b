// See code_passes.h. LLVM's list is for all that languages ask of it. Each pass goes over all instructions, many have
// analyses made for themselves alone, and a small kernel takes as long for the passes as for its code.
//
// Passes are left out by name, so that what a later LLVM adds is run. Left in, whatever they find: what makes
// instructions of what has none (atomics, masks, tiles, flags, x87), what only some kernels need, and what registers
// and stack slots are given out by: without dead instructions removed and slots merged, slots that nobody uses were
// left in instructions, and writing these ended the process.
#include "codegen/code_passes.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include <llvm/Pass.h>

#include "codegen/long_blocks.h"
#include "codegen/masked_lanes.h"

namespace hlojit::codegen {
namespace {

// What our IR never has: calls of libraries, exceptions, collected memory, threads' own variables, integers above 128
// bits, lifetimes of stack slots, what debuggers, profilers, sanitizers and hardening ask for.
constexpr std::string_view kNothingToDo[] = {
    "Expand large div/rem",
    "Expand large fp convert",
    "Merge contiguous icmps into a memcmp",
    "Expand memcmp() to load/stores",
    "Lower Garbage Collection Instructions",
    "Shadow Stack GC Lowering",
    "Lower constant intrinsics",
    "Replace intrinsics with calls to vector library",
    "Partially inline calls to library functions",
    "Expand vector predication intrinsics",
    "Instrument function entry/exit with calls to e.g. mcount() (post inlining)",
    "TLS Variable Hoist",
    "Expand indirectbr instructions",
    "Exception handling preparation",
    "Prepare callbr",
    "Safe Stack instrumentation pass",
    "Local Dynamic TLS Access Clean-up",
    "X86 PIC Global Base Reg Initialization",
    "Argument Stack Rebase",
    "X86 Windows Fixup Buffer Security Check",
    "X86 speculative load hardening",
    "X86 DynAlloca Expander",
    "Register Allocation Pass Scoring",
    "X86 Load Value Injection (LVI) Load Hardening",
    "Remove Redundant DEBUG_VALUE analysis",
    "Fixup Statepoint Caller Saved",
    "Insert KCFI indirect call checks",
    "Analyze Machine Code For Garbage Collection",
    "Insert fentry calls",
    "Insert XRay ops",
    "Implement the 'patchable-function' attribute",
    "X86 Indirect Branch Tracking",
    "X86 Atom pad short functions",
    "X86 Discriminate Memory Operands",
    "X86 Insert Cache Prefetches",
    "X86 insert wait instruction",
    "Contiguously Lay Out Funclets",
    "StackMap Liveness Analysis",
    "Live DEBUG_VALUE analysis",
    "Machine Sanitizer Binary Metadata",
    "Stack Frame Layout Analysis",
    "X86 Speculative Execution Side Effect Suppression",
    "X86 Indirect Thunks",
    "X86 Return Thunks",
    "Check CFA info and insert CFI instructions if needed",
    "X86 Load Value Injection (LVI) Ret-Hardening",
    "Pseudo Probe Inserter",
    "Unpack machine instruction bundles",
};

// What changed no byte of the benchmarks' code, or places and order of a few instructions, which nobody could time: IR
// comes without dead values, with what loops do not change outside of them, and kernels end once. (Equal values and
// long chains do appear only here: without the machine's own CSE `uniform` took 1.26 times as long, without its
// combiner bf16 products 1.05.)
constexpr std::string_view kNothingWon[] = {
    "Constant Hoisting",
    "Interleaved Access Pass",
    "X86 Partial Reduction",
    "X86 Domain Reassignment Pass",
    "Early Tail Duplication",
    "Optimize machine instruction PHIs",
    "Early If-Conversion",
    "X86 cmov Conversion",
    "Machine code sinking",
    "Live Range Shrink",
    "X86 Optimize Call Frame",
    "X86 Avoid Store Forwarding Blocks",
    "Machine Loop Invariant Code Motion",
    "PostRA Machine Sink",
    "Shrink Wrapping analysis",
    "Machine Late Instructions Cleanup Pass",
    "Tail Duplication",
    "Post RA top-down list latency scheduler",
    // Addresses come with what a loop does not change added outside of it (nest/address.cc), and its search took a
    // seventh of all compiling, half of it where tiles make addresses long.
    "Canonicalize Freeze Instructions in Loops",
    "Loop Strength Reduction",
};

constexpr std::string_view kSelection = "X86 DAG->DAG Instruction Selection";

}  // namespace

std::vector<std::string_view> left_out_passes() {
  std::vector<std::string_view> all(std::begin(kNothingToDo), std::end(kNothingToDo));
  all.insert(all.end(), std::begin(kNothingWon), std::end(kNothingWon));
  return all;
}

void CodePasses::add(llvm::Pass* pass) {
  const std::string_view name = pass->getPassName();
  const bool out = std::ranges::find(kNothingToDo, name) != std::end(kNothingToDo) ||
                   std::ranges::find(kNothingWon, name) != std::end(kNothingWon);
  if (name == kSelection) to_.add(freeze_masked_lanes()), to_.add(cut_long_blocks());
  if (out)
    delete pass;  // as a pass manager would, in the end
  else
    to_.add(pass);
}

}  // namespace hlojit::codegen
