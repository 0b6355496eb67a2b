// One pass in the proto's order, as with text: operands before users, callees before callers. Ids take
// the place of names; each instruction's attributes go through the rules for text (attributes.h).
#include "compiler/proto/proto_parser.h"

#include <algorithm>
#include <unordered_map>

#include "compiler/proto/annotations.h"
#include "compiler/proto/attributes.h"
#include "compiler/proto/values.h"
#include "compiler/text/attribute_forms.h"
#include "compiler/text/attributes.h"
#include "compiler/text/lexer.h"

namespace hlojit {
namespace {

using proto::fail;
using proto::Field;
using proto::Message;
using proto::Wire;

// A name that text could hold: other characters become '_'.
std::string clean_name(std::string_view name) {
  std::string clean(name);
  for (char& c : clean) {
    if (!is_identifier_char(c)) c = '_';
  }
  if (!clean.empty() && !is_identifier_start(clean[0])) clean.insert(0, "_");
  return clean;
}

// True for a message with computations that hold instructions that have an opcode.
bool is_module(std::string_view bytes) {
  Message m(bytes);
  if (!m.well_formed()) return false;
  bool found = false, wrong = false;
  auto text = [](const Field& f) { return f.wire == Wire::kBytes; };
  m.each([&](const Field& f) {
    if (f.number != 3) return;
    Message computation(f.bytes);
    if (!text(f) || !computation.well_formed()) {
      wrong = true;
      return;
    }
    computation.each([&](const Field& g) {
      if (g.number != 2) return;
      Message instruction(g.bytes);
      bool good = text(g) && instruction.well_formed();
      if (good) instruction.each([&](const Field& h) { good &= h.number != 2 || text(h); });
      found |= good;
      wrong |= !good;
    });
  });
  return found && !wrong;
}

// The bytes of the HloModuleProto: an HloProto has it as field 1, an HloSnapshot that as field 1.
std::string_view module_bytes(std::string_view bytes) {
  std::string_view inner = bytes;
  for (int depth = 0; depth < 2; ++depth) {
    Message m(inner);
    if (!m.well_formed()) break;
    std::string_view first;
    m.each([&](const Field& f) {
      if (f.number == 1 && f.wire == Wire::kBytes) first = f.bytes;
    });
    if (is_module(first)) return first;
    inner = first;
  }
  return bytes;
}

class Importer : public References {
 public:
  Importer(const Message& proto, Module& module) : proto_(proto), module_(module) {}

  void run() {
    module_.name = clean_name(proto_.text(1));
    for (const Message& c : proto_.messages(3)) computation(c);
    if (computations_.empty()) fail("the module has no computation");
    set_entry();
    if (module_.name.empty()) module_.name = "module_" + module_.entry()->name;
    config();
    schedule();
  }

  Computation* read_computation() override {
    return find_computation(called_ids_.at(index_of('k', called_ids_.size())));
  }
  Instruction* read_instruction_name() override {
    return find_instruction(predecessor_ids_.at(index_of('p', predecessor_ids_.size())));
  }

 private:
  // ---- names in attribute text --------------------------------------------------------------

  // `k3` or `p3` at the cursor.
  size_t index_of(char letter, size_t count) {
    std::string_view name = in_->name("a reference");
    size_t index = 0;
    for (char c : name.substr(1)) index = std::min<size_t>(index * 10 + static_cast<size_t>(c - '0'), count);
    if (name[0] != letter || index >= count) fail("a reference is not of this proto");
    return index;
  }

  Computation* find_computation(int64_t id) {
    auto found = computations_.find(id);
    if (found == computations_.end()) {
      fail("computation " + std::to_string(id) + " is not defined above; callees come before callers");
    }
    return found->second;
  }

  // Ids count within the module, or the upper half is the computation's and the lower counts in it.
  Instruction* find_instruction(int64_t id) {
    auto found = instructions_.find(id);
    if (found == instructions_.end()) found = instructions_.find(id & 0xffffffff);
    if (found == instructions_.end()) {
      fail("instruction " + std::to_string(id) + " is not defined above in this computation");
    }
    return found->second;
  }

  // ---- module -------------------------------------------------------------------------------

  void set_entry() {
    std::string name = clean_name(proto_.text(2));
    for (const auto& c : module_.computations()) {
      if (!proto_.has(6) && c->name == name) module_.set_entry(c.get());
    }
    if (!module_.entry()) module_.set_entry(find_computation(proto_.integer(6)));
  }

