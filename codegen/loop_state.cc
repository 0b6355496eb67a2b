// See loop_state.h. Two looks at the loop: which fusions are small, and which of the slices that are touched are
// scalars, or arrays of a few, to everybody who touches them.
#include "codegen/loop_state.h"

#include <algorithm>
#include <map>

#include "compiler/analysis/steps.h"
#include "compiler/plan/cost.h"

namespace hlojit::codegen {
namespace {

// Beside so much work a call is nothing.
constexpr double kSmallNs = 250;
// Of all code that is inlined into one loop: LLVM takes longer over one large function than over its parts.
constexpr int64_t kMostInstructions = 1'500;
constexpr int64_t kMostKernels = 64;
// So large an array of a loop's state becomes registers as well: three or four coordinates, a matrix of 2 by 2. In
// memory its parts, stored one by one, were read back as a vector, which waits until the stores are done. (A leapfrog
// of three f64 took 17.2 us for its 1000 steps, 7.4 so; a Kalman filter of two states 2.7, 1.3; with 24 bytes the
// filter gained nothing, with 64 nothing did more.)
constexpr int64_t kRegisterBytes = 32;

template <class Visit>
void each_instruction(const Instruction& loop, const Visit& visit) {
  for (const Computation* c : loop.called) {
    for (const auto& i : c->instructions()) {
      visit(*i);
      if (i->is(Opcode::kWhile) || i->is(Opcode::kConditional)) each_instruction(*i, visit);
    }
  }
}

// Bytes of memory that some instruction may take for something so small, and whether all do.
class Slots {
 public:
  void add(const BufferSlice& s, bool known) {
    if (s.size == 0) return;
    places_[{s.kind, s.index}].push_back({s, known && s.size <= kRegisterBytes});
  }

  std::vector<BufferSlice> all() const {
    std::vector<BufferSlice> found;
    for (auto [key, places] : places_) {
      std::ranges::sort(places, {}, [](const Place& p) { return std::pair(p.slice.offset, p.slice.size); });
      for (size_t k = 0; k < places.size();) {
        BufferSlice whole = places[k].slice;
        bool fits = true;
        for (; k < places.size() && places[k].slice.offset < whole.offset + whole.size; ++k) {
          const BufferSlice& s = places[k].slice;
          whole.size = std::max(whole.size, s.offset + s.size - whole.offset);
          fits &= places[k].fits;
        }
        if (fits) found.push_back(whole);
      }
    }
    return found;
  }

 private:
  struct Place {
    BufferSlice slice;
    bool fits;
  };
  std::map<std::pair<BufferSlice::Kind, int64_t>, std::vector<Place>> places_;
};

}  // namespace

LoopState loop_state(const Instruction& loop, const BufferPlan& plan, const TargetInfo& target, bool donates) {
  LoopState state;
  int64_t instructions = 0;
  each_instruction(loop, [&](const Instruction& i) {
    if (!i.is(Opcode::kFusion)) return;
    auto kernel = plan_kernel(*i.to_apply(), target, i.attrs.backend_config);
    if (!kernel || kernel->has_products() || kernel->kind == KernelKind::kScatter) return;
    KernelCost cost = kernel_cost(*i.to_apply(), *kernel, target);
    if (cost.work_ns() > kSmallNs || instructions + cost.instructions > kMostInstructions) return;
    if (static_cast<int64_t>(state.inlined.size()) == kMostKernels) return;
    instructions += cost.instructions;
    state.inlined.insert(&i);
  });
  if (state.inlined.empty()) return state;
  Slots slots;
  auto touch = [&](const Instruction* i, bool known) {
    auto found = plan.slices.find(i);  // tokens have none
    if (found == plan.slices.end()) return;
    for (const BufferSlice& s : found->second) slots.add(s, known && !donates);
  };
  each_instruction(loop, [&](const Instruction& i) {
    if (!i.is(Opcode::kFusion) && !i.is(Opcode::kCopy) && !is_step(i)) return;
    bool known = i.is(Opcode::kCopy) || state.inlined.contains(&i);
    for (const Instruction* o : i.operands()) touch(o, known);
    touch(&i, known);
  });
  state.slots = slots.all();
  return state;
}

}  // namespace hlojit::codegen
