// Shapes and literals from their protos.
#pragma once

#include "compiler/ir/literal.h"
#include "compiler/proto/wire.h"
#include "layout/shape.h"

namespace hlojit::proto {

/// A ShapeProto. Sizes and layouts are left to the verifier, as for text.
Shape read_shape(const Message& proto);

/// A LiteralProto as a literal of `shape`, which it must fit: type, sizes, number of elements. Elements
/// stand in the order of the proto's own layout.
Literal read_literal(const Message& proto, const Shape& shape);

}  // namespace hlojit::proto
