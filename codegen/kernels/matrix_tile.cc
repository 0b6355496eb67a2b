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
    t_.loop("k", kTileSide, t_.argument(4), {}, [&](llvm::Value* k, const TileEmitter::Values&) {
      step(k);
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

  void step(llvm::Value* k) {
    llvm::Value* left = t_.at(t_.argument(0), k);
    llvm::Value* right = t_.at(t_.argument(1), t_.b.CreateMul(k, t_.number(shape_.panel_stride)));
    const id::ID product = shape_.multiply_add == MultiplyAdd::kBfloatTiles ? id::x86_tdpbf16ps : id::x86_tdpbssd;
    for (int64_t i = 0; i < r_.high; ++i) {
      load(r_.left(i), t_.at(left, r_.first_row(i) * shape_.left.row_stride), t_.number(shape_.left.row_stride));
      for (int64_t j = 0; j < r_.wide; ++j) {
        if (i == 0) load(r_.right(j), t_.at(right, j * kTileSide), t_.number(shape_.panel_stride));
        call(product, {tile(r_.sums(i, j)), tile(r_.left(i)), tile(r_.right(j))});
      }
    }
  }

  /// The sums of a row, a vector of them from `column` on.
  void twin_row(llvm::Value* row, int64_t column) {
    llvm::Value* to = t_.at(t_.at(t_.argument(2), t_.b.CreateMul(row, t_.argument(3))), column);
    llvm::Value* left = t_.at(t_.argument(0), t_.b.CreateMul(row, t_.number(shape_.left.row_stride)));
    TileEmitter::Values sums = {llvm::Constant::getNullValue(t_.vector)};
    if (shape_.accumulates)
      sums = t_.under(t_.argument(5), "earlier", sums,
                      [&](const TileEmitter::Values&) { return TileEmitter::Values{t_.load(to)}; });
    sums = t_.loop("k", kTileSide, t_.argument(4), sums, [&](llvm::Value* k, const TileEmitter::Values& before) {
      llvm::Value* right = t_.at(t_.argument(1), t_.b.CreateMul(k, t_.number(shape_.panel_stride)));
      TileEmitter::Values x, y;
      for (int64_t n = 0; n < kTileSide; ++n) {
        llvm::Value* group = t_.b.CreateAlignedLoad(t_.scalar, t_.at(t_.at(left, k), n), t_.align);
        x.push_back(shape_.lanes > 1 ? t_.b.CreateVectorSplat(static_cast<unsigned>(shape_.lanes), group) : group);
        y.push_back(t_.load(t_.at(right, n * shape_.panel_stride + column)));
      }
      return TileEmitter::Values{tile_row_twin(t_.b, shape_.multiply_add, x, y, before[0])};
    });
    t_.store(sums[0], to);
  }

  // (left, panel of the right, sums, stride of the sums, groups of terms, whether to add to the sums, -, -)
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
