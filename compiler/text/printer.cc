// Everything appends to one string; nothing is printed twice.
#include "compiler/text/printer.h"

#include "compiler/ir/async.h"
#include "compiler/text/attribute_forms.h"
#include "compiler/text/attributes.h"
#include "compiler/text/lexer.h"

namespace hlojit {
namespace {

// XLA marks every fifth element of long lists, which helps reading and parses as a comment.
void separate(size_t index, std::string& out) {
  if (index == 0) return;
  out += ", ";
  if (index % 5 == 0) out += "/*index=" + std::to_string(index) + "*/";
}

void append_shape(const Shape& shape, std::string& out) {
  if (!shape.is_tuple()) {
    out += shape.to_string();
    return;
  }
  out += '(';
  for (size_t i = 0; i < shape.elements.size(); ++i) {
    separate(i, out);
    append_shape(shape.elements[i], out);
  }
  out += ')';
}

void append_operation(const Instruction& i, std::string& out) {
  if (std::optional<Opcode> wrapped = wrapped_op(i)) {
    out += op_name(*wrapped);
    out += i.info().name.substr(std::string_view("async").size());
  } else {
    out += i.info().name;
  }
}

void append_instruction(const Instruction& i, const PrintOptions& options, std::string& out) {
  if (i.is_root()) out += "ROOT ";
  append_name(i.name, out);
  out += " = ";
  append_shape(i.shape, out);
  out += ' ';
  append_operation(i, out);
  out += '(';
  if (i.is(Opcode::kParameter)) {
    out += std::to_string(i.attrs.parameter_number);
  } else if (i.is(Opcode::kConstant) && i.literal) {
    append_literal(*i.literal, out);
  }
  for (size_t k = 0; k < i.operand_count(); ++k) {
    separate(k, out);
    if (options.operand_shapes) {
      append_shape(i.operand(k)->shape, out);
      out += ' ';
    }
    append_name(i.operand(k)->name, out);
  }
  out += ')';
  append_attributes(i, out);
}

void append_computation(const Computation& c, bool entry, const PrintOptions& options, std::string& out) {
  if (entry) out += "ENTRY ";
  append_name(c.name, out);
  out += " (";
  for (size_t i = 0; i < c.parameters().size(); ++i) {
    const Instruction* p = c.parameters()[i];
    separate(i, out);
    append_name(p->name, out);
    out += ": ";
    append_shape(p->shape, out);
  }
  out += ") -> ";
  if (c.root()) append_shape(c.root()->shape, out);
  out += " {\n";
  for (const auto& i : c.instructions()) {
    out += "  ";
    append_instruction(*i, options, out);
    out += '\n';
  }
  out += '}';
  if (!c.execution_thread.empty()) out += ", execution_thread=" + quote(c.execution_thread);
  out += '\n';
}

void append_header(const Module& module, std::string& out) {
  const ModuleConfig& config = module.config;
  out += "HloModule ";
  append_name(module.name, out);
  if (config.is_scheduled) out += ", is_scheduled=true";
  if (config.has_entry_layout) {
    out += ", entry_computation_layout={(";
    for (size_t i = 0; i < config.entry_parameters.size(); ++i) {
      separate(i, out);
      append_shape(config.entry_parameters[i], out);
    }
    out += ")->";
    append_shape(config.entry_result, out);
    out += '}';
  }
  if (!config.input_output_alias.empty()) {
    out += ", input_output_alias=" + aliases_to_string(config.input_output_alias);
  }
  if (!config.buffer_donor.empty()) {
    out += ", buffer_donor={";
    for (size_t i = 0; i < config.buffer_donor.size(); ++i) {
      const auto& [parameter, index] = config.buffer_donor[i];
      out += (i > 0 ? ", (" : "(") + std::to_string(parameter) + ", ";
      append_ints(index, out);
      out += ')';
    }
    out += '}';
  }
  if (config.replica_count != 1) out += ", replica_count=" + std::to_string(config.replica_count);
  if (config.num_partitions != 1) {
    out += ", num_partitions=" + std::to_string(config.num_partitions);
  }
  for (const auto& [name, text] : config.other) out += ", " + name + '=' + text;
  out += '\n';
}

}  // namespace

std::string to_string(const Module& module, const PrintOptions& options) {
  std::string out;
  append_header(module, out);
  for (const auto& c : module.computations()) {
    out += '\n';
    append_computation(*c, c.get() == module.entry(), options, out);
  }
  return out;
}

std::string to_string(const Computation& computation, const PrintOptions& options) {
  std::string out;
  bool entry = computation.parent() && computation.parent()->entry() == &computation;
  append_computation(computation, entry, options, out);
  return out;
}

std::string to_string(const Instruction& instruction, const PrintOptions& options) {
  std::string out;
  append_instruction(instruction, options, out);
  return out;
}

}  // namespace hlojit