  void config() {
    ModuleConfig& config = module_.config;
    if (proto_.has(4)) {
      Message shapes = proto_.message(4);
      for (const Message& p : shapes.messages(1)) config.entry_parameters.push_back(proto::read_shape(p));
      config.entry_result = proto::read_shape(shapes.message(2));
      config.has_entry_layout = true;
    }
    for (const Message& a : proto_.message(8).messages(1)) {
      Alias alias{a.integers(1), a.integer(2), a.integers(3), std::nullopt};
      if (int64_t kind = a.integer(4)) alias.must = kind == 2;
      config.input_output_alias.push_back(std::move(alias));
    }
    for (const Message& d : proto_.message(18).messages(1)) {
      config.buffer_donor.emplace_back(d.integer(1), d.integers(2));
    }
    std::string attributes;  // given twice they count together, as parts of a message do
    for (const Message& part : proto_.messages(19)) attributes += part.bytes();
    if (!attributes.empty()) {
      std::string text;
      proto::append_frontend_attributes(Message(attributes), text);
      Cursor in(text);
      if (in.balanced().size() != text.size()) fail("frontend attributes have unbalanced braces");
      config.other.emplace_back("frontend_attributes", std::move(text));
    }
  }

  void schedule() {
    for (const Message& entry : proto_.message(7).messages(1)) {
      module_.config.is_scheduled = true;
      Computation& c = *find_computation(entry.integer(1));
      const auto& ids = instruction_ids_.at(&c);
      std::vector<Instruction*> order;
      std::unordered_map<const Instruction*, size_t> rank;
      for (int64_t id : entry.message(2).integers(1)) {
        auto found = ids.find(id);
        if (found == ids.end()) found = ids.find(id & 0xffffffff);
        if (found == ids.end()) fail("the schedule of '" + c.name + "' has an unknown instruction");
        order.push_back(found->second);
        rank.emplace(found->second, rank.size());
      }
      bool whole = order.size() == c.instructions().size() && rank.size() == order.size();
      auto first = [&](const Instruction* a, const Instruction* b) { return rank.at(a) < rank.at(b); };
      for (const Instruction* i : whole ? order : std::vector<Instruction*>()) {
        for (const Instruction* o : i->operands()) whole &= first(o, i);
        for (const Instruction* p : i->control_predecessors) whole &= first(p, i);
      }
      if (!whole) fail("the schedule of '" + c.name + "' is not an order of its instructions");
      c.set_order(order);
    }
  }

  // ---- computations -------------------------------------------------------------------------

  void computation(const Message& c) {
    int64_t id = c.integer(5);
    std::string name = clean_name(c.text(1));
    if (computations_.contains(id)) fail("a second computation has the id " + std::to_string(id));
    computation_ = module_.add_computation(name.empty() ? "computation" : name);
    if (std::string_view thread = c.text(8); thread != "main") computation_->execution_thread = thread;
    instructions_.clear();
    call_depth_here_ = 0;
    for (const Message& i : c.messages(2)) named_instruction(i);
    if (instructions_.empty()) fail("computation '" + computation_->name + "' has no instruction");
    computation_->set_root(find_instruction(c.integer(6)));
    number_parameters();
    computations_.emplace(id, computation_);
    call_depth_[computation_] = call_depth_here_;
    instruction_ids_[computation_] = std::move(instructions_);
  }

  void number_parameters() {
    std::vector<bool> seen(
        std::ranges::count_if(computation_->instructions(), [](const auto& i) { return i->is(Opcode::kParameter); }));
    for (const auto& i : computation_->instructions()) {
      if (!i->is(Opcode::kParameter)) continue;
      auto number = static_cast<size_t>(i->attrs.parameter_number);
      if (number >= seen.size() || seen[number]) {
        throw named(*i,
                    number >= seen.size() ? "its parameter number leaves a gap" : "a second parameter of its number");
      }
      seen[number] = true;
    }
    computation_->renumber_parameters();
  }

  // ---- instructions -------------------------------------------------------------------------

  static Error named(const Instruction& i, std::string message) {
    return Error(ErrorKind::kInvalid, {{.instruction = i.name, .rule = "proto", .message = std::move(message)}});
  }

  // Errors in here get the instruction's name; places in text that nobody has seen are dropped.
  void named_instruction(const Message& m) {
    try {
      instruction(m);
    } catch (const Error& error) {
      std::vector<Diagnostic> diagnostics = error.diagnostics();
      for (Diagnostic& d : diagnostics) {
        d.location = {};
        if (d.instruction.empty()) d.instruction = clean_name(Message(m).text(1));
      }
      throw Error(error.kind(), std::move(diagnostics));
    }
  }

