// See attribute_forms.h.
#include "compiler/text/attribute_forms.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace hlojit {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

bool equal_words(std::string_view a, std::string_view b, bool any_case) {
  if (!any_case) return a == b;
  return std::ranges::equal(a, b, {}, lower, lower);
}

// Consumes c if it is directly next.
bool next_char_is(Cursor& in, char c) {
  if (in.pos() >= in.text().size() || in.text()[in.pos()] != c) return false;
  in.seek(in.pos() + 1);
  return true;
}

// `3x4x5`
Ints read_sizes(Cursor& in, std::string_view what) {
  Ints sizes;
  in.skip();
  do {
    sizes.push_back(in.integer_here(what));
  } while (next_char_is(in, 'x'));
  return sizes;
}

template <class Get>
void append_sizes(const std::vector<WindowDim>& window, Get get, std::string& out) {
  for (size_t i = 0; i < window.size(); ++i) {
    if (i > 0) out += 'x';
    append_int(get(window[i]), out);
  }
}

// One of the three parts of `b01f_01io->b01f`: positions of two letters and of the digits 0..n-1. `?` stands for a
// dimension that has none of these meanings, as custom calls for vectorised kernels have it.
void read_labels(Cursor& in, size_t rank, std::string_view part, size_t pos, char first, char second,
                 int64_t& first_dim, int64_t& second_dim, Ints& spatial) {
  auto bad = [&](std::string why) {
    in.fail(pos, "dim-labels", "dim_labels part '" + std::string(part) + "' " + std::move(why));
  };
  if (part.size() - static_cast<size_t>(std::ranges::count(part, '?')) != rank)
    bad("has another rank than the first part");
  spatial.assign(rank - 2, -1);
  first_dim = second_dim = -1;
  for (size_t i = 0; i < part.size(); ++i) {
    char c = part[i];
    if (c == '?') continue;
    int64_t* place = c == first ? &first_dim : c == second ? &second_dim : nullptr;
    if (c >= '0' && c <= '9' && static_cast<size_t>(c - '0') < rank - 2) place = &spatial[c - '0'];
    if (!place || *place != -1) {
      bad("is not made of " + std::string(1, first) + ", " + second + " and the digits 0 to " +
          std::to_string(static_cast<int>(rank) - 3) + ", each once");
    }
    *place = static_cast<int64_t>(i);
  }
}

std::string labels(char first, int64_t first_dim, char second, int64_t second_dim, const Ints& spatial) {
  std::string part(spatial.size() + 2, '?');
  auto put = [&](int64_t dim, char c) {
    if (dim < 0) return;
    if (dim >= std::ssize(part)) part.resize(dim + 1, '?');
    part[dim] = c;
  };
  put(first_dim, first);
  put(second_dim, second);
  for (size_t i = 0; i < spatial.size(); ++i) put(spatial[i], static_cast<char>('0' + i));
  return part;
}

}  // namespace

size_t read_word(Cursor& in, Words words, std::string_view attribute, bool any_case) {
  std::string_view found = in.peek_identifier();
  size_t start = in.pos();
  for (size_t i = 0; i < words.size(); ++i) {
    if (equal_words(found, words[i], any_case)) {
      in.seek(start + found.size());
      return i;
    }
  }
  std::string allowed;
  for (std::string_view w : words) allowed += (allowed.empty() ? "" : ", ") + std::string(w);
  if (found.empty()) in.fail_expected("one of " + allowed);
  in.fail(start, "attribute-value", "'" + std::string(found) + "' is no value of " + std::string(attribute),
          "allowed: " + allowed);
}

