"""Modules and executables."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable, Sequence

import numpy as np

from hlojit import _core, arrays, display
from hlojit.errors import of_raw, translated

Source = str | bytes | os.PathLike


def _options(threads: int = 0, isa: str = "native", strict: bool = False, keep_subnormals: bool = False, effort: int = 1,
             cache_dir: str | os.PathLike = "", dump_dir: str | os.PathLike = "", scatter_oob_window: bool = False, memory_limit: int = 0, disabled_passes: Sequence[str] = (),
             explain: Callable[[str], object] | None = None):
    return _core.options(threads=threads, isa=isa, strict=strict, keep_subnormals=keep_subnormals, effort=effort, cache_dir=os.fspath(cache_dir),
                         dump_dir=os.fspath(dump_dir),
                         scatter_oob_window=scatter_oob_window, memory_limit=memory_limit,
                         disabled_passes=list(disabled_passes), explain=explain)


class Module:
    """A program. parse() makes it; it never changes."""

    def __init__(self, core: "_core.Module"):
        self._core = core

    def __str__(self) -> str:
        return self._core.text()

    def __repr__(self) -> str:
        return f"<hlojit.Module {self._core.text().split(',')[0].split(chr(10))[0]}>"

    @property
    def parameters(self) -> list[str]:
        """Shapes of the parameters' leaves, as HLO text."""
        return [s[2] for s in self._core.parameters()]

    @property
    def results(self) -> list[str]:
        """Shapes of the results' leaves, as HLO text."""
        return [s[2] for s in self._core.results()]

    def verify(self) -> None:
        """Raises Error with everything that is wrong with the module."""
        with translated(self._core.source):
            self._core.verify()

    def optimized(self, **options) -> "Module":
        """The module after all passes: fusions, layouts, aliases, order."""
        with translated(self._core.source):
            return Module(self._core.optimized(_options(**options)))

    def emit(self, what: str = "assembly", **options) -> str:
        """What the compiler makes of it: "hlo", "llvm" or "assembly"."""
        if what not in ("hlo", "llvm", "assembly"):
            raise ValueError(f'emit knows "hlo", "llvm" and "assembly", not {what!r}')
        with translated(self._core.source):
            return self._core.emit(what, _options(**options))

    def graph(self) -> list[display.Node]:
        """The entry computation as it stands: what reads what, and the bytes."""
        return display.nodes(self._core)

    def profile(self, **options) -> list[display.Node]:
        """The entry computation after all passes, each kernel with its time, measured alone."""
        with translated(self._core.source):
            optimized = self._core.optimized(_options(**options))
            return display.measured(optimized, _options(**{**options, "dump_dir": ""}))

    def _repr_svg_(self) -> str:
        """What a notebook shows: the program's kernels, what passes between them, times and bytes."""
        return display.picture(self.profile())

    def evaluate(self, *inputs) -> np.ndarray | tuple[np.ndarray, ...]:
        """Runs the evaluator: slow, obvious, independent of the compiler."""
        with translated(self._core.source):
            return self._core.evaluate(_options(), *inputs)

    def compile(self, **options) -> "Executable":
        """Native code; see compile()."""
        with translated(self._core.source):
            return Executable(_core.compile(self._core, _options(**options)))


class Executable:
    """Native code of one module. Call it with an array a parameter leaf, from any number of threads."""

    def __init__(self, core: "_core.Executable"):
        self._core = core

    def __call__(self, *inputs) -> np.ndarray | tuple[np.ndarray, ...]:
        """Runs it. Arrays that lie as `parameters` says, most often in row-major order, are read in place;
        others are copied. Results lie as `results` says (tiled ones: row-major). One comes back as an
        array, several as a tuple of the leaves. Raises ValueError for other shapes or types than
        `parameters`, Error if the run fails."""
        try:
            return self._core.run(*inputs)
        except _core.RawError as e:  # translated() takes a microsecond
            raise of_raw(e) from None

    def __repr__(self) -> str:
        return f"<hlojit.Executable ({', '.join(self.parameters)}) -> ({', '.join(self.results)}), {len(self.kernels)} kernels>"

    @property
    def parameters(self) -> list[str]:
        """Shapes of the parameters' leaves, as HLO text."""
        return [s[2] for s in self._core.parameters()]

    @property
    def results(self) -> list[str]:
        """Shapes of the results' leaves, as HLO text."""
        return [s[2] for s in self._core.results()]

    @property
    def kernels(self) -> list[tuple[str, str]]:
        """(name, kind) of each kernel."""
        return self._core.kernels()

    @property
    def compile_times(self) -> dict[str, float]:
        """Milliseconds a phase of compiling took."""
        out: dict[str, float] = {}
        for name, ms in self._core.compile_times():
            out[name] = out.get(name, 0.0) + ms
        return out

    @property
    def memory_report(self) -> str:
        """What holds memory at the peak, a line a buffer."""
        return self._core.memory_report

    def serialize(self) -> bytes:
        """The program and its compiled code, for load()."""
        with translated():
            return self._core.serialize()

    def cost(self) -> dict[str, float]:
        """flops of the dots; bytes of inputs, outputs and temporaries of one call."""
        return {"flops": self._core.flops, "bytes_read": self._core.bytes_read, "bytes_written": self._core.bytes_written,
                "arena_bytes": float(self._core.arena_bytes)}


def parse(source: Source, *, elided: Callable[[tuple[int, ...], np.dtype], np.ndarray] | None = None) -> Module:
    """Reads HLO text, a serialised HloModuleProto (bytes), or a file with either (a path, or text without
    "HloModule" that names a file). Raises Error with line, column and caret.

    elided: makes the values of constants that were left out when the text was printed, "{...}", in the order of the
    text: called with sizes and type, gives an array. Without it they are an error."""
    if isinstance(source, os.PathLike) or (isinstance(source, str) and "HloModule" not in source and os.path.exists(source)):
        data = pathlib.Path(source).read_bytes()
    else:
        data = source.encode() if isinstance(source, str) else bytes(source)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = ""
    def made(shape: arrays.ShapeFacts) -> np.ndarray:
        values = elided(tuple(shape[1]), arrays.dtype_of(shape, "a constant"))
        return arrays.in_order(values, shape)

    with translated(text):
        return Module(_core.parse(data, bool(text), made if elided else None))


def load(data: bytes, *, threads: int = 0, cache_dir: str | os.PathLike = "") -> Executable:
    """An executable out of what serialize() gave, of this version of hlojit. The bytes hold machine code: load
    only what you trust."""
    with translated():
        return Executable(_core.load(data, _options(threads=threads, cache_dir=cache_dir)))


def compile(source: Source | Module, **options) -> Executable:
    """Compiles HLO text, a proto, a file or a Module.

    Options: threads (0: one a core), isa ("native", "avx2", "avx512" or a CPU by LLVM's name for it), strict
    (elementwise results equal the evaluator's bit for bit), keep_subnormals (else they are zeros to arithmetic, as in
    XLA:CPU), effort (0 compiles faster), cache_dir (keeps compiled code), dump_dir (gets HLO after each pass, LLVM IR,
    assembly, the buffer plan), scatter_oob_window, memory_limit (bytes of a call, 0: none), disabled_passes, explain
    (called with each decision, a line each).
    """
    module = source if isinstance(source, Module) else parse(source)
    return module.compile(**options)
