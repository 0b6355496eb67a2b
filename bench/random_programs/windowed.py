"""Convolutions, pools and their gradients."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from random_programs.draw import Drawn, argument

TYPES = [np.float32] * 6 + [jnp.bfloat16, np.float64]


def conv(d):
    rank = d.choice([1, 2, 2, 2, 2, 3])
    inputs, outputs = d.size(1, 64), d.randint(1, 10) if d.likely(0.6) else d.size(8, 64)
    kernel = [d.randint(1, 5 if rank < 3 else 3) for _ in range(rank)]
    spread = [d.choice([1, 2, 3]) for _ in range(rank)] if d.likely(0.4) else [1] * rank
    stride = [d.randint(1, 2) for _ in range(rank)] if max(spread) == 1 and d.likely(0.4) else [1] * rank
    dilation = [d.randint(1, 2) for _ in range(rank)] if d.likely(0.2) else [1] * rank
    batch, groups = d.choice([1, 1, 2, 4, 8]), 1
    if d.likely(0.2):
        groups = d.choice([g for g in range(1, inputs + 1) if inputs % g == 0])
        outputs = groups * d.randint(1, 3)
    work = d.elements(200_000, 300_000_000) / (batch * inputs // groups * outputs * math.prod(kernel))
    places = min(max(4, work), 400_000 / batch / max(inputs, outputs))
    sizes = [max(2, round(places ** (1 / rank) * d.uniform(0.7, 1.4)) // s) for s in spread]
    reach = [(k - 1) * w + 1 for k, w in zip(kernel, dilation)]
    # Wide enough that something comes out, and narrower than the kernel.
    padding = [(d.randint(0, r - 1), d.randint(0, r - 1)) if (n - 1) * s + 1 >= r else (r - 1, r - 1)
               for n, s, r in zip(sizes, spread, reach)]
    letters = "DHW"[-rank:]
    labels = ("N" + letters + "C", letters + "IO") if d.likely(0.6) else ("NC" + letters, "OI" + letters)
    of = dict(zip(letters, sizes), N=batch, C=inputs)
    taps = dict(zip(letters, kernel), I=inputs // groups, O=outputs)
    dtype = d.choice(TYPES)

    def run(x, w):
        return lax.conv_general_dilated(x, w, stride, padding, spread, dilation, (*labels, labels[0]),
                                        feature_group_count=groups)
    x, w = [of[c] for c in labels[0]], [taps[c] for c in labels[1]]
    return Drawn(f"conv {np.dtype(dtype).name} {labels[0]}{x} {labels[1]}{w} stride {stride} spread {spread} "
                 f"dilation {dilation} padding {padding} groups {groups}", run, [argument(x, dtype), argument(w, dtype)])


def pool(d):
    rank = d.choice([1, 2, 2, 2, 3])
    window = [d.randint(1, 4) for _ in range(rank)]
    window[0] = max(window[0], 2 if max(window) == 1 else 1)
    stride = list(window) if d.likely(0.4) else [d.randint(1, 3) for _ in range(rank)]
    batch, features = d.choice([1, 2, 4]), d.choice([1, 3, 8, 16, 21, 32, 64])
    places = d.elements(3000, 600_000) / batch / features
    sizes = [max(w + 2, round(places ** (1 / rank) * d.uniform(0.7, 1.4))) for w in window]
    features_last, dtype = d.likely(0.7), d.choice(TYPES)
    name, padding = d.choice(["max", "max", "min", "average"]), d.choice(["SAME", "VALID"])
    operation, neutral = {"max": (lax.max, -np.inf), "min": (lax.min, np.inf), "average": (lax.add, 0)}[name]

    def around(inner, first, last):
        return [first, *inner, last] if features_last else [first, last, *inner]
    shape = around(sizes, batch, features)

    def run(x):
        return lax.reduce_window(x, np.array(neutral, x.dtype)[()], operation, around(window, 1, 1),
                                 around(stride, 1, 1), padding)
    text = f"{name} pool {np.dtype(dtype).name}{shape} windows {window} stride {stride} {padding}"
    if d.likely(0.4):
        return Drawn(text, run, [argument(shape, dtype)])
    results = jax.eval_shape(run, jax.ShapeDtypeStruct(tuple(shape), dtype))
    return Drawn("gradient of " + text, lambda x, g: jax.vjp(run, x)[1](g)[0],
                 [argument(shape, dtype), argument(results.shape, dtype)])
