"""Gathers and scatters: in their general form, and as NumPy's indexing."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from random_programs.draw import NUMBERS, Drawn, argument, described

Mode = lax.GatherScatterMode


@dataclasses.dataclass
class Windows:
    """Dimension numbers that gather and scatter share."""
    operand: list
    indexed: list    # dims that an index vector names a place in
    slices: list
    dropped: list    # dims of size 1 that the window has not
    batching: list
    indices: list    # shape, without the vector's dim
    window: list     # where the window's dims are in the result
    result: list
    high: int        # indices below this are in bounds

    @property
    def batch_places(self):
        return [0] if self.batching else []


def windows(d):
    rank = d.randint(1, 4)
    x = d.sizes(rank, d.elements(300, 300_000))
    dims = d.sample(range(rank), rank)
    count = d.randint(1, min(rank, 3))
    indexed, rest = dims[:count], dims[count:]
    batching = [rest.pop()] if rest and d.likely(0.15) else []
    slices = list(x)
    for k in indexed:
        slices[k] = 1 if d.likely(0.65) else d.randint(1, min(x[k], 9))
    for k in rest:
        slices[k] = d.randint(1, x[k]) if d.likely(0.2) else x[k]
    for k in batching:
        slices[k] = 1
    dropped = sorted(k for k in indexed if slices[k] == 1 and d.likely(0.8))
    window = [slices[k] for k in range(rank) if k not in dropped and k not in batching]
    places = max(1, d.elements(500, 400_000) // math.prod(window))
    if batching:
        indices = [x[batching[0]], max(1, places // x[batching[0]])]
    else:
        indices = [places] if d.likely(0.6) else [max(1, int(places ** 0.4)), max(1, int(places ** 0.6))]
    total = len(window) + len(indices)
    where = sorted(d.sample(range(total), len(window))) if d.likely(0.5) else list(range(len(indices), total))
    sizes, batches = iter(window), iter(indices)
    result = [next(sizes if k in where else batches) for k in range(total)]
    return Windows(x, indexed, slices, dropped, batching, indices, where, result,
                   max(1, min(x[k] - slices[k] + 1 for k in indexed)))


def text_of(name, w, dtype, mode):
    return (f"{name} {np.dtype(dtype).name}{w.operand} at {w.indices} of dims {w.indexed}, windows {w.slices} without "
            f"{w.dropped} to {w.window}, batching {w.batching}, {mode.name.lower()}")


def gather(d):
    w, dtype = windows(d), d.choice(NUMBERS)
    mode = d.choice([Mode.CLIP, Mode.PROMISE_IN_BOUNDS, Mode.FILL_OR_DROP])
    numbers = lax.GatherDimensionNumbers(tuple(w.window), tuple(w.dropped), tuple(w.indexed), tuple(w.batching),
                                         tuple(w.batch_places))
    return Drawn(text_of("gather", w, dtype, mode), lambda a, i: lax.gather(a, i, numbers, tuple(w.slices), mode=mode),
                 [argument(w.operand, dtype), argument(w.indices + [len(w.indexed)], np.int32, w.high)])


def scatter(d):
    w, dtype = windows(d), d.choice(NUMBERS)
    mode = d.choice([Mode.CLIP, Mode.PROMISE_IN_BOUNDS, Mode.FILL_OR_DROP])
    function = d.choice([lax.scatter_add] * 5 + [lax.scatter, lax.scatter_max, lax.scatter_mul])
    numbers = lax.ScatterDimensionNumbers(tuple(w.window), tuple(w.dropped), tuple(w.indexed), tuple(w.batching),
                                          tuple(w.batch_places))
    return Drawn(text_of(function.__name__, w, dtype, mode), lambda a, i, b: function(a, i, b, numbers, mode=mode),
                 [argument(w.operand, dtype), argument(w.indices + [len(w.indexed)], np.int32, w.high),
                  argument(w.result, dtype)])


def indexing(d):
    dtype, x = d.choice(NUMBERS), d.sizes(d.randint(1, 3), d.elements(300, 300_000))
    k = d.randrange(len(x))
    n = max(1, min(d.elements(100, 60_000), 400_000 * x[k] // math.prod(x)))
    groups, before = d.size(5, 2000), (slice(None),) * k
    a, one = argument(x, dtype), argument([n], np.int32, x[k])
    rows, some = [n if j == k else s for j, s in enumerate(x)], [d.choice([1, s]) if j == k else s for j, s in enumerate(x)]
    places = [argument([n], np.int32, s) for s in x]
    kinds = {
        "take": (lambda a, i: jnp.take(a, i, axis=k, mode="clip"), [a, one]),
        "elements": (lambda a, *i: a[i], [a, *places]),
        "take_along": (lambda a, i: jnp.take_along_axis(a, i, axis=k), [a, argument(some, np.int32, x[k])]),
        "at set": (lambda a, i, b: a.at[before + (i,)].set(b), [a, one, argument(rows, dtype)]),
        "at add": (lambda a, i, b: a.at[before + (i,)].add(b), [a, one, argument(rows, dtype)]),
        "at max": (lambda a, i, b: a.at[before + (i,)].max(b), [a, one, argument(rows, dtype)]),
        "add elements": (lambda a, b, *i: a.at[i].add(b), [a, argument([n], dtype), *places]),
        "segment_sum": (lambda a, i: jax.ops.segment_sum(a, i, groups), [a, argument(x[:1], np.int32, groups)]),
        "segment_max": (lambda a, i: jax.ops.segment_max(a, i, groups), [a, argument(x[:1], np.int32, groups)]),
        "bincount": (lambda i: jnp.bincount(i, length=groups), [argument([n], np.int32, groups)]),
        "one_hot": (lambda i: jax.nn.one_hot(i, min(groups, 400_000 // n)), [argument([n], np.int32, groups)]),
    }
    name = d.choice(list(kinds))
    function, arguments = kinds[name]
    return Drawn(f"{name} [{k}] {described(arguments)}", function, arguments)
