// See device_groups.h.
#include "compiler/analysis/device_groups.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compiler/ir/text_attributes.h"

namespace hlojit {
namespace {

// The ids 0..n-1 as an array of `dims`, transposed, cut into groups: `[2,2]<=[2,2]T(1,0)`.
DeviceGroups iota_groups(std::string_view text) {
  size_t arrow = text.find("<="), close = text.find(']', arrow);
  Ints cut = numbers_in(text.substr(0, arrow));
  Ints dims = numbers_in(text.substr(arrow + 2, close - arrow - 2));
  Ints permutation = numbers_in(text.substr(close));
  if (permutation.empty()) {
    permutation.resize(dims.size());
    std::iota(permutation.begin(), permutation.end(), 0);
  }
  Ints strides(dims.size(), 1);
  for (size_t d = dims.size(); d-- > 1;) strides[d - 1] = strides[d] * dims[d];
  DeviceGroups groups(cut.at(0), std::vector<int64_t>(cut.at(1)));
  Ints at(dims.size(), 0);
  for (auto& group : groups) {
    for (int64_t& id : group) {
      id = 0;
      for (size_t k = 0; k < at.size(); ++k) id += at[k] * strides[permutation[k]];
      for (size_t k = at.size(); k-- > 0;) {
        if (++at[k] < dims[permutation[k]]) break;
        at[k] = 0;
      }
    }
  }
  return groups;
}

enum class Mode { kReplicas, kPartitions, kBoth, kFlat };

Mode mode_of(const Instruction& i) {
  if (text_attribute(i.attrs, "channel_id").empty()) return Mode::kReplicas;
  if (text_attribute(i.attrs, "use_global_device_ids") == "true") return Mode::kFlat;
  using enum Opcode;
  constexpr Opcode kReduceOrGather[] = {kAllReduce, kAllReduceStart, kAllGather, kAllGatherStart, kReduceScatter};
  return std::ranges::count(kReduceOrGather, i.opcode) > 0 ? Mode::kBoth : Mode::kPartitions;
}

class Devices {
 public:
  explicit Devices(const Instruction& i)
      : instruction_(i),
        mode_(mode_of(i)),
        replicas_(i.parent()->parent()->config.replica_count),
        partitions_(i.parent()->parent()->config.num_partitions) {}

  int64_t count() const { return replicas_ * partitions_; }
  // How many ids there are to name.
  int64_t ids() const {
    if (mode_ == Mode::kFlat) return count();
    return mode_ == Mode::kPartitions ? partitions_ : replicas_;
  }

  // A group of ids stands for these groups of devices.
  void spread(const std::vector<int64_t>& group, DeviceGroups& out) const {
    for (int64_t id : group) {
      if (id < 0 || id >= ids()) {
        fail(fmt::format("names device {}", id));
      }
    }
    int64_t times = mode_ == Mode::kReplicas ? partitions_ : mode_ == Mode::kPartitions ? replicas_ : 1;
    for (int64_t k = 0; k < times; ++k) {
      std::vector<int64_t>& devices = out.emplace_back();
      for (int64_t id : group) {
        switch (mode_) {
          case Mode::kReplicas: devices.push_back(id * partitions_ + k); break;
          case Mode::kPartitions: devices.push_back(k * partitions_ + id); break;
          case Mode::kFlat: devices.push_back(id); break;
          case Mode::kBoth:
            for (int64_t p = 0; p < partitions_; ++p) devices.push_back(id * partitions_ + p);
        }
      }
    }
  }

  [[noreturn]] void fail(std::string_view what) const {
    throw Error(ErrorKind::kInput,
                {{.location = instruction_.location,
                  .instruction = instruction_.name,
                  .rule = "devices",
                  .message = fmt::format("{} {}, but the program is compiled for {} replicas and {} partitions",
                                         op_name(instruction_.opcode), what, replicas_, partitions_)}});
  }

 private:
  const Instruction& instruction_;
  const Mode mode_;
  const int64_t replicas_, partitions_;
};

DeviceGroups read_groups(const Instruction& i, const Devices& devices) {
  DeviceGroups groups = groups_from_text(text_attribute(i.attrs, "replica_groups"));
  if (groups.empty()) {
    groups.emplace_back(devices.ids());
    std::iota(groups[0].begin(), groups[0].end(), 0);
  }
  DeviceGroups all;
  for (const auto& group : groups) devices.spread(group, all);
  return all;
}

// The verifier cannot tell where the groups do not say how many devices there are.
bool parts_fit(const Instruction& i, int64_t members) {
  if (i.is(Opcode::kAllToAll) && !i.attrs.has_dimensions) return std::ssize(i.operands()) == members;
  if (i.is(Opcode::kAllToAll)) return i.shape.dims.at(i.attrs.dimensions.at(0)) % members == 0;
  if (!i.is(Opcode::kAllGather) && !i.is(Opcode::kReduceScatter)) return true;
  for (size_t k = 0; k < i.operands().size(); ++k) {
    const Shape& result = i.shape.is_tuple() ? i.shape.elements.at(k) : i.shape;
    const int64_t d = i.attrs.dimensions.at(0);
    int64_t part = i.operand(k)->shape.dims.at(d), whole = result.dims.at(d);
    if (i.is(Opcode::kReduceScatter)) std::swap(part, whole);
    if (part * members != whole) return false;
  }
  return true;
}

}  // namespace

DeviceGroups groups_from_text(std::string_view text) {
  if (text.starts_with('[')) return iota_groups(text);
  DeviceGroups groups;
  for (size_t at = text.find('{', 1); at < text.size(); at = text.find('{', at + 1)) {
    groups.push_back(numbers_in(text.substr(at, text.find('}', at) - at)));
  }
  return groups;
}

std::string groups_to_text(const DeviceGroups& groups) {
  std::string text = "{";
  for (const auto& group : groups) {
    text += fmt::format("{}{{{}}}", text.size() > 1 ? "," : "", fmt::join(group, ","));
  }
  return text + "}";
}

DeviceGroups device_groups(const Instruction& collective) {
  Devices devices(collective);
  DeviceGroups groups = read_groups(collective, devices);
  const auto members = std::ssize(groups.at(0));
  if (!parts_fit(collective, members)) devices.fail(fmt::format("wants groups of another size than {}", members));
  std::vector<bool> taken(devices.count());
  for (const auto& group : groups) {
    for (int64_t d : group) taken[d] = true;
  }
  for (size_t d = 0; d < taken.size(); ++d) {
    if (!taken[d]) devices.fail(fmt::format("leaves out device {}", d));
  }
  return groups;
}

std::vector<int64_t> device_sources(const Instruction& collective) {
  Devices devices(collective);
  std::vector<int64_t> source(devices.count(), -1);
  if (collective.is(Opcode::kCollectiveBroadcast)) {
    for (const auto& group : read_groups(collective, devices)) {
      for (int64_t d : group) source[d] = group[0];
    }
    return source;
  }
  DeviceGroups pairs;
  for (const auto& pair : groups_from_text(text_attribute(collective.attrs, "source_target_pairs"))) {
    devices.spread(pair, pairs);
  }
  for (const auto& pair : pairs) source[pair[1]] = pair[0];
  return source;
}

}  // namespace hlojit
