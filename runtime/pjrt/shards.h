// Programs over several devices without partitioning them.
//
// A program whose arrays are annotated with shardings means what it means without them. The devices of a
// client are names for the same cores, so such a program runs once, on whole arrays, on all cores: its
// operands are put together from the devices' shards, its results cut into them. (Programs that speak of
// one device's part themselves, in shard_map, are another matter: see manual.h.)
#pragma once

#include <string_view>
#include <vector>

#include "hlojit/hlojit.h"

namespace hlojit::pjrt {

/// How an array is cut into equal parts, and which of them each device has.
struct Shards {
  std::vector<int64_t> tiles;            ///< parts a dimension
  std::vector<std::vector<int64_t>> of;  ///< by device: which part, a number a dimension
  int64_t terms = 1;                     ///< addends whose sum the array is ("unreduced"); 1: no sum is left to do
  std::vector<int64_t> term;             ///< by device: which addend, if there are several
  bool whole() const;                    ///< every device has all of it
  bool operator==(const Shards&) const = default;
};
/// Every device has all of an array of this rank.
Shards no_shards(size_t rank, int64_t devices);

/// Reads HLO's text of a sharding of an array, {devices=[2,1,2]<=[4] last_tile_dim_replicate}; empty text:
/// every device has all. Inside of a manual region the axes that are not the region's count. Throws
/// Error(kUnsupported) for kinds without a meaning for whole arrays and for sizes that do not divide.
Shards read_shards(std::string_view text, const Shape& shape, int64_t devices);
/// The text's parts if it is a tuple's sharding, {{replicated}, {replicated}}; else the text, `count` times.
std::vector<std::string_view> split_sharding(std::string_view text, size_t count);

/// One device's part, in the whole array's layout.
Shape shard_shape(const Shape& whole, const Shards& shards);
/// The whole array out of one buffer a device, all of one layout without tiles. No sum may be left to do.
Buffer join_shards(const Shape& whole, const Shards& shards, const std::vector<Buffer>& parts);
/// What `device` has of the whole array, in the same layout, which has no tiles.
Buffer cut_shard(const Buffer& whole, const Shards& shards, size_t device);

}  // namespace hlojit::pjrt
