// See machine_code.h. Bits and fields are those of the processors' manuals: REX, VEX and EVEX prefixes, ModRM and SIB.
#include "codegen/number/machine_code.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include <llvm/BinaryFormat/ELF.h>

namespace hlojit::codegen {
namespace {

unsigned number(Register r) { return static_cast<unsigned>(r); }
unsigned low(unsigned n) { return n & 7; }
unsigned bit(unsigned n, int k) { return n >> k & 1; }

/// Of a prefix, what it says of masks.
unsigned last_byte(Mask mask, bool zeros) { return static_cast<unsigned>(mask) | (mask > 0 && zeros ? 0x80U : 0); }

template <class T>
void put(std::string& bytes, const T& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

}  // namespace

void MachineCode::four_bytes(int64_t n) {
  for (int k = 0; k < 4; ++k) byte(static_cast<unsigned>(n >> (8 * k)) & 0xff);
}

void MachineCode::one_byte(unsigned code, Register r) {
  if (bit(number(r), 3)) byte(0x41);
  byte(code + low(number(r)));
}

void MachineCode::integer(unsigned code, Register r, Place place) {
  byte(0x48 | bit(number(r), 3) << 2 | (place.scale > 0 ? bit(number(place.index), 3) << 1 : 0) |
       bit(number(place.base), 3));
  byte(code);
  memory(number(r), place, 1);
}

void MachineCode::integer(unsigned code, Register r, Register to) {
  byte(0x48 | bit(number(r), 3) << 2 | bit(number(to), 3));
  byte(code);
  byte(0xC0 | low(number(r)) << 3 | low(number(to)));
}

void MachineCode::immediate(unsigned extension, Register to, int32_t n) {
  const bool is_short = n == static_cast<int8_t>(n);
  byte(0x48 | bit(number(to), 3));
  byte(is_short ? 0x83 : 0x81);
  byte(0xC0 | extension << 3 | low(number(to)));
  is_short ? byte(static_cast<unsigned>(n) & 0xff) : four_bytes(n);
}

void MachineCode::immediate(unsigned extension, Place to, int32_t n) {
  byte(0x48 | bit(number(to.base), 3));
  byte(0x81);
  memory(extension, to, 1);
  four_bytes(n);
}

void MachineCode::shift_left(Register to, int n) {
  byte(0x48 | bit(number(to), 3));
  byte(0xC1);
  byte(0xE0 | low(number(to)));
  byte(static_cast<unsigned>(n));
}

void MachineCode::multiply(Register to, Register x, int32_t n) {
  integer(0x69, to, x);
  four_bytes(n);
}

void MachineCode::first_bit(Register to, Place of) {  // tzcnt
  byte(0xF3);
  byte(0x48 | bit(number(to), 3) << 2 | bit(number(of.base), 3));
  byte(0x0F);
  byte(0xBC);
  memory(number(to), of, 1);
}

void MachineCode::without_first_bit(Register to, Place of) {  // blsr
  byte(0xC4);
  byte(0xC2 | bit(~number(of.base), 3) << 5);  // no bits beyond the lowest three of r, nor an index
  byte(0x80 | (~number(to) & 15) << 3);
  byte(0xF3);
  memory(1, of, 1);
}

void MachineCode::prefetch(Place line, Prefetch how) {
  const unsigned extension = how == Prefetch::kSecond ? 2 : 1;
  const unsigned beyond = (line.scale > 0 ? bit(number(line.index), 3) << 1 : 0) | bit(number(line.base), 3);
  if (beyond) byte(0x40 | beyond);
  byte(0x0F);
  byte(how == Prefetch::kWrite ? 0x0D : 0x18);
  memory(extension, line, 1);
}

void MachineCode::set_mask_of(Mask mask, int64_t lanes) {
  byte(0xB8);  // eax
  four_bytes(lanes);
  for (unsigned n : {0xC5U, 0xFBU, 0x92U}) byte(n);  // kmovd
  byte(0xC0 | static_cast<unsigned>(mask) << 3);
}

void MachineCode::end() {
  for (unsigned n : {0xC5U, 0xF8U, 0x77U}) byte(n);  // vzeroupper
  byte(0xC3);
}

void MachineCode::memory(unsigned r, Place place, int32_t unit) {
  const unsigned base = low(number(place.base));
  const bool sib = place.scale > 0 || base == number(Register::kRsp);
  const int32_t units = place.offset / unit;
  const bool is_short = place.offset % unit == 0 && units == static_cast<int8_t>(units);
  const bool none = place.offset == 0 && base != number(Register::kRbp);  // which would mean no base
  byte((none ? 0U : is_short ? 0x40U : 0x80U) | low(r) << 3 | (sib ? 4 : base));
  if (sib) {
    const unsigned index = place.scale > 0 ? low(number(place.index)) : 4;  // 4: none
    const auto scale = static_cast<unsigned>(std::countr_zero(static_cast<unsigned>(std::max(place.scale, 1))));
    byte(scale << 6 | index << 3 | base);
  }
  if (none) return;
  is_short ? byte(static_cast<unsigned>(units) & 0xff) : four_bytes(place.offset);
}

void MachineCode::prefix(VectorOp op, int bytes, int vector, int first, unsigned base, unsigned index, unsigned last) {
  const auto v = static_cast<unsigned>(vector), f = static_cast<unsigned>(first);
  const auto length = static_cast<unsigned>(std::countr_zero(static_cast<unsigned>(bytes / 16)));
  const unsigned wide = static_cast<unsigned>(op.wide) << 7 | (~f & 15) << 3 | op.prefix;
  const unsigned registers = bit(~v, 3) << 7 | bit(~index, 0) << 6 | bit(~base, 0) << 5 | op.map;
  if (avx512_) {
    byte(0x62);
    byte(registers | bit(~v, 4) << 4);
    byte(wide | 4);
    byte(last | length << 5 | bit(~f, 4) << 3);
  } else {
    byte(0xC4);
    byte(registers);
    byte(wide | length << 2);
  }
  byte(op.code);
}

void MachineCode::vector(VectorOp op, int bytes, int vector, int first, int second, Mask mask) {
  const auto s = static_cast<unsigned>(second);
  prefix(op, bytes, vector, first, bit(s, 3), bit(s, 4), last_byte(mask, true));
  byte(0xC0 | low(static_cast<unsigned>(vector)) << 3 | low(s));
}

void MachineCode::shuffle(VectorOp op, int bytes, int vector, int first, int second, uint8_t how) {
  this->vector(op, bytes, vector, first, second);
  byte(how);
}

void MachineCode::shuffle(VectorOp op, int bytes, int vector, int first, Place half, uint8_t how) {
  prefix(op, bytes, vector, first, bit(number(half.base), 3), bit(number(half.index), 3), 0);
  memory(static_cast<unsigned>(vector), half, avx512_ ? bytes / 2 : 1);
  byte(how);
}

void MachineCode::vector(VectorOp op, int bytes, int vector, int first, Place second, Mask mask, bool zeros) {
  prefix(op, bytes, vector, first, bit(number(second.base), 3), bit(number(second.index), 3), last_byte(mask, zeros));
  memory(static_cast<unsigned>(vector), second, avx512_ ? bytes : 1);
}

void MachineCode::vector_of_one(VectorOp op, int bytes, int vector, int first, Place second, int element_bytes) {
  constexpr unsigned kInAllLanes = 0x10;
  prefix(op, bytes, vector, first, bit(number(second.base), 3), bit(number(second.index), 3), kInAllLanes);
  memory(static_cast<unsigned>(vector), second, element_bytes);
}

void MachineCode::broadcast(VectorOp op, int bytes, int vector, Place from, int element_bytes) {
  prefix(op, bytes, vector, 0, bit(number(from.base), 3), bit(number(from.index), 3), 0);
  memory(static_cast<unsigned>(vector), from, avx512_ ? element_bytes : 1);
}

void MachineCode::align(size_t to) {
  for (size_t left = (to - here() % to) % to; left > 0;) {
    constexpr std::string_view kNops[] = {
        {"\x90", 1},
        {"\x66\x90", 2},
        {"\x0f\x1f\x00", 3},
        {"\x0f\x1f\x40\x00", 4},
        {"\x0f\x1f\x44\x00\x00", 5},
        {"\x66\x0f\x1f\x44\x00\x00", 6},
        {"\x0f\x1f\x80\x00\x00\x00\x00", 7},
        {"\x0f\x1f\x84\x00\x00\x00\x00\x00", 8},
    };
    const size_t n = std::min(left, std::size(kNops));
    code_ += kNops[n - 1];
    left -= n;
  }
}

void MachineCode::jump_back(unsigned condition, size_t to) {
  byte(0x0F);
  byte(condition);
  four_bytes(static_cast<int64_t>(to) - static_cast<int64_t>(here()) - 4);
}

size_t MachineCode::jump_unless(Register bit_0) {
  byte(0x40 | bit(number(bit_0), 3));
  byte(0xF6);
  byte(0xC0 | low(number(bit_0)));
  byte(1);
  return jump_forward(0x84);
}

size_t MachineCode::jump_forward(unsigned condition) {
  byte(0x0F);
  byte(condition);
  four_bytes(0);
  return here();
}

void MachineCode::land(size_t jump) {
  const auto distance = static_cast<int32_t>(here() - jump);
  std::memcpy(code_.data() + jump - sizeof(distance), &distance, sizeof(distance));
}

std::string object_of(std::string_view name, std::string_view code) {
  using namespace llvm::ELF;
  const std::string names = std::string("\0.text\0.symtab\0.strtab\0", 23) + std::string(name) + '\0';
  constexpr uint32_t kText = 1, kSymbols = 7, kNames = 15, kName = 23;
  constexpr size_t kAlign = 64;  // of the function, and what an object's header is long
  const size_t symbols_at = sizeof(Elf64_Ehdr) + (code.size() + 7) / 8 * 8;
  const size_t names_at = symbols_at + 2 * sizeof(Elf64_Sym), sections_at = names_at + (names.size() + 7) / 8 * 8;
  Elf64_Ehdr header{};
  std::ranges::copy(std::string_view("\177ELF\2\1\1"), header.e_ident);  // 64 bits, least byte first
  header.e_type = ET_REL;
  header.e_machine = EM_X86_64;
  header.e_version = EV_CURRENT;
  header.e_shoff = sections_at;
  header.e_ehsize = sizeof(Elf64_Ehdr);
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 4;
  header.e_shstrndx = 3;
  std::string bytes;
  put(bytes, header);
  bytes += code;
  bytes.resize(symbols_at);
  put(bytes, Elf64_Sym{});
  put(bytes, Elf64_Sym{kName, STB_GLOBAL << 4 | STT_FUNC, STV_DEFAULT, 1, 0, code.size()});
  bytes += names;
  bytes.resize(sections_at);
  put(bytes, Elf64_Shdr{});
  put(bytes,
      Elf64_Shdr{kText, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0, sizeof(header), code.size(), 0, 0, kAlign, 0});
  put(bytes, Elf64_Shdr{kSymbols, SHT_SYMTAB, 0, 0, symbols_at, 2 * sizeof(Elf64_Sym), 3, 1, 8, sizeof(Elf64_Sym)});
  put(bytes, Elf64_Shdr{kNames, SHT_STRTAB, 0, 0, names_at, names.size(), 0, 0, 1, 0});
  return bytes;
}

}  // namespace hlojit::codegen
