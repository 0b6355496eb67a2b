// See values.h.
#include "compiler/proto/values.h"

#include <algorithm>
#include <cstring>

#include "compiler/text/lexer.h"
#include "layout/index.h"

namespace hlojit::proto {
namespace {

DType read_type(int64_t number) {
  if (number == static_cast<int64_t>(DType::kBuffer)) {
    throw Error(ErrorKind::kUnsupported, {{.rule = "proto", .message = "buffer types are not supported"}});
  }
  if (number <= 0 || number > static_cast<int64_t>(DType::kBuffer)) {
    fail("no element type has the number " + std::to_string(number));
  }
  return static_cast<DType>(number);
}

Layout read_layout(const Message& proto) {
  Layout layout;
  layout.minor_to_major = proto.integers(1);
  for (const Message& t : proto.messages(6)) layout.tiles.push_back({t.integers(1)});
  layout.element_size_in_bits = proto.integer(7);
  layout.memory_space = proto.integer(8);
  if (int64_t type = proto.integer(11)) layout.index_type = read_type(type);
  if (int64_t type = proto.integer(12)) layout.pointer_type = read_type(type);
  layout.metadata_prefix_bytes = proto.integer(15);
  if (int64_t alignment = proto.integer(16)) layout.tail_padding_alignment = alignment;
  for (const Message& s : proto.messages(17)) {
    layout.split_configs.push_back({s.integer(1), s.integers(2)});
  }
  return layout;
}

Shape read_shape_at(const Message& proto, int depth) {
  if (depth > kMaxNesting) fail("tuple shapes are nested too deeply");
  Shape shape;
  shape.type = read_type(proto.integer(2));
  if (shape.is_tuple()) {
    for (const Message& e : proto.messages(4)) shape.elements.push_back(read_shape_at(e, depth + 1));
    return shape;
  }
  if (!shape.is_array()) return shape;
  shape.dims = proto.integers(3);
  std::vector<int64_t> flags = proto.integers(6);
  if (std::ranges::any_of(flags, [](int64_t f) { return f != 0; })) {
    shape.dynamic.assign(shape.dims.size(), false);
    for (size_t i = 0; i < flags.size() && i < shape.dims.size(); ++i) shape.dynamic[i] = flags[i] != 0;
  }
  shape.layout = proto.has(5) ? read_layout(proto.message(5)) : Layout::descending(shape.rank());
  return shape;
}

// Where LiteralProto keeps elements of a type, and how.
enum class Kept : uint8_t { kVarints, kFixed, kBytes };
struct Storage {
  DType type;
  uint32_t field;
  Kept kept;
};

constexpr Storage kStorage[] = {
    {DType::kPred, 2, Kept::kVarints},      {DType::kU8, 3, Kept::kBytes},
    {DType::kS32, 4, Kept::kVarints},       {DType::kS64, 5, Kept::kVarints},
    {DType::kU32, 6, Kept::kVarints},       {DType::kU64, 7, Kept::kVarints},
    {DType::kF32, 8, Kept::kFixed},         {DType::kF64, 9, Kept::kFixed},
    {DType::kF16, 11, Kept::kBytes},        {DType::kC64, 12, Kept::kFixed},
    {DType::kBF16, 13, Kept::kBytes},       {DType::kS8, 15, Kept::kBytes},
    {DType::kU16, 16, Kept::kBytes},        {DType::kS16, 17, Kept::kBytes},
    {DType::kC128, 18, Kept::kFixed},       {DType::kF8E5M2, 19, Kept::kBytes},
    {DType::kF8E4M3FN, 20, Kept::kBytes},   {DType::kS4, 21, Kept::kBytes},
    {DType::kU4, 22, Kept::kBytes},         {DType::kF8E4M3B11FNUZ, 23, Kept::kBytes},
    {DType::kF8E5M2FNUZ, 24, Kept::kBytes}, {DType::kF8E4M3FNUZ, 25, Kept::kBytes},
    {DType::kS2, 26, Kept::kBytes},         {DType::kU2, 27, Kept::kBytes},
    {DType::kF8E4M3, 28, Kept::kBytes},     {DType::kF8E3M4, 29, Kept::kBytes},
    {DType::kS1, 30, Kept::kBytes},         {DType::kU1, 31, Kept::kBytes},
    {DType::kF4E2M1FN, 32, Kept::kBytes},   {DType::kF8E8M0FNU, 33, Kept::kBytes},
};

[[noreturn]] void wrong_count(size_t have, int64_t want) {
  fail("a literal holds " + std::to_string(have) + " elements, its shape " + std::to_string(want));
}

// Elements below a byte: one a byte (their upper bits mean nothing), or packed, low bits first.
std::string unpacked(DType type, std::string_view bytes, int64_t count) {
  int bits = dtype_bits(type);
  bool packed = std::ssize(bytes) != count;
  bool fits = !packed || (count <= 8 * std::ssize(bytes) && std::ssize(bytes) == (count * bits + 7) / 8);
  if (!fits) wrong_count(bytes.size(), count);
  std::string out(static_cast<size_t>(count), '\0');
  for (int64_t i = 0; i < count; ++i) {
    int64_t at = packed ? i * bits : i * 8;
    int value = static_cast<uint8_t>(bytes[static_cast<size_t>(at / 8)]) >> (at % 8);
    value &= (1 << bits) - 1;
    if (is_signed(type) && value >> (bits - 1)) value -= 1 << bits;
    out[static_cast<size_t>(i)] = static_cast<char>(value);
  }
  return out;
}

// As text a literal has a pair of braces a row, also for rows without elements, which take no byte here;
// and whoever walks a literal goes a level deeper a dimension.
void check_printable(const Shape& shape) {
  if (shape.rank() > kMaxNesting) fail("a literal has too many dimensions");
  int64_t rows = 1;
  for (int64_t d : shape.dims) {
    if (d == 0) return;
    if (__builtin_mul_overflow(rows, d, &rows) || (shape.element_count() == 0 && rows > 1 << 20)) {
      fail("a literal has too many rows without elements");
    }
  }
}

// The elements in the proto's order, dtype_bytes each.
std::string elements_of(const Message& proto, const Shape& shape, int64_t count) {
  const auto* row = std::ranges::find(kStorage, shape.type, &Storage::type);
  auto width = static_cast<size_t>(dtype_bytes(shape.type));
  std::string data;
  if (row->kept == Kept::kFixed) {
    data = proto.fixed(row->field, is_complex(shape.type) ? width / 2 : width);
  } else if (row->kept == Kept::kBytes) {
    std::string_view bytes = proto.text(row->field);
    data = dtype_bits(shape.type) < 8 ? unpacked(shape.type, bytes, count) : std::string(bytes);
  } else {
    for (int64_t v : proto.integers(row->field)) {
      if (is_pred(shape.type)) v = v != 0;
      data.append(reinterpret_cast<const char*>(&v), width);  // little-endian
    }
  }
  if (data.size() % width != 0 || static_cast<int64_t>(data.size() / width) != count) {
    wrong_count(data.size() / width, count);
  }
  return data;
}

}  // namespace

Shape read_shape(const Message& proto) { return read_shape_at(proto, 0); }

Literal read_literal(const Message& proto, const Shape& shape) {
  if (shape.is_tuple()) {
    std::vector<Message> parts = proto.messages(10);
    if (parts.size() != shape.elements.size()) wrong_count(parts.size(), std::ssize(shape.elements));
    std::vector<Literal> elements;
    for (size_t i = 0; i < parts.size(); ++i) elements.push_back(read_literal(parts[i], shape.elements[i]));
    return Literal::tuple(std::move(elements));
  }
  if (!shape.is_array()) fail("no literal can have the shape " + shape.to_string());
  check_shape(shape);
  check_printable(shape);
  if (!proto.has(1)) fail("a literal has no shape");
  Shape own = read_shape(proto.message(1));
  if (!compatible(own, shape)) {
    fail("a literal of shape " + own.to_string() + " stands for " + shape.to_string());
  }
  // Only the order of dimensions says where elements stand in the proto.
  Shape stored = Shape::array(own.type, own.dims);
  if (!own.layout.minor_to_major.empty()) stored.layout.minor_to_major = own.layout.minor_to_major;
  check_shape(stored);
  std::string data = elements_of(proto, stored, stored.element_count());
  Literal literal(shape);
  if (data.empty()) return literal;
  if (stored.layout.is_default()) {
    std::memcpy(literal.bytes().data(), data.data(), data.size());
  } else {
    Shape dense = Shape::array(own.type, own.dims);
    relayout(stored, data.data(), dense, literal.bytes().data());
  }
  return literal;
}

}  // namespace hlojit::proto
