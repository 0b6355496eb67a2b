// A plain text of the fused computation, numbers for names, literals as bytes, and its digest.
#include "codegen/kernel_key.h"

#include <unordered_map>

#include <fmt/format.h>

#include "codegen/digest.h"
#include "codegen/target.h"
#include "compiler/text/attributes.h"

namespace hlojit::codegen {
namespace {

class KeyText {
 public:
  explicit KeyText(std::string start) : text_(std::move(start)) {}

  void computation(const Computation& c) {
    text_ += "{\n";
    std::unordered_map<const Instruction*, size_t> number;
    for (const auto& i : c.instructions()) {
      number.emplace(i.get(), number.size());
      instruction(*i, number);
    }
    append("root {}\n}}", number.at(c.root()));
  }

  void shapes(const Instruction& fusion) {
    append("{} ", op_name(fusion.opcode));
    append_own_attributes(fusion, text_);
    text_ += ' ';
    for (const Instruction* o : fusion.operands()) append("{} ", o->shape.to_string());
    append("-> {}\n", fusion.shape.to_string());
  }

  void surroundings(const Surroundings& around) {
    for (const std::vector<bool>& row : around.overlap) {
      for (bool x : row) text_ += x ? '1' : '0';
    }
    text_ += '\n';
    for (bool x : around.products) text_ += x ? '*' : ' ';
    text_ += '\n';
  }

  // A plan names instructions of its fusion, as in `reduce %sum.7`: numbers for those too. A byte that no plan
  // holds stands before them, so that no text of a program can be mistaken for one.
  void config(const Instruction& i) {
    std::string_view rest = i.attrs.backend_config;
    std::unordered_map<std::string_view, size_t> number;
    if (rest.contains('%') && !i.called.empty()) {
      for (const auto& inner : i.to_apply()->instructions()) number.emplace(inner->name, number.size());
    }
    while (!rest.empty()) {
      size_t at = rest.find('%');
      text_ += rest.substr(0, at);
      if (at == rest.npos) break;
      rest.remove_prefix(at + 1);
      std::string_view name = rest.substr(0, rest.find_first_of(" \""));
      auto known = number.find(name);
      if (known == number.end())
        append("%{}", name);
      else
        append("\x01{}", known->second);
      rest.remove_prefix(name.size());
    }
    text_ += '\n';
  }

  const std::string& text() const { return text_; }

 private:
  template <class... T>
  void append(fmt::format_string<T...> format, T&&... values) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<T>(values)...);
  }

  void instruction(const Instruction& i, const std::unordered_map<const Instruction*, size_t>& number) {
    append("{} {}", op_name(i.opcode), i.shape.to_string());
    for (const Instruction* o : i.operands()) append(" {}", number.at(o));
    if (i.is(Opcode::kParameter)) append(" p{}", i.attrs.parameter_number);
    if (i.literal) literal(*i.literal);
    append_own_attributes(i, text_);
    text_ += '\n';
    if (!i.attrs.backend_config.empty()) config(i);
    for (const Computation* c : i.called) computation(*c);
  }

  void literal(const Literal& l) {
    if (l.shape().is_tuple()) {
      for (const Literal& e : l.elements()) literal(e);
      return;
    }
    auto bytes = l.bytes();
    append(" {}:", bytes.size());
    text_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }

  std::string text_;
};

}  // namespace

std::string option_text(const EmitOptions& options) {
  const Target& target = *options.target;
  TargetInfo info = options.target_info();
  return fmt::format("{} {} caches {} {} {} smaller {} strict {} fast {} vectors {}\n", target.isa_name(),
                     target.features(), info.l1_bytes, info.l2_bytes, info.llc_bytes, info.smaller, options.strict,
                     options.fast, options.vector_bytes);
}

std::string kernel_key(const Instruction& fusion, const Surroundings& around, std::string_view options) {
  KeyText text((std::string(options)));
  text.shapes(fusion);
  text.surroundings(around);
  text.config(fusion);
  text.computation(*fusion.to_apply());
  return digest(text.text());
}

}  // namespace hlojit::codegen
