// See npy.h.
#include "tools/npy.h"

#include <unistd.h>

#include <bit>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "layout/index.h"

namespace hlojit::tools {
namespace {

// The dtype a type is stored as; sub-byte and 8-bit floats as their bytes.
std::string descr(DType type) {
  switch (type) {
    case DType::kPred: return "|b1";
    case DType::kBF16: return "<u2";
    case DType::kC64: return "<c8";
    case DType::kC128: return "<c16";
    default: break;
  }
  int bytes = dtype_bytes(type);
  if (is_float(type)) return bytes == 1 ? "|u1" : fmt::format("<f{}", bytes);
  char kind = is_signed(type) ? 'i' : 'u';
  return fmt::format("{}{}{}", bytes == 1 ? '|' : '<', kind, bytes);
}

bool accepted(const std::string& found, DType type) {
  if (found == descr(type)) return true;
  if (type == DType::kBF16) return found == "|V2" || found == "<V2";
  if (is_float(type) && dtype_bytes(type) == 1) return found == "|V1";
  // One byte has no order.
  return found.size() == 3 && found[0] == '<' && found[2] == '1' && found.substr(1) == descr(type).substr(1);
}

struct Header {
  std::string descr;
  bool fortran = false;
  std::vector<int64_t> dims;
};

// A header is a Python dict literal of three known keys.
Header parse_header(const std::string& text, const std::string& path) {
  auto bad = [&](std::string_view what) {
    return Error(ErrorKind::kInput, fmt::format("{}: the .npy header {}", path, what));
  };
  Header h;
  auto value_of = [&](std::string_view key) {
    size_t at = text.find(fmt::format("'{}'", key));
    if (at == std::string::npos) throw bad(fmt::format("has no '{}'", key));
    at = text.find(':', at);
    if (at == std::string::npos) throw bad("is broken");
    ++at;
    while (at < text.size() && text[at] == ' ') ++at;
    return at;
  };
  size_t at = value_of("descr");
  if (at >= text.size() || text[at] != '\'') throw bad("has a structured 'descr'");
  size_t end = text.find('\'', at + 1);
  if (end == std::string::npos) throw bad("is broken");
  h.descr = text.substr(at + 1, end - at - 1);
  at = value_of("fortran_order");
  if (text.compare(at, 4, "True") == 0)
    h.fortran = true;
  else if (text.compare(at, 5, "False") != 0)
    throw bad("has no boolean 'fortran_order'");
  at = value_of("shape");
  if (at >= text.size() || text[at] != '(') throw bad("has no tuple 'shape'");
  for (++at; at < text.size() && text[at] != ')';) {
    if (text[at] == ' ' || text[at] == ',') {
      ++at;
      continue;
    }
    int64_t n = 0;
    size_t digits = 0;
    for (; at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])); ++at, ++digits) {
      if (digits > 17) throw bad("has a size out of range");
      n = 10 * n + (text[at] - '0');
    }
    if (digits == 0) throw bad("has a broken 'shape'");
    h.dims.push_back(n);
  }
  if (at >= text.size()) throw bad("has a broken 'shape'");
  return h;
}

}  // namespace

Error unreadable(const std::string& path, int code) {
  return Error(ErrorKind::kInput, fmt::format("cannot read '{}': {}", path, std::strerror(code)));
}

