"""Reductions and scans, alone and inside the normalisations and losses that models use."""

import jax
import jax.numpy as jnp
from jax import lax

from programs.program import Arg, F32, F64, bf16, f32, ints, program, section

section("reductions")

WIDE = dict(golden=dict(rows=67, cols=150),
            timing={"": dict(rows=4096, cols=4096), "_odd": dict(rows=1021, cols=1019)})
MATRIX = dict(golden=dict(rows=43, cols=200), timing=dict(rows=1024, cols=1024))
TOKENS = dict(golden=dict(rows=48, dim=192), timing=dict(rows=2048, dim=1024))
TOKENS_ODD = dict(golden=dict(rows=48, dim=192),
                  timing={"": dict(rows=2048, dim=1024), "_odd": dict(rows=2039, dim=1021)})


@program(**WIDE, loose=4)  # sixteen million terms cancel to a 3000th of their absolute sum
def sum_all(rows, cols):
    return (lambda x: jnp.sum(x)), [f32(rows, cols)]


@program(**WIDE, tiled=True)
def sum_rows(rows, cols):
    return (lambda x: jnp.sum(x, axis=1)), [f32(rows, cols)]


@program(**WIDE, tiled=True)
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
         timing={"": dict(rows=1024, cols=1024), "_16m": dict(rows=4096, cols=4096),
                 "_odd": dict(rows=1021, cols=1019)}, tiled=True)
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


@program(**TOKENS_ODD, tiled=True)
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


@program(golden=dict(rows=21, cols=150), timing={"": dict(rows=1024, cols=1024), "_odd": dict(rows=1021, cols=1019)})
def cumsum(rows, cols):
    return (lambda x: jnp.cumsum(x, axis=1)), [f32(rows, cols)]


@program(golden=dict(n=1001), timing=dict(n=1_000_000))
def cumulative_max(n):
    return (lambda x: (lax.cummax(x), lax.cummin(x, reverse=True))), [f32(n)]
