// Everything the verifier guarantees, one row a rule: the identifier that a diagnostic carries, and
// what holds for every instruction, computation or module once the verifier is silent.
//
// A rule function names the rule it enforces; a name that is not in this list does not compile, and
// a row without a test under tests/errors/ (or tests/compiler/verify_test.cc, for what no text can
// express) fails the tests.
#pragma once

#include <string_view>

namespace hlojit {

struct RuleInfo {
  std::string_view id;
  std::string_view guarantee;
};

inline constexpr RuleInfo kRules[] = {
    // ---- shapes ----
    {"shape", "sizes are >= 0 and bounded, element and byte counts fit in 63 bits"},
    {"layout", "minor_to_major is a permutation of the dimensions; tiles, L, E, SC are sound"},
    {"size-overflow", "no size computed from operands and attributes exceeds 63 bits"},

    // ---- every op ----
    {"operand-count", "an op has as many operands as it asks for"},
    {"operand-kind", "an operand is an array, a tuple, a token or a scalar, as the op asks for"},
    {"operand-type", "the op admits the element types of its operands"},
    {"operand-types-equal", "operands that must agree in element type do"},
    {"operand-sizes", "operands that must agree in sizes do: HLO has no implicit broadcast"},
    {"result-shape", "the declared result has the sizes and element type that inference gives"},
    {"result-type", "a declared element type is one that the op can produce"},
    {"called-count", "an op calls as many computations as it asks for"},
    {"called-parameters", "a called computation takes what its caller gives it"},
    {"called-result", "a called computation returns what its caller needs"},
    {"dimension-range", "dimension numbers lie in [0, rank)"},
    {"dimension-unique", "dimension numbers that must differ do"},
    {"dimension-count", "there are as many dimension numbers or sizes as the op asks for"},
    {"dimension-order", "dimension numbers that must ascend do"},

    // ---- elementwise ----
    {"compare-type", "the comparison type fits the element type"},
    {"reduce-precision-bits", "exponent_bits >= 1, mantissa_bits >= 0"},
    {"bitcast-convert-width", "element widths divide each other and sizes follow the ratio"},
    {"stochastic-convert-random", "the random operand is unsigned and as wide as the value"},
    {"map-dimensions", "map names all dimensions, 0 to rank-1 in order, or none"},

    // ---- shape and data movement ----
    {"bitcast-size", "operand and result of bitcast take the same bytes in their layouts"},
    {"broadcast-size", "a broadcast dimension keeps its size (or expands from 1)"},
    {"reshape-count", "reshape keeps the number of elements"},
    {"slice-bounds", "0 <= start <= limit <= size and stride >= 1"},
    {"dynamic-slice-indices", "one scalar index a dimension, all of one integer type"},
    {"dynamic-slice-size", "0 <= slice size <= dimension size"},
    {"pad-config", "one entry a dimension, interior >= 0, no negative size"},
    {"gather-indices", "index_vector_dim in [0, rank], one index a dimension of start_index_map"},
    {"gather-slice-sizes", "0 <= slice size <= dimension; at most 1 in collapsed and batching dimensions"},
    {"gather-dimensions", "offset, collapsed and batching dimensions make up the operand's rank"},
    {"gather-batching", "batching dimensions pair up, equal in size, disjoint from the others"},
    {"scatter-indices", "index_vector_dim in [0, rank], one index an operand dimension mapped"},
    {"scatter-dimensions", "window, inserted and batching dimensions make up the operand's rank"},
    {"scatter-batching", "batching dimensions pair up, equal in size, disjoint from the others"},
    {"scatter-updates", "updates have the rank and sizes that indices and windows ask for"},

    // ---- reductions, windows, sorting ----
    {"window", "one window dimension an operand dimension; sizes, strides, dilations >= 1"},
    {"window-dilation", "select-and-scatter has no dilation"},
    {"select-and-scatter-source", "the source has one element a window"},
    {"scan-carries", "num_carries and the operands of scan agree"},
    {"topk-k", "0 <= k <= size of the last dimension"},

    // ---- contractions ----
    {"dot-dimension-size", "contracting and batch dimensions are equal in size, pairwise"},
    {"dot-algorithm", "the algorithm of a dot is a known one"},
    {"ragged-dot-dimensions", "one ragged dimension, and the group dimensions its role asks for"},
    {"ragged-dot-groups", "group sizes are integers, one group a slice of the right-hand side"},
    {"scaled-dot-scale", "a scale divides its operand's sizes; there is one contracting dimension"},
    {"conv-labels", "dim_labels name each dimension of both operands and the result once"},
    {"conv-window", "the window has the kernel's spatial sizes"},
    {"conv-groups", "group counts are >= 1, not both above 1, and divide the features and batch"},

    // ---- library ops ----
    {"fft-length", "one to three lengths, which agree with the innermost dimensions"},
    {"square-matrix", "the two minor dimensions of a factorised matrix are equal"},
    {"triangular-solve-sizes", "matrix and right-hand side agree in sizes and batch dimensions"},
    {"batch-norm-sizes", "scale, offset, mean and variance are vectors of the feature's size"},
    {"rng-state", "the state of a random generator is u64[2] or u64[3], as the algorithm asks for"},

    // ---- control flow, tuples, calls ----
    {"parameter-numbers", "parameters of a computation are numbered 0 to n-1, each once"},
    {"constant-literal", "a constant has a literal of its shape"},
    {"tuple-size", "a tuple has at most 262144 leaves"},
    {"tuple-index", "get-tuple-element reads an element that exists"},
    {"while-shape", "init, parameter of condition and body, and result of body have one shape"},
    {"conditional-index", "the selector is pred[] with two branches or s32[] with at least one"},
    {"composite-attributes", "a composite call has a name and a non-negative integer version"},
    {"custom-call-target", "a custom-call names its target"},
    {"custom-call-layouts", "operand_layout_constraints gives each operand a compatible shape"},
    {"execution-thread",
     "what a call, fusion, loop or branch runs is on its own thread; only async-start names another"},
    {"output-aliasing", "an aliased output and its operand exist and have the same shape"},

    // ---- effects, collectives ----
    {"async-shape", "an async op's state holds its operands' and its result's shapes"},
    {"async-pair",
     "update and done follow a start of the same op, computation and thread; each start has one "
     "done"},
    {"channel", "both halves of a send or recv name the same channel"},
    {"outfeed-shape", "outfeed_shape is the shape of the value"},
    {"replica-groups", "groups name ids 0 to n-1 once each; equal sizes where the op asks for it"},
    {"global-device-ids", "use_global_device_ids comes with a channel and non-empty groups"},
    {"source-target-pairs", "sources are unique, targets are unique, none is negative"},

    {"sharding",
     "as many devices as tiles, each once; an array is cut in as many dims as it has; a loop or "
     "conditional and what it runs agree"},

    // ---- computations ----
    {"root", "a computation has a root, one of its own instructions"},
    {"name-unique", "names are unique: computations in a module, instructions in a computation"},
    {"operand-order", "operands and control predecessors come first, in the same computation"},

    // ---- module ----
    {"entry", "a module has an entry computation, and nothing calls it"},
    {"call-order", "called computations belong to the module and come before their callers"},
    {"entry-layout", "entry_computation_layout fits the entry's parameters and result"},
    {"alias", "input_output_alias joins leaves that exist, of equal sizes and types, each once"},
    {"buffer-donor", "a buffer donor is a parameter leaf that exists and is not aliased"},
};

/// A rule's identifier; anything that is not in the list is an error at compile time.
class RuleId {
 public:
  consteval RuleId(const char* id) : id_(id) {  // NOLINT: implicit, so that rules read as text
    for (const RuleInfo& rule : kRules) {
      if (rule.id == id_) return;
    }
    throw "no such rule in kRules";
  }
  constexpr operator std::string_view() const { return id_; }  // NOLINT

 private:
  std::string_view id_;
};

}  // namespace hlojit
