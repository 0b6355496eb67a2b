// See wire.h.
#include "compiler/proto/wire.h"

#include <bit>
#include <cstring>

namespace hlojit::proto {
namespace {

uint64_t take_fixed(std::string_view& from, size_t width) {
  if (from.size() < width) fail("a number is cut off");
  uint64_t value = 0;
  std::memcpy(&value, from.data(), width);
  from.remove_prefix(width);
  return value;
}

void expect(const Field& f, Wire wire) {
  if (f.wire != wire) fail("field " + std::to_string(f.number) + " has a wrong type");
}

}  // namespace

void fail(std::string message) { throw Error(ErrorKind::kInvalid, {{.rule = "proto", .message = std::move(message)}}); }

uint64_t take_varint(std::string_view& from) {
  uint64_t value = 0;
  for (int shift = 0; shift < 70; shift += 7) {
    if (from.empty()) fail("a number is cut off");
    auto byte = static_cast<uint8_t>(from.front());
    from.remove_prefix(1);
    if (shift < 64) value |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return value;
  }
  fail("a number has more than ten bytes");
}

Field take_field(std::string_view& from) {
  Field f;
  uint64_t key = take_varint(from);
  if (key >> 3 == 0 || key >> 3 > 0x1fffffff) fail("a field has no number");
  f.number = static_cast<uint32_t>(key >> 3);
  f.wire = static_cast<Wire>(key & 7);
  switch (f.wire) {
    case Wire::kVarint: f.value = take_varint(from); return f;
    case Wire::kFixed64: f.value = take_fixed(from, 8); return f;
    case Wire::kFixed32: f.value = take_fixed(from, 4); return f;
    case Wire::kBytes: {
      uint64_t size = take_varint(from);
      if (size > from.size()) fail("field " + std::to_string(f.number) + " is cut off");
      f.bytes = from.substr(0, size);
      from.remove_prefix(size);
      return f;
    }
  }
  fail("field " + std::to_string(f.number) + " has an unknown type");
}

bool Message::well_formed() const {
  try {
    each([](const Field&) {});
    return true;
  } catch (const Error&) {
    return false;
  }
}

bool Message::has(uint32_t number) const {
  bool found = false;
  each([&](const Field& f) { found |= f.number == number; });
  return found;
}

int64_t Message::integer(uint32_t number) const {
  uint64_t value = 0;
  each([&](const Field& f) {
    if (f.number != number) return;
    expect(f, Wire::kVarint);
    value = f.value;
  });
  return static_cast<int64_t>(value);
}

double Message::real(uint32_t number) const {
  uint64_t value = 0;
  each([&](const Field& f) {
    if (f.number != number) return;
    expect(f, Wire::kFixed64);
    value = f.value;
  });
  return std::bit_cast<double>(value);
}

float Message::real32(uint32_t number) const {
  uint64_t value = 0;
  each([&](const Field& f) {
    if (f.number != number) return;
    expect(f, Wire::kFixed32);
    value = f.value;
  });
  return std::bit_cast<float>(static_cast<uint32_t>(value));
}

std::string_view Message::text(uint32_t number) const {
  std::string_view value;
  each([&](const Field& f) {
    if (f.number != number) return;
    expect(f, Wire::kBytes);
    value = f.bytes;
  });
  return value;
}

std::vector<int64_t> Message::integers(uint32_t number) const {
  std::vector<int64_t> values;
  each([&](const Field& f) {
    if (f.number != number) return;
    if (f.wire == Wire::kVarint) {
      values.push_back(static_cast<int64_t>(f.value));
      return;
    }
    expect(f, Wire::kBytes);
    for (std::string_view rest = f.bytes; !rest.empty();) {
      values.push_back(static_cast<int64_t>(take_varint(rest)));
    }
  });
  return values;
}

std::vector<Message> Message::messages(uint32_t number) const {
  std::vector<Message> values;
  each([&](const Field& f) {
    if (f.number != number) return;
    expect(f, Wire::kBytes);
    values.emplace_back(f.bytes);
  });
  return values;
}

std::string Message::fixed(uint32_t number, size_t width) const {
  std::string values;
  each([&](const Field& f) {
    if (f.number != number) return;
    if (f.wire == (width == 4 ? Wire::kFixed32 : Wire::kFixed64)) {
      values.append(reinterpret_cast<const char*>(&f.value), width);
      return;
    }
    expect(f, Wire::kBytes);
    if (f.bytes.size() % width != 0) fail("field " + std::to_string(f.number) + " is cut off");
    values += f.bytes;
  });
  return values;
}

}  // namespace hlojit::proto
