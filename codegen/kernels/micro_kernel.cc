// See micro_kernel.h.
#include "codegen/kernels/micro_kernel.h"

#include <functional>

#include <fmt/format.h>
#include <llvm/IR/Module.h>

#include "codegen/kernels/depth_tile.h"
#include "codegen/kernels/matrix_tile.h"
#include "codegen/kernels/tile_emitter.h"
#include "compiler/plan/target_info.h"

namespace hlojit::codegen {
namespace {

using Tile = TileEmitter::Values;  // vectors of sums, row by row

/// The body of a micro-kernel: a loop over k that adds to a tile in registers, then the tile's way to memory.
class TileBody {
 public:
  TileBody(llvm::Function* f, const MicroKernelShape& shape, const Target& target)
      : t_(f, shape),
        shape_(shape),
        target_(target),
        rows_(static_cast<size_t>(shape.rows)),
        vectors_(static_cast<size_t>(shape.vectors)) {}

  void emit() {
    if (shape_.accumulates) {
      t_.under(t_.argument(5), "earlier", {}, [&](const Tile&) {
        prefetch_sums();
        return Tile{};
      });
    }
    Tile tile;
    for (size_t n = 0; n < rows_ * vectors_; ++n) tile.push_back(llvm::Constant::getNullValue(type_of(n)));
    llvm::Value* panel = t_.argument(1);
    if (shape_.left.skips)
      along_some(tile, panel);
    else if (shape_.left.stretch > 0 && !shape_.left.shares_pointers())
      along_pointers(tile, panel);
    else
      steps(tile, panel, t_.argument(4), {});
    if (shape_.takes_off) take_off_bias(tile);
    // To what an earlier slice of k left, if there was one.
    const Tile sums = sum_addresses();
    if (shape_.accumulates)
      tile = t_.under(t_.argument(5), "add", tile, [&](const Tile& t) { return with_earlier(t, sums); });
    for (size_t n = 0; n < tile.size(); ++n) t_.store(tile[n], sums[n], stored(n));
    t_.b.CreateRetVoid();
  }

 private:
  bool floating() const { return is_float(shape_.type); }

  /// Of vector n of the tile.
  llvm::Type* type_of(size_t n) const { return (n + 1) % vectors_ == 0 ? t_.last_vector : t_.vector; }

  /// How many of its sums belong there; 0: all.
  int stored(size_t n) const { return (n + 1) % vectors_ == 0 ? shape_.stored_lanes : 0; }

  /// A loop over k that carries the tile, the panel and another pointer (null: none), which `body` moves on.
  void loop(const char* name, int64_t step, llvm::Value* count, Tile& tile, llvm::Value*& panel, llvm::Value* other,
            const std::function<void(llvm::Value* k, llvm::Value*& other)>& body) {
    const size_t sums = tile.size();
    auto carried = [&] {
      TileEmitter::Values all = tile;
      all.push_back(panel);
      if (other) all.push_back(other);
      return all;
    };
    auto take = [&](const TileEmitter::Values& all) {
      tile.assign(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(sums));
      panel = all[sums];
      if (other) other = all[sums + 1];
    };
    take(t_.loop(name, step, count, carried(), [&](llvm::Value* k, const TileEmitter::Values& all) {
      take(all);
      body(k, other);
      return carried();
    }));
  }

