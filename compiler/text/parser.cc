// Recursive descent over the cursor, one pass, one computation at a time.
//
// Names live in a map a computation while it is being read (views into the text), computation names
// in one for the module. Unnamed things (nested operands, inline bodies) get a generated name,
// which makes way if the text claims it later. Recursion is bounded by kMaxNesting: nested
// operands, inline bodies, and also call depth, so that passes may recurse over calls.
#include "compiler/text/parser.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "compiler/ir/async.h"
#include "compiler/text/attributes.h"
#include "compiler/text/literal_text.h"
#include "compiler/text/module_header.h"
#include "compiler/text/suggestion.h"
#include "compiler/verify/shape_inference.h"

namespace hlojit {
namespace {

// The state of a computation that is being read.
struct Body {
  Computation* computation = nullptr;
  std::unordered_map<std::string_view, Instruction*> names = {};
  std::unordered_map<std::string, Instruction*> generated = {};
  std::map<std::pair<Instruction*, int64_t>, Instruction*> elements = {};  // of tuples, as operands ask for them
  bool from_operands = false;  // single instruction: unknown operands become parameters
  int64_t parameters = 0;      // how many have
};

class Parser : public References {
 public:
  Parser(std::string_view text, Module& module, const ElidedValues& elided)
      : in_(text), module_(module), elided_(elided) {}

  void parse() {
    refuse_mlir();
    if (in_.accept_word("HloModule")) {
      read_module_header(in_, module_);
    } else if (at_single_instruction()) {
      single_instruction();
      return;
    }
    if (in_.done()) in_.fail(in_.pos(), "entry", "a module needs at least one computation");
    while (!in_.done()) computation();
    if (!module_.entry()) module_.set_entry(last_);
    if (module_.name.empty()) module_.name = "module_" + module_.entry()->name;
  }

  // What JAX prints unless it is asked for HLO.
  void refuse_mlir() {
    in_.skip();
    std::string_view text = in_.text().substr(in_.pos());
    for (std::string_view start : {"module @", "module attributes", "#loc", "func.func"}) {
      if (!text.starts_with(start)) continue;
      in_.fail(in_.pos(), "syntax", "this is MLIR, which is not read; HLO is",
               "in JAX: jitted.lower(...).as_text(dialect=\"hlo\")");
    }
  }

  Computation* read_computation() override {
    if (in_.peek() == '{') return inline_body();
    size_t start = in_.pos();
    std::string_view name = in_.name("a computation's name");
    auto found = computations_.find(name);
    if (found == computations_.end()) {
      in_.fail(start, "undefined-name", "computation '" + std::string(name) + "' is not defined above",
               "called computations come before their callers");
    }
    return found->second;
  }

  Instruction* read_instruction_name() override {
    in_.skip();
    size_t start = in_.pos();
    return find(in_.name("an instruction's name"), start);
  }

 private:
  // ---- computations -------------------------------------------------------------------------

  void computation() {
    in_.skip();
    size_t start = in_.pos();
    bool entry = in_.accept_word("ENTRY");
    if (entry && module_.entry()) in_.fail(start, "entry", "a second ENTRY computation");
    in_.skip();
    size_t name_pos = in_.pos();
    std::string_view name = in_.name("a computation");
    if (computations_.contains(name)) {
      in_.fail(name_pos, "duplicate-name", "a second computation of the name '" + std::string(name) + "'");
    }
    Computation* made = module_.add_computation(name);
    claim_name(*made, name);
    made->location = in_.location(name_pos);

    Shape result;
    size_t result_pos = 0;
    bool signature = in_.accept('(');
    if (signature) {
      for (bool first = true; !in_.accept(')'); first = false) {
        if (!first) in_.expect(',', "between parameters");
        signature_parameter();
      }
      in_.expect("->", "before the result's shape");
      in_.skip();
      result_pos = in_.pos();
      result = in_.shape();
    }
    instructions(*made);
    if (signature && !compatible(result, made->root()->shape)) {
      in_.fail(result_pos, "signature-result", "the result declared for '" + made->name + "' is not that of its root",
               "declared " + result.to_string() + "\nroot     " + made->root()->shape.to_string());
    }
    if (in_.accept(',')) {
      if (!in_.accept_word("execution_thread")) in_.fail_expected("execution_thread=");
      in_.expect('=', "after execution_thread");
      made->execution_thread = in_.string();
    }
    computations_.emplace(name, made);
    last_ = made;
    if (entry) module_.set_entry(made);
  }

