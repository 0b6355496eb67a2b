// See host_side.h.
#include "tools/host_side.h"

#include <algorithm>
#include <charconv>

#include "compiler/ir/text_attributes.h"
#include "tools/request.h"

namespace hlojit::tools {

int64_t host_channel(const Instruction& i) {
  if (text_attribute(i.attrs, "is_host_transfer") != "true") {
    throw Error(ErrorKind::kUnsupported, i.location, i.name + " is a transfer between devices, which is not evaluated");
  }
  std::string_view text = text_attribute(i.attrs, "channel_id");
  int64_t id = 0;
  std::from_chars(text.data(), text.data() + text.size(), id);
  return id;
}

HostSide HostSide::random(const Module& module, uint64_t seed) {
  HostSide host;
  auto give = [&](const Shape& s) { return dense(random_leaf(Shape::array(s.type, s.dims), ++seed)); };
  for (const auto& i : module.entry()->instructions()) {
    if (i->is(Opcode::kInfeed)) {
      for (const Shape* leaf : leaves(i->shape)) host.infeed.push_back(give(*leaf));
    } else if (i->is(Opcode::kRecv)) {
      host.received[host_channel(*i)].push_back(give(i->shape.elements.at(0)));
    } else if (i->is(Opcode::kSend)) {
      host.sent.push_back(host_channel(*i));
    }
  }
  std::ranges::sort(host.sent);
  return host;
}

HostQueues HostSide::queues(int64_t devices) const {
  HostQueues q;
  auto buffer = [](const Literal& l) { return Buffer::copy_of(l.bytes().data(), l.shape()); };
  for (int64_t d = 0; d < devices; ++d) {
    for (const Literal& l : infeed) q.push_infeed(d, buffer(l));
    for (const auto& [id, values] : received) {
      for (const Literal& l : values) q.send(d, id, buffer(l));
    }
  }
  return q;
}

std::vector<Buffer> HostSide::taken(HostQueues& queues, int64_t device) const {
  std::vector<Buffer> all;
  while (!queues.outfeed_empty(device)) all.push_back(queues.pop_outfeed(device));
  for (int64_t id : sent) all.push_back(queues.receive(device, id));
  return all;
}

}  // namespace hlojit::tools
