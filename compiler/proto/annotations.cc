// See annotations.h. Field numbers are those of xla_data.proto.
#include "compiler/proto/annotations.h"

#include <charconv>
#include <map>

#include "compiler/text/attribute_forms.h"
#include "compiler/text/lexer.h"

namespace hlojit::proto {
namespace {

// Strings that stay text are escaped as XLA's printer does it, bytes beyond ASCII in octal, so that they
// read like a dump of the same module.
std::string escaped(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    auto code = static_cast<unsigned char>(c);
    if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c == '"' || c == '\'' || c == '\\') {
      out += '\\';
      out += c;
    } else if (code < 0x20 || code >= 0x7f) {
      out += '\\';
      for (int shift : {6, 3, 0}) out += static_cast<char>('0' + ((code >> shift) & 7));
    } else {
      out += c;
    }
  }
  return out + '"';
}

constexpr std::string_view kShardingTypes[] = {"replicated", "maximal", "tuple",    "other",
                                               "manual",     "unknown", "unreduced"};
enum ShardingType : int64_t { kReplicated, kMaximal, kTupleSharding, kOther };

template <class T>
void append_number(T value, std::string& out) {
  char digits[40];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

void append_list(const std::vector<int64_t>& values, std::string_view brackets, std::string& out) {
  if (!brackets.empty()) out += brackets[0];
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) out += ',';
    append_int(values[i], out);
  }
  if (!brackets.empty()) out += brackets[1];
}

std::string_view sharding_word(int64_t type) {
  if (type < 0 || type >= std::ssize(kShardingTypes) || type == kTupleSharding || type == kOther) {
    fail("a sharding has the unknown type " + std::to_string(type));
  }
  return kShardingTypes[type];
}

void append_sharding_at(const Message& proto, int depth, std::string& out) {
  if (depth > kMaxNesting) fail("shardings are nested too deeply");
  int64_t type = proto.integer(1);
  out += '{';
  if (type == kTupleSharding) {
    std::vector<Message> parts = proto.messages(5);
    for (size_t i = 0; i < parts.size(); ++i) {
      if (i > 0) out += ", ";
      append_sharding_at(parts[i], depth + 1, out);
    }
  } else if (type == kMaximal) {
    out += "maximal device=";
    append_list(proto.integers(4), "", out);
  } else if (type == kOther) {
    out += "devices=";
    append_list(proto.integers(3), "[]", out);
    std::vector<int64_t> reshape = proto.integers(9);
    if (reshape.empty()) {
      append_list(proto.integers(4), "", out);
    } else {
      out += "<=";
      append_list(reshape, "[]", out);
      if (reshape.size() > 1) {
        out += 'T';
        append_list(proto.integers(10), "()", out);
      }
    }
    if (proto.boolean(6)) out += " last_tile_dim_replicate";
    if (std::vector<int64_t> types = proto.integers(8); !types.empty()) {
      out += " last_tile_dims={";
      for (size_t i = 0; i < types.size(); ++i) {
        if (i > 0) out += ", ";
        out += sharding_word(types[i]);
      }
      out += '}';
    }
  } else {
    out += sharding_word(type);
  }
  if (proto.boolean(11)) {
    out += proto.integer(13) == 0 ? " shard_as " : " shard_like ";
    append_int(proto.integer(12), out);
  }
  if (std::vector<Message> metadata = proto.messages(7); !metadata.empty()) {
    out += " metadata=";
    if (metadata.size() > 1) out += '{';
    for (size_t i = 0; i < metadata.size(); ++i) {
      if (i > 0) out += ", ";
      if (!append_metadata(metadata[i], out)) out += "{}";
    }
    if (metadata.size() > 1) out += '}';
  }
  out += '}';
}

// Leaves by index into a tuple shape; consumed as the shape is walked.
using Origins = std::map<std::vector<int64_t>, Message>;

