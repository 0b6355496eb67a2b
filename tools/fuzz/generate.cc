// From a seed to a module: what it is made of, its entry, its root.
#include "tools/fuzz/generate.h"

#include <algorithm>

#include "tools/fuzz/draft.h"

namespace hlojit::tools::fuzz {
namespace {

using enum Opcode;

const std::vector<int64_t> kSizes = {1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 17, 31, 32, 33, 48, 64, 65, 100, 127, 128, 130};

void draw_sizes(Draw& draw) {
  Random& r = draw.random;
  draw.most_elements = r.chance(0.08) ? 200'000 : r.chance(0.3) ? 20'000 : 3'000;
  for (int64_t n = r.between(2, 4); n > 0; --n) draw.sizes.push_back(r.pick(kSizes));
  if (r.chance(0.1)) draw.sizes.push_back(0);
  if (r.chance(0.02)) draw.sizes.insert(draw.sizes.end(), 3, 0);  // hardly any array has an element
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

// FNV-1a: the same on every machine.
uint64_t hash(std::string_view text) {
  uint64_t h = 0xcbf29ce484222325;
  for (char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return h;
}

const std::vector<Family>& families() {
  static const std::vector<Family> kFamilies = {elementwise_family(),
                                                complex_family(),
                                                movement_family(),
                                                indexing_family(),
                                                scatter_family(),
                                                reduction_family(),
                                                chain_family(),
                                                dot_family(),
                                                control_family(),
                                                applied_family(),
                                                norm_family(),
                                                window_family(),
                                                convolution_family(),
                                                scan_family(),
                                                order_family(),
                                                algebra_family(),
                                                effect_family(),
                                                collective_family(),
                                                size_family(),
                                                long_sum_family(),
                                                selection_family(),
                                                batched_gather_family(),
                                                applied_twice_family(),
                                                running_window_family(),
                                                joined_window_family(),
                                                host_family(),
                                                batched_dot_family(),
                                                spread_dot_family(),
                                                joint_sum_family(),
                                                tiled_order_family(),
                                                kept_fusion_family(),
                                                transposed_gather_family(),
                                                wide_convolution_family(),
                                                moved_product_family(),
                                                counted_loop_family(),
                                                first_family(),
                                                known_gather_family(),
                                                stack_family(),
                                                halves_family(),
                                                counter_family(),
                                                long_row_family(),
                                                spread_convolution_family(),
                                                wide_column_family(),
                                                part_update_family(),
                                                repeats_family(),
                                                tuple_of_one_family(),
                                                kept_part_family(),
                                                shared_branch_family(),
                                                alike_family(),
                                                part_row_family(),
                                                divided_window_family(),
                                                applied_in_turn_family(),
                                                row_choice_family(),
                                                like_arms_family(),
                                                short_row_family(),
                                                narrowed_sum_family(),
                                                bfloat_row_family(),
                                                row_number_family(),
                                                rows_apart_family(),
                                                rows_by_long_columns_family(),
                                                width_family(),
                                                top_k_call_family(),
                                                short_loop_family(),
                                                factor_call_family(),
                                                element_places_family(),
                                                falling_power_family(),
                                                part_of_word_family(),
                                                dear_side_family(),
                                                parts_family(),
                                                rows_of_rounds_family(),
                                                products_of_rounds_family(),
                                                put_back_family(),
                                                part_product_family(),
                                                states_in_part_family(),
                                                places_of_rows_family()};
  return kFamilies;
}

void draw_ops(Draw& draw, const std::vector<std::string>& always) {
  uint64_t seed = draw.random.next();
  for (const Family& family : families()) {
    // A draw of its own for each: a family that is added leaves modules that do without it as they were.
    Random own(seed ^ hash(family.name));
    own.next();
    bool drawn = own.chance(family.chance);
    if (!drawn && std::ranges::find(always, family.name) == always.end()) continue;
    int times = static_cast<int>(own.between(1, 3));
    for (auto& [op, weight] : family.ops) draw.ops.insert(draw.ops.end(), static_cast<size_t>(weight * times), op);
  }
  if (draw.ops.empty()) draw.ops = {movement_family().ops[0].first};
}

// Arrays, now and then tuples of them.
Shape parameter_shape(Draft& s, int depth) {
  if (depth > 1 || !s.random.chance(0.08)) return Shape::array(s.type(), s.shape());
  Shape tuple = Shape::tuple({});
  for (int64_t n = s.random.between(0, 3); n > 0; --n) tuple.elements.push_back(parameter_shape(s, depth + 1));
  return tuple;
}

void draw_parameters(Draft& s) {
  for (int64_t n = s.random.between(1, 3); n > 0; --n) s.keep(s.b.parameter(parameter_shape(s, 0)));
  if (s.values.empty()) s.keep(s.b.parameter(Shape::array(s.type(), s.shape())));
}

// Results: values nobody reads first, then others; sometimes one twice.
std::vector<Instruction*> results(Draft& s) {
  std::vector<Instruction*> unread, chosen;
  for (Instruction* v : s.values) {
    if (v->users().empty() && !v->is(kParameter)) unread.push_back(v);
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
  chosen.insert(chosen.end(), s.draw.sized.begin(), s.draw.sized.end());
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

// Replicas, partitions or both.
void draw_devices(Draw& draw) {
  draw.devices = draw.random.between(2, 4);
  if (draw.random.chance(0.4)) draw.partitions = draw.devices == 4 && draw.random.chance(0.6) ? 2 : draw.devices;
  draw.module.config.num_partitions = draw.partitions;
  draw.module.config.replica_count = draw.devices / draw.partitions;
}

// All devices are given the same; their numbers make the difference.
void differ(Draft& s) {
  Instruction* partition = s.b.op(kPartitionId, {});
  Instruction* ten = s.b.constant(partition->shape.type, 10);
  Instruction* device = s.b.op(kAdd, {s.b.op(kMultiply, {s.b.op(kReplicaId, {}), ten}), partition});
  for (Instruction* v : std::vector(s.values)) {
    DType t = v->shape.type;
    if (is_pred(t) || is_complex(t)) continue;
    Instruction* number = s.b.convert(device, t);
    s.keep(s.b.op(kAdd, {v, s.b.broadcast(number, v->shape.dims)}));
  }
}

// Says of some that they come after others, which their operands do not say.
void draw_order(Module& module, Random& random) {
  if (!random.chance(0.1)) return;
  for (const auto& c : module.computations()) {
    std::vector<Instruction*> all = c->snapshot();
    for (int64_t n = random.between(0, 2); n > 0 && all.size() > 1; --n) {
      int64_t later = random.between(1, std::ssize(all) - 1);
      Instruction* first = all[static_cast<size_t>(random.below(later))];
      all[static_cast<size_t>(later)]->control_predecessors.push_back(first);
    }
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

std::vector<std::string> family_names() {
  std::vector<std::string> names;
  for (const Family& f : families()) names.emplace_back(f.name);
  return names;
}

std::unique_ptr<Module> generate(uint64_t seed, const std::vector<std::string>& always) {
  auto module = std::make_unique<Module>("fuzz_" + std::to_string(seed));
  Draw draw{.module = *module, .random = Random(seed ^ 0x5eedf0225eedULL), .sizes = {}, .types = {}, .ops = {}};
  draw.random.next();
  draw_sizes(draw);
  draw_types(draw);
  bool meet = std::ranges::find(always, "collectives") != always.end();
  if (draw.random.chance(meet ? 0.8 : 0.04)) draw_devices(draw);
  draw_ops(draw, always);
  draw.tame = draw.random.chance(0.4);
  Draft s(draw, "entry", true);
  draw_parameters(s);
  if (draw.devices > 1) differ(s);
  for (int64_t n = draw.random.chance(0.3) ? draw.random.between(0, 3) : draw.random.between(2, 16); n > 0; --n)
    s.step();
  Instruction* r = draw.random.chance(0.35) ? last_op(s) : root(s);
  s.b.build_entry(r);
  module->remove_unreachable();
  draw_order(*module, draw.random);
  draw_layouts(*module, draw.random, draw.pinned);
  draw_aliases(*module, draw.random);
  return module;
}

}  // namespace hlojit::tools::fuzz
