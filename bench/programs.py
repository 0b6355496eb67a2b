"""The programs that hlojit is tested and timed on, written in JAX.

A program is a function of some named sizes: it returns the JAX function and a description of its
arguments. `golden` sizes are small and odd on purpose (what is not a multiple of a vector, of a tile
or of a block is where compilers break); `timing` sizes are what the scoreboard measures, one HLO file
per suffix. generate.py turns both into HLO text. The scoreboard also draws timing sizes at random,
except those a program declares `fixed`, so no size may be tuned for.
"""

import dataclasses
import math
from typing import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

BF16 = jnp.bfloat16
F16 = jnp.float16
F32 = jnp.float32
F64 = jnp.float64
S8 = jnp.int8
S32 = jnp.int32
S64 = jnp.int64
U32 = jnp.uint32
PRED = jnp.bool_


@dataclasses.dataclass(frozen=True)
class Arg:
    """One argument: how to draw it. `kind` is normal, uniform (in [lo, hi)), int (in [lo, hi)) or fair."""

    shape: tuple
    dtype: object = F32
    kind: str = "normal"
    lo: float = 0.0
    hi: float = 1.0
    scale: float = 1.0
    # Rounded to bf16 values: keeps the big weights of a golden program small in a packed repository.
    coarse: bool = False


@dataclasses.dataclass(frozen=True)
class Program:
    name: str
    build: Callable
    golden: dict
    timing: dict
    donate: tuple = ()
    x64: bool = False
    tiled: bool = False
    fixed: tuple = ()  # sizes that a random draw leaves alone
    # Tolerances grow by this at timing sizes: for sums of so many terms that XLA's own error shows.
    loose: float = 1.0
    group: str = ""


PROGRAMS: dict[str, Program] = {}
_group = ""


def section(name):
    """The programs that follow belong to this group, for which the scoreboard prints a mean."""
    global _group
    _group = name


def program(golden, timing, **options):
    """Registers build(**sizes) -> (function, [Arg, ...]) under its own name."""

    def register(build):
        name = build.__name__
        cases = timing if all(isinstance(v, dict) for v in timing.values()) else {"": timing}
        PROGRAMS[name] = Program(name, build, golden, cases, group=_group, **options)
        return build

    return register


def f32(*shape, **options):
    return Arg(shape, F32, **options)


def bf16(*shape, **options):
    return Arg(shape, BF16, **options)


def ints(*shape, dtype=S32, lo=-1000, hi=1000):
    return Arg(shape, dtype, "int", lo, hi)


section("elementwise")

PLANE = dict(golden=dict(rows=96, cols=200),
             timing={"": dict(rows=4096, cols=4096), "_64k": dict(rows=256, cols=256)})
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


section("data movement")


