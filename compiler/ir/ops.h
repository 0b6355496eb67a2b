// The op table: one row an opcode. Passes, parser, verifier and emitters read the row instead of
// switching over opcodes; what cannot be said in a row (shape rule, meaning, emitter) lives in one
// place each: verify/, eval/, codegen/.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace hlojit {

/// What an op does to its operands' elements; decides which kernel kinds admit it.
enum class OpClass : uint8_t {
  kElementwise,  ///< result[i] depends on operand[i] only (scalars may broadcast where listed)
  kMoves,        ///< result elements are operand elements at mapped indices
  kReduces,      ///< combines elements along dimensions or windows
  kContracts,    ///< dot, convolution
  kControl,      ///< call, while, conditional, fusion, tuples
  kSource,       ///< parameter, constant, iota: no operands read
  kEffect,       ///< tokens, channels, host queues, side effects
  kLibrary,      ///< sort, factorisations, fft, custom calls
};

/// Rough price of one result element in cycles a lane; plan/cost reads it.
enum class OpPrice : uint8_t { kFree, kCheap, kDivide, kTranscendental };

/// Facts that passes ask for instead of listing opcodes.
namespace op_trait {
/// Makes no array: the result is the operand's memory (the operands', for a tuple) under another name.
inline constexpr uint32_t kForwards = 1 << 0;
/// The result is its first operand (its first n, for n results), changed in places.
inline constexpr uint32_t kUpdates = 1 << 1;
/// The result is one of the operands, or a truth about them, by their order alone.
inline constexpr uint32_t kPicks = 1 << 2;
/// Touches elements at places known at run time only: each may be a cache line of its own.
inline constexpr uint32_t kRandomPlaces = 1 << 3;
/// About sizes known at run time only; pass `dynamic` takes it out.
inline constexpr uint32_t kRuntimeSizes = 1 << 4;
/// Computed by the runtime (compiler/analysis/steps.h), as everything of class Library is.
inline constexpr uint32_t kStep = 1 << 5;
/// Of class Effect, but nobody sees it go when its result is not read.
inline constexpr uint32_t kSilent = 1 << 6;
/// Begins an asynchronous pair.
inline constexpr uint32_t kStarts = 1 << 7;
/// Devices meet in it: each gives a part, and what one gets depends on the others'.
inline constexpr uint32_t kCollective = 1 << 15;
/// Runs the computations it calls one instruction after the other: loops and branches.
inline constexpr uint32_t kRuns = 1 << 8;
/// f(x, y) = f(y, x), and f(f(x, y), z) = f(x, f(y, z)) but for rounding.
inline constexpr uint32_t kCombines = 1 << 9;
/// Of an op that combines: f(x, x) = x.
inline constexpr uint32_t kIdempotent = 1 << 10;
/// What an op that combines starts from, f(it, x) = x: one, all ones, the least or the greatest value of the
/// type; of those that say nothing it is zero.
inline constexpr uint32_t kFromOne = 1 << 11, kFromOnes = 1 << 12, kFromLeast = 1 << 13, kFromGreatest = 1 << 14;
/// Not continuous, be it of floats: jumps between numbers or truths.
inline constexpr uint32_t kJumps = 1 << 16;
}  // namespace op_trait

