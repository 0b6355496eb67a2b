// The oracle first; then compiled code at every instruction set, thread counts on both sides of the
// core count, and entry layouts nobody asked for.
#include "tests/runner/cases.h"

#include <algorithm>
#include <span>
#include <string_view>

#include "compiler/program.h"
#include "tests/compiled.h"

namespace hlojit::test {
namespace {

void collect_leaves(const Literal& value, std::vector<Literal>& leaves) {
  if (value.shape().is_array()) leaves.push_back(value);
  for (const Literal& element : value.elements()) collect_leaves(element, leaves);
}

// Rebuilds a parameter's value from leaves, taking them in order.
Literal assemble(const Shape& shape, std::span<const Literal>& leaves) {
  if (shape.is_tuple()) {
    std::vector<Literal> elements;
    for (const Shape& element : shape.elements) elements.push_back(assemble(element, leaves));
    return Literal::tuple(std::move(elements));
  }
  if (!shape.is_array()) return Literal(shape);
  if (leaves.empty()) throw Error(ErrorKind::kInput, "the test gives too few INPUT leaves");
  Literal next = leaves.front();
  leaves = leaves.subspan(1);
  return next;
}

std::vector<Literal> run_oracle(const Module& module, std::span<const Literal> leaves, bool scatter_oob_window) {
  std::vector<Literal> arguments;
  for (const Instruction* parameter : module.entry()->parameters()) {
    arguments.push_back(assemble(parameter->shape, leaves));
  }
  if (!leaves.empty()) throw Error(ErrorKind::kInput, "the test gives too many INPUT leaves");
  const Literal result = evaluate_program(module, arguments, {.scatter_oob_window = scatter_oob_window});
  std::vector<Literal> results;
  collect_leaves(result, results);
  return results;
}

#ifdef HLOJIT_TEST_COMPILED
constexpr int kThreads[] = {1, 2, 3, 7};

// Entry layouts to try: as written, dimensions reversed, tiled.
enum class Layouts { kWritten, kReversed, kTiled };

const char* name_of(Layouts layouts) {
  constexpr const char* kNames[] = {"written", "permuted", "tiled"};
  return kNames[static_cast<int>(layouts)];
}

void force(Shape& shape, Layouts layouts) {
  for (Shape& element : shape.elements) force(element, layouts);
  if (!shape.is_array() || shape.dims.empty()) return;
  shape.layout = Layout::descending(shape.rank());
  if (layouts == Layouts::kReversed) {
    std::ranges::reverse(shape.layout.minor_to_major);
  } else if (shape.rank() == 1) {
    shape.layout.tiles = {Tile{{4}}};
  } else {
    shape.layout.tiles = {Tile{{2, 4}}, Tile{{2, 1}}};
  }
}

// Ops that may be given any result layout by themselves; others share theirs with tuples or
// literals, or what is called gives it.
bool takes_any_layout(const Instruction& instruction) {
  if (instruction.is(Opcode::kCustomCall)) return false;
  switch (instruction.info().op_class) {
    case OpClass::kControl:
    case OpClass::kEffect: return false;
    case OpClass::kSource: return instruction.is(Opcode::kIota);
    default: return instruction.shape.is_array();
  }
}

void force_producers(Instruction* value, Layouts layouts) {
  if (takes_any_layout(*value)) force(value->shape, layouts);
  if (!value->is(Opcode::kTuple)) return;
  for (Instruction* element : value->operands()) force_producers(element, layouts);
  for (size_t i = 0; i < value->operand_count(); ++i) value->shape.elements[i] = value->operand(i)->shape;
}

// Gives every entry parameter and result another layout, and the instructions that produce results.
// Others keep theirs: they are hints, except where a bitcast reads memory, and such modules are
// left alone.
bool force_entry_layouts(Module& module, Layouts layouts) {
  for (const auto& computation : module.computations()) {
    for (const auto& instruction : computation->instructions()) {
      if (instruction->is(Opcode::kBitcast)) return false;
    }
  }
  ModuleConfig& config = module.config;
  config.has_entry_layout = true;
  config.entry_parameters.clear();
  for (Instruction* parameter : module.entry()->parameters()) {
    force(parameter->shape, layouts);
    config.entry_parameters.push_back(parameter->shape);
  }
  force_producers(module.entry()->root(), layouts);
  config.entry_result = module.entry()->root()->shape;
  force(config.entry_result, layouts);
  return true;
}

std::string describe(const CompiledOptions& options, Layouts layouts) {
  return "compiled (" + options.isa + ", " + std::to_string(options.threads) + " threads, " + name_of(layouts) +
         " layouts): ";
}

bool identical(const std::vector<Literal>& a, const std::vector<Literal>& b) {
  return std::ranges::equal(a, b, [](const Literal& x, const Literal& y) { return x.identical(y); });
}

// True if --strict leaves nothing open: no float is accumulated in an order of the compiler's
// choice.
bool is_determined(const Module& module) {
  for (const auto& computation : module.computations()) {
    for (const auto& instruction : computation->instructions()) {
      const OpClass c = instruction->info().op_class;
      const bool open = c == OpClass::kReduces || c == OpClass::kContracts || c == OpClass::kLibrary ||
                        instruction->is(Opcode::kScatter);
      if (!open || instruction->is(Opcode::kRngBitGenerator)) continue;
      const DType type = instruction->shape.type;
      if (instruction->shape.is_tuple() || is_float(type) || is_complex(type)) return false;
    }
  }
  return true;
}

class CompiledCheck {
 public:
  CompiledCheck(const Module& module, const Cases& cases, const Case& test, const std::vector<Literal>& oracle,
                Failures& failures)
      : module_(module), cases_(cases), test_(test), oracle_(oracle), failures_(failures) {}

