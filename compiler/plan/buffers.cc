// See buffers.h. Three steps:
//
//   1. Values that must share memory are united (what `alias` prepared): loop state, updates in place,
//      branch results. A set that holds an entry parameter, a constant or a result of the entry lives
//      there; the others get arena memory.
//   2. The nested schedule is flattened into moments. A loop's instructions lie inside the moments of
//      the while, so a value of the caller that lives across the while also lives across its body.
//   3. A sweep over the moments: a set takes over the memory of an operand that dies in the very nest
//      that defines it element by element. What is over before a result of the entry begins is that result's guest,
//      if it fits; the others get places of their own (arena.h).
#include "compiler/plan/buffers.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <ranges>

#include "compiler/analysis/dataflow.h"
#include "compiler/plan/arena.h"
#include "compiler/plan/kernel.h"
#include "layout/index.h"

namespace hlojit {
namespace {

constexpr int64_t kAlignment = 64;

int64_t aligned(int64_t bytes) { return add_bytes(bytes, kAlignment - 1) / kAlignment * kAlignment; }

/// Values that share one buffer.
struct Set {
  int64_t size = 0;
  int64_t begin = std::numeric_limits<int64_t>::max(), end = -1;
  const Instruction* holder = nullptr;  // who writes it first
  std::optional<BufferSlice> fixed;     // a parameter, a constant, a result
  int64_t offset = -1;
};

class Assigner {
 public:
  explicit Assigner(const Module& module)
      : module_(module), flow_(module), computations_(sequential_computations(module)) {}

  BufferPlan run() {
    number_values();
    unite_values();
    fix_sets();
    set_moments();
    find_lifetimes();
    place();
    return describe();
  }

 private:
  // ---- 1. sets ---------------------------------------------------------------------------------------

  void number_values() {
    for (const Computation* c : computations_) {
      for (const auto& i : c->instructions()) {
        std::vector<const Shape*> shapes = leaves(i->shape);
        std::span<const ArrayValue> values = flow_.values(i.get());
        for (size_t k = 0; k < values.size(); ++k) {
          auto [at, fresh] = number_.try_emplace(values[k], parent_.size());
          if (fresh) {
            parent_.push_back(parent_.size());
            size_.push_back(0);
          }
          // A bitcast may see the same memory with more padding.
          size_[at->second] = std::max(size_[at->second], physical_size(*shapes[k]));
        }
      }
    }
  }

  size_t find(size_t n) {
    while (parent_[n] != n) n = parent_[n] = parent_[parent_[n]];
    return n;
  }
  size_t set_of(const ArrayValue& v) { return find(number_.at(v)); }
  void unite(const ArrayValue& a, const ArrayValue& b) {
    size_t x = set_of(a), y = set_of(b);
    if (x == y) return;
    parent_[y] = x;
    size_[x] = std::max(size_[x], size_[y]);
  }
  void unite(const Instruction* a, const Instruction* b) {
    std::span<const ArrayValue> x = flow_.values(a), y = flow_.values(b);
    for (size_t k = 0; k < x.size(); ++k) unite(x[k], y[k]);
  }

  void unite_values() {
    for (const Computation* c : computations_) {
      for (const auto& i : c->instructions()) {
        if (i->is(Opcode::kWhile)) {
          const Instruction* state = i->operand(0);
          unite(i.get(), state);
          unite(i->while_condition()->parameters()[0], state);
          unite(i->while_body()->parameters()[0], state);
          unite(i->while_body()->root(), state);
        } else if (i->is(Opcode::kConditional)) {
          for (size_t b = 0; b < i->called.size(); ++b) {
            unite(i->called[b]->parameters()[0], i->operand(b + 1));
            unite(i->called[b]->root(), i.get());
          }
        } else if (i->is(Opcode::kFusion)) {
          for (const Update& u : updated_parameters(*i->to_apply())) {
            unite(flow_.values(i.get())[static_cast<size_t>(u.result)],
                  flow_.values(i->operand(static_cast<size_t>(u.parameter)))[0]);
          }
        }
      }
    }
  }

  void fix(const ArrayValue& v, BufferSlice slice) {
    Set& set = sets_[set_of(v)];
    if (set.fixed && *set.fixed != slice) {
      throw Error(ErrorKind::kFailed, v.def->location,
                  v.def->name + " would have to be in two buffers at once: alias has not run");
    }
    set.fixed = slice;
  }

