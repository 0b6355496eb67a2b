"""Chains of steps, each on the result of the one before."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, nn

from random_programs.draw import FLOATS, MOST, Drawn, argument, is_float

FUNCTIONS = {
    "tanh": jnp.tanh, "exp": lambda a: jnp.exp(jnp.minimum(a, 1)), "sqrt": lambda a: jnp.sqrt(jnp.abs(a) + 0.1),
    "abs": jnp.abs, "log1p": lambda a: jnp.log1p(jnp.abs(a)), "sin": jnp.sin, "sigmoid": nn.sigmoid,
    "square": lambda a: a * a, "rsqrt": lambda a: lax.rsqrt(1 + a * a), "relu": nn.relu, "gelu": nn.gelu,
    "divide": lambda a: 1 / (2 + jnp.abs(a)),
}
WHOLE_FUNCTIONS = {
    "negate": lambda a: -a, "abs": jnp.abs, "and": lambda a: a & 7, "shift": lambda a: a >> 1,
    "triple": lambda a: a * 3, "clip": lambda a: jnp.clip(a, -5, 5),
}
PAIRS = {"add": jnp.add, "multiply": jnp.multiply, "maximum": jnp.maximum, "subtract": jnp.subtract,
         "where": lambda a, b: jnp.where(a > b, a, b * 2)}


# ---- steps: (a draw, what it is given) -> (text, function, more arguments), or None -----------------------------
def unary(d, x):
    functions = FUNCTIONS if is_float(x.dtype) else WHOLE_FUNCTIONS
    name = d.choice(list(functions))
    return name, functions[name], []


def binary(d, x):
    name = d.choice(list(PAIRS))
    return name, PAIRS[name], [argument(x.shape, x.dtype)]


def broadcast(d, x):
    shape = [n if d.likely(0.5) else 1 for n in x.shape]
    return f"scale{shape}", lambda a, b: a * b + b, [argument(shape, x.dtype)]


def axes_of(d, x):
    return tuple(k for k in range(x.ndim) if d.likely(0.5)) or (d.randrange(x.ndim),)


def reduce(d, x):
    axes, name = axes_of(d, x), d.choice(["sum", "max", "min", "mean" if is_float(x.dtype) else "sum"])
    return f"{name}{list(axes)}", lambda a: getattr(jnp, name)(a, axis=axes).astype(a.dtype), []


def normalise(d, x):
    axes, kind = axes_of(d, x), d.choice(["minus mean", "minus max", "standardise", "softmax"])
    if not is_float(x.dtype):
        return f"minus max{list(axes)}", lambda a: a - a.max(axes, keepdims=True), []

    def function(a):
        if kind == "softmax":
            return nn.softmax(a, axis=axes[0])
        if kind == "minus max":
            return a - a.max(axes, keepdims=True)
        centred = a - a.mean(axes, keepdims=True)
        return centred if kind == "minus mean" else centred * lax.rsqrt(a.var(axes, keepdims=True) + 1e-3)
    return f"{kind}{list(axes)}", function, []


def transpose(d, x):
    order = d.sample(range(x.ndim), x.ndim)
    return f"transpose{order}", lambda a: a.transpose(order), []


def reshape(d, x):
    k, shape = d.randrange(x.ndim), list(x.shape)
    factors = [q for q in range(2, 33) if shape[k] % q == 0 and shape[k] > q]
    if factors and x.ndim < 5 and d.likely(0.5):
        q = d.choice(factors)
        shape[k:k + 1] = [shape[k] // q, q]
    elif k + 1 < x.ndim:
        shape[k:k + 2] = [shape[k] * shape[k + 1]]
    return f"reshape{shape}", lambda a: a.reshape(shape), []


def rearrange(d, x):
    """Of one dim: joined, rolled, turned round, padded, cut, repeated."""
    k, n = d.randrange(x.ndim), d.random()
    size = x.shape[k]
    edges = [(d.randint(0, 3), d.randint(0, 3)) if j == k else (0, 0) for j in range(x.ndim)]
    mode, low, high = d.choice(["constant", "edge", "reflect"]), int(n * size / 2), size - int(n * size / 3)
    kinds = {
        "join": lambda a: jnp.concatenate([a, a * 2], axis=k), "roll": lambda a: jnp.roll(a, low, axis=k) + a,
        "flip": lambda a: jnp.flip(a, axis=k), "pad": lambda a: jnp.pad(a, edges, mode=mode),
        "cut": lambda a: lax.slice_in_dim(a, low, high, axis=k),
        "stride": lambda a: lax.slice_in_dim(a, 0, size, 2 + int(2 * n), axis=k),
        "tile": lambda a: jnp.tile(a, [2 if j == k else 1 for j in range(a.ndim)]),
        "repeat": lambda a: jnp.repeat(a, 2, axis=k), "differences": lambda a: jnp.diff(a, axis=k),
        "update": lambda a: a.at[(slice(None),) * k + (slice(low, high),)].set(1),
    }
    name = d.choice(list(kinds))
    return f"{name}[{k}]", kinds[name], []


def dot(d, x):
    k, columns = d.randrange(x.ndim), d.size(2, 300)
    if not is_float(x.dtype) or math.prod(x.shape) * columns > 1e8:
        return None
    return (f"dot[{k}]x{columns}", lambda a, b: jnp.tensordot(a, b, axes=[[k], [0]]) / 16,
            [argument([x.shape[k], columns], x.dtype)])


def along(d, x):
    """Order along a dim."""
    k, width = d.randrange(x.ndim), d.randint(2, 5)
    kinds = {
        "cumsum": lambda a: jnp.cumsum(a, axis=k).astype(a.dtype), "cummax": lambda a: lax.cummax(a, axis=k),
        "sort": lambda a: jnp.sort(a, axis=k), "argmax": lambda a: jnp.argmax(a, axis=k).astype(jnp.int32),
        "window": lambda a: lax.reduce_window(a, np.zeros((), a.dtype)[()], lax.add,
                                              [width if j == k else 1 for j in range(a.ndim)], (1,) * a.ndim, "SAME"),
    }
    name = d.choice(list(kinds))
    return f"{name}[{k}]", kinds[name], []


def take(d, x):
    k, n = d.randrange(x.ndim), d.size(2, 500)
    return (f"take[{k}]x{n}", lambda a, i: jnp.take(a, i, axis=k, mode="clip"),
            [argument([n], np.int32, x.shape[k])])


def convert(d, x):
    to = np.dtype(d.choice([jnp.bfloat16, np.float16, np.int32, np.float32]))
    return f"to {to.name}", lambda a: jnp.clip(a, -8, 8).astype(to), []


def outer(d, x):
    return "outer", lambda a: a[..., None] - a.reshape(-1), []


def loop(d, x):
    if not is_float(x.dtype) or math.prod(x.shape) > 60_000:
        return None
    count = d.randint(2, 20)
    return (f"loop{count}", lambda a: lax.fori_loop(
        0, count, lambda i, v: (v * 0.9 + jnp.roll(v, 1, 0) * 0.05).astype(v.dtype), a), [])


STEPS = [unary] * 4 + [binary] * 3 + [broadcast, reduce, reduce, normalise, normalise, transpose, transpose, reshape,
                                      reshape, dot, dot, take, convert, outer, loop] + [rearrange] * 6 + [along] * 3


def mix(d):
    dtype = d.choice(FLOATS + [np.int32])
    arguments = [argument(d.sizes(d.randint(1, 4), d.elements(500, 400_000)), dtype)]
    x = jax.ShapeDtypeStruct(arguments[0].shape, dtype)
    steps, texts = [], [f"{np.dtype(dtype).name}{list(x.shape)}:"]
    for _ in range(d.randint(2, 10)):
        step = d.choice(STEPS)(d, x) if x.ndim else None
        if not step:
            continue
        text, function, more = step
        try:
            made = jax.eval_shape(function, x, *[jax.ShapeDtypeStruct(a.shape, a.dtype) for a in more])
        except Exception:  # noqa: BLE001 - a step that does not fit this shape
            continue
        if 1 <= math.prod(made.shape) <= MOST:
            steps.append((function, slice(len(arguments) - 1, len(arguments) - 1 + len(more))))
            arguments += more
            texts.append(text)
            x = made
    kept = 3 if d.likely(0.25) else 1

    def run(a, *more):
        values = [a]
        for function, which in steps:
            values.append(function(values[-1], *more[which]))
        return tuple(values[1:][-kept:]) or a
    return Drawn(" ".join(texts) + (" (3 results)" if kept > 1 else ""), run, arguments)
