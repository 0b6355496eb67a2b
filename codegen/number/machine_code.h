// Instructions as bytes, for the few functions whose registers are known before LLVM would look for them: the 64-bit
// integers and branches of a loop, and vectors of 16 to 64 bytes, as AVX2 or as AVX-512 has them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace hlojit::codegen {

enum class Register : uint8_t {
  kRax,
  kRcx,
  kRdx,
  kRbx,
  kRsp,
  kRbp,
  kRsi,
  kRdi,
  kR8,
  kR9,
  kR10,
  kR11,
  kR12,
  kR13,
  kR14,
  kR15
};

/// Memory at base + scale * index + offset; a scale of 0: no index.
struct Place {
  Register base;
  int32_t offset = 0;
  int scale = 0;
  Register index = Register::kRax;
};

/// An instruction on vectors as the processor's manual names it: prefix 0 (none), 1 (66), 2 (F3); map 1 (0F), 2 (0F38),
/// 3 (0F3A).
struct VectorOp {
  uint8_t prefix, map, wide, code;
};

/// Of which lanes an operand's register holds something: all, or those of mask register 1 to 7, zeros in others.
using Mask = int;

class MachineCode {
 public:
  /// AVX2 has 16 vector registers of 32 bytes, no masks, and elements in all lanes of a register only.
  explicit MachineCode(bool avx512) : avx512_(avx512) {}

  void load(Register to, Place from) { integer(0x8B, to, from); }
  void store(Place to, Register from) { integer(0x89, from, to); }
  void address(Register to, Place of) { integer(0x8D, to, of); }
  void add(Register to, Register x) { integer(0x01, x, to); }
  void add(Register to, Place x) { integer(0x03, to, x); }
  void add(Register to, int32_t n) { immediate(0, to, n); }
  void subtract(Register to, int32_t n) { immediate(5, to, n); }
  void add(Place to, int32_t n) { immediate(0, to, n); }
  void subtract(Place to, int32_t n) { immediate(5, to, n); }
  void compare(Register x, int32_t n) { immediate(7, x, n); }
  void compare(Register x, Register y) { integer(0x39, y, x); }
  void keep_bits(Register to, int32_t n) { immediate(4, to, n); }
  void clear(Register r) { integer(0x31, r, r); }
  void shift_left(Register to, int n);
  void multiply(Register to, Register x, int32_t n);  ///< to = x * n
  void first_bit(Register to, Place of);              ///< the number of the least bit that is set
  void without_first_bit(Register to, Place of);      ///< what is left of the bits
  void push(Register r) { one_byte(0x50, r); }
  void pop(Register r) { one_byte(0x58, r); }
  /// Into the first cache, or only the second; or to be written.
  enum class Prefetch : uint8_t { kFirst, kSecond, kWrite };
  void prefetch(Place line, Prefetch how);
  /// The mask of the first so many lanes, or of these. Overwrites rax.
  void set_mask(Mask mask, int lanes) { set_mask_of(mask, (int64_t{1} << lanes) - 1); }
  void set_mask_of(Mask mask, int64_t lanes);
  void end();  ///< returns, with the vectors' upper halves cleared

  /// `vector` = op of `first`, of vectors of so many bytes, and a register or memory; stores have the memory as `to`.
  void vector(VectorOp op, int bytes, int vector, int first, int second, Mask mask = 0);
  void clear_vector(int vector) { this->vector({1, 1, 0, 0xEF}, 32, vector, vector, vector); }
  /// With a byte that says how; half a vector of memory.
  void shuffle(VectorOp op, int bytes, int vector, int first, int second, uint8_t how);
  void shuffle(VectorOp op, int bytes, int vector, int first, Place half, uint8_t how);
  void vector(VectorOp op, int bytes, int vector, int first, Place second, Mask mask = 0, bool zeros = true);
  /// The same with one element of memory in all lanes.
  void vector_of_one(VectorOp op, int bytes, int vector, int first, Place second, int element_bytes);
  /// An op without a first operand whose memory is one element.
  void broadcast(VectorOp op, int bytes, int vector, Place from, int element_bytes);

  size_t here() const { return code_.size(); }
  void align(size_t to);
  /// Back to there, if what was subtracted from or compared was more, or less.
  void jump_if_more(size_t to) { jump_back(0x8F, to); }
  void jump_if_less(size_t to) { jump_back(0x8C, to); }
  /// If bits were left.
  void jump_if_some(size_t to) { jump_back(0x85, to); }
  /// If bit 0 is not set, forward to what land() is told of.
  size_t jump_unless(Register bit_0);
  /// If what was compared was not less, as above.
  size_t jump_unless_less() { return jump_forward(0x8D); }
  void land(size_t jump);

  const std::string& code() const { return code_; }

 private:
  void byte(unsigned n) { code_ += static_cast<char>(n); }
  void four_bytes(int64_t n);
  void one_byte(unsigned code, Register r);
  void integer(unsigned code, Register r, Place place);
  void integer(unsigned code, Register r, Register to);
  void immediate(unsigned extension, Register to, int32_t n);
  void immediate(unsigned extension, Place to, int32_t n);
  void jump_back(unsigned condition, size_t to);
  size_t jump_forward(unsigned condition);
  /// The bytes that say which memory. Offsets that are multiples of `unit` may be stored as how many.
  void memory(unsigned r, Place place, int32_t unit);
  /// What comes before an op's code. `base` and `index` have the bits beyond the lowest three of the second operand.
  void prefix(VectorOp op, int bytes, int vector, int first, unsigned base, unsigned index, unsigned last);

  const bool avx512_;
  std::string code_;
};

/// An object file of one function.
std::string object_of(std::string_view name, std::string_view code);

}  // namespace hlojit::codegen