  /// So many steps of k. `pointers`: to each row's first element, none where rows lie at strides.
  void steps(Tile& tile, llvm::Value*& panel, llvm::Value* count, const Tile& pointers) {
    const RowsForm& form = shape_.left;
    // A pointer that moves on, not an index times a stride.
    llvm::Value* first = pointers.empty() ? t_.argument(0) : nullptr;
    Tile offsets;  // of rows, where the stride between them is an argument
    for (size_t i = 0; i < rows_ && shape_.row_stride_is_argument(); ++i)
      offsets.push_back(t_.b.CreateMul(t_.number(static_cast<int64_t>(i)), t_.argument(10)));
    loop("k", shape_.unroll, count, tile, panel, first, [&](llvm::Value* k, llvm::Value*& left) {
      llvm::Value* step = nullptr;
      auto row_at = [&](size_t i, int64_t u) {
        if (form.shares_pointers()) {
          if (i == 0) step = load_pointer(left, u);
          return t_.at(t_.at(step, t_.argument(7)), static_cast<int64_t>(i));
        }
        if (!left) return t_.at(t_.at(pointers[i], k), u);
        if (!offsets.empty()) return t_.at(left, offsets[i]);
        return t_.at(left, u * form.k_stride + static_cast<int64_t>(i) * form.row_stride);
      };
      if (shape_.looks_ahead && left) look_ahead(k);
      for (int64_t u = 0; u < shape_.unroll; ++u) add_products(tile, panel, u, row_at);
      const bool given = shape_.strides_are_arguments;
      panel = t_.at(panel, given ? t_.argument(9) : t_.number(shape_.unroll * shape_.panel_stride));
      if (!left) return;
      llvm::Value* moved = given ? t_.argument(8) : t_.number(shape_.unroll * form.k_stride);
      left = form.shares_pointers() ? pointer_at(left, moved) : t_.at(left, moved);
    });
  }

  /// Stretch by stretch, each at its rows' pointers.
  void along_pointers(Tile& tile, llvm::Value*& panel) {
    const RowsForm& form = shape_.left;
    loop("stretch", form.stretch, t_.argument(4), tile, panel, t_.argument(0),
         [&](llvm::Value* k, llvm::Value*& table) {
           const Tile pointers = row_pointers(table);
           if (shape_.looks_ahead) look_along(table);
           llvm::Value* count = t_.number(form.stretch);
           if (form.ends_within)
             count = t_.b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, t_.b.CreateSub(t_.argument(4), k), count);
           steps(tile, panel, count, pointers);
           table = pointer_at(table, form.k_stride);
         });
  }

