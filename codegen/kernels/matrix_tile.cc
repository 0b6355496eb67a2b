// See matrix_tile.h. Registers are numbered: first C's, row by row, then A's, then B's.
#include "codegen/kernels/matrix_tile.h"

#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/Module.h>

#include "codegen/kernels/tile_emitter.h"
#include "codegen/target.h"
#include "layout/divide.h"

namespace hlojit::codegen {
namespace {

namespace id = llvm::Intrinsic;

/// The registers that a shape takes.
struct Registers {
  explicit Registers(const MicroKernelShape& shape)
      : rows(shape.rows), high(ceil_div(rows, kTileSide)), wide(int64_t{shape.vectors} * shape.lanes / kTileSide) {}

  int64_t sums(int64_t i, int64_t j) const { return i * wide + j; }
  int64_t left(int64_t i) const { return high * wide + i; }
  int64_t right(int64_t j) const { return high * wide + high + j; }
  /// Rows of the tile share out evenly.
  int64_t first_row(int64_t i) const { return i * rows / high; }
  int64_t rows_of(int64_t i) const { return first_row(i + 1) - first_row(i); }

  int64_t rows, high, wide;
};

/// What the instruction that sets the registers' sizes reads.
struct Sizes {
  uint8_t palette = 1, unused[15] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};
static_assert(sizeof(Sizes) == 64);

class MatrixTile {
 public:
  MatrixTile(llvm::Function* f, const MicroKernelShape& shape) : t_(f, shape), shape_(shape), r_(shape) {}

  void by_instructions() {
    for (int64_t n = 0; n < r_.high * r_.wide; ++n) call(id::x86_tilezero, {tile(n)});
    if (shape_.accumulates) {
      t_.under(t_.argument(5), "earlier", {}, [&](const TileEmitter::Values&) {
        each_of_sums([&](int64_t i, int64_t j) { load(r_.sums(i, j), sums_at(i, j), t_.argument(3)); });
        return TileEmitter::Values();
      });
    }
    auto registers = [&](llvm::Value* n) {
      TileEmitter::Values all;
      for (int64_t i = 0; i < r_.high; ++i)
        all.push_back(by_pointers() ? pointed_to(t_.number(i), n)
                                    : t_.at(t_.argument(0), r_.first_row(i) * shape_.left.row_stride));
      return all;
    };
    each_step({}, registers, [&](llvm::Value* k, llvm::Value* right, const TileEmitter::Values& rows, const auto&) {
      step(k, right, rows);
      return TileEmitter::Values();
    });
    each_of_sums([&](int64_t i, int64_t j) {
      call(id::x86_tilestored64, {tile(r_.sums(i, j)), sums_at(i, j), bytes(t_.argument(3))});
    });
    t_.b.CreateRetVoid();
  }

  void by_twin() {
    t_.loop("row", 1, t_.number(shape_.rows), {}, [&](llvm::Value* row, const TileEmitter::Values&) {
      for (int64_t v = 0; v < shape_.vectors; ++v) twin_row(row, v * shape_.lanes);
      return TileEmitter::Values();
    });
    t_.b.CreateRetVoid();
  }

 private:
  llvm::Value* tile(int64_t n) { return t_.b.getInt8(static_cast<uint8_t>(n)); }
  llvm::Value* bytes(llvm::Value* elements) { return t_.b.CreateShl(elements, 2); }
  void call(id::ID which, llvm::ArrayRef<llvm::Value*> arguments) { t_.b.CreateIntrinsic(which, {}, arguments); }
  void load(int64_t n, llvm::Value* from, llvm::Value* stride) {
    call(id::x86_tileloadd64, {tile(n), from, bytes(stride)});
  }
  llvm::Value* sums_at(int64_t i, int64_t j) {
    llvm::Value* row = t_.b.CreateMul(t_.number(r_.first_row(i)), t_.argument(3));
    return t_.at(t_.argument(2), t_.b.CreateAdd(row, t_.number(j * kTileSide)));
  }
  void each_of_sums(const std::function<void(int64_t, int64_t)>& f) {
    for (int64_t i = 0; i < r_.high; ++i) {
      for (int64_t j = 0; j < r_.wide; ++j) f(i, j);
    }
  }

  /// A loop over the steps that carries the values: `body` gets how far a step is in its rows, where it is in the
  /// panel, and what `rows` made of the table's entries number n of each register.
  using Rows = std::function<TileEmitter::Values(llvm::Value* n)>;
  using Step = std::function<TileEmitter::Values(llvm::Value* k, llvm::Value* right, const TileEmitter::Values& rows,
                                                 const TileEmitter::Values&)>;
  TileEmitter::Values each_step(const TileEmitter::Values& values, const Rows& rows, const Step& body) {
    auto steps = [&](llvm::Value* panel, llvm::Value* count, const TileEmitter::Values& from,
                     const TileEmitter::Values& first) {
      return t_.loop("k", kTileSide, count, first, [&](llvm::Value* k, const TileEmitter::Values& all) {
        return body(k, right_at(panel, k), from, all);
      });
    };
    const int64_t stretch = shape_.left.stretch;
    if (stretch == 0) return steps(t_.argument(1), t_.argument(4), rows(t_.number(0)), values);
    return t_.loop("stretch", stretch, t_.argument(4), values, [&](llvm::Value* k, const TileEmitter::Values& all) {
      llvm::Value* n = t_.b.CreateUDiv(k, t_.number(stretch));
      return steps(right_at(t_.argument(1), k), t_.number(stretch), rows(n), all);
    });
  }
  llvm::Value* right_at(llvm::Value* panel, llvm::Value* k) {
    return t_.at(panel, t_.b.CreateMul(k, t_.number(shape_.panel_stride)));
  }
  /// What entry `n` of a register leads to.
  llvm::Value* pointed_to(llvm::Value* in_register, llvm::Value* n) {
    llvm::Value* entry = t_.b.CreateAdd(t_.b.CreateMul(in_register, t_.number(shape_.left.row_stride)), n);
    entry = t_.b.CreateInBoundsGEP(t_.b.getPtrTy(), t_.argument(0), entry);
    return t_.at(t_.b.CreateLoad(t_.b.getPtrTy(), entry), t_.argument(7));
  }
  bool by_pointers() const { return shape_.left.stretch > 0; }
  int64_t row_stride() const { return by_pointers() ? shape_.left.apart : shape_.left.row_stride; }