  // Programs of the benchmarks take each way of compiling once; small modules take them all.
  LayoutsRun run() {
    LayoutsRun ran;
    const std::vector<std::string> isas = compiled_isas();
    for (Layouts layouts : {Layouts::kWritten, Layouts::kReversed, Layouts::kTiled}) {
      const bool written = layouts == Layouts::kWritten;
      std::unique_ptr<Module> variant = module_.clone();
      if (!written && !force_entry_layouts(*variant, layouts)) continue;
      const size_t only = layouts == Layouts::kTiled ? isas.size() - 1 : isas.size() / 2;
      for (size_t i = 0; i < isas.size(); ++i) {
        if (cases_.thorough || written || i == only) {
          const bool sweep = written && i == only;
          if (!run_threads(*variant, isas[i], layouts, sweep)) return ran;
        }
        if (i == only) run_strict(*variant, isas[i], layouts);
      }
      ran.push_back(name_of(layouts));
    }
    return ran;
  }

 private:
  // Two threads, or the same bits at any number. False after an error: the variants would repeat it.
  bool run_threads(const Module& variant, const std::string& isa, Layouts layouts, bool sweep) {
    std::optional<std::vector<Literal>> first;
    for (int threads : kThreads) {
      if (!sweep && threads != 2) continue;
      const CompiledOptions options{isa, threads, false, cases_.scatter_oob_window};
      const std::string what = describe(options, layouts);
      try {
        std::vector<Literal> results = run_compiled(variant, test_.inputs, options);
        if (!first) {
          compare(results, what);
          first = std::move(results);
        } else if (!identical(*first, results)) {
          fail(what + "bits differ from those of one thread");
        }
      } catch (const Error& error) {
        fail(what + std::string(error_kind_name(error.kind())) + ": " + error.what());
        return false;
      }
    }
    return true;
  }

  // Without contraction and reassociation the oracle's bits are the only right ones.
  void run_strict(const Module& variant, const std::string& isa, Layouts layouts) {
    if (!is_determined(variant)) return;
    const CompiledOptions options{isa, 2, true, cases_.scatter_oob_window};
    const std::vector<Literal> results = run_compiled(variant, test_.inputs, options);
    for (size_t i = 0; i < oracle_.size() && i < results.size(); ++i) {
      const std::string d = difference(oracle_[i], results[i], {});
      if (!d.empty()) fail("strict, " + describe(options, layouts) + result_text(i) + d);
    }
  }

  // With EXPECT lines the claim is theirs; else the oracle's values hold, within what the freedom
  // of order and contraction leaves.
  void compare(const std::vector<Literal>& results, const std::string& what) {
    const auto& expected = test_.expected.empty() ? oracle_ : test_.expected;
    if (expected.size() != results.size()) return fail(what + "wrong number of results");
    for (size_t i = 0; i < expected.size(); ++i) {
      Tolerance tolerance = test_.tolerances.at(test_.expected.empty() ? 0 : i);
      if (test_.expected.empty() && tolerance.exact()) {
        tolerance = usual_tolerance(expected[i].shape().type);
      }
      const std::string d = difference(expected[i], results[i], tolerance);
      if (!d.empty()) fail(what + result_text(i) + d);
    }
  }

  static std::string result_text(size_t i) { return "result " + std::to_string(i) + " "; }
  void fail(const std::string& text) { failures_.push_back(at(cases_.path, test_.line) + text); }

  const Module& module_;
  const Cases& cases_;
  const Case& test_;
  const std::vector<Literal>& oracle_;
  Failures& failures_;
};

void check_refusal(const Module& module, const Cases& plan, const Case& test, Failures& failures) {
  try {
    run_compiled(module, test.inputs, {});
    failures.push_back(at(plan.path, plan.unsupported->line) + "it compiles: say so in the test");
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kUnsupported || !std::string_view(error.what()).contains(plan.unsupported->text)) {
      failures.push_back(at(plan.path, plan.unsupported->line) + "another error: " + error.what());
    }
  }
}
#endif

}  // namespace

std::vector<Shape> parameter_leaves(const Module& module) {
  std::vector<Shape> shapes;
  for (const Instruction* parameter : module.entry()->parameters()) {
    for (const Shape* leaf : leaves(parameter->shape)) shapes.push_back(*leaf);
  }
  return shapes;
}

LayoutsRun check_cases(const Module& module, const Cases& plan, Failures& failures) {
  LayoutsRun ran;
  for (const Case& test : plan.cases) {
    std::vector<Literal> oracle;
    try {
      oracle = run_oracle(module, test.inputs, plan.scatter_oob_window);
    } catch (const Error& error) {
      if (!plan.error || !std::string_view(error.what()).contains(plan.error->text)) throw;
      continue;
    }
    if (plan.error) {
      failures.push_back(at(plan.path, plan.error->line) + "runs, but should fail");
      continue;
    }
    if (!test.expected.empty() && oracle.size() != test.expected.size()) {
      failures.push_back(at(plan.path, test.line) + "oracle: " + std::to_string(oracle.size()) + " results for " +
                         std::to_string(test.expected.size()) + " EXPECT lines");
      continue;
    }
    for (size_t i = 0; i < test.expected.size(); ++i) {
      const std::string d = difference(test.expected[i], oracle[i], test.tolerances[i]);
      if (!d.empty()) {
        failures.push_back(at(plan.path, test.line) + "oracle: result " + std::to_string(i) + " " + d);
      }
    }
#ifdef HLOJIT_TEST_COMPILED
    if (plan.unsupported) {
      check_refusal(module, plan, test, failures);
    } else {
      ran = CompiledCheck(module, plan, test, oracle, failures).run();
    }
#endif
  }
  return ran;
}

}  // namespace hlojit::test
