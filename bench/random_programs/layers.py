"""Layers, losses and optimisers of neural networks, and their gradients."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, nn

from random_programs.draw import drawn_layer


def convolution(x, w, stride=1):
    return lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def pooled(x):
    return lax.reduce_window(x, np.array(-np.inf, x.dtype)[()], lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def conv_net(d):
    b, n, c, f, g = d.size(1, 8), d.size(8, 32), d.choice([1, 3, 8]), d.size(4, 32), d.size(4, 32)
    stride, act = d.randint(1, 2), d.choice([nn.relu, nn.gelu, nn.silu])

    def run(x, w, bias, v, head):
        x = pooled(act(convolution(x, w) + bias))
        return act(convolution(x, v, stride)).mean((1, 2)) @ head
    return run, [[b, n, n, c], [3, 3, c, f], [f], [3, 3, f, g], [g, 10]]


def residual(d):
    b, n, f = d.size(1, 4), d.size(8, 28), d.size(8, 48)

    def norm(x, scale):
        return (x - x.mean((0, 1, 2))) * lax.rsqrt(x.var((0, 1, 2)) + 1e-3) * scale
    return (lambda x, w, v, s, t: nn.relu(x + norm(convolution(nn.relu(norm(convolution(x, w), s)), v), t)),
            [[b, n, n, f], [3, 3, f, f], [3, 3, f, f], [f], [f]])


def scores_of(kind, s):
    """Masks and biases of attention, of scores [..., queries, keys]"""
    q, k = jnp.arange(s.shape[-2])[:, None], jnp.arange(s.shape[-1])
    if kind == "causal":
        return jnp.where(q >= k, s, -1e9)
    if kind == "local":
        return jnp.where(jnp.abs(q - k) < 8, s, -1e9)
    if kind == "slopes":
        return s - jnp.abs(q - k).astype(s.dtype) * 0.1
    return jnp.tanh(s / 5) * 5 if kind == "capped" else s


def attention(d):
    b, h, q, e = d.size(1, 4), d.choice([1, 2, 4, 8]), d.size(4, 160), d.choice([8, 16, 24, 32, 64])
    k = q if d.likely(0.7) else d.size(4, 200)
    kind, heads_first, share = d.choice(["", "causal", "local", "slopes", "capped"]), d.likely(0.5), d.likely(0.3)
    letters, shape = ("bhqe", "bhke") if heads_first else ("bqhe", "bkhe"), lambda n, h: [b, h, n, e] if heads_first else [b, n, h, e]
    one = "bke" if share else letters[1]

    def run(x, y, z):
        s = scores_of(kind, jnp.einsum(f"{letters[0]},{one}->bhqk", x, y) * e ** -0.5)
        return jnp.einsum(f"bhqk,{one}->{letters[0]}", nn.softmax(s, -1), z)
    keys = [b, k, e] if share else shape(k, h)
    return run, [shape(q, h), keys, keys]


def linear_attention(d):
    b, h, n, e = d.size(1, 3), d.choice([1, 2, 4]), d.size(8, 200), d.choice([8, 16, 32])

    def run(q, k, v):
        q, k = nn.elu(q) + 1, nn.elu(k) + 1
        return jnp.einsum("bhnd,bhde->bhne", q, jnp.einsum("bhnd,bhne->bhde", k, v)) / (
            jnp.einsum("bhnd,bhd->bhn", q, k.sum(2))[..., None] + 1e-3)
    return run, [[b, h, n, e]] * 3


def norm(d):
    shape = [d.size(1, 8), d.size(4, 60), d.size(4, 60), d.choice([8, 16, 24, 32, 60])]
    axes = d.choice([(3,), (1, 2), (0, 1, 2), (1, 2, 3), (2, 3)])
    groups, mean = d.choice([1, 1, 2, 4]), d.likely(0.7)

    def run(x, scale, bias):
        y = x.reshape(*x.shape[:3], groups, -1)
        dims = tuple(4 if k == 3 else k for k in axes)
        y = y - y.mean(dims, keepdims=True) if mean else y
        y = y * lax.rsqrt((y * y).mean(dims, keepdims=True) + 1e-3)
        return y.reshape(x.shape) * scale + bias
    return run, [shape, shape[3:], shape[3:]]


def embedding(d):
    words, width, b, n = d.size(20, 3000), d.size(8, 128), d.size(1, 16), d.size(4, 200)

    def run(table, places, i):
        x = table[i] * width ** 0.5 + places
        return (x * lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-3)).mean(1)
    return run, [[words, width], [n, width], ([b, n], words)]


def loss(d):
    n, c = d.size(4, 500), d.size(2, 500)
    kinds = {
        "cross entropy": lambda x, i: -jnp.take_along_axis(nn.log_softmax(x), i[:, None], 1).mean(),
        "smoothed": lambda x, i: -(nn.log_softmax(x) * (nn.one_hot(i, c, dtype=x.dtype) * 0.9 + 0.1 / c)).sum(-1).mean(),
        "focal": lambda x, i: (lambda p: -((1 - p) ** 2 * jnp.log(p + 1e-3)).mean())(
            jnp.take_along_axis(nn.softmax(x), i[:, None], 1)),
        "hinge": lambda x, i: nn.relu(1 + x - jnp.take_along_axis(x, i[:, None], 1)).sum(-1).mean(),
        "huber": lambda x, i: (lambda e: jnp.where(jnp.abs(e) < 1, e * e / 2, jnp.abs(e) - 0.5).mean())(
            x - nn.one_hot(i, c, dtype=x.dtype)),
        "binary": lambda x, i: (nn.softplus(x) - x * nn.one_hot(i, c, dtype=x.dtype)).mean(),
        "contrastive": lambda x, i: (lambda y: -jnp.diagonal(nn.log_softmax(y @ y.T * 5)).mean())(
            x / jnp.linalg.norm(x, axis=1, keepdims=True)),
    }
    return kinds[d.choice(list(kinds))], [[n, c], ([n], c)]


def gated(d):
    n, e, f = d.size(4, 300), d.size(8, 128), d.size(8, 256)
    act = d.choice([nn.silu, nn.gelu, nn.sigmoid])
    return lambda x, u, v, w: x + (act(x @ u) * (x @ v)) @ w / f, [[n, e], [e, f], [e, f], [f, e]]


def experts(d):
    n, e, f, count = d.size(8, 200), d.size(8, 48), d.size(8, 64), d.choice([2, 4, 8])

    def run(x, gate, w, v):
        weights, chosen = lax.top_k(nn.softmax(x @ gate), 2)
        mix = (nn.one_hot(chosen, count, dtype=x.dtype) * weights[..., None]).sum(1)
        return jnp.einsum("nke,nk->ne", jnp.einsum("nkf,kfe->nke", nn.gelu(jnp.einsum("ne,kef->nkf", x, w)), v), mix)
    return run, [[n, e], [e, count], [count, e, f], [count, f, e]]


def recurrent(d):
    b, n, e, h = d.size(1, 8), d.size(3, 60), d.size(4, 48), d.size(4, 48)

    def run(x, w, u, state):
        def cell(state, x):
            r, z, c = jnp.split(x @ w, 3, -1)
            rh, zh, ch = jnp.split(state @ u * 0.1, 3, -1)
            z = nn.sigmoid(z + zh)
            state = ((1 - z) * jnp.tanh(c + nn.sigmoid(r + rh) * ch) + z * state).astype(state.dtype)
            return state, state
        return lax.scan(cell, state, x.swapaxes(0, 1))[1]
    return run, [[b, n, e], [e, 3 * h], [h, 3 * h], [b, h]]


def causal_mixer(d):
    b, n, e, k = d.size(1, 4), d.size(8, 300), d.size(4, 64), d.randint(2, 5)

    def run(x, taps, decay):
        padded = jnp.pad(x, [(0, 0), (k - 1, 0), (0, 0)])
        x = nn.silu(sum(padded[:, j:j + n] * taps[j] for j in range(k)))
        return lax.associative_scan(lambda p, q: (p[0] * q[0], q[0] * p[1] + q[1]),
                                    (jnp.broadcast_to(nn.sigmoid(decay), x.shape), x), axis=1)[1]
    return run, [[b, n, e], [k, e], [e]]


def rotary(d):
    b, n, h, e = d.size(1, 4), d.size(4, 200), d.choice([1, 2, 4, 8]), d.choice([8, 16, 32, 64])
    interleaved = d.likely(0.5)

    def run(x):
        angles = jnp.arange(n)[:, None] * 100.0 ** (-jnp.arange(e // 2) / (e // 2))
        sin, cos = jnp.sin(angles)[:, None].astype(x.dtype), jnp.cos(angles)[:, None].astype(x.dtype)
        a, c = (x[..., ::2], x[..., 1::2]) if interleaved else jnp.split(x, 2, -1)
        turned = (a * cos - c * sin, c * cos + a * sin)
        return jnp.stack(turned, -1).reshape(x.shape) if interleaved else jnp.concatenate(turned, -1)
    return run, [[b, n, h, e]]


LAYERS = [conv_net, conv_net, residual, attention, attention, attention, linear_attention, norm, norm, embedding, loss,
          loss, gated, experts, recurrent, causal_mixer, rotary]


def network(d):
    return drawn_layer(d, LAYERS, [np.float32] * 3 + [jnp.bfloat16])
