// Layouts for every array of a module: permuted, tiled, tiled again, tiles that do not divide. They change
// no value, so that any layout may stand anywhere but at bitcasts, which bring their own.
#include <algorithm>

#include "layout/index.h"
#include "tools/fuzz/draft.h"

namespace hlojit::tools::fuzz {
namespace {

struct Style {
  double changed = 0, tiled = 0, spread = 0;
};

Tile tile(Random& random, int64_t rank) {
  Tile t;
  static const std::vector<Ints> kSizes = {{8, 128}, {2, 4}, {4},     {8},    {128}, {2, 1},
                                           {3},      {5, 3}, {16, 2}, {2, 2}, {3, 4}};
  t.dims = random.pick(kSizes);
  while (std::ssize(t.dims) > rank) t.dims.erase(t.dims.begin());
  if (std::ssize(t.dims) >= 2 && random.chance(0.06)) t.dims[0] = Tile::kCombine;
  return t;
}

}  // namespace

Layout draw_layout(const Shape& shape, Random& random, double tiled) {
  Layout l = Layout::descending(shape.rank());
  if (random.chance(0.7)) random.shuffle(l.minor_to_major);
  int bits = dtype_bits(shape.type);  // E(n): packed, or one to a wider place
  if (random.chance(bits < 8 ? 0.4 : 0.03))
    l.element_size_in_bits = bits < 8 ? random.pick(Ints{bits, bits, 4}) : 2 * bits;
  if (!random.chance(tiled)) return l;
  l.tiles.push_back(tile(random, shape.rank()));
  if (random.chance(0.35)) l.tiles.push_back(tile(random, std::ssize(l.tiles[0].dims)));
  if (random.chance(0.03)) l.tail_padding_alignment = 64;
  Shape tried = shape;
  tried.layout = l;
  bool sound =
      layout_errors(tried).empty() && physical_elements(tried) <= 64 * std::max<int64_t>(shape.element_count(), 16);
  if (!sound) l.tiles.clear(), l.tail_padding_alignment = 1;
  return l;
}

namespace {

void draw(Shape& shape, Random& random, const Style& style) {
  for (Shape& e : shape.elements) draw(e, random, style);
  if (!shape.is_array() || shape.rank() == 0 || !random.chance(style.changed)) return;
  shape.layout = draw_layout(shape, random, style.tiled);
  if (dtype_bits(shape.type) >= 8 && dtype_bits(shape.type) <= 64 && random.chance(style.spread))
    shape.layout.element_size_in_bits = 2 * dtype_bits(shape.type);
}

}  // namespace

void draw_layouts(Module& module, Random& random, const std::set<const Instruction*>& pinned) {
  Style style;
  if (random.chance(0.75)) style.changed = random.chance(0.5) ? 0.3 : 0.8;
  if (random.chance(0.6)) style.tiled = random.chance(0.5) ? 0.3 : 0.8;
  if (random.chance(0.1)) style.spread = 0.5;
  bool loose = random.chance(0.3);  // tuples that disagree with their elements
  for (const auto& c : module.computations()) {
    for (const auto& i : c->instructions()) {
      if (pinned.contains(i.get())) continue;
      draw(i->shape, random, style);
      if (loose) continue;
      if (i->is(Opcode::kTuple)) {
        for (size_t k = 0; k < i->operand_count(); ++k) i->shape.elements[k] = i->operand(k)->shape;
      } else if (i->is(Opcode::kGetTupleElement)) {
        i->shape = i->operand(0)->shape.elements[static_cast<size_t>(i->attrs.tuple_index)];
      }
    }
  }
  if (random.chance(0.5)) return;
  ModuleConfig& config = module.config;
  config.has_entry_layout = true;
  bool same = random.chance(0.4);
  for (Instruction* p : module.entry()->parameters()) {
    config.entry_parameters.push_back(p->shape);
    if (!same) draw(config.entry_parameters.back(), random, style);
  }
  config.entry_result = module.entry()->root()->shape;
  if (!same) draw(config.entry_result, random, style);
}

void draw_aliases(Module& module, Random& random) {
  if (!random.chance(0.25)) return;
  struct Place {
    int64_t parameter;
    Ints index;
    Shape* shape;
  };
  auto leaves_of = [](auto&& self, Shape& s, Place at, std::vector<Place>& out) -> void {
    for (int64_t k = 0; k < std::ssize(s.elements); ++k) {
      Place inner = at;
      inner.index.push_back(k);
      self(self, s.elements[static_cast<size_t>(k)], inner, out);
    }
    if (!s.is_array()) return;
    at.shape = &s;
    out.push_back(at);
  };
  ModuleConfig& config = module.config;
  std::vector<Place> in, out;
  for (Instruction* p : module.entry()->parameters()) {
    Shape& s =
        config.has_entry_layout ? config.entry_parameters[static_cast<size_t>(p->attrs.parameter_number)] : p->shape;
    leaves_of(leaves_of, s, {p->attrs.parameter_number, {}, nullptr}, in);
  }
  leaves_of(leaves_of, config.has_entry_layout ? config.entry_result : module.entry()->root()->shape, {0, {}, nullptr},
            out);
  random.shuffle(in);
  for (const Place& result : out) {
    // A caller who hands over memory wants its result in that memory's layout.
    bool follows = config.has_entry_layout && random.chance(0.5);
    auto donor = std::ranges::find_if(
        in, [&](const Place& p) { return follows ? compatible(*p.shape, *result.shape) : *p.shape == *result.shape; });
    if (donor == in.end() || random.chance(0.3)) continue;
    if (follows) *result.shape = *donor->shape;
    Alias a;
    a.output_index = result.index;
    a.operand = donor->parameter;
    a.operand_index = donor->index;
    if (random.chance(0.7)) a.must = random.chance(0.5);
    config.input_output_alias.push_back(a);
    in.erase(donor);
  }
}

}  // namespace hlojit::tools::fuzz
