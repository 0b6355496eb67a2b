// The table from ops to their rules, and the faces of it.
#include "compiler/verify/shape_inference.h"

#include <array>

#include "compiler/verify/rules.h"

namespace hlojit {
namespace rules {
namespace {

// Whether text may leave out the result shape: kOmit where it can be inferred, kDeclare where HLO
// asks for it (also of some ops whose sizes do follow from the attributes, such as slice).
enum class Result : uint8_t { kOmit, kDeclare };

struct Entry {
  Opcode opcode;
  Rule rule;
  Result result = Result::kOmit;
};

constexpr Entry kTable[] = {
    // ---- elementwise, besides the rows of elementwise_rules.cc ----
    {Opcode::kBitcastConvert, bitcast_convert, Result::kDeclare},
    {Opcode::kClamp, clamp},
    {Opcode::kCompare, compare},
    {Opcode::kConvert, convert, Result::kDeclare},
    {Opcode::kIota, iota, Result::kDeclare},
    {Opcode::kMap, map},
    {Opcode::kReducePrecision, reduce_precision, Result::kDeclare},
    {Opcode::kSelect, select},
    {Opcode::kStochasticConvert, stochastic_convert, Result::kDeclare},

    // ---- data movement ----
    {Opcode::kBitcast, bitcast, Result::kDeclare},
    {Opcode::kBroadcast, broadcast, Result::kDeclare},
    {Opcode::kConcatenate, concatenate},
    {Opcode::kCopy, copy},
    {Opcode::kDynamicReshape, dynamic_reshape, Result::kDeclare},
    {Opcode::kDynamicSlice, dynamic_slice, Result::kDeclare},
    {Opcode::kDynamicUpdateSlice, dynamic_update_slice, Result::kDeclare},
    {Opcode::kGather, gather},
    {Opcode::kGetDimensionSize, get_dimension_size},
    {Opcode::kPad, pad},
    {Opcode::kReshape, reshape, Result::kDeclare},
    {Opcode::kReverse, reverse},
    {Opcode::kScatter, scatter},
    {Opcode::kSetDimensionSize, set_dimension_size},
    {Opcode::kSlice, slice, Result::kDeclare},
    {Opcode::kTranspose, transpose},

    // ---- reductions, windows, sorting ----
    {Opcode::kReduce, reduce},
    {Opcode::kReduceWindow, reduce_window},
    {Opcode::kScan, scan},
    {Opcode::kSelectAndScatter, select_and_scatter},
    {Opcode::kSort, sort},
    {Opcode::kTopK, topk},

    // ---- contractions ----
    {Opcode::kConvolution, convolution},
    {Opcode::kDot, dot},
    {Opcode::kRaggedDot, ragged_dot},
    {Opcode::kScaledDot, scaled_dot, Result::kDeclare},

    // ---- library ----
    {Opcode::kBatchNormGrad, batch_norm},
    {Opcode::kBatchNormInference, batch_norm},
    {Opcode::kBatchNormTraining, batch_norm},
    {Opcode::kCholesky, cholesky},
    {Opcode::kFft, fft},
    {Opcode::kRng, rng, Result::kDeclare},
    {Opcode::kRngBitGenerator, rng_bit_generator, Result::kDeclare},
    {Opcode::kRngGetAndUpdateState, rng_state, Result::kDeclare},
    {Opcode::kTriangularSolve, triangular_solve},

    // ---- control flow, tuples, sources ----
    {Opcode::kCall, call},
    {Opcode::kConditional, conditional},
    {Opcode::kConstant, given, Result::kDeclare},
    {Opcode::kCustomCall, custom_call, Result::kDeclare},
    {Opcode::kDomain, identity},
    {Opcode::kFusion, fusion, Result::kDeclare},
    {Opcode::kGetTupleElement, get_tuple_element},
    {Opcode::kOptBarrier, identity},
    {Opcode::kParameter, given, Result::kDeclare},
    {Opcode::kTuple, tuple},
    {Opcode::kWhile, while_loop},

    // ---- tokens, channels, asynchronous pairs ----
    {Opcode::kAddDependency, add_dependency},
    {Opcode::kAfterAll, after_all},
    {Opcode::kAsyncDone, done_of_second, Result::kDeclare},
    {Opcode::kAsyncStart, async_start, Result::kDeclare},
    {Opcode::kAsyncUpdate, async_update, Result::kDeclare},
    {Opcode::kCopyDone, copy_done, Result::kDeclare},
    {Opcode::kCopyStart, copy_start, Result::kDeclare},
    {Opcode::kInfeed, infeed, Result::kDeclare},
    {Opcode::kOutfeed, outfeed, Result::kDeclare},
    {Opcode::kRecv, recv, Result::kDeclare},
    {Opcode::kRecvDone, recv_done, Result::kDeclare},
    {Opcode::kSend, send, Result::kDeclare},
    {Opcode::kSendDone, send_done, Result::kDeclare},

    // ---- collectives ----
    {Opcode::kAllGather, all_gather, Result::kDeclare},
    {Opcode::kAllGatherDone, done_of_second, Result::kDeclare},
    {Opcode::kAllGatherStart, all_gather_start, Result::kDeclare},
    {Opcode::kAllReduce, all_reduce, Result::kDeclare},
    {Opcode::kAllReduceDone, identity, Result::kDeclare},
    {Opcode::kAllReduceStart, all_reduce, Result::kDeclare},
    {Opcode::kAllToAll, all_to_all, Result::kDeclare},
    {Opcode::kCollectiveBroadcast, collective_broadcast, Result::kDeclare},
    {Opcode::kCollectivePermute, collective_permute, Result::kDeclare},
    {Opcode::kCollectivePermuteDone, done_of_second, Result::kDeclare},
    {Opcode::kCollectivePermuteStart, collective_permute_start, Result::kDeclare},
    {Opcode::kPartitionId, device_id},
    {Opcode::kRaggedAllToAll, ragged_all_to_all, Result::kDeclare},
    {Opcode::kReduceScatter, reduce_scatter, Result::kDeclare},
    {Opcode::kReplicaId, device_id},
};

// The table by opcode; ops without a row are rows of the element type table.
constexpr auto kByOpcode = [] {
  std::array<Entry, 256> entries{};
  for (size_t i = 0; i < entries.size(); ++i) entries[i] = {static_cast<Opcode>(i), elementwise};
  for (const Entry& e : kTable) entries[static_cast<size_t>(e.opcode)] = e;
  return entries;
}();

}  // namespace

Shape apply(const Use& use) {
  for (const Computation* c : use.called) {
    need(c && c->root(), "root", "{} calls a computation without a root", op_name(use.opcode));
    for (const Instruction* p : c->parameters()) {
      need(p, "parameter-numbers", "computation {} lacks a parameter", c->name);
    }
  }
  return kByOpcode[static_cast<size_t>(use.opcode)].rule(use);
}

}  // namespace rules

Shape infer_shape(Opcode opcode, std::span<const Shape* const> operands, const Attributes& attrs,
                  std::span<Computation* const> called) {
  return rules::apply({opcode, operands, attrs, called});
}

bool shape_may_be_omitted(Opcode opcode) {
  return rules::kByOpcode[static_cast<size_t>(opcode)].result == rules::Result::kOmit;
}

}  // namespace hlojit
