#include "codegen/kernels/kernel.h"

#include "codegen/kernels/merge.h"

#include <algorithm>
#include <unordered_set>

#include <fmt/format.h>
#include <llvm/IR/Module.h>

#include "codegen/kernels/contraction.h"
#include "codegen/kernels/function.h"
#include "codegen/target.h"

namespace hlojit::codegen {
namespace {

// What a kernel costs, coarsely: decides the number of chunks, hence only ever a function of shapes.
struct Work {
  int64_t ns = 0;
  int64_t chunks = 1;
};

constexpr int64_t kChunkNs = 20'000;
constexpr int64_t kMaxChunks = 256;

Work estimate(const AccessWalk& walk, double elements) {
  double bytes = 0;
  for (const Access& a : walk.accesses()) bytes += a.random ? 4 * a.bytes : a.bytes;
  double ns = elements * (bytes / 16.0 + 0.05 * walk.operations());
  Work w;
  w.ns = static_cast<int64_t>(std::min(ns, 1e15));
  w.chunks = std::clamp<int64_t>(w.ns / kChunkNs, 1, kMaxChunks);
  return w;
}

// How many vectors one iteration computes side by side (as one wide value that LLVM splits): long chains of
// dependent operations fill the scheduler unless others stand between them. Swish of 16M bf16: 11.6 ms
// with one, 9.9 with two, 8.0 with four. Very large bodies would spill and compile slowly.
int vectors_in_flight(int operations) { return operations <= 48 ? 4 : operations <= 120 ? 2 : 1; }

double product(std::span<const int64_t> dims) {
  double n = 1;
  for (int64_t d : dims) n *= static_cast<double>(d);
  return n;
}

class Emission {
 public:
  Emission(llvm::Module& module, const Instruction& fusion, const OverlapMatrix& overlap, const EmitOptions& options)
      : module_(module), fusion_(fusion), overlap_(overlap), options_(options) {
    std::string why;
    auto plan = plan_kernel(*fusion.to_apply(), &why);
    if (!plan) {
      throw Error(ErrorKind::kUnsupported, fusion.location,
                  fmt::format("fusion {} fits no kernel kind: {}", fusion.name, why));
    }
    plan_ = *plan;
    vector_bytes_ = options.vector_bytes ? options.vector_bytes : options.target->vector_bytes();
  }

  std::vector<KernelFunction> run() {
    if (plan_.kind == KernelKind::kContraction) {
      if (auto blocked = emit_contraction(module_, fusion_, plan_, overlap_, options_)) return std::move(*blocked);
    }
    if (plan_.kind == KernelKind::kRows) rows();
    else nest();
    return std::move(functions_);
  }

 private:
  bool is_update(const Instruction* root) const {
    return plan_.kind == KernelKind::kNest && root->is(Opcode::kDynamicUpdateSlice);
  }

  // Reads and writes of one element of the roots.
  void walk_roots(AccessWalk& walk, const Coords& coords, const std::vector<size_t>& which) {
    for (size_t k : which) {
      const Instruction* root = plan_.roots[k];
      if (is_update(root)) {
        walk.read(root->operand(1), coords);
        WriteRelation write = write_relation(*root, coords, false, vars_);
        for (const Symbol& s : write.symbols) walk.read(root->operand(s.operand), s.coords);
        walk.write(root->shape, write.target);
      } else {
        walk.write(root->shape, coords);
        walk.read(root, coords);
      }
    }
  }

  void store_roots(KernelBuilder& kernel, Scope& scope, const Coords& coords, const Unroll& unroll,
                   const std::vector<size_t>& which) {
    ElementEmitter& e = kernel.emitter();
    std::vector<Coords> block = {coords};
    if (unroll.var >= 0) {
      block.clear();
      std::vector<std::optional<IndexExpr>> values(static_cast<size_t>(unroll.var) + 1);
      for (int64_t k = 0; k < unroll.count; ++k) {
        values.back() = e.block_var(static_cast<size_t>(k));
        Coords c;
        for (const IndexExpr& x : coords) c.push_back(x.substitute(values));
        block.push_back(std::move(c));
      }
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
        if (update) write = write_relation(*root, c, false, vars_);
        e.bind_symbols(root, write.symbols, scope);
        addresses[r].push_back(linear_index(root->shape, write.target));
      }
    }
    for (size_t r = 0; r < which.size(); ++r) {
      const BufferRef& buffer = kernel.result(which[r]);
      if (unroll.var >= 0) e.store_block(scope, buffer, addresses[r], values[r]);
      else e.store(scope, buffer, addresses[r][0], values[r][0]);
    }
  }

