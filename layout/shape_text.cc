// Text of shapes and layouts, both ways:
//
//     f32[3,<=5]{1,0:T(8,128)(2,1)L(1024)E(16)S(1)M(8)}     (s32[], /*index=1*/ token[])
//
// Attributes of a layout come in one fixed order, D T L # * E S SC P M. D(...) is read and dropped
// (dense levels say nothing), P(...) is refused. The reader walks the text in place, never further
// than one token beyond the shape, and nests no deeper than kMaxNesting.
#include <algorithm>
#include <charconv>
#include <optional>

#include "layout/shape_text.h"

namespace hlojit {
namespace {

constexpr int kMaxNesting = 500;

Location location_of(std::string_view text, size_t pos) {
  std::string_view before = text.substr(0, pos);
  size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  return {.line = 1 + static_cast<int>(std::ranges::count(before, '\n')),
          .column = 1 + static_cast<int>(pos - line_start)};
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

class ShapeReader {
 public:
  ShapeReader(std::string_view text, size_t pos, bool validate) : text_(text), pos_(pos), validate_(validate) {}

  size_t pos() const { return pos_; }

  Shape shape(int depth) {
    skip_blanks();
    if (peek() == '(') return tuple(depth);
    size_t start = pos_;
    std::string_view name = word();
    if (name.empty()) fail(start, "expected a shape");
    if (name == "b" && peek_token() == '(') {
      throw Error(ErrorKind::kUnsupported, location_of(text_, start), "buffer shapes b(...) are not supported",
                  "shape-buffer");
    }
    std::optional<DType> type = dtype_from_name(name);
    if (!type) fail(start, "unknown element type '" + std::string(name) + "'");
    expect('[', "after the element type");
    if (!is_array_type(*type)) return without_dimensions(*type);
    Shape shape = Shape::array(*type, {});
    dimensions(shape);
    size_t layout_start = pos_;
    if (layout_follows()) {
      layout_start = token_start();
      shape.layout = layout(shape.rank());
    } else {
      shape.layout = Layout::descending(shape.rank());
    }
    if (validate_) {
      std::vector<std::string> errors = shape_errors(shape);
      if (!errors.empty()) {
        fail(layout_errors(shape).empty() ? start : layout_start, errors.front());
      }
    }
    return shape;
  }

  void expect_end() {
    skip_blanks();
    if (pos_ < text_.size()) fail(pos_, "unexpected text after the shape");
  }

 private:
  [[noreturn]] void fail(size_t pos, std::string message) const {
    throw Error(ErrorKind::kInvalid, location_of(text_, pos), std::move(message), "shape-syntax");
  }

  // --- Tokens ---

  char peek() const { return pos_ < text_.size() ? text_[pos_] : '\0'; }

  // First position at or after `pos` that is neither white space nor a comment.
  size_t after_blanks(size_t pos) const {
    for (;;) {
      while (pos < text_.size() && std::string_view(" \t\r\n").contains(text_[pos])) ++pos;
      if (text_.substr(pos).starts_with("//")) {
        pos = std::min(text_.find('\n', pos), text_.size());
      } else if (text_.substr(pos).starts_with("/*")) {
        size_t end = text_.find("*/", pos + 2);
        if (end == std::string_view::npos) fail(pos, "unterminated comment");
        pos = end + 2;
      } else {
        return pos;
      }
    }
  }
  void skip_blanks() { pos_ = after_blanks(pos_); }
  size_t token_start() const { return after_blanks(pos_); }
  char peek_token() const {
    size_t pos = token_start();
    return pos < text_.size() ? text_[pos] : '\0';
  }

  bool accept(char c) {
    if (peek_token() != c) return false;
    pos_ = token_start() + 1;
    return true;
  }
  void expect(char c, const char* where) {
    if (!accept(c)) fail(token_start(), "expected '" + std::string(1, c) + "' " + where);
  }

  // Letters, then letters and digits; empty if there is none.
  std::string_view word() {
    skip_blanks();
    size_t start = pos_;
    if (is_letter(peek())) {
      while (is_letter(peek()) || is_digit(peek())) ++pos_;
    }
    return text_.substr(start, pos_ - start);
  }

  int64_t integer(const char* what) {
    skip_blanks();
    size_t start = pos_;
    if (peek() == '-') ++pos_;
    while (is_digit(peek())) ++pos_;
    int64_t value = 0;
    const char* end = text_.data() + pos_;
    auto [stop, error] = std::from_chars(text_.data() + start, end, value);
    if (error == std::errc::result_out_of_range) {
      fail(start, std::string(what) + " does not fit in 64 bits");
    }
    if (error != std::errc() || stop != end) fail(start, std::string("expected ") + what);
    return value;
  }

  // --- Shapes ---

  Shape tuple(int depth) {
    if (depth >= kMaxNesting) {
      fail(pos_, "tuple shapes nest deeper than " + std::to_string(kMaxNesting) + " levels");
    }
    expect('(', "before tuple elements");
    std::vector<Shape> elements;
    if (!accept(')')) {
      do {
        elements.push_back(shape(depth + 1));
      } while (accept(','));
      expect(')', "or ',' after a tuple element");
    }
    refuse_layout("a tuple has no layout of its own: give one to each element");
    return Shape::tuple(std::move(elements));
  }

  Shape without_dimensions(DType type) {
    if (!accept(']')) {
      fail(token_start(), std::string(dtype_name(type)) + " cannot have dimensions");
    }
    refuse_layout("only an array can have a layout");
    return type == DType::kToken ? Shape::token() : Shape::opaque();
  }

  void refuse_layout(const char* message) const {
    if (layout_follows()) fail(token_start(), message);
  }

  void dimensions(Shape& shape) {
    if (accept(']')) return;
    std::vector<bool> dynamic;
    do {
      skip_blanks();
      if (accept('?')) {
        shape.dims.push_back(Shape::kUnbounded);
        dynamic.push_back(true);
        continue;
      }
      bool bound = text_.substr(pos_).starts_with("<=");
      if (bound) pos_ += 2;
      size_t start = token_start();
      int64_t size = integer("a dimension size");
      if (size < 0) fail(start, "dimension size " + std::to_string(size) + " is negative");
      shape.dims.push_back(size);
      dynamic.push_back(bound);
    } while (accept(','));
    expect(']', "or ',' after a dimension size");
    if (std::ranges::find(dynamic, true) != dynamic.end()) shape.dynamic = std::move(dynamic);
  }

  // --- Layouts ---

  // '{' opens a layout only before an integer or ':'; otherwise it is the body of a computation.
  bool layout_follows() const {
    size_t pos = token_start();
    if (pos >= text_.size() || text_[pos] != '{') return false;
    pos = after_blanks(pos + 1);
    if (pos >= text_.size()) return false;
    bool negative = text_[pos] == '-' && pos + 1 < text_.size() && is_digit(text_[pos + 1]);
    return text_[pos] == ':' || is_digit(text_[pos]) || negative;
  }

  Layout layout(int64_t rank) {
    size_t start = token_start();
    expect('{', "before a layout");
    Layout out;
    if (peek_token() != ':') {
      do {
        out.minor_to_major.push_back(integer("a dimension number"));
      } while (accept(','));
    }
    if (static_cast<int64_t>(out.minor_to_major.size()) != rank) {
      fail(start, "layout has " + std::to_string(out.minor_to_major.size()) +
                      " entries in minor_to_major but the array has rank " + std::to_string(rank));
    }
    if (accept(':')) attributes(out);
    expect('}', "after the layout");
    return out;
  }

  void attributes(Layout& out) {
    static constexpr std::string_view kOrder[] = {"D", "T", "L", "#", "*", "E", "S", "SC", "P", "M"};
    size_t next = 0;  // attributes before kOrder[next] may not come any more
    while (peek_token() != '}') {
      skip_blanks();
      size_t start = pos_;
      std::string_view name = text_.substr(pos_, 1);
      if (name == "#" || name == "*") {
        ++pos_;
      } else {
        name = word();
      }
      const auto* found = std::ranges::find(kOrder, name);
      if (name.empty() || found == std::end(kOrder)) {
        fail(start, "expected a layout attribute (D T L # * E S SC P M) or '}'");
      }
      size_t place = found - std::begin(kOrder);
      if (place < next) {
        fail(start, "layout attribute " + std::string(name) +
                        " is out of order or repeated (the order is D T L # * E S SC P M)");
      }
      next = place + 1;
      attribute(name, start, out);
    }
  }

  void attribute(std::string_view name, size_t start, Layout& out) {
    if (name == "P") fail(start, "P(...) belongs to sparse arrays, which do not exist any more");
    expect('(', "after a layout attribute");
    if (name == "D") {
      dim_levels();
    } else if (name == "T") {
      do {
        out.tiles.push_back(tile());
      } while (accept('('));
      return;
    } else if (name == "L") {
      size_t at = token_start();
      out.tail_padding_alignment = integer("the tail padding alignment");
      if (out.tail_padding_alignment <= 0) fail(at, "the tail padding alignment must be positive");
    } else if (name == "#") {
      out.index_type = unsigned_type();
    } else if (name == "*") {
      out.pointer_type = unsigned_type();
    } else if (name == "E") {
      size_t at = token_start();
      out.element_size_in_bits = integer("an element size in bits");
      if (out.element_size_in_bits < 0) fail(at, "the element size in bits is negative");
    } else if (name == "S") {
      out.memory_space = integer("a memory space");
    } else if (name == "SC") {
      do {
        out.split_configs.push_back(split());
      } while (accept('('));
      return;
    } else if (name == "M") {
      out.metadata_prefix_bytes = integer("the bytes of the metadata prefix");
    }
    expect(')', "after a layout attribute");
  }

  // `D,C+,S~,H`: levels of sparse arrays of old; read and forgotten.
  void dim_levels() {
    do {
      skip_blanks();
      size_t start = pos_;
      std::string_view level = word();
      if (level != "D" && level != "C" && level != "S" && level != "H") {
        fail(start, "expected a dimension level (D, C, S or H)");
      }
      accept('+');
      accept('~');
    } while (accept(','));
  }

  // After '(' up to and including ')'.
  Tile tile() {
    Tile out;
    size_t start = pos_;
    if (accept(')')) fail(start, "a tile has no dimensions");
    do {
      size_t at = token_start();
      if (accept('*')) {
        out.dims.push_back(Tile::kCombine);
        continue;
      }
      int64_t size = integer("a tile dimension or '*'");
      if (size <= 0) fail(at, "tile dimension " + std::to_string(size) + " is not positive");
      out.dims.push_back(size);
    } while (accept(','));
    expect(')', "or ',' after a tile dimension");
    return out;
  }

  SplitConfig split() {
    SplitConfig out;
    out.dim = integer("a physical dimension");
    expect(':', "after the split dimension");
    do {
      out.indices.push_back(integer("a split index"));
    } while (accept(','));
    expect(')', "after split indices");
    return out;
  }

  DType unsigned_type() {
    size_t start = token_start();
    std::optional<DType> type = dtype_from_name(word());
    if (!type || !is_unsigned(*type)) fail(start, "expected an unsigned integer type");
    return *type;
  }

  std::string_view text_;
  size_t pos_;
  bool validate_;
};

void append_list(std::string& out, std::span<const int64_t> values) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) out += ',';
    out += values[i] == Tile::kCombine ? std::string("*") : std::to_string(values[i]);
  }
}

