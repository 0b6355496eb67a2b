// One row an attribute: its name, how its value is read, how it is printed.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "compiler/text/attributes.h"

namespace hlojit {

/// Everything a rule reads from and into.
struct AttributeTarget {
  Cursor& in;
  References& names;
  Instruction& instruction;
  Attributes& a;
  std::string_view name;  ///< of the attribute being read
};

struct AttributeRule {
  /// The attribute's name; a suffix `:form` tells apart two attributes of one name.
  std::string_view key;
  void (*read)(AttributeTarget&);
  /// Appends the value; false if there is none to print. Null: the value is text in `other`.
  bool (*print)(const Instruction&, std::string&) = nullptr;

  std::string_view name() const { return key.substr(0, key.find(':')); }
};

/// All of them: first the ops' own, then (from `to_apply` on) called computations and what any op may have.
std::span<const AttributeRule> attribute_rules();

/// A conditional on a pred, which names its branches true and false.
bool has_pred_index(const Instruction& conditional);

}  // namespace hlojit
