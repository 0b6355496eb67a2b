// The innermost loops of LLVM IR in text: where nearly all of a program's time goes, and where an address
// computed the wrong way costs ten times.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hlojit::test {

struct InnerLoop {
  std::string function, label;     ///< names without @ and %; the label is the loop's header
  std::vector<std::string> lines;  ///< instructions of all its blocks, in the order of the text
};

/// Natural loops that hold no other loop, of every function.
std::vector<InnerLoop> inner_loops(std::string_view ir);

}  // namespace hlojit::test