  void instruction(const Message& m) {
    std::optional<Opcode> opcode = op_from_name(m.text(2));
    if (!opcode) fail("unknown opcode '" + std::string(m.text(2).substr(0, 60)) + "'");
    if (!m.has(3)) fail("the instruction has no shape");
    Shape shape = proto::read_shape(m.message(3));
    std::vector<Instruction*> operands;
    for (int64_t id : m.integers(36)) operands.push_back(find_instruction(id));
    int arity = op_info(*opcode).arity;
    if (arity >= 0 && operands.size() != static_cast<size_t>(arity)) {
      fail(std::string(op_name(*opcode)) + " takes " + std::to_string(arity) + (arity == 1 ? " operand" : " operands") +
           ", not " + std::to_string(operands.size()));
    }
    if (instructions_.contains(m.integer(35))) {
      fail("a second instruction has the id " + std::to_string(m.integer(35)));
    }
    std::shared_ptr<const Literal> literal;
    if (m.has(8)) {
      // A custom call's literal has a shape of its own.
      Message value = m.message(8);
      Shape of_value = *opcode == Opcode::kConstant ? shape : proto::read_shape(value.message(1));
      literal = std::make_shared<const Literal>(proto::read_literal(value, of_value));
    } else if (*opcode == Opcode::kConstant) {
      fail("the constant has no value");
    }
    int64_t number = m.integer(9);
    if (number < 0) fail("a parameter's number is not negative");
    Instruction* made = computation_->add(*opcode, std::move(shape), std::move(operands), clean_name(m.text(1)));
    if (*opcode == Opcode::kConstant || *opcode == Opcode::kCustomCall) made->literal = std::move(literal);
    if (*opcode == Opcode::kParameter) made->attrs.parameter_number = number;
    attributes(m, *made);
    instructions_.emplace(m.integer(35), made);
  }

  void attributes(const Message& m, Instruction& to) {
    called_ids_ = m.integers(38);
    predecessor_ids_ = m.integers(37);
    std::string text = proto::attribute_text(m, to);
    Cursor in(text);
    in_ = &in;
    read_attributes(in, *this, to);
    in_ = nullptr;
    if (!in.done()) fail("an attribute has more than a value");
    if (to.is(Opcode::kCompare) && to.attrs.compare_type == default_compare_type(to.operand(0)->shape.type)) {
      to.attrs.compare_type = CompareType::kDefault;
    }
    int level = to.is(Opcode::kCall) || to.is(Opcode::kFusion) ? 0 : 1;  // as in text
    for (const Computation* c : to.called) call_depth_here_ = std::max(call_depth_here_, call_depth_.at(c) + level);
    if (call_depth_here_ > kMaxNesting) fail("calls are nested too deeply");
  }

  const Message& proto_;
  Module& module_;
  std::unordered_map<int64_t, Computation*> computations_;
  using Ids = std::unordered_map<int64_t, Instruction*>;
  std::unordered_map<const Computation*, Ids> instruction_ids_;
  std::unordered_map<const Computation*, int> call_depth_;
  // Of the computation and the instruction being read.
  Computation* computation_ = nullptr;
  Ids instructions_;
  int call_depth_here_ = 0;
  std::vector<int64_t> called_ids_, predecessor_ids_;
  Cursor* in_ = nullptr;
};

}  // namespace

// Text has no control characters but white space. A proto starts with the key of a field, which is
// one, or is the line end that is the key of field 1 and is followed by others soon.
bool is_hlo_proto(std::string_view bytes) {
  auto control = [](char c) {
    auto code = static_cast<unsigned char>(c);
    return code < ' ' && !(code >= '\t' && code <= '\r');
  };
  if (bytes.empty()) return false;
  if (control(bytes[0])) return true;
  return bytes[0] == '\n' && std::ranges::any_of(bytes.substr(0, 4096), control);
}

std::unique_ptr<Module> parse_module_proto(std::string_view bytes) {
  try {
    Message(bytes).each([](const Field&) {});
  } catch (const Error& e) {
    throw Error(ErrorKind::kInvalid, {{.rule = "proto",
                                       .message = e.diagnostics()[0].message,
                                       .details = "this is neither HLO text nor a whole HloModuleProto"}});
  }
  auto module = std::make_unique<Module>("");
  Message proto(module_bytes(bytes));
  Importer(proto, *module).run();
  return module;
}

}  // namespace hlojit