  // `name: shape`, `name shape`, or `shape name` as hand-written text has it. Only read past: the parameters are
  // the instructions.
  void signature_parameter() {
    // Directly before ':' even a reserved word is a name.
    std::string_view word = in_.peek_identifier();
    if (in_.text().substr(in_.pos() + word.size()).starts_with(':') && !word.empty()) {
      in_.seek(in_.pos() + word.size());
    } else if (in_.at_shape()) {
      in_.shape();
      in_.name("a parameter's name");
      return;
    } else {
      in_.name("a parameter's name");
    }
    if (!in_.accept(':') && !in_.at_shape()) in_.fail_expected("':' after a parameter's name");
    in_.shape();
  }

  // If a generated name is in the way of one in the text, the two change places.
  void claim_name(Computation& owner, std::string_view name) {
    if (owner.name != name) std::swap(owner.name, generated_.at(std::string(name))->name);
  }

  Computation* inline_body() {
    deeper(in_.pos());
    Computation* made = module_.add_computation_before("region", body_->computation);
    generated_[made->name] = made;
    made->location = in_.location(in_.pos());
    Body* outer = body_;
    instructions(*made);
    body_ = outer;
    --depth_;
    return made;
  }

  void instructions(Computation& computation) {
    in_.expect('{', "before a computation's instructions");
    Body body{.computation = &computation};
    body_ = &body;
    while (!in_.accept('}')) {
      if (in_.done()) in_.fail_expected("'}' after a computation's instructions");
      instruction();
    }
    if (computation.instructions().empty()) {
      in_.fail(in_.pos() - 1, "root", "computation '" + computation.name + "' has no instruction");
    }
    finish(computation);
    body_ = nullptr;
  }

  void finish(Computation& computation) {
    if (!computation.root()) computation.set_root(computation.instructions().back().get());
    std::vector<bool> seen(
        std::ranges::count_if(computation.instructions(), [](const auto& i) { return i->is(Opcode::kParameter); }));
    for (const auto& i : computation.instructions()) {
      if (!i->is(Opcode::kParameter)) continue;
      size_t number = i->attrs.parameter_number;
      bool gap = number >= seen.size();
      if (gap || seen[number]) {
        throw Error(ErrorKind::kInvalid, i->location,
                    gap ? "parameter number " + std::to_string(number) + " leaves a gap: '" + computation.name +
                              "' has " + std::to_string(seen.size()) + " of them"
                        : "a second parameter of number " + std::to_string(number),
                    "parameter-number");
      }
      seen[number] = true;
    }
    computation.renumber_parameters();
    int depth = 0;
    for (const auto& i : computation.instructions()) {
      // Calls and fusions are dissolved; what stays is worked on by functions that call themselves.
      int level = i->is(Opcode::kCall) || i->is(Opcode::kFusion) ? 0 : 1;
      for (const Computation* called : i->called) {
        depth = std::max(depth, call_depth_[called] + level);
        if (depth > kMaxNesting) {
          throw Error(ErrorKind::kInvalid, i->location, "calls are nested too deeply", "nesting");
        }
      }
    }
    if (depth > 0) call_depth_[&computation] = depth;
  }

  // ---- instructions -------------------------------------------------------------------------

  void instruction() {
    in_.skip();
    size_t start = in_.pos();
    bool root = in_.accept_word("ROOT");
    if (root && body_->computation->root()) in_.fail(start, "root", "a second ROOT instruction");
    bool bare = in_.peek() != '%';
    size_t name_pos = in_.pos();
    std::string_view name = in_.name("an instruction or '}'");
    if (body_->names.contains(name)) {
      in_.fail(name_pos, "duplicate-name", "a second instruction of the name '" + std::string(name) + "'");
    }
    if (bare && in_.pos() < in_.text().size() && in_.text()[in_.pos()] == '=') {
      in_.fail(in_.pos(), "syntax", "a space is needed between an instruction's name and '='",
               "'" + std::string(name) + "=' reads as an attribute");
    }
    in_.expect('=', "after an instruction's name");
    Instruction* made = definition(name, name_pos, true);
    body_->names.emplace(name, made);
    if (root) body_->computation->set_root(made);
  }

  struct Op {
    Opcode opcode;
    std::optional<Opcode> wrapped;
  };

