// Types and layouts of the interface as ours and back.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "runtime/pjrt/objects.h"

namespace hlojit::pjrt {
namespace {

struct TypePair {
  PJRT_Buffer_Type pjrt;
  DType type;
};
constexpr TypePair kTypes[] = {
    {PJRT_Buffer_Type_PRED, DType::kPred},
    {PJRT_Buffer_Type_S8, DType::kS8},
    {PJRT_Buffer_Type_S16, DType::kS16},
    {PJRT_Buffer_Type_S32, DType::kS32},
    {PJRT_Buffer_Type_S64, DType::kS64},
    {PJRT_Buffer_Type_U8, DType::kU8},
    {PJRT_Buffer_Type_U16, DType::kU16},
    {PJRT_Buffer_Type_U32, DType::kU32},
    {PJRT_Buffer_Type_U64, DType::kU64},
    {PJRT_Buffer_Type_F16, DType::kF16},
    {PJRT_Buffer_Type_F32, DType::kF32},
    {PJRT_Buffer_Type_F64, DType::kF64},
    {PJRT_Buffer_Type_BF16, DType::kBF16},
    {PJRT_Buffer_Type_C64, DType::kC64},
    {PJRT_Buffer_Type_C128, DType::kC128},
    {PJRT_Buffer_Type_F8E5M2, DType::kF8E5M2},
    {PJRT_Buffer_Type_F8E4M3FN, DType::kF8E4M3FN},
    {PJRT_Buffer_Type_F8E4M3B11FNUZ, DType::kF8E4M3B11FNUZ},
    {PJRT_Buffer_Type_F8E5M2FNUZ, DType::kF8E5M2FNUZ},
    {PJRT_Buffer_Type_F8E4M3FNUZ, DType::kF8E4M3FNUZ},
    {PJRT_Buffer_Type_S4, DType::kS4},
    {PJRT_Buffer_Type_U4, DType::kU4},
    {PJRT_Buffer_Type_TOKEN, DType::kToken},
    {PJRT_Buffer_Type_S2, DType::kS2},
    {PJRT_Buffer_Type_U2, DType::kU2},
    {PJRT_Buffer_Type_F8E4M3, DType::kF8E4M3},
    {PJRT_Buffer_Type_F8E3M4, DType::kF8E3M4},
    {PJRT_Buffer_Type_F8E8M0FNU, DType::kF8E8M0FNU},
    {PJRT_Buffer_Type_F4E2M1FN, DType::kF4E2M1FN},
    {PJRT_Buffer_Type_S1, DType::kS1},
    {PJRT_Buffer_Type_U1, DType::kU1},
};

Layout tiled_layout(const PJRT_Buffer_MemoryLayout::Tiled& t) {
  Layout layout;
  layout.minor_to_major.assign(t.minor_to_major, t.minor_to_major + t.minor_to_major_size);
  const int64_t* sizes = t.tile_dims;
  for (size_t k = 0; k < t.num_tiles; ++k) {
    layout.tiles.push_back({std::vector<int64_t>(sizes, sizes + t.tile_dim_sizes[k])});
    sizes += t.tile_dim_sizes[k];
  }
  return layout;
}

// The order of dimensions whose dense strides these are. Dimensions of size 1 may have any stride.
Layout strided_layout(const Shape& shape, const PJRT_Buffer_MemoryLayout::Strides& s) {
  if (s.num_byte_strides != shape.dims.size())
    fail(PJRT_Error_Code_INVALID_ARGUMENT, "a layout has another number of strides than of dimensions");
  std::vector<int64_t> order(shape.dims.size());
  std::iota(order.rbegin(), order.rend(), 0);  // minor to major, descending where strides tie
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    bool one_a = shape.dims[static_cast<size_t>(a)] == 1, one_b = shape.dims[static_cast<size_t>(b)] == 1;
    if (one_a != one_b) return one_a;
    return s.byte_strides[a] < s.byte_strides[b];
  });
  int64_t expected = dtype_bytes(shape.type);
  for (int64_t d : order) {
    int64_t n = shape.dims[static_cast<size_t>(d)];
    if (n > 1 && shape.element_count() > 0 && s.byte_strides[d] != expected) {
      fail(PJRT_Error_Code_UNIMPLEMENTED, "a layout by strides with gaps or overlaps is not supported");
    }
    expected *= n;
  }
  Layout layout;
  layout.minor_to_major = std::move(order);
  return layout;
}

}  // namespace

PJRT_Buffer_Type to_pjrt(DType type) {
  for (const TypePair& t : kTypes) {
    if (t.type == type) return t.pjrt;
  }
  fail(PJRT_Error_Code_UNIMPLEMENTED, fmt::format("PJRT has no element type {}", dtype_name(type)));
}

DType from_pjrt(PJRT_Buffer_Type type) {
  for (const TypePair& t : kTypes) {
    if (t.pjrt == type) return t.type;
  }
  fail(PJRT_Error_Code_UNIMPLEMENTED,
       fmt::format("element type number {} of PJRT is not known", static_cast<int>(type)));
}

Shape make_shape(PJRT_Buffer_Type type, const int64_t* dims, size_t rank, const PJRT_Buffer_MemoryLayout* layout) {
  DType t = from_pjrt(type);
  if (t == DType::kToken) return Shape::token();
  Shape shape = Shape::array(t, std::vector<int64_t>(dims, dims + rank));
  if (layout && layout->type == PJRT_Buffer_MemoryLayout::kTiled) shape.layout = tiled_layout(layout->tiled);
  if (layout && layout->type == PJRT_Buffer_MemoryLayout::kStrides)
    shape.layout = strided_layout(shape, layout->strides);
  check_shape(shape);
  return shape;
}

}  // namespace hlojit::pjrt