  void fix_sets() {
    for (auto& [value, n] : number_) {
      Set& set = sets_[find(n)];
      set.size = size_[find(n)];
    }
    int64_t leaf = 0;
    for (const Instruction* p : module_.entry()->parameters()) {
      for (const ArrayValue& v : flow_.values(p)) fix(v, {BufferSlice::Kind::kParameter, leaf++, 0, 0});
    }
    for (const Computation* c : computations_) {
      for (const auto& i : c->instructions()) {
        if (!i->is(Opcode::kConstant)) continue;
        for (const ArrayValue& v : flow_.values(i.get())) {
          fix(v, {BufferSlice::Kind::kConstant, 0, plan_.constant_bytes, 0});
          plan_.constants.push_back({i.get(), plan_.constant_bytes});
          plan_.constant_bytes = add_bytes(plan_.constant_bytes, aligned(physical_size(i->shape)));
        }
      }
    }
    leaf = 0;
    for (const ArrayValue& v : flow_.values(module_.entry()->root())) {
      fix(v, {BufferSlice::Kind::kResult, leaf++, 0, 0});
    }
  }

  // ---- 2. moments ------------------------------------------------------------------------------------

  void set_moments() {
    std::unordered_map<const Computation*, int64_t> length;
    for (const Computation* c : computations_) {  // callees first
      int64_t total = 1;                          // the last moment: its root is read
      for (const auto& i : c->instructions()) {
        ++total;
        if (nests(*i)) {
          for (const Computation* called : i->called) total += length.at(called);
        }
      }
      length[c] = total;
    }
    std::unordered_map<const Computation*, int64_t> start = {{module_.entry(), 0}};
    for (auto at = computations_.rbegin(); at != computations_.rend(); ++at) {
      int64_t now = start.at(*at);
      for (const auto& i : (*at)->instructions()) {
        Moments& m = moments_[i.get()];
        m.begin = now++;
        if (nests(*i)) {
          for (const Computation* called : i->called) {
            start[called] = now;
            now += length.at(called);
          }
        }
        m.end = now - 1;
      }
      last_[*at] = now;
    }
  }

  static bool nests(const Instruction& i) { return i.is(Opcode::kWhile) || i.is(Opcode::kConditional); }

  void live(const ArrayValue& v, int64_t begin, int64_t end, const Instruction* writer) {
    Set& set = sets_.at(set_of(v));
    if (writer && begin < set.begin) set.holder = writer;
    set.begin = std::min(set.begin, begin);
    set.end = std::max(set.end, end);
  }

  void find_lifetimes() {
    for (const Computation* c : computations_) {
      for (const auto& i : c->instructions()) {
        if (forwards(*i)) continue;
        Moments m = moments_.at(i.get());
        for (const ArrayValue& v : flow_.values(i.get())) {
          if (v.def == i.get()) live(v, m.begin, m.end, i.get());
        }
        for (const ArrayValue& v : flow_.reads(i.get())) live(v, m.begin, m.end, nullptr);
      }
      for (const ArrayValue& v : flow_.values(c->root())) live(v, last_.at(c), last_.at(c), nullptr);
    }
  }

  // ---- 3. places -------------------------------------------------------------------------------------

  static int64_t stretch_of(const Set& set) {
    constexpr int64_t kScalarBytes = 8;
    return set.size <= kScalarBytes ? set.size : 0;
  }

  /// Tenants of one stretch of the arena, but for those that are guests of a result.
  struct Stretch {
    std::vector<Tenant> tenants;
    std::vector<int64_t> host;  // the result that each is a guest of, or -1
  };

