#include "runtime/hash.h"

#include <bit>
#include <cstring>

#include <fmt/format.h>

namespace hlojit {
namespace {

// Odd, with bits all over: multiplying by them loses nothing.
constexpr uint64_t kA = 0x9e3779b97f4a7c15, kB = 0xd6e8feb86659fd93, kC = 0xa0761d6478bd642f;

uint64_t stir(uint64_t x) {
  x = (x ^ (x >> 32)) * kB;
  x = (x ^ (x >> 29)) * kC;
  return x ^ (x >> 32);
}

}  // namespace

std::string Digest::to_hex() const { return fmt::format("{:016x}{:016x}", high, low); }

// Each step is a bijection of a state for a given word, and of the word for a given state.
void Hasher::add(uint64_t word) {
  a_ = std::rotl((a_ ^ word) * kA, 29) + kC;
  b_ = (std::rotl(b_ + word * kC, 37) ^ kB) * kB;
}

void Hasher::add(std::string_view bytes) {
  add(uint64_t{bytes.size()});
  while (!bytes.empty()) {
    uint64_t word = 0;
    size_t n = std::min<size_t>(bytes.size(), sizeof word);
    std::memcpy(&word, bytes.data(), n);
    add(word);
    bytes.remove_prefix(n);
  }
}

Digest Hasher::digest() const {
  uint64_t a = stir(a_), b = stir(b_ ^ kA);
  return {stir(a + std::rotl(b, 23)), stir(b + a * kA)};
}

Digest digest_of(std::string_view bytes) {
  Hasher h;
  h.add(bytes);
  return h.digest();
}

}  // namespace hlojit