  void step(llvm::Value* k, llvm::Value* right, const TileEmitter::Values& rows) {
    const id::ID product = shape_.multiply_add == MultiplyAdd::kBfloatTiles ? id::x86_tdpbf16ps : id::x86_tdpbssd;
    for (int64_t i = 0; i < r_.high; ++i) {
      load(r_.left(i), t_.at(rows[static_cast<size_t>(i)], k), t_.number(row_stride()));
      for (int64_t j = 0; j < r_.wide; ++j) {
        if (i == 0) load(r_.right(j), t_.at(right, j * kTileSide), t_.number(shape_.panel_stride));
        call(product, {tile(r_.sums(i, j)), tile(r_.left(i)), tile(r_.right(j))});
      }
    }
  }

  /// The sums of a row, a vector of them from `column` on.
  void twin_row(llvm::Value* row, int64_t column) {
    llvm::Value* to = t_.at(t_.at(t_.argument(2), t_.b.CreateMul(row, t_.argument(3))), column);
    TileEmitter::Values sums = {llvm::Constant::getNullValue(t_.vector)};
    if (shape_.accumulates)
      sums = t_.under(t_.argument(5), "earlier", sums,
                      [&](const TileEmitter::Values&) { return TileEmitter::Values{t_.load(to)}; });
    auto this_row = [&](llvm::Value* n) {
      auto in = [&](llvm::Value* x, int64_t stride) { return t_.b.CreateMul(x, t_.number(stride)); };
      if (!by_pointers()) return TileEmitter::Values{t_.at(t_.argument(0), in(row, row_stride()))};
      llvm::Value* line = t_.number(r_.rows_of(0));
      llvm::Value* first = pointed_to(t_.b.CreateUDiv(row, line), n);
      return TileEmitter::Values{t_.at(first, in(t_.b.CreateURem(row, line), row_stride()))};
    };
    sums = each_step(
        sums, this_row,
        [&](llvm::Value* k, llvm::Value* right, const TileEmitter::Values& rows, const TileEmitter::Values& before) {
          TileEmitter::Values x, y;
          for (int64_t n = 0; n < kTileSide; ++n) {
            llvm::Value* group = t_.b.CreateAlignedLoad(t_.scalar, t_.at(t_.at(rows[0], k), n), t_.align);
            x.push_back(shape_.lanes > 1 ? t_.b.CreateVectorSplat(static_cast<unsigned>(shape_.lanes), group) : group);
            y.push_back(t_.load(t_.at(right, n * shape_.panel_stride + column)));
          }
          return TileEmitter::Values{tile_row_twin(t_.b, shape_.multiply_add, x, y, before[0])};
        });
    t_.store(sums[0], to);
  }

  // (left, panel of the right, sums, stride of the sums, groups of terms, whether to add to the sums, -, first of a
  // stretch)
  TileEmitter t_;
  const MicroKernelShape& shape_;
  const Registers r_;
};

}  // namespace

void begin_tiles(llvm::IRBuilderBase& b, llvm::Module& module, const MicroKernelShape& shape, const Target& target) {
  if (!has_instruction(shape.multiply_add, target)) return;
  const Registers r(shape);
  Sizes sizes;
  auto set = [&](int64_t n, int64_t rows) {
    sizes.row_bytes[n] = 64;
    sizes.rows[n] = static_cast<uint8_t>(rows);
  };
  for (int64_t i = 0; i < r.high; ++i) {
    set(r.left(i), r.rows_of(i));
    for (int64_t j = 0; j < r.wide; ++j) set(r.sums(i, j), r.rows_of(i));
  }
  for (int64_t j = 0; j < r.wide; ++j) set(r.right(j), kTileSide);
  llvm::StringRef text(reinterpret_cast<const char*>(&sizes), sizeof sizes);
  llvm::Constant* value = llvm::ConstantDataArray::getString(module.getContext(), text, false);
  auto* in_memory =
      new llvm::GlobalVariable(module, value->getType(), true, llvm::GlobalValue::PrivateLinkage, value, "tile.sizes");
  in_memory->setAlignment(llvm::Align(64));
  b.CreateIntrinsic(id::x86_ldtilecfg, {}, {in_memory});
}

void end_tiles(llvm::IRBuilderBase& b, MultiplyAdd kind, const Target& target) {
  if (has_instruction(kind, target)) b.CreateIntrinsic(id::x86_tilerelease, {}, {});
}

void emit_matrix_tile(llvm::Function* f, const MicroKernelShape& shape, const Target& target, bool twin) {
  MatrixTile tile(f, shape);
  if (!twin && has_instruction(shape.multiply_add, target))
    tile.by_instructions();
  else
    tile.by_twin();
}

}  // namespace hlojit::codegen
