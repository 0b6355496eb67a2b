// XLA's own calls of linear algebra, which TensorFlow's programs hold: as the LAPACK functions that JAX calls, which
// the runtime serves. (XLA writes them out as loops over columns and rotations.)
//
//   (f32[m,n], f32[k]) custom-call(a), "Qr"                                      ->  lapack_sgeqrf_ffi
//   f32[m,n] custom-call(a, taus), "ProductOfElementaryHouseholderReflectors"    ->  lapack_sorgqr_ffi
//   (f32[n,n], f32[n]) custom-call(a), "Eigh", backend_config="1,1,100,1e-6"     ->  lapack_ssyevd_ffi
//
// Eigh's configuration says which triangle is read (1: the lower one), whether values are sorted (here they always
// are, ascending), and when to stop, which LAPACK knows itself. Without convergence, all of a matrix's results are NaN.
#include <algorithm>
#include <string>

#include "compiler/math/basic.h"
#include "compiler/passes/expansions.h"

namespace hlojit {
namespace {

/// With matrices column by column, as LAPACK has them; `batch` dims outside.
Shape column_major(Shape shape, int64_t batch) {
  shape.layout = Layout{};
  Ints& order = shape.layout.minor_to_major;
  for (int64_t d = batch; d < shape.rank(); ++d) order.push_back(d);
  for (int64_t d = batch - 1; d >= 0; --d) order.push_back(d);
  return shape;
}

/// LAPACK's letter for the type, or 0.
char letter_of(DType type) {
  switch (type) {
    case DType::kF32: return 's';
    case DType::kF64: return 'd';
    case DType::kC64: return 'c';
    case DType::kC128: return 'z';
    default: return 0;
  }
}

/// A call of LAPACK's function on `operands` with as many batch dims as the first has before its matrix.
Instruction* lapack_call(Builder& b, std::string_view function, const Builder::Values& operands,
                         std::vector<Shape> results, std::string config = "{}") {
  const Shape& matrix = operands[0]->shape;
  const int64_t batch = matrix.rank() - 2;
  Attributes attrs;
  attrs.custom_call_target = std::string("lapack_") + letter_of(matrix.type) + std::string(function) + "_ffi";
  for (const Instruction* o : operands) attrs.operand_layout_constraints.push_back(column_major(o->shape, batch));
  attrs.other = {{"api_version", "API_VERSION_TYPED_FFI"}};
  attrs.backend_config = std::move(config);
  for (Shape& r : results) r = column_major(std::move(r), batch);
  Shape shape = results.size() == 1 ? std::move(results[0]) : Shape::tuple(std::move(results));
  return b.op(Opcode::kCustomCall, std::move(shape), operands, std::move(attrs));
}

/// NaN wherever `good`, one for each of a batch, says no.
Instruction* nan_unless(Builder& b, Instruction* good, Instruction* x) {
  const Shape& shape = x->shape;
  const DType part = component_type(shape.type);
  Instruction* nan = b.constant(part, math::kNan);
  if (is_complex(shape.type)) nan = b.binary(Opcode::kComplex, nan, nan);
  Ints batch;
  for (int64_t d = 0; d < good->shape.rank(); ++d) batch.push_back(d);
  return b.select(b.broadcast_in_dim(good, shape.dims, batch), x, b.broadcast(nan, shape.dims));
}

Instruction* expand_eigh(Builder& b, Instruction* a, const Shape& values, bool lower) {
  const Shape& matrix = a->shape;
  const Ints batch(matrix.dims.begin(), matrix.dims.end() - 2);
  Instruction* solved = lapack_call(b, is_complex(matrix.type) ? "heevd" : "syevd", {a},
                                    {matrix, values, Shape::array(DType::kS32, batch)},
                                    std::string("{mode = 86 : ui8, uplo = ") + (lower ? "76" : "85") + " : ui8}");
  Instruction* info = b.get_tuple_element(solved, 2);
  Instruction* good = b.compare(Direction::kEq, info, b.constant(DType::kS32, 0));
  return b.tuple(
      {nan_unless(b, good, b.get_tuple_element(solved, 0)), nan_unless(b, good, b.get_tuple_element(solved, 1))});
}

/// The call in `type`, one that LAPACK has; nullptr if its operands or results are not as XLA's.
Instruction* expand_as(Builder& b, const Instruction& call, const Builder::Values& operands) {
  const std::string& target = call.attrs.custom_call_target;
  const Shape& matrix = operands[0]->shape;
  const int64_t rows = matrix.dims.end()[-2], columns = matrix.dims.end()[-1];
  Ints line(matrix.dims.begin(), matrix.dims.end() - 1);
  line.back() = std::min(rows, columns);
  auto gives = [&](std::initializer_list<Ints> dims) {
    const std::span<const Shape> found =
        call.shape.is_tuple() ? std::span<const Shape>(call.shape.elements) : std::span<const Shape>(&call.shape, 1);
    return std::ranges::equal(found, dims, {}, &Shape::dims);
  };
  if (target == "Qr" && operands.size() == 1 && gives({matrix.dims, line}))
    return lapack_call(b, "geqrf", operands, {matrix, Shape::array(matrix.type, line)});
  if (target == "Eigh" && operands.size() == 1 && rows == columns && gives({matrix.dims, line}))
    return expand_eigh(b, operands[0], Shape::array(component_type(matrix.type), line),
                       !call.attrs.backend_config.starts_with("\"0"));
  if (target == "ProductOfElementaryHouseholderReflectors" && operands.size() == 2 && rows >= columns) {
    const Shape& taus = operands[1]->shape;
    line.back() = taus.dims.empty() ? 0 : taus.dims.back();
    if (taus.dims == line && line.back() <= columns && gives({matrix.dims}))
      return lapack_call(b, is_complex(matrix.type) ? "ungqr" : "orgqr", operands, {matrix});
  }
  return nullptr;
}

}  // namespace

Instruction* expand_factors(Builder& b, const Instruction& call) {
  if (call.operand_count() == 0) return nullptr;
  const Shape& matrix = call.operand(0)->shape;
  if (!matrix.is_array() || matrix.rank() < 2) return nullptr;
  const DType own = matrix.type;
  const bool narrow = is_float(own) && dtype_bits(own) <= 16;
  if (!narrow && letter_of(own) == 0) return nullptr;
  Builder::Values operands;
  for (Instruction* o : call.operands()) operands.push_back(narrow ? b.convert(o, DType::kF32) : o);
  Instruction* made = expand_as(b, call, operands);
  if (!made || !narrow) return made;
  if (!made->shape.is_tuple()) return b.convert(made, own);
  return b.tuple({b.convert(b.get_tuple_element(made, 0), own), b.convert(b.get_tuple_element(made, 1), own)});
}

}  // namespace hlojit
