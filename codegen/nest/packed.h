// Is an element of this buffer wider or narrower than its type's bytes?
#pragma once

#include "codegen/nest/element_emitter.h"

namespace hlojit::codegen {

inline bool packs(const BufferRef& buffer, DType type) {
  return buffer.element_bits != 0 && buffer.element_bits != 8 * dtype_bytes(type);
}

}  // namespace hlojit::codegen
