"""Parts of language models and recurrent networks: attention, blocks, decoding, training."""

import math

import jax
import jax.numpy as jnp
from jax import lax

from programs.program import Arg, BF16, F32, PRED, f32, ints, program, section
from programs.reductions import normalise, nll

section("models")


def attend(q, k, v, keep):
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) * (1.0 / math.sqrt(q.shape[-1]))
    weights = jax.nn.softmax(jnp.where(keep, scores, -1e9), axis=-1)
    return jnp.einsum("bhqk,bhkd->bhqd", weights, v)


@program(golden=dict(batch=2, heads=3, seq=40, dim=32),
         timing={"": dict(batch=4, heads=8, seq=512, dim=64), "_1k": dict(batch=1, heads=8, seq=1024, dim=64)})
def attention(batch, heads, seq, dim):
    def f(q, k, v):
        return attend(q, k, v, jnp.tril(jnp.ones((seq, seq), PRED)))
    return f, [f32(batch, heads, seq, dim)] * 3


@program(golden=dict(batch=1, heads=2, seq=37, dim=16),
         timing={"_128": dict(batch=8, heads=8, seq=128, dim=64), "_1k": dict(batch=1, heads=8, seq=1024, dim=64),
                 "_odd": dict(batch=1, heads=7, seq=509, dim=61)})
def attention_full(batch, heads, seq, dim):
    return (lambda q, k, v: attend(q, k, v, True)), [f32(batch, heads, seq, dim)] * 3


@program(golden=dict(batch=1, groups=2, share=3, seq=33, dim=16),
         timing=dict(batch=1, groups=2, share=4, seq=1024, dim=64), fixed=("groups", "share"))
def attention_grouped(batch, groups, share, seq, dim):
    # Several heads of queries share a head of keys and values; causal.
    def f(q, k, v):
        scores = jnp.einsum("bgsqd,bgkd->bgsqk", q, k) * (1.0 / math.sqrt(dim))
        keep = jnp.arange(seq)[:, None] >= jnp.arange(seq)[None, :]
        return jnp.einsum("bgsqk,bgkd->bgsqd", jax.nn.softmax(jnp.where(keep, scores, -1e9), axis=-1), v)
    return f, [f32(batch, groups, share, seq, dim), f32(batch, groups, seq, dim), f32(batch, groups, seq, dim)]


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


@program(golden=dict(steps=3, batch=1, length=14, heads=2, dim=8),
         timing=dict(steps=32, batch=2, length=256, heads=8, dim=64), donate=(1, 2), fixed=("heads", "length"))
def kv_cache_loop(steps, batch, length, heads, dim):
    # Tokens one after the other inside the program: the cache is the loop's state, and donated.
    wide = heads * dim

    def f(x, keys, values, wqkv, wo):
        split = lambda t: t.reshape(batch, heads, 1, dim)

        def token(step, state):
            x, keys, values = state
            position = length // 2 + step
            q, k, v = jnp.split(x @ wqkv, 3, axis=-1)
            keys = lax.dynamic_update_slice(keys, split(k), (0, 0, position, 0))
            values = lax.dynamic_update_slice(values, split(v), (0, 0, position, 0))
            a = attend(split(q), keys, values, jnp.arange(length) <= position)
            return jnp.tanh(0.5 * x + a.reshape(batch, wide) @ wo), keys, values
        return lax.fori_loop(0, steps, token, (x, keys, values))
    s = 1.0 / math.sqrt(wide)
    return f, [f32(batch, wide), f32(batch, heads, length, dim), f32(batch, heads, length, dim),
               f32(wide, 3 * wide, scale=s), f32(wide, wide, scale=s)]


@program(golden=dict(layers=1, batch=2, seq=9, dim=16, heads=2, words=29),
         timing=dict(layers=2, batch=4, seq=128, dim=256, heads=8, words=1000), fixed=("layers", "heads", "dim"), loose=4)
def transformer_train_step(layers, batch, seq, dim, heads, words):
    # Embedding, blocks, cross-entropy, and a step of gradient descent on all of it.
    layer, arguments = block(batch, seq, dim, heads, F32)
    weights = arguments[1:]

    def loss(params, ids):
        table, *blocks = params
        x = table[ids]
        for k in range(layers):
            x = layer(x, *blocks[k * len(weights):(k + 1) * len(weights)])
        logits = (x @ table.T)[:, :-1].reshape(-1, words)
        return nll(logits, ids[:, 1:].reshape(-1))

    def f(ids, *params):
        value, grads = jax.value_and_grad(loss)(params, ids)
        return (value, *[p - 0.01 * g for p, g in zip(params, grads)])
    return f, [ints(batch, seq, lo=0, hi=words), f32(words, dim, scale=0.1), *weights * layers]
