// gather and scatter: the same numbering of dimensions, seen from either end.
//
// The index array's dimension index_vector_dim holds one index vector; its other dimensions (the
// batch) say how many. A window of the operand has a dimension for each of the operand's that is
// neither collapsed (inserted, for scatter) nor a batching dimension.
#include <algorithm>

#include "compiler/verify/rules.h"

namespace hlojit::rules {
namespace {

// Names of attributes and rules of one of the two ops.
struct Words {
  RuleId indices, dimensions, batching;
  std::string_view window, collapsed, map, operand_batching, indices_batching;
};

constexpr Words kGatherWords = {"gather-indices",        "gather-dimensions",          "gather-batching",
                                "offset_dims",           "collapsed_slice_dims",       "start_index_map",
                                "operand_batching_dims", "start_indices_batching_dims"};
constexpr Words kScatterWords = {"scatter-indices",     "scatter-dimensions",           "scatter-batching",
                                 "update_window_dims",  "inserted_window_dims",         "scatter_dims_to_operand_dims",
                                 "input_batching_dims", "scatter_indices_batching_dims"};

// Both ops' numbers under common names.
struct Numbers {
  const Ints &window, &collapsed, &map, &operand_batching, &indices_batching;
  int64_t index_vector_dim;
};

// Checks everything that does not concern the result. Returns the batch sizes.
std::vector<int64_t> check_numbers(const Shape& x, const Shape& indices, const Numbers& n, const Words& words) {
  need(is_integral(indices.type), words.indices, "indices must be integers, not {}", dtype_name(indices.type));
  need(n.index_vector_dim >= 0 && n.index_vector_dim <= indices.rank(), words.indices,
       "index_vector_dim {} does not lie in [0, {}]", n.index_vector_dim, indices.rank());
  int64_t vector = n.index_vector_dim == indices.rank() ? 1 : indices.dims[n.index_vector_dim];
  need(static_cast<int64_t>(n.map.size()) == vector, words.indices, "{} has {} entries but an index vector has {}",
       words.map, n.map.size(), vector);
  need_dimensions(n.map, x.rank(), words.map);

  need_dimensions(n.collapsed, x.rank(), words.collapsed);
  need_ascending(n.collapsed, words.collapsed);
  need_dimensions(n.operand_batching, x.rank(), words.operand_batching);
  need_ascending(n.operand_batching, words.operand_batching);
  need_dimensions(n.indices_batching, indices.rank(), words.indices_batching);
  need(n.operand_batching.size() == n.indices_batching.size(), words.batching, "{} has {} entries, {} has {}",
       words.operand_batching, n.operand_batching.size(), words.indices_batching, n.indices_batching.size());
  for (size_t b = 0; b < n.operand_batching.size(); ++b) {
    int64_t d = n.operand_batching[b], i = n.indices_batching[b];
    need(!contains(n.collapsed, d), words.batching, "dimension {} is in both {} and {}", d, words.operand_batching,
         words.collapsed);
    need(!contains(n.map, d), words.batching, "dimension {} is in both {} and {}", d, words.operand_batching,
         words.map);
    need(i != n.index_vector_dim, words.batching, "{} names index_vector_dim {}", words.indices_batching, i);
    need(x.dims[d] == indices.dims[i], words.batching,
         "batching dimension {} of the operand has size {}, {} of the indices has {}", d, x.dims[d], i,
         indices.dims[i]);
  }
  size_t accounted = n.window.size() + n.collapsed.size() + n.operand_batching.size();
  need(accounted == x.dims.size(), words.dimensions, "{}, {} and {} name {} dimensions together, the operand has {}",
       words.window, words.collapsed, words.operand_batching, accounted, x.rank());

  std::vector<int64_t> batch;
  for (int64_t d = 0; d < indices.rank(); ++d) {
    if (d != n.index_vector_dim) batch.push_back(indices.dims[d]);
  }
  return batch;
}

// Interleaves window sizes (at the positions of window_dims) with batch sizes.
std::vector<int64_t> interleave(std::span<const int64_t> window_dims, std::span<const int64_t> window,
                                std::span<const int64_t> batch) {
  std::vector<int64_t> dims;
  size_t w = 0, b = 0;
  for (size_t d = 0; d < window.size() + batch.size(); ++d) {
    bool in_window = w < window_dims.size() && window_dims[w] == static_cast<int64_t>(d);
    dims.push_back(in_window ? window[w++] : batch[b++]);
  }
  return dims;
}

Shape gather(const Use& use) {
  need_count(use, 2);
  const Shape& x = array(use, 0);
  const Shape& indices = array(use, 1);
  const GatherDims& g = use.attrs.gather;
  Numbers n{g.offset_dims,           g.collapsed_slice_dims,        g.start_index_map,
            g.operand_batching_dims, g.start_indices_batching_dims, g.index_vector_dim};
  need(g.slice_sizes.size() == x.dims.size(), "dimension-count", "slice_sizes needs {} sizes for {}, not {}", x.rank(),
       x, g.slice_sizes.size());
  std::vector<int64_t> batch = check_numbers(x, indices, n, kGatherWords);
  std::vector<int64_t> window;
  for (int64_t d = 0; d < x.rank(); ++d) {
    int64_t size = g.slice_sizes[d];
    need(size >= 0 && size <= x.dims[d], "gather-slice-sizes",
         "slice size {} does not lie in [0, {}], the size of dimension {}", size, x.dims[d], d);
    if (!contains(n.collapsed, d) && !contains(n.operand_batching, d)) {
      window.push_back(size);
      continue;
    }
    need(size <= 1, "gather-slice-sizes", "slice size {} of {} dimension {} must be 1 or 0", size,
         contains(n.collapsed, d) ? "collapsed" : "batching", d);
  }
  need_dimensions(g.offset_dims, static_cast<int64_t>(window.size() + batch.size()), "offset_dims");
  need_ascending(g.offset_dims, "offset_dims");
  return Shape::array(x.type, interleave(g.offset_dims, window, batch));
}

Shape scatter(const Use& use) {
  need(use.count() >= 3 && use.count() % 2 == 1, "operand-count",
       "scatter takes N operands, the indices and N updates: not {} in all", use.count());
  need_arrays(use);
  size_t count = use.operands.size() / 2;
  const Shape& x = use.operand(0);
  const Shape& indices = use.operand(count);
  const ScatterDims& s = use.attrs.scatter;
  Numbers n{s.update_window_dims,  s.inserted_window_dims,          s.scatter_dims_to_operand_dims,
            s.input_batching_dims, s.scatter_indices_batching_dims, s.index_vector_dim};
  std::vector<int64_t> batch = check_numbers(x, indices, n, kScatterWords);
  int64_t rank = static_cast<int64_t>(s.update_window_dims.size() + batch.size());
  need_dimensions(s.update_window_dims, rank, "update_window_dims");
  need_ascending(s.update_window_dims, "update_window_dims");
  std::vector<int64_t> bounds;
  for (int64_t d = 0; d < x.rank(); ++d) {
    if (!contains(n.collapsed, d) && !contains(n.operand_batching, d)) bounds.push_back(x.dims[d]);
  }
  std::vector<int64_t> largest = interleave(s.update_window_dims, bounds, batch);

  std::vector<DType> types;
  std::vector<Shape> results;
  for (size_t i = 0; i < count; ++i) {
    need_same_sizes(use, 0, i);
    size_t u = count + 1 + i;
    need_same_type(use, i, u);
    const Shape& update = use.operand(u);
    need(update.rank() == rank, "scatter-updates", "updates {} must have rank {}, not {}", i, rank, update.rank());
    need(update.dims == use.operand(count + 1).dims, "scatter-updates",
         "updates 0 and {} have different sizes, {} and {}", i, use.operand(count + 1), update);
    for (int64_t d = 0; d < rank; ++d) {
      if (contains(s.update_window_dims, d)) {
        need(update.dims[d] <= largest[d], "scatter-updates",
             "window size {} of dimension {} of the updates exceeds the operand's {}", update.dims[d], d, largest[d]);
      } else {
        need(update.dims[d] == largest[d], "scatter-updates",
             "dimension {} of the updates has size {}, the indices ask for {}", d, update.dims[d], largest[d]);
      }
    }
    types.push_back(use.operand(i).type);
    results.push_back(use.operand(i));
  }
  need_called(use, 1);
  need_reducer(*use.called[0], types, "to_apply");
  return one_or_tuple(std::move(results));
}

constexpr Entry kOps[] = {
    {Opcode::kGather, gather,
     "offset_dims! collapsed_slice_dims! start_index_map! operand_batching_dims start_indices_batching_dims "
     "index_vector_dim:gather! slice_sizes! indices_are_sorted"},
    {Opcode::kScatter, scatter,
     "update_window_dims! inserted_window_dims! scatter_dims_to_operand_dims! input_batching_dims "
     "scatter_indices_batching_dims index_vector_dim:scatter! indices_are_sorted unique_indices to_apply!"},
};

}  // namespace

std::span<const Entry> gather_rules() { return kOps; }

}  // namespace hlojit::rules