  /// The stretches that there are.
  void along_some(Tile& tile, llvm::Value* panel) {
    const RowsForm& form = shape_.left;
    llvm::Value* left = t_.argument(4);
    Tile carried = tile;
    carried.push_back(left);
    carried = t_.loop("stretch", 1, t_.b.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, left), carried,
                      [&](llvm::Value*, const Tile& all) {
                        Tile sums(all.begin(), all.end() - 1);
                        llvm::Value* n = t_.b.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, all.back(), t_.b.getTrue());
                        llvm::Value* table = pointer_at(t_.argument(0), t_.b.CreateMul(n, t_.number(form.k_stride)));
                        const Tile pointers = row_pointers(table);
                        if (shape_.looks_ahead) look_along(table);
                        llvm::Value* columns =
                            t_.at(panel, t_.b.CreateMul(n, t_.number(form.stretch * shape_.panel_stride)));
                        steps(sums, columns, t_.number(form.stretch), pointers);
                        sums.push_back(t_.b.CreateAnd(all.back(), t_.b.CreateSub(all.back(), t_.number(1))));
                        return sums;
                      });
    tile.assign(carried.begin(), carried.end() - 1);
  }

  /// Of a stretch, from the element on that is meant.
  Tile row_pointers(llvm::Value* table) {
    Tile pointers;
    for (size_t i = 0; i < rows_; ++i) {
      llvm::Value* row = load_pointer(table, static_cast<int64_t>(i) * shape_.left.row_stride);
      pointers.push_back(t_.at(row, t_.argument(7)));
    }
    return pointers;
  }

  /// What each row's next pointer leads to: it lies in another page.
  void look_along(llvm::Value* table) {
    const RowsForm& form = shape_.left;
    Tile pointers;
    for (size_t i = 0; i < rows_; ++i) {
      llvm::Value* row = load_pointer(table, static_cast<int64_t>(i) * form.row_stride + form.k_stride);
      pointers.push_back(t_.b.CreateGEP(t_.scalar, row, t_.argument(7)));
    }
    const int64_t line = kCacheLine / dtype_bytes(shape_.type);
    t_.loop("line", line, t_.number(form.stretch), {}, [&](llvm::Value* at, const Tile&) {
      for (llvm::Value* row : pointers) t_.prefetch(t_.b.CreateGEP(t_.scalar, row, at), *shape_.looks_ahead);
      return Tile{};
    });
  }

  llvm::Value* pointer_at(llvm::Value* table, llvm::Value* n) {
    return t_.b.CreateInBoundsGEP(t_.b.getPtrTy(), table, n);
  }
  llvm::Value* pointer_at(llvm::Value* table, int64_t n) { return pointer_at(table, t_.number(n)); }
  llvm::Value* load_pointer(llvm::Value* table, int64_t n) {
    return t_.b.CreateLoad(t_.b.getPtrTy(), pointer_at(table, n));
  }

  /// Where the tile's vectors lie in memory.
  Tile sum_addresses() {
    Tile all;
    for (size_t i = 0; i < rows_; ++i) {
      llvm::Value* row = t_.at(t_.argument(2), t_.b.CreateMul(t_.number(static_cast<int64_t>(i)), t_.argument(3)));
      for (size_t v = 0; v < vectors_; ++v) all.push_back(t_.at(row, shape_.start(static_cast<int>(v))));
    }
    return all;
  }

  /// What is added to comes last, on its way into the cache all along. A loop: as long as the tile's own code, were it
  /// not one.
  void prefetch_sums() {
    const size_t line = std::max<size_t>(kCacheLine / static_cast<size_t>(dtype_bytes(shape_.type) * shape_.lanes), 1);
    t_.loop("row", 1, t_.number(shape_.rows), {t_.argument(2)}, [&](llvm::Value*, const Tile& row) {
      for (size_t v = 0; v < vectors_; v += line)
        t_.prefetch(t_.at(row[0], static_cast<int64_t>(v) * shape_.lanes), Cache::kFirst, true);
      return Tile{t_.at(row[0], t_.argument(3))};
    });
  }

  /// A's lines one tile on, as many a turn as a tile takes. In rows side by side no prefetcher sees them come.
  void look_ahead(llvm::Value* k) {
    llvm::Value* next = t_.b.CreateMul(t_.b.CreateAdd(k, t_.argument(4)), t_.number(shape_.rows));
    t_.prefetch(t_.b.CreateGEP(t_.scalar, t_.argument(0), next), *shape_.looks_ahead);
  }

  /// A line of B some rows on, into the second cache: more than the rows at hand would not stay in the first.
  void look_down(llvm::Value* panel, int64_t k, size_t v) {
    const int64_t next = (k + shape_.looks_down) * shape_.panel_stride + static_cast<int64_t>(v) * shape_.lanes;
    if (static_cast<int64_t>(v) * shape_.lanes * dtype_bytes(shape_.type) % 64 != 0) return;
    t_.prefetch(t_.b.CreateGEP(t_.scalar, panel, t_.number(next)), Cache::kSecond);
  }

  /// The products at depth k behind what the pointers are at. `row_at`: where a row's element lies there.
  void add_products(Tile& tile, llvm::Value* panel, int64_t k,
                    const std::function<llvm::Value*(size_t, int64_t)>& row_at) {
    Tile columns;
    for (size_t v = 0; v < vectors_; ++v) {
      const int64_t first = k * shape_.panel_stride + shape_.start(static_cast<int>(v));
      columns.push_back(t_.load(t_.at(panel, first), v + 1 == vectors_));
      if (shape_.looks_down > 0) look_down(panel, k, v);
    }
    for (size_t i = 0; i < rows_; ++i) {
      llvm::Value* x = t_.b.CreateAlignedLoad(t_.scalar, row_at(i, k), t_.align);
      for (size_t v = 0; v < vectors_; ++v) {
        llvm::Value*& sum = tile[i * vectors_ + v];
        llvm::Value* all = x;
        if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(sum->getType()))
          all = t_.b.CreateVectorSplat(vector->getNumElements(), x);
        if (shape_.multiply_add != MultiplyAdd::kOne)
          sum = multiply_add(t_.b, shape_.multiply_add, all, columns[v], sum, target_);
        else if (floating())
          sum = t_.b.CreateIntrinsic(llvm::Intrinsic::fma, {sum->getType()}, {all, columns[v], sum});
        else
          sum = t_.b.CreateAdd(t_.b.CreateMul(all, columns[v]), sum);
      }
    }
  }

  void take_off_bias(Tile& tile) {
    Tile bias;
    for (size_t v = 0; v < vectors_; ++v) {
      llvm::Value* at = t_.at(t_.argument(6), shape_.start(static_cast<int>(v)));
      bias.push_back(t_.b.CreateAlignedLoad(type_of(v), at, t_.align));
    }
    for (size_t n = 0; n < tile.size(); ++n) tile[n] = t_.b.CreateSub(tile[n], bias[n % vectors_]);
  }

  Tile with_earlier(Tile tile, const Tile& sums) {
    for (size_t n = 0; n < tile.size(); ++n) {
      llvm::Value* old = t_.load(type_of(n), sums[n], stored(n));
      tile[n] = floating() ? t_.b.CreateFAdd(old, tile[n]) : t_.b.CreateAdd(old, tile[n]);
    }
    return tile;
  }

  // (left, panel of the right, sums, stride of the sums, depth, whether to add to them, bias, first of a stretch,
  // strides of a step of k on the left and in the panel, of the left's rows)
  TileEmitter t_;
  const MicroKernelShape& shape_;
  const Target& target_;
  size_t rows_, vectors_;
};

}  // namespace

