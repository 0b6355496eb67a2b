"""Quantised arithmetic: narrow weights with scales, rounding to them, products of bytes, halves beside singles."""

import jax.numpy as jnp
import numpy as np
from jax import lax, nn

from random_programs.draw import argument, drawn_layer

FP8 = [jnp.float8_e4m3fn, jnp.float8_e5m2]
BYTES = [np.int8, np.int8, np.uint8]


def tokens(d):
    return d.choice([1, 1, 2, 4, d.size(1, 64), d.size(8, 256)])


def weights_only(d):
    """x @ (w * scale): a scale for all, a column, a row or a group of rows; with zero points"""
    m, k, n, dtype = tokens(d), 16 * d.size(1, 40), d.size(8, 500), d.choice(BYTES + FP8 + [jnp.bfloat16])
    kind, group, zeros = d.choice(["all", "column", "row", "group"]), d.choice([8, 16]), d.likely(0.4)
    behind, transposed = d.likely(0.4), d.likely(0.3)
    shape = {"all": [], "column": [n], "row": [k, 1], "group": [k // group, 1, n]}[kind]

    def run(x, w, scale, zero):
        w = (w.T if transposed else w).astype(x.dtype)
        w = w.reshape(k // group, group, n) if kind == "group" else w
        w = w - zero if zeros else w
        if behind and kind in ("all", "column"):
            return (x @ w) * scale
        return x @ (w * scale).reshape(k, n)
    return run, [[m, k], argument([n, k] if transposed else [k, n], dtype), shape, shape]


def nibbles(d):
    """Two values of four bits a byte: side by side in rows or columns, or in halves; signed or not"""
    m, k, n, kind = tokens(d), 16 * d.size(1, 40), d.size(8, 400), d.choice(["rows", "halves", "columns"])
    signed, group = d.likely(0.5), d.choice([8, 16])

    def run(x, w, scale):
        if signed:
            low, high = lax.shift_right_arithmetic(w << 4, np.int8(4)), lax.shift_right_arithmetic(w, np.int8(4))
        else:
            w = w.astype(jnp.uint8)
            low, high = (w & 15).astype(jnp.int8) - 8, (w >> 4).astype(jnp.int8) - 8
        if kind == "rows":
            full = jnp.stack([low, high], 1).reshape(k, n)
        elif kind == "halves":
            full = jnp.concatenate([low, high], 0)
        else:
            full = jnp.stack([low, high], -1).reshape(k, n)
        full = full.astype(x.dtype).reshape(k // group, group, n) * scale[:, None]
        return x @ full.reshape(k, n)
    n = n // 2 * 2
    shape = [k, n // 2] if kind == "columns" else [k // 2, n]
    return run, [[m, k], argument(shape, np.int8), [k // group, n]]


def int4(d):
    m, k, n = tokens(d), d.size(8, 500), d.size(8, 400)
    return (lambda x, w, scale: x @ (w.astype(jnp.int4).astype(x.dtype) * scale)), [
        [m, k], argument([k, n], np.int8), [n]]


def quantise(x, axis, top=127):
    scale = jnp.abs(x).max(axis, keepdims=True) / top + 1e-6
    return jnp.clip(jnp.round(x / scale), -top, top).astype(jnp.int8), scale


def dynamic(d):
    """Rows to bytes by their largest value, a product of bytes, and back"""
    m, k, n, zeros = tokens(d), d.size(8, 700), d.size(8, 500), d.likely(0.3)

    def run(x, w, scale, offset):
        q, s = quantise(x, -1)
        y = lax.dot(q, w, preferred_element_type=jnp.int32)
        if zeros:
            y = y - offset * q.astype(jnp.int32).sum(-1, keepdims=True)
        return (y.astype(x.dtype) * s * scale).astype(x.dtype)
    return run, [[m, k], argument([k, n], np.int8), [n], ([n], 9)]


def static(d):
    """Bytes in and out, two layers, with a rescaling in integers or floats between"""
    m, k, h, n, shift = tokens(d), d.size(8, 300), d.size(8, 300), d.size(8, 200), d.likely(0.5)
    dtype = d.choice(BYTES)

    def narrow(y):
        if shift:
            y = lax.shift_right_arithmetic(y + 64, jnp.int32(7))
        else:
            y = jnp.round(y.astype(jnp.float32) * 0.01).astype(jnp.int32)
        info = jnp.iinfo(dtype)
        return jnp.clip(y, info.min, info.max).astype(dtype)

    def run(x, w, b, v):
        y = narrow(nn.relu(lax.dot(x, w, preferred_element_type=jnp.int32) + b))
        return narrow(lax.dot(y, v, preferred_element_type=jnp.int32))
    return run, [argument([m, k], dtype), argument([k, h], np.int8), ([h], 99), argument([h, n], np.int8)]


def byte_images(d):
    b, n, c, f = d.size(1, 4), d.size(6, 30), d.choice([3, 8, 16]), d.size(4, 32)

    def run(x, w, scale):
        y = lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"),
                                     preferred_element_type=jnp.int32)
        y = nn.relu(y.astype(jnp.float32) * scale)
        return jnp.clip(jnp.round(y), -128, 127).astype(jnp.int8)
    return run, [argument([b, n, n, c], np.int8), argument([3, 3, c, f], np.int8), argument([f])]


def fake(d):
    """Rounded to few steps in the forward pass, straight through in the gradient"""
    m, k, n, axis, bits = d.size(4, 200), d.size(8, 200), d.size(8, 200), d.choice([0, 1, None]), d.choice([2, 4, 8])

    def rounded(x, axis):
        top = 2 ** (bits - 1) - 1
        scale = lax.stop_gradient(jnp.abs(x).max(axis, keepdims=True) / top + 1e-6)
        q = jnp.clip(x / scale, -top - 1, top)
        return (q + lax.stop_gradient(jnp.round(q) - q)) * scale
    return (lambda x, w, b: nn.gelu(rounded(x, -1) @ rounded(w, axis) + b)), [[m, k], [k, n], [n]]


def mixed(d):
    """Narrow in, wide sums, norms in f32, narrow out"""
    m, k, n, narrow = d.size(2, 200), d.size(8, 200), d.size(8, 200), d.choice([jnp.bfloat16, np.float16])

    def run(x, w, v, scale):
        y = lax.dot(x, w, preferred_element_type=jnp.float32)
        y = (y - y.mean(-1, keepdims=True)) * lax.rsqrt(y.var(-1, keepdims=True) + 1e-3) * scale
        z = lax.dot(nn.silu(y).astype(narrow), v, preferred_element_type=jnp.float32)
        return (x.astype(jnp.float32) + z / n).astype(narrow)
    return run, [argument([m, k], narrow), argument([k, n], narrow), argument([n, k], narrow), argument([n])]


def codebook(d):
    """Weights as numbers of vectors in a table, one or two tables added; or values by sixteen levels"""
    m, k, n, size, kind = tokens(d), 4 * d.size(2, 80), d.size(8, 300), d.choice([16, 64, 256]), d.choice(
        ["vectors", "sums", "levels"])

    def run(x, codes, table):
        if kind == "levels":
            return x @ table[:, 0][codes]
        w = table[codes]
        w = w.sum(1) if kind == "sums" else w
        return x @ w.reshape(n, k).T
    shape = {"levels": [k, n], "vectors": [n, k // 4], "sums": [n, 2, k // 4]}[kind]
    return run, [[m, k], (shape, size), [size, 4]]


def adapters(d):
    """Low-rank products beside a narrow weight; one for all rows, or each row its own of several"""
    m, k, n, r, many = d.size(1, 64), d.size(8, 300), d.size(8, 300), d.choice([2, 4, 8, 16]), d.likely(0.5)

    def run(x, w, scale, a, b, which):
        y = x @ (w.astype(x.dtype) * scale)
        if many:
            return y + jnp.einsum("mr,mrn->mn", jnp.einsum("mk,mkr->mr", x, a[which]), b[which])
        return y + (x @ a[0]) @ b[0] * 0.5
    return run, [[m, k], argument([k, n], np.int8), [n], [4, k, r], [4, r, n], ([m], 4)]


def byte_cache(d):
    """Attention over a cache kept in bytes, a scale a token and head"""
    b, h, n, e = d.size(1, 6), d.choice([1, 2, 4, 8]), d.size(8, 300), d.choice([8, 16, 32, 64])

    def run(q, keys, values, ks, vs, at):
        new, s = quantise(q, -1)
        keys = lax.dynamic_update_slice(keys, new[:, :, None], (0, 0, at, 0))
        ks = lax.dynamic_update_slice(ks, s, (0, 0, at))
        scores = jnp.einsum("bhe,bhne->bhn", q, keys.astype(q.dtype)) * ks * e ** -0.5
        p = nn.softmax(jnp.where(jnp.arange(n) <= at, scores, -1e9), -1)
        return jnp.einsum("bhn,bhne->bhe", p * vs, values.astype(q.dtype)), keys, ks
    cache = argument([b, h, n, e], np.int8)
    return run, [[b, h, e], cache, cache, [b, h, n], [b, h, n], ([], n)]


def packing(d):
    """Floats to nibbles with scales a block, and bits of signs"""
    rows, n, kind = d.size(2, 300), 16 * d.size(1, 60), d.choice(["nibbles", "signs", "fp8", "blocks"])

    def run(x):
        y = x.reshape(rows, n // 16, 16)
        scale = jnp.abs(y).max(-1, keepdims=True) + 1e-6
        if kind == "signs":
            return ((y > 0).astype(jnp.int32) << jnp.arange(16)).sum(-1).astype(jnp.uint16), scale[..., 0]
        if kind == "fp8":
            return (y / scale * 400).astype(jnp.float8_e4m3fn).reshape(rows, n), scale[..., 0]
        if kind == "blocks":
            return jnp.round(y / scale * 127).astype(jnp.int8).reshape(rows, n), scale[..., 0].astype(jnp.float16)
        q = jnp.clip(jnp.round(y / scale * 7) + 8, 0, 15).astype(jnp.uint8)
        return q[..., ::2] | (q[..., 1::2] << 4), scale[..., 0]
    return run, [[rows, n]]


KINDS = [weights_only] * 4 + [nibbles] * 3 + [int4, dynamic, dynamic, static, byte_images, codebook, codebook, adapters,
                                              byte_cache, packing, packing]


def quantised(d):
    types = [np.float32] * 3 + [jnp.bfloat16, jnp.bfloat16]
    return drawn_layer(d, [fake, mixed], types, 0.6) if d.likely(0.12) else drawn_layer(d, KINDS, types, 0)
