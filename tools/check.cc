// check: is it valid, is all of it compiled, does compiled code give what the evaluator gives?
#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compiler/eval/stop.h"
#include "layout/index.h"
#include "tools/error_bound.h"
#include "tools/fenced.h"
#include "tools/host_side.h"
#include "tools/request.h"

namespace hlojit::tools {
namespace {

// For programs that the error analysis does not follow: part of each value and of the largest one.
double usual_tolerance(DType type) {
  switch (component_type(type)) {
    case DType::kF64: return 1e-10;
    case DType::kF32: return 1e-4;
    case DType::kF16: return 1e-2;
    case DType::kBF16: return 4e-2;
    default: return is_float(type) ? 0.3 : 0;
  }
}

int mantissa_bits(DType type) {
  switch (component_type(type)) {
    case DType::kF64: return 52;
    case DType::kF32: return 23;
    case DType::kF16: return 10;
    case DType::kBF16: return 7;
    case DType::kF8E3M4: return 4;
    case DType::kF8E4M3:
    case DType::kF8E4M3FN:
    case DType::kF8E4M3FNUZ:
    case DType::kF8E4M3B11FNUZ: return 3;
    case DType::kF8E5M2:
    case DType::kF8E5M2FNUZ: return 2;
    case DType::kF4E2M1FN: return 1;
    default: return 0;
  }
}

// Distance in units in the last place of `want`; integers: the difference.
double distance(DType type, double got, double want) {
  if (got == want || (std::isnan(got) && std::isnan(want))) return 0;
  if (!std::isfinite(got) || !std::isfinite(want)) return INFINITY;
  if (!is_float(component_type(type))) return std::fabs(got - want);
  int exponent;
  std::frexp(want, &exponent);
  int least = component_type(type) == DType::kF64 ? -1022 : component_type(type) == DType::kF16 ? -14 : -126;
  return std::fabs(got - want) / std::ldexp(1.0, std::max(exponent - 1, least) - mantissa_bits(type));
}

double element_distance(const Literal& got, const Literal& want, int64_t i) {
  DType t = got.shape().type;
  if (!is_complex(t)) return distance(t, got.as_double(i), want.as_double(i));
  std::complex<double> a = got.as_complex(i), b = want.as_complex(i);
  return std::max(distance(t, a.real(), b.real()), distance(t, a.imag(), b.imag()));
}

std::string index_text(const Shape& shape, int64_t i) {
  std::optional<Index> index = multi_index(Shape::array(shape.type, shape.dims), i);
  return shape.dims.empty() ? "()" : fmt::format("{}", fmt::join(*index, ","));
}

struct Leaf {
  std::string name;
  Literal got;
  const ErrorBound& want;
};

// One line of what was found; throws for what is beyond the tolerance, which `r` may set.
std::string compare(const Request& r, const Leaf& leaf) {
  const Shape& shape = leaf.got.shape();
  std::string name = fmt::format("{} {}", leaf.name, shape.to_string(false));
  if (shape.dims != leaf.want.value.shape().dims) {
    throw Error(ErrorKind::kFailed,
                fmt::format("{} compiled, {} evaluated", name, leaf.want.value.shape().to_string(false)));
  }
  double worst = 0;
  int64_t at = -1, beyond = r.rtol || r.ulp ? -1 : first_beyond(leaf.got, leaf.want);
  for (int64_t i = 0; i < shape.element_count(); ++i) {
    double d = element_distance(leaf.got, leaf.want.value, i);
    if (d > worst) worst = d, at = i;
    if (beyond >= 0 || d == 0) continue;
    double a = leaf.got.as_double(i), b = leaf.want.value.as_double(i);
    bool near = !(r.rtol || r.ulp) || (r.ulp && d <= *r.ulp) || (r.rtol && std::fabs(a - b) <= *r.rtol * std::fabs(b));
    if (!near) beyond = i;
  }
  std::string_view unit = is_float(component_type(shape.type)) ? " ulp" : "";
  if (beyond >= 0) {
    std::string allowed =
        r.rtol || r.ulp ? "more than asked for" : fmt::format("{:.3g} off is allowed", leaf.want.error);
    throw Error(ErrorKind::kFailed,
                fmt::format("{}: element {} is {} compiled and {} evaluated, {:.3g}{} apart; {}", name,
                            index_text(shape, beyond), leaf.got.as_double(beyond), leaf.want.value.as_double(beyond),
                            element_distance(leaf.got, leaf.want.value, beyond), unit, allowed));
  }
  if (at < 0) return name + ": equal\n";
  std::string note = std::isinf(leaf.want.error) ? " (chaotic for these inputs: any error is allowed)" : "";
  return fmt::format("{}: worst {:.3g}{} at {}{}\n", name, worst, unit, index_text(shape, at), note);
}

using Bounds = std::vector<std::vector<ErrorBound>>;

// What the evaluator says, by device.
Bounds evaluated(const Request& r, const ModulePtr& module, const std::vector<std::vector<Buffer>>& inputs,
                 const HostSide& host) {
  const eval::Stoppable stoppable(stop_of(r));
  std::vector<std::vector<Literal>> leaves;
  for (const std::vector<Buffer>& set : inputs) {
    leaves.emplace_back();
    for (const Buffer& b : set) leaves.back().push_back(dense(b));
  }
  bool window = r.scatter_oob == "window";
  try {
    return evaluate_with_bounds(*module, leaves, r.strict, window, &host);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kUnsupported) throw;
  }
  std::vector<ErrorBound> results;
  for (const Buffer& b : evaluate(module, inputs.at(0), compile_options(r))) {
    ErrorBound leaf{dense(b), 0};
    for (double v : to_doubles(b)) {
      if (std::isfinite(v)) leaf.error = std::max(leaf.error, std::fabs(v) * usual_tolerance(b.shape().type));
    }
    results.push_back(std::move(leaf));
  }
  return {results};
}

}  // namespace

