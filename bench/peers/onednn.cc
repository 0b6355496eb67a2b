// oneDNN for the scoreboard: one product of matrices or one convolution, behind a C interface that Python calls.
//
// The primitive may choose the layouts of all its operands ("any"), and what brings plain arrays into them is done
// when values are set, outside of what is timed: oneDNN at its best. Types are numbered 0 f32, 1 bf16, 2 s8 (with
// results of s32).
#include <oneapi/dnnl/dnnl.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace {

using dnnl::memory;
using Tag = memory::format_tag;

struct Types {
  memory::data_type operand, result;
};

Types types_of(int type) {
  if (type == 1) return {memory::data_type::bf16, memory::data_type::bf16};
  if (type == 2) return {memory::data_type::s8, memory::data_type::s32};
  return {memory::data_type::f32, memory::data_type::f32};
}

// Row-major strides.
memory::dims strides_of(const memory::dims& dims) {
  memory::dims strides(dims.size(), 1);
  for (size_t k = dims.size() - 1; k > 0; --k) strides[k - 1] = strides[k] * dims[k];
  return strides;
}

// A primitive with its memory: operands 0 and 1, result 2, each in the plain form and in the one it asked for.
struct Job {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  dnnl::primitive primitive;
  std::array<memory::desc, 3> plain;
  std::array<memory, 3> chosen;

  template <class Description>
  void make(const Description& d, const std::array<memory::desc, 3>& wanted) {
    chosen = {memory(wanted[0], engine), memory(wanted[1], engine), memory(wanted[2], engine)};
    primitive = dnnl::primitive(d.get());
  }

  void run() {
    primitive.execute(stream, {{DNNL_ARG_SRC, chosen[0]}, {DNNL_ARG_WEIGHTS, chosen[1]}, {DNNL_ARG_DST, chosen[2]}});
    stream.wait();
  }

  void copy(memory from, memory to) {
    dnnl::reorder(from, to).execute(stream, from, to);
    stream.wait();
  }
};

memory::desc plain(const memory::dims& dims, memory::data_type type) { return {dims, type, strides_of(dims)}; }
memory::desc any(const memory::dims& dims, memory::data_type type) { return {dims, type, Tag::any}; }

memory::dims list(const int64_t* values, int64_t count) { return {values, values + count}; }

std::unique_ptr<Job> matmul(const Types& t, const memory::dims& a, const memory::dims& b, const memory::dims& c) {
  auto job = std::make_unique<Job>();
  job->plain = {plain(a, t.operand), plain(b, t.operand), plain(c, t.result)};
  const dnnl::matmul::primitive_desc chosen({any(a, t.operand), any(b, t.operand), any(c, t.result)}, job->engine);
  job->make(chosen, {chosen.src_desc(), chosen.weights_desc(), chosen.dst_desc()});
  return job;
}

}  // namespace

extern "C" {

const char* onednn_version() {
  static const std::string text = [] {
    const dnnl::version_t* v = dnnl::version();
    return std::to_string(v->major) + "." + std::to_string(v->minor) + "." + std::to_string(v->patch);
  }();
  return text.c_str();
}

/// [batch, m, k] times [batch, k, n]. Null if oneDNN has no such product for this CPU; else to be freed.
Job* onednn_matmul(int type, int64_t batch, int64_t m, int64_t k, int64_t n) try {
  const Types t = types_of(type);
  return (batch == 1 ? matmul(t, {m, k}, {k, n}, {m, n}) : matmul(t, {batch, m, k}, {batch, k, n}, {batch, m, n}))
      .release();
} catch (const dnnl::error&) {
  return nullptr;
}

/// Operands and result as N, C, spatial and (groups,) O, I, spatial. `strides` and `dilations` (1: none) and the
/// paddings have `rank` numbers each.
Job* onednn_convolution(int type, int64_t rank, const int64_t* input, int64_t kernel_rank, const int64_t* kernel,
                        const int64_t* output, const int64_t* strides, const int64_t* dilations, const int64_t* low,
                        const int64_t* high) try {
  const Types t = types_of(type);
  const memory::dims x = list(input, rank + 2), w = list(kernel, kernel_rank), y = list(output, rank + 2);
  memory::dims between = list(dilations, rank);
  for (int64_t& d : between) d -= 1;
  auto job = std::make_unique<Job>();
  job->plain = {plain(x, t.operand), plain(w, t.operand), plain(y, t.result)};
  const dnnl::convolution_forward::primitive_desc chosen(
      {dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_auto, any(x, t.operand), any(w, t.operand),
       any(y, t.result), list(strides, rank), between, list(low, rank), list(high, rank)},
      job->engine);
  job->make(chosen, {chosen.src_desc(), chosen.weights_desc(), chosen.dst_desc()});
  return job.release();
} catch (const dnnl::error&) {
  return nullptr;
}

/// Sets operand 0 or 1 from a plain row-major array.
void onednn_set(Job* job, int operand, void* values) {
  const auto k = static_cast<size_t>(operand);
  job->copy(memory(job->plain[k], job->engine, values), job->chosen[k]);
}

/// Writes the result to a plain row-major array.
void onednn_get(Job* job, void* values) { job->copy(job->chosen[2], memory(job->plain[2], job->engine, values)); }

void onednn_run(Job* job) { job->run(); }

void onednn_free(Job* job) { delete job; }

}  // extern "C"
