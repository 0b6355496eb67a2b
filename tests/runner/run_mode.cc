// `run`: every case on the oracle, and on compiled code at several instruction sets, thread counts
// and entry layouts.
#include <algorithm>
#include <charconv>
#include <map>
#include <stdexcept>

#include "compiler/eval/evaluator.h"
#include "compiler/text/parser.h"
#include "compiler/verify/verifier.h"
#include "tests/compiled.h"
#include "tests/runner/compare.h"
#include "tests/runner/test_file.h"

namespace hlojit::test {
namespace {

struct Case {
  int line = 0;
  std::vector<Literal> inputs, expected;
};

struct Plan {
  std::vector<Case> cases;
  Tolerance tolerance;
  bool scatter_oob_window = false;
  std::optional<Claim> unsupported, error;
};

// `SHAPE LITERAL`; the shape ends at the first blank, so that the literal's brace is no layout.
Literal parse_value(const TestFile& file, const Claim& claim) {
  try {
    const std::string_view text = claim.text;
    const size_t end = std::min(text.find(' '), text.size());
    return parse_literal(Shape::parse(text.substr(0, end)), text.substr(end));
  } catch (const Error& error) {
    throw std::runtime_error(at(file, claim.line) + error.what());
  }
}

double parse_number(const TestFile& file, const Claim& claim) {
  double value = 0;
  const char* end = claim.text.data() + claim.text.size();
  if (std::from_chars(claim.text.data(), end, value).ptr != end) {
    throw std::runtime_error(at(file, claim.line) + "not a number: " + claim.text);
  }
  return value;
}

Plan plan_of(const TestFile& file, const Section& section, const std::vector<Shape>& leaf_shapes) {
  Plan plan;
  Case current{section.first_line, {}, {}};
  auto fill = [&](uint64_t seed) {
    while (current.inputs.size() < leaf_shapes.size()) {
      const size_t leaf = current.inputs.size();
      current.inputs.push_back(random_leaf(leaf_shapes[leaf], seed, leaf));
    }
  };
  auto finish = [&] {
    if (current.inputs.empty()) fill(1);
    plan.cases.push_back(std::move(current));
  };
  for (const Claim& claim : section.claims) {
    if (claim.word == "INPUT") {
      if (!current.expected.empty()) {
        finish();
        current = {claim.line, {}, {}};
      }
      constexpr std::string_view kRandom = "random ";
      if (claim.text.starts_with(kRandom)) {
        fill(std::stoull(claim.text.substr(kRandom.size())));
      } else {
        current.inputs.push_back(parse_value(file, claim));
      }
    } else if (claim.word == "EXPECT") {
      if (current.expected.empty()) current.line = claim.line;
      current.expected.push_back(parse_value(file, claim));
    } else if (claim.word == "ULP") {
      plan.tolerance.ulp = parse_number(file, claim);
    } else if (claim.word == "TOL") {
      plan.tolerance.relative = parse_number(file, claim);
    } else if (claim.word == "OPTION" && claim.text == "scatter-oob-window") {
      plan.scatter_oob_window = true;
    } else if (claim.word == "UNSUPPORTED") {
      plan.unsupported = claim;
    } else if (claim.word == "ERROR") {
      plan.error = claim;
    } else {
      throw std::runtime_error(at(file, claim.line) + claim.word + " means nothing in mode run");
    }
  }
  finish();
  return plan;
}

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

std::vector<Literal> run_oracle(const Module& module, std::span<const Literal> leaves,
                                bool scatter_oob_window) {
  std::vector<Literal> arguments;
  for (const Instruction* parameter : module.entry()->parameters()) {
    arguments.push_back(assemble(parameter->shape, leaves));
  }
  if (!leaves.empty()) throw Error(ErrorKind::kInput, "the test gives too many INPUT leaves");
  const Literal result =
      evaluate(*module.entry(), arguments, {.scatter_oob_window = scatter_oob_window});
  std::vector<Literal> results;
  collect_leaves(result, results);
  return results;
}

#ifdef HLOJIT_TEST_COMPILED
constexpr int kThreads[] = {1, 2, 3, 7};

// Entry layouts to try: as written, dimensions reversed, tiled.
enum class Layouts { kWritten, kReversed, kTiled };

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

// Gives every entry parameter and result another layout. Instructions inside keep theirs: they are
// hints, except where a bitcast reads memory, and such modules are left alone.
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
  config.entry_result = module.entry()->root()->shape;
  force(config.entry_result, layouts);
  return true;
}

std::string describe(const CompiledOptions& options, Layouts layouts) {
  constexpr const char* kNames[] = {"written", "reversed", "tiled"};
  return "compiled (" + options.isa + ", " + std::to_string(options.threads) + " threads, " +
         kNames[static_cast<int>(layouts)] + " layouts): ";
}

bool identical(const std::vector<Literal>& a, const std::vector<Literal>& b) {
  return std::ranges::equal(a, b, [](const Literal& x, const Literal& y) { return x.identical(y); });
}

// With EXPECT lines the claim is theirs; else the oracle's values hold, within what the freedom of
// order and contraction leaves.
void check_compiled(const TestFile& file, const Module& module, const Plan& plan, const Case& test,
                    const std::vector<Literal>& oracle, Failures& failures) {
  auto compare = [&](const std::vector<Literal>& results, const std::string& what) {
    const auto& expected = test.expected.empty() ? oracle : test.expected;
    if (expected.size() != results.size()) {
      failures.push_back(at(file, test.line) + what + "wrong number of results");
      return;
    }
    for (size_t i = 0; i < expected.size(); ++i) {
      const bool usual = test.expected.empty() && plan.tolerance.exact();
      const std::string d =
          difference(expected[i], results[i],
                     usual ? usual_tolerance(expected[i].shape().type) : plan.tolerance);
      if (!d.empty()) failures.push_back(at(file, test.line) + what + "result " + std::to_string(i) + " " + d);
    }
  };
  for (Layouts layouts : {Layouts::kWritten, Layouts::kReversed, Layouts::kTiled}) {
    std::unique_ptr<Module> variant = module.clone();
    if (layouts != Layouts::kWritten && !force_entry_layouts(*variant, layouts)) continue;
    for (const std::string& isa : compiled_isas()) {
      CompiledOptions options{isa, 1, false, plan.scatter_oob_window};
      std::optional<std::vector<Literal>> first;
      for (int threads : kThreads) {
        if (layouts != Layouts::kWritten && threads > 2) continue;
        options.threads = threads;
        const std::string what = describe(options, layouts);
        try {
          std::vector<Literal> results = run_compiled(*variant, test.inputs, options);
          if (first && !identical(*first, results)) {
            failures.push_back(at(file, test.line) + what + "bits differ from those of one thread");
          }
          if (first) continue;
          compare(results, what);
          first = std::move(results);
        } catch (const Error& error) {
          failures.push_back(at(file, test.line) + what + std::string(error_kind_name(error.kind())) + ": " + error.what());
          return;
        }
      }
    }
  }
}

void check_refusal(const TestFile& file, const Module& module, const Plan& plan, const Case& test,
                   Failures& failures) {
  try {
    run_compiled(module, test.inputs, {});
    failures.push_back(at(file, plan.unsupported->line) + "it compiles: say so in the test");
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kUnsupported ||
        !std::string_view(error.what()).contains(plan.unsupported->text)) {
      failures.push_back(at(file, plan.unsupported->line) + "another error: " + error.what());
    }
  }
}
#endif

}  // namespace

