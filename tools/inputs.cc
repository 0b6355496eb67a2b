// Values for the program's parameters: files, and random ones that are the same bits on every machine.
#include <cctype>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "codegen/target.h"
#include "compiler/ir/module.h"
#include "hlojit/custom_call.h"
#include "layout/index.h"
#include "tools/npy.h"
#include "tools/random.h"
#include "tools/request.h"

namespace hlojit::tools {

Buffer random_leaf(const Shape& shape, uint64_t seed) {
  Literal literal(Shape::array(shape.type, shape.dims));
  Random random(seed);
  int64_t n = literal.shape().element_count();
  if (shape.type == DType::kF32) {
    for (float& x : literal.data<float>()) x = static_cast<float>(random.unit());
  } else if (shape.type == DType::kF64) {
    for (double& x : literal.data<double>()) x = random.unit();
  } else if (is_float(shape.type)) {
    // What rounds to 1, or is nothing in this type, is drawn again.
    auto inside = [](double x) { return x >= -1 && x < 1; };
    for (int64_t i = 0; i < n; ++i) {
      do literal.set_double(i, random.unit());
      while (!inside(literal.as_double(i)));
    }
  } else if (is_complex(shape.type)) {
    for (int64_t i = 0; i < n; ++i) {
      double re = random.unit();
      literal.set_complex(i, {re, random.unit()});
    }
  } else if (is_pred(shape.type)) {
    for (int64_t i = 0; i < n; ++i) literal.set_int(i, static_cast<int64_t>(random.next() >> 63));
  } else {
    int bits = dtype_bits(shape.type);
    int64_t high =
        is_signed(shape.type) ? (int64_t{1} << std::min(bits - 1, 4)) - 1 : (int64_t{1} << std::min(bits, 4)) - 1;
    int64_t low = is_signed(shape.type) ? -high - 1 : 0;
    high = std::min<int64_t>(high, 8);
    low = std::max<int64_t>(low, -8);
    for (int64_t i = 0; i < n; ++i) {
      literal.set_int(i, low + static_cast<int64_t>(random.next() % static_cast<uint64_t>(high - low + 1)));
    }
  }
  Buffer plain = Buffer::copy_of(literal.bytes().data(), literal.shape());
  return plain.shape() == shape ? plain : plain.to_layout(shape);
}

namespace {

// From a seed asked for to the next: further than any program has arrays, each of which takes one.
constexpr uint64_t kSeedStep = 0x100000001b3;

// `K=F.npy` or `F.npy`.
std::pair<std::optional<int64_t>, std::string> split(const std::string& text) {
  size_t at = text.find('=');
  if (at == std::string::npos || at == 0 || at > 9) return {std::nullopt, text};
  int64_t k = 0;
  for (size_t i = 0; i < at; ++i) {
    if (!std::isdigit(static_cast<unsigned char>(text[i]))) return {std::nullopt, text};
    k = 10 * k + (text[i] - '0');
  }
  return {k, text.substr(at + 1)};
}

// A device without end must not fill the memory.
constexpr size_t kLargestModule = size_t{1} << 30;

std::string read_all(std::FILE* file, const std::string& name) {
  std::string text;
  std::vector<char> part(size_t{1} << 16);
  while (size_t n = std::fread(part.data(), 1, part.size(), file)) {
    text.append(part.data(), n);
    if (text.size() > kLargestModule) throw Error(ErrorKind::kInput, fmt::format("{} is larger than 1 GiB", name));
  }
  if (std::ferror(file)) throw unreadable(name, errno);
  return text;
}

// The parameter a leaf belongs to.
std::string parameter_of(const Module& module, size_t leaf) {
  size_t before = 0;
  for (const Instruction* p : module.entry()->parameters()) {
    before += static_cast<size_t>(leaf_count(p->shape));
    if (leaf < before) return p->name;
  }
  return "?";
}

}  // namespace

ModulePtr load_module(const Request& request, std::string& source) {
  if (request.module == "-") {
    source = read_all(stdin, "standard input");
  } else {
    std::FILE* file = std::fopen(request.module.c_str(), "rb");
    if (!file) throw unreadable(request.module, errno);
    std::unique_ptr<std::FILE, int (*)(std::FILE*)> closed(file, std::fclose);
    source = read_all(file, request.module);
  }
  if (source.starts_with("\xEF\xBB\xBF")) source.erase(0, 3);  // so that places are counted as editors do
  return parsed(request, source);
}

ModulePtr parsed(const Request& request, const std::string& source) {
  if (!request.elided) return parse(source);
  uint64_t seed = *request.elided * kSeedStep;
  return parse(source, [&](const Shape& shape) { return random_leaf(shape, seed++); });
}

Literal dense(const Buffer& buffer) {
  Literal l(Shape::array(buffer.shape().type, buffer.shape().dims));
  relayout(buffer.shape(), buffer.raw(), l.shape(), l.bytes().data());
  return l;
}

std::vector<Buffer> gather_inputs(const Request& request, const ModulePtr& module) {
  return gather_input_sets(request, module, 1).at(0);
}

std::vector<std::vector<Buffer>> gather_input_sets(const Request& request, const ModulePtr& module, int64_t devices) {
  const std::vector<Shape> own = parameter_leaves(module);
  const size_t leaves = own.size();
  std::vector<Shape> shapes;
  bool a_set_each = request.inputs.size() > leaves;
  for (const std::string& text : request.inputs) {
    auto number = split(text).first;
    a_set_each |= number && static_cast<size_t>(*number) >= leaves;
  }
  const size_t sets = a_set_each ? static_cast<size_t>(devices) : 1;
  for (size_t s = 0; s < sets; ++s) shapes.insert(shapes.end(), own.begin(), own.end());
  std::vector<std::optional<Buffer>> given(shapes.size());
  size_t next = 0;
  for (const std::string& text : request.inputs) {
    auto [number, path] = split(text);
    if (!number) {
      while (next < given.size() && given[next]) ++next;
    }
    size_t k = number ? static_cast<size_t>(*number) : next;
    if (k >= shapes.size()) {
      std::string what =
          number ? fmt::format("there is no input {}", k) : fmt::format("{} is one input too many", path);
      std::string takes = shapes.empty() ? "takes none" : fmt::format("takes those from 0 to {}", shapes.size() - 1);
      throw Error(ErrorKind::kInput, fmt::format("{}: the program {}", what, takes));
    }
    if (given[k]) throw Error(ErrorKind::kInput, fmt::format("input {} is given twice", k));
    given[k] = read_npy(path, shapes[k]);
  }
  std::vector<std::vector<Buffer>> inputs(sets);
  for (size_t k = 0; k < shapes.size(); ++k) {
    if (!given[k] && !request.random) {
      throw Error(ErrorKind::kInput,
                  fmt::format("input {} (of parameter {}, {}) has no value; give --input or --random", k,
                              parameter_of(*module, k % leaves), shapes[k].to_string(false)));
    }
    inputs[k / leaves].push_back(given[k] ? std::move(*given[k])
                                          : random_leaf(shapes[k], *request.random * kSeedStep + k));
  }
  return inputs;
}

static constexpr int64_t kMostDevices = 256;

void check_request(const Request& r) {
  try {
    if (r.device_isa != "native") codegen::Target::get(r.device_isa);
  } catch (const Error& e) {
    throw UsageError(fmt::format("--device-isa: {}", e.what()));
  }
  if (r.scatter_oob != "element" && r.scatter_oob != "window") {
    throw UsageError(fmt::format("--scatter-oob: '{}' is neither element nor window", r.scatter_oob));
  }
  if (r.threads < 0 || r.threads > 4096) throw UsageError("--threads: a number from 1 to 4096 is needed");
  if (r.replicas < 0 || r.partitions < 0 || r.replicas > kMostDevices || r.partitions > kMostDevices) {
    throw UsageError(fmt::format("--replicas, --partitions: a number from 1 to {} is needed", kMostDevices));
  }
  auto positive = [](std::string_view name, const auto& value) {
    if (value && !(*value > 0 && std::isfinite(static_cast<double>(*value)))) {
      throw UsageError(fmt::format("{}: a number above 0 is needed", name));
    }
  };
  positive("--timeout-s", r.timeout_s);
  positive("--min-ms", std::optional(r.min_ms));
  positive("--wait-s", std::optional(r.wait_s));
  positive("--count", r.count);
  positive("--seconds", r.seconds);
  if ((r.rtol && !(*r.rtol >= 0)) || (r.ulp && !(*r.ulp >= 0))) throw UsageError("--rtol, --ulp: no negative numbers");
  if ((r.rtol || r.ulp) && !r.against_eval) throw UsageError("--rtol, --ulp: only with --against-eval");
  if (r.effort < 0 || r.effort > 2) throw UsageError("--effort: 0, 1 or 2");
  std::vector<std::string> known = pass_list();
  for (const std::string& name : r.disable) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      throw UsageError(fmt::format("--disable: there is no pass '{}' (see opt --list-passes)", name));
    }
  }
}

void check_disabled(const Request& r) {
  for (const std::string& name : needed_passes()) {
    if (std::find(r.disable.begin(), r.disable.end(), name) == r.disable.end()) continue;
    throw UsageError(fmt::format("--disable: nothing is compiled without '{}'", name));
  }
}

Options compile_options(const Request& r) {
  check_request(r);
  for (const std::string& library : r.load) load_custom_calls(library);
  Options o;
  o.threads = r.threads;
  o.isa = r.device_isa;
  o.strict = r.strict;
  o.keep_subnormals = r.keep_subnormals;
  o.effort = r.effort;
  o.scatter_oob_window = r.scatter_oob == "window";
  o.disabled_passes = r.disable;
  o.cache_dir = r.cache;
  o.dump_dir = r.dump_to;
  o.replicas = r.replicas;
  o.partitions = r.partitions;
  return o;
}

}  // namespace hlojit::tools