void append_int(int64_t value, std::string& out) {
  char digits[24];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

std::vector<PadDim> read_padding(Cursor& in, bool interior) {
  std::vector<PadDim> dims;
  in.skip();
  if (in.peek() != '-' && (in.peek() < '0' || in.peek() > '9')) return dims;  // of a scalar
  do {
    PadDim d;
    d.low = in.integer_here("a low padding");
    if (!next_char_is(in, '_')) in.fail_expected("'_' and the high padding");
    d.high = in.integer_here("a high padding");
    if (interior && next_char_is(in, '_')) d.interior = in.integer_here("an interior padding");
    dims.push_back(d);
  } while (next_char_is(in, 'x'));
  return dims;
}

std::vector<WindowDim> read_window(Cursor& in) {
  static constexpr std::string_view kKeys[] = {"size", "stride", "pad", "lhs_dilate", "rhs_dilate", "rhs_reversal"};
  size_t start = (in.skip(), in.pos());
  in.expect('{', "before a window");
  std::array<bool, std::size(kKeys)> seen{};
  std::array<Ints, std::size(kKeys)> lists;
  std::vector<PadDim> pads;
  while (!in.accept('}')) {
    size_t key_pos = in.pos();
    size_t key = read_word(in, kKeys, "window");
    if (seen[key]) {
      in.fail(key_pos, "duplicate-attribute", "window gives " + std::string(kKeys[key]) + " twice");
    }
    seen[key] = true;
    in.expect('=', "after a window key");
    if (key == 2) {
      pads = read_padding(in, false);
    } else {
      lists[key] = read_sizes(in, "a window size");
    }
  }
  // `{}` is a window of no dimensions.
  if (!seen[0] && std::ranges::find(seen, true) != seen.end())
    in.fail(start, "missing-attribute", "a window needs size=");
  size_t rank = lists[0].size();
  for (size_t key = 1; key < std::size(kKeys); ++key) {
    size_t count = key == 2 ? pads.size() : lists[key].size();
    if (seen[key] && count != rank) {
      in.fail(start, "window-rank",
              "window " + std::string(kKeys[key]) + " has " + std::to_string(count) + " entries, size has " +
                  std::to_string(rank));
    }
  }
  std::vector<WindowDim> window(rank);
  for (size_t i = 0; i < rank; ++i) {
    WindowDim& d = window[i];
    d.size = lists[0][i];
    if (seen[1]) d.stride = lists[1][i];
    if (seen[2]) d.pad_low = pads[i].low, d.pad_high = pads[i].high;
    if (seen[3]) d.lhs_dilate = lists[3][i];
    if (seen[4]) d.rhs_dilate = lists[4][i];
    if (seen[5]) d.reversal = lists[5][i] != 0;
  }
  return window;
}

void append_window(const std::vector<WindowDim>& w, std::string& out) {
  auto any = [&](auto get, int64_t usual) {
    return std::ranges::any_of(w, [&](const WindowDim& d) { return get(d) != usual; });
  };
  auto list = [&](std::string_view key, int64_t usual, auto get) {
    if (!any(get, usual)) return;
    out += key;
    append_sizes(w, get, out);
  };
  out += "{size=";
  append_sizes(w, [](const WindowDim& d) { return d.size; }, out);
  list(" stride=", 1, [](const WindowDim& d) { return d.stride; });
  if (any([](const WindowDim& d) { return d.pad_low; }, 0) || any([](const WindowDim& d) { return d.pad_high; }, 0)) {
    out += " pad=";
    for (size_t k = 0; k < w.size(); ++k) {
      if (k > 0) out += 'x';
      append_int(w[k].pad_low, out);
      out += '_';
      append_int(w[k].pad_high, out);
    }
  }
  list(" lhs_dilate=", 1, [](const WindowDim& d) { return d.lhs_dilate; });
  list(" rhs_dilate=", 1, [](const WindowDim& d) { return d.rhs_dilate; });
  list(" rhs_reversal=", 0, [](const WindowDim& d) { return int64_t{d.reversal}; });
  out += '}';
}

ConvDims read_dim_labels(Cursor& in) {
  size_t start = (in.skip(), in.pos());
  auto label = [&] {
    size_t from = in.pos();
    size_t to = from;
    while (to < in.text().size() &&
           (is_identifier_start(in.text()[to]) || in.text()[to] == '?' ||
            (in.text()[to] >= '0' && in.text()[to] <= '9')) &&
           in.text()[to] != '_') {
      ++to;
    }
    in.seek(to);
    return in.text().substr(from, to - from);
  };
  std::string_view lhs = label();
  if (!next_char_is(in, '_')) in.fail_expected("'_' and the kernel's labels, as in b01f_01io->b01f");
  std::string_view rhs = label();
  if (in.text().substr(in.pos(), 2) != "->") {
    in.fail_expected("'->' and the result's labels, as in b01f_01io->b01f");
  }
  in.seek(in.pos() + 2);
  std::string_view out = label();
  size_t rank = lhs.size() - static_cast<size_t>(std::ranges::count(lhs, '?'));
  if (rank < 2) in.fail(start, "dim-labels", "dim_labels need at least two dimensions");
  ConvDims c;
  read_labels(in, rank, lhs, start, 'b', 'f', c.lhs_batch, c.lhs_feature, c.lhs_spatial);
  read_labels(in, rank, rhs, start, 'i', 'o', c.rhs_input_feature, c.rhs_output_feature, c.rhs_spatial);
  read_labels(in, rank, out, start, 'b', 'f', c.out_batch, c.out_feature, c.out_spatial);
  return c;
}

void append_dim_labels(const ConvDims& c, std::string& out) {
  out += labels('b', c.lhs_batch, 'f', c.lhs_feature, c.lhs_spatial) + '_' +
         labels('i', c.rhs_input_feature, 'o', c.rhs_output_feature, c.rhs_spatial) + "->" +
         labels('b', c.out_batch, 'f', c.out_feature, c.out_spatial);
}

std::vector<SliceRange> read_slice(Cursor& in) {
  std::vector<SliceRange> ranges;
  in.expect('{', "before slice ranges");
  while (!in.accept('}')) {
    if (!ranges.empty()) in.expect(',', "between slice ranges");
    SliceRange r;
    in.expect('[', "before a slice range");
    r.start = in.integer("a slice start");
    in.expect(':', "between start and limit");
    r.limit = in.integer("a slice limit");
    if (in.accept(':')) r.stride = in.integer("a slice stride");
    in.expect(']', "after a slice range");
    ranges.push_back(r);
  }
  return ranges;
}

void append_slice(const std::vector<SliceRange>& ranges, std::string& out) {
  bool strides = std::ranges::any_of(ranges, [](const SliceRange& r) { return r.stride != 1; });
  out += '{';
  for (size_t k = 0; k < ranges.size(); ++k) {
    out += k > 0 ? ", [" : "[";
    append_int(ranges[k].start, out);
    out += ':';
    append_int(ranges[k].limit, out);
    if (strides) {
      out += ':';
      append_int(ranges[k].stride, out);
    }
    out += ']';
  }
  out += '}';
}

void append_padding(const std::vector<PadDim>& dims, std::string& out) {
  bool interior = std::ranges::any_of(dims, [](const PadDim& d) { return d.interior != 0; });
  for (size_t k = 0; k < dims.size(); ++k) {
    if (k > 0) out += 'x';
    append_int(dims[k].low, out);
    out += '_';
    append_int(dims[k].high, out);
    if (interior) {
      out += '_';
      append_int(dims[k].interior, out);
    }
  }
}

std::string read_int_lists(Cursor& in) {
  std::string text = "{";
  in.expect('{', "before lists of integers");
  while (!in.accept('}')) {
    if (text.size() > 1) {
      in.expect(',', "between lists of integers");
      text += ',';
    }
    append_ints(read_ints(in), text);
  }
  return text + '}';
}

std::string read_iota_groups(Cursor& in) {
  std::string text;
  auto list = [&](char open, char close) {
    in.expect(open, "in device groups");
    text += open;
    do {
      append_int(in.integer("an integer in device groups"), text);
      text += ',';
    } while (in.accept(','));
    in.expect(close, "in device groups");
    text.back() = close;
  };
  list('[', ']');
  in.expect("<=", "in device groups");
  text += "<=";
  list('[', ']');
  if (in.accept_word("T")) {
    text += 'T';
    list('(', ')');
  }
  return text;
}

std::vector<Alias> read_aliases(Cursor& in) {
  std::vector<Alias> aliases;
  in.expect('{', "before aliases");
  while (!in.accept('}')) {
    if (!aliases.empty()) in.expect(',', "between aliases");
    Alias alias;
    alias.output_index = read_ints(in);
    in.expect(':', "after the result's index");
    in.expect('(', "before the aliased operand");
    alias.operand = in.integer("the number of an operand");
    in.expect(',', "after the number of the operand");
    alias.operand_index = read_ints(in);
    if (in.accept(',')) {
      static constexpr std::string_view kKinds[] = {"may-alias", "must-alias"};
      alias.must = read_word(in, kKinds, "an alias") == 1;
    }
    in.expect(')', "after the aliased operand");
    aliases.push_back(std::move(alias));
  }
  return aliases;
}

std::string aliases_to_string(const std::vector<Alias>& aliases) {
  std::string out = "{";
  for (size_t i = 0; i < aliases.size(); ++i) {
    const Alias& alias = aliases[i];
    if (i > 0) out += ", ";
    append_ints(alias.output_index, out);
    out += ": (";
    append_int(alias.operand, out);
    out += ", ";
    append_ints(alias.operand_index, out);
    if (alias.must) out += *alias.must ? ", must-alias" : ", may-alias";
    out += ')';
  }
  return out + '}';
}

Ints read_ints(Cursor& in) {
  Ints values;
  in.expect('{', "before a list of integers");
  while (!in.accept('}')) {
    if (!values.empty()) in.expect(',', "between integers");
    values.push_back(in.integer("an integer"));
  }
  return values;
}

void append_ints(const Ints& values, std::string& out) {
  out += '{';
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) out += ',';
    append_int(values[i], out);
  }
  out += '}';
}

}  // namespace hlojit
