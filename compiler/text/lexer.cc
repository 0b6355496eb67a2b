// See lexer.h.
#include "compiler/text/lexer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "layout/shape_text.h"

namespace hlojit {
namespace {

// Character classes as a table: names are most of the text.
constexpr uint8_t kStart = 1, kInner = 2;
constexpr auto kClasses = [] {
  std::array<uint8_t, 256> classes{};
  for (int c = 'a'; c <= 'z'; ++c) classes[c] = classes[c - 32] = kStart | kInner;
  for (int c = '0'; c <= '9'; ++c) classes[c] = kInner;
  classes['_'] = kStart | kInner;
  classes['.'] = classes['-'] = kInner;
  return classes;
}();

constexpr std::string_view kReserved[] = {
    "true",        "false",      "inf",        "nan",           "HloModule",
    "ENTRY",       "ROOT",       "FileNames",  "FunctionNames", "FileLocations",
    "StackFrames", "maximal",    "replicated", "manual",        "last_tile_dim_replicate",
    "shard_as",    "shard_like", "unknown",    "unreduced"};

size_t identifier_end(std::string_view text, size_t pos) {
  while (pos < text.size() && is_identifier_char(text[pos]) &&
         !(text[pos] == '-' && pos + 1 < text.size() && text[pos + 1] == '>')) {
    ++pos;
  }
  return pos;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Words that are names only with a leading `%`.
bool is_reserved_word(std::string_view word) {
  if (word.find('.') != std::string_view::npos) return false;  // as most names of dumps
  return std::ranges::find(kReserved, word) != std::end(kReserved) || dtype_from_name(word);
}

}  // namespace

bool is_identifier_start(char c) { return kClasses[static_cast<uint8_t>(c)] & kStart; }
bool is_identifier_char(char c) { return kClasses[static_cast<uint8_t>(c)] & kInner; }

void Cursor::skip_slowly() {
  while (pos_ < text_.size()) {
    char c = text_[pos_];
    if (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
      ++pos_;
    } else if (text_.substr(pos_, 2) == "//") {
      pos_ = std::min(text_.find('\n', pos_), text_.size());
    } else if (text_.substr(pos_, 2) == "/*") {
      size_t end = text_.find("*/", pos_ + 2);
      if (end == std::string_view::npos) fail(pos_, "syntax", "comment without an end");
      pos_ = end + 2;
    } else {
      return;
    }
  }
}

bool Cursor::done() {
  skip();
  return pos_ >= text_.size();
}

char Cursor::peek() {
  skip();
  return pos_ < text_.size() ? text_[pos_] : '\0';
}

bool Cursor::accept(char c) {
  skip();
  if (pos_ >= text_.size() || text_[pos_] != c) return false;
  ++pos_;
  return true;
}

bool Cursor::accept(std::string_view punctuation) {
  skip();
  if (text_.substr(pos_, punctuation.size()) != punctuation) return false;
  pos_ += punctuation.size();
  return true;
}

void Cursor::expect(char c, std::string_view where) {
  if (!accept(c)) fail_expected("'" + std::string(1, c) + "' " + std::string(where));
}

void Cursor::expect(std::string_view punctuation, std::string_view where) {
  if (!accept(punctuation)) {
    fail_expected("'" + std::string(punctuation) + "' " + std::string(where));
  }
}

std::string_view Cursor::peek_identifier() {
  if (!at_identifier()) return {};
  return text_.substr(pos_, identifier_end(text_, pos_) - pos_);
}

std::string_view Cursor::identifier(std::string_view what) {
  std::string_view word = peek_identifier();
  if (word.empty()) fail_expected(what);
  pos_ += word.size();
  return word;
}

bool Cursor::accept_word(std::string_view word) {
  if (peek_identifier() != word) return false;
  pos_ += word.size();
  return true;
}

std::string_view Cursor::name(std::string_view what) {
  if (peek() == '%') {
    size_t start = pos_ + 1;
    // After `%` a name may also start with a digit, as old dumps print it.
    size_t end = identifier_end(text_, start);
    if (end == start) fail_expected(what);
    pos_ = end;
    return text_.substr(start, end - start);
  }
  size_t start = pos_;
  std::string_view word = identifier(what);
  if (is_reserved_word(word)) {
    std::string shown(word);
    fail(start, "reserved-word", "'" + shown + "' is a reserved word; as a name write %" + shown);
  }
  return word;
}

bool Cursor::at_shape() {
  char c = peek();
  if (c == '(') return true;
  std::string_view word = peek_identifier();
  size_t after = pos_ + word.size();
  if (dtype_from_name(word)) after = std::min(text_.find_first_not_of(" \t", after), text_.size());
  return !word.empty() && after < text_.size() && text_[after] == '[';
}

int64_t Cursor::integer(std::string_view what) {
  skip();
  return integer_here(what);
}

int64_t Cursor::integer_here(std::string_view what) {
  int64_t value = 0;
  const char* first = text_.data() + pos_;
  auto [end, error] = std::from_chars(first, text_.data() + text_.size(), value);
  if (error == std::errc::result_out_of_range) {
    fail(pos_, "integer-range",
         "integer " + std::string(first, end) + " does not fit 64 bits, as " + std::string(what));
  }
  if (error != std::errc{}) fail_expected(what);
  pos_ += end - first;
  return value;
}

bool Cursor::boolean() {
  std::string_view word = peek_identifier();
  if (word != "true" && word != "false") fail_expected("true or false");
  pos_ += word.size();
  return word == "true";
}

double Cursor::decimal(std::string_view what) {
  skip();
  std::string_view rest = text_.substr(pos_);
  bool negative = rest.starts_with('-');
  std::string_view word = rest.substr(negative ? 1 : 0);
  for (auto [name, value] : {std::pair{"inf", HUGE_VAL}, {"nan", std::nan("")}}) {
    std::string_view special = name;
    if (word.starts_with(special)) {
      pos_ += negative + special.size();
      return negative ? -value : value;
    }
  }
  double value = 0;
  auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  if (error == std::errc::result_out_of_range) fail(pos_, "number-range", "number out of range");
  if (error != std::errc{}) fail_expected(what);
  pos_ += end - rest.data();
  return value;
}

std::string_view Cursor::quoted() {
  if (peek() != '"') fail_expected("a quoted string");
  size_t start = pos_;
  for (size_t i = pos_ + 1; i < text_.size(); ++i) {
    if (text_[i] == '\\') {
      ++i;
    } else if (text_[i] == '"') {
      pos_ = i + 1;
      return text_.substr(start, pos_ - start);
    }
  }
  fail(start, "syntax", "string without an end");
}

std::string Cursor::string() {
  size_t start = (skip(), pos_);
  std::string_view raw = quoted();
  raw = raw.substr(1, raw.size() - 2);
  std::string value;
  value.reserve(raw.size());
  for (size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] != '\\') {
      value += raw[i];
      continue;
    }
    char c = raw[++i];  // quoted() has seen to it that something follows
    switch (c) {
      case 'n': value += '\n'; continue;
      case 't': value += '\t'; continue;
      case 'r': value += '\r'; continue;
      case 'a': value += '\a'; continue;
      case 'b': value += '\b'; continue;
      case 'f': value += '\f'; continue;
      case 'v': value += '\v'; continue;
      case '"':
      case '\\':
      case '\'':
      case '?': value += c; continue;
      default: break;
    }
    int code = 0;
    if (c == 'x' || c == 'X') {
      size_t digits = 0;
      for (; i + 1 < raw.size() && digits < 2 && hex_digit(raw[i + 1]) >= 0; ++digits) {
        code = code * 16 + hex_digit(raw[++i]);
      }
      if (digits == 0) fail(start + 1 + i, "string-escape", "\\x needs a hexadecimal digit");
    } else if (c >= '0' && c <= '7') {
      code = c - '0';
      for (int n = 1; n < 3 && i + 1 < raw.size() && raw[i + 1] >= '0' && raw[i + 1] <= '7'; ++n) {
        code = code * 8 + (raw[++i] - '0');
      }
    } else {
      fail(start + i, "string-escape", "unknown escape in a string");
    }
    value += static_cast<char>(code);
  }
  return value;
}

