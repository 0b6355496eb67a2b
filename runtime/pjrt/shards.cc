// See shards.h.
#include "runtime/pjrt/shards.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <numeric>
#include <ranges>

namespace hlojit::pjrt {
namespace {

[[noreturn]] void refuse(std::string_view text) {
  throw Error(ErrorKind::kUnsupported,
              fmt::format("programs with the sharding {} do not run on several devices", text));
}

int64_t product(const std::vector<int64_t>& v) {
  return std::accumulate(v.begin(), v.end(), int64_t{1}, std::multiplies<>());
}

// Numbers between the two characters, which `at` passes: [2,1,2].
std::vector<int64_t> numbers(std::string_view text, size_t& at, char open, char close) {
  if (at >= text.size() || text[at] != open) refuse(text);
  std::vector<int64_t> out;
  for (++at; at < text.size() && text[at] != close; ++at) {
    int64_t n = 0;
    if (!std::isdigit(static_cast<unsigned char>(text[at]))) refuse(text);
    while (at < text.size() && std::isdigit(static_cast<unsigned char>(text[at]))) n = n * 10 + (text[at++] - '0');
    out.push_back(n);
    if (at >= text.size() || text[at] == close) break;
  }
  if (at >= text.size()) refuse(text);
  ++at;
  return out;
}

// The numbers 0, 1, ... in the shape `dims`, transposed by `order`.
std::vector<int64_t> transposed_iota(const std::vector<int64_t>& dims, const std::vector<int64_t>& order,
                                     std::string_view text) {
  if (order.size() != dims.size()) refuse(text);
  std::vector<int64_t> strides(dims.size(), 1), out;
  for (size_t d = dims.size(); d-- > 1;) strides[d - 1] = strides[d] * dims[d];
  std::vector<int64_t> at(dims.size(), 0);
  for (int64_t k = 0, n = product(dims); k < n; ++k) {
    int64_t value = 0;
    for (size_t d = 0; d < order.size(); ++d) value += at[d] * strides.at(static_cast<size_t>(order[d]));
    out.push_back(value);
    for (size_t d = order.size(); d-- > 0;) {
      if (++at[d] < dims[static_cast<size_t>(order[d])]) break;
      at[d] = 0;
    }
  }
  return out;
}

// Which dimension of the tiles counts addends, by the words behind the devices: `last_tile_dims={replicated,
// unreduced}` names the dimensions from `rank` on. `count` if none does.
size_t addend_dimension(std::string_view text, size_t rank, size_t count) {
  constexpr std::string_view kWords = "last_tile_dims={", kAddends = "unreduced";
  size_t at = text.find(kWords);
  if (at == text.npos) return count;
  text = text.substr(at + kWords.size());
  text = text.substr(0, text.find('}'));
  at = text.find(kAddends);
  if (at == text.npos) return count;
  return rank + static_cast<size_t>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), ','));
}

// Copies between a part and its place in the whole array, both with the last dimension fastest.
struct BoxCopy {
  std::vector<int64_t> whole, part, offset;
  size_t element;
  bool out_of_whole;

  void run(char* at_whole, char* at_part, size_t d) const {
    if (d == whole.size()) return move(at_whole, at_part, element);
    size_t whole_step = element, part_step = element;
    for (size_t k = d + 1; k < whole.size(); ++k) {
      whole_step *= static_cast<size_t>(whole[k]);
      part_step *= static_cast<size_t>(part[k]);
    }
    at_whole += static_cast<size_t>(offset[d]) * whole_step;
    if (whole_step == part_step) return move(at_whole, at_part, static_cast<size_t>(part[d]) * part_step);
    for (int64_t k = 0; k < part[d]; ++k)
      run(at_whole + static_cast<size_t>(k) * whole_step, at_part + static_cast<size_t>(k) * part_step, d + 1);
  }
  void move(char* at_whole, char* at_part, size_t bytes) const {
    out_of_whole ? std::memcpy(at_part, at_whole, bytes) : std::memcpy(at_whole, at_part, bytes);
  }
};

// A number a dimension, from the dimension that is slowest in memory to the fastest.
std::vector<int64_t> in_memory_order(const std::vector<int64_t>& numbers, const Layout& layout) {
  std::vector<int64_t> out;
  for (int64_t d : layout.minor_to_major | std::views::reverse) out.push_back(numbers[static_cast<size_t>(d)]);
  return out;
}

// Copies a device's part out of the whole array, or into it; both have one order of dimensions, and no tiles.
void copy_part(char* at_whole, const Shape& whole, char* at_part, const Shape& part, const std::vector<int64_t>& tile,
               bool out_of_whole) {
  if (part.element_count() == 0) return;
  std::vector<int64_t> offset;
  for (size_t d = 0; d < tile.size(); ++d) offset.push_back(tile[d] * part.dims[d]);
  BoxCopy copy{in_memory_order(whole.dims, whole.layout), in_memory_order(part.dims, whole.layout),
               in_memory_order(offset, whole.layout), static_cast<size_t>(dtype_bytes(whole.type)), out_of_whole};
  copy.run(at_whole, at_part, 0);
}

}  // namespace

