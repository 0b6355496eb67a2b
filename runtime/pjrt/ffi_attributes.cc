// See ffi_attributes.h. A reader of MLIR's attribute text; values live as long as the call site.
#include "runtime/pjrt/ffi_attributes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "layout/dtype.h"
#include "layout/error.h"

namespace hlojit::ffi {

/// Reads the text from left to right.
class AttributeReader {
 public:
  explicit AttributeReader(std::string_view text) : text_(text) {}

  void dictionary(CallAttributes& out) {
    expect('{');
    if (!accept('}')) {
      do {
        CallAttributes::Entry e;
        skip();
        e.name = peek() == '"' ? quoted() : word();
        if (e.name.empty()) fail("a name is expected");
        if (accept('=')) {
          value(e.value);
        } else {
          set_number(e.value, "1", "i1");  // a name alone is a flag
        }
        out.entries_.push_back(std::move(e));
      } while (accept(','));
      expect('}');
    }
    out.finish();
  }
  void end() {
    skip();
    if (at_ != text_.size()) fail("text follows the attributes");
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorKind::kInvalid, fmt::format("attributes of a custom call, character {}: {}", at_ + 1, what));
  }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void skip() {
    while (at_ < text_.size() && std::strchr(" \t\n\r", text_[at_])) ++at_;
  }
  bool accept(char c) {
    skip();
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(fmt::format("'{}' is expected", c));
  }
  std::string word() {
    skip();
    size_t from = at_;
    auto part = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '$' || c == '-' || c == '+';
    };
    while (at_ < text_.size() && part(text_[at_])) ++at_;
    return std::string(text_.substr(from, at_ - from));
  }
  std::string quoted() {
    expect('"');
    std::string out;
    while (peek() != '"') {
      if (at_ >= text_.size()) fail("a string has no end");
      char c = text_[at_++];
      if (c != '\\') {
        out.push_back(c);
        continue;
      }
      char next = peek();
      ++at_;
      if (next == 'n') {
        out.push_back('\n');
      } else if (next == 't') {
        out.push_back('\t');
      } else if (std::isxdigit(static_cast<unsigned char>(next)) && at_ < text_.size()) {
        out.push_back(static_cast<char>(std::stoi(std::string{next, text_[at_++]}, nullptr, 16)));
      } else {
        out.push_back(next);
      }
    }
    ++at_;
    return out;
  }

  void value(CallAttributes::Value& v) {
    skip();
    if (peek() == '"') {
      v.type = kString;
      v.bytes = quoted();
      return;
    }
    if (peek() == '{') {
      v.type = kDictionary;
      v.dictionary.reset(new CallAttributes);
      dictionary(*v.dictionary);
      return;
    }
    std::string first = word();
    if (first == "true" || first == "false") return set_number(v, first, "i1");
    if (first == "array") return array(v);
    std::string type = accept(':') ? word() : first.find_first_of(".eE") == std::string::npos ? "i64" : "f64";
    set_number(v, first, type);
  }

  void array(CallAttributes::Value& v) {
    expect('<');
    std::string type = word();
    v.type = kArray;
    v.count = 0;
    v.dtype = static_cast<int32_t>(dtype(type));
    if (accept(':')) {
      do {
        v.bytes += number(word(), dtype(type));
        ++v.count;
      } while (accept(','));
    }
    expect('>');
  }

  void set_number(CallAttributes::Value& v, const std::string& text, const std::string& type) {
    v.type = kScalar;
    v.dtype = static_cast<int32_t>(dtype(type));
    v.bytes = number(text, dtype(type));
  }

  DType dtype(const std::string& type) const {
    if (type == "i1") return DType::kPred;
    std::string name = type.starts_with("ui")   ? "u" + type.substr(2)
                       : type.starts_with("si") ? "s" + type.substr(2)
                                                : type;
    if (name.starts_with("i")) name[0] = 's';
    auto found = dtype_from_name(name);
    if (!found || dtype_bits(*found) < 8 || dtype_bits(*found) > 64 || is_complex(*found))
      fail(fmt::format("type {} is not supported", type));
    return *found;
  }

  // The bytes of a number in memory.
  std::string number(const std::string& text, DType type) const {
    std::string out(static_cast<size_t>(dtype_bytes(type)), '\0');
    auto put = [&](auto x) { std::memcpy(out.data(), &x, std::min(out.size(), sizeof x)); };
    try {
      bool bits = text.starts_with("0x");  // a float's bits, or an integer
      if (text == "true" || text == "false") {
        put(static_cast<uint8_t>(text == "true"));
      } else if (bits || !is_float(type)) {
        int base = bits ? 16 : 10;
        put(text.starts_with("-") ? static_cast<uint64_t>(std::stoll(text, nullptr, base))
                                  : std::stoull(text, nullptr, base));
      } else if (type == DType::kF32) {
        put(std::stof(text));
      } else if (type == DType::kF64) {
        put(std::stod(text));
      } else {
        fail(fmt::format("numbers of type {} are not supported", dtype_name(type)));
      }
    } catch (const std::logic_error&) {
      fail(fmt::format("'{}' is no number of type {}", text, dtype_name(type)));
    }
    return out;
  }

  std::string_view text_;
  size_t at_ = 0;
};

CallAttributes::CallAttributes(std::string_view text) {
  if (text.empty()) {
    finish();
    return;
  }
  AttributeReader reader(text);
  reader.dictionary(*this);
  reader.end();
}

void CallAttributes::finish() {
  std::stable_sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) { return a.name < b.name; });
  for (Entry& e : entries_) {
    Value& v = e.value;
    e.name_span = {e.name.data(), e.name.size()};
    v.scalar = {v.dtype, v.bytes.data()};
    v.array = {v.dtype, v.count, v.bytes.data()};
    v.span = {v.bytes.data(), v.bytes.size()};
    types_.push_back(v.type);
    names_.push_back(&e.name_span);
    switch (v.type) {
      case kScalar: values_.push_back(&v.scalar); break;
      case kArray: values_.push_back(&v.array); break;
      case kString: values_.push_back(&v.span); break;
      case kDictionary: values_.push_back(&v.dictionary->view_); break;
    }
  }
  view_ = {sizeof view_, nullptr, static_cast<int64_t>(entries_.size()), types_.data(), names_.data(), values_.data()};
}

}  // namespace hlojit::ffi
