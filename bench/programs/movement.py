"""Data movement: transposes, concatenation, windows, gather and scatter."""

import math

import jax.numpy as jnp
from jax import lax

from programs.program import S32, S8, bf16, f32, ints, program, section

section("data movement")


@program(golden=dict(rows=131, cols=77), timing={"": dict(rows=2048, cols=2048), "_4k": dict(rows=4096, cols=4096), "_odd": dict(rows=2039, cols=2029)},
         tiled=True)
def transpose_2d(rows, cols):
    return (lambda x: x.T), [f32(rows, cols)]


@program(golden=dict(rows=65, cols=102), timing=dict(rows=1024, cols=1024), tiled=True)
def transpose_add(rows, cols):
    return (lambda x, y: x.T + y), [f32(rows, cols), f32(cols, rows)]


@program(golden=dict(a=7, b=33, c=50), timing=dict(a=64, b=256, c=256))
def transpose_021(a, b, c):
    return (lambda x: jnp.transpose(x, (0, 2, 1))), [f32(a, b, c)]


@program(golden=dict(a=7, b=33, c=50), timing=dict(a=256, b=256, c=64))
def transpose_102(a, b, c):
    return (lambda x: jnp.transpose(x, (1, 0, 2))), [f32(a, b, c)]


@program(golden=dict(a=7, b=33, c=50), timing=dict(a=128, b=128, c=256))
def transpose_210(a, b, c):
    return (lambda x: jnp.transpose(x, (2, 1, 0))), [f32(a, b, c)]


@program(golden=dict(rows=67, cols=90), timing={"": dict(rows=2048, cols=2048), "_odd": dict(rows=2039, cols=2029)},
         tiled=True)
def transpose_bf16(rows, cols):
    return (lambda x: x.T), [bf16(rows, cols)]


@program(golden=dict(rows=70, cols=45), timing=dict(rows=2048, cols=2048))
def transpose_s8(rows, cols):
    return (lambda x: x.T), [ints(rows, cols, dtype=S8, lo=-128, hi=128)]


@program(golden=dict(n=2, h=9, w=11, c=24), timing=dict(n=8, h=112, w=112, c=64))
def nhwc_to_nchw(n, h, w, c):
    return (lambda x: jnp.transpose(x, (0, 3, 1, 2))), [f32(n, h, w, c)]


@program(golden=dict(rows=40, cols=65), timing=dict(rows=2048, cols=2048))
def concat_rows(rows, cols):
    return (lambda x, y: jnp.concatenate([x, y * 2, x[:5]], axis=0)), [f32(rows, cols), f32(rows, cols)]


@program(golden=dict(rows=40, cols=65), timing=dict(rows=2048, cols=1024))
def concat_cols(rows, cols):
    return (lambda x, y, z: jnp.concatenate([x, y, z], axis=1)), [
        f32(rows, cols), f32(rows, cols + 3), f32(rows, cols)]


@program(golden=dict(rows=40, cols=65), timing=dict(rows=2048, cols=2048))
def pad_slice_reverse(rows, cols):
    def f(x):
        padded = lax.pad(x, jnp.float32(-1), ((2, 3, 0), (-1, 4, 1)))
        return padded[::-1, 1::2], jnp.flip(x, 1) + 1, x[3:-3, ::3]
    return f, [f32(rows, cols)]


@program(golden=dict(rows=40, cols=65), timing=dict(rows=2048, cols=2048))
def stencil(rows, cols):
    def f(x):
        p = jnp.pad(x, 1)
        return 0.2 * (p[1:-1, 1:-1] + p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:])
    return f, [f32(rows, cols)]


@program(golden=dict(vocab=300, dim=64, tokens=90), timing=dict(vocab=32000, dim=512, tokens=4096))
def embedding(vocab, dim, tokens):
    return (lambda table, ids: table[ids] * math.sqrt(dim)), [f32(vocab, dim), ints(tokens, lo=0, hi=vocab)]


@program(golden=dict(rows=33, cols=100), timing=dict(rows=4096, cols=1024))
def take_along(rows, cols):
    return (lambda x, k: jnp.take_along_axis(x, k[:, None], axis=1)[:, 0]), [
        f32(rows, cols), ints(rows, lo=0, hi=cols)]


@program(golden=dict(rows=33, cols=100, block=16), timing=dict(rows=2048, cols=2048, block=512))
def dynamic_window(rows, cols, block):
    def f(x, k):
        window = lax.dynamic_slice(x, (k[0], k[1]), (block, block))
        return lax.dynamic_update_slice(x, window * 2 + 1, (k[1], k[0]))
    return f, [f32(rows, cols), ints(2, lo=-3, hi=40)]


@program(golden=dict(batch=3, seq=20, heads=4, dim=16), timing=dict(batch=8, seq=512, heads=8, dim=64))
def split_heads(batch, seq, heads, dim):
    def f(x):
        q, k, v = jnp.split(x, 3, axis=-1)
        shape = lambda t: t.reshape(batch, seq, heads, dim).transpose(0, 2, 1, 3)
        return shape(q) * (1 / math.sqrt(dim)), shape(k), shape(v)
    return f, [f32(batch, seq, 3 * heads * dim)]


@program(golden=dict(rows=60, dim=21, picks=45), timing=dict(rows=100_000, dim=127, picks=20_000))
def gather_rows(rows, dim, picks):
    # Rows of a width that no vector divides; ids beyond either end are moved inside.
    return (lambda x, ids: jnp.take(x, ids, axis=0, mode="clip")), [
        f32(rows, dim), ints(picks, lo=-3, hi=rows + 3)]


@program(golden=dict(rows=30, cols=41, picks=111), timing=dict(rows=1000, cols=1000, picks=1_000_000))
def gather_elements(rows, cols, picks):
    return (lambda x, i, j: x[i, j]), [f32(rows, cols), ints(picks, lo=0, hi=rows), ints(picks, lo=0, hi=cols)]


@program(golden=dict(rows=30, dim=21, updates=90), timing=dict(rows=32_000, dim=256, updates=4096))
def scatter_add(rows, dim, updates):
    return (lambda x, ids, u: x.at[ids].add(u)), [
        f32(rows, dim), ints(updates, lo=0, hi=rows), f32(updates, dim)]


@program(golden=dict(bins=19, n=1001), timing=dict(bins=256, n=1_000_000))
def histogram(bins, n):
    return (lambda ids: jnp.zeros(bins, S32).at[ids].add(1)), [ints(n, lo=0, hi=bins)]