std::string_view Cursor::balanced() {
  if (peek() != '{') fail_expected("'{'");
  size_t start = pos_;
  int64_t depth = 0;
  while (pos_ < text_.size()) {
    char c = text_[pos_];
    if (c == '"') {
      quoted();
      continue;
    }
    ++pos_;
    if (c == '{') ++depth;
    if (c == '}' && --depth == 0) return text_.substr(start, pos_ - start);
  }
  fail(start, "syntax", "'{' without its '}'");
}

Shape Cursor::shape() {
  skip();
  return parse_shape_at(text_, pos_);
}

Location Cursor::location(size_t pos) {
  pos = std::min(pos, text_.size());
  if (pos < line_pos_) {
    line_pos_ = line_start_ = 0;
    line_ = 1;
  }
  for (;;) {
    // Only up to pos: text without line ends must not be searched to its end each time.
    size_t end = text_.substr(line_pos_, pos - line_pos_).find('\n');
    if (end == std::string_view::npos) break;
    ++line_;
    line_start_ = line_pos_ += end + 1;
  }
  line_pos_ = pos;
  return {line_, static_cast<int>(pos - line_start_) + 1};
}

void Cursor::fail(size_t pos, std::string_view rule, std::string message, std::string details) {
  Diagnostic d;
  d.location = location(pos);
  d.rule = rule;
  d.message = std::move(message);
  d.details = std::move(details);
  throw Error(ErrorKind::kInvalid, std::vector<Diagnostic>{std::move(d)});
}

void Cursor::fail_expected(std::string_view what) {
  skip();
  std::string found = "the end of the text";
  if (pos_ < text_.size()) {
    size_t end = std::max(identifier_end(text_, pos_), pos_ + 1);
    std::string_view token = text_.substr(pos_, std::min(end - pos_, size_t{40}));
    bool printable = std::ranges::all_of(token, [](char c) { return c > ' ' && c < 127; });
    found = printable ? "'" + std::string(token) + "'" : "byte " + std::to_string(static_cast<uint8_t>(token[0]));
  }
  fail(pos_, "syntax", "expected " + std::string(what) + ", found " + found);
}

void append_name(std::string_view name, std::string& out) {
  if (name.empty() || !is_identifier_start(name[0]) || is_reserved_word(name)) out += '%';
  out += name;
}

std::string quote(std::string_view text) {
  std::string quoted = "\"";
  for (char c : text) {
    auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (c == '\n') {
      quoted += "\\n";
    } else if (c == '\t') {
      quoted += "\\t";
    } else if (code < ' ' || code == 127) {
      // Octal: three digits always, so that a digit may follow.
      quoted += '\\';
      for (int shift : {6, 3, 0}) quoted += static_cast<char>('0' + (code >> shift & 7));
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

}  // namespace hlojit
