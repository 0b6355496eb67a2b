// Blocks as a plan prints them, and back. See blocks.h.
#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

#include "compiler/plan/blocks.h"
#include "layout/divide.h"

namespace hlojit {
namespace {

constexpr std::string_view kAlongDepth = " along depth";

}  // namespace

std::string blocks_text(const Blocks& b) {
  std::string text = fmt::format("tile {}x{} block {}x{}x{}", b.tile_rows, b.tile_columns, b.rows, b.columns, b.depth);
  if (b.multiply_add != MultiplyAdd::kOne) text += fmt::format(" by {}", form_of(b.multiply_add).name);
  return b.along_depth ? text + std::string(kAlongDepth) : text;
}

std::optional<Blocks> read_blocks(std::string_view text) {
  long long v[5];
  char by[16] = "";
  std::string copy(text);
  int read = std::sscanf(copy.c_str(), "tile %lldx%lld block %lldx%lldx%lld by %15[a-z_]", &v[0], &v[1], &v[2], &v[3],
                         &v[4], by);
  if (read < 5) return std::nullopt;
  for (long long x : v) {
    if (x < 1 || x > (1 << 20)) return std::nullopt;
  }
  auto form = std::ranges::find(multiply_add_forms(), std::string_view(by), &MultiplyAddForm::name);
  if (form == multiply_add_forms().end()) return std::nullopt;
  Blocks b{v[0], v[1], v[2], v[3], v[4], form->kind, text.find(kAlongDepth) != text.npos};
  bool whole = b.rows % b.tile_rows == 0 && b.columns % b.tile_columns == 0;
  if (b.along_depth && b.multiply_add != MultiplyAdd::kOne && b.multiply_add != MultiplyAdd::kBfloats) {
    return std::nullopt;
  }
  if (form->tiles()) {
    const int64_t high = ceil_div(b.tile_rows, kTileSide), wide = ceil_div(b.tile_columns, kTileSide);
    if (b.tile_columns % kTileSide != 0 || high * wide + high + wide > kTileRegisters) return std::nullopt;
    return whole ? std::optional(b) : std::nullopt;
  }
  return whole && b.tile_rows <= 16 && b.tile_columns <= 256 ? std::optional(b) : std::nullopt;
}

}  // namespace hlojit
