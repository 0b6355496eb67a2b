// Attributes of a custom call as a handler reads them.
//
// HLO keeps them as the text of an MLIR dictionary, {eps = 1.0e-05 : f32, n = array<i64: 1, 2>}; handlers
// get typed values in order of their names.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/pjrt/ffi_abi.h"

namespace hlojit::ffi {

class CallAttributes {
 public:
  /// Reads a dictionary, or nothing. Throws Error(kInvalid) with the position in the text.
  explicit CallAttributes(std::string_view text);
  CallAttributes(CallAttributes&&) = default;

  /// Points into this object, which must outlive it.
  const XLA_FFI_Attrs& view() const { return view_; }

 private:
  friend class AttributeReader;
  CallAttributes() = default;
  void finish();

  struct Value {
    XLA_FFI_AttrType type = kScalar;
    int32_t dtype = 0;
    std::string bytes;  ///< of a scalar, an array, a string
    size_t count = 1;
    std::unique_ptr<CallAttributes> dictionary;
    // What the handler sees.
    XLA_FFI_Scalar scalar{};
    XLA_FFI_Array array{};
    XLA_FFI_ByteSpan span{};
  };
  struct Entry {
    std::string name;
    XLA_FFI_ByteSpan name_span{};
    Value value;
  };
  std::deque<Entry> entries_;
  std::vector<XLA_FFI_AttrType> types_;
  std::vector<const XLA_FFI_ByteSpan*> names_;
  std::vector<const void*> values_;
  XLA_FFI_Attrs view_{};
};

}  // namespace hlojit::ffi
