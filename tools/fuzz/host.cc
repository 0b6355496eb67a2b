// What a program exchanges with its host while it runs: infeed, outfeed, recv, send. All in the entry, each after the
// one before, so that the order is said; ../host_side gives and compares what goes through.
#include "tools/fuzz/draft.h"

namespace hlojit::tools::fuzz {
namespace {

using enum Opcode;

Instruction* token(Draft& s) {
  if (!s.draw.token) s.draw.token = s.b.op(kAfterAll, {});
  return s.draw.token;
}

bool in_entry(const Draft& s) { return s.draw.depth == 0; }

Attributes channel(Draft& s) {
  Attributes a;
  if (s.draw.channels == 0 || s.random.chance(0.7)) ++s.draw.channels;
  a.other.emplace_back("channel_id", std::to_string(s.draw.channels));
  a.other.emplace_back("is_host_transfer", "true");
  return a;
}

// A value that leaves: what is known of its size beforehand is all of it.
Instruction* leaving(Draft& s) {
  return s.any([](const Shape& v) { return !v.has_dynamic_dims(); });
}

Instruction* infeed(Draft& s) {
  if (!in_entry(s)) return nullptr;
  Shape given = Shape::array(s.type(), s.shape());
  if (s.random.chance(0.4)) given = Shape::tuple({given, Shape::array(s.type(), s.shape(0, 2))});
  Instruction* fed = s.b.op(kInfeed, Shape::tuple({given, Shape::token()}), {token(s)});
  s.draw.token = s.b.get_tuple_element(fed, 1);
  return s.b.get_tuple_element(fed, 0);
}

Instruction* outfeed(Draft& s) {
  Instruction* x = in_entry(s) ? leaving(s) : nullptr;
  if (!x) return nullptr;
  Instruction* out = s.random.chance(0.4) ? s.b.tuple({x, leaving(s)}) : x;
  s.draw.token = s.b.op(kOutfeed, Shape::token(), {out, token(s)});
  return x;
}

// Behind the one before, which what it takes waits for and no token tells.
Instruction* outfeed_in_turn(Draft& s) {
  Instruction* x = in_entry(s) && s.draw.token ? leaving(s) : nullptr;
  if (!x) return nullptr;
  Ints beside = x->shape.dims;
  beside.insert(beside.begin(), 1);
  Instruction* last = s.b.reshape(x, beside);
  if (s.random.chance(0.3)) last = s.b.op(kOptBarrier, {last});
  if (s.random.chance(0.5)) last = s.b.op(kMaximum, {last, last});
  last->control_predecessors.push_back(s.draw.token);
  s.draw.token = s.b.op(kOutfeed, Shape::token(), {last, s.b.op(kAfterAll, {})});
  return x;
}

Instruction* send(Draft& s) {
  Instruction* x = in_entry(s) ? leaving(s) : nullptr;
  if (!x) return nullptr;
  Attributes a = channel(s);
  s.draw.token = s.b.op(kSendDone, {s.b.op(kSend, {x, token(s)}, a)}, a);
  return x;
}

Instruction* receive(Draft& s) {
  if (!in_entry(s)) return nullptr;
  Attributes a = channel(s);
  Shape given = Shape::array(s.type(), s.shape());
  Shape state = Shape::tuple({given, Shape::scalar(DType::kU32), Shape::token()});
  Instruction* done = s.b.op(kRecvDone, {s.b.op(kRecv, state, {token(s)}, a)}, a);
  s.draw.token = s.b.get_tuple_element(done, 1);
  return s.b.get_tuple_element(done, 0);
}

}  // namespace

Family host_family() {
  return {"host queues", {{infeed, 4}, {outfeed, 4}, {outfeed_in_turn, 2}, {receive, 3}, {send, 3}}, 0.04};
}

}  // namespace hlojit::tools::fuzz
