"""Elementwise programs: functions, integers, bits and conversions in every width."""

import math

import jax
import jax.numpy as jnp
from jax import lax

from programs.program import (
    Arg, BF16, F16, F32, F64, PRED, S16, S32, S64, S8, U32, U8, bf16, f32, ints, program, section)

section("elementwise")

PLANE = dict(golden=dict(rows=96, cols=200),
             timing={"": dict(rows=4096, cols=4096), "_64k": dict(rows=256, cols=256),
                     "_odd": dict(rows=1021, cols=1019)})
LLC = dict(golden=dict(rows=61, cols=130), timing=dict(rows=1024, cols=1024))


@program(**PLANE, tiled=True)
def gelu(rows, cols):
    def f(x):
        return 0.5 * x * (1.0 + lax.erf(x * math.sqrt(0.5)))
    return f, [f32(rows, cols, scale=2.0)]


@program(**LLC)
def gelu_erfc(rows, cols):
    # JAX's own exact gelu: erfc spelled out as two polynomials and an exponential.
    return (lambda x: jax.nn.gelu(x, approximate=False)), [f32(rows, cols, scale=2.0)]


@program(**PLANE, tiled=True)
def gelu_tanh(rows, cols):
    return (lambda x: jax.nn.gelu(x, approximate=True)), [f32(rows, cols, scale=2.0)]


@program(**PLANE, tiled=True)
def axpy(rows, cols):
    return (lambda a, x, y: a * x + y), [f32(), f32(rows, cols), f32(rows, cols)]


@program(golden=dict(rows=50, cols=130), timing=dict(rows=2048, cols=2048), tiled=True)
def adam(rows, cols):
    def f(step, p, m, v, g):
        b1, b2, rate, eps = 0.9, 0.999, 1e-3, 1e-8
        m = b1 * m + (1 - b1) * g
        v = b2 * v + (1 - b2) * g * g
        t = step.astype(F32) + 1.0
        p = p - rate * (m / (1 - b1**t)) / (jnp.sqrt(v / (1 - b2**t)) + eps)
        return p, m, v
    return f, [ints(lo=1, hi=100), f32(rows, cols), f32(rows, cols, scale=0.1),
               Arg((rows, cols), F32, "uniform", 0.0, 0.1), f32(rows, cols)]


@program(**PLANE, tiled=True)
def swish_bf16(rows, cols):
    return (lambda x: x * jax.nn.sigmoid(x)), [bf16(rows, cols, scale=3.0)]


@program(**LLC, tiled=True)
def fma_bf16(rows, cols):
    return (lambda x, y, z: x * y + z), [bf16(rows, cols), bf16(rows, cols), bf16(rows, cols)]


@program(golden=dict(n=5003), timing=dict(n=4_000_000))
def black_scholes(n):
    def f(spot, strike, years):
        rate, vol = 0.02, 0.3
        root = vol * jnp.sqrt(years)
        d1 = (jnp.log(spot / strike) + (rate + 0.5 * vol * vol) * years) / root
        d2 = d1 - root
        cdf = lambda x: 0.5 * (1.0 + lax.erf(x * math.sqrt(0.5)))
        later = strike * jnp.exp(-rate * years)
        call = spot * cdf(d1) - later * cdf(d2)
        return call, call - spot + later
    money = dict(kind="uniform", lo=5.0, hi=100.0)
    return f, [f32(n, **money), f32(n, **money), f32(n, kind="uniform", lo=0.1, hi=3.0)]


@program(**LLC)
def elementwise_f16(rows, cols):
    return (lambda x, y: jnp.tanh(x * y + 1) - jnp.exp(-jnp.abs(x))), [
        Arg((rows, cols), F16), Arg((rows, cols), F16)]


@program(**LLC, x64=True)
def elementwise_f64(rows, cols):
    def f(x, y):
        return jnp.sin(x) * jnp.exp(y) + jnp.log1p(jnp.abs(x)) / (1 + y * y)
    return f, [Arg((rows, cols), F64), Arg((rows, cols), F64)]


