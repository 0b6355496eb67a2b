// See bitcasts.h. A layout is spelled out as the steps from an array to its bytes, one element
// after the other: to memory order, then for each tile: merge (*), pad, cut, tiles before what is
// inside them. One layout's steps forward and the other's backward make the bitcast.
#include "compiler/passes/bitcasts.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "compiler/builder.h"
#include "compiler/passes/wrap.h"
#include "compiler/verify/shape_inference.h"
#include "layout/index.h"
#include "layout/lists.h"

namespace hlojit {
namespace {

struct Step {
  enum class Kind { kTranspose, kReshape, kPad } kind;
  Ints before, after;  // sizes; of a transpose: sizes before, and the permutation
};

Ints memory_order(const Layout& layout) { return Ints(layout.minor_to_major.rbegin(), layout.minor_to_major.rend()); }

class Steps {
 public:
  explicit Steps(const Shape& shape) : dims_(shape.dims) {
    transpose(memory_order(shape.layout));
    for (const Tile& tile : shape.layout.tiles) cut(tile.dims);
    reshape({product(dims_)});
    int64_t align = shape.layout.tail_padding_alignment;
    pad({(dims_[0] + align - 1) / align * align});
  }
  const std::vector<Step>& list() const { return list_; }
  int64_t elements() const { return dims_[0]; }

 private:
  void transpose(const Ints& order) {
    if (std::ranges::is_sorted(order)) return;
    list_.push_back({Step::Kind::kTranspose, dims_, order});
    Ints moved;
    for (int64_t d : order) moved.push_back(dims_[static_cast<size_t>(d)]);
    dims_ = moved;
  }
  void reshape(Ints dims) {
    if (dims == dims_) return;
    list_.push_back({Step::Kind::kReshape, dims_, dims});
    dims_ = std::move(dims);
  }
  void pad(Ints dims) {
    if (dims == dims_) return;
    list_.push_back({Step::Kind::kPad, dims_, dims});
    dims_ = std::move(dims);
  }

  void cut(Ints tile) {
    Ints dims = dims_;
    if (dims.size() < tile.size()) dims.insert(dims.begin(), tile.size() - dims.size(), 1);
    size_t base = dims.size() - tile.size();
    for (size_t p = 0; p + 1 < tile.size();) {
      if (tile[p] != Tile::kCombine) {
        ++p;
        continue;
      }
      dims[base + p + 1] *= dims[base + p];
      dims.erase(dims.begin() + static_cast<ptrdiff_t>(base + p));
      tile.erase(tile.begin() + static_cast<ptrdiff_t>(p));
    }
    reshape(dims);
    Ints whole(dims_.begin(), dims_.begin() + static_cast<ptrdiff_t>(base)), parts = whole, order(base);
    std::iota(order.begin(), order.end(), 0);
    for (size_t k = 0; k < tile.size(); ++k) {
      int64_t count = (dims_[base + k] + tile[k] - 1) / tile[k];
      whole.push_back(count * tile[k]);
      parts.insert(parts.end(), {count, tile[k]});
    }
    for (size_t inside : {0, 1}) {
      for (size_t k = 0; k < tile.size(); ++k) order.push_back(static_cast<int64_t>(base + 2 * k + inside));
    }
    pad(whole);
    reshape(parts);
    transpose(order);
  }

