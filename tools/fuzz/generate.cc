// From a seed to a module: what it is made of, its entry, its root.
#include "tools/fuzz/generate.h"

#include <algorithm>

#include "tools/fuzz/draft.h"

namespace hlojit::tools::fuzz {
namespace {

const std::vector<int64_t> kSizes = {1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 17, 31, 32, 33, 48, 64, 65, 100, 127, 128, 130};

void draw_sizes(Draw& draw) {
  Random& r = draw.random;
  draw.most_elements = r.chance(0.08) ? 200'000 : r.chance(0.3) ? 20'000 : 3'000;
  for (int64_t n = r.between(2, 4); n > 0; --n) draw.sizes.push_back(r.pick(kSizes));
  if (r.chance(0.1)) draw.sizes.push_back(0);
  if (draw.most_elements > 100'000) draw.sizes.push_back(r.pick(Ints{509, 1000, 1024, 2049}));
}

void draw_types(Draw& draw) {
  using enum DType;
  Random& r = draw.random;
  draw.types = {kF32, kF32, kF32};
  static const std::vector<DType> kMore = {kF32, kF32, kF32, kF64, kF16, kBF16, kBF16, kS32, kS32,
                                           kU32, kS8,  kU8,  kS16, kU16, kS64,  kU64,  kPred};
  for (int64_t n = r.between(0, 4); n > 0; --n) draw.types.push_back(r.pick(kMore));
  static const std::vector<DType> kRare = {
      kS4,     kU4,     kS2,       kU2,        kF8E5M2, kF8E4M3FN, kF8E4M3FNUZ, kF8E5M2FNUZ, kF8E4M3B11FNUZ,
      kF8E4M3, kF8E3M4, kF4E2M1FN, kF8E8M0FNU, kC64,    kC128};
  if (r.chance(0.2)) draw.types.insert(draw.types.end(), static_cast<size_t>(r.between(1, 3)), r.pick(kRare));
}

void draw_ops(Draw& draw) {
  Random& r = draw.random;
  static const std::vector<Family> kFamilies = {
      elementwise_family(), complex_family(),     movement_family(), indexing_family(), scatter_family(),
      reduction_family(),   chain_family(),       dot_family(),      control_family(),  norm_family(),
      window_family(),      convolution_family(), scan_family(),     order_family(),    algebra_family(),
      effect_family(),      collective_family()};
  for (const Family& family : kFamilies) {
    if (!r.chance(family.chance)) continue;
    int times = static_cast<int>(r.between(1, 3));
    for (auto& [op, weight] : family.ops) draw.ops.insert(draw.ops.end(), static_cast<size_t>(weight * times), op);
  }
  if (draw.ops.empty()) draw.ops = {movement_family().ops[0].first};
}

// Results: values nobody reads first, then others; sometimes one twice.
std::vector<Instruction*> results(Draft& s) {
  std::vector<Instruction*> unread, chosen;
  for (Instruction* v : s.values) {
    if (v->users().empty() && !v->is(Opcode::kParameter)) unread.push_back(v);
  }
  s.random.shuffle(unread);
  for (int64_t n = s.random.between(1, 4); n > 0; --n) {
    if (!unread.empty() && s.random.chance(0.8)) {
      chosen.push_back(unread.back());
      unread.pop_back();
    } else {
      chosen.push_back(s.any());
    }
  }
  if (s.random.chance(0.15)) chosen.push_back(s.random.pick(chosen));
  return chosen;
}

Instruction* root(Draft& s) {
  std::vector<Instruction*> chosen = results(s);
  if (chosen.size() == 1 && s.random.chance(0.7)) return chosen[0];
  if (s.random.chance(0.2)) {  // nested, maybe the same inner tuple twice
    Instruction* inner = s.b.tuple(chosen);
    return s.random.chance(0.5) ? s.b.tuple({inner, inner}) : s.b.tuple({chosen[0], inner});
  }
  return s.b.tuple(chosen);
}

// All devices are given the same; their numbers make the difference.
void differ(Draft& s) {
  for (Instruction* v : std::vector(s.values)) {
    DType t = v->shape.type;
    if (is_pred(t) || is_complex(t)) continue;
    Instruction* number = s.b.convert(s.b.op(Opcode::kReplicaId, {}), t);
    s.keep(s.b.op(Opcode::kAdd, {v, s.b.broadcast(number, v->shape.dims)}));
  }
}

// The last op itself, tuple or not: roots of every kind.
Instruction* last_op(Draft& s) {
  for (int tries = 0; tries < 20; ++tries) {
    if (Instruction* made = s.random.pick(s.draw.ops)(s)) return made;
  }
  return root(s);
}

}  // namespace

std::unique_ptr<Module> generate(uint64_t seed) {
  auto module = std::make_unique<Module>("fuzz_" + std::to_string(seed));
  Draw draw{.module = *module, .random = Random(seed ^ 0x5eedf0225eedULL), .sizes = {}, .types = {}, .ops = {}};
  draw.random.next();
  draw_sizes(draw);
  draw_types(draw);
  if (draw.random.chance(0.04)) draw.devices = module->config.replica_count = draw.random.between(2, 4);
  draw_ops(draw);
  draw.tame = draw.random.chance(0.4);
  Draft s(draw, "entry", true);
  for (int64_t n = draw.random.between(1, 3); n > 0; --n) s.keep(s.b.parameter(Shape::array(s.type(), s.shape())));
  if (draw.devices > 1) differ(s);
  for (int64_t n = draw.random.chance(0.3) ? draw.random.between(0, 3) : draw.random.between(2, 16); n > 0; --n)
    s.step();
  Instruction* r = draw.random.chance(0.35) ? last_op(s) : root(s);
  s.b.build_entry(r);
  module->remove_unreachable();
  draw_layouts(*module, draw.random, draw.pinned);
  draw_aliases(*module, draw.random);
  return module;
}

}  // namespace hlojit::tools::fuzz
