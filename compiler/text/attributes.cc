// See attributes.h: which op takes which attributes (from its row in verify/), and reading and printing by these lists.
#include "compiler/text/attributes.h"

#include <algorithm>
#include <optional>

#include "compiler/ir/async.h"
#include "compiler/text/attribute_rules.h"
#include "compiler/verify/shape_inference.h"

namespace hlojit {
namespace {

// Besides what its row in verify/ lists.
constexpr std::string_view kCommon =
    "parameter_replication sharding frontend_attributes control-predecessors statistics metadata "
    "origin backend_config";
// The same for unary functions that are not exact, which may say how exact they have to be.
constexpr std::string_view kCommonUnary =
    "parameter_replication sharding frontend_attributes control-predecessors statistics "
    "result_accuracy metadata origin backend_config";

struct Entry {
  const AttributeRule* rule;
  bool required;
};
using Entries = std::vector<Entry>;

void add_entries(std::string_view keys, Entries& to) {
  while (!keys.empty()) {
    size_t end = std::min(keys.find(' '), keys.size());
    std::string_view key = keys.substr(0, end);
    keys.remove_prefix(std::min(end + 1, keys.size()));
    bool required = key.ends_with('!');
    if (required) key.remove_suffix(1);
    to.push_back({&*std::ranges::find(attribute_rules(), key, &AttributeRule::key), required});
  }
}

// Attributes of an op without the common ones, then with them.
struct OpEntries {
  Entries own, all;
};

const OpEntries& entries_of(Opcode opcode) {
  static const std::vector<OpEntries> table = [] {
    std::vector<OpEntries> made(op_count());
    for (size_t i = 0; i < made.size(); ++i) {
      const OpInfo& info = op_info(static_cast<Opcode>(i));
      add_entries(own_attributes(info.opcode), made[i].own);
      made[i].all = made[i].own;
      bool unary = info.op_class == OpClass::kElementwise && info.arity == 1 && info.price >= OpPrice::kDivide;
      add_entries(unary ? kCommonUnary : kCommon, made[i].all);
    }
    return made;
  }();
  return table[static_cast<size_t>(opcode)];
}

// Sugar: the wrapped op's own attributes, then those of async-start that are not `calls`.
Entries entries_of(const Instruction& instruction) {
  std::optional<Opcode> wrapped = wrapped_op(instruction);
  const OpEntries& outer = entries_of(instruction.opcode);
  if (!wrapped) return outer.all;
  Entries list;
  if (instruction.is(Opcode::kAsyncStart)) list = entries_of(*wrapped).own;
  for (const Entry& e : outer.all) {
    bool known = std::ranges::any_of(list, [&](const Entry& mine) { return mine.rule->name() == e.rule->name(); });
    if (!known && e.rule->key != "calls") list.push_back(e);
  }
  return list;
}

std::string shown_op(const Instruction& instruction) {
  std::optional<Opcode> wrapped = wrapped_op(instruction);
  return std::string(op_name(instruction.opcode)) + (wrapped ? " of " + std::string(op_name(*wrapped)) : "");
}

[[noreturn]] void fail_unknown(Cursor& in, size_t pos, std::string_view name, const Instruction& instruction,
                               const Entries& entries) {
  std::string allowed;
  for (const Entry& e : entries) {
    if (!allowed.empty()) allowed += ", ";
    allowed += e.rule->name();
  }
  in.fail(pos, "unknown-attribute", "unknown attribute '" + std::string(name) + "' of " + shown_op(instruction),
          "allowed: " + allowed);
}

const std::string* find_other(const Attributes& a, std::string_view name) {
  for (const auto& [key, text] : a.other) {
    if (key == name) return &text;
  }
  return nullptr;
}

}  // namespace

void read_attributes(Cursor& in, References& names, Instruction& to) {
  Entries sugar;
  if (wrapped_op(to)) sugar = entries_of(to);
  const Entries& entries = sugar.empty() ? entries_of(to.opcode).all : sugar;
  AttributeTarget target{in, names, to, to.attrs, {}};
  size_t operands_end = in.pos();
  uint64_t seen = 0;
  while (in.accept(',')) {
    in.skip();
    size_t start = in.pos();
    std::string_view name = in.identifier("the name of an attribute");
    in.expect('=', "after the name of an attribute");
    auto entry = std::ranges::find(entries, name, [](const Entry& e) { return e.rule->name(); });
    if (entry == entries.end()) fail_unknown(in, start, name, to, entries);
    uint64_t bit = uint64_t{1} << (entry - entries.begin());
    if (seen & bit) {
      in.fail(start, "duplicate-attribute", "attribute '" + std::string(name) + "' is given twice");
    }
    seen |= bit;
    target.name = name;
    entry->rule->read(target);
  }
  for (size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].required && !(seen >> i & 1)) {
      in.fail(operands_end, "missing-attribute", shown_op(to) + " needs " + std::string(entries[i].rule->name()) + "=");
    }
  }
  if (to.is(Opcode::kConditional)) {
    bool whole = !to.called.empty() && std::ranges::find(to.called, nullptr) == to.called.end() &&
                 (!has_pred_index(to) || to.called.size() == 2);
    if (!whole) {
      in.fail(operands_end, "missing-attribute",
              "conditional needs true_computation= and false_computation=, or branch_computations=");
    }
  }
}

std::vector<std::string_view> attribute_keys(const Instruction& instruction) {
  std::vector<std::string_view> keys;
  for (const Entry& e : entries_of(instruction)) keys.push_back(e.rule->key);
  return keys;
}

namespace {

void append_entries(const Instruction& instruction, bool own_only, std::string& out) {
  static const AttributeRule* const first_reference =
      &*std::ranges::find(attribute_rules(), std::string_view("to_apply"), &AttributeRule::key);
  Entries sugar;
  if (wrapped_op(instruction)) sugar = entries_of(instruction);
  const Entries& entries = sugar.empty() ? entries_of(instruction.opcode).all : sugar;
  for (const Entry& e : entries) {
    if (own_only && e.rule >= first_reference) continue;
    size_t before = out.size();
    out += ", ";
    out += e.rule->name();
    out += '=';
    bool printed;
    if (e.rule->print) {
      printed = e.rule->print(instruction, out);
    } else {
      const std::string* text = find_other(instruction.attrs, e.rule->name());
      if (text) out += *text;
      printed = text != nullptr;
    }
    if (!printed) out.resize(before);
  }
}

}  // namespace

void append_attributes(const Instruction& instruction, std::string& out) { append_entries(instruction, false, out); }

void append_own_attributes(const Instruction& instruction, std::string& out) { append_entries(instruction, true, out); }

}  // namespace hlojit
