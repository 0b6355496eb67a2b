// Programs of bench/hlo against the inputs and answers beside them (bench/golden, made by XLA:CPU).
#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "compiler/text/parser.h"
#include "compiler/verify/verifier.h"
#include "tests/runner/cases.h"

namespace hlojit::test {
namespace {

std::string read_file(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) throw std::runtime_error(path + ": cannot be read");
  return {std::istreambuf_iterator<char>(stream), {}};
}

// The generator writes .npy 1.0, C order, little-endian, one element in as many bytes as HLO's type
// has: after the header the bytes are the literal's.
Literal read_npy(const std::string& path, const Shape& shape) {
  const std::string bytes = read_file(path);
  if (bytes.size() < 10 || !bytes.starts_with("\x93NUMPY\x01")) {
    throw std::runtime_error(path + ": not .npy 1.0");
  }
  const size_t header = 10 + static_cast<uint8_t>(bytes[8]) + 256 * static_cast<uint8_t>(bytes[9]);
  Literal literal(Shape::array(shape.type, shape.dims));
  if (bytes.size() - header != literal.bytes().size()) {
    throw std::runtime_error(path + ": not the size of " + shape.to_string(false));
  }
  if (bytes.find("'fortran_order': False") > header) {
    throw std::runtime_error(path + ": not in C order");
  }
  std::memcpy(literal.bytes().data(), bytes.data() + header, literal.bytes().size());
  return literal;
}

}  // namespace

void check_golden(const std::string& manifest, const std::string& name, Failures& failures) {
  const std::string folder = manifest.substr(0, manifest.find_last_of('/') + 1) + "../";
  const auto json = nlohmann::json::parse(read_file(manifest));
  const auto& programs = json.at("programs");
  auto program = std::find_if(programs.begin(), programs.end(), [&](const auto& p) { return p.at("name") == name; });
  if (program == programs.end()) throw std::runtime_error(manifest + ": no program " + name);

  const std::string path = folder + program->at("hlo").template get<std::string>();
  const std::unique_ptr<Module> module = parse_module(read_file(path));
  check(*module);
  Case test;
  const std::vector<Shape> parameters = parameter_leaves(*module);
  const auto results = leaves(module->entry()->root()->shape);
  const auto& inputs = program->at("inputs");
  const auto& outputs = program->at("outputs");
  if (inputs.size() != parameters.size() || outputs.size() != results.size()) {
    throw std::runtime_error(path + ": the manifest names other leaves");
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    test.inputs.push_back(read_npy(folder + inputs[i].at("file").template get<std::string>(), parameters[i]));
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto& output = outputs[i];
    test.expected.push_back(read_npy(folder + output.at("file").template get<std::string>(), *results[i]));
    Tolerance tolerance;
    if (output.contains("rtol")) tolerance.golden = {output.at("rtol"), output.at("atol")};
    test.tolerances.push_back(tolerance);
  }
  Cases cases;
  cases.path = path;
  cases.thorough = false;
  cases.cases.push_back(std::move(test));
  check_cases(*module, cases, failures);
}

}  // namespace hlojit::test
