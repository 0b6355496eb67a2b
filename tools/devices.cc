// Running a program where it asks to run: on one device or several, with what the host hands to
// them.
#include <charconv>

#include <fmt/format.h>

#include "compiler/ir/module.h"
#include "tools/npy.h"
#include "tools/request.h"

namespace hlojit::tools {
namespace {

// Shapes of the leaves that infeeds take, in the order of the text. Files are read as these, again
// and again: an infeed in a loop takes more than one item.
std::vector<Shape> infeed_shapes(const Module& module) {
  std::vector<Shape> shapes;
  for (const auto& c : module.computations()) {
    for (const auto& i : c->instructions()) {
      if (!i->is(Opcode::kInfeed)) continue;
      for (const Shape* s : leaves(i->shape)) shapes.push_back(*s);
    }
  }
  return shapes;
}

// `F.npy` for every device, `D:F.npy` for device D.
void fill_infeed(const Request& r, const Module& module, int64_t devices, HostQueues& queues) {
  if (r.infeed.empty()) return;
  std::vector<Shape> shapes = infeed_shapes(module);
  if (shapes.empty()) throw Error(ErrorKind::kInput, "--infeed: the program has no infeed");
  std::vector<size_t> next(static_cast<size_t>(devices));
  for (const std::string& text : r.infeed) {
    int64_t device = -1;
    std::string path = text;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), device);
    if (error == std::errc() && end != text.data() + text.size() && *end == ':') {
      path = std::string(end + 1, text.data() + text.size());
      if (device < 0 || device >= devices) {
        throw Error(ErrorKind::kInput, fmt::format("--infeed {}: there are {} devices", text, devices));
      }
    } else {
      device = -1;
    }
    for (int64_t d = device < 0 ? 0 : device; d < (device < 0 ? devices : device + 1); ++d) {
      queues.push_infeed(d, read_npy(path, shapes[next[static_cast<size_t>(d)]++ % shapes.size()]));
    }
  }
}

}  // namespace

std::vector<DeviceResults> run_everywhere(const Request& r, const ModulePtr& module, const Executable& e) {
  const int64_t devices = e.replicas() * e.partitions();
  RunOptions options;
  options.stop = stop_of(r);
  options.wait_s = r.wait_s;
  fill_infeed(r, *module, devices, options.queues);
  std::vector<std::vector<Buffer>> results;
  if (devices == 1) {
    results.push_back(e.run(gather_inputs(r, module), options));
  } else {
    results = e.run_devices(gather_input_sets(r, module, devices), options);
  }
  std::vector<DeviceResults> all;
  for (int64_t d = 0; d < devices; ++d) {
    DeviceResults& of = all.emplace_back();
    of.results = std::move(results[static_cast<size_t>(d)]);
    while (!options.queues.outfeed_empty(d)) of.outfeed.push_back(options.queues.pop_outfeed(d));
    of.folder = devices == 1 ? r.output_dir : fmt::format("{}/dev_{}", r.output_dir, d);
  }
  return all;
}

}  // namespace hlojit::tools