bool Shards::whole() const {
  return terms == 1 && std::all_of(tiles.begin(), tiles.end(), [](int64_t n) { return n == 1; });
}

Shards no_shards(size_t rank, int64_t devices) {
  Shards out;
  out.tiles.assign(rank, 1);
  out.of.assign(static_cast<size_t>(devices), std::vector<int64_t>(rank, 0));
  return out;
}

Shards read_shards(std::string_view text, const Shape& shape, int64_t devices) {
  const size_t rank = shape.dims.size();
  Shards out = no_shards(rank, devices);
  if (text.empty() || text.starts_with("{replicated") || text.starts_with("{maximal")) return out;
  if (text.starts_with("{unreduced")) {
    out.terms = devices;
    out.term.resize(static_cast<size_t>(devices));
    std::iota(out.term.begin(), out.term.end(), 0);
    return out;
  }
  constexpr std::string_view kTiled = "{devices=";
  if (!text.starts_with(kTiled)) refuse(text);
  size_t at = kTiled.size();
  std::vector<int64_t> tiles = numbers(text, at, '[', ']'), order;
  if (text.substr(at).starts_with("<=")) {
    at += 2;
    std::vector<int64_t> dims = numbers(text, at, '[', ']'), permutation(dims.size());
    std::iota(permutation.begin(), permutation.end(), 0);
    if (at < text.size() && text[at] == 'T') permutation = numbers(text, ++at, '(', ')');
    order = transposed_iota(dims, permutation, text);
  } else {
    for (; at < text.size() && (std::isdigit(static_cast<unsigned char>(text[at])) || text[at] == ',');) {
      int64_t n = 0;
      while (at < text.size() && std::isdigit(static_cast<unsigned char>(text[at]))) n = n * 10 + (text[at++] - '0');
      order.push_back(n);
      if (at < text.size() && text[at] == ',') ++at;
    }
  }
  if (tiles.size() < rank || product(tiles) != devices || static_cast<int64_t>(order.size()) != devices) refuse(text);
  // Of the dimensions behind the array's own only that of the addends tells devices apart.
  const size_t addends = addend_dimension(text.substr(at), rank, tiles.size());
  if (addends < tiles.size()) {
    out.terms = tiles[addends];
    out.term.resize(static_cast<size_t>(devices));
  }
  out.tiles.assign(tiles.begin(), tiles.begin() + static_cast<std::ptrdiff_t>(rank));
  for (size_t d = 0; d < rank; ++d) {
    if (out.tiles[d] == 0 || shape.dims[d] % out.tiles[d] != 0) {
      throw Error(ErrorKind::kUnsupported,
                  fmt::format("{} does not fall into equal parts by the sharding {}", shape.to_string(false), text));
    }
  }
  for (size_t k = 0; k < order.size(); ++k) {
    auto tile = static_cast<int64_t>(k);
    const auto device = static_cast<size_t>(order[k]);
    for (size_t d = tiles.size(); d-- > 0; tile /= tiles[d]) {
      if (d < rank) out.of.at(device)[d] = tile % tiles[d];
      if (d == addends) out.term.at(device) = tile % tiles[d];
    }
  }
  return out;
}

std::vector<std::string_view> split_sharding(std::string_view text, size_t count) {
  if (!text.starts_with("{{")) return std::vector<std::string_view>(count, text);
  std::vector<std::string_view> out;
  int depth = 0;
  size_t from = 0;
  for (size_t k = 1; k + 1 < text.size(); ++k) {
    if (text[k] == '{' && depth++ == 0) from = k;
    if (text[k] == '}' && --depth == 0) out.push_back(text.substr(from, k + 1 - from));
  }
  if (out.size() != count) refuse(text);
  return out;
}

Shape shard_shape(const Shape& whole, const Shards& shards) {
  Shape part = whole;
  for (size_t d = 0; d < part.dims.size(); ++d) part.dims[d] /= shards.tiles[d];
  return part;
}

Buffer join_shards(const Shape& whole, const Shards& shards, const std::vector<Buffer>& parts) {
  if (shards.whole()) return parts.at(0);
  Buffer out = Buffer::allocate(whole);
  Shape part = shard_shape(whole, shards);
  for (size_t d = 0; d < parts.size(); ++d) {
    copy_part(static_cast<char*>(out.mutable_raw()), whole, const_cast<char*>(parts[d].data<char>()), part,
              shards.of[d], false);
  }
  return out;
}

Buffer cut_shard(const Buffer& whole, const Shards& shards, size_t device) {
  if (shards.whole()) return whole;
  Shape part = shard_shape(whole.shape(), shards);
  Buffer out = Buffer::allocate(part);
  copy_part(const_cast<char*>(whole.data<char>()), whole.shape(), static_cast<char*>(out.mutable_raw()), part,
            shards.of[device], true);
  return out;
}

}  // namespace hlojit::pjrt
