"""JAX functions compiled by hlojit and called with NumPy arrays, without JAX's runtime."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from hlojit.program import Executable, compile


def jit(function: Callable[..., Any] | None = None, **options) -> Callable[..., Any]:
    """Like jax.jit for functions of arrays: traces with JAX, compiles with hlojit, once a signature.

    Results are NumPy arrays in the structure that the function returns. options: those of compile().
    Needs jax (the extra hlojit[jax]).
    """
    import jax

    if function is None:
        return functools.partial(jit, **options)
    canonical = jax.dtypes.canonicalize_dtype
    compiled: dict[Any, tuple[Executable, Any]] = {}
    # As XLA:CPU does.
    settings = {"scatter_oob_window": True, **options}

    def signature(x):  # of arrays by themselves: result_type takes 3 us
        return (x.shape, canonical(x.dtype)) if isinstance(x, np.ndarray) else (np.shape(x), jax.dtypes.result_type(x))

    @functools.wraps(function)
    def call(*args, **kwargs):
        leaves, tree = jax.tree_util.tree_flatten((args, kwargs))
        key = (tree, tuple(map(signature, leaves)))
        if key not in compiled:
            lowered = jax.jit(function, keep_unused=True).lower(*args, **kwargs)
            proto = lowered.compiler_ir("hlo").as_serialized_hlo_module_proto()
            compiled[key] = (compile(proto, **settings), lowered.out_tree)
        executable, out_tree = compiled[key]

        arrays = [np.asarray(x, dtype=d) for x, (_, d) in zip(leaves, key[1])]
        out = executable(*arrays)
        return jax.tree_util.tree_unflatten(out_tree, out if isinstance(out, tuple) else (out,))

    return call
