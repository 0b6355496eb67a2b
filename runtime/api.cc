// The free functions of the public header: thin faces of the rooms behind them.
#include <chrono>

#include <fmt/format.h>

#include "codegen/target.h"
#include "compiler/program.h"
#include "compiler/proto/proto_parser.h"
#include "compiler/text/parser.h"
#include "compiler/text/printer.h"
#include "compiler/verify/verifier.h"
#include "hlojit/version.h"
#include "layout/index.h"
#include "runtime/dump.h"
#include "runtime/executable.h"
#include "runtime/float_mode.h"
#include "runtime/guards.h"
#include "runtime/pool.h"

namespace hlojit {
namespace {

// As a literal of the given shape, whose type and sizes must be the buffer's.
Literal to_literal(const Buffer& buffer, const Shape& shape) {
  Literal literal(shape);
  relayout(buffer.shape(), buffer.raw(), Shape::array(shape.type, shape.dims), literal.bytes().data());
  return literal;
}

Literal to_literal(const Buffer& buffer) {
  if (!buffer.shape().is_array()) throw Error(ErrorKind::kInput, "the buffer holds no array");
  return to_literal(buffer, Shape::array(buffer.shape().type, buffer.shape().dims));
}

// Takes the next leaves, in order, into a literal of the given shape.
Literal assemble(const Shape& shape, const std::vector<Buffer>& inputs, size_t& next) {
  if (shape.is_array()) return to_literal(inputs.at(next++));
  std::vector<Literal> elements;
  for (const Shape& e : shape.elements) elements.push_back(assemble(e, inputs, next));
  return shape.is_tuple() ? Literal::tuple(std::move(elements)) : Literal(shape);
}

void disassemble(const Literal& literal, const std::vector<Shape>& shapes, std::vector<Buffer>& out) {
  if (literal.shape().is_array()) {
    Shape dense = Shape::array(literal.shape().type, literal.shape().dims);
    Buffer plain = Buffer::copy_of(literal.bytes().data(), dense);
    Shape wanted = shapes.at(out.size());
    if (wanted.has_dynamic_dims()) {  // cut to its size
      wanted.dims = dense.dims;
      wanted.dynamic.clear();
    }
    out.push_back(wanted == dense ? plain : plain.to_layout(wanted));
    return;
  }
  for (const Literal& e : literal.elements()) disassemble(e, shapes, out);
}

// "NAME", the first of that name, or "COMPUTATION/NAME". Parameters, which fusions name after their operands, are
// passed over: there is nothing to compute in them.
const Instruction* find_instruction(const Module& module, std::string_view name) {
  size_t slash = name.find('/');
  std::string_view computation = slash == name.npos ? std::string_view() : name.substr(0, slash);
  if (slash != name.npos) name.remove_prefix(slash + 1);
  for (const auto& c : module.computations()) {
    if (!computation.empty() && c->name != computation) continue;
    const Instruction* i = c->find(name);
    if (i && !i->is(Opcode::kParameter)) return i;
  }
  return nullptr;
}

}  // namespace

int64_t count_entries();

ModulePtr parse(std::string_view text, const std::function<Buffer(const Shape& shape)>& elided) {
  FloatMode mode;
  if (constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF"; text.starts_with(kByteOrderMark)) {
    text.remove_prefix(kByteOrderMark.size());
  }
  if (is_hlo_proto(text)) return parse_module_proto(text);
  if (!elided) return parse_module(text);
  return parse_module(text, [&](const Shape& shape) {
    Buffer made = elided(shape);
    if (made.shape().type == shape.type && made.shape().dims == shape.dims) return to_literal(made, shape);
    throw Error(ErrorKind::kInput, fmt::format("values of {} were made for a constant of {}",
                                               made.shape().to_string(false), shape.to_string(false)));
  });
}
void verify(const ModulePtr& module) { check(program(module)); }
std::string to_text(const ModulePtr& module) {
  FloatMode mode;
  return to_string(program(module));
}
std::vector<Shape> parameter_leaves(const ModulePtr& module) { return entry_parameter_leaves(program(module)); }
std::vector<Shape> result_leaves(const ModulePtr& module) { return entry_result_leaves(program(module)); }

std::string literal_text(const Buffer& buffer) {
  FloatMode mode;
  return literal_to_string(to_literal(buffer));
}

std::vector<double> to_doubles(const Buffer& buffer) {
  FloatMode mode;
  Literal literal = to_literal(buffer);
  std::vector<double> values;
  for (int64_t i = 0; i < literal.shape().element_count(); ++i) {
    DType type = literal.shape().type;
    values.push_back(is_float(type) || is_complex(type) ? literal.as_double(i)
                                                        : static_cast<double>(literal.as_int(i)));
  }
  return values;
}

std::vector<Buffer> evaluate(const ModulePtr& module, const std::vector<Buffer>& inputs, const Options& options) {
  check(program(module));
  check_options(options);
  FloatMode mode;
  std::vector<Shape> expected = entry_parameter_leaves(*module);
  if (inputs.size() != expected.size()) {
    throw Error(ErrorKind::kInput,
                fmt::format("the program takes {} input leaves, {} were given", expected.size(), inputs.size()));
  }
  std::vector<Literal> arguments;
  size_t next = 0;
  for (const Instruction* p : module->entry()->parameters()) arguments.push_back(assemble(p->shape, inputs, next));
  EvalOptions eval;
  eval.scatter_oob_window = options.scatter_oob_window;
  std::vector<Buffer> out;
  disassemble(evaluate_program(*module, arguments, eval), entry_result_leaves(*module), out);
  return out;
}

std::string emit(const ModulePtr& module, Emit what, const Options& options, std::vector<PhaseTime>* times) {
  const Module& given = program(module);
  check_options(options);
  FloatMode mode;
  const codegen::Target& target = codegen::Target::get(options.isa);
  Lowered l = plan(given, options, target);
  dump_code(l, options, target);
  auto start = std::chrono::steady_clock::now();
  auto done = [&](std::string name, std::string text) {
    std::chrono::duration<double, std::milli> ms = std::chrono::steady_clock::now() - start;
    l.times.push_back({std::move(name), ms.count()});
    if (times) *times = std::move(l.times);
    return text;
  };
  if (what == Emit::kHlo) return done("print", to_string(*l.module));
  codegen::IrModule ir = emit_ir(l, options, target);
  if (what == Emit::kLlvm) return done("emit", ir.to_string());
  codegen::Effort effort = options.effort == 0 ? codegen::Effort::kQuick : codegen::Effort::kFull;
  return done("emit and jit", what == Emit::kAssembly ? compile_assembly(*ir.module, target, effort)
                                                      : compile_object(*ir.module, target, effort));
}

ModulePtr run_passes(const ModulePtr& module, const Options& options, const std::string& until,
                     const std::vector<std::string>& only) {
  check(program(module));
  check_options(options);
  FloatMode mode;
  std::unique_ptr<Module> copy = module->clone();
  set_devices(*copy, options);
  PipelineOptions p = pipeline_options(options, codegen::Target::get(options.isa));
  p.until = until;
  p.only = only;
  run_pipeline(*copy, p);
  return copy;
}

std::vector<std::string> pass_list() { return pass_names(); }
std::vector<std::string> needed_passes() { return needed_pass_names(); }

ModulePtr extract(const ModulePtr& module, std::string_view name) {
  const Instruction* found = find_instruction(program(module), name);
  if (!found) throw Error(ErrorKind::kInput, fmt::format("no instruction is named '{}'", name));
  std::unique_ptr<Module> copy = module->clone();
  // The instruction with its operands as parameters, in a module that keeps all computations it calls.
  Computation* entry = copy->add_computation("extracted");
  std::vector<Instruction*> operands;
  const Instruction* inside = find_instruction(*copy, name);
  for (size_t k = 0; k < inside->operand_count(); ++k) {
    operands.push_back(
        entry->add_parameter(static_cast<int64_t>(k), inside->operand(k)->shape, inside->operand(k)->name));
  }
  entry->set_root(entry->clone_instruction(*inside, operands, inside->name));
  copy->set_entry(entry);
  copy->name = inside->name;
  copy->config = ModuleConfig{};
  copy->remove_unreachable();
  copy->source = nullptr;
  return copy;
}

size_t release_idle_memory() { return pool_release(); }
Counters counters() { return {count_entries(), evaluation_count()}; }
std::string version() { return HLOJIT_VERSION; }

}  // namespace hlojit