  // `[shape] opcode(operands)` and, if `attributes`, the attributes. An empty name is generated.
  Instruction* definition(std::string_view name, size_t name_pos, bool attributes) {
    Location location = in_.location(name_pos);  // before those of nested operands
    Shape shape;
    bool has_shape = in_.at_shape();
    size_t shape_pos = in_.pos();
    if (has_shape) shape = in_.shape();
    in_.skip();
    size_t op_pos = in_.pos();
    std::string_view word = in_.peek_identifier();
    Op op = opcode();
    if (!has_shape && (op.wrapped || !shape_may_be_omitted(op.opcode))) {
      in_.fail(shape_pos, "result-shape", std::string(op_name(op.opcode)) + " needs its result shape written out");
    }
    in_.expect('(', "before operands");
    int64_t number = 0;
    std::shared_ptr<const Literal> literal;
    std::vector<Instruction*> operands;
    if (op.opcode == Opcode::kParameter) {
      number = parameter_number();
    } else if (op.opcode == Opcode::kConstant) {
      literal = std::make_shared<const Literal>(read_literal(in_, shape, elided_));
    } else {
      operands = operand_list();
    }
    in_.expect(')', op.opcode == Opcode::kConstant ? "after a constant's value" : "after operands");
    // The start of a wrapped op takes that op's operands.
    bool starts = op.wrapped && op.opcode == Opcode::kAsyncStart;
    int arity = op_info(starts ? *op.wrapped : op.opcode).arity;
    if (arity >= 0 && operands.size() != static_cast<size_t>(arity)) {
      in_.fail(op_pos, "operand-count",
               std::string(word) + " takes " + std::to_string(arity) + (arity == 1 ? " operand" : " operands") +
                   ", not " + std::to_string(operands.size()));
    }
    Instruction* made = add(op.opcode, std::move(operands), name);
    made->location = location;
    made->literal = std::move(literal);
    made->attrs.parameter_number = number;
    if (op.wrapped) made->attrs.other.emplace_back(kWrappedOp, op_name(*op.wrapped));
    if (attributes) read_attributes(in_, *this, *made);
    normalise(*made);
    made->shape = has_shape ? std::move(shape) : inferred_shape(*made, op_pos);
    return made;
  }

  Op opcode() {
    size_t start = in_.pos();
    std::string_view word = in_.identifier("a shape or an opcode");
    if (std::optional<Opcode> known = op_from_name(word)) return {*known, {}};
    for (auto [suffix, async] :
         {std::pair{"-start", Opcode::kAsyncStart}, {"-update", Opcode::kAsyncUpdate}, {"-done", Opcode::kAsyncDone}}) {
      std::string_view ending = suffix;
      if (!word.ends_with(ending)) continue;
      word.remove_suffix(ending.size());
      if (std::optional<Opcode> wrapped = op_from_name(word)) return {async, wrapped};
      in_.seek(start);
      word = in_.identifier("an opcode");
      break;
    }
    constexpr size_t kShown = 60;
    if (word.size() > kShown)
      in_.fail(start, "unknown-opcode", "unknown opcode '" + std::string(word.substr(0, kShown)) + "...'");
    in_.fail(start, "unknown-opcode", "unknown opcode '" + std::string(word) + "'", suggest_opcode(word));
  }

  int64_t parameter_number() {
    in_.skip();
    size_t start = in_.pos();
    int64_t number = in_.integer("a parameter's number");
    if (number < 0) in_.fail(start, "parameter-number", "a parameter's number is not negative");
    return number;
  }

  std::vector<Instruction*> operand_list() {
    std::vector<Instruction*> operands;
    while (true) {
      bool comma = false;  // XLA reads over superfluous ones
      while (in_.accept(',')) comma = true;
      if (in_.peek() == ')') return operands;
      if (!operands.empty() && !comma) in_.fail_expected("',' or ')' after an operand");
      operands.push_back(operand());
    }
  }

  Instruction* operand() {
    in_.skip();
    size_t start = in_.pos();
    Shape shape;
    bool has_shape = in_.at_shape();
    if (has_shape) shape = in_.shape();
    std::string_view word = in_.peek_identifier();
    if (!word.empty()) {
      size_t word_pos = in_.pos();
      in_.seek(word_pos + word.size());
      bool nested = in_.peek() == '(';
      in_.seek(nested ? start : word_pos);
      if (nested) {
        deeper(start);
        Instruction* made = definition({}, start, false);
        --depth_;
        return made;
      }
    }
    char next = in_.peek();
    if (body_->from_operands && has_shape && (next == ',' || next == ')')) {
      return new_parameter({}, std::move(shape), start);
    }
    size_t name_pos = in_.pos();
    std::string_view name = in_.name("an operand");
    if (body_->from_operands && has_shape && !body_->names.contains(name)) {
      return new_parameter(name, std::move(shape), start);
    }
    Instruction* found = find(name, name_pos);
    while (in_.accept('#')) found = element(found, in_.pos());
    if (has_shape && !compatible(shape, found->shape)) {
      in_.fail(start, "operand-shape",
               "the shape given for operand '" + std::string(name) + "' is not that of its definition",
               "here    " + shape.to_string() + "\ndefined " + found->shape.to_string());
    }
    return found;
  }

  Instruction* find(std::string_view name, size_t pos) {
    auto found = body_->names.find(name);
    if (found == body_->names.end()) {
      in_.fail(pos, "undefined-name", "'" + std::string(name) + "' is not defined above",
               "operands come before their users, in the same computation");
    }
    return found->second;
  }

