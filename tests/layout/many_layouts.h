// The layouts that tests sweep: every form of the layout page at sizes small enough to enumerate.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "layout/shape.h"

namespace hlojit {

/// Some forty shapes; a few hundred to a few thousand elements each at most.
std::vector<Shape> many_layouts();

/// Calls f for every index below dims, row major.
void for_each_index(std::span<const int64_t> dims, const std::function<void(std::span<const int64_t>)>& f);

}  // namespace hlojit
