// See attributes.h. A table says, for each attribute of the text's table, how its value is written from the proto;
// what is written is then read as text, so that both ways in end in one reader.
#include "compiler/proto/attributes.h"

#include <algorithm>
#include <charconv>

#include "compiler/proto/annotations.h"
#include "compiler/proto/values.h"
#include "compiler/text/attribute_forms.h"
#include "compiler/text/attributes.h"
#include "compiler/text/lexer.h"

namespace hlojit::proto {
namespace {

struct Source {
  const Message& proto;
  const Instruction& instruction;
};

// Appends a value; false if there is none to write.
using Write = bool (*)(const Source&, std::string&);

struct Row {
  std::string_view key;  // as in attribute_keys()
  Write write;
};

// ---- writers made by kind -------------------------------------------------------------------

template <uint32_t field>
bool integer(const Source& s, std::string& out) {
  append_int(s.proto.integer(field), out);
  return true;
}
template <uint32_t field>
bool integer_if_given(const Source& s, std::string& out) {
  return s.proto.has(field) && integer<field>(s, out);
}
template <uint32_t field>
bool integer_if_set(const Source& s, std::string& out) {
  return s.proto.integer(field) != 0 && integer<field>(s, out);
}
template <uint32_t field>
bool count(const Source& s, std::string& out) {
  return s.proto.integer(field) > 1 && integer<field>(s, out);
}
template <uint32_t field>
bool if_true(const Source& s, std::string& out) {
  if (!s.proto.boolean(field)) return false;
  out += "true";
  return true;
}
template <uint32_t field>
bool boolean(const Source& s, std::string& out) {
  out += s.proto.boolean(field) ? "true" : "false";
  return true;
}
template <uint32_t field>
bool integers(const Source& s, std::string& out) {
  append_ints(s.proto.integers(field), out);
  return true;
}
// The same of a list inside a message.
template <uint32_t group, uint32_t field>
bool list(const Source& s, std::string& out) {
  append_ints(s.proto.message(group).integers(field), out);
  return true;
}
template <uint32_t group, uint32_t field>
bool list_if_set(const Source& s, std::string& out) {
  return !s.proto.message(group).integers(field).empty() && list<group, field>(s, out);
}
template <uint32_t group, uint32_t field>
bool group_integer(const Source& s, std::string& out) {
  append_int(s.proto.message(group).integer(field), out);
  return true;
}
template <uint32_t group, uint32_t field>
bool group_if_true(const Source& s, std::string& out) {
  if (!s.proto.message(group).boolean(field)) return false;
  out += "true";
  return true;
}
// An enum that the proto spells out.
template <uint32_t field>
bool word(const Source& s, std::string& out) {
  std::string_view text = s.proto.text(field);
  if (!std::ranges::all_of(text, is_identifier_char)) fail("a word of an attribute has other characters");
  out += text;
  return !text.empty();
}
template <uint32_t field>
bool string(const Source& s, std::string& out) {
  out += quote(s.proto.text(field));
  return true;
}
template <uint32_t field>
bool string_if_set(const Source& s, std::string& out) {
  return !s.proto.text(field).empty() && string<field>(s, out);
}

std::string_view word_of(Words words, int64_t number, std::string_view what) {
  if (number < 0 || number >= std::ssize(words)) {
    fail(std::string(what) + " has the unknown value " + std::to_string(number));
  }
  return words[static_cast<size_t>(number)];
}
template <uint32_t field, const auto& words>
bool one_of(const Source& s, std::string& out) {
  out += word_of(words, s.proto.integer(field), "an attribute");
  return true;
}
template <uint32_t field, const auto& words>
bool one_of_if_set(const Source& s, std::string& out) {
  return s.proto.integer(field) != 0 && one_of<field, words>(s, out);
}
template <size_t index>
bool called(const Source& s, std::string& out) {
  if (s.proto.integers(38).size() <= index) return false;
  out += 'k';
  append_int(index, out);
  return true;
}

// ---- words ----------------------------------------------------------------------------------

constexpr std::string_view kConvKinds[] = {"unset", "fprop", "dgrad", "wgrad"};
constexpr std::string_view kPaddingTypes[] = {"PADDING_INVALID", "PADDING_VALID", "PADDING_SAME"};
constexpr std::string_view kSchedules[] = {"SCHEDULE_NONE", "SCHEDULE_LATEST", "SCHEDULE_EARLIEST"};
constexpr std::string_view kApiVersions[] = {"API_VERSION_UNSPECIFIED", "API_VERSION_ORIGINAL",
                                             "API_VERSION_STATUS_RETURNING", "API_VERSION_STATUS_RETURNING_UNIFIED",
                                             "API_VERSION_TYPED_FFI"};
constexpr std::string_view kFftTypes[] = {"FFT", "IFFT", "RFFT", "IRFFT"};
constexpr std::string_view kTransposes[] = {"NO_TRANSPOSE", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"};
constexpr std::string_view kDistributions[] = {"rng_invalid", "rng_uniform", "rng_normal"};
constexpr std::string_view kAlgorithms[] = {"rng_default", "rng_three_fry", "rng_philox"};
constexpr std::string_view kPrecisions[] = {"default", "high", "highest"};
constexpr std::string_view kTriState[] = {"unset", "true", "false"};
constexpr std::string_view kDotAlgorithms[] = {"unset",
                                               "dot_any_f8_any_f8_f32",
                                               "dot_any_f8_any_f8_f32_fast_accum",
                                               "dot_f16_f16_f16",
                                               "dot_f16_f16_f32",
                                               "dot_bf16_bf16_bf16",
                                               "dot_bf16_bf16_f32",
                                               "dot_bf16_bf16_f32_x3",
                                               "dot_bf16_bf16_f32_x6",
                                               "dot_tf32_tf32_f32",
                                               "dot_tf32_tf32_f32_x3",
                                               "dot_f32_f32_f32",
                                               "dot_f64_f64_f64",
                                               "dot_bf16_bf16_f32_x9"};

// ---- writers that follow no pattern ---------------------------------------------------------

bool dimensions(const Source& s, std::string& out) {
  Ints dims = s.proto.integers(14);
  Opcode op = s.instruction.opcode;
  if (dims.empty() && (op == Opcode::kAllToAll || op == Opcode::kMap)) return false;
  append_ints(dims, out);
  return true;
}

bool first_dimension(const Source& s, std::string& out) {
  Ints dims = s.proto.integers(14);
  if (dims.empty()) return false;
  append_int(dims[0], out);
  return true;
}

bool slice(const Source& s, std::string& out) {
  std::vector<SliceRange> ranges;
  for (const Message& r : s.proto.messages(17)) ranges.push_back({r.integer(1), r.integer(2), r.integer(3)});
  append_slice(ranges, out);
  return true;
}

bool padding(const Source& s, std::string& out) {
  std::vector<PadDim> dims;
  for (const Message& d : s.proto.message(21).messages(1)) dims.push_back({d.integer(1), d.integer(2), d.integer(3)});
  append_padding(dims, out);
  return true;
}

bool window(const Source& s, std::string& out) {
  std::vector<WindowDim> dims;
  for (const Message& d : s.proto.message(15).messages(1)) {
    dims.push_back({.size = d.integer(1),
                    .stride = d.integer(2),
                    .pad_low = d.integer(3),
                    .pad_high = d.integer(4),
                    .lhs_dilate = d.integer(6),
                    .rhs_dilate = d.integer(5),
                    .reversal = d.boolean(7)});
  }
  if (dims.empty()) return false;
  append_window(dims, out);
  return true;
}

bool dim_labels(const Source& s, std::string& out) {
  if (!s.proto.has(16)) return false;
  Message m = s.proto.message(16);
  ConvDims c;
  c.rhs_input_feature = m.integer(3);
  c.rhs_output_feature = m.integer(4);
  c.rhs_spatial = m.integers(6);
  c.lhs_batch = m.integer(7);
  c.lhs_feature = m.integer(8);
  c.out_batch = m.integer(9);
  c.out_feature = m.integer(10);
  c.lhs_spatial = m.integers(11);
  c.out_spatial = m.integers(12);
  append_dim_labels(c, out);
  return true;
}

bool precision(const Source& s, std::string& out) {
  std::vector<int64_t> values = s.proto.message(51).integers(1);
  if (std::ranges::count(values, 0) == std::ssize(values)) return false;
  for (size_t i = 0; i < values.size(); ++i) {
    out += i == 0 ? '{' : ',';
    out += word_of(kPrecisions, values[i], "a precision");
  }
  out += '}';
  return true;
}

bool dot_algorithm(const Source& s, std::string& out) {
  int64_t number = s.proto.message(51).integer(2);
  if (number == 0) return false;
  out += word_of(kDotAlgorithms, number, "a dot algorithm");
  return true;
}

// A ragged dot keeps the dimensions of its dot one level further in.
template <uint32_t field>
bool dot_dims(const Source& s, std::string& out) {
  Message dims = s.proto.has(90) ? s.proto.message(90).message(1) : s.proto.message(30);
  Ints values = dims.integers(field);
  if (values.empty()) return false;
  append_ints(values, out);
  return true;
}

bool aliasing(const Source& s, std::string& out) {
  std::vector<Alias> aliases;
  for (const Message& a : s.proto.messages(74)) {
    aliases.push_back({a.integers(1), a.integer(2), a.integers(3), std::nullopt});
  }
  if (aliases.empty()) return false;
  out += aliases_to_string(aliases);
  return true;
}

bool lower(const Source& s, std::string& out) {
  return s.instruction.is(Opcode::kCholesky) ? group_if_true<62, 1>(s, out) : group_if_true<59, 2>(s, out);
}

bool transpose_a(const Source& s, std::string& out) {
  out += word_of(kTransposes, s.proto.message(59).integer(4), "transpose_a");
  return true;
}

bool epsilon(const Source& s, std::string& out) {
  char digits[40];  // a float's digits: what the text that it came from had
  out.append(digits, std::to_chars(digits, digits + sizeof digits, s.proto.real32(24)).ptr);
  return true;
}

bool layout_constraints(const Source& s, std::string& out) {
  std::vector<Message> shapes = s.proto.messages(57);
  if (!s.proto.boolean(56) || shapes.empty()) return false;
  for (size_t i = 0; i < shapes.size(); ++i) out += (i == 0 ? "{" : ", ") + read_shape(shapes[i]).to_string();
  out += '}';
  return true;
}

bool api_version(const Source& s, std::string& out) {
  return s.proto.integer(77) > 1 && one_of<77, kApiVersions>(s, out);
}

bool outfeed_shape(const Source& s, std::string& out) {
  if (!s.proto.has(29)) return false;
  out += read_shape(s.proto.message(29)).to_string();
  return true;
}

// entry= and exit= in text are seen from the other side than in the proto.
bool domain(const Source& s, std::string& out) {
  out += "{kind=\"sharding\", entry=";
  append_sharding(s.proto.message(55), out);
  out += ", exit=";
  append_sharding(s.proto.message(54), out);
  out += '}';
  return true;
}

void append_values(const std::vector<int64_t>& values, char open, char close, std::string& out) {
  for (size_t i = 0; i < values.size(); ++i) {
    out += i == 0 ? open : ',';
    append_int(values[i], out);
  }
  out += close;
}

bool iota_groups(const Message& m, std::string& out) {
  std::vector<int64_t> reshape = m.integers(3), permutation = m.integers(4);
  if (reshape.empty()) fail("replica groups count over no dimensions");
  append_values({m.integer(1), m.integer(2)}, '[', ']', out);
  out += "<=";
  append_values(reshape, '[', ']', out);
  if (reshape.size() > 1 && !permutation.empty()) {
    out += 'T';
    append_values(permutation, '(', ')', out);
  }
  return true;
}

bool replica_groups(const Source& s, std::string& out) {
  if (s.proto.has(92)) return iota_groups(s.proto.message(92), out);
  Message devices = s.proto.message(87);
  if (devices.has(2)) return iota_groups(devices.message(2), out);
  std::vector<Message> groups = devices.messages(1);
  if (groups.empty()) groups = s.proto.messages(49);
  out += '{';
  for (size_t i = 0; i < groups.size(); ++i) {
    if (i > 0) out += ',';
    append_ints(groups[i].integers(1), out);
  }
  out += '}';
  return true;
}

bool source_target_pairs(const Source& s, std::string& out) {
  std::vector<Message> pairs = s.proto.messages(52);
  out += '{';
  for (size_t i = 0; i < pairs.size(); ++i) {
    if (i > 0) out += ',';
    append_ints({pairs[i].integer(1), pairs[i].integer(2)}, out);
  }
  out += '}';
  return true;
}

bool is_conditional_on_pred(const Source& s) {
  return s.instruction.operand_count() > 0 && is_pred(s.instruction.operand(0)->shape.type);
}
template <size_t index>
bool branch(const Source& s, std::string& out) {
  return is_conditional_on_pred(s) && called<index>(s, out);
}
bool called_list(const Source& s, std::string& out) {
  size_t n = s.proto.integers(38).size();
  if (n == 0) return false;
  for (size_t i = 0; i < n; ++i) {
    out += i == 0 ? "{k" : ", k";
    append_int(static_cast<int64_t>(i), out);
  }
  out += '}';
  return true;
}
bool branches(const Source& s, std::string& out) { return !is_conditional_on_pred(s) && called_list(s, out); }

bool nothing(const Source&, std::string&) { return false; }

bool replication(const Source& s, std::string& out) {
  std::vector<int64_t> flags = s.proto.message(61).integers(1);
  if (flags.empty()) return false;
  for (size_t i = 0; i < flags.size(); ++i) {
    out += i == 0 ? '{' : ',';
    out += flags[i] != 0 ? "true" : "false";
  }
  out += '}';
  return true;
}

bool sharding(const Source& s, std::string& out) {
  if (!s.proto.has(40)) return false;
  append_sharding(s.proto.message(40), out);
  return true;
}

bool frontend_attributes(const Source& s, std::string& out) {
  if (s.proto.message(68).bytes().empty()) return false;
  append_frontend_attributes(s.proto.message(68), out);
  return true;
}

bool predecessors(const Source& s, std::string& out) {
  size_t n = s.proto.integers(37).size();
  for (size_t i = 0; i < n; ++i) {
    out += i == 0 ? "{p" : ", p";
    append_int(static_cast<int64_t>(i), out);
  }
  if (n > 0) out += '}';
  return n > 0;
}

bool backend_config(const Source& s, std::string& out) {
  if (s.proto.text(43).empty()) return false;
  append_braces_or_quoted(s.proto.text(43), out);
  return true;
}

// ---- the table ------------------------------------------------------------------------------

constexpr Row kRows[] = {
    {"dimensions", dimensions},
    {"dimensions:always", dimensions},
    {"iota_dimension", first_dimension},
    {"index", integer<13>},
    {"slice", slice},
    {"dynamic_slice_sizes", integers<20>},
    {"padding", padding},
    {"window", window},
    {"dim_labels", dim_labels},
    {"feature_group_count", count<50>},
    {"batch_group_count", count<58>},
    {"operand_precision", precision},
    {"convolution_kind", one_of_if_set<97, kConvKinds>},
    {"conv_kind", nothing},  // the older name
    {"lhs_batch_dims", dot_dims<3>},
    {"lhs_contracting_dims", dot_dims<1>},
    {"rhs_batch_dims", dot_dims<4>},
    {"rhs_contracting_dims", dot_dims<2>},
    {"algorithm:dot", dot_algorithm},
    {"lhs_ragged_dims", list_if_set<90, 2>},
    {"rhs_group_dims", list_if_set<90, 3>},
    {"direction", word<63>},
    {"type", word<72>},
    {"offset_dims", list<33, 1>},
    {"collapsed_slice_dims", list<33, 2>},
    {"start_index_map", list<33, 3>},
    {"operand_batching_dims", list_if_set<33, 5>},
    {"start_indices_batching_dims", list_if_set<33, 6>},
    {"index_vector_dim:gather", group_integer<33, 4>},
    {"slice_sizes", integers<34>},
    {"update_window_dims", list<48, 1>},
    {"inserted_window_dims", list<48, 2>},
    {"scatter_dims_to_operand_dims", list<48, 3>},
    {"input_batching_dims", list_if_set<48, 5>},
    {"scatter_indices_batching_dims", list_if_set<48, 6>},
    {"index_vector_dim:scatter", group_integer<48, 4>},
    {"indices_are_sorted", if_true<67>},
    {"unique_indices", if_true<69>},
    {"kind", word<11>},
    {"output_to_operand_aliasing", aliasing},
    {"is_stable", if_true<60>},
    {"is_composite", if_true<89>},
    {"fft_type", one_of<31, kFftTypes>},
    {"fft_length", integers<32>},
    {"left_side", group_if_true<59, 1>},
    {"lower", lower},
    {"unit_diagonal", group_if_true<59, 3>},
    {"transpose_a", transpose_a},
    {"epsilon", epsilon},
    {"feature_index", integer<25>},
    {"exponent_bits", integer<18>},
    {"mantissa_bits", integer<19>},
    {"distribution", one_of<23, kDistributions>},
    {"algorithm:rng", one_of<70, kAlgorithms>},
    {"delta", integer<66>},
    {"k", integer<81>},
    {"largest", boolean<85>},
    {"custom_call_target", string<28>},
    {"operand_layout_constraints", layout_constraints},
    {"custom_call_has_side_effect", if_true<65>},
    {"literal", nothing},  // the importer takes it as a value
    {"padding_type", one_of_if_set<75, kPaddingTypes>},
    {"schedule", one_of_if_set<76, kSchedules>},
    {"api_version", api_version},
    {"inferred_dimension", first_dimension},
    {"num_carries", integer<95>},
    {"is_reverse", if_true<94>},
    {"is_associative", one_of_if_set<96, kTriState>},
    {"infeed_config", string_if_set<27>},
    {"outfeed_config", string_if_set<22>},
    {"outfeed_shape", outfeed_shape},
    {"channel_id", integer_if_set<26>},
    {"is_host_transfer", if_true<47>},
    {"cross_program_prefetch_index", integer_if_given<80>},
    {"domain", domain},
    {"async_execution_thread", string_if_set<79>},
    {"replica_groups", replica_groups},
    {"use_global_device_ids", if_true<71>},
    {"constrain_layout", if_true<56>},
    {"source_target_pairs", source_target_pairs},
    {"slice_sizes:permute", nothing},  // not in the proto
    {"mode", nothing},                 // not in the proto
    {"to_apply", called<0>},
    {"to_apply:custom", nothing},  // written as called_computations
    {"calls", called<0>},
    {"condition", called<1>},
    {"body", called<0>},
    {"select", called<0>},
    {"scatter", called<1>},
    {"true_computation", branch<0>},
    {"false_computation", branch<1>},
    {"branch_computations", branches},
    {"called_computations", called_list},
    {"parameter_replication", replication},
    {"sharding", sharding},
    {"frontend_attributes", frontend_attributes},
    {"control-predecessors", predecessors},
    {"statistics", [](const Source& s, std::string& out) { return append_statistics(s.proto.message(82), out); }},
    {"result_accuracy",
     [](const Source& s, std::string& out) { return append_result_accuracy(s.proto.message(91), out); }},
    {"metadata", [](const Source& s, std::string& out) { return append_metadata(s.proto.message(7), out); }},
    {"origin",
     [](const Source& s, std::string& out) { return append_origin(s.proto.message(88), s.instruction.shape, out); }},
    {"backend_config", backend_config},
};

}  // namespace

bool knows_attribute(std::string_view key) { return std::ranges::find(kRows, key, &Row::key) != std::end(kRows); }

std::string attribute_text(const Message& proto, const Instruction& instruction) {
  std::string out;
  Source source{proto, instruction};
  for (std::string_view key : attribute_keys(instruction)) {
    size_t before = out.size();
    out += ", ";
    out += key.substr(0, key.find(':'));
    out += '=';
    if (!std::ranges::find(kRows, key, &Row::key)->write(source, out)) out.resize(before);
  }
  return out;
}

}  // namespace hlojit::proto
