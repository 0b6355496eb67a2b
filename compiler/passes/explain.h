// What --explain prints: a line for each decision of a pass, in the words of the HLO it stands in.
//
//   fuse main: join a.1 b.2: apart 230.0 ns, together 180.0 ns: yes
//   unroll main: loop: 40 rounds are more than 16: no
//
// Lines are for people; tests look for parts of them.
#pragma once

#include <utility>

#include <fmt/format.h>

#include "compiler/pipeline.h"

namespace hlojit {

/// One decision of `pass` about something in `where`; nothing is formatted if nobody listens.
template <class... Args>
void explain(const PipelineOptions& options, std::string_view pass, const Computation& where,
             fmt::format_string<Args...> format, Args&&... args) {
  if (!options.explain) return;
  options.explain(fmt::format("{} {}: {}", pass, where.name, fmt::format(format, std::forward<Args>(args)...)));
}

}  // namespace hlojit