@program(**LLC)
def trigonometry(rows, cols):
    return (lambda x, y: (jnp.sin(x) * jnp.cos(y), jnp.tan(x * 0.1), jnp.arctan2(x, y))), [
        f32(rows, cols, scale=10.0), f32(rows, cols, scale=10.0)]


@program(**LLC)
def powers(rows, cols):
    def f(x, y):
        return jnp.power(x, y), jnp.cbrt(y), lax.rsqrt(x), jnp.expm1(y * 1e-2), jnp.log1p(x * 1e-2)
    return f, [f32(rows, cols, kind="uniform", lo=0.1, hi=8.0), f32(rows, cols, scale=2.0)]


@program(**LLC)
def rounding(rows, cols):
    def f(x):
        return (jnp.floor(x), jnp.ceil(x), jnp.round(x), lax.round(x), jnp.sign(x),
                lax.rem(x, jnp.full_like(x, 1.5)), jnp.clip(x, -1.0, 2.0), jnp.isfinite(1 / jnp.floor(x)))
    return f, [f32(rows, cols, scale=4.0)]


@program(**LLC)
def integers_s32(rows, cols):
    def f(x, y):
        q = lax.div(x, y | 1)
        r = lax.rem(x, y | 1)
        s = (x << 3) ^ lax.shift_right_arithmetic(y, jnp.int32(2))
        t = lax.shift_right_logical(x, jnp.int32(5)) + lax.population_count(y) - lax.clz(x)
        return q * 7 + r, jnp.maximum(s, t) - jnp.minimum(jnp.abs(x), ~y)
    return f, [ints(rows, cols, lo=-2**31, hi=2**31), ints(rows, cols, lo=-2**31, hi=2**31)]


@program(**LLC)
def integers_u32(rows, cols):
    def f(x, y):
        h = (x ^ (y >> 15)) * jnp.uint32(0x85EBCA6B)
        h = (h ^ (h >> 13)) * jnp.uint32(0xC2B2AE35)
        return h ^ (h >> 16), x // (y | jnp.uint32(1)), (h > y).astype(U32) + x % jnp.uint32(97)
    return f, [ints(rows, cols, dtype=U32, lo=0, hi=2**32), ints(rows, cols, dtype=U32, lo=0, hi=2**32)]


@program(**LLC, x64=True)
def integers_s64(rows, cols):
    def f(x, y):
        return (x * 6364136223846793005 + y, lax.div(x, y | 1), lax.rem(x, y | 1),
                jnp.where(x > y, x >> 7, y << 3))
    return f, [ints(rows, cols, dtype=S64, lo=-2**62, hi=2**62),
               ints(rows, cols, dtype=S64, lo=-2**40, hi=2**40)]


@program(**LLC)
def quantise_s8(rows, cols):
    # By the inverse: XLA:CPU's own division is an ulp off at times, which rounding turns into a step.
    def f(x, scale, inverse):
        q = jnp.clip(jnp.round(x * inverse), -127, 127).astype(S8)
        return q, q.astype(F32) * scale, (q + q) * q
    return f, [f32(rows, cols), f32(rows, 1, kind="uniform", lo=0.005, hi=0.02),
               f32(rows, 1, kind="uniform", lo=50.0, hi=200.0)]


@program(**LLC)
def conversions(rows, cols):
    def f(x, k):
        return (x.astype(BF16), x.astype(F16), x.astype(S32), (x > 0), k.astype(F32),
                k.astype(S8), k.astype(U32).astype(F32), x.astype(BF16).astype(F32) + k.astype(F16))
    return f, [f32(rows, cols, scale=100.0), ints(rows, cols)]


@program(**LLC)
def float_bits(rows, cols):
    def f(x):
        bits = lax.bitcast_convert_type(x, U32)
        exponent = ((bits >> 23) & jnp.uint32(0xFF)).astype(S32) - 127
        mantissa = lax.bitcast_convert_type((bits & jnp.uint32(0x7FFFFF)) | jnp.uint32(0x3F800000), F32)
        return exponent, mantissa, lax.bitcast_convert_type(x.astype(BF16), jnp.uint16)
    return f, [f32(rows, cols, scale=50.0)]


