// See module_header.h.
#include "compiler/text/module_header.h"

#include <algorithm>
#include <span>

#include "compiler/text/attribute_forms.h"

namespace hlojit {
namespace {

int64_t device_count(Cursor& in) {
  in.skip();
  size_t start = in.pos();
  int64_t count = in.integer("a number of devices");
  if (count < 1) in.fail(start, "device-count", "the number of devices is at least 1");
  return count;
}

void entry_layout(Cursor& in, ModuleConfig& config) {
  in.expect('{', "before the entry layout");
  in.expect('(', "before the parameters' shapes");
  while (!in.accept(')')) {
    if (!config.entry_parameters.empty()) in.expect(',', "between the parameters' shapes");
    config.entry_parameters.push_back(in.shape());
  }
  in.expect("->", "before the result's shape");
  config.entry_result = in.shape();
  in.expect('}', "after the entry layout");
  config.has_entry_layout = true;
}

void buffer_donors(Cursor& in, ModuleConfig& config) {
  auto& donors = config.buffer_donor;
  in.expect('{', "before buffer donors");
  while (!in.accept('}')) {
    if (!donors.empty()) in.expect(',', "between buffer donors");
    in.expect('(', "before a buffer donor");
    int64_t parameter = in.integer("the number of a parameter");
    in.expect(',', "after the number of the parameter");
    donors.emplace_back(parameter, read_ints(in));
    in.expect(')', "after a buffer donor");
  }
}

// Tables of source positions, as optimised dumps carry them: rows of a number and a string or
// braces.
void stack_info(Cursor& in) {
  for (std::string_view table : {"FileNames", "FunctionNames", "FileLocations", "StackFrames"}) {
    if (!in.accept_word(table)) continue;
    while (in.peek() >= '0' && in.peek() <= '9') {
      in.integer("the number of a row");
      if (in.peek() == '"') {
        in.quoted();
      } else {
        in.balanced();
      }
    }
  }
}

void read_header_attributes(Cursor& in, ModuleConfig& config) {
  static constexpr std::string_view kTyped[] = {"is_scheduled",       "entry_computation_layout",
                                                "input_output_alias", "buffer_donor",
                                                "replica_count",      "num_partitions"};
  static constexpr std::string_view kText[] = {"alias_passthrough_params",
                                               "allow_spmd_sharding_propagation_to_parameters",
                                               "allow_spmd_sharding_propagation_to_output",
                                               "frontend_attributes",
                                               "origin_recovery_table",
                                               "debug_attributes"};
  std::vector<std::string_view> seen;
  while (in.accept(',')) {
    in.skip();
    size_t start = in.pos();
    std::string_view name = in.identifier("the name of a module attribute");
    in.expect('=', "after the name of an attribute");
    if (std::ranges::find(seen, name) != seen.end()) {
      in.fail(start, "duplicate-attribute", "attribute '" + std::string(name) + "' is given twice");
    }
    seen.push_back(name);
    if (name == "is_scheduled") {
      config.is_scheduled = in.boolean();
    } else if (name == "entry_computation_layout") {
      entry_layout(in, config);
    } else if (name == "input_output_alias") {
      config.input_output_alias = read_aliases(in);
    } else if (name == "buffer_donor") {
      buffer_donors(in, config);
    } else if (name == "replica_count") {
      config.replica_count = device_count(in);
    } else if (name == "num_partitions") {
      config.num_partitions = device_count(in);
    } else if (std::ranges::find(kText, name) != std::end(kText)) {
      bool braces = in.peek() == '{' || std::ranges::find(kText, name) - std::begin(kText) >= 3;
      std::string text = braces ? std::string(in.balanced()) : in.boolean() ? "true" : "false";
      config.other.emplace_back(name, std::move(text));
    } else {
      std::string allowed;
      for (auto list : {std::span<const std::string_view>(kTyped), std::span<const std::string_view>(kText)}) {
        for (std::string_view a : list) allowed += (allowed.empty() ? "" : ", ") + std::string(a);
      }
      in.fail(start, "unknown-attribute", "unknown attribute '" + std::string(name) + "' of a module",
              "allowed: " + allowed);
    }
  }
}

}  // namespace

void read_module_header(Cursor& in, Module& module) {
  module.name = in.name("the module's name");
  in.accept(':');
  read_header_attributes(in, module.config);
  stack_info(in);
}

}  // namespace hlojit
