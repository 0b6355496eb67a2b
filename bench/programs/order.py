"""Sorting and what rests on order."""

import jax.numpy as jnp
from jax import lax

from programs.program import f32, ints, program, section

section("order")


@program(golden=dict(n=1001), timing={"": dict(n=1_000_000), "_odd": dict(n=99_991)})
def sort(n):
    return jnp.sort, [f32(n)]


@program(golden=dict(rows=13, cols=101), timing=dict(rows=1000, cols=1000))
def sort_rows(rows, cols):
    return (lambda x: jnp.sort(x, axis=1)), [f32(rows, cols)]


@program(golden=dict(rows=70, cols=9), timing=dict(rows=4099, cols=61))
def sort_columns(rows, cols):
    # The sorted dimension is not the fast one; many values are equal.
    return (lambda x: jnp.sort(x, axis=0)), [ints(rows, cols, lo=-50, hi=50)]


@program(golden=dict(n=1001), timing=dict(n=100_000))
def argsort(n):
    # Stable, with ties in plenty.
    return (lambda x: (jnp.argsort(x), jnp.argsort(-jnp.round(x * 4)))), [f32(n)]


@program(golden=dict(n=501), timing=dict(n=200_000))
def sort_by_key(n):
    return (lambda key, a, b: lax.sort((key, a, b), num_keys=1)), [ints(n, lo=0, hi=n), f32(n), ints(n)]


@program(golden=dict(rows=9, cols=333, k=10), timing=dict(rows=128, cols=32_000, k=50), fixed=("k",))
def top_k(rows, cols, k):
    return (lambda x: lax.top_k(x, k)), [f32(rows, cols)]


@program(golden=dict(bins=101, n=333), timing=dict(bins=10_007, n=100_000))
def search(bins, n):
    return (lambda table, x: jnp.searchsorted(jnp.sort(table), x)), [f32(bins), f32(n)]