  Ints dims_;
  std::vector<Step> list_;
};

Instruction* padded(Builder& b, Instruction* x, const Ints& sizes) {
  std::vector<PadDim> padding(sizes.size());
  for (size_t d = 0; d < sizes.size(); ++d) padding[d].high = sizes[d] - x->shape.dims[d];
  return b.pad(x, b.constant(Literal(Shape::scalar(x->shape.type))), padding);
}

Instruction* forward(Builder& b, Instruction* x, const std::vector<Step>& steps) {
  for (const Step& s : steps) {
    switch (s.kind) {
      case Step::Kind::kTranspose: x = b.transpose(x, s.after); break;
      case Step::Kind::kReshape: x = b.reshape(x, s.after); break;
      case Step::Kind::kPad: x = padded(b, x, s.after); break;
    }
  }
  return x;
}

Instruction* backward(Builder& b, Instruction* x, const std::vector<Step>& steps) {
  for (auto s = steps.rbegin(); s != steps.rend(); ++s) {
    switch (s->kind) {
      case Step::Kind::kTranspose: {
        Ints inverse(s->after.size());
        for (size_t k = 0; k < inverse.size(); ++k) inverse[static_cast<size_t>(s->after[k])] = static_cast<int64_t>(k);
        x = b.transpose(x, inverse);
        break;
      }
      case Step::Kind::kReshape: x = b.reshape(x, s->before); break;
      case Step::Kind::kPad: x = b.slice(x, Ints(s->before.size(), 0), s->before); break;
    }
  }
  return x;
}

Instruction* resized(Builder& b, Instruction* flat, int64_t elements) {
  int64_t have = flat->shape.dims[0];
  if (elements > have) return padded(b, flat, {elements});
  return elements < have ? b.slice(flat, {0}, {elements}) : flat;
}

/// A flat array as one of another type and count, the same bits.
Instruction* retyped(Builder& b, Instruction* flat, DType type, int64_t elements) {
  int64_t from = bitcast_bits(flat->shape.type), to = bitcast_bits(type);
  if (flat->shape.type == type) return resized(b, flat, elements);
  if (from == to) return b.bitcast_convert(resized(b, flat, elements), type);
  if (from > to) {
    Instruction* cut = b.bitcast_convert(flat, type);
    return resized(b, b.reshape(cut, {product(cut->shape.dims)}), elements);
  }
  int64_t parts = to / from;
  return b.bitcast_convert(b.reshape(resized(b, flat, elements * parts), {elements, parts}), type);
}

/// Elements without gaps, of a type that bitcast-convert has.
bool is_plain(const Shape& shape) { return element_bits(shape) == bitcast_bits(shape.type) && !is_complex(shape.type); }

/// Whether what lies in memory is elements alone, and those of one side are found in the other's bytes.
bool is_spelled(const Shape& from, const Shape& to) {
  for (const Layout* l : {&from.layout, &to.layout}) {
    if (l->metadata_prefix_bytes != 0 || !l->split_configs.empty()) return false;
  }
  if (from.type == to.type && element_bits(from) == element_bits(to)) return true;
  return is_plain(from) && is_plain(to);
}

/// A reshape or transpose that leaves every element where it is; nullptr if there is none.
Instruction* renaming(Builder& b, Instruction* x, const Shape& to) {
  const Shape& from = x->shape;
  if (from.type != to.type || from.element_count() != to.element_count()) return nullptr;
  auto tried = [&](Instruction* made) -> Instruction* {
    made->shape.layout = to.layout;
    if (made == x || keeps_memory(*made)) return made;
    b.computation()->remove(made);
    return nullptr;
  };
  if (from.dims == to.dims && from.layout == to.layout) return x;
  if (Instruction* made = tried(b.computation()->add(Opcode::kReshape, to, {x}))) return made;
  Ints order = memory_order(from.layout), target = memory_order(to.layout), permutation(order.size());
  if (order.size() != target.size()) return nullptr;
  for (size_t k = 0; k < order.size(); ++k) {
    if (from.dims[static_cast<size_t>(order[k])] != to.dims[static_cast<size_t>(target[k])]) return nullptr;
    permutation[static_cast<size_t>(target[k])] = order[k];
  }
  return tried(b.transpose(x, permutation));
}

Instruction* spelled_out(Builder& b, const Instruction& bitcast) {
  Instruction* x = bitcast.operand(0);
  const Shape &from = x->shape, &to = bitcast.shape;
  if (Instruction* same = renaming(b, x, to)) return same;
  if (!is_spelled(from, to)) {
    throw Error(ErrorKind::kUnsupported, bitcast.location,
                fmt::format("bitcast from {} to {} is not compiled yet", from.to_string(), to.to_string()));
  }
  Steps out(from), in(to);
  return backward(b, retyped(b, forward(b, x, out.list()), to.type, in.elements()), in.list());
}

bool rewrite_in(Computation& c) {
  Builder b(&c);
  std::vector<Instruction*> dead;
  for (Instruction* i : c.snapshot()) {
    if (!i->is(Opcode::kBitcast) || i->shape.has_dynamic_dims() || i->operand(0)->shape.has_dynamic_dims()) continue;
    size_t before = c.instructions().size();
    Instruction* made = spelled_out(b, *i);
    for (size_t k = before; k < c.instructions().size(); ++k) c.instructions()[k]->location = i->location;
    if (made != i->operand(0)) {
      made->shape = i->shape;
      std::swap(made->name, i->name);  // printed as a bitcast again, it is called what it was
    }
    // What was there before does not wait for what the bitcast waited for, which may need it: its new readers do.
    const std::vector<Instruction*> waits = i->control_predecessors;
    const std::vector<Instruction*> readers(i->users().begin(), i->users().end());
    for (Instruction* then : made == i->operand(0) ? readers : std::vector{made})
      then->control_predecessors.insert(then->control_predecessors.end(), waits.begin(), waits.end());
    i->control_predecessors.push_back(made);  // so that sorting puts it in this place
    i->replace_all_uses_with(made);
    dead.push_back(i);
  }
  if (dead.empty()) return false;
  c.sort_topologically();
  c.remove_all(dead);
  return true;
}

}  // namespace

bool bitcasts(Module& module, const PipelineOptions&) {
  bool changed = false;
  for (const auto& c : module.computations()) changed |= rewrite_in(*c);
  return changed;
}

}  // namespace hlojit
