// See stages.h.
#include "codegen/kernels/stages.h"

#include <algorithm>

#include "codegen/nest/pass.h"
#include "layout/index.h"

namespace hlojit::codegen {
bool Stages::is_update(const Instruction* root) const {
  return plan_.kind == KernelKind::kNest && root->is(Opcode::kDynamicUpdateSlice);
}

bool Stages::is_inner(size_t d) const { return std::ranges::binary_search(plan_.inner, static_cast<int64_t>(d)); }

Coords Stages::joined(const Coords& outer, const Coords& inner) const {
  Coords c;
  size_t o = 0, n = 0;
  for (size_t d = 0; d < plan_.domain.size(); ++d) c.push_back(is_inner(d) ? inner[n++] : outer[o++]);
  return c;
}

// The element that a scan comes to when the inner coordinate has this value.
Coords Stages::scanned(const Coords& outer, const Coords& inner) const {
  if (!plan_.backwards) return joined(outer, inner);
  return joined(outer, {IndexExpr(plan_.inner_sizes()[0] - 1) - inner[0]});
}

std::pair<Coords, Coords> Stages::apart(const Coords& coords) const {
  std::pair<Coords, Coords> both;
  for (size_t d = 0; d < coords.size(); ++d) (is_inner(d) ? both.second : both.first).push_back(coords[d]);
  return both;
}

void Stages::walk_roots(AccessWalk& walk, const Coords& coords, const std::vector<size_t>& which) const {
  for (size_t k : which) {
    const Instruction* root = plan_.roots[k];
    if (is_update(root)) {
      walk.read(root->operand(1), coords);
      WriteRelation write = write_relation(*root, coords, vars_);
      for (const Symbol& s : write.symbols) walk.read(root->operand(s.operand), s.coords);
      walk.write(root->shape, write.target);
    } else {
      walk.write(root->shape, coords);
      walk.read(root, coords);
    }
  }
}

void Stages::walk(AccessWalk& walk, const Stage& stage, const Coords& at) const {
  if (plan_.kind == KernelKind::kScan) {
    walk.write(plan_.hero->shape, at);
    return walk.read(plan_.hero->operand(0), at);
  }
  for (const ScratchTile& t : plan_.tiles) {
    if (&plan_.stages[t.first] >= &stage) break;
    walk.stop_at(t.value, [this](const Coords& c) { return linearize(plan_.inner_sizes(), apart(c).second); });
  }
  for (const Instruction* v : stage.keeps) walk.read(v, at);
  for (const Instruction* r : stage.reduces) {
    for (size_t k = 0; k < r->operand_count() / 2; ++k) walk.read_operand(r, k, at);
  }
  walk_roots(walk, at, stage.stores);
}

void Stages::store_roots(KernelBuilder& kernel, Scope& scope, const Coords& coords, const Unroll& unroll,
                         const std::vector<size_t>& which) const {
  ElementEmitter& e = kernel.emitter();
  std::vector<Coords> block = e.elements(coords, unroll);
  const bool each =
      unroll.var >= 0 && !kernel.in_place() && std::ranges::all_of(which, [&](size_t r) {
        const Shape& shape = plan_.roots[r]->shape;
        return !is_update(plan_.roots[r]) &&
               e.stores_each(kernel.result(r), linear_index(shape, block[0]), shape.type, std::ssize(block));
      });
  // Eight rows of a tile need more registers than there are. (Layer norms of 2048x1024 in T(8,128), AVX2: 790 us with
  // all of them before the first store, 590 so.)
  if (each) {
    for (const Coords& c : block) {
      for (size_t r : which) {
        const Instruction* root = plan_.roots[r];
        e.store(scope, kernel.result(r), linear_index(root->shape, c), e.emit(root, c, scope));
      }
    }
    return;
  }
  // All values before the first store: a result may lie in an operand's memory.
  std::vector<std::vector<Value>> values(which.size());
  std::vector<std::vector<IndexExpr>> addresses(which.size());
  for (size_t r = 0; r < which.size(); ++r) {
    const Instruction* root = plan_.roots[which[r]];
    bool update = is_update(root);
    for (const Coords& c : block) {
      values[r].push_back(e.emit(update ? root->operand(1) : root, c, scope));
      WriteRelation write{{}, c, {}};
      if (update) write = write_relation(*root, c, vars_);
      e.bind_symbols(root, write.symbols, scope);
      addresses[r].push_back(linear_index(root->shape, write.target));
    }
  }
  for (size_t r = 0; r < which.size(); ++r) {
    const BufferRef& buffer = kernel.result(which[r]);
    if (unroll.var >= 0)
      e.store_block(scope, buffer, addresses[r], values[r]);
    else
      e.store(scope, buffer, addresses[r][0], values[r][0]);
  }
}

void Stages::run(KernelBuilder& kernel, Scope& scope, size_t number, const Coords& at, const Unroll& unroll,
                 bool overlap) const {
  const Stage& stage = plan_.stages[number];
  ElementEmitter& e = kernel.emitter();
  e.begin_stage(number);
  const bool asks = ahead_ && ahead_->stage == number;
  if (!stage.inner) {
    for (const Coords& c : asks ? e.elements(at, unroll) : std::vector<Coords>())
      bring_next(*ahead_, plan_, *this, e, scope, c);
    return store_roots(kernel, scope, at, unroll, stage.stores);
  }
  Pass pass;
  for (const Coords& c : e.elements(at, unroll)) {
    for (const Instruction* r : stage.reduces) pass.members.push_back({r, c});
  }
  pass.sizes = plan_.inner_sizes();
  pass.overlap = overlap;
  if (plan_.kind == KernelKind::kScan) {
    pass.members = {{plan_.hero, at}};
    pass.running = [&](const Coords& along) { return scanned(at, along); };
    pass.with_accesses = [&](AccessWalk& w, const Coords& along) { walk(w, stage, scanned(at, along)); };
    pass.with = [&](Scope& s, const Coords& along) {
      store_roots(kernel, s, scanned(at, along), unroll, stage.stores);
    };
    return e.run_pass(pass, scope);
  }
  pass.serial = plan_.kind == KernelKind::kColumns;
  pass.with_accesses = [&](AccessWalk& w, const Coords& along) {
    // What earlier stages have made is only loaded, or at hand. (By the terms of the sum lanes ran across rows: the
    // norm of two f32[7142,7] side by side, a Zen 4, 79 us, 15 so.)
    for (size_t s = 0; s < number; ++s) {
      for (const Instruction* v : plan_.stages[s].keeps)
        w.stop_at(v, [this](const Coords& c) { return linearize(plan_.inner_sizes(), apart(c).second); });
      for (const Instruction* r : plan_.stages[s].reduces) w.stop_at(r, [](const Coords&) { return IndexExpr(0); });
    }
    walk(w, stage, joined(at, along));
  };
  const bool more = asks || !stage.keeps.empty() || !stage.stores.empty();
  if (more)
    pass.with = [&](Scope& s, const Coords& along) {
      for (const Coords& c : e.elements(at, unroll)) {
        if (asks) bring_next(*ahead_, plan_, *this, e, s, joined(c, along));
        for (const Instruction* v : stage.keeps) e.emit(v, joined(c, along), s);
      }
      if (!stage.stores.empty()) store_roots(kernel, s, joined(at, along), unroll, stage.stores);
    };
  e.run_pass(pass, scope);
}

}  // namespace hlojit::codegen
