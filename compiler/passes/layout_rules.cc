// See layout_rules.h.
#include "compiler/passes/layout_rules.h"

#include <algorithm>

#include "compiler/analysis/access.h"
#include "compiler/analysis/prefix.h"
#include "compiler/ir/combining.h"
#include "compiler/passes/equal_parts.h"
#include "compiler/plan/blocks.h"
#include "compiler/plan/kernel.h"
#include "layout/lists.h"

namespace hlojit {
namespace {

constexpr double kOtherTiles = 0.25, kApart = 2;

/// Only order and tiles take part; annotations and packing stay where they are.
Layout plain(Ints minor_to_major, std::vector<Tile> tiles = {}) {
  Layout l = Layout::descending(static_cast<int64_t>(minor_to_major.size()));
  l.minor_to_major = std::move(minor_to_major);
  l.tiles = std::move(tiles);
  return l;
}

/// The dims of `kept` in their order in memory: dim kept[j] becomes j.
Layout subset(const Layout& layout, const Ints& kept) {
  Ints order;
  for (int64_t d : layout.minor_to_major) {
    auto at = std::ranges::find(kept, d);
    if (at != kept.end()) order.push_back(at - kept.begin());
  }
  return plain(order);
}

/// Dim d becomes to[d].
Layout renamed(const Layout& layout, const Ints& to) {
  Ints order;
  for (int64_t d : layout.minor_to_major) order.push_back(to[static_cast<size_t>(d)]);
  return plain(order, layout.tiles);
}

Ints inverse(const Ints& permutation) {
  Ints result(permutation.size());
  for (size_t k = 0; k < permutation.size(); ++k) result[static_cast<size_t>(permutation[k])] = static_cast<int64_t>(k);
  return result;
}

/// A reshape splits and merges runs of neighbouring dims. Where each run of `from` lies in one
/// piece and row-major, the runs of `to` can lie in the same order.
std::optional<Layout> reshaped(const Ints& from, const Layout& layout, const Ints& to) {
  if (std::ranges::count(from, 0) > 0) return std::nullopt;
  std::vector<int> run_of(from.size());
  std::vector<Ints> runs;  // dims of `to`, a list a run
  for (size_t a = 0, b = 0; a < from.size() || b < to.size();) {
    int64_t x = 1, y = 1;
    Ints& run = runs.emplace_back();
    int number = static_cast<int>(runs.size()) - 1;
    do {
      if (a < from.size() && (x <= y || b == to.size())) {
        run_of[a] = number;
        x *= from[a++];
      } else if (b < to.size()) {
        run.push_back(static_cast<int64_t>(b));
        y *= to[b++];
      } else {
        break;
      }
    } while (x != y);
    while (x == y && a < from.size() && from[a] == 1) run_of[a++] = number;
    while (x == y && b < to.size() && to[b] == 1) run.push_back(static_cast<int64_t>(b++));
  }
  // From minor to major; within a run the last dim comes first. Dims of size 1 lie anywhere.
  Ints order;
  std::vector<bool> begun(runs.size()), ended(runs.size());
  int at = -1;
  int64_t last = 0;
  for (int64_t d : layout.minor_to_major) {
    if (from[static_cast<size_t>(d)] == 1) continue;
    int run = run_of[static_cast<size_t>(d)];
    if (run == at && d > last) return std::nullopt;
    if (run != at) {
      if (begun[static_cast<size_t>(run)]) return std::nullopt;
      begun[static_cast<size_t>(run)] = true;
      const Ints& made = runs[static_cast<size_t>(run)];
      order.insert(order.end(), made.rbegin(), made.rend());
    }
    at = run;
    last = d;
  }
  for (size_t run = runs.size(); run-- > 0;) {
    if (!begun[run]) order.insert(order.end(), runs[run].rbegin(), runs[run].rend());
  }
  // Tiles stand if the dims they cut are the same ones.
  bool same = from.size() == to.size() && from == to;
  return plain(order, same ? layout.tiles : std::vector<Tile>{});
}

bool keeps_dims(const Instruction& i, size_t k) {
  return i.operand(k)->shape.is_array() && i.operand(k)->shape.dims == i.shape.dims;
}

/// A slice of whole tiles, as far as two dims of the first tile tell.
bool cuts_whole_tiles(const Instruction& slice, const Layout& layout) {
  const Ints& tile = layout.tiles[0].dims;
  for (size_t k = 0; k < tile.size() && k < layout.minor_to_major.size(); ++k) {
    auto d = static_cast<size_t>(layout.minor_to_major[k]);
    int64_t t = tile[tile.size() - 1 - k];
    const SliceRange& range = slice.attrs.slice[d];
    if (t < 1 || range.stride != 1 || range.start % t != 0) return false;
  }
  return true;
}

/// What is read at places known at run time only, where layouts are worth a kernel more. (Of a few hundred they are
/// not: board games, which gather so many in their loops, had 0.66 to 0.8 of the speed.)
bool reads_at_random_places(const Instruction& i) {
  constexpr int64_t kMany = 4096;
  return has_trait(i, op_trait::kRandomPlaces) && !has_trait(i, op_trait::kUpdates) && i.shape.is_array() &&
         i.shape.element_count() >= kMany;
}

/// Of what is read at places known at run time only: the result's dim that goes along each of the operand's within a
/// window; -1: none, or one of one element. (What says where a window is tells windows apart, also along a batch:
/// nothing lies in a row there.)
Ints along_windows(const Instruction& i) {
  VarSource vars;
  Coords at;
  for (int64_t n : i.shape.dims) at.push_back(IndexExpr::var(vars.fresh(), n));
  const AccessRelation relation = access_relation(i, at, {}, vars);
  auto finds_windows = [&](const IndexExpr& dim) {
    return std::ranges::any_of(relation.symbols, [&](const Symbol& s) {
      return std::ranges::any_of(s.coords, [&](const IndexExpr& c) { return c.depends_on(dim.variables()[0]); });
    });
  };
  Ints result(i.operand(0)->shape.dims.size(), -1);
  for (const Read& read : relation.reads) {
    for (size_t d = 0; d < result.size(); ++d) {
      for (size_t k = 0; k < at.size(); ++k) {
        if (i.shape.dims[k] == 1 || finds_windows(at[k])) continue;
        if (read.coords[d].depends_on(at[k].variables()[0])) result[d] = static_cast<int64_t>(k);
      }
    }
  }
  return result;
}

/// A copy of the operand in which windows lie together costs by its bytes what it saves by the result's elements, a
/// word of 32 bits about as much as one. (72,189 elements along columns, one thread of an Emerald Rapids: of 63,882 f64
/// 55 us by a copy, 18 without; of 85,176 f16 16 and 30.)
bool windows_may_be_copied(const Instruction& i) {
  const Shape& from = i.operand(0)->shape;
  const int64_t bytes = std::max<int64_t>(2, dtype_bytes(from.type));
  return !from.layout.tiled() && from.element_count() * bytes / 4 <= i.shape.element_count();
}

/// Long enough to be put in rows for the sake of a result that has their elements apart.
bool are_long(const Instruction& i, const Ints& along) {
  constexpr int64_t kLongWindow = 8;
  int64_t window = 1;
  for (int64_t k : along) window *= k < 0 ? 1 : i.shape.dims[static_cast<size_t>(k)];
  return window >= kLongWindow;
}

/// Windows next to each other, the elements of each as they lie in the operand.
std::optional<Layout> windows_in_a_row(const Instruction& i, const Layout& layout) {
  const Ints along = along_windows(i);
  Shape from = i.operand(0)->shape;
  from.layout = layout;
  const int64_t near = minor_dim(from);
  if (near < 0 || std::ranges::count(along, -1) == std::ssize(along)) return std::nullopt;
  if (along[static_cast<size_t>(near)] < 0 && !windows_may_be_copied(i)) return std::nullopt;
  Ints order;
  for (int64_t d : layout.minor_to_major) {
    if (along[static_cast<size_t>(d)] >= 0) order.push_back(along[static_cast<size_t>(d)]);
  }
  for (int64_t d = i.shape.rank(); d-- > 0;) {
    if (std::ranges::count(order, d) == 0) order.push_back(d);
  }
  return plain(std::move(order));
}

Ints kept_dims(const Instruction& reduce) {
  Ints kept;
  for (int64_t d = 0; d < reduce.operand(0)->shape.rank(); ++d) {
    if (std::ranges::find(reduce.attrs.dimensions, d) == reduce.attrs.dimensions.end()) kept.push_back(d);
  }
  return kept;
}

}  // namespace

std::optional<Layout> along_operand(const Instruction& i, size_t k, const Layout& layout) {
  const Shape& from = i.operand(k)->shape;
  if (!i.shape.is_array() || !from.is_array() || from.rank() == 0) return std::nullopt;
  switch (i.opcode) {
    case Opcode::kTranspose: return renamed(layout, inverse(i.attrs.dimensions));
    case Opcode::kReshape: return reshaped(from.dims, layout, i.shape.dims);
    case Opcode::kReduce:
      if (k >= i.operand_count() / 2) return std::nullopt;
      return subset(layout, kept_dims(i));
    case Opcode::kSlice:
      return plain(layout.minor_to_major,
                   layout.tiled() && cuts_whole_tiles(i, layout) ? layout.tiles : std::vector<Tile>{});
    case Opcode::kPad:
    case Opcode::kDynamicSlice:
      if (k > 0) return std::nullopt;
      [[fallthrough]];
    case Opcode::kConcatenate: return plain(layout.minor_to_major);
    case Opcode::kReverse:
    case Opcode::kCopy: return plain(layout.minor_to_major, layout.tiles);
    case Opcode::kReduceWindow:
      if (k > 0) return std::nullopt;
      return plain(layout.minor_to_major);
    default:
      if (reads_at_random_places(i)) return k == 0 ? windows_in_a_row(i, layout) : std::nullopt;
      if (!is_elementwise(i.opcode) || !keeps_dims(i, k)) return std::nullopt;
      return plain(layout.minor_to_major, layout.tiles);
  }
}

std::optional<Layout> along_result(const Instruction& i, size_t k, const Layout& layout) {
  const Shape& from = i.operand(k)->shape;
  if (!i.shape.is_array() || !from.is_array() || from.rank() == 0) return std::nullopt;
  switch (i.opcode) {
    case Opcode::kTranspose: return renamed(layout, i.attrs.dimensions);
    case Opcode::kReshape: return reshaped(i.shape.dims, layout, from.dims);
    case Opcode::kBroadcast: return subset(layout, i.attrs.dimensions);
    case Opcode::kPad:
    case Opcode::kDynamicSlice:
    case Opcode::kDynamicUpdateSlice:
      if (k > 1 || (k == 1 && !i.is(Opcode::kDynamicUpdateSlice))) return std::nullopt;
      return plain(layout.minor_to_major,
                   i.is(Opcode::kDynamicUpdateSlice) && k == 0 ? layout.tiles : std::vector<Tile>{});
    case Opcode::kSlice:
    case Opcode::kConcatenate: return plain(layout.minor_to_major);
    case Opcode::kReverse: return plain(layout.minor_to_major, layout.tiles);
    default:
      if (!is_elementwise(i.opcode) || !keeps_dims(i, k)) return std::nullopt;
      return plain(layout.minor_to_major, layout.tiles);
  }
}

std::optional<ConvolutionLayouts> layouts_by_features(const Instruction& i, int64_t lanes) {
  // Copies have to be worth it. Few positions: copying the weights takes as long as multiplying with them. Few features
  // of the input, one position next to the other: these are as good to go along.
  constexpr int64_t kFewPositions = 96, kFewElements = 8;
  const ConvDims& d = i.attrs.conv;
  auto size = [](const Instruction* x, int64_t dim) { return x->shape.dims[static_cast<size_t>(dim)]; };
  const Instruction *x = i.operand(0), *w = i.operand(1);
  int64_t window = 1, positions = 1;
  for (size_t s = 0; s < d.rhs_spatial.size(); ++s) {
    // Of the parts of one that was cut along its depth each has weights of its own.
    if (is_window_of_parts(i.attrs.window[s], size(&i, d.out_spatial[s]))) continue;
    window *= size(w, d.rhs_spatial[s]);
    positions *= size(&i, d.out_spatial[s]);
  }
  const int64_t groups = i.attrs.feature_group_count * i.attrs.batch_group_count;
  const auto& order = x->shape.layout.minor_to_major;
  auto comes_by = [&](int64_t dim) { return !order.empty() && order[0] == dim; };
  const bool by_features = comes_by(d.lhs_feature) && d.out_feature + 1 == i.shape.rank();
  // Minor dims first: one, the spatial ones, and the other behind or before them.
  auto ordered = [](int64_t minor, const Ints& spatial, int64_t other, bool outermost) {
    Ints order = {minor};
    if (!outermost) order.push_back(other);
    order.insert(order.end(), spatial.rbegin(), spatial.rend());
    if (outermost) order.push_back(other);
    return plain(std::move(order));
  };
  if (by_features && sums_features(i, lanes)) {
    return ConvolutionLayouts{x->shape.layout, ordered(d.rhs_input_feature, d.rhs_spatial, d.rhs_output_feature, false),
                              Layout::descending(i.shape.rank())};
  }
  // A feature a group: a window is of one feature, and what its values are made of comes as the features do.
  const bool feature_wise = groups > 1 && groups == size(&i, d.out_feature);
  const int64_t own = i.attrs.batch_group_count > 1 ? d.lhs_batch : d.lhs_feature;
  if (feature_wise && groups >= lanes && comes_by(own)) {
    const auto& weights = w->shape.layout;
    const bool fit = !weights.minor_to_major.empty() && weights.minor_to_major[0] == d.rhs_output_feature;
    return ConvolutionLayouts{x->shape.layout,
                              fit ? weights : ordered(d.rhs_output_feature, d.rhs_spatial, d.rhs_input_feature, true),
                              ordered(d.out_feature, d.out_spatial, d.out_batch, true)};
  }
  if (size(&i, d.out_feature) < groups * lanes || (window == 1 && !comes_by(d.lhs_feature))) return std::nullopt;
  const bool of_weights = window > positions;
  if (of_weights && size(x, d.lhs_batch) < lanes) return std::nullopt;
  if (!of_weights) {
    const int64_t features = size(w, d.rhs_input_feature), line = window > 1 ? size(w, d.rhs_spatial.back()) : 1;
    const bool strided = window > 1 && i.attrs.window.back().stride > 1 && features * line > kFewElements;
    if (features < lanes && !strided) return std::nullopt;
    if (positions * size(&i, d.out_batch) < kFewPositions) return std::nullopt;
  }
  const int64_t minor = of_weights ? d.lhs_batch : d.lhs_feature, other = of_weights ? d.lhs_feature : d.lhs_batch;
  return ConvolutionLayouts{ordered(minor, d.lhs_spatial, other, true),
                            ordered(d.rhs_output_feature, d.rhs_spatial, d.rhs_input_feature, of_weights),
                            ordered(d.out_feature, d.out_spatial, d.out_batch, !of_weights)};
}

bool scatters_windows(const Instruction& i, const Layout& result) {
  if (dtype_bytes(i.shape.type) > 1 || !reads_at_random_places(i) || !windows_may_be_copied(i)) return false;
  const Ints along = along_windows(i);
  Shape written = i.shape;
  written.layout = result;
  return are_long(i, along) && std::ranges::count(along, minor_dim(written)) == 0;
}

Layout along_reduced(const Instruction& reduce) { return subset(reduce.operand(0)->shape.layout, kept_dims(reduce)); }

bool reduces_across(const Instruction& i, const Layout& result) {
  if (!i.is(Opcode::kReduce)) return false;
  const Shape& from = i.operand(0)->shape;
  Shape written = i.shape.is_tuple() ? i.shape.elements[0] : i.shape;
  if (from.element_count() < kWorthReadingAlong * written.element_count()) return false;
  if (std::ranges::count(i.attrs.dimensions, minor_dim(from)) > 0) return false;
  Shape along = written;
  along.layout = along_reduced(i);
  written.layout = result;
  return minor_dim(along) != minor_dim(written);
}

bool copies_by_windows(const Instruction& i, const Layout& result) {
  if (!reads_at_random_places(i) || !windows_may_be_copied(i)) return false;
  Shape written = i.shape;
  written.layout = result;
  const Ints along = along_windows(i);
  return std::ranges::count(along, minor_dim(written)) > 0;
}

std::optional<Layout> layout_by_windows(const Instruction& i) {
  if (!reads_at_random_places(i) || !windows_may_be_copied(i)) return std::nullopt;
  const Ints along = along_windows(i);
  const int64_t near = minor_dim(i.operand(0)->shape), written = minor_dim(i.shape);
  if (near < 0 || along[static_cast<size_t>(near)] == written) return std::nullopt;
  const bool in_rows = std::ranges::count(along, written) > 0;
  const bool transposed = along[static_cast<size_t>(near)] < 0 && dtype_bytes(i.shape.type) > 1 && are_long(i, along);
  if (!in_rows && !transposed) return std::nullopt;
  Ints order;
  for (int64_t k : i.shape.layout.minor_to_major) {
    auto at = std::ranges::find(along, k);
    if (at != along.end()) order.push_back(at - along.begin());
  }
  for (int64_t d : i.operand(0)->shape.layout.minor_to_major) {
    if (std::ranges::count(order, d) == 0) order.push_back(d);
  }
  return plain(std::move(order));
}

std::optional<Layout> layout_by_turns(const Instruction& loop, size_t element) {
  constexpr int64_t kLongPart = 64;
  const Shape& shape = loop.operand(0)->shape.elements[element];
  if (!shape.is_array() || shape.layout.tiled() || shape.has_dynamic_dims()) return {};
  auto takes = [&](const Instruction* i) {
    return i->is(Opcode::kGetTupleElement) && i->attrs.tuple_index == static_cast<int64_t>(element);
  };
  const Computation& body = *loop.while_body();
  const Instruction* next = body.root()->is(Opcode::kTuple) ? body.root()->operand(element) : nullptr;
  if (!next || !takes(next) || next->operand(0) != body.parameters()[0]) return {};
  if (loop.is_root() || std::ranges::any_of(loop.users(), takes)) return {};
  if (std::ranges::any_of(loop.while_condition()->parameters()[0]->users(), takes)) return {};
  // Dims of which a turn takes one place.
  std::optional<Ints> placed;
  for (const Instruction* taken : body.parameters()[0]->users()) {
    if (!taken->is(Opcode::kGetTupleElement)) return {};
    if (!takes(taken)) continue;
    for (const Instruction* reader : taken->users()) {
      if (reader == body.root() && std::ranges::count(reader->operands(), taken) == 1 && taken == next) continue;
      if (!reader->is(Opcode::kDynamicSlice) || reader->operand(0) != taken) return {};
      Ints dims;
      for (int64_t d = 0; d < shape.rank(); ++d) {
        const auto at = static_cast<size_t>(d);
        if (reader->shape.dims[at] == 1 && shape.dims[at] > 1) dims.push_back(d);
      }
      if (placed && *placed != dims) return {};
      placed = dims;
    }
  }
  if (!placed || !contains(*placed, minor_dim(shape))) return {};
  Ints order, last;
  for (int64_t d : shape.layout.minor_to_major) (contains(*placed, d) ? last : order).push_back(d);
  if (order.empty() || shape.dims[static_cast<size_t>(order[0])] < kLongPart) return {};
  order.insert(order.end(), last.begin(), last.end());
  return plain(std::move(order));
}

std::optional<Layout> layout_by_steps(const Instruction& i, int64_t lanes) {
  constexpr int64_t kFew = 4;
  const auto prefix = prefix_window(i);
  if (!prefix || combining_op(*i.to_apply()) || i.operand(0)->shape.layout.tiled()) return std::nullopt;
  if (minor_dim(i.operand(0)->shape) != prefix->dim) return std::nullopt;
  Ints order = i.operand(0)->shape.layout.minor_to_major;
  std::erase(order, prefix->dim);
  auto length = [&](int64_t d) { return i.shape.dims[static_cast<size_t>(d)]; };
  auto nearest = std::ranges::find_if(order, [&](int64_t d) { return length(d) >= lanes; });
  if (nearest == order.end()) nearest = std::ranges::max_element(order, {}, length);
  if (nearest == order.end() || length(*nearest) < kFew) return std::nullopt;
  std::rotate(order.begin(), nearest, nearest + 1);
  order.push_back(prefix->dim);
  return plain(std::move(order));
}

std::optional<UpdateLayouts> layouts_of_updates(const Instruction& i) {
  constexpr int64_t kMany = 4096, kLongWindow = 8;
  if (!has_trait(i, op_trait::kUpdates) || !has_trait(i, op_trait::kRandomPlaces)) return std::nullopt;
  const Shape &target = i.operand(0)->shape, &updates = i.operand(i.operand_count() / 2 + 1)->shape;
  if (updates.element_count() < kMany || target.layout.tiled() || updates.layout.tiled()) return std::nullopt;
  VarSource vars;
  Coords at;
  for (int64_t n : updates.dims) at.push_back(IndexExpr::var(vars.fresh(), n));
  const WriteRelation written = write_relation(i, at, vars);
  Ints of_target(target.dims.size(), -1), of_updates(updates.dims.size(), -1);  // the other one's along a window
  int64_t window = 1;
  for (int64_t u : i.attrs.scatter->update_window_dims) {
    const auto k = static_cast<size_t>(u);
    window *= updates.dims[k];
    for (size_t d = 0; d < target.dims.size() && updates.dims[k] > 1; ++d) {
      if (!written.target[d].depends_on(at[k].variables()[0])) continue;
      of_target[d] = u;
      of_updates[k] = static_cast<int64_t>(d);
    }
  }
  const int64_t near_target = minor_dim(target), near_updates = minor_dim(updates);
  if (window < kLongWindow || near_target < 0 || near_updates < 0) return std::nullopt;
  const bool target_fits = of_target[static_cast<size_t>(near_target)] >= 0;
  const bool updates_fit = of_updates[static_cast<size_t>(near_updates)] >= 0;
  if (target_fits && updates_fit) return std::nullopt;
  if (!target_fits && target.element_count() > updates.element_count()) return std::nullopt;
  // The dims of windows first, as they lie in one of both, then what is left.
  Ints windows, rest;
  const Shape& known = target_fits ? target : updates;
  const Ints &of_known = target_fits ? of_target : of_updates, &of_other = target_fits ? of_updates : of_target;
  for (int64_t d : known.layout.minor_to_major) (of_known[static_cast<size_t>(d)] >= 0 ? windows : rest).push_back(d);
  Ints order;
  for (int64_t d : windows) order.push_back(of_known[static_cast<size_t>(d)]);
  for (int64_t d : (target_fits ? updates : target).layout.minor_to_major) {
    if (of_other[static_cast<size_t>(d)] < 0) order.push_back(d);
  }
  if (target_fits) return UpdateLayouts{target.layout, plain(std::move(order))};
  if (updates_fit) return UpdateLayouts{plain(std::move(order)), updates.layout};
  windows.insert(windows.end(), rest.begin(), rest.end());
  return UpdateLayouts{plain(std::move(order)), plain(std::move(windows))};
}

double mismatch(const Ints& dims, const Layout& a, const Layout& b) {
  auto order = [&](const Layout& l) {
    Ints list;
    for (int64_t d : l.minor_to_major) {
      if (dims[static_cast<size_t>(d)] != 1) list.push_back(d);
    }
    return list;
  };
  Ints x = order(a), y = order(b);
  if (x.empty() || x == y) return a.tiles == b.tiles ? 0 : kOtherTiles;
  return x[0] == y[0] ? kOtherTiles : kApart;
}

}  // namespace hlojit
