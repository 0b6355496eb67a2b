// See synchronous.h. The op takes the place of its start, so everything that was ordered before the
// start stays before it; what waited for the end waits for the op.
#include "compiler/passes/synchronous.h"

#include <algorithm>
#include <unordered_map>

#include "compiler/ir/async.h"
#include "compiler/ir/module.h"
#include "compiler/ir/text_attributes.h"
#include "compiler/passes/replace_ops.h"

namespace hlojit {
namespace {

class Synchroniser {
 public:
  explicit Synchroniser(Computation& c) : c_(c) {}

  bool run() {
    for (Instruction* i : c_.snapshot()) {
      if (has_trait(*i, op_trait::kStarts)) join(i);
      if (i->is(Opcode::kDomain)) replace(i, i->operand(0));
      if (i->is(Opcode::kAfterAll)) drop_values(i);
    }
    order_channels();
    release_parameters();
    if (dead_.empty()) return changed_;
    for (const auto& i : c_.instructions()) redirect(i->control_predecessors);
    c_.remove_all(dead_);
    c_.sort_topologically();
    return true;
  }

 private:
  // The verifier has seen that a start has one user: an update of the same kind, or its done.
  void join(Instruction* start) {
    std::vector<Instruction*> chain = {start};
    while (chain.size() == 1 || chain.back()->is(Opcode::kAsyncUpdate)) {
      chain.push_back(chain.back()->users()[0]);
    }
    Instruction* done = chain.back();
    Instruction* op = clone_started_op(c_, *start, start->operands(), done->shape);
    op->control_predecessors = start->control_predecessors;
    op->location = start->location;
    for (Instruction* link : chain) {
      stands_for_[link] = op;
      if (link == start) continue;
      // What a link waits for comes before all that reads the result. (The op itself need not wait,
      // and must not where that came after the start.)
      for (Instruction* user : done->users()) {
        auto& waits = user->control_predecessors;
        waits.insert(waits.end(), link->control_predecessors.begin(), link->control_predecessors.end());
      }
    }
    done->replace_all_uses_with(op);
    dead_.insert(dead_.end(), chain.begin(), chain.end());
  }

  void replace(Instruction* old, Instruction* value) {
    stands_for_[old] = value;
    hand_on_waits(*old);
    old->replace_all_uses_with(value);
    dead_.push_back(old);
  }

  // A parameter is there from the beginning: who reads it waits for what it would wait for. (A copy of it would wait,
  // too, where its memory is given to a result that this rests on.)
  void release_parameters() {
    StandIns instead;
    for (Instruction* p : c_.parameters()) {
      hand_on_waits(*p, instead);
      p->control_predecessors.clear();
    }
    redirect_waits(c_, instead);
    changed_ |= !instead.empty();
  }

  // What this device receives on a channel it may have to send itself: first send, then receive.
  void order_channels() {
    std::unordered_map<std::string_view, std::vector<Instruction*>> sends;
    for (const auto& i : c_.instructions()) {
      std::string_view channel = text_attribute(i->attrs, "channel_id");
      if (i->is(Opcode::kSend)) sends[channel].push_back(i.get());
      if (!i->is(Opcode::kRecvDone)) continue;
      // Those before it in the text: a send behind it may read what it gives.
      auto& waits = i->control_predecessors;
      for (Instruction* send : sends[channel]) {
        if (std::ranges::find(waits, send) != waits.end()) continue;
        waits.push_back(send);
        changed_ = true;
      }
    }
  }

  // after-all may be given values, which order nothing: an op runs before what reads it.
  void drop_values(Instruction* after_all) {
    std::vector<Instruction*> tokens;
    for (Instruction* o : after_all->operands()) {
      if (o->shape.is_token()) tokens.push_back(o);
    }
    if (tokens.size() == after_all->operand_count()) return;
    after_all->set_operands(std::move(tokens));
    changed_ = true;
  }

  void redirect(std::vector<Instruction*>& predecessors) {
    for (Instruction*& p : predecessors) {
      for (auto at = stands_for_.find(p); at != stands_for_.end(); at = stands_for_.find(p)) {
        p = at->second;
      }
    }
  }

  Computation& c_;
  std::vector<Instruction*> dead_;
  std::unordered_map<Instruction*, Instruction*> stands_for_;
  bool changed_ = false;
};

}  // namespace

bool synchronous(Module& module, const PipelineOptions&) {
  bool changed = false;
  for (const auto& c : module.computations()) changed |= Synchroniser(*c).run();
  return changed;
}

}  // namespace hlojit
