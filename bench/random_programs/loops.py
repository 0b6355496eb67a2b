"""Control flow: a loop of one kind around a body of another, with carries of several types."""

import jax.numpy as jnp
import numpy as np
from jax import lax, nn

from random_programs.draw import Drawn, argument, described

# What happens to a vector in one turn, given another of the same size and a matrix.
BODIES = {
    "affine": lambda h, x, w: jnp.tanh(h * 0.5 + x),
    "stencil": lambda h, x, w: h + 0.1 * (jnp.roll(h, 1) - 2 * h + jnp.roll(h, -1)) + 0.01 * x,
    "recurrent": lambda h, x, w: jnp.tanh(w @ h * 0.1 + x),
    "normalise": lambda h, x, w: (h + x) * lax.rsqrt(jnp.mean((h + x) ** 2) + 1e-3),
    "softmax": lambda h, x, w: nn.softmax(h + x),
    "permute": lambda h, x, w: h[::-1] * 0.7 + x,
    "cumulate": lambda h, x, w: jnp.cumsum(h * 0.1) * 0.1 + x,
    "sort": lambda h, x, w: jnp.sort(h * 0.9 + x),
    "relax": lambda h, x, w: jnp.minimum(h + 1, jnp.min(w * 0.1 + h[None, :], axis=1)) - 0.1 + 0 * x,
    "choose": lambda h, x, w: jnp.where(h > x, h * 0.5, x - h),
    "gates": lambda h, x, w: nn.sigmoid(x) * h + (1 - nn.sigmoid(x)) * jnp.tanh(x + h),
    "cond": lambda h, x, w: lax.cond(x[0] > 0, lambda v: v * 0.5 + x, lambda v: jnp.sin(v) - x, h),
    "switch": lambda h, x, w: lax.switch((jnp.abs(x[0]) * 2).astype(jnp.int32), [
        lambda v: v + x, lambda v: v * x, lambda v: jnp.maximum(v, x), lambda v: -v], h),
    "set": lambda h, x, w: h.at[(jnp.abs(x[0]) * 7).astype(jnp.int32) % h.shape[0]].set(x[-1]),
    "inner loop": lambda h, x, w: lax.fori_loop(0, 5, lambda k, v: v * 0.8 + x * 0.1, h),
}
# More that is carried beside the vector: (initial value, the next one).
COMPANIONS = {
    "count": (lambda h: jnp.int32(0), lambda c, h: c + (h[0] > 0)),
    "largest": (lambda h: h[0], lambda c, h: jnp.maximum(c, h.max())),
    "random": (lambda h: jnp.uint32(7), lambda c, h: (lambda v: v ^ (v >> 17))(c ^ (c << 13))),
    "flags": (lambda h: h > 0, lambda c, h: c ^ (h > 0.5)),
    "average": (lambda h: h, lambda c, h: c * 0.9 + h * 0.1),
}
OUTPUTS = {"none": lambda h, c: None, "vector": lambda h, c: h, "sum": lambda h, c: jnp.sum(h),
           "both": lambda h, c: (h, c), "some": lambda h, c: h[::2]}


def turn(d):
    """(text, a function (h, companions), x, w -> the same, and a first value of the companions)"""
    body = d.choice(list(BODIES))
    names = d.sample(list(COMPANIONS), d.choice([0, 0, 1, 2]))

    def first(h):
        return tuple(COMPANIONS[c][0](h) for c in names)

    def step(carry, x, w):
        h, more = carry
        h = BODIES[body](h, x, w).astype(h.dtype)
        return h, tuple(COMPANIONS[c][1](v, h).astype(v.dtype) for c, v in zip(names, more))
    return " ".join([body, *names]), step, first


def scan(d, n, count):
    text, step, first = turn(d)
    output, reverse, columns = d.choice(list(OUTPUTS)), d.likely(0.3), d.likely(0.2)

    def run(h, x, w):
        def one(carry, x):
            carry = step(carry, x, w)
            return carry, OUTPUTS[output](*carry)
        return lax.scan(one, (h, first(h)), x.T if columns else x, reverse=reverse)
    text = f"scan {text}{' of columns' if columns else ''}, outputs {output}"
    return text, run, [[n], [n, count] if columns else [count, n], [n, n]]


def counted(d, n, count):
    text, step, first = turn(d)
    return (f"fori_loop {text}", lambda h, x, w: lax.fori_loop(
        0, count, lambda k, c: step(c, x[k % x.shape[0]], w), (h, first(h))), [[n], [min(count, 9), n], [n, n]])


def until(d, n, count):
    text, step, first = turn(d)

    def run(h, x, w):
        return lax.while_loop(lambda s: (s[0] < count) & (jnp.max(jnp.abs(s[1][0])) < 1e3),
                              lambda s: (s[0] + 1, step(s[1], x, w)), (jnp.int32(0), (h, first(h))))
    return f"while_loop {text}", run, [[n], [n], [n, n]]


def nested(d, n, count):
    text, step, first = turn(d)

    def run(h, x, w):
        def row(carry, x):
            carry = lax.fori_loop(0, 3 + carry[0].shape[0] % 4, lambda k, c: step(c, x, w), carry)
            return carry, carry[0]
        return lax.scan(row, (h, first(h)), x)
    return f"nested {text}", run, [[n], [max(2, count // 4), n], [n, n]]


def mapped(d, n, count):
    text, step, first = turn(d)
    return (f"map {text}", lambda h, x, w: lax.map(lambda row: step((h, first(h)), row, w), x),
            [[n], [count, n], [n, n]])


def associative(d, n, count):
    kinds = {
        "linear": lambda p, q: (p[0] * q[0], q[0] * p[1] + q[1]),
        "maximum": lambda p, q: (jnp.maximum(p[0], q[0]), jnp.minimum(p[1], q[1])),
        "logsumexp": lambda p, q: (jnp.logaddexp(p[0], q[0]), p[1] + q[1]),
    }
    name, axis = d.choice(list(kinds)), d.randrange(2)
    return (f"associative_scan {name} [{axis}]", lambda a, b: lax.associative_scan(
        kinds[name], (jnp.tanh(a), b), axis=axis), [[count, n], [count, n]])


def alignment(d, n, count):
    """Rows of a table that depend on the one before and on the left neighbour."""
    def run(x, y):
        def row(above, a):
            best = jnp.minimum(above[1:] + 1, above[:-1] + jnp.abs(a - y))
            return jnp.concatenate([above[:1] + 1, lax.cummin(best)]), best.min()
        return lax.scan(row, jnp.arange(y.shape[0] + 1, dtype=y.dtype), x)
    return "alignment", run, [[count], [n]]


def control(d):
    kind = d.choice([scan] * 4 + [counted] * 2 + [until] * 2 + [nested, mapped, associative, alignment])
    n = max(2, round(d.size(2, 600) * d.share ** 0.5))
    count = min(d.size(3, 2000), 400_000 // n)
    if n > 100:
        count = min(count, 200)
    text, run, shapes = kind(d, n, count)
    dtype = d.choice([np.float32] * 6 + [np.float64])
    arguments = [argument(s, dtype) for s in shapes]
    return Drawn(f"{text}, {count} turns, {described(arguments)}", run, arguments)
