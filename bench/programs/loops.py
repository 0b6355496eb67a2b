"""Control flow: loops of every weight, and branches."""

import math

import jax.numpy as jnp
from jax import lax

from programs.program import F32, U32, f32, ints, program, section

section("control flow")


@program(golden=dict(n=64, steps=50), timing=dict(n=64, steps=1000))
def rnn_tiny(n, steps):
    # Weights below one and an input: neither chaos, which would amplify rounding, nor decay to nothing.
    def f(h, x, w):
        return lax.fori_loop(0, steps, lambda _, h: jnp.tanh(h @ w + x), h)
    return f, [f32(n), f32(n), f32(n, n, scale=0.7 / math.sqrt(n))]


@program(golden=dict(n=1001), timing=dict(n=1_000_000))
def newton(n):
    def f(a):
        def unfinished(state):
            k, x = state
            return (k < 20) & (jnp.max(jnp.abs(x * x - a)) > 1e-4)
        return lax.while_loop(unfinished, lambda s: (s[0] + 1, 0.5 * (s[1] + a / s[1])), (0, a))
    return f, [f32(n, kind="uniform", lo=0.5, hi=20.0)]


@program(golden=dict(rows=30, cols=70), timing=dict(rows=1024, cols=1024))
def branch_pred(rows, cols):
    def f(flag, x):
        return lax.cond(flag > 0, lambda v: jnp.exp(v) + 1, lambda v: v.T.reshape(rows, cols) * 2, x)
    return f, [ints(lo=-5, hi=5), f32(rows, cols)]


@program(golden=dict(rows=30, cols=70), timing=dict(rows=1024, cols=1024),
         loose=8)  # a sum of a million terms that cancel
def branch_index(rows, cols):
    def f(k, x):
        scale = lambda s: (lambda v: (v * s, jnp.sum(v)))
        return lax.switch(k, [scale(1.0), scale(-2.0), lambda v: (jnp.tanh(v), jnp.max(v))], x)
    return f, [ints(lo=0, hi=5), f32(rows, cols)]


@program(golden=dict(steps=60), timing=dict(steps=10_000), fixed=("steps",))
def scalar_loop(steps):
    # Nothing but scalars: an integer that wraps and two floats that settle.
    def f(seed, x, y):
        def body(k, state):
            seed, x, y = state
            seed = seed * 1664525 + 1013904223
            noise = (seed >> 8).astype(F32) * jnp.float32(2**-24)
            x = jnp.where(noise > 0.5, 0.75 * x + 0.25 * y, x - 0.25 * (x - noise))
            return seed, x, 0.9 * y + 0.1 / (1.0 + x * x)
        return lax.fori_loop(0, steps, body, (seed, x, y))
    return f, [ints(dtype=U32, lo=0, hi=2**32), f32(), f32()]


@program(golden=dict(size=120, steps=4), timing={"": dict(size=1000, steps=100), "_10k": dict(size=10_000, steps=100)},
         fixed=("size",), alone=("_10k",))
def scalar_body(size, steps):
    # One loop body of many scalar instructions, five to a round over sixteen values. (XLA:CPU compiles ten thousand
    # of them for minutes.)
    def f(*state):
        def body(_, state):
            state = list(state)
            for k in range(size // 5):
                a, b, c = k % 16, (k * 7 + 3) % 16, (k * 5 + 11) % 16
                state[a] = (state[a] * jnp.uint32(1664525 + 2 * k) + state[b]) ^ (state[c] >> (1 + k % 13)) | k % 3
            return tuple(state)
        return lax.fori_loop(0, steps, body, state)
    return f, [ints(dtype=U32, lo=0, hi=2**32)] * 16


@program(golden=dict(steps=11, n=3), timing=dict(steps=1000, n=4))
def scan_carries(steps, n):
    # A scan that carries a dozen little arrays, as simulations do.
    def f(xs, *carries):
        def body(carries, x):
            after = [0.5 * c + 0.3 * carries[k - 1] + 0.1 * x for k, c in enumerate(carries)]
            after[0] = jnp.tanh(after[0])
            return tuple(after), sum(after)
        return lax.scan(body, carries, xs)
    return f, [f32(steps, n), *[f32(n)] * 12]