Buffer read_npy(const std::string& path, const Shape& shape) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw unreadable(path, errno);
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) throw unreadable(path, EISDIR);
  auto bad = [&](std::string_view what) { return Error(ErrorKind::kInput, fmt::format("{}: {}", path, what)); };
  char magic[8];
  if (!file.read(magic, 8) || std::memcmp(magic, "\x93NUMPY", 6) != 0) throw bad("not a .npy file");
  int version = magic[6];
  if (version < 1 || version > 3) throw bad(fmt::format(".npy version {} is not known", version));
  unsigned char size[4] = {};
  if (!file.read(reinterpret_cast<char*>(size), version == 1 ? 2 : 4)) throw bad("cut short");
  size_t length = size[0] | size[1] << 8 | size_t{size[2]} << 16 | size_t{size[3]} << 24;
  if (length > (size_t{1} << 20)) throw bad("the .npy header is too long");
  std::string text(length, '\0');
  if (!file.read(text.data(), static_cast<std::streamsize>(length))) throw bad("cut short");
  Header h = parse_header(text, path);
  if (!h.descr.empty() && h.descr[0] == '>') throw bad("big-endian data is not read; convert it with astype");
  if (!accepted(h.descr, shape.type)) {
    throw bad(fmt::format("holds dtype '{}', {} is needed ('{}')", h.descr, shape.to_string(false), descr(shape.type)));
  }
  // A dynamic dimension may be smaller than its bound.
  bool fits = h.dims.size() == shape.dims.size();
  for (size_t d = 0; fits && d < h.dims.size(); ++d) {
    bool dynamic = d < shape.dynamic.size() && shape.dynamic[d];
    fits = dynamic ? h.dims[d] <= shape.dims[d] : h.dims[d] == shape.dims[d];
  }
  if (!fits) {
    throw bad(
        fmt::format("holds an array of sizes [{}], {} is needed", fmt::join(h.dims, ","), shape.to_string(false)));
  }
  Shape dense = Shape::array(shape.type, h.dims);
  if (h.fortran) {
    for (size_t k = 0; k < dense.dims.size(); ++k) dense.layout.minor_to_major[k] = static_cast<int64_t>(k);
  }
  Buffer buffer = Buffer::allocate(dense);
  auto bytes = static_cast<std::streamsize>(buffer.size_bytes());
  if (bytes > 0 && !file.read(static_cast<char*>(buffer.mutable_raw()), bytes)) throw bad("cut short");
  if (file.peek() != std::char_traits<char>::eof()) throw bad("longer than its header says");
  Shape wanted = shape;
  if (shape.has_dynamic_dims()) wanted = Shape::array(shape.type, h.dims);
  return dense == wanted ? buffer : buffer.to_layout(wanted);
}

void write_file(const std::string& path, const std::string& bytes) {
  auto bad = [&](std::string_view what) {
    return Error(ErrorKind::kFailed, fmt::format("cannot write {}: {}", path, what));
  };
  namespace fs = std::filesystem;
  std::error_code code;
  if (fs::is_directory(path, code)) throw bad("it is a folder");
  // Devices and pipes are written as they are; only a file can appear whole.
  bool special = fs::exists(path, code) && !fs::is_regular_file(path, code);
  std::string target = special ? path : fmt::format("{}.{}.tmp", path, getpid());
  std::FILE* f = std::fopen(target.c_str(), "wb");
  if (!f) throw bad(std::strerror(errno));
  bool ok = std::fwrite(bytes.data(), 1, bytes.size(), f) == bytes.size();
  ok = std::fclose(f) == 0 && ok;
  int why = errno;
  if (ok && !special) {
    fs::rename(target, path, code);
    ok = !code;
    why = code.value();
  }
  if (ok) return;
  if (!special) fs::remove(target, code);
  throw bad(std::strerror(why));
}

void write_npy(const std::string& path, const Buffer& buffer) {
  const Shape& shape = buffer.shape();
  Shape dense = Shape::array(shape.type, shape.dims);
  Buffer plain = shape == dense ? buffer : buffer.to_layout(dense);
  std::string dims;
  for (int64_t n : dense.dims) dims += fmt::format("{}, ", n);
  if (dense.dims.size() > 1)
    dims.resize(dims.size() - 2);
  else if (!dims.empty())
    dims.resize(dims.size() - 1);
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr(shape.type), dims);
  size_t total = (10 + header.size() + 1 + 63) / 64 * 64;
  header.resize(total - 11, ' ');
  header += '\n';
  std::string bytes = "\x93NUMPY";
  bytes += '\x01';
  bytes += '\0';
  bytes += static_cast<char>(header.size() & 255);
  bytes += static_cast<char>(header.size() >> 8);
  bytes += header;
  bytes.append(static_cast<const char*>(plain.raw()), plain.size_bytes());
  write_file(path, bytes);
}

}  // namespace hlojit::tools
