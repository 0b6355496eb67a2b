// hlojit._core: the public C++ interface for Python. Arrays cross as bytes with the text of their shape;
// hlojit/arrays.py makes NumPy arrays of them.
#include <hlojit/hlojit.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;
using hlojit::Buffer;
using hlojit::Executable;
using hlojit::ModulePtr;
using hlojit::Options;
using hlojit::Shape;

namespace {

using InputBytes = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using OutputBytes = nb::ndarray<nb::numpy, uint8_t, nb::ndim<1>>;

struct PyModule {
  ModulePtr module;
  std::string source;  // the text, for carets; empty for protos
};

Shape dense(const Shape& shape) { return Shape::array(shape.type, shape.dims); }

// Memory that stays the caller's where the program takes it as it lies.
Buffer input(const InputBytes& bytes, const Shape& shape, size_t k) {
  Buffer b = Buffer::borrow(bytes.size() ? bytes.data() : reinterpret_cast<const uint8_t*>(""), dense(shape));
  if (bytes.size() != b.size_bytes()) {
    throw hlojit::Error(hlojit::ErrorKind::kInput, "input " + std::to_string(k) + " has " +
                                                       std::to_string(bytes.size()) + " bytes, " + shape.to_string() +
                                                       " needs " + std::to_string(b.size_bytes()));
  }
  return shape == dense(shape) ? b : b.to_layout(shape);
}

OutputBytes output(Buffer b) {
  Shape plain = dense(b.shape());
  auto* kept = new Buffer(b.shape() == plain ? std::move(b) : b.to_layout(plain));
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<Buffer*>(p); });
  size_t size = kept->size_bytes();
  return OutputBytes(const_cast<void*>(kept->raw()), {size}, owner);
}

std::vector<Buffer> inputs(const std::vector<InputBytes>& arrays, const std::vector<Shape>& shapes) {
  if (arrays.size() != shapes.size()) {
    throw hlojit::Error(hlojit::ErrorKind::kInput, "the program takes " + std::to_string(shapes.size()) + " arrays, " +
                                                       std::to_string(arrays.size()) + " were given");
  }
  std::vector<Buffer> out;
  for (size_t k = 0; k < arrays.size(); ++k) out.push_back(input(arrays[k], shapes[k], k));
  return out;
}

// (bytes, sizes) of each: sizes that are known at run time only are at most those of the program's result.
nb::list outputs(std::vector<Buffer> buffers) {
  nb::list out;
  for (Buffer& b : buffers) {
    nb::object sizes = nb::cast(b.shape().dims);
    out.append(nb::make_tuple(output(std::move(b)), sizes));
  }
  return out;
}

// (element type, sizes, text with layout) of each.
nb::tuple facts(const Shape& s) {
  return nb::make_tuple(std::string(hlojit::dtype_name(s.type)), nb::cast(s.dims), s.to_string());
}
nb::list facts(const std::vector<Shape>& shapes) {
  nb::list out;
  for (const Shape& s : shapes) out.append(facts(s));
  return out;
}

Options options(int threads, const std::string& isa, bool strict, bool keep_subnormals, int effort,
                const std::string& cache_dir, const std::string& dump_dir, bool scatter_oob_window,
                int64_t memory_limit, std::vector<std::string> disabled_passes, nb::object explain) {
  Options o;
  o.threads = threads;
  o.isa = isa;
  o.strict = strict;
  o.keep_subnormals = keep_subnormals;
  o.effort = effort;
  o.cache_dir = cache_dir;
  o.dump_dir = dump_dir;
  o.scatter_oob_window = scatter_oob_window;
  o.memory_limit = memory_limit;
  o.disabled_passes = std::move(disabled_passes);
  if (!explain.is_none()) {
    o.explain = [explain](const std::string& line) {
      nb::gil_scoped_acquire gil;
      explain(line);
    };
  }
  return o;
}

// Of so many calls after a first one.
double least_seconds(const Executable& e, const std::vector<Buffer>& in, int calls) {
  using Clock = std::chrono::steady_clock;
  e.run(in);
  double least = std::numeric_limits<double>::infinity();
  for (int k = 0; k < calls; ++k) {
    const Clock::time_point start = Clock::now();
    e.run(in);
    least = std::min(least, std::chrono::duration<double>(Clock::now() - start).count());
  }
  return least;
}

// Runs f without the interpreter's lock.
template <class F>
auto unlocked(F f) {
  nb::gil_scoped_release release;
  return f();
}

}  // namespace

