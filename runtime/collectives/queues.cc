// Host queues and channels. A queue holds leaves, first in first out; a program that asks an empty
// one waits for the host (or for another device) as long as the run allows.
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <tuple>

#include <fmt/format.h>

#include "compiler/ir/text_attributes.h"
#include "layout/index.h"
#include "runtime/collectives/collectives.h"
#include "runtime/collectives/host_queues.h"

namespace hlojit {

struct HostQueues::Impl {
  enum class Kind { kInfeed, kOutfeed, kToDevice, kToHost };
  using Key = std::tuple<Kind, int64_t, int64_t>;  // kind, device, channel

  void push(Key key, Buffer leaf) {
    std::lock_guard lock(mutex);
    queues[key].push_back(std::move(leaf));
    changed.notify_all();
  }
  // Looks at `stop` now and then: who sets it wakes nobody.
  Buffer pop(Key key, double wait_s, std::string_view what, const bool* stop = nullptr) {
    using Seconds = std::chrono::duration<double>;
    constexpr Seconds kLook{0.02};
    std::unique_lock lock(mutex);
    auto& queue = queues[key];
    const auto start = std::chrono::steady_clock::now();
    for (Seconds left{wait_s}; !changed.wait_for(lock, std::min(left, kLook), [&] { return !queue.empty(); });) {
      if (stop && *static_cast<const volatile bool*>(stop)) {
        throw Error(ErrorKind::kFailed, fmt::format("{}: stopped at an empty queue", what));
      }
      left = Seconds{wait_s} - (std::chrono::steady_clock::now() - start);
      if (left > Seconds::zero()) continue;
      throw Error(ErrorKind::kFailed, fmt::format("{}: waited {} s at an empty queue", what, wait_s));
    }
    Buffer leaf = std::move(queue.front());
    queue.pop_front();
    return leaf;
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::map<Key, std::deque<Buffer>> queues;
};

using Kind = HostQueues::Impl::Kind;

HostQueues::HostQueues() : impl_(std::make_shared<Impl>()) {}
void HostQueues::push_infeed(int64_t device, Buffer leaf) { impl_->push({Kind::kInfeed, device, 0}, std::move(leaf)); }
Buffer HostQueues::pop_outfeed(int64_t device, double wait_s) {
  return impl_->pop({Kind::kOutfeed, device, 0}, wait_s, "outfeed");
}
bool HostQueues::outfeed_empty(int64_t device) const {
  std::lock_guard lock(impl_->mutex);
  return impl_->queues[{Kind::kOutfeed, device, 0}].empty();
}
void HostQueues::send(int64_t device, int64_t channel, Buffer leaf) {
  impl_->push({Kind::kToDevice, device, channel}, std::move(leaf));
}
Buffer HostQueues::receive(int64_t device, int64_t channel, double wait_s) {
  return impl_->pop({Kind::kToHost, device, channel}, wait_s, "receive");
}

namespace {

std::vector<Shape> leaf_shapes(const Shape& shape) {
  std::vector<Shape> all;
  for (const Shape* s : leaves(shape)) all.push_back(*s);
  return all;
}

void take(const StepCall& call, HostQueues::Impl::Key key, const std::string& name, const Shape& shape, void* to) {
  Buffer leaf = HostQueueAccess::of(*call.run.queues).pop(key, call.run.wait_s, name, call.run.stop);
  if (!compatible(leaf.shape(), shape)) {
    throw Error(ErrorKind::kFailed, fmt::format("{}: the queue gives {}, {} is wanted", name,
                                                leaf.shape().to_string(false), shape.to_string(false)));
  }
  relayout(leaf.shape(), leaf.raw(), shape, to);
}

void give(const StepCall& call, HostQueues::Impl::Key key, const Shape& shape, const void* from) {
  HostQueueAccess::of(*call.run.queues).push(key, Buffer::copy_of(from, shape));
}

// Devices that a send of `device` reaches, or where its recv comes from: by the pairs that XLA
// keeps in frontend attributes; without them a channel leads back to its own device.
std::vector<std::pair<int64_t, int64_t>> channel_pairs(const Instruction& i) {
  std::vector<std::pair<int64_t, int64_t>> pairs;
  std::string_view text = *i.attrs.frontend_attributes;
  size_t at = text.find("_xla_send_recv_source_target_pairs");
  if (at == text.npos) return pairs;
  size_t open = text.find("{{", at), close = text.find("}}", at);
  if (open == text.npos || close == text.npos) return pairs;
  Ints ids = numbers_in(text.substr(open, close - open));
  for (size_t k = 0; k + 1 < ids.size(); k += 2) pairs.emplace_back(ids[k], ids[k + 1]);
  return pairs;
}

}  // namespace

StepFunction queue_step(const Instruction& i) {
  const std::string name = std::string(op_name(i.opcode)) + " " + i.name;
  const int64_t channel = int_attribute(i.attrs, "channel_id", 0);
  const bool host = text_attribute(i.attrs, "is_host_transfer") == "true";
  switch (i.opcode) {
    case Opcode::kInfeed:
      return [name, shapes = leaf_shapes(i.shape)](const StepCall& call) {
        for (size_t k = 0; k < shapes.size(); ++k) {
          take(call, {Kind::kInfeed, call.run.device, 0}, name, shapes[k], call.buffers[k]);
        }
      };
    case Opcode::kOutfeed:
      return [shapes = leaf_shapes(i.operand(0)->shape)](const StepCall& call) {
        for (size_t k = 0; k < shapes.size(); ++k) {
          give(call, {Kind::kOutfeed, call.run.device, 0}, shapes[k], call.buffers[k]);
        }
      };
    case Opcode::kSend:
      return
          [channel, host, shapes = leaf_shapes(i.operand(0)->shape), pairs = channel_pairs(i)](const StepCall& call) {
            const int64_t me = call.run.device;
            std::vector<int64_t> targets;
            for (auto [source, target] : pairs) {
              if (source == me) targets.push_back(target);
            }
            if (pairs.empty()) targets = {me};
            for (int64_t target : host ? std::vector<int64_t>{me} : targets) {
              for (size_t k = 0; k < shapes.size(); ++k) {
                give(call, {host ? Kind::kToHost : Kind::kToDevice, target, channel}, shapes[k], call.buffers[k]);
              }
            }
          };
    case Opcode::kRecvDone: {
      std::vector<Shape> shapes = leaf_shapes(i.shape);
      size_t first = leaves(i.operand(0)->shape).size();
      auto pairs = channel_pairs(*i.operand(0));
      return [name, channel, first, shapes, pairs](const StepCall& call) {
        bool is_target = pairs.empty();
        for (auto [source, target] : pairs) is_target |= target == call.run.device;
        for (size_t k = 0; k < shapes.size(); ++k) {
          void* to = call.buffers[first + k];
          if (is_target) {
            take(call, {Kind::kToDevice, call.run.device, channel}, name, shapes[k], to);
          } else {
            std::memset(to, 0, static_cast<size_t>(physical_size(shapes[k])));
          }
        }
      };
    }
    default: return [](const StepCall&) {};  // recv and send-done: their halves do the work
  }
}

}  // namespace hlojit
