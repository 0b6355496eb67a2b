// Device groups as axes of a mesh, spelled out as lists of device numbers:
//
//   mesh['a'=2,'b'=4] {'b'}                      {{0,1,2,3},{4,5,6,7}}
//   mesh['a'=2,'b'=4] {'a'}                      {{0,4},{1,5},{2,6},{3,7}}
//   mesh['a'=2,'b'=4], device_ids=([4,2]T(1,0)) {'a'}     the mesh is 0..7 as [4,2], transposed
//   mesh['a'=2,'b'=4] {'b':(1)2}                 the first two-fold part of b: {{0,2},{1,3},...}
//
// Within a group the axes named vary, the first of them slowest; groups follow the axes that are
// left.
#include <algorithm>
#include <numeric>
#include <ranges>

#include "compiler/text/attribute_forms.h"

namespace hlojit {
namespace {

constexpr int64_t kMostDevices = 1 << 16;

struct Axis {
  std::string name;
  int64_t size = 1;
};
// `size` steps of an axis, below the `outer` parts it is first cut into.
struct Part {
  size_t axis = 0;
  int64_t outer = 1, size = 1;
};

std::string axis_name(Cursor& in) {
  in.expect('\'', "before the name of an axis");
  std::string name(in.identifier("the name of an axis"));
  in.expect('\'', "after the name of an axis");
  return name;
}

std::vector<Axis> read_mesh(Cursor& in) {
  std::vector<Axis> axes;
  int64_t devices = 1;
  in.expect('[', "before the axes of a mesh");
  do {
    Axis axis{axis_name(in), 1};
    in.expect('=', "after the name of an axis");
    size_t at = (in.skip(), in.pos());
    axis.size = in.integer("the size of an axis");
    if (axis.size < 1 || axis.size > kMostDevices / devices) {
      in.fail(at, "replica-groups", "a mesh of no devices, or of more than " + std::to_string(kMostDevices));
    }
    devices *= axis.size;
    axes.push_back(std::move(axis));
  } while (in.accept(','));
  in.expect(']', "after the axes of a mesh");
  return axes;
}

// The device at each place of the mesh: 0, 1, ... unless device_ids=([dims]T(permutation)) is
// given.
std::vector<int64_t> read_devices(Cursor& in, int64_t count) {
  std::vector<int64_t> devices(count);
  std::iota(devices.begin(), devices.end(), 0);
  size_t before = in.pos();
  if (!in.accept(',') || !in.accept_word("device_ids")) {
    in.seek(before);
    return devices;
  }
  auto list = [&](char open, char close) {
    Ints numbers;
    in.expect(open, "in device_ids");
    do {
      numbers.push_back(in.integer("an integer in device_ids"));
    } while (in.accept(','));
    in.expect(close, "in device_ids");
    return numbers;
  };
  in.expect('=', "after device_ids");
  in.expect('(', "before device_ids");
  size_t at = (in.skip(), in.pos());
  Ints dims = list('[', ']'), order(dims.size());
  std::iota(order.begin(), order.end(), 0);
  if (in.accept_word("T")) order = list('(', ')');
  in.expect(')', "after device_ids");
  int64_t product = 1;
  for (int64_t d : dims) product *= d > 0 && d <= count ? d : 0;
  if (product != count || !std::ranges::is_permutation(order, std::views::iota(int64_t{0}, std::ssize(dims)))) {
    in.fail(at, "replica-groups", "device_ids do not number the " + std::to_string(count) + " devices of the mesh");
  }
  Ints strides(dims.size(), 1), place(dims.size(), 0);
  for (size_t d = dims.size(); d-- > 1;) strides[d - 1] = strides[d] * dims[d];
  for (int64_t& device : devices) {
    device = 0;
    for (size_t k = 0; k < place.size(); ++k) device += place[k] * strides[order[k]];
    for (size_t k = place.size(); k-- > 0;) {
      if (++place[k] < dims[order[k]]) break;
      place[k] = 0;
    }
  }
  return devices;
}

std::vector<Part> read_parts(Cursor& in, const std::vector<Axis>& axes) {
  std::vector<Part> parts;
  in.expect('{', "before the axes of a group");
  do {
    size_t at = (in.skip(), in.pos());
    std::string name = axis_name(in);
    auto axis = std::ranges::find(axes, name, &Axis::name);
    if (axis == axes.end()) in.fail(at, "replica-groups", "the mesh has no axis '" + name + "'");
    Part part{static_cast<size_t>(axis - axes.begin()), 1, axis->size};
    if (in.accept(':')) {
      in.expect('(', "before the outer size of a part");
      part.outer = in.integer("the outer size of a part");
      in.expect(')', "after the outer size of a part");
      part.size = in.integer("the size of a part");
    }
    bool divides =
        part.outer >= 1 && part.size >= 1 && axis->size % part.outer == 0 && axis->size / part.outer % part.size == 0;
    if (!divides) in.fail(at, "replica-groups", "axis '" + name + "' has no such part");
    for (const Part& p : parts) {
      bool apart = p.axis != part.axis || p.outer * p.size <= part.outer || part.outer * part.size <= p.outer;
      if (!apart) in.fail(at, "replica-groups", "axis '" + name + "' is named twice");
    }
    parts.push_back(part);
  } while (in.accept(','));
  in.expect('}', "after the axes of a group");
  return parts;
}

}  // namespace

std::string read_mesh_groups(Cursor& in) {
  std::vector<Axis> axes = read_mesh(in);
  int64_t count = 1;
  for (const Axis& a : axes) count *= a.size;
  std::vector<int64_t> devices = read_devices(in, count);
  std::vector<Part> parts = read_parts(in, axes);

  // A step of a part in the row-major order of the mesh.
  auto stride = [&](const Part& p) {
    int64_t inner = axes[p.axis].size / (p.outer * p.size);
    for (size_t a = p.axis + 1; a < axes.size(); ++a) inner *= axes[a].size;
    return inner;
  };
  std::vector<int64_t> members = {0};  // of the group of place 0
  for (const Part& p : parts) {
    std::vector<int64_t> more;
    for (int64_t base : members) {
      for (int64_t k = 0; k < p.size; ++k) more.push_back(base + k * stride(p));
    }
    members = std::move(more);
  }
  std::string text = "{";
  for (int64_t first = 0; first < count; ++first) {
    bool leads = std::ranges::all_of(parts, [&](const Part& p) { return first / stride(p) % p.size == 0; });
    if (!leads) continue;
    text += text.size() > 1 ? ",{" : "{";
    for (size_t k = 0; k < members.size(); ++k) {
      if (k > 0) text += ',';
      append_int(devices[first + members[k]], text);
    }
    text += '}';
  }
  return text + "}";
}

}  // namespace hlojit
