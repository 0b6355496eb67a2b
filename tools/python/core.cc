// hlojit._core: the public C++ interface for Python.
#include <hlojit/hlojit.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include <nanobind/nanobind.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "tools/python/arrays.h"

namespace nb = nanobind;
using hlojit::Buffer;
using hlojit::Executable;
using hlojit::ModulePtr;
using hlojit::Options;
using hlojit::Shape;
using hlojit::python::ArrayLeaf;
using hlojit::python::facts;
using hlojit::python::Inputs;
using hlojit::python::leaves;

namespace {

struct PyModule {
  ModulePtr module;
  std::string source;  // the text, for carets; empty for protos
};

struct PyExecutable {
  explicit PyExecutable(Executable e)
      : executable(std::move(e)),
        parameters(leaves(executable.parameter_shapes())),
        results(leaves(executable.result_shapes())) {}
  Executable executable;
  std::vector<ArrayLeaf> parameters, results;
};

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
  hlojit::python::import_numpy();

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
      .def("evaluate", [](const PyModule& p, const Options& o, const nb::args& arrays) {
        const Inputs in = inputs(arrays, leaves(hlojit::parameter_leaves(p.module)));
        return outputs(unlocked([&] { return hlojit::evaluate(p.module, in.buffers, o); }),
                       leaves(hlojit::result_leaves(p.module)));
      });

  m.def(
      "parse",
      [](nb::bytes text, bool keep, const std::function<nb::object(nb::tuple)>& elided) {
        std::string s(text.c_str(), text.size());
        std::function<Buffer(const Shape&)> made;
        if (elided) {
          made = [&](const Shape& shape) {
            const nb::object values = elided(facts(shape));  // as long as its memory, which is copied, is read
            return Buffer::copy_of(hlojit::python::memory(values), hlojit::python::row_major(shape));
          };
        }
        return PyModule{hlojit::parse(s, made), keep ? s : std::string()};
      },
      nb::arg("text"), nb::arg("keep"), nb::arg("elided").none());

  const auto of = [](auto member) { return [member](const PyExecutable& e) { return (e.executable.*member)(); }; };
  nb::class_<PyExecutable>(m, "Executable")
      .def("run",
           [](const PyExecutable& e, const nb::args& arrays) {
             Inputs in = inputs(arrays, e.parameters);
             return outputs(unlocked([&] { return e.executable.run(std::move(in.buffers)); }), e.results);
           })
      .def("seconds",
           [](const PyExecutable& e, int calls, const nb::args& arrays) {
             const Inputs in = inputs(arrays, e.parameters);
             return unlocked([&] { return least_seconds(e.executable, in.buffers, calls); });
           })
      .def("parameters", [](const PyExecutable& e) { return facts(e.executable.parameter_shapes()); })
      .def("results", [](const PyExecutable& e) { return facts(e.executable.result_shapes()); })
      .def("kernels",
           [](const PyExecutable& e) {
             std::vector<std::pair<std::string, std::string>> out;
             for (const auto& k : e.executable.kernels()) out.emplace_back(k.name, k.kind);
             return out;
           })
      .def("compile_times",
           [](const PyExecutable& e) {
             std::vector<std::pair<std::string, double>> out;
             for (const auto& t : e.executable.compile_times()) out.emplace_back(t.name, t.ms);
             return out;
           })
      .def_prop_ro("arena_bytes", of(&Executable::arena_bytes))
      .def_prop_ro("flops", of(&Executable::flops))
      .def_prop_ro("bytes_read", of(&Executable::io_bytes_read))
      .def_prop_ro("bytes_written", of(&Executable::io_bytes_written))
      .def_prop_ro("memory_report", of(&Executable::memory_report))
      .def("serialize",
           [](const PyExecutable& e) {
             std::string bytes = unlocked([&] { return e.executable.serialize(); });
             return nb::bytes(bytes.data(), bytes.size());
           })
      .def_prop_ro("isa", of(&Executable::isa))
      .def_prop_ro("threads", of(&Executable::threads));

  m.def("compile", [](const PyModule& p, const Options& o) {
    return PyExecutable(unlocked([&] { return hlojit::compile(p.module, o); }));
  });
  m.def("load", [](nb::bytes data, const Options& o) {
    std::string_view bytes(data.c_str(), data.size());
    return PyExecutable(unlocked([&] { return hlojit::load(bytes, o); }));
  });
  m.def("passes", &hlojit::pass_list);
  m.def("version", &hlojit::version);
}
