// See steps.h. Which function makes the step of an op, and the one way from native code into it.
#include "runtime/steps.h"

#include "compiler/analysis/steps.h"
#include "compiler/ir/text_attributes.h"
#include "runtime/collectives/collectives.h"
#include "runtime/kernels/custom_call.h"
#include "runtime/kernels/fft.h"
#include "runtime/kernels/linalg.h"
#include "runtime/kernels/sort.h"
#include "runtime/kernels/topk.h"

namespace hlojit {
namespace {

/// The one way from native code into a step: an exception becomes a status and a text.
int32_t run_step(abi::Context* context, const void* state, void* const* buffers, abi::Kernel kernel) noexcept {
  auto* run = static_cast<RunState*>(context->runtime);
  if (*static_cast<const volatile bool*>(context->stop)) return abi::kStopped;
  try {
    (*static_cast<const StepFunction*>(state))({context, *run->pool, buffers, kernel, *run});
    return abi::kOk;
  } catch (const std::exception& e) {
    try {
      run->failure = e.what();
    } catch (...) {  // no memory left for the text
    }
  } catch (...) {
    run->failure = "a step failed";
  }
  return abi::kFailed;
}

[[noreturn]] void not_compiled(const Instruction& i, std::string why) {
  throw Error(ErrorKind::kUnsupported,
              {{.location = i.location, .instruction = i.name, .rule = "not-compiled", .message = std::move(why)}});
}

StepFunction make_step(const Instruction& i) {
  switch (i.opcode) {
    case Opcode::kCholesky: return cholesky_step(i);
    case Opcode::kCustomCall: return custom_call_step(i);
    case Opcode::kFft: return fft_step(i);
    case Opcode::kSort: return sort_step(i);
    case Opcode::kTopK: return top_k_step(i);
    case Opcode::kCollectivePermute:
      if (!text_attribute(i.attrs, "slice_sizes").empty())
        not_compiled(i, "collective-permute in place is not compiled");
      return collective_step(i);
    case Opcode::kAllGather:
    case Opcode::kAllToAll:
    case Opcode::kCollectiveBroadcast: return collective_step(i);
    case Opcode::kReplicaId:
    case Opcode::kPartitionId: return device_id_step(i);
    case Opcode::kRngGetAndUpdateState: return random_state_step(i);
    case Opcode::kInfeed:
    case Opcode::kOutfeed:
    case Opcode::kSend:
    case Opcode::kSendDone:
    case Opcode::kRecv:
    case Opcode::kRecvDone: return queue_step(i);
    case Opcode::kTriangularSolve: return triangular_solve_step(i);
    default: not_compiled(i, std::string(op_name(i.opcode)) + " is not compiled yet");
  }
}

}  // namespace

StepTable::StepTable(const Module& planned) {
  for (const Instruction* i : steps(planned)) {
    functions_.push_back(std::make_unique<StepFunction>(make_step(*i)));
    rows_.push_back({&run_step, functions_.back().get()});
  }
}

std::string step_refused(const Instruction& step) {
  try {
    make_step(step);
    return {};
  } catch (const Error& e) {
    return e.diagnostics().front().message;
  }
}

}  // namespace hlojit