void append_origin_at(const Origins& origins, const Shape& shape, std::vector<int64_t>& index, std::string& out) {
  if (shape.is_tuple()) {
    out += '(';
    for (size_t i = 0; i < shape.elements.size(); ++i) {
      if (i > 0) out += ", ";
      index.push_back(static_cast<int64_t>(i));
      append_origin_at(origins, shape.elements[i], index, out);
      index.pop_back();
    }
    out += ')';
    return;
  }
  out += '{';
  if (auto found = origins.find(index); found != origins.end()) {
    out += escaped(found->second.text(1));
    if (std::vector<int64_t> inside = found->second.integers(2); !inside.empty()) {
      out += ' ';
      append_list(inside, "{}", out);
    }
  }
  out += '}';
}

}  // namespace

void append_sharding(const Message& proto, std::string& out) { append_sharding_at(proto, 0, out); }

void append_braces_or_quoted(std::string_view text, std::string& out) {
  bool braces = false;
  if (text.starts_with('{')) {
    try {
      Cursor in(text);
      braces = in.balanced().size() == text.size();
    } catch (const Error&) {
      braces = false;  // not in balance: a string like any other
    }
  }
  out += braces ? std::string(text) : escaped(text);
}

void append_frontend_attributes(const Message& proto, std::string& out) {
  std::map<std::string_view, std::string_view> entries;  // printed by key
  for (const Message& e : proto.messages(1)) entries[e.text(1)] = e.text(2);
  out += '{';
  bool first = true;
  for (const auto& [key, value] : entries) {
    if (!first) out += ',';
    first = false;
    out += key;
    out += '=';
    append_braces_or_quoted(value, out);
  }
  out += '}';
}

bool append_metadata(const Message& proto, std::string& out) {
  struct Row {
    uint32_t field;
    std::string_view key;
    enum { kString, kInt, kInts } form;
  };
  static constexpr Row kRows[] = {
      {1, "op_type", Row::kString},          {2, "op_name", Row::kString},
      {3, "source_file", Row::kString},      {4, "source_line", Row::kInt},
      {17, "source_end_line", Row::kInt},    {18, "source_column", Row::kInt},
      {19, "source_end_column", Row::kInt},  {15, "stack_frame_id", Row::kInt},
      {5, "profile_type", Row::kInts},       {12, "deduplicated_name", Row::kString},
      {16, "scheduling_name", Row::kString},
  };
  std::string text;
  for (const Row& row : kRows) {
    std::string value;
    if (row.form == Row::kString) {
      if (std::string_view s = proto.text(row.field); !s.empty()) value = escaped(s);
    } else if (row.form == Row::kInt) {
      if (int64_t n = proto.integer(row.field)) append_int(n, value);
    } else if (std::vector<int64_t> list = proto.integers(row.field); !list.empty()) {
      append_list(list, "{}", value);
    }
    if (value.empty()) continue;
    if (!text.empty()) text += ' ';
    text += row.key;
    text += '=';
    text += value;
  }
  if (text.empty()) return false;
  out += '{' + text + '}';
  return true;
}

bool append_statistics(const Message& proto, std::string& out) {
  std::vector<Message> list = proto.messages(2);
  if (list.empty()) return false;
  out += "{visualizing_index=";
  append_int(proto.integer(1), out);
  for (const Message& s : list) {
    out += ',';
    out += s.text(1);
    out += '=';
    append_number(s.real(2), out);
  }
  out += '}';
  return true;
}

bool append_result_accuracy(const Message& proto, std::string& out) {
  if (proto.has(2)) {
    Message tolerance = proto.message(2);
    out += "{tolerance={atol=";
    append_number(tolerance.real(1), out);
    out += ",rtol=";
    append_number(tolerance.real(2), out);
    out += ",ulps=";
    append_int(tolerance.integer(3), out);
    out += "}}";
    return true;
  }
  if (proto.integer(1) == 0) return false;
  if (proto.integer(1) != 1) fail("a result accuracy has an unknown mode");
  out += "{mode=highest}";
  return true;
}

bool append_origin(const Message& proto, const Shape& shape, std::string& out) {
  Origins origins;
  for (const Message& leaf : proto.messages(1)) {
    if (leaf.has(2)) origins[leaf.integers(1)] = leaf.message(2);
  }
  if (origins.empty()) return false;
  std::vector<int64_t> index;
  out += '{';
  append_origin_at(origins, shape, index, out);
  out += '}';
  return true;
}

}  // namespace hlojit::proto
