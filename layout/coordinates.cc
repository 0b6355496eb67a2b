// Coordinates as expressions: the tiled linear index, row-major positions, reshapes.
#include <algorithm>

#include "layout/error.h"
#include "layout/index_expr.h"
#include "layout/tiling.h"

namespace hlojit {

IndexExpr linear_index(const Shape& shape, std::span<const IndexExpr> coordinates) {
  return row_major(apply_tiles(shape, coordinates));
}

IndexExpr linearize(std::span<const int64_t> dims, std::span<const IndexExpr> coordinates) {
  IndexExpr out;
  int64_t stride = 1;
  for (size_t d = dims.size(); d-- > 0;) {
    out = out + coordinates[d] * stride;
    stride = saturating_product(stride, dims[d]);
  }
  return out;
}

std::vector<IndexExpr> delinearize(std::span<const int64_t> dims, const IndexExpr& position) {
  std::vector<IndexExpr> out(dims.size());
  if (std::ranges::find(dims, 0) != dims.end()) return out;  // no element, any index will do
  // The most major dimension of size above 1 takes the whole quotient: it is in bounds by contract.
  size_t major = 0;
  while (major < dims.size() && dims[major] == 1) ++major;
  IndexExpr rest = position;
  for (size_t d = dims.size(); d-- > major;) {
    if (dims[d] == 1) continue;
    out[d] = d == major ? rest : mod(rest, dims[d]);
    if (d > major) rest = floordiv(rest, dims[d]);
  }
  return out;
}

std::vector<IndexExpr> reshape_coordinates(std::span<const int64_t> operand_dims, std::span<const int64_t> result_dims,
                                           std::span<const IndexExpr> result_coordinates) {
  std::vector<IndexExpr> out(operand_dims.size());
  auto empty = [](std::span<const int64_t> dims) { return std::ranges::find(dims, 0) != dims.end(); };
  if (empty(operand_dims) && empty(result_dims)) return out;
  size_t i = 0, j = 0;
  while (i < operand_dims.size() || j < result_dims.size()) {
    size_t i0 = i, j0 = j;
    int64_t a = i < operand_dims.size() ? operand_dims[i++] : 1;
    int64_t b = j < result_dims.size() ? result_dims[j++] : 1;
    while (a != b) {
      bool grow_operand = a < b;
      if (grow_operand ? i == operand_dims.size() : j == result_dims.size()) {
        throw Error(ErrorKind::kInvalid, "reshape between arrays of different element counts");
      }
      (grow_operand ? a : b) *= grow_operand ? operand_dims[i++] : result_dims[j++];
    }
    IndexExpr position = linearize(result_dims.subspan(j0, j - j0), result_coordinates.subspan(j0, j - j0));
    std::vector<IndexExpr> part = delinearize(operand_dims.subspan(i0, i - i0), position);
    std::ranges::move(part, out.begin() + static_cast<std::ptrdiff_t>(i0));
  }
  return out;
}

}  // namespace hlojit