  // XLA's short form of get-tuple-element: `%t#1#0` is element 0 of element 1 of t.
  Instruction* element(Instruction* tuple, size_t pos) {
    const int64_t index = in_.integer("the number of a tuple's element");
    const bool is_there = tuple->shape.is_tuple() && index >= 0 && index < std::ssize(tuple->shape.elements);
    if (!is_there) {
      in_.fail(
          pos, "tuple-index",
          tuple->name + " is " + tuple->shape.to_string(false) + ", which has no element " + std::to_string(index));
    }
    Instruction*& made = body_->elements[{tuple, index}];
    if (!made) {
      made = add(Opcode::kGetTupleElement, {tuple}, {});
      made->attrs.tuple_index = index;
      made->shape = tuple->shape.elements[static_cast<size_t>(index)];
      made->location = in_.location(pos);
    }
    return made;
  }

  Instruction* add(Opcode opcode, std::vector<Instruction*> operands, std::string_view name) {
    Instruction* made = body_->computation->add(opcode, Shape{}, std::move(operands), name);
    if (name.empty()) {
      body_->generated[made->name] = made;
    } else if (made->name != name) {
      auto holder = body_->generated.extract(std::string(name));
      std::swap(made->name, holder.mapped()->name);
      body_->generated[holder.mapped()->name] = holder.mapped();
    }
    return made;
  }

  void normalise(Instruction& i) {
    if (i.is(Opcode::kCompare) && i.attrs.compare_type == default_compare_type(i.operand(0)->shape.type)) {
      i.attrs.compare_type = CompareType::kDefault;
    }
  }

  Shape inferred_shape(const Instruction& i, size_t pos) {
    std::vector<const Shape*> shapes;
    for (const Instruction* o : i.operands()) {
      check_shape(o->shape, o->location);
      shapes.push_back(&o->shape);
    }
    try {
      Shape shape = infer_shape(i.opcode, shapes, i.attrs, i.called);
      if (shape.type != DType::kInvalid) return shape;
    } catch (const Error& error) {
      std::vector<Diagnostic> located = error.diagnostics();
      for (Diagnostic& d : located) {
        if (!d.location.known()) d.location = in_.location(pos);
      }
      throw Error(error.kind(), std::move(located));
    }
    in_.fail(pos, "result-shape", std::string(op_name(i.opcode)) + " needs its result shape written out");
  }

  void deeper(size_t pos) {
    if (++depth_ > kMaxNesting) in_.fail(pos, "nesting", "operands and bodies are nested too deeply");
  }

  // ---- single instructions ------------------------------------------------------------------

  // A computation starts with ENTRY or with a name before `{` or `(`; anything else without a
  // header is an instruction: `ROOT`, a name before `=`, or a shape.
  bool at_single_instruction() {
    size_t start = in_.pos();
    if (in_.at_shape()) return true;
    if (in_.peek_identifier() == "ENTRY" || !in_.at_name()) return false;
    if (in_.accept_word("ROOT")) {
      in_.seek(start);
      return true;
    }
    in_.name("a computation or an instruction");
    bool instruction = in_.peek() == '=';
    in_.seek(start);
    return instruction;
  }

  void single_instruction() {
    Computation* entry = module_.add_computation("entry");
    Body body{.computation = entry, .from_operands = true};
    body_ = &body;
    entry->location = in_.location(in_.pos());
    if (in_.at_shape()) {
      entry->set_root(definition({}, in_.pos(), true));
    } else {
      instruction();
    }
    if (!in_.done()) in_.fail_expected("the end of the text after a single instruction");
    entry->set_root(entry->instructions().back().get());
    finish(*entry);
    module_.set_entry(entry);
    module_.name = "module_entry";
  }

  Instruction* new_parameter(std::string_view name, Shape shape, size_t pos) {
    Instruction* made = add(Opcode::kParameter, {}, name);
    made->attrs.parameter_number = body_->parameters++;
    made->shape = std::move(shape);
    made->location = in_.location(pos);
    if (!name.empty()) body_->names.emplace(name, made);
    return made;
  }

  Cursor in_;
  Module& module_;
  const ElidedValues& elided_;
  std::unordered_map<std::string_view, Computation*> computations_;
  std::unordered_map<std::string, Computation*> generated_;
  std::unordered_map<const Computation*, int> call_depth_;
  Body* body_ = nullptr;
  Computation* last_ = nullptr;  // the last one that stands in the text
  int depth_ = 0;
};

}  // namespace

std::unique_ptr<Module> parse_module(std::string_view text, const ElidedValues& elided) {
  auto module = std::make_unique<Module>("");
  module->source = std::make_shared<const std::string>(text);
  Parser(*module->source, *module, elided).parse();
  return module;
}

}  // namespace hlojit