void append_shape(std::string& out, const Shape& shape, bool with_layout) {
  if (shape.is_tuple()) {
    out += '(';
    for (size_t i = 0; i < shape.elements.size(); ++i) {
      if (i > 0) out += ", ";
      append_shape(out, shape.elements[i], with_layout);
    }
    out += ')';
    return;
  }
  out += dtype_name(shape.type);
  out += '[';
  for (size_t i = 0; i < shape.dims.size(); ++i) {
    if (i > 0) out += ',';
    if (shape.dims[i] == Shape::kUnbounded) {
      out += '?';
      continue;
    }
    if (i < shape.dynamic.size() && shape.dynamic[i]) out += "<=";
    out += std::to_string(shape.dims[i]);
  }
  out += ']';
  // A plain scalar has no layout to show.
  if (with_layout && shape.is_array() && (shape.rank() > 0 || shape.layout != Layout{})) {
    out += to_string(shape.layout);
  }
}

}  // namespace

std::string to_string(const Layout& layout) {
  std::string attributes;
  auto add = [&](const char* name, int64_t value) { attributes += name + ("(" + std::to_string(value)) + ')'; };
  auto add_type = [&](const char* name, DType type) {
    if (type == DType::kInvalid) return;
    attributes += name;
    attributes += '(';
    attributes += dtype_name(type);
    attributes += ')';
  };
  if (!layout.tiles.empty()) attributes += 'T';
  for (const Tile& tile : layout.tiles) {
    attributes += '(';
    append_list(attributes, tile.dims);
    attributes += ')';
  }
  if (layout.tail_padding_alignment != 1) add("L", layout.tail_padding_alignment);
  add_type("#", layout.index_type);
  add_type("*", layout.pointer_type);
  if (layout.element_size_in_bits != 0) add("E", layout.element_size_in_bits);
  if (layout.memory_space != 0) add("S", layout.memory_space);
  if (!layout.split_configs.empty()) attributes += "SC";
  for (const SplitConfig& split : layout.split_configs) {
    attributes += '(' + std::to_string(split.dim) + ':';
    append_list(attributes, split.indices);
    attributes += ')';
  }
  if (layout.metadata_prefix_bytes != 0) add("M", layout.metadata_prefix_bytes);

  std::string out = "{";
  append_list(out, layout.minor_to_major);
  if (!attributes.empty()) out += ':' + attributes;
  return out + '}';
}

std::string Shape::to_string(bool with_layout) const {
  std::string out;
  append_shape(out, *this, with_layout);
  return out;
}

Shape parse_shape_at(std::string_view text, size_t& pos, bool validate) {
  ShapeReader reader(text, pos, validate);
  Shape shape = reader.shape(0);
  pos = reader.pos();
  return shape;
}

Shape Shape::parse(std::string_view text) {
  ShapeReader reader(text, 0, /*validate=*/true);
  Shape shape = reader.shape(0);
  reader.expect_end();
  return shape;
}

}  // namespace hlojit