void check_verb(const Request& r, std::string& source, const Sink& out) {
  compile_options(r);
  ModulePtr module = load_module(r, source);
  verify(module);
  if (!r.against_eval) {
    if (r.compiles) compiled(r, module);
    return;
  }
  Request with_values = r;
  if (!with_values.random) with_values.random = 1;
  with_values.keep_subnormals = true;  // as the evaluator does
  Executable e = compiled(with_values, module);
  const int64_t devices = e.replicas() * e.partitions();
  std::vector<std::vector<Buffer>> inputs = gather_input_sets(with_values, module, devices), got;
  stage(r, "running");
  std::vector<Fenced> fences;
  std::vector<std::vector<Buffer>> given;
  for (const std::vector<Buffer>& set : inputs)
    given.push_back(between_fences(e, set, at_end(*with_values.random), fences));
  const HostSide host = HostSide::random(*module, *with_values.random);
  RunOptions options = run_options(r);
  options.queues = host.queues(devices);
  if (devices == 1)
    got.push_back(e.run(given[0], options));
  else
    got = e.run_devices(given, options);
  stage(r, "evaluating");
  inputs.resize(static_cast<size_t>(devices), inputs[0]);  // one set is for all
  std::shared_ptr<Module> asked = module->clone();         // on as many devices as were asked for
  asked->config.replica_count = e.replicas();
  asked->config.num_partitions = e.partitions();
  Bounds want = evaluated(r, asked, inputs, host);
  for (size_t d = 0; d < got.size(); ++d) {
    const std::string device = devices == 1 ? "" : fmt::format("device {} ", d);
    const size_t results = got[d].size();
    std::ranges::move(host.taken(options.queues, static_cast<int64_t>(d)), std::back_inserter(got[d]));
    for (size_t k = 0; k < got[d].size(); ++k) {
      const ErrorBound& of = want.at(d).at(k);
      std::string name = k < results ? fmt::format("result {}", k) : fmt::format("to the host {}", k - results);
      out(device + compare(r, {name, said_part(dense(got[d][k]), of), of}));
    }
  }
}

}  // namespace hlojit::tools