  // nest, columns, contraction without a micro-kernel: lanes on the results' dims.
  void nest() {
    std::vector<size_t> all;
    for (size_t k = 0; k < plan_.roots.size(); ++k) all.push_back(k);
    int widest = 4, operations = 0;
    bool reduces = false;
    Work work;
    auto walk = [&](AccessWalk& w, const Coords& coords) {
      walk_roots(w, coords, all);
      widest = w.widest();
      operations = w.operations();
      reduces = w.has_reduction();
      work = estimate(w, product(plan_.domain) * reduced_product());
    };
    LoopPlanOptions loop_options{plan_.kind != KernelKind::kContraction || lanes_on_result(), vector_bytes_ / 4,
                                 vector_bytes_ / 4};
    std::vector<LoopPiece> pieces = plan_loops(plan_.domain, vars_, walk, loop_options);
    int native = std::max(1, vector_bytes_ / widest);
    int wide = native * (reduces ? 8 : vectors_in_flight(operations));
    for (size_t p = 0; p < pieces.size(); ++p) {
      LoopPiece& piece = pieces[p];
      bool blocked = piece.unroll.var >= 0;
      int lanes = blocked ? vector_bytes_ / 4 : wide;
      int64_t chunks = std::max<int64_t>(1, work.chunks / static_cast<int64_t>(pieces.size()));
      size_t split = split_for_chunks(piece, chunks, 16 * native, vars_);
      KernelBuilder kernel(module_, fusion_, overlap_, options_, vars_, suffix(p, pieces.size()));
      int64_t count = kernel.bind_chunks(piece, split);
      ElementEmitter& e = kernel.emitter();
      std::vector<int> widths = e.widths(piece, lanes, blocked ? lanes : native);
      e.loops(kernel.root(), piece, split, widths, {},
              [&](Scope& s, const Coords& coords, int, int, const ElementEmitter::Carried&) {
        if (blocked) e.begin_block(s, piece.unroll);
        store_roots(kernel, s, coords, piece.unroll, all);
        return ElementEmitter::Carried{};
      });
      finish(kernel, count, work.ns / static_cast<int64_t>(pieces.size()));
    }
  }

  // A dot as a reduction (matrix times vector): do most of its bytes lie contiguous along the result's
  // dims, or along the contracting ones, which then take the lanes?
  bool lanes_on_result() {
    Coords coords;
    std::vector<int> result_vars;
    for (int64_t n : plan_.domain) {
      result_vars.push_back(vars_.fresh());
      coords.push_back(IndexExpr::var(result_vars.back(), n));
    }
    AccessWalk walk(vars_);
    walk_roots(walk, coords, {0});
    double along_result = 0, along_contracted = 0;
    for (const Access& a : walk.accesses()) {
      if (a.write || a.bytes == 0 || a.random) continue;
      for (int v : a.address.variables()) {
        if (a.address.coefficient(v) != 1) continue;
        bool result = std::find(result_vars.begin(), result_vars.end(), v) != result_vars.end();
        (result ? along_result : along_contracted) += a.bytes * static_cast<double>(a.address.range().hi + 1);
      }
    }
    return along_result >= along_contracted;
  }

