// See dim_maps.h.
#include "compiler/plan/dim_maps.h"

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

void DimMaps::reach(const Instruction* value, DimMap map) {
  if (!g_.has(value) || !dependent_.contains(value)) return;
  if (value->shape.is_array()) {
    for (size_t d = 0; d < map.size(); ++d) {
      if (value->shape.dims[d] == 1) map[d] = -1;
    }
  }
  if (!maps_.contains(value)) maps_[value] = map;
  if (maps_.at(value) != map) refuse(value->name + " is read at two places of a row");
}

void DimMaps::step(const Instruction* i) {
  if (!maps_.contains(i)) return;  // does not depend on a reduction
  const DimMap map = maps_.at(i);  // no reference: more are added
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

}  // namespace hlojit
