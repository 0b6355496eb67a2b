"""oneDNN, Debian's: programs that are one dot or one convolution, through build/release/lib/libhlojit_onednn.so.

Layouts are oneDNN's choice and what brings arrays into them is not timed (onednn.cc).
"""

import ctypes
import pathlib
import time

import numpy as np

from peers.base import Missing, Ready
from peers.single import single

LIBRARY = pathlib.Path(__file__).resolve().parents[2] / "build/release/lib/libhlojit_onednn.so"
TYPES = {"f32": (0, np.float32), "bf16": (1, None), "s8": (2, np.int32)}


def _longs(values):
    return (ctypes.c_int64 * len(values))(*values)


class Peer:
    name = "oneDNN"

    def __init__(self, threads, isa):
        # Threads are OpenMP's, one a core this process may use; the instruction set is in the environment.
        if not LIBRARY.exists():
            raise Missing("not built (libdnnl-dev is missing)")
        self.library = ctypes.CDLL(str(LIBRARY))
        for function in ("onednn_matmul", "onednn_convolution"):
            getattr(self.library, function).restype = ctypes.c_void_p

    def version(self):
        self.library.onednn_version.restype = ctypes.c_char_p
        return f"oneDNN {self.library.onednn_version().decode()}"

    def _job(self, one):
        kind = TYPES[one.dtype][0]
        if one.kind == "dot":
            batch, m, k = one.left.shape
            sizes = (ctypes.c_int64(size) for size in (batch, m, k, one.right.shape[2]))
            return self.library.onednn_matmul(kind, *sizes)
        outputs, inputs, *spatial = one.right.shape
        kernel = ((one.groups, outputs // one.groups) if one.groups > 1 else (outputs,)) + (inputs, *spatial)
        return self.library.onednn_convolution(
            kind, ctypes.c_int64(len(spatial)), _longs(one.left.shape), ctypes.c_int64(len(kernel)), _longs(kernel),
            _longs(one.shape), _longs(one.strides), _longs(one.dilations), _longs(one.low), _longs(one.high))

    def prepare(self, case):
        one = single(case)
        if one is None or one.dtype not in TYPES:
            return None
        start = time.perf_counter()
        job = self._job(one)
        if job is None:
            return None
        return Primitive(self.library, ctypes.c_void_p(job), one, (time.perf_counter() - start) * 1e3)


class Primitive(Ready):
    """A primitive with its operands set; freed with it."""

    def __init__(self, library, job, one, compile_ms):
        self.library, self.job, self.one = library, job, one
        for operand, array in enumerate((one.left, one.right)):
            library.onednn_set(job, operand, array.ctypes.data_as(ctypes.c_void_p))
        super().__init__(lambda: library.onednn_run(job), self._results, compile_ms)

    def _results(self):
        self.call()
        plain = np.empty(self.one.shape, TYPES[self.one.dtype][1] or self.one.left.dtype)
        self.library.onednn_get(self.job, plain.ctypes.data_as(ctypes.c_void_p))
        return [self.one.answer(plain)]

    def __del__(self):
        self.library.onednn_free(self.job)