void share_strides(MicroKernelShape& shape, int64_t steps) {
  constexpr int64_t kMany = 64;
  const bool plain = !shape.along_depth && !form_of(shape.multiply_add).tiles();
  const bool fixed = shape.unroll > 1 || shape.left.stretch > 0 || shape.looks_down > 0;
  if (plain && !fixed && steps >= kMany) shape.strides_are_arguments = true;
}

std::string micro_kernel_name(const MicroKernelShape& shape) {
  return fmt::format(
      "tile.{}.{}x{}x{}{}.{}.{}.{}.{}.{}{}{}{}{}{}{}{}", dtype_name(shape.type), shape.rows, shape.vectors, shape.lanes,
      shape.last_lanes < shape.lanes ? fmt::format("{}{}", shape.moves_back ? "b" : "m", shape.last_lanes) : "",
      shape.left.row_stride, shape.left.k_stride, shape.panel_stride, shape.unroll, form_of(shape.multiply_add).name,
      shape.accumulates ? "+" : "", shape.takes_off ? "-" : "",
      shape.looks_ahead ? fmt::format(">{}", static_cast<int>(*shape.looks_ahead)) : "",
      shape.looks_down > 0 ? fmt::format("v{}", shape.looks_down) : "",
      shape.left.stretch > 0 ? fmt::format("@{}{}", shape.left.stretch,
                                           shape.left.ends_within ? "e"
                                           : shape.left.skips     ? "s"
                                           : shape.left.apart > 0 ? fmt::format("r{}", shape.left.apart)
                                                                  : "")
                             : "",
      shape.along_depth ? "d" : "", shape.stored_lanes > 0 ? fmt::format("s{}", shape.stored_lanes) : "");
}

llvm::Function* micro_kernel(llvm::Module& module, MicroKernelShape shape, const EmitOptions& options) {
  if (shape.strides_are_arguments) shape.left.k_stride = shape.panel_stride = 0;
  if (shape.row_stride_is_argument()) shape.left.row_stride = 0;
  std::string name = micro_kernel_name(shape);
  if (llvm::Function* known = module.getFunction(name)) return known;
  llvm::IRBuilder<> b(module.getContext());
  llvm::Type *pointer = b.getPtrTy(), *i64 = b.getInt64Ty();
  auto* type = llvm::FunctionType::get(
      b.getVoidTy(), {pointer, pointer, pointer, i64, i64, b.getInt1Ty(), pointer, i64, i64, i64, i64}, false);
  auto linkage = options.micro_kernels ? llvm::GlobalValue::ExternalLinkage : llvm::GlobalValue::InternalLinkage;
  auto* f = llvm::Function::Create(type, linkage, name, module);
  for (unsigned k = 0; k < 3; ++k) f->addParamAttr(k, llvm::Attribute::NoAlias);
  if (options.micro_kernels)
    options.micro_kernels->push_back(shape);
  else if (form_of(shape.multiply_add).tiles())
    emit_matrix_tile(f, shape, *options.target);
  else if (shape.along_depth)
    emit_depth_tile(f, shape, *options.target);
  else
    TileBody(f, shape, *options.target).emit();
  return f;
}

}  // namespace hlojit::codegen
