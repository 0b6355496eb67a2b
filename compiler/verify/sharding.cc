// See sharding.h.
#include "compiler/verify/sharding.h"

#include <algorithm>
#include <set>

#include "compiler/ir/text_attributes.h"
#include "compiler/verify/rules.h"

namespace hlojit::rules {
namespace {

// Trailing dims of the tiles that cut nothing: devices in them share a part.
int64_t sharing_dims(std::string_view words) {
  if (words.find("last_tile_dim_replicate") != words.npos) return 1;
  size_t at = words.find("last_tile_dims={");
  if (at == words.npos) return 0;
  std::string_view list = words.substr(at, words.find('}', at) - at);
  return 1 + std::ranges::count(list, ',');
}

int64_t count_of(const Ints& dims) {
  int64_t n = 1;
  for (int64_t d : dims) n = mul(n, d);
  return n;
}

// The devices that are listed, or made by `<=[...]`: how many.
int64_t devices_in(std::string_view text) {
  if (text.starts_with("<=")) return count_of(numbers_in(text.substr(0, text.find(']'))));
  std::set<int64_t> seen;
  for (int64_t d : numbers_in(text)) {
    need(d >= 0, "sharding", "device {} is negative", d);
    need(seen.insert(d).second, "sharding", "device {} is named twice", d);
  }
  return std::ssize(seen);
}

// The beginning of `text` up to the space or brace that ends it; a list may be broken beside its commas.
std::string_view first_word(std::string_view text) {
  constexpr std::string_view kSpace = " \n\r\t", kEnds = " \n\r\t}";
  size_t end = text.find_first_of(kEnds);
  while (end != text.npos && text[end] != '}') {
    const size_t next = text.find_first_not_of(kSpace, end);
    const bool broken = next != text.npos && (text[next] == ',' || (end > 0 && text[end - 1] == ','));
    if (!broken) break;
    end = text.find_first_of(kEnds, next);
  }
  return text.substr(0, end);
}

// Without what only says where it came from.
std::string meaning(const std::string& sharding) {
  const size_t at = sharding.find(" metadata=");
  return at == sharding.npos ? sharding : sharding.substr(0, at) + "}";
}

}  // namespace

void need_shardings_agree(const Instruction& i) {
  std::vector<const Instruction*> all = {&i};
  const bool loop = i.is(Opcode::kWhile);
  for (const Computation* c : i.called) {
    if (!loop || c != i.while_condition()) all.push_back(c->root());
    if (loop && !c->parameters().empty()) all.push_back(c->parameters()[0]);
  }
  auto says = [](const Instruction* a) { return !a->attrs.sharding->empty(); };
  auto first = std::ranges::find_if(all, says);
  for (auto other = first; other != all.end(); ++other) {
    if (!says(*other)) continue;
    const std::string a = meaning((*first)->attrs.sharding), b = meaning((*other)->attrs.sharding);
    const bool forms = a.starts_with("{devices=") && b.starts_with("{devices=") && a.contains("<=") != b.contains("<=");
    need(a == b || forms, "sharding", "{} of {} is sharded {}, {} {}", (*first)->name, op_name(i.opcode), a,
         (*other)->name, b);
  }
}

void need_sharding(std::string_view sharding, const Shape& shape) {
  constexpr std::string_view kMaximal = "{maximal device=", kDevices = "{devices=[";
  if (sharding.starts_with(kMaximal)) devices_in(first_word(sharding.substr(kMaximal.size())));
  if (!sharding.starts_with(kDevices)) return;
  const size_t close = sharding.find(']');
  const Ints tiles = numbers_in(sharding.substr(kDevices.size(), close - kDevices.size()));
  std::string_view rest = sharding.substr(close + 1), devices = first_word(rest);
  const int64_t count = devices_in(devices), parts = count_of(tiles);
  need(count == parts, "sharding", "{} has {} devices for {} parts", sharding, count, parts);
  const int64_t cut = std::ssize(tiles) - sharing_dims(rest.substr(devices.size()));
  need(!shape.is_array() || cut == shape.rank(), "sharding", "{} cuts {} dims, the array {} has {}", sharding, cut,
       shape, shape.rank());
}

}  // namespace hlojit::rules