  void place() {
    std::vector<size_t> order;
    for (auto& [n, set] : sets_) {
      if (!set.fixed && set.size > 0) order.push_back(n);
    }
    std::ranges::sort(
        order, [&](size_t a, size_t b) { return std::pair(sets_.at(a).begin, a) < std::pair(sets_.at(b).begin, b); });
    // Scalars of one size have a stretch of their own: with others in turn they are stored by bytes where loops carry
    // them in registers, and read as words, for which the processor waits. (A counter beside a condition: 6.8 ns a
    // turn.)
    std::map<int64_t, Stretch> stretches;
    std::unordered_map<size_t, size_t> tenant;  // of a set, in its stretch
    std::multimap<int64_t, size_t> ends;        // sets by their last moment
    for (size_t n : order) {
      const Set& set = sets_.at(n);
      auto dying = ends.equal_range(set.begin);
      auto heir = std::find_if(dying.first, dying.second, [&](const auto& e) {
        return sets_.at(e.second).size == set.size && takes_over(set, e.second);
      });
      std::vector<Tenant>& tenants = stretches[stretch_of(set)].tenants;
      if (heir == dying.second) {
        tenant[n] = tenants.size();
        tenants.push_back({set.size, set.begin, set.end});
      } else {
        tenant[n] = tenant.at(heir->second);
        tenants[tenant[n]].end = set.end;
        ends.erase(heir);
      }
      ends.emplace(set.end, n);
    }
    for (auto& [scalars, stretch] : stretches) {
      stretch.host.assign(stretch.tenants.size(), -1);
      if (scalars == 0) find_hosts(stretch);
      settle(stretch);
    }
    for (size_t n : order) {
      Set& set = sets_.at(n);
      const Stretch& stretch = stretches.at(stretch_of(set));
      set.offset = stretch.tenants[tenant.at(n)].offset;
      if (int64_t host = stretch.host[tenant.at(n)]; host >= 0)
        set.fixed = BufferSlice{BufferSlice::Kind::kResult, host, 0, 0};
      else
        plan_.allocations.push_back({set.holder, set.offset, set.size, set.begin, set.end});
    }
  }

  /// Results as hosts of what is over before them: the largest tenants first, each in the smallest result that is free
  /// for as long. (One that may be a donor's memory holds a parameter until then.) Columns of 500x500 sorted as rows
  /// need half the memory so.
  void find_hosts(Stretch& stretch) {
    constexpr size_t kMost = 100;  // of either, the largest, so that the work is bounded
    struct Host {
      int64_t size, begin, result;
      std::vector<const Tenant*> guests;
    };
    std::vector<Host> hosts;
    const std::vector<int64_t> donor = donors(module_);
    const std::vector<const Shape*> shapes = leaves(module_.entry()->root()->shape);
    for (const auto& [n, set] : sets_) {
      if (!set.fixed || set.fixed->kind != BufferSlice::Kind::kResult) continue;
      const auto result = static_cast<size_t>(set.fixed->index);
      if (donor[result] < 0) hosts.push_back({physical_size(*shapes[result]), set.begin, set.fixed->index, {}});
    }
    std::ranges::sort(hosts, {}, [](const Host& h) { return std::pair(h.size, h.result); });
    if (hosts.size() > kMost) hosts.erase(hosts.begin(), hosts.end() - kMost);
    std::vector<size_t> order(stretch.tenants.size());
    std::iota(order.begin(), order.end(), size_t{0});
    // Of equal ones the last: what is read as the result is made, and what that was made of before, can share a place.
    std::ranges::stable_sort(order, std::greater(),
                             [&](size_t k) { return std::pair(stretch.tenants[k].size, stretch.tenants[k].end); });
    for (size_t k : order | std::views::take(kMost)) {
      const Tenant& t = stretch.tenants[k];
      auto apart = [&](const Tenant* other) { return other->end < t.begin || t.end < other->begin; };
      auto host = std::ranges::find_if(hosts, [&](const Host& h) {
        return t.size <= h.size && t.end < h.begin && std::ranges::all_of(h.guests, apart);
      });
      if (host == hosts.end()) continue;
      host->guests.push_back(&t);
      stretch.host[k] = host->result;
    }
  }

  void settle(Stretch& stretch) {
    std::vector<Tenant> housed;
    std::vector<size_t> numbers;
    for (size_t k = 0; k < stretch.tenants.size(); ++k) {
      if (stretch.host[k] >= 0) continue;
      housed.push_back(stretch.tenants[k]);
      housed.back().size = aligned(housed.back().size);
      numbers.push_back(k);
    }
    const int64_t first = plan_.arena_bytes;
    plan_.arena_bytes = add_bytes(first, place_tenants(housed));
    for (size_t k = 0; k < housed.size(); ++k) stretch.tenants[numbers[k]].offset = first + housed[k].offset;
  }

