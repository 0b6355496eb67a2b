// See lapack_calls.h. A batch runs its function in parallel.
#include "runtime/kernels/lapack_calls.h"

#include <algorithm>
#include <cstring>

#include "layout/divide.h"
#include "runtime/kernels/lapack_site.h"

namespace hlojit {
namespace {

/// nullptr for a function that is not served.
const LapackRow* row_of(const Instruction& call) {
  for (std::span<const LapackRow> rows : {lapack_factors(), lapack_spectra()}) {
    if (auto row = std::ranges::find(rows, lapack_function(call), &LapackRow::name); row != rows.end()) return &*row;
  }
  return nullptr;
}

double cost_ns(const LapackRow& row, const LapackSite& site) {
  constexpr double kCallNs = 20;
  size_t bytes = 0;
  for (size_t leaf = 0; leaf < row.operands; ++leaf) bytes += site.stride(leaf);
  const double each = kCallNs + row.word_ns * static_cast<double>(bytes) / 4;
  return static_cast<double>(site.batch()) * each;
}

}  // namespace

double lapack_call_ns(const Instruction& call) {
  const LapackRow* row = row_of(call);
  return row && call.operand_count() >= row->operands ? cost_ns(*row, LapackSite(call)) : 0;
}

StepFunction lapack_call_step(const Instruction& call) {
  LapackSite site(call);
  site.check_layouts();
  const size_t letter = std::string_view("sdcz").find(lapack_type(call));
  constexpr DType kTypes[] = {DType::kF32, DType::kF64, DType::kC64, DType::kC128};
  const LapackRow* row = row_of(call);
  if (!row || letter == std::string_view::npos) site.refuse("no such function is served");
  const bool split_values = row->name == "gees" || row->name == "geev";
  size_t expected = row->operands + row->results - (split_values && letter >= 2 ? 1 : 0);
  if (site.type() != kTypes[letter] || site.leaves_count() != expected) site.refuse("unexpected operands or results");
  std::vector<size_t> strides;
  for (size_t k = 0; k < site.leaves_count(); ++k) strides.push_back(site.stride(k));
  const int64_t batch = site.batch();
  if (site.empty()) {
    return [=](const StepCall& run) {  // results of nothing: zeros
      for (size_t k = row->operands; k < strides.size(); ++k) {
        std::memset(run.buffers[k], 0, strides[k] * static_cast<size_t>(batch));
      }
    };
  }
  LapackCall matrices = row->make[letter](site);
  const double cost = cost_ns(*row, site);
  return [=, operands = row->operands](const StepCall& run) {
    for (size_t leaf = operands; leaf < strides.size(); ++leaf) {
      void* const* here = run.buffers + leaf;
      if (std::find(run.buffers, here, *here) == here)
        std::memset(*here, 0, strides[leaf] * static_cast<size_t>(batch));
    }
    const int64_t together = matrices.together;
    run_lapack(run.pool, ceil_div(batch, together), cost, [&](int64_t k) {
      void* p[kMostLapackLeaves];
      for (size_t leaf = 0; leaf < strides.size(); ++leaf)
        p[leaf] = static_cast<char*>(run.buffers[leaf]) + strides[leaf] * static_cast<size_t>(k * together);
      matrices.call(p, std::min(together, batch - k * together));
    });
  };
}

}  // namespace hlojit