@program(**LLC)
def predicates(rows, cols):
    def f(x, y, p):
        inside = (x > -0.5) & (y <= 0.5) | ~p
        return (inside, jnp.where(inside ^ (x == y), x, -y), jnp.any(x > 2.5, axis=1),
                jnp.all(y > -2.2, axis=0))
    return f, [f32(rows, cols), f32(rows, cols), Arg((rows, cols), PRED, "fair")]


@program(golden=dict(batch=2, seq=33, heads=4, dim=32), timing=dict(batch=4, seq=1024, heads=8, dim=64))
def rotary(batch, seq, heads, dim):
    dim -= dim % 2

    # Frequencies are given: an ulp of their power would be multiplied by the position.
    def f(x, frequencies):
        angle = jnp.arange(seq, dtype=F32)[:, None] * frequencies[None, :]
        cos, sin = jnp.cos(angle)[None, :, None, :], jnp.sin(angle)[None, :, None, :]
        a, b = x[..., : dim // 2], x[..., dim // 2:]
        return jnp.concatenate([a * cos - b * sin, a * sin + b * cos], axis=-1)
    return f, [f32(batch, seq, heads, dim), f32(dim // 2, kind="uniform", lo=1e-4, hi=1.0)]


@program(golden=dict(batch=3, seq=50), timing=dict(batch=16, seq=1024))
def causal_mask(batch, seq):
    def f(scores, lengths):
        row, col = jnp.arange(seq)[:, None], jnp.arange(seq)[None, :]
        keep = (col <= row)[None] & (col[None] < lengths[:, None, None])
        return jnp.where(keep, scores, -1e9)
    return f, [f32(batch, seq, seq), ints(batch, lo=1, hi=seq)]


@program(**LLC, x64=True)
def conversions_narrow(rows, cols):
    # Between the types that no vector unit converts directly. Doubles stay within what s8 holds.
    def f(h, b, k, d):
        return (h.astype(S8), h.astype(S64), b.astype(F16), b.astype(F32).astype(F16), k.astype(F16), k.astype(F64),
                d.astype(F16), d.astype(S8), (k >> 20).astype(U8))
    return f, [Arg((rows, cols), F16, scale=30.0), ints(rows, cols, dtype=S8, lo=-128, hi=128),
               ints(rows, cols, dtype=S64, lo=-2**40, hi=2**40), Arg((rows, cols), F64, "uniform", -100.0, 100.0)]


@program(**LLC)
def arithmetic_f16(rows, cols):
    def f(x, y):
        return x * y + y, x / (jnp.abs(y) + 1), jnp.sqrt(jnp.abs(x)), jnp.maximum(x, y) - jnp.minimum(x, -y), x < y
    return f, [Arg((rows, cols), F16), Arg((rows, cols), F16)]


@program(**LLC)
def arithmetic_s8(rows, cols):
    # Sums that wrap, that saturate through s16, shifts, and the mean that rounds up.
    def f(x, y):
        wide = x.astype(S16) + y.astype(S16)
        return (x * 3 + y, jnp.clip(wide, -128, 127).astype(S8), ((wide + 1) >> 1).astype(S8),
                jnp.maximum(x, y) ^ (x >> 2), lax.shift_right_logical(x, jnp.int8(3)) & ~y)
    return f, [ints(rows, cols, dtype=S8, lo=-128, hi=128), ints(rows, cols, dtype=S8, lo=-128, hi=128)]


@program(golden=dict(count=100, n=7), timing=dict(count=100, n=64), fixed=("count",))
def arguments_100(count, n):
    # A call of a hundred arguments: what it costs to hand them over.
    return (lambda *xs: sum(x * (k + 1) for k, x in enumerate(xs))), [f32(n)] * count


@program(golden=dict(count=20, n=9), timing=dict(count=100, n=1000), fixed=("count",))
def adds_100(count, n):
    # As many results: separate little kernels in one call.
    return (lambda x: tuple(jnp.roll(x, k) + k for k in range(count))), [f32(n)]