  /// The nest that first writes `set` reads `operand` only where it writes. (A product could, too, but where it may
  /// compute nothing twice its tiles end in narrower vectors, for which a smaller arena is no good price: three of
  /// 100x60 in turn took 8.7 us, 7.3 apart.)
  bool takes_over(const Set& set, size_t operand) {
    const Instruction* writer = set.holder;
    if (!writer || !writer->is(Opcode::kFusion) || moments_.at(writer).begin != set.begin) return false;
    const auto contracts = [](const auto& i) { return i->is(Opcode::kDot) || i->is(Opcode::kConvolution); };
    if (std::ranges::any_of(writer->to_apply()->instructions(), contracts)) return false;
    int64_t parameter = -1;
    for (size_t k = 0; k < writer->operand_count(); ++k) {
      if (set_of(flow_.values(writer->operand(k))[0]) != operand) continue;
      if (parameter >= 0) return false;
      parameter = static_cast<int64_t>(k);
    }
    if (parameter < 0) return false;
    std::span<const ArrayValue> results = flow_.values(writer);
    for (size_t k = 0; k < results.size(); ++k) {
      if (&sets_.at(set_of(results[k])) == &set) {
        return reads_in_place(*writer->to_apply(), parameter, static_cast<int64_t>(k));
      }
    }
    return false;
  }

  BufferPlan describe() {
    for (const Computation* c : computations_) {
      for (const auto& i : c->instructions()) {
        std::vector<const Shape*> shapes = leaves(i->shape);
        std::span<const ArrayValue> values = flow_.values(i.get());
        if (values.empty()) continue;
        std::vector<BufferSlice>& slices = plan_.slices[i.get()];
        for (size_t k = 0; k < values.size(); ++k) {
          const Set& set = sets_.at(set_of(values[k]));
          BufferSlice slice =
              set.fixed.value_or(BufferSlice{BufferSlice::Kind::kArena, 0, std::max<int64_t>(set.offset, 0), 0});
          slice.size = physical_size(*shapes[k]);
          slices.push_back(slice);
        }
      }
    }
    return std::move(plan_);
  }

  struct Moments {
    int64_t begin = 0, end = 0;
  };

  const Module& module_;
  Dataflow flow_;
  std::vector<Computation*> computations_;
  BufferPlan plan_;
  std::unordered_map<ArrayValue, size_t, ArrayValueHash> number_;
  std::vector<size_t> parent_;  // union-find over value numbers
  std::vector<int64_t> size_;   // bytes of the set, at its representative
  std::unordered_map<size_t, Set> sets_;
  std::unordered_map<const Instruction*, Moments> moments_;
  std::unordered_map<const Computation*, int64_t> last_;
};

}  // namespace

BufferPlan assign_buffers(const Module& module) {
  for (const Instruction* p : module.entry()->parameters()) {
    if (p->shape.type == DType::kOpaque) {
      throw Error(ErrorKind::kUnsupported, p->location, "opaque parameters are not compiled");
    }
  }
  return Assigner(module).run();
}

std::string BufferPlan::report() const {
  // The moment with the most bytes: lifetimes begin there, so only begins need a look.
  std::multimap<int64_t, int64_t> ends;
  int64_t now = 0, most = 0, peak = -1;
  for (const Allocation& a : allocations) {
    while (!ends.empty() && ends.begin()->first < a.begin) {
      now -= ends.begin()->second;
      ends.erase(ends.begin());
    }
    now += a.size;
    ends.emplace(a.end, a.size);
    if (now > most) {
      most = now;
      peak = a.begin;
    }
  }
  std::string text = fmt::format("arena {} bytes, constants {} bytes, peak {} bytes at moment {}\n", arena_bytes,
                                 constant_bytes, most, peak);
  std::vector<const Allocation*> held;
  for (const Allocation& a : allocations) {
    if (a.begin <= peak && peak <= a.end) held.push_back(&a);
  }
  std::ranges::sort(held, [](const Allocation* a, const Allocation* b) {
    return std::pair(-a->size, a->offset) < std::pair(-b->size, b->offset);
  });
  for (const Allocation* a : held) {
    text += fmt::format("  {:>12} bytes at {:>12}  {}  {}  moments {}-{}\n", a->size, a->offset, a->holder->name,
                        a->holder->shape.to_string(), a->begin, a->end);
  }
  return text;
}

}  // namespace hlojit
