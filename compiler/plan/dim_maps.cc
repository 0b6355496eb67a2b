// See dim_maps.h.
#include "compiler/plan/dim_maps.h"

#include <algorithm>

namespace hlojit {
namespace {

/// Only dims of size 1 may come and go.
DimMap through_reshape(const Instruction* i, const DimMap& map) {
  const auto& to = i->shape.dims;
  const auto& from = i->operand(0)->shape.dims;
  DimMap inner;
  size_t t = 0;
  for (int64_t size : from) {
    if (size == 1) {
      inner.push_back(-1);
      continue;
    }
    while (t < to.size() && to[t] == 1) ++t;
    if (t == to.size() || to[t] != size) refuse(quoted(i) + " regroups dims after a reduction");
    inner.push_back(map[t++]);
  }
  return inner;
}

}  // namespace

RowMaps::RowMaps(const std::vector<int64_t>& domain, const std::vector<int64_t>& inner) : all_dims(domain) {
  for (int d = 0; d < static_cast<int>(domain.size()); ++d) {
    const int64_t size = domain[static_cast<size_t>(d)];
    const int id = size == 1 ? -1 : d;
    all.push_back(id);
    if (std::ranges::binary_search(inner, d)) continue;
    kept.push_back(id);
    kept_dims.push_back(size);
  }
}

void DimMaps::reach(const Instruction* value, DimMap map) {
  if (!g_.has(value) || !dependent_.contains(value)) return;
  if (value->shape.is_array()) {
    for (size_t d = 0; d < map.size(); ++d) {
      if (value->shape.dims[d] == 1) map[d] = -1;
    }
  }
  auto [known, fresh] = maps_.insert(value);
  if (fresh)
    known = std::move(map);
  else if (known != map)
    refuse(value->name + " is read at two places of a row");
}

void DimMaps::step(const Instruction* i) {
  const DimMap* known = maps_.find(i);
  if (!known) return;         // does not depend on a reduction
  const DimMap map = *known;  // no reference: more are added
  if (is_elementwise(i->opcode) || i->is(Opcode::kCopy) || i->is(Opcode::kGetTupleElement)) {
    for (const Instruction* o : i->operands()) {
      bool spread = o->shape.is_array() && o->shape.rank() == 0;
      if (o->shape.is_array() && !spread && o->shape.dims != i->shape.dims) {
        refuse(quoted(i) + " changes sizes after a reduction");
      }
      reach(o, spread ? DimMap{} : map);
    }
  } else if (i->is(Opcode::kBroadcast)) {
    DimMap inner;
    for (int64_t d : i->attrs.dimensions) inner.push_back(map.at(d));
    reach(i->operand(0), std::move(inner));
  } else if (i->is(Opcode::kTranspose)) {
    DimMap inner(map.size());
    for (size_t d = 0; d < map.size(); ++d) inner[i->attrs.dimensions.at(d)] = map[d];
    reach(i->operand(0), std::move(inner));
  } else if (i->is(Opcode::kReshape)) {
    reach(i->operand(0), through_reshape(i, map));
  } else {
    refuse(quoted(i) + " moves elements after a reduction");
  }
}

void DimMaps::reach_result(const Instruction* result, const RowMaps& rows) {
  const auto& dims = dims_of(result);
  if (dims != rows.kept_dims && dims != rows.all_dims) {
    refuse("result " + result->name + " has neither the sizes of the rows nor of their elements");
  }
  reach(result, dims == rows.kept_dims ? rows.kept : rows.all);
}

void DimMaps::step_reduce(const Instruction* reduce, const RowMaps& rows) {
  if (map(reduce) != rows.kept) refuse(reduce->name + " is read across rows");
  for (size_t k = 0; k < reduce->operand_count(); ++k) {
    bool init = k >= reduce->operand_count() / 2;
    reach(reduce->operand(k), init ? DimMap{} : rows.all);
  }
}

}  // namespace hlojit
