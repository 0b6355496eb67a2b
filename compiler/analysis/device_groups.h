// Who takes part in a collective, in one numbering of all devices.
//
// HLO names participants in four ways (replicas, partitions, both, flattened ids), depending on
// channel_id, use_global_device_ids and the op. Here each is device = replica * partitions +
// partition.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/module.h"

namespace hlojit {

using DeviceGroups = std::vector<std::vector<int64_t>>;

/// The groups of a collective that has replica_groups, members in the order the op gives them.
/// Throws Error(kInput) if they name devices that there are not, leave out some, or are of another size than the
/// op's shapes ask for.
DeviceGroups device_groups(const Instruction& collective);

/// For each device the one it receives from, or -1: source_target_pairs of a collective-permute;
/// the first of its group for a collective-broadcast.
std::vector<int64_t> device_sources(const Instruction& collective);

/// `{{0,1},{2,3}}`, and back.
std::string groups_to_text(const DeviceGroups& groups);
DeviceGroups groups_from_text(std::string_view text);

}  // namespace hlojit