  // rows: scalar loops over the kept dims; reductions and full-domain results are inner loops.
  void rows() {
    const Shape& domain = plan_.hero->operand(0)->shape;
    std::vector<int64_t> kept_sizes, reduced_sizes;
    std::vector<bool> is_reduced(domain.dims.size(), false);
    for (int64_t d : plan_.reduced) is_reduced[static_cast<size_t>(d)] = true;
    for (size_t d = 0; d < domain.dims.size(); ++d) {
      (is_reduced[d] ? reduced_sizes : kept_sizes).push_back(domain.dims[d]);
    }
    std::vector<size_t> narrow, full;
    for (size_t k = 0; k < plan_.roots.size(); ++k) {
      (plan_.roots[k]->shape.dims == kept_sizes && !plan_.reduced.empty() ? narrow : full).push_back(k);
    }
    auto joined = [&](const Coords& kept, const Coords& reduced) {
      Coords c;
      size_t a = 0, r = 0;
      for (bool x : is_reduced) c.push_back(x ? reduced[r++] : kept[a++]);
      return c;
    };
    Work work;
    auto walk_outer = [&](AccessWalk& w, const Coords& kept) {
      walk_roots(w, kept, narrow);
      Coords reduced;
      for (int64_t n : reduced_sizes) reduced.push_back(IndexExpr::var(vars_.fresh(), n));
      walk_roots(w, joined(kept, reduced), full);
      work = estimate(w, product(domain.dims));
    };
    std::vector<LoopPiece> pieces = plan_loops(kept_sizes, vars_, walk_outer, {false, 1, 2});
    std::vector<const Instruction*> recurring = recurring_values(full);
    for (size_t p = 0; p < pieces.size(); ++p) {
      LoopPiece& piece = pieces[p];
      int64_t chunks = std::max<int64_t>(1, work.chunks / static_cast<int64_t>(pieces.size()));
      size_t split = split_for_chunks(piece, chunks, 1, vars_);
      KernelBuilder kernel(module_, fusion_, overlap_, options_, vars_, suffix(p, pieces.size()));
      int64_t count = kernel.bind_chunks(piece, split);
      ElementEmitter& e = kernel.emitter();
      int64_t scratch = keep_rows(kernel, recurring, is_reduced, reduced_sizes, piece.unroll);
      e.loops(kernel.root(), piece, split, {1}, {},
              [&](Scope& s, const Coords& kept, int, int, const ElementEmitter::Carried&) {
        if (piece.unroll.var >= 0) e.begin_block(s, piece.unroll);
        if (!narrow.empty()) store_roots(kernel, s, kept, piece.unroll, narrow);
        if (!full.empty()) {
          row_results(kernel, s, reduced_sizes, full, piece.unroll, [&](const Coords& r) { return joined(kept, r); });
        }
        return ElementEmitter::Carried{};
      });
      finish(kernel, count, work.ns / static_cast<int64_t>(pieces.size()), scratch);
    }
  }

  // Dear values of the whole domain that a reduction needs and a later stage needs again.
  std::vector<const Instruction*> recurring_values(const std::vector<size_t>& full) const {
    const Computation& c = *fusion_.to_apply();
    const auto& dims = plan_.hero->operand(0)->shape.dims;
    std::unordered_set<const Instruction*> wanted_later, wanted_by_reduction;
    auto reach = [&](auto& self, const Instruction* i, std::unordered_set<const Instruction*>& set) -> void {
      if (i->is(Opcode::kReduce) || !set.insert(i).second) return;
      for (const Instruction* o : i->operands()) self(self, o, set);
    };
    for (size_t k : full) reach(reach, plan_.roots[k], wanted_later);
    for (const auto& i : c.instructions()) {
      if (!i->is(Opcode::kReduce)) continue;
      for (size_t k = 0; k < i->operand_count() / 2; ++k) reach(reach, i->operand(k), wanted_by_reduction);
    }
    std::vector<const Instruction*> found;
    for (const auto& i : c.instructions()) {
      bool both = wanted_later.contains(i.get()) && wanted_by_reduction.contains(i.get());
      bool computed = i->info().price == OpPrice::kTranscendental && i->shape.dims == dims;
      if (both && computed && (is_float(i->shape.type))) found.push_back(i.get());
    }
    return found;
  }

