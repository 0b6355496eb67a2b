"""Sorts, searches, prefixes and what is built of them, along any dim."""

import jax.numpy as jnp
import numpy as np
from jax import lax, nn

from random_programs.draw import NUMBERS, Drawn, argument, described, is_float


def ranks(a, k):
    return jnp.argsort(jnp.argsort(a, axis=k), axis=k).astype(jnp.int32)


def classes(a, k):
    """Of each element in order, how many others are smaller: what np.unique's inverse is made of."""
    a = jnp.sort(a, axis=k)
    fresh = jnp.diff(a, axis=k) != 0
    return jnp.cumsum(fresh, axis=k).astype(jnp.int32)


def running_mean(a, k):
    sums = jnp.cumsum(a, axis=k)
    return (sums - jnp.roll(sums, 5, axis=k)) / 5


# (array, dim, a number from 1 to 9) -> result
ALONG = {
    "sort": lambda a, k, n: jnp.sort(a, axis=k), "sort descending": lambda a, k, n: jnp.sort(a, axis=k, descending=True),
    "argsort": lambda a, k, n: jnp.argsort(a, axis=k).astype(jnp.int32), "ranks": lambda a, k, n: ranks(a, k),
    "classes": lambda a, k, n: classes(a, k),
    "top_k": lambda a, k, n: lax.top_k(jnp.moveaxis(a, k, -1), min(n, a.shape[k])),
    "half top_k": lambda a, k, n: lax.top_k(jnp.moveaxis(a, k, -1), (a.shape[k] + 1) // 2),
    "cumsum": lambda a, k, n: jnp.cumsum(a, axis=k, dtype=a.dtype), "cummax": lambda a, k, n: lax.cummax(a, axis=k),
    "cummin from the end": lambda a, k, n: lax.cummin(a, axis=k, reverse=True),
    "argmax": lambda a, k, n: jnp.argmax(a, axis=k).astype(jnp.int32),
    "largest and where": lambda a, k, n: (a.max(k), jnp.argmax(a, axis=k).astype(jnp.int32)),
    "n-th smallest": lambda a, k, n: jnp.take(jnp.sort(a, axis=k), min(n, a.shape[k]) - 1, axis=k),
    "sort by another": lambda a, k, n: lax.sort((a, a * 2, jnp.flip(a, k)), dimension=k, num_keys=1),
    "sort by two": lambda a, k, n: lax.sort((a > 0, a, -a), dimension=k, num_keys=2),
    "clip to the n-th": lambda a, k, n: jnp.maximum(a, lax.top_k(jnp.moveaxis(a, k, -1), min(n, a.shape[k]))[0].min()),
}
FLOATS_ALONG = {
    "cumprod": lambda a, k, n: jnp.cumprod(1 + a * 0.01, axis=k), "median": lambda a, k, n: jnp.median(a, axis=k),
    "cumlogsumexp": lambda a, k, n: lax.cumlogsumexp(a, axis=k),
    "quantiles": lambda a, k, n: jnp.quantile(a, jnp.linspace(0, 1, n), axis=k), "running mean": lambda a, k, n: running_mean(a, k),
    "top softmax": lambda a, k, n: nn.softmax(lax.top_k(jnp.moveaxis(a, k, -1), min(n, a.shape[k]))[0], -1),
}


def searches(d, dtype):
    n, m = d.elements(10, 30_000), d.elements(10, 30_000)
    bins = d.size(3, 300)
    edges, values = argument([n], dtype), argument([m], dtype)
    return {
        "searchsorted": (lambda a, b: jnp.searchsorted(jnp.sort(a), b).astype(jnp.int32), [edges, values]),
        "searchsorted by sorting": (lambda a, b: jnp.searchsorted(jnp.sort(a), b, method="sort").astype(jnp.int32),
                                    [edges, values]),
        "histogram": (lambda b: jnp.histogram(b, bins=bins, range=(-2, 2))[0], [values]),
        "isin": (lambda a, b: jnp.isin(a, b), [edges, argument([bins], dtype)]),
        "interp": (lambda a, b: jnp.interp(b, jnp.sort(a), a), [edges, values]),
        "digitize": (lambda a, b: jnp.digitize(b, jnp.sort(a)[:bins]).astype(jnp.int32), [edges, values]),
    }


def order(d):
    dtype = d.choice(NUMBERS)
    if d.likely(0.15):
        dtype = d.choice([np.float32, np.float32, np.int32])
        kinds = searches(d, dtype)
        name = d.choice(list(kinds) if is_float(dtype) else ["searchsorted", "isin", "digitize"])
        function, arguments = kinds[name]
        return Drawn(f"{name} {described(arguments)}", function, arguments)
    x = d.sizes(d.randint(1, 4), d.elements(300, 200_000))
    k, n = d.randrange(len(x)), d.randint(1, 9)
    kinds = {**ALONG, **(FLOATS_ALONG if dtype in (np.float32, np.float64) else {})}
    name = d.choice(list(kinds))
    a = argument(x, dtype)
    return Drawn(f"{name} {n} [{k}] {described([a])}", lambda a: kinds[name](a, k, n), [a])
