// Cursor over HLO text: the tokens of the language, read on demand.
//
// The same characters mean different tokens in different places (`1_1x0_2` is a padding, `3x4` a
// size list, `b01f_01io->b01f` dimension labels), so there is no token stream: the parser asks for
// what the grammar allows next, and the cursor reads that or fails at the exact place.
//
// Every function that reads skips white space and comments first. Failures are Error(kInvalid) with
// the line and column of the offending token.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "layout/error.h"
#include "layout/shape.h"

namespace hlojit {

/// Nesting of operands, inline bodies, tuple literals and calls beyond this is an error.
inline constexpr int kMaxNesting = 200;

bool is_identifier_start(char c);
bool is_identifier_char(char c);

class Cursor {
 public:
  /// `text` must outlive the cursor.
  explicit Cursor(std::string_view text) : text_(text) {}

  std::string_view text() const { return text_; }
  /// Offset of the next character; after skip(), of the next token.
  size_t pos() const { return pos_; }
  void seek(size_t pos) { pos_ = pos; }

  /// Moves past white space and comments. An unterminated comment fails.
  void skip() {
    if (pos_ < text_.size() && (text_[pos_] <= ' ' || text_[pos_] == '/')) skip_slowly();
  }
  bool done();
  /// Next significant character; '\0' at the end.
  char peek();
  /// Consumes c if it is next.
  bool accept(char c);
  bool accept(std::string_view punctuation);
  void expect(char c, std::string_view where);
  void expect(std::string_view punctuation, std::string_view where);

  bool at_identifier() { return is_identifier_start(peek()); }
  /// The identifier that is next, without consuming it; empty if none.
  std::string_view peek_identifier();
  /// `what` names the expectation in the message ("an opcode").
  std::string_view identifier(std::string_view what);
  /// Consumes `word` if it is the identifier that is next.
  bool accept_word(std::string_view word);
  /// A name, with or without `%`; a bare reserved word fails. The view is into the text.
  std::string_view name(std::string_view what);
  bool at_name() { return at_identifier() || peek() == '%'; }
  /// True if a shape is next: `(` or an identifier directly followed by `[`.
  bool at_shape();

  /// `-?[0-9]+` within int64.
  int64_t integer(std::string_view what);
  /// The same without skipping, for parts of composite tokens.
  int64_t integer_here(std::string_view what);
  bool boolean();
  double decimal(std::string_view what);
  /// A quoted string: raw text with its quotes.
  std::string_view quoted();
  /// A quoted string with its escapes resolved.
  std::string string();
  /// From `{` to the matching `}`, both included; braces inside strings do not count.
  std::string_view balanced();
  /// Shape with optional layout; sizes and layouts are left to the verifier.
  Shape shape();

  /// Line and column of an offset. Cheap if offsets grow from call to call.
  Location location(size_t pos);
  [[noreturn]] void fail(size_t pos, std::string_view rule, std::string message, std::string details = {});
  /// "expected WHAT, found 'TOKEN'" at the next token.
  [[noreturn]] void fail_expected(std::string_view what);

 private:
  void skip_slowly();

  std::string_view text_;
  size_t pos_ = 0;
  // Where location() last was: an offset, its line, the offset at which that line starts.
  size_t line_pos_ = 0, line_start_ = 0;
  int line_ = 1;
};

/// A name as it has to stand in text: with `%` if it could not be read without.
void append_name(std::string_view name, std::string& out);
/// Text in double quotes with `"`, `\` and control characters escaped: the inverse of string().
std::string quote(std::string_view text);

}  // namespace hlojit
