// `run`: from claims to cases.
#include <algorithm>
#include <charconv>
#include <stdexcept>

#include "compiler/text/parser.h"
#include "compiler/verify/verifier.h"
#include "tests/runner/cases.h"

namespace hlojit::test {
namespace {

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

Cases cases_of(const TestFile& file, const Section& section, const std::vector<Shape>& leaf_shapes) {
  Cases plan;
  plan.path = file.path;
  Tolerance tolerance;
  Case current{section.first_line, {}, {}, {}};
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
        current = {claim.line, {}, {}, {}};
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
      tolerance.ulp = parse_number(file, claim);
    } else if (claim.word == "TOL") {
      tolerance.relative = parse_number(file, claim);
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
  for (Case& each : plan.cases) {
    each.tolerances.assign(std::max<size_t>(each.expected.size(), 1), tolerance);
  }
  return plan;
}

}  // namespace

LayoutsRun check_run(const TestFile& file, const Section& section, Failures& failures) {
  const std::unique_ptr<Module> module = parse_module(section.text);
  check(*module);
  return check_cases(*module, cases_of(file, section, parameter_leaves(*module)), failures);
}

}  // namespace hlojit::test
