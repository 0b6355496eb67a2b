// See collectives.h. Everything is told at compile time except who asks: tables by device number
// are made once, and a call looks up its own entry.
#include "runtime/collectives/collectives.h"

#include <cstring>
#include <numeric>

#include "compiler/analysis/device_groups.h"
#include "layout/index.h"
#include "runtime/collectives/meeting.h"

namespace hlojit {
namespace {

Meeting& meeting(const StepCall& call) {
  if (!call.run.meeting) throw Error(ErrorKind::kFailed, "a program for several devices runs on one");
  return *call.run.meeting;
}

std::string shown(const Instruction& i) { return std::string(op_name(i.opcode)) + " " + i.name; }

// For each device its group.
std::vector<std::vector<int64_t>> group_of_device(const Instruction& i) {
  std::vector<std::vector<int64_t>> of;
  for (const auto& group : device_groups(i)) {
    for (int64_t d : group) {
      of.resize(std::max(of.size(), static_cast<size_t>(d) + 1));
      of[static_cast<size_t>(d)] = group;
    }
  }
  return of;
}

StepFunction gather_step(const Instruction& i) {
  auto bytes = static_cast<size_t>(physical_size(i.operand(0)->shape));
  return [place = std::make_shared<char>(), name = shown(i), groups = group_of_device(i), bytes](const StepCall& call) {
    const int64_t me = call.run.device;
    meeting(call).exchange(place.get(), name, groups.at(static_cast<size_t>(me)), me, call.buffers,
                           [&](const Meeting::Buffers& all) {
                             auto* out = static_cast<char*>(call.buffers[1]);
                             for (void* const* from : all) {
                               std::memcpy(out, from[0], bytes);
                               out += bytes;
                             }
                           });
  };
}

StepFunction exchange_rows_step(const Instruction& i) {
  auto rows = static_cast<size_t>(i.shape.dims.at(0));
  size_t bytes = static_cast<size_t>(physical_size(i.shape)) / std::max<size_t>(rows, 1);
  return [place = std::make_shared<char>(), name = shown(i), groups = group_of_device(i), bytes](const StepCall& call) {
    const int64_t me = call.run.device;
    const auto& group = groups.at(static_cast<size_t>(me));
    auto mine = static_cast<size_t>(std::ranges::find(group, me) - group.begin());
    meeting(call).exchange(place.get(), name, group, me, call.buffers, [&](const Meeting::Buffers& all) {
      auto* out = static_cast<char*>(call.buffers[1]);
      for (void* const* from : all) {
        std::memcpy(out, static_cast<const char*>(from[0]) + mine * bytes, bytes);
        out += bytes;
      }
    });
  };
}

// One block from one device, or zeros. All devices meet, also those that neither give nor take.
StepFunction move_step(const Instruction& i) {
  auto bytes = static_cast<size_t>(physical_size(i.shape));
  std::vector<int64_t> sources = device_sources(i), everyone(sources.size());
  std::iota(everyone.begin(), everyone.end(), 0);
  return [place = std::make_shared<char>(), name = shown(i), sources, everyone, bytes](const StepCall& call) {
    const int64_t me = call.run.device, source = sources.at(static_cast<size_t>(me));
    meeting(call).exchange(place.get(), name, everyone, me, call.buffers, [&](const Meeting::Buffers& all) {
      if (source < 0) {
        std::memset(call.buffers[1], 0, bytes);
      } else {
        std::memcpy(call.buffers[1], all[static_cast<size_t>(source)][0], bytes);
      }
    });
  };
}

}  // namespace

StepFunction collective_step(const Instruction& i) {
  switch (i.opcode) {
    case Opcode::kAllGather: return gather_step(i);
    case Opcode::kAllToAll: return exchange_rows_step(i);
    default: return move_step(i);
  }
}

StepFunction device_id_step(const Instruction& i) {
  const int64_t partitions = i.parent()->parent()->config.num_partitions;
  const bool replica = i.is(Opcode::kReplicaId);
  return [partitions, replica](const StepCall& call) {
    int64_t id = replica ? call.run.device / partitions : call.run.device % partitions;
    *static_cast<uint32_t*>(call.buffers[0]) = static_cast<uint32_t>(id);
  };
}

StepFunction random_state_step(const Instruction& i) {
  return [delta = static_cast<uint64_t>(i.attrs.delta)](const StepCall& call) {
    auto* out = static_cast<uint64_t*>(call.buffers[0]);
    uint64_t* counter = call.run.random_counter;
    std::memcpy(out, counter, 2 * sizeof *out);
    if (__builtin_add_overflow(counter[0], delta, &counter[0])) ++counter[1];
  };
}

}  // namespace hlojit
