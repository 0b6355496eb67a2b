// Shardings in Shardy's words, as frontend attributes carry them:
//
//   xla.sdy.meshes={mesh = #sdy.mesh<["x"=2, "y"=2]>}
//   xla.sdy.in_shardings="#sdy.sharding_per_value<[<@mesh, [{\"x\"}, {\"y\", ?}]>]>"
//   xla.sdy.manual_axes="#sdy<manual_axes{\"x\"}>"
//
// A mesh gives each device a coordinate an axis. A sharding names, dimension by dimension, the axes that
// cut it, the first of them slowest; "x":(2)4 is a part of an axis: 4 of its parts, those below 2 others.
// unreduced={"x"} behind them: along x there are addends, whose sum is the value.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/pjrt/shards.h"

namespace hlojit::pjrt {

/// Devices in a grid.
struct Mesh {
  struct Axis {
    std::string name;
    int64_t size;
  };
  std::vector<Axis> axes;        ///< first slowest
  std::vector<int64_t> devices;  ///< by place in the grid
  bool operator==(const Mesh&) const = default;
};
inline bool operator==(const Mesh::Axis& a, const Mesh::Axis& b) { return a.name == b.name && a.size == b.size; }

using Meshes = std::map<std::string, Mesh, std::less<>>;

/// Reads the text of an attribute of the name out of {name="value",name={value}}; backslashes are taken
/// away. Empty if there is none.
std::string frontend_attribute(std::string_view attributes, std::string_view name);

/// {mesh = #sdy.mesh<["x"=2]>, ...}. All functions here throw Error(kUnsupported) for what they cannot read.
Meshes read_meshes(std::string_view text);

/// A value's sharding, the mesh looked up.
struct NamedSharding {
  struct Factor {  ///< an axis or a part of it: coordinate / divisor % size
    std::string axis;
    int64_t divisor, size;
  };
  const Mesh* mesh = nullptr;
  std::vector<std::vector<Factor>> dims;
  std::vector<Factor> unreduced;  ///< axes over which a sum is left to do
};
/// #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>, ...]>; `meshes` must outlive the result.
std::vector<NamedSharding> read_named_shardings(std::string_view text, const Meshes& meshes, int64_t devices);

/// #sdy<manual_axes{"x", "y"}>
std::vector<std::string> read_manual_axes(std::string_view text);

/// Which part each device has, if only the given axes cut.
Shards shards_along(const NamedSharding& sharding, const std::vector<std::string>& axes, int64_t devices);

/// Devices that differ in the given axes only, in the grid's order; every device is in one group.
std::vector<std::vector<int64_t>> groups_along(const Mesh& mesh, const std::vector<std::string>& axes);

}  // namespace hlojit::pjrt