@program(golden=dict(rows=131, cols=77), timing={"": dict(rows=2048, cols=2048), "_4k": dict(rows=4096, cols=4096)},
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


@program(golden=dict(rows=67, cols=90), timing=dict(rows=2048, cols=2048), tiled=True)
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


section("reductions")

WIDE = dict(golden=dict(rows=67, cols=150), timing=dict(rows=4096, cols=4096))
MATRIX = dict(golden=dict(rows=43, cols=200), timing=dict(rows=1024, cols=1024))
TOKENS = dict(golden=dict(rows=48, dim=192), timing=dict(rows=2048, dim=1024))


@program(**WIDE, loose=4)  # sixteen million terms cancel to a 3000th of their absolute sum
def sum_all(rows, cols):
    return (lambda x: jnp.sum(x)), [f32(rows, cols)]


@program(**WIDE)
def sum_rows(rows, cols):
    return (lambda x: jnp.sum(x, axis=1)), [f32(rows, cols)]


@program(**WIDE)
def sum_columns(rows, cols):
    return (lambda x: jnp.sum(x, axis=0)), [f32(rows, cols)]


@program(golden=dict(a=9, b=40, c=30), timing=dict(a=64, b=512, c=128))
def sum_middle(a, b, c):
    return (lambda x: (jnp.sum(x, axis=1), jnp.max(x, axis=(0, 2)))), [f32(a, b, c)]


@program(**MATRIX, x64=True)
def sum_f64(rows, cols):
    return (lambda x: (jnp.sum(x, axis=1), jnp.prod(1 + 1e-3 * x, axis=0))), [Arg((rows, cols), F64)]


@program(**MATRIX)
def sum_s32(rows, cols):
    return (lambda x: (jnp.sum(x), jnp.min(x, axis=0), jnp.max(x, axis=1))), [ints(rows, cols)]


@program(golden=dict(rows=31, cols=150), timing=dict(rows=1024, cols=4096))
def argmax(rows, cols):
    return (lambda x: (jnp.argmax(x, axis=1), jnp.argmin(x, axis=0))), [f32(rows, cols)]


@program(**TOKENS)
def variance(rows, dim):
    return (lambda x: (jnp.mean(x, axis=1), jnp.var(x, axis=1))), [f32(rows, dim)]


@program(**MATRIX)
def logsumexp(rows, cols):
    return (lambda x: jax.scipy.special.logsumexp(x, axis=1)), [f32(rows, cols, scale=3.0)]


@program(golden=dict(rows=43, cols=200),
         timing={"": dict(rows=1024, cols=1024), "_16m": dict(rows=4096, cols=4096)}, tiled=True)
def softmax(rows, cols):
    return (lambda x: jax.nn.softmax(x, axis=-1)), [f32(rows, cols, scale=3.0)]


@program(**MATRIX, tiled=True)
def softmax_bf16(rows, cols):
    return (lambda x: jax.nn.softmax(x, axis=-1)), [bf16(rows, cols, scale=3.0)]


@program(**MATRIX)
def softmax_columns(rows, cols):
    return (lambda x: jax.nn.softmax(x, axis=0)), [f32(rows, cols, scale=3.0)]


def normalise(x, gain, bias):
    mean = jnp.mean(x, axis=-1, keepdims=True)
    centred = x - mean
    scale = lax.rsqrt(jnp.mean(centred * centred, axis=-1, keepdims=True) + 1e-5)
    return centred * scale * gain + bias


@program(**TOKENS, tiled=True)
def layernorm(rows, dim):
    return normalise, [f32(rows, dim), f32(dim), f32(dim)]


@program(**TOKENS)
def layernorm_grad(rows, dim):
    def f(x, gain, bias, out):
        return jax.vjp(normalise, x, gain, bias)[1](out)
    return f, [f32(rows, dim), f32(dim), f32(dim), f32(rows, dim)]


def rms(x, gain):
    scale = lax.rsqrt(jnp.mean(jnp.square(x.astype(F32)), axis=-1, keepdims=True) + 1e-6)
    return (x.astype(F32) * scale).astype(x.dtype) * gain


@program(**TOKENS)
def rmsnorm(rows, dim):
    return rms, [f32(rows, dim), f32(dim)]


@program(**TOKENS, tiled=True)
def rmsnorm_bf16(rows, dim):
    return rms, [bf16(rows, dim), bf16(dim)]


def nll(logits, labels):
    hit = labels[:, None] == jnp.arange(logits.shape[1])[None, :]
    shifted = logits - lax.stop_gradient(jnp.max(logits, axis=1, keepdims=True))
    lse = jnp.log(jnp.sum(jnp.exp(shifted), axis=1))
    return jnp.mean(lse - jnp.sum(jnp.where(hit, shifted, 0.0), axis=1))


VOCAB = dict(golden=dict(rows=24, vocab=500), timing=dict(rows=512, vocab=32000))


@program(**VOCAB)
def cross_entropy(rows, vocab):
    return nll, [f32(rows, vocab, scale=3.0), ints(rows, lo=0, hi=vocab)]


@program(**VOCAB)
def cross_entropy_grad(rows, vocab):
    return jax.value_and_grad(nll), [f32(rows, vocab, scale=3.0), ints(rows, lo=0, hi=vocab)]


section("contractions")


@program(golden=dict(m=97, k=130, n=161),
         timing={f"_{s}": dict(m=s, k=s, n=s) for s in (256, 512, 1024, 2048)},
         tiled=True, loose=2)
def gemm(m, k, n):
    return (lambda a, b: a @ b), [f32(m, k), f32(k, n)]


@program(golden=dict(m=50, k=66, n=81), timing=dict(m=1024, k=1024, n=1024))
def gemm_transposed(m, k, n):
    return (lambda a, b, c: (a.T @ b, b.T @ c.T)), [f32(k, m), f32(k, n), f32(m, k)]


@program(golden=dict(m=50, k=130, n=100), timing=dict(m=512, k=512, n=2048))
def dense_gelu(m, k, n):
    return (lambda x, w, b: jax.nn.gelu(x @ w + b)), [f32(m, k), f32(k, n, scale=0.1), f32(n)]


@program(golden=dict(m=97, k=130), timing=dict(m=4096, k=4096))
def gemv(m, k):
    return (lambda a, x: a @ x), [f32(m, k), f32(k)]


@program(golden=dict(m=97, k=130), timing=dict(m=4096, k=4096), loose=2)
def gemv_transposed(m, k):
    return (lambda a, x: x @ a), [f32(m, k), f32(m)]


@program(golden=dict(batch=5, m=33, k=40, n=50), timing=dict(batch=32, m=256, k=64, n=256))
def batched_matmul(batch, m, k, n):
    return (lambda a, b: jnp.einsum("bmk,bkn->bmn", a, b)), [f32(batch, m, k), f32(batch, k, n)]


@program(golden=dict(m=65, k=96, n=130), timing=dict(m=1024, k=1024, n=1024), tiled=True)
def gemm_bf16(m, k, n):
    return (lambda a, b: a @ b), [bf16(m, k), bf16(k, n)]


@program(golden=dict(m=65, k=96, n=130), timing=dict(m=512, k=512, n=512))
def gemm_f16(m, k, n):
    return (lambda a, b: jnp.dot(a, b, preferred_element_type=F32)), [Arg((m, k), F16), Arg((k, n), F16)]


@program(golden=dict(m=65, k=96, n=70), timing=dict(m=512, k=512, n=512), x64=True)
def gemm_f64(m, k, n):
    return (lambda a, b: a @ b), [Arg((m, k), F64), Arg((k, n), F64)]


@program(golden=dict(m=65, k=96, n=130), timing=dict(m=1024, k=1024, n=1024))
def gemm_s8(m, k, n):
    return (lambda a, b: jnp.dot(a, b, preferred_element_type=S32)), [
        ints(m, k, dtype=S8, lo=-128, hi=128), ints(k, n, dtype=S8, lo=-128, hi=128)]


section("convolutions")

NHWC, NCHW = ("NHWC", "HWIO", "NHWC"), ("NCHW", "OIHW", "NCHW")


def image(batch, size, features, labels=NHWC):
    return f32(batch, size, size, features) if labels is NHWC else f32(batch, features, size, size)


def kernel(side, inputs, outputs, labels=NHWC):
    scale = 1 / math.sqrt(side * side * inputs)
    sizes = (side, side, inputs, outputs) if labels is NHWC else (outputs, inputs, side, side)
    return Arg(sizes, F32, scale=scale)


def convolve(labels=NHWC, strides=(1, 1), padding="SAME", **options):
    return lambda x, w: lax.conv_general_dilated(x, w, strides, padding, dimension_numbers=labels, **options)


@program(golden=dict(batch=2, size=9, inputs=24, outputs=40),
         timing=dict(batch=8, size=28, inputs=256, outputs=256))
def conv_1x1(batch, size, inputs, outputs):
    return convolve(), [image(batch, size, inputs), kernel(1, inputs, outputs)]


@program(golden=dict(batch=2, size=9, inputs=24, outputs=40),
         timing={"": dict(batch=8, size=28, inputs=128, outputs=128),
                 "_56": dict(batch=4, size=56, inputs=64, outputs=64)})
def conv_3x3(batch, size, inputs, outputs):
    return convolve(), [image(batch, size, inputs), kernel(3, inputs, outputs)]


@program(golden=dict(batch=2, size=9, inputs=24, outputs=40),
         timing=dict(batch=8, size=28, inputs=128, outputs=128))
def conv_3x3_nchw(batch, size, inputs, outputs):
    return convolve(NCHW), [image(batch, size, inputs, NCHW), kernel(3, inputs, outputs, NCHW)]


@program(golden=dict(batch=2, size=9, inputs=24, outputs=40),
         timing=dict(batch=4, size=56, inputs=64, outputs=64))
def conv_bias_relu(batch, size, inputs, outputs):
    def f(x, w, b):
        return jax.nn.relu(convolve()(x, w) + b)
    return f, [image(batch, size, inputs), kernel(3, inputs, outputs), f32(outputs)]


@program(golden=dict(batch=2, size=11, inputs=24, outputs=40),
         timing=dict(batch=8, size=56, inputs=64, outputs=128))
def conv_strided(batch, size, inputs, outputs):
    return convolve(strides=(2, 2)), [image(batch, size, inputs), kernel(3, inputs, outputs)]


@program(golden=dict(batch=1, size=29, outputs=24), timing=dict(batch=4, size=224, outputs=64))
def conv_stem(batch, size, outputs):
    return convolve(strides=(2, 2), padding=((3, 3), (3, 3))), [image(batch, size, 3), kernel(7, 3, outputs)]


@program(golden=dict(batch=2, size=11, features=24), timing=dict(batch=8, size=56, features=128))
def conv_depthwise(batch, size, features):
    return convolve(feature_group_count=features), [image(batch, size, features), kernel(3, 1, features)]


@program(golden=dict(batch=2, size=7, inputs=24, outputs=20), timing=dict(batch=8, size=28, inputs=128, outputs=64))
def conv_transposed(batch, size, inputs, outputs):
    def f(x, w):
        return lax.conv_transpose(x, w, (2, 2), "SAME", dimension_numbers=NHWC)
    return f, [image(batch, size, inputs), kernel(4, inputs, outputs)]


@program(golden=dict(batch=2, size=13, features=24), timing=dict(batch=8, size=28, features=128))
def conv_dilated(batch, size, features):
    return convolve(rhs_dilation=(2, 2)), [image(batch, size, features), kernel(3, features, features)]


@program(golden=dict(batch=2, size=11, features=32, groups=4), timing=dict(batch=8, size=28, features=256, groups=8))
def conv_grouped(batch, size, features, groups):
    return convolve(feature_group_count=groups), [
        image(batch, size, features), kernel(3, features // groups, features)]


@program(golden=dict(batch=2, length=50, features=24), timing=dict(batch=8, length=2048, features=128))
def conv_1d(batch, length, features):
    labels = ("NWC", "WIO", "NWC")
    return convolve(labels, strides=(1,)), [f32(batch, length, features), f32(5, features, features, scale=0.1)]


@program(golden=dict(batch=1, size=6, features=12), timing=dict(batch=2, size=24, features=32))
def conv_3d(batch, size, features):
    labels = ("NDHWC", "DHWIO", "NDHWC")
    return convolve(labels, strides=(1, 1, 1)), [
        f32(batch, size, size, size, features), f32(3, 3, 3, features, features, scale=0.1)]


@program(golden=dict(batch=2, size=9, inputs=24, outputs=40),
         timing=dict(batch=4, size=28, inputs=128, outputs=128))
def conv_bf16(batch, size, inputs, outputs):
    return convolve(), [bf16(batch, size, size, inputs), bf16(3, 3, inputs, outputs, scale=0.05)]


@program(golden=dict(batch=2, size=9, inputs=12, outputs=16),
         timing=dict(batch=4, size=28, inputs=64, outputs=64))
def conv_grad(batch, size, inputs, outputs):
    def f(x, w, out):
        return jax.vjp(convolve(), x, w)[1](out)
    return f, [image(batch, size, inputs), kernel(3, inputs, outputs), image(batch, size, outputs)]


def max_pool(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")


POOL = dict(golden=dict(batch=2, size=13, features=24), timing=dict(batch=8, size=112, features=64))


@program(**POOL)
def pool_max(batch, size, features):
    return max_pool, [image(batch, size, features)]


@program(**POOL)
def pool_average(batch, size, features):
    return (lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 3, 3, 1), (1, 1, 1, 1), "SAME") / 9), [
        image(batch, size, features)]


@program(golden=POOL["golden"], timing=dict(batch=8, size=56, features=64))
def pool_max_grad(batch, size, features):
    def f(x, out):
        return jax.vjp(max_pool, x)[1](out)[0]
    return f, [image(batch, size, features), image(batch, (size + 1) // 2, features)]


section("models")


def attend(q, k, v, keep):
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) * (1.0 / math.sqrt(q.shape[-1]))
    weights = jax.nn.softmax(jnp.where(keep, scores, -1e9), axis=-1)
    return jnp.einsum("bhqk,bhkd->bhqd", weights, v)


@program(golden=dict(batch=2, heads=3, seq=40, dim=32), timing=dict(batch=4, heads=8, seq=512, dim=64))
def attention(batch, heads, seq, dim):
    def f(q, k, v):
        return attend(q, k, v, jnp.tril(jnp.ones((seq, seq), PRED)))
    return f, [f32(batch, heads, seq, dim)] * 3


def block(batch, seq, dim, heads, dtype):
    head = dim // heads
    dim = head * heads

    def f(x, g1, b1, wqkv, wo, g2, b2, w1, c1, w2, c2):
        h = normalise(x, g1, b1)
        q, k, v = jnp.split(h @ wqkv, 3, axis=-1)
        split = lambda t: t.reshape(batch, seq, heads, head).transpose(0, 2, 1, 3)
        keep = jnp.arange(seq)[:, None] >= jnp.arange(seq)[None, :]
        a = attend(split(q), split(k), split(v), keep)
        x = x + a.transpose(0, 2, 1, 3).reshape(batch, seq, dim) @ wo
        h = jax.nn.gelu(normalise(x, g2, b2) @ w1 + c1)
        return x + h @ w2 + c2

    def arg(*shape, **options):
        return Arg(shape, dtype, coarse=True, **options)
    near = dict(kind="uniform", lo=0.8, hi=1.2)
    s = 1.0 / math.sqrt(dim)
    return f, [arg(batch, seq, dim), arg(dim, **near), arg(dim, scale=0.1), arg(dim, 3 * dim, scale=s),
               arg(dim, dim, scale=s), arg(dim, **near), arg(dim, scale=0.1), arg(dim, 4 * dim, scale=s),
               arg(4 * dim, scale=0.1), arg(4 * dim, dim, scale=0.5 * s), arg(dim, scale=0.1)]


@program(golden=dict(batch=2, seq=128, dim=256, heads=4),
         timing={"": dict(batch=4, seq=256, dim=512, heads=8), "_demo": dict(batch=2, seq=128, dim=256, heads=4)},
         fixed=("heads",), loose=2)
def transformer_block(batch, seq, dim, heads):
    return block(batch, seq, dim, heads, F32)


@program(golden=dict(batch=2, seq=24, dim=64, heads=4), timing=dict(batch=4, seq=256, dim=512, heads=8),
         fixed=("heads",), loose=2)
def transformer_block_bf16(batch, seq, dim, heads):
    return block(batch, seq, dim, heads, BF16)


@program(golden=dict(batch=2, length=24, heads=4, dim=16), timing=dict(batch=4, length=512, heads=8, dim=64),
         donate=(1, 2), fixed=("heads",))
def decode_step(batch, length, heads, dim):
    wide = heads * dim

    def f(x, keys, values, position, wqkv, wo):
        q, k, v = jnp.split(x @ wqkv, 3, axis=-1)
        split = lambda t: t.reshape(batch, heads, 1, dim)
        keys = lax.dynamic_update_slice(keys, split(k), (0, 0, position, 0))
        values = lax.dynamic_update_slice(values, split(v), (0, 0, position, 0))
        keep = jnp.arange(length) <= position
        a = attend(split(q), keys, values, keep)
        return x + a.reshape(batch, wide) @ wo, keys, values
    s = 1.0 / math.sqrt(wide)
    return f, [f32(batch, wide), f32(batch, heads, length, dim), f32(batch, heads, length, dim),
               ints(lo=length // 2, hi=length), f32(wide, 3 * wide, scale=s), f32(wide, wide, scale=s)]


@program(golden=dict(batch=16, inputs=48, hidden=64, classes=10),
         timing=dict(batch=128, inputs=784, hidden=512, classes=10))
def mlp_train_step(batch, inputs, hidden, classes):
    def loss(params, x, labels):
        w1, b1, w2, b2, w3, b3 = params
        h = jnp.maximum(x @ w1 + b1, 0)
        h = jnp.tanh(h @ w2 + b2)
        return nll(h @ w3 + b3, labels)

    def f(w1, b1, w2, b2, w3, b3, x, labels):
        params = (w1, b1, w2, b2, w3, b3)
        value, grads = jax.value_and_grad(loss)(params, x, labels)
        return (value, *[p - 0.1 * g for p, g in zip(params, grads)])
    weights = lambda a, b: f32(a, b, scale=1 / math.sqrt(a))
    small = lambda a: f32(a, scale=0.1)
    return f, [weights(inputs, hidden), small(hidden), weights(hidden, hidden), small(hidden),
               weights(hidden, classes), small(classes), f32(batch, inputs), ints(batch, lo=0, hi=classes)]


@program(golden=dict(steps=12, batch=4, inputs=20, hidden=32),
         timing=dict(steps=128, batch=16, inputs=128, hidden=128))
def lstm(steps, batch, inputs, hidden):
    def f(xs, wx, wh, b):
        def cell(state, x):
            h, c = state
            i, g, o, u = jnp.split(x @ wx + h @ wh + b, 4, axis=-1)
            c = jax.nn.sigmoid(g + 1.0) * c + jax.nn.sigmoid(i) * jnp.tanh(u)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h
        zero = jnp.zeros((batch, hidden), F32)
        (h, c), ys = lax.scan(cell, (zero, zero), xs)
        return ys, h, c
    s = 1 / math.sqrt(hidden)
    return f, [f32(steps, batch, inputs), f32(inputs, 4 * hidden, scale=s), f32(hidden, 4 * hidden, scale=s),
               f32(4 * hidden)]


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


section("random numbers")


@program(golden=dict(n=5001), timing=dict(n=1_000_000))
def uniform(n):
    return (lambda key: jax.random.uniform(jax.random.wrap_key_data(key), (n,))), [
        ints(2, dtype=U32, lo=0, hi=2**32)]


@program(golden=dict(rows=40, cols=100), timing=dict(rows=1024, cols=1024))
def dropout(rows, cols):
    def f(key, x):
        keep = jax.random.bernoulli(jax.random.wrap_key_data(key), 0.9, x.shape)
        return jnp.where(keep, x / 0.9, 0.0)
    return f, [ints(2, dtype=U32, lo=0, hi=2**32), f32(rows, cols)]


@program(golden=dict(n=5001), timing=dict(n=1_000_000))
def normal(n):
    return (lambda key: jax.random.normal(jax.random.wrap_key_data(key), (n,))), [
        ints(2, dtype=U32, lo=0, hi=2**32)]


@program(golden=dict(n=3000), timing=dict(n=1_000_000), x64=True)
def rng_bits(n):
    def f(state):
        return lax.rng_bit_generator(state, (n,), dtype=U32, algorithm=lax.RandomAlgorithm.RNG_THREE_FRY)
    return f, [ints(2, dtype=jnp.uint64, lo=0, hi=2**63)]
