"""NumPy and SciPy: what a user of arrays calls for the same result, where there is one such call or two."""

import importlib.metadata
import math

import numpy as np

from peers.base import Missing, Ready, as_list

FUNCTIONS = {}


def runs(*names):
    """The decorated function of (arguments, sizes) computes these programs."""

    def register(function):
        FUNCTIONS.update(dict.fromkeys(names, function))
        return function

    return register


def simple(names, function):
    """The same for a function of the arguments alone."""
    runs(*names.split())(lambda sizes, *arrays: function(*arrays))


simple("gemm gemm_f64 gemv gemm_skinny gemm_tall batched_matmul batched_small", lambda a, b: a @ b)
simple("gemv_transposed", lambda a, x: x @ a)
simple("gemm_transposed", lambda a, b, c: (a.T @ b, b.T @ c.T))
simple("axpy", lambda a, x, y: a * x + y)
simple("sum_all", lambda x: x.sum())
simple("sum_rows", lambda x: x.sum(axis=1))
simple("sum_columns", lambda x: x.sum(axis=0))
simple("sum_s32", lambda x: (x.sum(dtype=np.int32), x.min(axis=0), x.max(axis=1)))
simple("argmax", lambda x: (x.argmax(axis=1).astype(np.int32), x.argmin(axis=0).astype(np.int32)))
simple("cumsum", lambda x: np.cumsum(x, axis=1))
simple("cumulative_max", lambda x: (np.maximum.accumulate(x), np.minimum.accumulate(x[::-1])[::-1]))
simple("transpose_2d transpose_bf16 transpose_s8", lambda x: np.ascontiguousarray(x.T))
simple("transpose_add", lambda x, y: x.T + y)
simple("transpose_021", lambda x: np.ascontiguousarray(x.transpose(0, 2, 1)))
simple("transpose_102", lambda x: np.ascontiguousarray(x.transpose(1, 0, 2)))
simple("transpose_210", lambda x: np.ascontiguousarray(x.transpose(2, 1, 0)))
simple("nhwc_to_nchw", lambda x: np.ascontiguousarray(x.transpose(0, 3, 1, 2)))
simple("concat_rows", lambda x, y: np.concatenate([x, y * 2, x[:5]]))
simple("concat_cols", lambda *xs: np.concatenate(xs, axis=1))
simple("take_along", lambda x, k: np.take_along_axis(x, k[:, None], axis=1)[:, 0])
simple("gather_rows", lambda x, ids: np.take(x, ids, axis=0, mode="clip"))
simple("gather_elements", lambda x, i, j: x[i, j])
simple("sort", np.sort)
simple("sort_rows", lambda x: np.sort(x, axis=1))
simple("sort_columns", lambda x: np.sort(x, axis=0))
simple("search", lambda table, x: np.searchsorted(np.sort(table), x).astype(np.int32))


@runs("embedding")
def embedding(sizes, table, ids):
    return table[ids] * np.float32(math.sqrt(sizes["dim"]))


@runs("scatter_add")
def scatter_add(sizes, x, ids, updates):
    x = x.copy()
    np.add.at(x, ids, updates)
    return x


@runs("histogram")
def histogram(sizes, ids):
    return np.bincount(ids, minlength=sizes["bins"]).astype(np.int32)


@runs("argsort")
def argsort(sizes, x):
    return np.argsort(x, kind="stable").astype(np.int32), np.argsort(-np.round(x * 4), kind="stable").astype(np.int32)


@runs("sort_by_key")
def sort_by_key(sizes, key, a, b):
    order = np.argsort(key, kind="stable")
    return key[order], a[order], b[order]


@runs("top_k")
def top_k(sizes, x):
    k = sizes["k"]
    some = np.argpartition(-x, k, axis=1)[:, :k]
    values = np.take_along_axis(x, some, axis=1)
    order = np.argsort(-values, axis=1, kind="stable")
    return np.take_along_axis(values, order, axis=1), np.take_along_axis(some, order, axis=1).astype(np.int32)


def with_scipy(scipy, threads):
    """What SciPy adds."""
    fft, lapack = scipy.fft, scipy.linalg.lapack

    def definite(x):
        return 0.5 * (x + x.T) + np.float32(3 * math.sqrt(len(x))) * np.eye(len(x), dtype=x.dtype)

    def parts(y):
        return y.real, y.imag

    simple("fft_1d", lambda re, im: parts(fft.fft(re + 1j * im, workers=threads)))
    simple("fft_2d", lambda re, im: parts(fft.fft2(re + 1j * im, workers=threads)))
    simple("cholesky", lambda x: lapack.spotrf(definite(x), lower=1, clean=1)[0])
    simple("triangular_solve", lambda x, b: lapack.strtrs(definite(x), b, lower=1)[0])

    @runs("fft_real")
    def fft_real(sizes, x, gain):
        return fft.irfft(fft.rfft(x, workers=threads) * gain, n=sizes["n"], workers=threads)


class Peer:
    name = "NumPy"

    def __init__(self, threads, isa):
        try:
            import scipy.fft
            import scipy.linalg.lapack
        except ImportError as error:
            raise Missing(f"not installed ({error.name})") from None
        with_scipy(scipy, threads)

    def version(self):
        return f"NumPy {np.__version__}, SciPy {importlib.metadata.version('scipy')}"

    def prepare(self, case):
        function = FUNCTIONS.get(case.program.name)
        if function is None:
            return None

        def call():
            return function(case.sizes, *case.arrays)

        return Ready(call, lambda: as_list(call()))