  // Gives recurring values rows of scratch, as long as those stay in the near half of L2.
  int64_t keep_rows(KernelBuilder& kernel, const std::vector<const Instruction*>& values, const std::vector<bool>& is_reduced,
                    const std::vector<int64_t>& sizes, const Unroll& unroll) {
    int64_t rows = unroll.var >= 0 ? unroll.count : 1, used = 0;
    auto count = static_cast<int64_t>(product(sizes));
    for (const Instruction* i : values) {
      int64_t bytes = (rows * count * (i->shape.type == DType::kF64 ? 8 : 4) + 63) / 64 * 64;
      if (used + bytes > options_.target->info().l2_bytes / 2) break;
      llvm::IRBuilder<>& b = kernel.root().builder;
      BufferRef buffer;
      buffer.pointer = b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), kernel.scratch(), static_cast<uint64_t>(used));
      ElementEmitter& e = kernel.emitter();
      e.keep_row(i, buffer, [&e, is_reduced, sizes, count, rows](const Coords& coords) {
        ElementEmitter::Position p;
        Coords reduced;
        for (size_t d = 0; d < coords.size(); ++d) (is_reduced[d] ? reduced : p.row).push_back(coords[d]);
        p.at = linearize(sizes, reduced);
        // Rows of a block lie one after the other.
        for (size_t k = 0; rows > 1 && k < e.block().size(); ++k) {
          int var = e.block_id(k);
          bool here = std::any_of(p.row.begin(), p.row.end(), [&](const IndexExpr& x) { return x.depends_on(var); });
          if (here) p.at = p.at + IndexExpr(static_cast<int64_t>(k) * count);
        }
        return p;
      });
      used += bytes;
    }
    return used;
  }

  void row_results(KernelBuilder& kernel, Scope& scope, std::span<const int64_t> sizes, const std::vector<size_t>& full,
                   const Unroll& unroll, const std::function<Coords(const Coords&)>& joined) {
    int widest = 4, operations = 0;
    auto walk = [&](AccessWalk& w, const Coords& reduced) {
      walk_roots(w, joined(reduced), full);
      widest = w.widest();
      operations = w.operations();
    };
    std::vector<LoopPiece> inner = plan_loops(sizes, vars_, walk, {true, vector_bytes_ / 4, 0});
    int native = std::max(1, vector_bytes_ / widest);
    int wide = native * vectors_in_flight(operations);
    ElementEmitter& e = kernel.emitter();
    for (LoopPiece& piece : inner) {
      e.loops(scope, piece, 0, e.widths(piece, wide, native), {},
              [&](Scope& s, const Coords& reduced, int, int, const ElementEmitter::Carried&) {
        store_roots(kernel, s, joined(reduced), unroll, full);
        return ElementEmitter::Carried{};
      });
    }
  }

  // Elements combined into one result, where the kernel combines any.
  double reduced_product() const {
    double most = 1;
    for (const auto& i : fusion_.to_apply()->instructions()) {
      if (is_reduction(*i)) most = std::max(most, product(reduction_sizes(*i)));
    }
    return most;
  }

  std::string suffix(size_t p, size_t count) const { return count == 1 ? "" : fmt::format(".piece{}", p); }

  void finish(KernelBuilder& kernel, int64_t chunks, int64_t ns, int64_t scratch = 0) {
    functions_.push_back({kernel.finish(), chunks, scratch, ns});
  }

  llvm::Module& module_;
  const Instruction& fusion_;
  const OverlapMatrix& overlap_;
  const EmitOptions& options_;
  KernelPlan plan_;
  VarSource vars_;
  int vector_bytes_ = 32;
  std::vector<KernelFunction> functions_;
};

}  // namespace

// Refuses element types and packings that no emitter handles, by name and place.
void check_types(const Computation& fused) {
  for (const auto& i : fused.instructions()) {
    for (const Shape* s : leaves(i->shape)) {
      bool packed = s->layout.element_size_in_bits != 0 && s->layout.element_size_in_bits != 8 * dtype_bytes(s->type);
      if (is_compiled_type(s->type) && !packed && s->layout.metadata_prefix_bytes == 0) continue;
      throw Error(ErrorKind::kUnsupported, i->location,
                  fmt::format("{} of {} is not compiled yet", op_name(i->opcode), s->to_string()));
    }
  }
}

std::vector<KernelFunction> emit_kernel(llvm::Module& module, const Instruction& fusion, const OverlapMatrix& overlap,
                                        const EmitOptions& options) {
  if (has_step_kernel(fusion)) return {{.function = emit_step_kernel(module, fusion, options)}};
  check_types(*fusion.to_apply());
  return Emission(module, fusion, overlap, options).run();
}

}  // namespace hlojit::codegen
