// Where elements of an update go: the other direction of an access relation.
#include "compiler/analysis/access_rules.h"

namespace hlojit {

using namespace access_rules;

namespace {

WriteRelation dynamic_update_slice(const Instruction& i, std::span<const IndexExpr> element, VarSource& vars) {
  WriteRelation w;
  bool vector = i.operand(2)->shape.rank() == 1;
  for (size_t d = 0; d < element.size(); ++d) {
    int64_t slack = i.shape.dims[d] - i.operand(1)->shape.dims[d];
    w.target.push_back(element[d]);
    if (slack <= 0) continue;
    Coords at = vector ? Coords{IndexExpr(static_cast<int64_t>(d))} : Coords{};
    w.target[d] = element[d] + symbol(w.symbols, vector ? 2 : 2 + d, std::move(at), Range{0, slack}, vars);
  }
  return w;
}

// Values of a window's start along a dim. One outside [-window, dim] writes nothing, just as the nearest one inside
// does: clamping keeps ranges small and changes nothing, where the index's own type does not keep them so.
Range start_range(DType index, int64_t window, int64_t dim) {
  const int bits = dtype_bits(index);
  if (bits > 32) return {-window, dim};
  if (is_signed(index)) return {-(int64_t{1} << (bits - 1)), (int64_t{1} << (bits - 1)) - 1};
  return {0, (int64_t{1} << bits) - 1};
}

// Elements outside the target are dropped one by one.
WriteRelation scatter(const Instruction& i, std::span<const IndexExpr> element, VarSource& vars) {
  const ScatterDims& s = i.attrs.scatter;
  size_t count = i.operand_count() / 2;
  const Shape &operand = i.operand(0)->shape, &updates = i.operand(count + 1)->shape;
  WriteRelation w;
  Coords batch;
  for (size_t d = 0; d < element.size(); ++d) {
    if (!contains(s.update_window_dims, static_cast<int64_t>(d))) batch.push_back(element[d]);
  }
  IndexVectors indices{i.operand(count)->shape, count, s.index_vector_dim, batch};
  Ints box(operand.dims.size(), 1);
  Coords offset(operand.dims.size(), IndexExpr(0));
  size_t next = 0;
  for (size_t d = 0; d < operand.dims.size(); ++d) {
    auto n = static_cast<int64_t>(d);
    if (contains(s.inserted_window_dims, n) || contains(s.input_batching_dims, n)) continue;
    auto window = static_cast<size_t>(s.update_window_dims[next++]);
    box[d] = updates.dims[window];
    offset[d] = element[window];
  }
  Coords start(operand.dims.size(), IndexExpr(0));
  for (size_t k = 0; k < s.scatter_dims_to_operand_dims.size(); ++k) {
    auto d = static_cast<size_t>(s.scatter_dims_to_operand_dims[k]);
    Range range = start_range(indices.shape.type, box[d], operand.dims[d]);
    start[d] = symbol(w.symbols, indices.operand, indices.coords(k), range, vars);
  }
  for (size_t k = 0; k < s.input_batching_dims.size(); ++k) {
    start[static_cast<size_t>(s.input_batching_dims[k])] = indices.batch_at(s.scatter_indices_batching_dims[k]);
  }
  for (size_t d = 0; d < operand.dims.size(); ++d) {
    w.target.push_back(start[d] + offset[d]);
    Guard inside{w.target[d], 0, operand.dims[d]};
    if (!inside.always()) w.guards.push_back(std::move(inside));
  }
  return w;
}

}  // namespace

const Ints& update_sizes(const Instruction& i) {
  size_t k = i.is(Opcode::kScatter) ? i.operand_count() / 2 + 1 : 1;
  return i.operand(k)->shape.dims;
}

WriteRelation write_relation(const Instruction& i, std::span<const IndexExpr> element, VarSource& vars) {
  if (i.is(Opcode::kScatter)) return scatter(i, element, vars);
  return dynamic_update_slice(i, element, vars);
}

}  // namespace hlojit
