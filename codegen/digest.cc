// LLVM's BLAKE3: it comes with the library that is linked anyway.
#include "codegen/digest.h"

#include <llvm/ADT/StringExtras.h>
#include <llvm/Support/BLAKE3.h>

namespace hlojit::codegen {

std::string digest(std::string_view bytes) {
  llvm::BLAKE3Result<> hash =
      llvm::BLAKE3::hash(llvm::ArrayRef(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()));
  return llvm::toHex(hash, /*LowerCase=*/true);
}

}  // namespace hlojit::codegen