NB_MODULE(_core, m) {
  m.doc() = "hlojit's C++ interface; use the package hlojit";

  // Errors travel as RuntimeError with (kind, [(line, column, instruction, rule, message, details)]).
  static nb::object raw_error = nb::steal(PyErr_NewException("hlojit._core.RawError", PyExc_RuntimeError, nullptr));
  m.attr("RawError") = raw_error;
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const hlojit::Error& e) {
      nb::list all;
      for (const hlojit::Diagnostic& d : e.diagnostics()) {
        all.append(nb::make_tuple(d.location.line, d.location.column, d.instruction, d.rule, d.message, d.details));
      }
      nb::object value = nb::make_tuple(std::string(hlojit::error_kind_name(e.kind())), all);
      PyErr_SetObject(raw_error.ptr(), value.ptr());
    }
  });

  nb::class_<Options>(m, "Options");
  m.def("options", &options, nb::arg("threads"), nb::arg("isa"), nb::arg("strict"), nb::arg("keep_subnormals"),
        nb::arg("effort"), nb::arg("cache_dir"), nb::arg("dump_dir"), nb::arg("scatter_oob_window"),
        nb::arg("memory_limit"), nb::arg("disabled_passes"), nb::arg("explain").none());

  nb::class_<PyModule>(m, "Module")
      .def_ro("source", &PyModule::source)
      .def("text", [](const PyModule& p) { return hlojit::to_text(p.module); })
      .def("verify", [](const PyModule& p) { hlojit::verify(p.module); })
      .def("optimized",
           [](const PyModule& p, const Options& o) {
             return unlocked([&] { return PyModule{hlojit::run_passes(p.module, o, ""), ""}; });
           })
      .def("emit",
           [](const PyModule& p, const std::string& what, const Options& o) {
             auto kind = what == "hlo"    ? hlojit::Emit::kHlo
                         : what == "llvm" ? hlojit::Emit::kLlvm
                                          : hlojit::Emit::kAssembly;
             return unlocked([&] { return hlojit::emit(p.module, kind, o); });
           })
      .def("extract",
           [](const PyModule& p, const std::string& name) { return PyModule{hlojit::extract(p.module, name), ""}; })
      .def("graph",
           [](const PyModule& p) {
             nb::list out;
             for (const hlojit::GraphNode& n : hlojit::graph(p.module)) {
               out.append(nb::make_tuple(n.name, n.opcode, n.kind, n.shape.to_string(), n.operands, n.bytes_read,
                                         n.bytes_written));
             }
             return out;
           })
      .def("parameters", [](const PyModule& p) { return facts(hlojit::parameter_leaves(p.module)); })
      .def("results", [](const PyModule& p) { return facts(hlojit::result_leaves(p.module)); })
      .def("evaluate", [](const PyModule& p, const std::vector<InputBytes>& arrays, const Options& o) {
        std::vector<Buffer> in = inputs(arrays, hlojit::parameter_leaves(p.module));
        return outputs(unlocked([&] { return hlojit::evaluate(p.module, in, o); }));
      });

  m.def(
      "parse",
      [](nb::bytes text, bool keep, const std::function<InputBytes(nb::tuple)>& elided) {
        std::string s(text.c_str(), text.size());
        std::function<Buffer(const Shape&)> made;
        if (elided) {
          made = [&](const Shape& shape) {
            InputBytes bytes = elided(facts(shape));  // as long as its memory, which is copied, is read
            return Buffer::copy_of(bytes.data(), dense(shape));
          };
        }
        return PyModule{hlojit::parse(s, made), keep ? s : std::string()};
      },
      nb::arg("text"), nb::arg("keep"), nb::arg("elided").none());

  nb::class_<Executable>(m, "Executable")
      .def("run",
           [](const Executable& e, const std::vector<InputBytes>& arrays) {
             std::vector<Buffer> in = inputs(arrays, e.parameter_shapes());
             return outputs(unlocked([&] { return e.run(std::move(in)); }));
           })
      .def("seconds",
           [](const Executable& e, const std::vector<InputBytes>& arrays, int calls) {
             std::vector<Buffer> in = inputs(arrays, e.parameter_shapes());
             return unlocked([&] { return least_seconds(e, in, calls); });
           })
      .def("parameters", [](const Executable& e) { return facts(e.parameter_shapes()); })
      .def("results", [](const Executable& e) { return facts(e.result_shapes()); })
      .def("kernels",
           [](const Executable& e) {
             std::vector<std::pair<std::string, std::string>> out;
             for (const auto& k : e.kernels()) out.emplace_back(k.name, k.kind);
             return out;
           })
      .def("compile_times",
           [](const Executable& e) {
             std::vector<std::pair<std::string, double>> out;
             for (const auto& t : e.compile_times()) out.emplace_back(t.name, t.ms);
             return out;
           })
      .def_prop_ro("arena_bytes", &Executable::arena_bytes)
      .def_prop_ro("flops", &Executable::flops)
      .def_prop_ro("bytes_read", &Executable::io_bytes_read)
      .def_prop_ro("bytes_written", &Executable::io_bytes_written)
      .def_prop_ro("memory_report", &Executable::memory_report)
      .def("serialize",
           [](const Executable& e) {
             std::string bytes = unlocked([&] { return e.serialize(); });
             return nb::bytes(bytes.data(), bytes.size());
           })
      .def_prop_ro("isa", &Executable::isa)
      .def_prop_ro("threads", &Executable::threads);

  m.def("compile",
        [](const PyModule& p, const Options& o) { return unlocked([&] { return hlojit::compile(p.module, o); }); });
  m.def("load", [](nb::bytes data, const Options& o) {
    std::string_view bytes(data.c_str(), data.size());
    return unlocked([&] { return hlojit::load(bytes, o); });
  });
  m.def("passes", &hlojit::pass_list);
  m.def("version", &hlojit::version);
}
