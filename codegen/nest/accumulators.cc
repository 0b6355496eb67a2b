// See accumulators.h.
#include "codegen/nest/accumulators.h"

#include "codegen/number/parts.h"
#include "compiler/ir/narrow.h"

namespace hlojit::codegen {

Accumulators::Accumulators(ElementEmitter& e, Scope& root, Scope& at, const std::vector<Pass::Member>& members,
                           int outer_lanes, bool running, bool in_memory)
    : running(running), e_(e), members_(members), outer_lanes_(outer_lanes) {
  const Held held = running || in_memory ? Held::kAsOne : outer_lanes == 1 ? Held::kParts : Held::kResults;
  for (const Pass::Member& m : members) {
    reducers_.push_back(Reducer::of(*m.instruction, e.number(), held));
    std::vector<Value> values;
    for (const Instruction* init : initial_values(*m.instruction)) values.push_back(e.emit(init, {}, root));
    values =
        values.empty() ? reducers_.back().identity(at.builder) : reducers_.back().accumulated(root.builder, values);
    for (const Value& v : values) parts_ += v.imag ? 2 : 1;
    initial_.push_back(std::move(values));
  }
}

Accumulators::Carry Accumulators::start(Scope& s) const {
  Carry carried;
  for (int w : counts_) {
    for (size_t m = 0; m < members_.size(); ++m) {
      const Reducer& r = reducers_[m];
      const bool neutral = r.has_identity() && !running;
      for (const Value& v :
           r.of_lanes(s.builder, neutral ? r.identity(s.builder) : initial_[m], w > 1 ? w : outer_lanes_))
        append_parts(carried, v);
    }
  }
  return carried;
}

Accumulators::Carry Accumulators::step(Scope& s, const Carry& in, const Lanes& lanes, size_t m,
                                       std::span<const Value> values, llvm::Value* counts) const {
  Carry out = in, made;
  auto width = static_cast<size_t>(std::find(counts_.begin(), counts_.end(), lanes.count) - counts_.begin());
  const size_t from = width * parts_ + parts_before(m);
  size_t part = from;
  std::vector<Value> old = take(m, in, part), next = reducers_[m].step(s.builder, e_.number(), old, values);
  for (size_t k = 0; k < next.size(); ++k)
    append_parts(made, counts ? choose(s.builder, counts, next[k], old[k]) : next[k]);
  std::copy(made.begin(), made.end(), out.begin() + static_cast<std::ptrdiff_t>(from));
  return out;
}

Accumulators::Carry Accumulators::run(Scope& s, const Carry& in, int lanes,
                                      const std::vector<std::vector<Value>>& values,
                                      std::vector<std::vector<Value>>& results) const {
  llvm::IRBuilder<>& b = s.builder;
  Carry out;
  size_t part = 0;
  for (size_t m = 0; m < members_.size(); ++m) {
    const Reducer& r = reducers_[m];
    std::vector<Value> before = take(m, in, part), now = r.accumulated(b, values[m]);
    for (int apart = 1; apart < lanes; apart *= 2) {
      std::vector<int> moved;
      for (int k = 0; k < lanes; ++k) moved.push_back(k < apart ? k : lanes + k - apart);
      Value nothing = splat(b, r.identity(b)[0], lanes), earlier = now[0];
      earlier.v = b.CreateShuffleVector(nothing.v, now[0].v, moved);
      if (earlier.imag) earlier.imag = b.CreateShuffleVector(nothing.imag, now[0].imag, moved);
      now = r.combine(b, e_.number(), std::vector<Value>{earlier}, now);
    }
    const int widest = counts_[0];
    auto narrowed = [&](llvm::Value* x) -> llvm::Value* {
      if (lanes == 1) return b.CreateExtractElement(x, uint64_t{0});
      return b.CreateShuffleVector(x, std::vector<int>(static_cast<size_t>(lanes), 0));
    };
    auto last = [&](llvm::Value* x) {
      return b.CreateShuffleVector(x, std::vector<int>(static_cast<size_t>(widest), lanes - 1));
    };
    const bool alone = lanes == 1 && widest > 1;
    if (lanes < widest) {
      for (Value& v : before) v = map_parts(v, narrowed);
    }
    now = r.combine(b, e_.number(), before, now);
    for (const Value& v : now) {
      if (widest == 1 || alone)
        append_parts(out, splat(b, v, widest > 1 ? widest : outer_lanes_));
      else
        append_parts(out, map_parts(v, last));
    }
    results.push_back(r.finish(b, e_.number(), now));
  }
  return out;
}

Accumulators::Carry Accumulators::add(Scope& s, const Carry& total, const Carry& more) const {
  Carry out;
  size_t a = 0, b = 0;
  for (size_t w = 0; w < counts_.size(); ++w) {
    for (size_t m = 0; m < members_.size(); ++m) {
      std::vector<Value> left = take(m, total, a), right = take(m, more, b);
      for (const Value& v : reducers_[m].combine(s.builder, e_.number(), left, right)) append_parts(out, v);
    }
  }
  return out;
}

std::vector<Value> Accumulators::finish(Scope& s, const Carry& carried, size_t m) const {
  llvm::IRBuilder<>& b = s.builder;
  const Reducer& r = reducers_[m];
  std::vector<Value> total;
  for (size_t w = 0; w < counts_.size(); ++w) {
    size_t at = w * parts_ + parts_before(m);
    std::vector<Value> part = take(m, carried, at);
    if (own_lanes) part = r.across_lanes(b, e_.number(), part);
    total = total.empty() ? part : r.combine(b, e_.number(), total, part);
  }
  std::vector<Value> from = initial_[m];
  for (Value& v : from) v = splat(b, v, outer_lanes_);
  if (total.empty())
    total = from;
  else if (r.has_identity() && !initial_values(*members_[m].instruction).empty())
    total = r.combine(b, e_.number(), from, total);
  return r.finish(b, e_.number(), total);
}

std::vector<Value> Accumulators::take(size_t m, const Carry& carried, size_t& at) const {
  std::vector<Value> values;
  for (const Value& v : initial_[m]) values.push_back(take_parts(v.type, carried, at));
  return values;
}

size_t Accumulators::parts_before(size_t m) const {
  size_t n = 0;
  for (size_t k = 0; k < m; ++k) {
    for (const Value& v : initial_[k]) n += v.imag ? 2 : 1;
  }
  return n;
}

std::vector<DType> Accumulators::types() const {
  std::vector<DType> all;
  for (const std::vector<Value>& values : initial_) {
    for (const Value& v : values) {
      all.push_back(is_complex(v.type) ? component_type(v.type) : working_type(v.type));
      if (v.imag) all.push_back(all.back());
    }
  }
  return all;
}

}  // namespace hlojit::codegen