// enum, text, arity (-1 = variadic), class, price, traits if any. Order here is the order of the enum; which
// attributes an op takes stands with its rule in verify/.
#define HLOJIT_OPS(X)                                                                             \
  X(Abs, "abs", 1, Elementwise, Cheap)                                                            \
  X(Acos, "acos", 1, Elementwise, Transcendental)                                                 \
  X(Acosh, "acosh", 1, Elementwise, Transcendental)                                               \
  X(Add, "add", 2, Elementwise, Cheap, kCombines)                                                 \
  X(AddDependency, "add-dependency", 2, Effect, Free, kForwards | kSilent)                        \
  X(AfterAll, "after-all", -1, Effect, Free, kSilent)                                             \
  X(AllGather, "all-gather", -1, Effect, Cheap, kStep | kCollective)                              \
  X(AllGatherDone, "all-gather-done", 1, Effect, Cheap)                                           \
  X(AllGatherStart, "all-gather-start", -1, Effect, Cheap, kStarts | kCollective)                 \
  X(AllReduce, "all-reduce", -1, Effect, Cheap, kCollective)                                      \
  X(AllReduceDone, "all-reduce-done", 1, Effect, Cheap)                                           \
  X(AllReduceStart, "all-reduce-start", -1, Effect, Cheap, kStarts | kCollective)                 \
  X(AllToAll, "all-to-all", -1, Effect, Cheap, kStep | kCollective)                               \
  X(And, "and", 2, Elementwise, Cheap, kCombines | kIdempotent | kFromOnes)                       \
  X(Asin, "asin", 1, Elementwise, Transcendental)                                                 \
  X(Asinh, "asinh", 1, Elementwise, Transcendental)                                               \
  X(AsyncDone, "async-done", 1, Effect, Free)                                                     \
  X(AsyncStart, "async-start", -1, Effect, Free, kStarts)                                         \
  X(AsyncUpdate, "async-update", 1, Effect, Free)                                                 \
  X(Atan2, "atan2", 2, Elementwise, Transcendental, kJumps)                                       \
  X(Atanh, "atanh", 1, Elementwise, Transcendental)                                               \
  X(BatchNormGrad, "batch-norm-grad", 5, Library, Cheap)                                          \
  X(BatchNormInference, "batch-norm-inference", 5, Library, Cheap)                                \
  X(BatchNormTraining, "batch-norm-training", 3, Library, Cheap)                                  \
  X(Bitcast, "bitcast", 1, Moves, Free, kForwards)                                                \
  X(BitcastConvert, "bitcast-convert", 1, Elementwise, Free, kJumps)                              \
  X(Broadcast, "broadcast", 1, Moves, Free)                                                       \
  X(Call, "call", -1, Control, Free)                                                              \
  X(Cbrt, "cbrt", 1, Elementwise, Transcendental)                                                 \
  X(Ceil, "ceil", 1, Elementwise, Cheap, kJumps)                                                  \
  X(Cholesky, "cholesky", 1, Library, Cheap)                                                      \
  X(Clamp, "clamp", 3, Elementwise, Cheap)                                                        \
  X(CollectiveBroadcast, "collective-broadcast", -1, Effect, Cheap, kStep | kCollective)          \
  X(CollectivePermute, "collective-permute", -1, Effect, Cheap, kStep | kCollective)              \
  X(CollectivePermuteDone, "collective-permute-done", 1, Effect, Cheap)                           \
  X(CollectivePermuteStart, "collective-permute-start", -1, Effect, Cheap, kStarts | kCollective) \
  X(Clz, "count-leading-zeros", 1, Elementwise, Cheap)                                            \
  X(Compare, "compare", 2, Elementwise, Cheap, kPicks | kJumps)                                   \
  X(Complex, "complex", 2, Elementwise, Free)                                                     \
  X(Concatenate, "concatenate", -1, Moves, Free)                                                  \
  X(Conditional, "conditional", -1, Control, Free, kRuns)                                         \
  X(Constant, "constant", 0, Source, Free)                                                        \
  X(Convert, "convert", 1, Elementwise, Cheap)                                                    \
  X(Convolution, "convolution", 2, Contracts, Cheap)                                              \
  X(Copy, "copy", 1, Moves, Free)                                                                 \
  X(CopyDone, "copy-done", 1, Effect, Free, kSilent)                                              \
  X(CopyStart, "copy-start", 1, Effect, Free, kSilent | kStarts)                                  \
  X(Cosh, "cosh", 1, Elementwise, Transcendental)                                                 \
  X(Cosine, "cosine", 1, Elementwise, Transcendental)                                             \
  X(CustomCall, "custom-call", -1, Library, Cheap)                                                \
  X(Divide, "divide", 2, Elementwise, Divide)                                                     \
  X(Domain, "domain", 1, Effect, Free, kForwards | kSilent)                                       \
  X(Dot, "dot", 2, Contracts, Cheap)                                                              \
  X(DynamicReshape, "dynamic-reshape", -1, Moves, Free, kRuntimeSizes)                            \
  X(DynamicSlice, "dynamic-slice", -1, Moves, Free)                                               \
  X(DynamicUpdateSlice, "dynamic-update-slice", -1, Moves, Free, kUpdates)                        \
  X(Erf, "erf", 1, Elementwise, Transcendental)                                                   \
  X(Exponential, "exponential", 1, Elementwise, Transcendental)                                   \
  X(ExponentialMinusOne, "exponential-minus-one", 1, Elementwise, Transcendental)                 \
  X(Fft, "fft", 1, Library, Cheap)                                                                \
  X(Floor, "floor", 1, Elementwise, Cheap, kJumps)                                                \
  X(Fusion, "fusion", -1, Control, Cheap)                                                         \
  X(Gather, "gather", 2, Moves, Cheap, kRandomPlaces)                                             \
  X(GetDimensionSize, "get-dimension-size", 1, Moves, Free, kRuntimeSizes)                        \
  X(GetTupleElement, "get-tuple-element", 1, Control, Free, kForwards)                            \
  X(Imag, "imag", 1, Elementwise, Free)                                                           \
  X(Infeed, "infeed", 1, Effect, Cheap, kStep)                                                    \
  X(Iota, "iota", 0, Source, Free)                                                                \
  X(IsFinite, "is-finite", 1, Elementwise, Cheap, kJumps)                                         \
  X(Log, "log", 1, Elementwise, Transcendental)                                                   \
  X(LogPlusOne, "log-plus-one", 1, Elementwise, Transcendental)                                   \
  X(Logistic, "logistic", 1, Elementwise, Transcendental)                                         \
  X(Map, "map", -1, Elementwise, Cheap)                                                           \
  X(Maximum, "maximum", 2, Elementwise, Cheap, kPicks | kCombines | kIdempotent | kFromLeast)     \
  X(Minimum, "minimum", 2, Elementwise, Cheap, kPicks | kCombines | kIdempotent | kFromGreatest)  \
  X(Multiply, "multiply", 2, Elementwise, Cheap, kCombines | kFromOne)                            \
  X(MulHi, "mulhi", 2, Elementwise, Cheap)                                                        \
  X(Negate, "negate", 1, Elementwise, Cheap)                                                      \
  X(Not, "not", 1, Elementwise, Cheap)                                                            \
  X(OptBarrier, "opt-barrier", 1, Control, Free, kForwards)                                       \
  X(Or, "or", 2, Elementwise, Cheap, kCombines | kIdempotent)                                     \
  X(Outfeed, "outfeed", 2, Effect, Cheap, kStep)                                                  \
  X(Pad, "pad", 2, Moves, Free)                                                                   \
  X(Parameter, "parameter", 0, Source, Free)                                                      \
  X(PartitionId, "partition-id", 0, Effect, Free, kStep | kSilent)                                \
  X(Popcnt, "popcnt", 1, Elementwise, Cheap)                                                      \
  X(Power, "power", 2, Elementwise, Transcendental)                                               \
  X(RaggedAllToAll, "ragged-all-to-all", 6, Effect, Cheap, kCollective)                           \
  X(RaggedDot, "ragged-dot", 3, Contracts, Cheap)                                                 \
  X(Real, "real", 1, Elementwise, Free)                                                           \
  X(Recv, "recv", 1, Effect, Cheap, kStep)                                                        \
  X(RecvDone, "recv-done", 1, Effect, Cheap, kStep)                                               \
  X(Reduce, "reduce", -1, Reduces, Cheap)                                                         \
  X(ReducePrecision, "reduce-precision", 1, Elementwise, Cheap, kJumps)                           \
  X(ReduceScatter, "reduce-scatter", -1, Effect, Cheap, kCollective)                              \
  X(ReduceWindow, "reduce-window", -1, Reduces, Cheap)                                            \
  X(Remainder, "remainder", 2, Elementwise, Divide, kJumps)                                       \
  X(ReplicaId, "replica-id", 0, Effect, Free, kStep | kSilent)                                    \
  X(Reshape, "reshape", 1, Moves, Free)                                                           \
  X(Reverse, "reverse", 1, Moves, Free)                                                           \
  X(Rng, "rng", 2, Effect, Transcendental)                                                        \
  X(RngBitGenerator, "rng-bit-generator", 1, Library, Cheap)                                      \
  X(RngGetAndUpdateState, "rng-get-and-update-state", 0, Effect, Cheap, kStep)                    \
  X(RoundAfz, "round-nearest-afz", 1, Elementwise, Cheap, kJumps)                                 \
  X(RoundEven, "round-nearest-even", 1, Elementwise, Cheap, kJumps)                               \
  X(Rsqrt, "rsqrt", 1, Elementwise, Divide)                                                       \
  X(Scan, "scan", -1, Reduces, Cheap)                                                             \
  X(ScaledDot, "scaled-dot", 4, Contracts, Cheap)                                                 \
  X(Scatter, "scatter", -1, Moves, Cheap, kUpdates | kRandomPlaces)                               \
  X(Select, "select", 3, Elementwise, Cheap, kPicks)                                              \
  X(SelectAndScatter, "select-and-scatter", 3, Reduces, Cheap)                                    \
  X(Send, "send", 2, Effect, Cheap, kStep)                                                        \
  X(SendDone, "send-done", 1, Effect, Cheap, kStep)                                               \
  X(SetDimensionSize, "set-dimension-size", 2, Moves, Free, kRuntimeSizes)                        \
  X(ShiftLeft, "shift-left", 2, Elementwise, Cheap)                                               \
  X(ShiftRightArithmetic, "shift-right-arithmetic", 2, Elementwise, Cheap)                        \
  X(ShiftRightLogical, "shift-right-logical", 2, Elementwise, Cheap)                              \
  X(Sign, "sign", 1, Elementwise, Cheap, kJumps)                                                  \
  X(Sine, "sine", 1, Elementwise, Transcendental)                                                 \
  X(Sinh, "sinh", 1, Elementwise, Transcendental)                                                 \
  X(Slice, "slice", 1, Moves, Free)                                                               \
  X(Sort, "sort", -1, Library, Cheap)                                                             \
  X(Sqrt, "sqrt", 1, Elementwise, Divide)                                                         \
  X(StochasticConvert, "stochastic-convert", 2, Elementwise, Cheap, kJumps)                       \
  X(Subtract, "subtract", 2, Elementwise, Cheap)                                                  \
  X(Tan, "tan", 1, Elementwise, Transcendental)                                                   \
  X(Tanh, "tanh", 1, Elementwise, Transcendental)                                                 \
  X(TopK, "topk", 1, Library, Cheap)                                                              \
  X(Transpose, "transpose", 1, Moves, Free)                                                       \
  X(TriangularSolve, "triangular-solve", 2, Library, Cheap)                                       \
  X(Tuple, "tuple", -1, Control, Free, kForwards)                                                 \
  X(While, "while", 1, Control, Free, kRuns)                                                      \
  X(Xor, "xor", 2, Elementwise, Cheap, kCombines)

enum class Opcode : uint8_t {
#define X(name, ...) k##name,
  HLOJIT_OPS(X)
#undef X
};

/// The row of an opcode.
struct OpInfo {
  Opcode opcode;
  std::string_view name;  ///< text name, e.g. "round-nearest-afz"
  int arity;              ///< operand count, -1 = variadic
  OpClass op_class;
  OpPrice price;
  uint32_t traits;  ///< of op_trait
};

const OpInfo& op_info(Opcode opcode);
inline std::string_view op_name(Opcode opcode) { return op_info(opcode).name; }
std::optional<Opcode> op_from_name(std::string_view name);
int op_count();

/// The op has one of the traits.
inline bool has_trait(Opcode o, uint32_t traits) { return (op_info(o).traits & traits) != 0; }
inline bool is_elementwise(Opcode o) { return op_info(o).op_class == OpClass::kElementwise; }

}  // namespace hlojit
