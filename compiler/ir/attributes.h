// Attributes of instructions: typed groups, one struct, so that passes read `a.dot->lhs_contracting`
// and a new op adds at most a group. Groups of one op's, and text, are Rare; what else is not used is empty vectors and
// costs no allocation.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/ir/rare.h"
#include "layout/shape.h"

namespace hlojit {

using Ints = std::vector<int64_t>;

struct SliceRange {
  int64_t start = 0, limit = 0, stride = 1;
  bool operator==(const SliceRange&) const = default;
};

struct PadDim {
  int64_t low = 0, high = 0, interior = 0;
  bool operator==(const PadDim&) const = default;
};

struct WindowDim {
  int64_t size = 1, stride = 1, pad_low = 0, pad_high = 0;
  int64_t lhs_dilate = 1, rhs_dilate = 1;
  bool reversal = false;
  bool operator==(const WindowDim&) const = default;
};

struct DotDims {
  Ints lhs_batch, rhs_batch, lhs_contracting, rhs_contracting;
  /// Those of operand `side`: 0, the left one, or 1.
  Ints& batch(size_t side) { return side == 0 ? lhs_batch : rhs_batch; }
  const Ints& batch(size_t side) const { return side == 0 ? lhs_batch : rhs_batch; }
  Ints& contracting(size_t side) { return side == 0 ? lhs_contracting : rhs_contracting; }
  const Ints& contracting(size_t side) const { return side == 0 ? lhs_contracting : rhs_contracting; }
  bool operator==(const DotDims&) const = default;
};

/// dim_labels=b01f_01io->b01f as numbers.
struct ConvDims {
  int64_t lhs_batch = 0, lhs_feature = 0, rhs_input_feature = 0, rhs_output_feature = 0;
  int64_t out_batch = 0, out_feature = 0;
  Ints lhs_spatial, rhs_spatial, out_spatial;
  bool operator==(const ConvDims&) const = default;
};

struct GatherDims {
  Ints offset_dims, collapsed_slice_dims, start_index_map;
  Ints operand_batching_dims, start_indices_batching_dims;
  int64_t index_vector_dim = 0;
  Ints slice_sizes;
  bool operator==(const GatherDims&) const = default;
};

struct ScatterDims {
  Ints update_window_dims, inserted_window_dims, scatter_dims_to_operand_dims;
  Ints input_batching_dims, scatter_indices_batching_dims;
  int64_t index_vector_dim = 0;
  bool operator==(const ScatterDims&) const = default;
};

enum class Direction : uint8_t { kEq, kNe, kGe, kGt, kLe, kLt };
enum class CompareType : uint8_t { kDefault, kFloat, kTotalOrder, kSigned, kUnsigned };
enum class FusionKind : uint8_t { kLoop, kInput, kOutput, kCustom };
enum class FftType : uint8_t { kFft, kIfft, kRfft, kIrfft };
enum class TransposeA : uint8_t { kNone, kTranspose, kAdjoint };
enum class Distribution : uint8_t { kUniform, kNormal };
enum class RandomAlgorithm : uint8_t { kDefault, kThreeFry, kPhilox };

/// One pair of output_to_operand_aliasing / input_output_alias.
struct Alias {
  Ints output_index;
  int64_t operand = 0;  ///< operand or parameter number
  Ints operand_index;
  std::optional<bool> must;  ///< input_output_alias: must-alias / may-alias; unset if not given
  bool operator==(const Alias&) const = default;
};

struct Attributes {
  // ---- by op -------------------------------------------------------------------------------
  Ints dimensions;              ///< broadcast, concatenate, reduce, reverse, sort, transpose, map, iota (1 entry),
                                ///< get/set-dimension-size, all-gather..., scan
  bool has_dimensions = false;  ///< the attribute stood in the text (may be empty)
  int64_t parameter_number = 0;
  int64_t tuple_index = 0;
  std::vector<SliceRange> slice;
  std::vector<PadDim> padding;
  std::vector<WindowDim> window;
  Rare<DotDims> dot;
  Rare<ConvDims> conv;
  int64_t feature_group_count = 1, batch_group_count = 1;
  Rare<GatherDims> gather;
  Rare<ScatterDims> scatter;
  bool indices_are_sorted = false, unique_indices = false;
  Ints dynamic_slice_sizes;
  Direction direction = Direction::kEq;
  CompareType compare_type = CompareType::kDefault;  ///< as written; kDefault = by element type
  FusionKind fusion_kind = FusionKind::kLoop;
  std::vector<Alias> output_to_operand_aliasing;
  bool is_stable = false, is_composite = false;
  FftType fft_type = FftType::kFft;
  Ints fft_length;
  bool lower = false, left_side = false, unit_diagonal = false;
  TransposeA transpose_a = TransposeA::kNone;
  double epsilon = 0;
  int64_t feature_index = 0;
  int64_t exponent_bits = 0, mantissa_bits = 0;
  Distribution distribution = Distribution::kUniform;
  RandomAlgorithm algorithm = RandomAlgorithm::kDefault;
  int64_t delta = 0;
  int64_t k = 0;
  bool largest = true;
  std::vector<std::string> operand_precision;  ///< "default", "high", "highest"
  Rare<std::string> dot_algorithm;             ///< dot: "dot_bf16_bf16_f32"; empty if absent
  std::string custom_call_target;
  std::vector<Shape> operand_layout_constraints;
  bool custom_call_has_side_effect = false;

  // ---- common, kept as text and printed back -----------------------------------------------------
  /// Op attributes that no pass reads (infeed_config, replica_groups, conv_kind, ...): name -> text as
  /// printed after `name=`, in printing order.
  std::vector<std::pair<std::string, std::string>> other;
  Rare<std::string> sharding, frontend_attributes, statistics, result_accuracy, metadata, origin;
  Rare<std::string> parameter_replication;
  /// Raw text after `backend_config=` (a quoted string with quotes, or balanced braces).
  std::string backend_config;

  bool operator==(const Attributes&) const = default;
};

/// Equal but for where the HLO came from.
bool same_but_for_source(const Attributes& x, const Attributes& y);

}  // namespace hlojit
