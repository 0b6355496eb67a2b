// See sdy.h.
#include "runtime/pjrt/sdy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <numeric>

#include "hlojit/hlojit.h"

namespace hlojit::pjrt {
namespace {

// A cursor over the text; spaces between words do not count.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  bool at(std::string_view word) {
    space();
    return text_.substr(at_).starts_with(word);
  }
  bool take(std::string_view word) {
    if (!at(word)) return false;
    at_ += word.size();
    return true;
  }
  void expect(std::string_view word) {
    if (!take(word)) refuse();
  }
  int64_t number() {
    space();
    int64_t n = 0;
    size_t from = at_;
    for (; at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])); ++at_)
      n = n * 10 + (text_[at_] - '0');
    if (from == at_ || n < 0) refuse();
    return n;
  }
  std::string quoted() {
    expect("\"");
    size_t end = text_.find('"', at_);
    if (end == text_.npos) refuse();
    std::string name(text_.substr(at_, end - at_));
    at_ = end + 1;
    return name;
  }
  std::string name() {
    space();
    size_t from = at_;
    auto is_part = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '-' || c == '$';
    };
    if (at_ < text_.size() && text_[at_] == '"') return quoted();
    while (at_ < text_.size() && is_part(text_[at_])) ++at_;
    if (from == at_) refuse();
    return std::string(text_.substr(from, at_ - from));
  }
  /// f() for each element up to `close`.
  template <class F>
  void list(std::string_view close, F f) {
    while (!take(close)) {
      f();
      if (!take(",") && !at(close)) refuse();
    }
  }
  [[noreturn]] void refuse() const {
    throw Error(ErrorKind::kUnsupported, fmt::format("the sharding {} cannot be read", text_));
  }

 private:
  void space() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  std::string_view text_;
  size_t at_ = 0;
};

int64_t size_of(const Mesh& mesh) {
  int64_t n = 1;
  for (const auto& a : mesh.axes) n *= a.size;
  return n;
}

// <["x"=2, "y"=2], device_ids=[3,2,1,0]>
Mesh read_mesh(Reader& in) {
  Mesh mesh;
  in.expect("<[");
  in.list("]", [&] {
    std::string name = in.quoted();
    in.expect("=");
    mesh.axes.push_back({std::move(name), in.number()});
  });
  if (in.take(",")) {
    in.expect("device_ids=[");
    in.list("]", [&] { mesh.devices.push_back(in.number()); });
  }
  in.expect(">");
  if (mesh.devices.empty()) {
    mesh.devices.resize(static_cast<size_t>(size_of(mesh)));
    std::iota(mesh.devices.begin(), mesh.devices.end(), 0);
  }
  return mesh;
}

int64_t axis_size(const Mesh& mesh, std::string_view name, const Reader& in) {
  for (const auto& a : mesh.axes) {
    if (a.name == name) return a.size;
  }
  in.refuse();
}

// "x" or "x":(2)4
NamedSharding::Factor read_factor(Reader& in, const Mesh& mesh) {
  NamedSharding::Factor f{in.quoted(), 1, 0};
  int64_t whole = axis_size(mesh, f.axis, in);
  f.size = whole;
  if (in.take(":(")) {
    int64_t above = in.number();
    in.expect(")");
    f.size = in.number();
    if (above * f.size == 0 || whole % (above * f.size) != 0) in.refuse();
    f.divisor = whole / (above * f.size);
  }
  return f;
}

// <@mesh, [{"x"}, {"y", ?}p1], replicated={"z"}, unreduced={"w"}>
NamedSharding read_sharding(Reader& in, const Meshes& meshes, int64_t devices) {
  NamedSharding out;
  in.expect("<@");
  auto found = meshes.find(in.name());
  if (found == meshes.end() || std::ssize(found->second.devices) != devices || size_of(found->second) != devices)
    in.refuse();
  out.mesh = &found->second;
  in.expect(",");
  in.expect("[");
  in.list("]", [&] {
    auto& factors = out.dims.emplace_back();
    in.expect("{");
    in.list("}", [&] {
      if (!in.take("?")) factors.push_back(read_factor(in, *out.mesh));
    });
    if (in.take("p")) in.number();
  });
  while (in.take(",")) {
    const bool sum = in.take("unreduced={");
    if (!sum && !in.take("replicated={") && !in.take("reduced={")) in.refuse();
    in.list("}", [&] {
      NamedSharding::Factor f = read_factor(in, *out.mesh);
      if (sum) out.unreduced.push_back(std::move(f));
    });
  }
  in.expect(">");
  return out;
}