void check_run(const TestFile& file, const Section& section, Failures& failures) {
  std::unique_ptr<Module> module = parse_module(section.text);
  check(*module);
  std::vector<Shape> leaf_shapes;
  for (const Instruction* parameter : module->entry()->parameters()) {
    for (const Shape* leaf : leaves(parameter->shape)) leaf_shapes.push_back(*leaf);
  }
  const Plan plan = plan_of(file, section, leaf_shapes);
  for (const Case& test : plan.cases) {
    std::vector<Literal> oracle;
    try {
      oracle = run_oracle(*module, test.inputs, plan.scatter_oob_window);
    } catch (const Error& error) {
      if (!plan.error || !std::string_view(error.what()).contains(plan.error->text)) throw;
      continue;
    }
    if (plan.error) {
      failures.push_back(at(file, plan.error->line) + "runs, but should fail");
      continue;
    }
    if (!test.expected.empty() && oracle.size() != test.expected.size()) {
      failures.push_back(at(file, test.line) + "oracle: " + std::to_string(oracle.size()) +
                         " results for " + std::to_string(test.expected.size()) + " EXPECT lines");
      continue;
    }
    for (size_t i = 0; i < test.expected.size(); ++i) {
      const std::string d = difference(test.expected[i], oracle[i], plan.tolerance);
      if (!d.empty()) {
        failures.push_back(at(file, test.line) + "oracle: result " + std::to_string(i) + " " + d);
      }
    }
#ifdef HLOJIT_TEST_COMPILED
    if (plan.unsupported) {
      check_refusal(file, *module, plan, test, failures);
    } else {
      check_compiled(file, *module, plan, test, oracle, failures);
    }
#endif
  }
}

}  // namespace hlojit::test
