// See attribute_rules.h. Most rules are made by kind; the table is at the end.
#include "compiler/text/attribute_rules.h"

#include <charconv>
#include <utility>

#include "compiler/text/attribute_forms.h"
#include "compiler/text/literal_text.h"

namespace hlojit {
namespace {

// ---- rules made by kind ---------------------------------------------------------------------

void keep(AttributeTarget& t, std::string text) { t.a.other.emplace_back(t.name, std::move(text)); }

void keep_int(AttributeTarget& t) { keep(t, std::to_string(t.in.integer("an integer"))); }
void keep_bool(AttributeTarget& t) { keep(t, t.in.boolean() ? "true" : "false"); }
void keep_string(AttributeTarget& t) { keep(t, std::string(t.in.quoted())); }
void keep_shape(AttributeTarget& t) { keep(t, t.in.shape().to_string()); }
void keep_braces(AttributeTarget& t) { keep(t, std::string(t.in.balanced())); }
void keep_word(AttributeTarget& t) { keep(t, std::string(t.in.identifier("a word"))); }
void keep_int_lists(AttributeTarget& t) { keep(t, read_int_lists(t.in)); }
void keep_ints(AttributeTarget& t) {
  std::string text;
  append_ints(read_ints(t.in), text);
  keep(t, std::move(text));
}
void keep_groups(AttributeTarget& t) {
  if (t.in.peek() == '[') return keep(t, read_iota_groups(t.in));
  if (t.in.accept_word("mesh")) return keep(t, read_mesh_groups(t.in));
  keep(t, read_int_lists(t.in));
}
template <const auto& words>
void keep_one_of(AttributeTarget& t) {
  keep(t, std::string(words[read_word(t.in, words, t.name, true)]));
}

template <auto member>
void read_ints_into(AttributeTarget& t) {
  t.a.*member = read_ints(t.in);
}
// A list inside one of the groups of Attributes; empty lists print where `always` says so.
template <auto group, auto member>
void read_list(AttributeTarget& t) {
  (t.a.*group).edit().*member = read_ints(t.in);
}
template <auto group, auto member, bool always>
bool print_list(const Instruction& i, std::string& out) {
  const Ints& list = (*(i.attrs.*group)).*member;
  if (list.empty() && !always) return false;
  append_ints(list, out);
  return true;
}
template <auto member>
bool print_ints(const Instruction& i, std::string& out) {
  append_ints(i.attrs.*member, out);
  return true;
}
template <auto member>
void read_int(AttributeTarget& t) {
  t.a.*member = t.in.integer("an integer");
}
template <auto member>
bool print_int(const Instruction& i, std::string& out) {
  append_int(i.attrs.*member, out);
  return true;
}
template <auto member>
bool print_count(const Instruction& i, std::string& out) {
  if (i.attrs.*member == 1) return false;
  return print_int<member>(i, out);
}
template <auto group, auto member>
void read_group_int(AttributeTarget& t) {
  (t.a.*group).edit().*member = t.in.integer("an integer");
}
template <auto group, auto member>
bool print_group_int(const Instruction& i, std::string& out) {
  append_int((*(i.attrs.*group)).*member, out);
  return true;
}
template <auto member>
void read_bool(AttributeTarget& t) {
  t.a.*member = t.in.boolean();
}
template <auto member>
bool print_if_true(const Instruction& i, std::string& out) {
  if (!(i.attrs.*member)) return false;
  out += "true";
  return true;
}
template <auto member, const auto& words, bool any_case = false>
void read_enum(AttributeTarget& t) {
  size_t index = read_word(t.in, words, t.name, any_case);
  t.a.*member = static_cast<std::remove_reference_t<decltype(t.a.*member)>>(index);
}
template <auto member, const auto& words>
bool print_enum(const Instruction& i, std::string& out) {
  out += words[static_cast<size_t>(i.attrs.*member)];
  return true;
}
template <auto member>
void read_braces(AttributeTarget& t) {
  t.a.*member = std::string(t.in.balanced());
}
template <auto member>
bool print_text(const Instruction& i, std::string& out) {
  const std::string& text = i.attrs.*member;
  out += text;
  return !text.empty();
}
// Names of computations or instructions; none do not print.
bool print_names(const auto& named, std::string& out) {
  if (named.empty()) return false;
  std::string_view separator = "{";
  for (const auto* n : named) {
    out += std::exchange(separator, ", ");
    append_name(n->name, out);
  }
  out += '}';
  return true;
}

template <size_t index>
void read_called(AttributeTarget& t) {
  std::vector<Computation*>& called = t.instruction.called;
  if (called.size() <= index) called.resize(index + 1);
  called[index] = t.names.read_computation();
}
template <size_t index>
bool print_called(const Instruction& i, std::string& out) {
  if (i.called.size() <= index || !i.called[index]) return false;
  append_name(i.called[index]->name, out);
  return true;
}

void read_called_list(AttributeTarget& t) {
  if (!t.instruction.called.empty()) {
    t.in.fail(t.in.pos(), "duplicate-attribute", "called computations are given twice");
  }
  t.in.expect('{', "before a list of computations");
  while (!t.in.accept('}')) {
    if (!t.instruction.called.empty()) t.in.expect(',', "between computations");
    t.instruction.called.push_back(t.names.read_computation());
  }
}
bool print_called_list(const Instruction& i, std::string& out) { return print_names(i.called, out); }

// ---- values that follow no pattern ----------------------------------------------------------

constexpr std::string_view kDirections[] = {"EQ", "NE", "GE", "GT", "LE", "LT"};
constexpr std::string_view kCompareTypes[] = {"", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"};
constexpr std::string_view kFusionKinds[] = {"kLoop", "kInput", "kOutput", "kCustom"};
constexpr std::string_view kFftTypes[] = {"FFT", "IFFT", "RFFT", "IRFFT"};
constexpr std::string_view kTransposes[] = {"NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"};
constexpr std::string_view kDistributions[] = {"rng_uniform", "rng_normal"};
constexpr std::string_view kAlgorithms[] = {"rng_default", "rng_three_fry", "rng_philox"};
constexpr std::string_view kPrecisions[] = {"default", "high", "highest"};
constexpr std::string_view kConvKinds[] = {"fprop", "dgrad", "wgrad", "unset"};
constexpr std::string_view kAccuracies[] = {"default", "highest"};
constexpr std::string_view kTolerances[] = {"atol", "rtol", "ulps"};
constexpr std::string_view kPaddingTypes[] = {"PADDING_INVALID", "PADDING_VALID", "PADDING_SAME"};
constexpr std::string_view kSchedules[] = {"SCHEDULE_NONE", "SCHEDULE_LATEST", "SCHEDULE_EARLIEST"};
constexpr std::string_view kApiVersions[] = {"API_VERSION_ORIGINAL", "API_VERSION_STATUS_RETURNING",
                                             "API_VERSION_STATUS_RETURNING_UNIFIED", "API_VERSION_TYPED_FFI"};

void read_dimensions(AttributeTarget& t) {
  t.a.dimensions = read_ints(t.in);
  t.a.has_dimensions = true;
}
bool print_dimensions(const Instruction& i, std::string& out) {
  if (!i.attrs.has_dimensions && i.attrs.dimensions.empty()) return false;
  append_ints(i.attrs.dimensions, out);
  return true;
}

void read_iota_dimension(AttributeTarget& t) { t.a.dimensions = {t.in.integer("a dimension")}; }
bool print_iota_dimension(const Instruction& i, std::string& out) {
  if (i.attrs.dimensions.empty()) return false;
  append_int(i.attrs.dimensions[0], out);
  return true;
}

void read_compare_type(AttributeTarget& t) {
  t.a.compare_type = static_cast<CompareType>(1 + read_word(t.in, Words(kCompareTypes).subspan(1), t.name));
}
bool print_compare_type(const Instruction& i, std::string& out) {
  CompareType written = i.attrs.compare_type;
  if (written == CompareType::kDefault) return false;
  // The default of the element type goes without saying.
  if (i.operand_count() > 0 && written == default_compare_type(i.operand(0)->shape.type)) {
    return false;
  }
  out += kCompareTypes[static_cast<size_t>(written)];
  return true;
}

void read_precision(AttributeTarget& t) {
  t.in.expect('{', "before precisions");
  while (!t.in.accept('}')) {
    if (!t.a.operand_precision.empty()) t.in.expect(',', "between precisions");
    t.a.operand_precision.emplace_back(kPrecisions[read_word(t.in, kPrecisions, t.name, true)]);
  }
}
bool print_precision(const Instruction& i, std::string& out) {
  const auto& precisions = i.attrs.operand_precision;
  if (precisions.empty()) return false;
  for (size_t k = 0; k < precisions.size(); ++k) out += (k == 0 ? "{" : ",") + precisions[k];
  out += '}';
  return true;
}

void read_dot_algorithm(AttributeTarget& t) {
  t.a.dot_algorithm = std::string(t.in.identifier("the name of an algorithm"));
}

void read_aliasing(AttributeTarget& t) { t.a.output_to_operand_aliasing = read_aliases(t.in); }
bool print_aliasing(const Instruction& i, std::string& out) {
  if (i.attrs.output_to_operand_aliasing.empty()) return false;
  out += aliases_to_string(i.attrs.output_to_operand_aliasing);
  return true;
}

// An f32 in XLA, also where f64 is normalised.
void read_epsilon(AttributeTarget& t) { t.a.epsilon = static_cast<float>(t.in.decimal("a number")); }
bool print_epsilon(const Instruction& i, std::string& out) {
  char digits[40];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, static_cast<float>(i.attrs.epsilon)).ptr);
  return true;
}

bool print_largest(const Instruction& i, std::string& out) {
  out += i.attrs.largest ? "true" : "false";
  return true;
}

void read_target(AttributeTarget& t) { t.a.custom_call_target = t.in.string(); }
bool print_target(const Instruction& i, std::string& out) {
  out += quote(i.attrs.custom_call_target);
  return true;
}

void read_layout_constraints(AttributeTarget& t) {
  t.in.expect('{', "before operand layouts");
  while (!t.in.accept('}')) {
    if (!t.a.operand_layout_constraints.empty()) t.in.expect(',', "between operand layouts");
    t.a.operand_layout_constraints.push_back(t.in.shape());
  }
}
bool print_layout_constraints(const Instruction& i, std::string& out) {
  const auto& shapes = i.attrs.operand_layout_constraints;
  if (shapes.empty()) return false;
  for (size_t k = 0; k < shapes.size(); ++k) out += (k == 0 ? "{" : ", ") + shapes[k].to_string();
  out += '}';
  return true;
}

void read_literal_attribute(AttributeTarget& t) {
  t.instruction.literal = std::make_shared<const Literal>(read_shaped_literal(t.in));
}
bool print_literal_attribute(const Instruction& i, std::string& out) {
  if (!i.literal) return false;
  append_shaped_literal(*i.literal, out);
  return true;
}

void read_window_attribute(AttributeTarget& t) { t.a.window = read_window(t.in); }
bool print_window(const Instruction& i, std::string& out) {
  if (i.attrs.window.empty()) return false;
  append_window(i.attrs.window, out);
  return true;
}

// Older and newer XLA name it differently; `unset` goes without saying.
void read_conv_kind(AttributeTarget& t) {
  std::string_view kind = kConvKinds[read_word(t.in, kConvKinds, t.name)];
  if (kind != "unset") t.a.other.emplace_back("convolution_kind", kind);
}
bool prints_nothing(const Instruction&, std::string&) { return false; }

void read_labels(AttributeTarget& t) { t.a.conv = read_dim_labels(t.in); }
bool print_labels(const Instruction& i, std::string& out) {
  if (i.opcode != Opcode::kConvolution && *i.attrs.conv == ConvDims{}) return false;
  append_dim_labels(i.attrs.conv, out);
  return true;
}

void read_slice_attribute(AttributeTarget& t) { t.a.slice = read_slice(t.in); }
bool print_slice(const Instruction& i, std::string& out) {
  append_slice(i.attrs.slice, out);
  return true;
}

void read_pad(AttributeTarget& t) { t.a.padding = read_padding(t.in, true); }
bool print_pad(const Instruction& i, std::string& out) {
  append_padding(i.attrs.padding, out);
  return true;
}

// Sparse branches of conditional: which of the two forms is printed follows the index type.
void read_branches(AttributeTarget& t) {
  if (has_pred_index(t.instruction)) {
    t.in.fail(t.in.pos(), "conditional-branches",
              "a conditional on a pred takes true_computation= and false_computation=");
  }
  read_called_list(t);
}
template <size_t index>
void read_branch(AttributeTarget& t) {
  if (!has_pred_index(t.instruction)) {
    t.in.fail(t.in.pos(), "conditional-branches", "a conditional on an index takes branch_computations=");
  }
  read_called<index>(t);
}
template <size_t index>
bool print_branch(const Instruction& i, std::string& out) {
  return has_pred_index(i) && print_called<index>(i, out);
}
bool print_branches(const Instruction& i, std::string& out) { return !has_pred_index(i) && print_called_list(i, out); }

void read_custom_to_apply(AttributeTarget& t) {
  if (!t.instruction.called.empty()) {
    t.in.fail(t.in.pos(), "duplicate-attribute", "called computations are given twice");
  }
  t.instruction.called.push_back(t.names.read_computation());
}

void read_predecessors(AttributeTarget& t) {
  auto& list = t.instruction.control_predecessors;
  t.in.expect('{', "before control predecessors");
  while (!t.in.accept('}')) {
    if (!list.empty()) t.in.expect(',', "between control predecessors");
    list.push_back(t.names.read_instruction_name());
  }
}
bool print_predecessors(const Instruction& i, std::string& out) { return print_names(i.control_predecessors, out); }

// `{mode=highest}` or `{tolerance={atol=0.5,rtol=0,ulps=2}}`, of which each number may be missing.
void read_accuracy(AttributeTarget& t) {
  Cursor& in = t.in;
  size_t start = (in.skip(), in.pos());
  in.expect('{', "before an accuracy");
  std::string_view form = in.peek_identifier();
  if (in.accept_word("mode")) {
    in.expect('=', "after mode");
    read_word(in, kAccuracies, "mode", true);
  } else if (in.accept_word("tolerance")) {
    in.expect('=', "after tolerance");
    in.expect('{', "before tolerances");
    for (bool first = true; !in.accept('}'); first = false) {
      if (!first) in.expect(',', "between tolerances");
      read_word(in, kTolerances, "tolerance");
      in.expect('=', "after the name of a tolerance");
      size_t at = (in.skip(), in.pos());
      if (in.decimal("a tolerance") < 0) in.fail(at, "result-accuracy", "a tolerance is not negative");
    }
  } else {
    in.fail(in.pos(), "result-accuracy", "'" + std::string(form) + "' is no accuracy: mode= and tolerance= are");
  }
  in.expect('}', "after an accuracy");
  t.a.result_accuracy = std::string(in.text().substr(start, in.pos() - start));
}

void read_replication(AttributeTarget& t) {
  std::string text = "{";
  t.in.expect('{', "before replication flags");
  while (!t.in.accept('}')) {
    if (text.size() > 1) {
      t.in.expect(',', "between replication flags");
      text += ',';
    }
    text += t.in.boolean() ? "true" : "false";
  }
  t.a.parameter_replication = text + '}';
}

void read_backend_config(AttributeTarget& t) {
  t.a.backend_config = t.in.peek() == '"' ? t.in.quoted() : t.in.balanced();
}

// ---- the rules ------------------------------------------------------------------------------

using A = Attributes;

constexpr AttributeRule kRules[] = {
    {"dimensions", read_dimensions, print_dimensions},
    {"dimensions:always", read_dimensions, print_ints<&A::dimensions>},  // `{}` too
    {"iota_dimension", read_iota_dimension, print_iota_dimension},
    {"index", read_int<&A::tuple_index>, print_int<&A::tuple_index>},
    {"slice", read_slice_attribute, print_slice},
    {"dynamic_slice_sizes", read_ints_into<&A::dynamic_slice_sizes>, print_ints<&A::dynamic_slice_sizes>},
    {"padding", read_pad, print_pad},
    {"window", read_window_attribute, print_window},
    {"dim_labels", read_labels, print_labels},
    {"feature_group_count", read_int<&A::feature_group_count>, print_count<&A::feature_group_count>},
    {"batch_group_count", read_int<&A::batch_group_count>, print_count<&A::batch_group_count>},
    {"operand_precision", read_precision, print_precision},
    {"convolution_kind", read_conv_kind},
    {"conv_kind", read_conv_kind, prints_nothing},
    {"lhs_batch_dims", read_list<&A::dot, &DotDims::lhs_batch>, print_list<&A::dot, &DotDims::lhs_batch, false>},
    {"lhs_contracting_dims", read_list<&A::dot, &DotDims::lhs_contracting>,
     print_list<&A::dot, &DotDims::lhs_contracting, false>},
    {"rhs_batch_dims", read_list<&A::dot, &DotDims::rhs_batch>, print_list<&A::dot, &DotDims::rhs_batch, false>},
    {"rhs_contracting_dims", read_list<&A::dot, &DotDims::rhs_contracting>,
     print_list<&A::dot, &DotDims::rhs_contracting, false>},
    {"algorithm:dot", read_dot_algorithm, print_text<&A::dot_algorithm>},
    {"lhs_ragged_dims", keep_ints},
    {"rhs_group_dims", keep_ints},
    {"direction", read_enum<&A::direction, kDirections>, print_enum<&A::direction, kDirections>},
    {"type", read_compare_type, print_compare_type},
    {"offset_dims", read_list<&A::gather, &GatherDims::offset_dims>,
     print_list<&A::gather, &GatherDims::offset_dims, true>},
    {"collapsed_slice_dims", read_list<&A::gather, &GatherDims::collapsed_slice_dims>,
     print_list<&A::gather, &GatherDims::collapsed_slice_dims, true>},
    {"start_index_map", read_list<&A::gather, &GatherDims::start_index_map>,
     print_list<&A::gather, &GatherDims::start_index_map, true>},
    {"operand_batching_dims", read_list<&A::gather, &GatherDims::operand_batching_dims>,
     print_list<&A::gather, &GatherDims::operand_batching_dims, false>},
    {"start_indices_batching_dims", read_list<&A::gather, &GatherDims::start_indices_batching_dims>,
     print_list<&A::gather, &GatherDims::start_indices_batching_dims, false>},
    {"index_vector_dim:gather", read_group_int<&A::gather, &GatherDims::index_vector_dim>,
     print_group_int<&A::gather, &GatherDims::index_vector_dim>},
    {"slice_sizes", read_list<&A::gather, &GatherDims::slice_sizes>,
     print_list<&A::gather, &GatherDims::slice_sizes, true>},
    {"update_window_dims", read_list<&A::scatter, &ScatterDims::update_window_dims>,
     print_list<&A::scatter, &ScatterDims::update_window_dims, true>},
    {"inserted_window_dims", read_list<&A::scatter, &ScatterDims::inserted_window_dims>,
     print_list<&A::scatter, &ScatterDims::inserted_window_dims, true>},
    {"scatter_dims_to_operand_dims", read_list<&A::scatter, &ScatterDims::scatter_dims_to_operand_dims>,
     print_list<&A::scatter, &ScatterDims::scatter_dims_to_operand_dims, true>},
    {"input_batching_dims", read_list<&A::scatter, &ScatterDims::input_batching_dims>,
     print_list<&A::scatter, &ScatterDims::input_batching_dims, false>},
    {"scatter_indices_batching_dims", read_list<&A::scatter, &ScatterDims::scatter_indices_batching_dims>,
     print_list<&A::scatter, &ScatterDims::scatter_indices_batching_dims, false>},
    {"index_vector_dim:scatter", read_group_int<&A::scatter, &ScatterDims::index_vector_dim>,
     print_group_int<&A::scatter, &ScatterDims::index_vector_dim>},
    {"indices_are_sorted", read_bool<&A::indices_are_sorted>, print_if_true<&A::indices_are_sorted>},
    {"unique_indices", read_bool<&A::unique_indices>, print_if_true<&A::unique_indices>},
    {"kind", read_enum<&A::fusion_kind, kFusionKinds>, print_enum<&A::fusion_kind, kFusionKinds>},
    {"output_to_operand_aliasing", read_aliasing, print_aliasing},
    {"is_stable", read_bool<&A::is_stable>, print_if_true<&A::is_stable>},
    {"is_composite", read_bool<&A::is_composite>, print_if_true<&A::is_composite>},
    {"fft_type", read_enum<&A::fft_type, kFftTypes>, print_enum<&A::fft_type, kFftTypes>},
    {"fft_length", read_ints_into<&A::fft_length>, print_ints<&A::fft_length>},
    {"left_side", read_bool<&A::left_side>, print_if_true<&A::left_side>},
    {"lower", read_bool<&A::lower>, print_if_true<&A::lower>},
    {"unit_diagonal", read_bool<&A::unit_diagonal>, print_if_true<&A::unit_diagonal>},
    {"transpose_a", read_enum<&A::transpose_a, kTransposes>, print_enum<&A::transpose_a, kTransposes>},
    {"epsilon", read_epsilon, print_epsilon},
    {"feature_index", read_int<&A::feature_index>, print_int<&A::feature_index>},
    {"exponent_bits", read_int<&A::exponent_bits>, print_int<&A::exponent_bits>},
    {"mantissa_bits", read_int<&A::mantissa_bits>, print_int<&A::mantissa_bits>},
    {"distribution", read_enum<&A::distribution, kDistributions, true>, print_enum<&A::distribution, kDistributions>},
    {"algorithm:rng", read_enum<&A::algorithm, kAlgorithms, true>, print_enum<&A::algorithm, kAlgorithms>},
    {"delta", read_int<&A::delta>, print_int<&A::delta>},
    {"k", read_int<&A::k>, print_int<&A::k>},
    {"largest", read_bool<&A::largest>, print_largest},
    {"custom_call_target", read_target, print_target},
    {"operand_layout_constraints", read_layout_constraints, print_layout_constraints},
    {"custom_call_has_side_effect", read_bool<&A::custom_call_has_side_effect>,
     print_if_true<&A::custom_call_has_side_effect>},
    {"literal", read_literal_attribute, print_literal_attribute},
    {"padding_type", keep_one_of<kPaddingTypes>},
    {"schedule", keep_one_of<kSchedules>},
    {"api_version", keep_one_of<kApiVersions>},
    {"inferred_dimension", keep_int},
    {"num_carries", keep_int},
    {"is_reverse", keep_bool},
    {"is_associative", keep_bool},
    {"infeed_config", keep_string},
    {"outfeed_config", keep_string},
    {"outfeed_shape", keep_shape},
    {"channel_id", keep_int},
    {"is_host_transfer", keep_bool},
    {"cross_program_prefetch_index", keep_int},
    {"domain", keep_braces},
    {"async_execution_thread", keep_string},
    {"replica_groups", keep_groups},
    {"use_global_device_ids", keep_bool},
    {"constrain_layout", keep_bool},
    {"source_target_pairs", keep_int_lists},
    {"slice_sizes:permute", keep_int_lists},
    {"mode", keep_word},
    // Called computations.
    {"to_apply", read_called<0>, print_called<0>},
    {"to_apply:custom", read_custom_to_apply, prints_nothing},
    {"calls", read_called<0>, print_called<0>},
    {"condition", read_called<0>, print_called<0>},
    {"body", read_called<1>, print_called<1>},
    {"select", read_called<0>, print_called<0>},
    {"scatter", read_called<1>, print_called<1>},
    {"true_computation", read_branch<0>, print_branch<0>},
    {"false_computation", read_branch<1>, print_branch<1>},
    {"branch_computations", read_branches, print_branches},
    {"called_computations", read_called_list, print_called_list},
    // Common to all ops.
    {"parameter_replication", read_replication, print_text<&A::parameter_replication>},
    {"sharding", read_braces<&A::sharding>, print_text<&A::sharding>},
    {"frontend_attributes", read_braces<&A::frontend_attributes>, print_text<&A::frontend_attributes>},
    {"control-predecessors", read_predecessors, print_predecessors},
    {"statistics", read_braces<&A::statistics>, print_text<&A::statistics>},
    {"result_accuracy", read_accuracy, print_text<&A::result_accuracy>},
    {"metadata", read_braces<&A::metadata>, print_text<&A::metadata>},
    {"origin", read_braces<&A::origin>, print_text<&A::origin>},
    {"backend_config", read_backend_config, print_text<&A::backend_config>},
};

}  // namespace

std::span<const AttributeRule> attribute_rules() { return kRules; }

bool has_pred_index(const Instruction& conditional) {
  return conditional.operand_count() > 0 && is_pred(conditional.operand(0)->shape.type);
}

}  // namespace hlojit