bool is_among(const std::string& name, const std::vector<std::string>& names) {
  return std::ranges::find(names, name) != names.end();
}

// A device's coordinates, an axis each, by its place in the grid.
std::vector<int64_t> coordinates(const Mesh& mesh, int64_t place) {
  std::vector<int64_t> at(mesh.axes.size());
  for (size_t a = at.size(); a-- > 0; place /= mesh.axes[a].size) at[a] = place % mesh.axes[a].size;
  return at;
}

}  // namespace

std::string frontend_attribute(std::string_view attributes, std::string_view name) {
  for (size_t found = attributes.find(name); found != attributes.npos; found = attributes.find(name, found + 1)) {
    size_t at = found + name.size();
    if (found == 0 || (attributes[found - 1] != '{' && attributes[found - 1] != ',') || attributes.substr(at, 1) != "=")
      continue;
    ++at;
    bool quoted = attributes.substr(at, 1) == "\"";
    std::string out;
    int depth = 0;
    for (at += quoted ? 1 : 0; at < attributes.size(); ++at) {
      char c = attributes[at];
      if (quoted && c == '"') break;
      if (!quoted && depth == 0 && (c == ',' || c == '}')) break;
      if (c == '{') ++depth;
      if (c == '}') --depth;
      if (c == '\\' && at + 1 < attributes.size()) c = attributes[++at];
      out.push_back(c);
    }
    return out;
  }
  return {};
}

Meshes read_meshes(std::string_view text) {
  Meshes out;
  Reader in(text);
  in.expect("{");
  in.list("}", [&] {
    std::string name = in.name();
    in.expect("=");
    in.expect("#sdy.mesh");
    out.emplace(std::move(name), read_mesh(in));
  });
  return out;
}

std::vector<NamedSharding> read_named_shardings(std::string_view text, const Meshes& meshes, int64_t devices) {
  std::vector<NamedSharding> out;
  Reader in(text);
  in.expect("#sdy.sharding_per_value<[");
  in.list("]", [&] { out.push_back(read_sharding(in, meshes, devices)); });
  return out;
}

std::vector<std::string> read_manual_axes(std::string_view text) {
  std::vector<std::string> out;
  Reader in(text);
  in.expect("#sdy<manual_axes{");
  in.list("}", [&] { out.push_back(in.quoted()); });
  return out;
}

Shards shards_along(const NamedSharding& sharding, const std::vector<std::string>& axes, int64_t devices) {
  const Mesh& mesh = *sharding.mesh;
  Shards out = no_shards(sharding.dims.size(), devices);
  // Cuts `tiles` further by a factor; part(device) is what that counts.
  auto cut = [&](const NamedSharding::Factor& f, int64_t& tiles, auto part) {
    if (!is_among(f.axis, axes)) return;
    tiles *= f.size;
    auto axis = static_cast<size_t>(std::ranges::find(mesh.axes, f.axis, &Mesh::Axis::name) - mesh.axes.begin());
    for (size_t place = 0; place < mesh.devices.size(); ++place) {
      int64_t& k = part(static_cast<size_t>(mesh.devices[place]));
      k = k * f.size + coordinates(mesh, static_cast<int64_t>(place))[axis] / f.divisor % f.size;
    }
  };
  for (size_t d = 0; d < sharding.dims.size(); ++d) {
    for (const auto& f : sharding.dims[d]) {
      cut(f, out.tiles[d], [&](size_t device) -> int64_t& { return out.of.at(device)[d]; });
    }
  }
  std::vector<int64_t> term(static_cast<size_t>(devices), 0);
  for (const auto& f : sharding.unreduced) {
    cut(f, out.terms, [&](size_t device) -> int64_t& { return term.at(device); });
  }
  if (out.terms > 1) out.term = std::move(term);
  return out;
}

std::vector<std::vector<int64_t>> groups_along(const Mesh& mesh, const std::vector<std::string>& axes) {
  std::map<std::vector<int64_t>, std::vector<int64_t>> groups;  // by the coordinates of the other axes
  for (size_t place = 0; place < mesh.devices.size(); ++place) {
    std::vector<int64_t> at = coordinates(mesh, static_cast<int64_t>(place));
    for (size_t a = 0; a < at.size(); ++a) {
      if (is_among(mesh.axes[a].name, axes)) at[a] = 0;
    }
    groups[at].push_back(mesh.devices[place]);
  }
  std::vector<std::vector<int64_t>> out;
  for (auto& [at, group] : groups) out.push_back(std::move(group));
  return out;
}

}  // namespace hlojit::pjrt
