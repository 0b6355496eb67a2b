"""Models that make tokens one by one, and whole ones: caches, positions, experts, sampling, beams, state spaces."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, nn

from random_programs.draw import drawn_layer
from random_programs.layers import convolution


def rms(x, scale):
    return x * lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-3) * scale


def turned(x, at):
    """Rotary embedding of [..., heads, width] at positions [...]"""
    half = x.shape[-1] // 2
    angles = at[..., None, None].astype(jnp.float32) * 100.0 ** (-jnp.arange(half) / half)
    sin, cos = jnp.sin(angles).astype(x.dtype), jnp.cos(angles).astype(x.dtype)
    a, b = jnp.split(x, 2, -1)
    return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1)


def attended(q, keys, values, at, kind):
    """One query a head [b, h, e], groups of heads sharing [b, n, g, e]; places [n] of the cache, `at` the present."""
    b, h, e = q.shape
    n, g = keys.shape[1:3]
    s = jnp.einsum("bgre,bnge->bgrn", q.reshape(b, g, h // g, e), keys) * e ** -0.5
    place = jnp.arange(n)
    if kind == "ring":
        valid = (place <= at) | (at >= n)
    else:
        valid = (place <= at) & (place > at - (n // 3 if kind == "window" else n))
    if kind == "alibi":
        s = s - (at - place).astype(s.dtype) * (2.0 ** -(1 + jnp.arange(h, dtype=s.dtype))).reshape(g, h // g, 1)
    p = nn.softmax(jnp.where(valid, s, -1e9), -1)
    return jnp.einsum("bgrn,bnge->bgre", p, values).reshape(b, h * e)


def block(d, turns):
    """A decoding step of a layer, once or in a scan, with its caches: rotary or with slopes, groups, swiglu."""
    b, g, share = d.size(1, 8), d.choice([1, 2, 4]), d.choice([1, 2, 4])
    e, n, kind = d.choice([8, 16, 32]), d.size(8, 300), d.choice(["", "window", "ring", "alibi"])
    h = g * share
    w, f = h * e, d.size(16, 300)
    joined = d.likely(0.5)

    def step(x, keys, values, at, qkv, out, up, down, scale):
        y = rms(x, scale)
        if joined:
            q, k, v = jnp.split(y @ qkv, [w, w + g * e], -1)
        else:
            q, k, v = y @ qkv[:, :w], y @ qkv[:, w:w + g * e], y @ qkv[:, w + g * e:]
        q, k, v = q.reshape(b, h, e), k.reshape(b, 1, g, e), v.reshape(b, 1, g, e)
        if kind != "alibi":
            q, k = turned(q, jnp.full((b,), at)), turned(k, jnp.full((b, 1), at))
        slot = at % n if kind == "ring" else at
        keys = lax.dynamic_update_slice(keys, k, (0, slot, 0, 0))
        values = lax.dynamic_update_slice(values, v, (0, slot, 0, 0))
        x = x + attended(q, keys, values, at, kind) @ out / w
        a, c = jnp.split(rms(x, scale) @ up, 2, -1)
        return x + (nn.silu(a) * c) @ down / f, keys, values

    def run(x, keys, values, at, *weights):
        if turns == 1:
            return step(x, keys, values, at, *weights)

        def one(carry, k):
            carry = step(*carry, k, *weights)
            return carry, carry[0]
        return lax.scan(one, (x, keys, values), jnp.arange(turns))
    cache = [b, n, g, e]
    return run, [[b, w], cache, cache, ([], n), [w, w + 2 * g * e], [w, w], [w, 2 * f], [f, w], [w]]


def decode_step(d):
    return block(d, 1)


def decode_scan(d):
    return block(d, d.randint(2, 8))


def generate(d):
    """Greedy tokens of a small recurrent model until one of them ends it."""
    words, w, n = d.size(20, 600), d.size(8, 96), d.size(4, 40)

    def run(table, u, head, first):
        def one(s):
            i, token, h, out = s
            h = jnp.tanh(table[token] + h @ u * 0.1).astype(h.dtype)
            token = jnp.argmax(h @ head, -1).astype(jnp.int32)
            return i + 1, token, h, lax.dynamic_update_index_in_dim(out, token, i, 1)
        begin = (0, first, jnp.zeros((first.shape[0], w), table.dtype), jnp.zeros((first.shape[0], n), jnp.int32))
        return lax.while_loop(lambda s: (s[0] < n) & ~jnp.all(s[1] == 0), one, begin)[3]
    return run, [[words, w], [w, w], [w, words], ([d.size(1, 8)], words)]


def experts(d):
    """The k best of some experts: one-hot dispatch with a capacity, weights gathered, or sorted by expert."""
    n, e, f, count = d.size(4, 120), d.size(8, 64), d.size(8, 96), d.choice([4, 8, 16])
    k, kind, capacity = d.randint(1, 2), d.choice(["dispatch", "gather", "sort", "all"]), d.size(2, 24)

    def run(x, gate, up, down):
        weights, chosen = lax.top_k(nn.softmax(x @ gate), k)
        weights = weights / weights.sum(-1, keepdims=True)
        if kind == "gather":
            y = jnp.einsum("nkf,nkfe->nke", nn.silu(jnp.einsum("ne,nkef->nkf", x, up[chosen])), down[chosen])
            return (y * weights[..., None]).sum(1)
        if kind == "all":
            mix = (nn.one_hot(chosen, count, dtype=x.dtype) * weights[..., None]).sum(1)
            return jnp.einsum("ncf,cfe,nc->ne", nn.silu(jnp.einsum("ne,cef->ncf", x, up)), down, mix)
        if kind == "sort":
            order = jnp.argsort(chosen.reshape(-1))
            rows = x[order // k]
            sizes = jnp.bincount(chosen.reshape(-1), length=count)
            y = lax.ragged_dot(nn.silu(lax.ragged_dot(rows, up, sizes)), down, sizes)
            return jnp.zeros_like(x).at[order // k].add(y * weights.reshape(-1)[order][:, None])
        mask = nn.one_hot(chosen, count, dtype=jnp.int32).reshape(n * k, count)
        place = (jnp.cumsum(mask, 0) * mask).sum(-1).reshape(n, k) - 1
        sent = (nn.one_hot(chosen, count, dtype=x.dtype)[..., None]
                * nn.one_hot(place, capacity, dtype=x.dtype)[:, :, None])
        y = jnp.einsum("nkcs,ne->cse", sent, x)
        y = jnp.einsum("csf,cfe->cse", nn.silu(jnp.einsum("cse,cef->csf", y, up)), down)
        return jnp.einsum("nkcs,cse,nk->ne", sent, y, weights)
    return run, [[n, e], [e, count], [count, e, f], [count, f, e]]


def sampling(d):
    b, n = d.size(1, 32), d.size(20, 5000)
    kind, k = d.choice(["top k", "top p", "min p", "typical", "penalty", "categorical"]), d.randint(2, 50)

    def run(x, seed, seen):
        key = jax.random.key(seed)
        x = x.astype(jnp.float32) / 0.8
        if kind == "top k":
            best, at = lax.top_k(x, min(k, n))
            return jnp.take_along_axis(at, jax.random.categorical(key, best)[:, None], 1)
        if kind == "top p":
            order = jnp.argsort(-x, axis=-1)
            p = nn.softmax(jnp.take_along_axis(x, order, -1))
            kept = jnp.cumsum(p, -1) - p < 0.9
            at = jax.random.categorical(key, jnp.where(kept, jnp.log(p), -1e9))
            return jnp.take_along_axis(order, at[:, None], 1)
        if kind == "min p":
            p = nn.softmax(x)
            x = jnp.where(p >= 0.05 * p.max(-1, keepdims=True), x, -jnp.inf)
        if kind == "typical":
            logs = nn.log_softmax(x)
            off = jnp.abs(logs + (jnp.exp(logs) * logs).sum(-1, keepdims=True))
            x = jnp.where(off <= jnp.sort(off, -1)[:, n // 2, None], x, -1e9)
        if kind == "penalty":
            counts = jnp.zeros_like(x).at[jnp.arange(b)[:, None], seen].add(1.0)
            x = x - 0.3 * counts - 0.5 * (counts > 0)
        return jax.random.categorical(key, x)
    return run, [[b, n], ([], 99), ([b, d.size(4, 60)], n)]


def beams(d):
    b, k, words, n = d.size(1, 8), d.choice([2, 4, 5]), d.size(20, 1000), d.size(2, 12)

    def run(table, head):
        def one(carry, i):
            scores, tokens, state = carry
            state = jnp.tanh(state * 0.5 + table[lax.dynamic_index_in_dim(tokens, i, 2, False)])
            total = scores[..., None] + nn.log_softmax(state @ head).astype(jnp.float32)
            scores, at = lax.top_k(total.reshape(b, -1), k)
            parent, token = at // words, at % words
            tokens = jnp.take_along_axis(tokens, parent[..., None], 1)
            state = jnp.take_along_axis(state, parent[..., None], 1)
            return (scores, lax.dynamic_update_index_in_dim(tokens, token, i + 1, 2), state), parent
        begin = (jnp.tile(-jnp.arange(k, dtype=jnp.float32), (b, 1)), jnp.zeros((b, k, n + 1), jnp.int32),
                 jnp.zeros((b, k, table.shape[1]), table.dtype))
        return lax.scan(one, begin, jnp.arange(n))
    w = d.size(8, 64)
    return run, [[words, w], [w, words]]


def speculation(d):
    """How many drafted tokens are kept, and what comes in place of the first that is not."""
    b, n, words = d.size(1, 16), d.size(2, 8), d.size(20, 2000)

    def run(target, draft, tokens, chance):
        p, q = nn.softmax(target), nn.softmax(draft)
        at = tokens[..., None]
        ratio = jnp.take_along_axis(p[:, :n], at, 2)[..., 0] / jnp.take_along_axis(q, at, 2)[..., 0]
        kept = jnp.cumprod(nn.sigmoid(chance) < ratio, axis=1).sum(1)
        row = jnp.take_along_axis(p, kept[:, None, None], 1)[:, 0]
        other = jnp.take_along_axis(q, jnp.minimum(kept, n - 1)[:, None, None], 1)[:, 0]
        rest = jnp.where((kept < n)[:, None], jnp.maximum(row - other, 0), row)
        return kept, jnp.argmax(rest, -1), rest / (rest.sum(-1, keepdims=True) + 1e-6)
    return run, [[b, n + 1, words], [b, n, words], ([b, n], words), [b, n]]


def selective_scan(d):
    """State space with decays that depend on the input: by steps, or as an associative scan."""
    b, n, e, s = d.size(1, 4), d.size(4, 128), d.size(4, 48), d.choice([4, 8, 16])
    steps = d.likely(0.5)

    def run(x, a, wb, wc, wd, skip):
        delta = nn.softplus(x * wd)
        u, c = x @ wb, x @ wc
        decay = jnp.exp(-delta[..., None] * jnp.exp(a))
        put = (delta * x)[..., None] * u[:, :, None]
        if steps:
            def one(h, k):
                h = k[0] * h + k[1]
                return h, jnp.einsum("bes,bs->be", h, k[2])
            first = jnp.zeros((b, e, s), x.dtype)
            y = lax.scan(one, first, (decay.swapaxes(0, 1), put.swapaxes(0, 1), c.swapaxes(0, 1)))[1].swapaxes(0, 1)
        else:
            h = lax.associative_scan(lambda p, q: (p[0] * q[0], q[0] * p[1] + q[1]), (decay, put), axis=1)[1]
            y = jnp.einsum("bnes,bns->bne", h, c)
        return y + x * skip
    return run, [[b, n, e], [e, s], [e, s], [e, s], [e], [e]]


def retention(d):
    """Linear attention with decay: all at once, in chunks, or one token after the other."""
    b, h, e, kind = d.size(1, 3), d.choice([1, 2, 4]), d.choice([8, 16, 32]), d.choice(["all", "chunks", "steps"])
    size = d.choice([8, 16, 32])
    n = size * d.randint(1, 5)

    def run(q, k, v):
        decay = (1 - 2.0 ** (-2 - jnp.arange(h, dtype=jnp.float32))).astype(q.dtype)
        if kind == "steps":
            def one(state, x):
                state = state * decay[:, None, None] + x[1][..., :, None] * x[2][..., None, :]
                return state, jnp.einsum("bhd,bhde->bhe", x[0], state)
            return lax.scan(one, jnp.zeros((b, h, e, e), q.dtype), tuple(jnp.moveaxis(x, 2, 0) for x in (q, k, v)))[1]
        m = n if kind == "all" else size
        off = jnp.arange(m)[:, None] - jnp.arange(m)
        mask = jnp.where(off >= 0, decay[:, None, None] ** jnp.maximum(off, 0).astype(q.dtype), 0)

        def chunk(state, x):
            q, k, v = x
            inner = jnp.einsum("bhnm,bhme->bhne", jnp.einsum("bhnd,bhmd->bhnm", q, k) * mask, v)
            powers = (decay[:, None] ** jnp.arange(1, m + 1, dtype=q.dtype))[..., None]
            cross = jnp.einsum("bhnd,bhde->bhne", q * powers, state)
            tail = (decay[:, None] ** jnp.arange(m - 1, -1, -1, dtype=q.dtype))[..., None]
            state = state * (decay ** m)[:, None, None] + jnp.einsum("bhnd,bhne->bhde", k * tail, v)
            return state, inner + cross
        if kind == "all":
            return chunk(jnp.zeros((b, h, e, e), q.dtype), (q, k, v))
        parts = tuple(jnp.moveaxis(x.reshape(b, h, n // m, m, e), 2, 0) for x in (q, k, v))
        return lax.scan(chunk, jnp.zeros((b, h, e, e), q.dtype), parts)[1]
    return run, [[b, h, n, e]] * 3


def vision(d):
    b, p, n, h, e = d.size(1, 6), d.choice([2, 4, 7]), d.randint(2, 8), d.choice([1, 2, 4]), d.choice([8, 16, 32])
    w, c, by_conv = h * e, d.choice([1, 3]), d.likely(0.5)

    def run(x, embed, places, qkv, out, scale):
        if by_conv:
            x = lax.conv_general_dilated(x, embed.reshape(p, p, c, w), (p, p), "VALID",
                                         dimension_numbers=("NHWC", "HWIO", "NHWC")).reshape(b, n * n, w)
        else:
            x = x.reshape(b, n, p, n, p, c).transpose(0, 1, 3, 2, 4, 5).reshape(b, n * n, p * p * c) @ embed
        x = jnp.concatenate([jnp.broadcast_to(places[:1], (b, 1, w)), x + places[1:]], 1)
        q, k, v = jnp.moveaxis((rms(x, scale) @ qkv).reshape(b, n * n + 1, 3, h, e), 2, 0)
        s = nn.softmax(jnp.einsum("bqhe,bkhe->bhqk", q, k) * e ** -0.5)
        return (x + jnp.einsum("bhqk,bkhe->bqhe", s, v).reshape(b, n * n + 1, w) @ out)[:, 0]
    return run, [[b, n * p, n * p, c], [p * p * c, w], [n * n + 1, w], [w, 3 * w], [w, w], [w]]


def u_net(d):
    b, n, c, f, depth = d.size(1, 3), 8 * d.randint(1, 5), d.choice([1, 3, 8]), d.size(4, 16), d.randint(1, 2)
    act, method = d.choice([nn.relu, nn.silu]), d.choice(["repeat", "resize", "transposed"])

    def up(x, w):
        if method == "transposed":
            return lax.conv_transpose(x, w, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        if method == "resize":
            shape = (x.shape[0], 2 * x.shape[1], 2 * x.shape[2], x.shape[3])
            return convolution(jax.image.resize(x, shape, "linear"), w)
        return convolution(x.repeat(2, 1).repeat(2, 2), w)

    def run(x, first, *weights):
        x = act(convolution(x, first))
        kept = []
        for k in range(depth):
            kept.append(x)
            x = act(convolution(x, weights[3 * k], 2))
        for k in reversed(range(depth)):
            x = act(up(x, weights[3 * k + 1]))
            x = act(convolution(jnp.concatenate([x, kept[k]], -1), weights[3 * k + 2]))
        return x
    level = [[3, 3, f, f], [3, 3, f, f], [3, 3, 2 * f, f]]
    return run, [[b, n, n, c], [3, 3, c, f], *level * depth]


def stack(d):
    """LSTM or GRU layers over a sequence, one way or both."""
    b, n, e, h, layers = d.size(1, 8), d.size(3, 40), d.size(4, 48), d.size(4, 48), d.randint(1, 2)
    lstm, both = d.likely(0.5), d.likely(0.5)

    def cell(w, u):
        def one(carry, x):
            state, memory = carry
            if lstm:
                i, f, g, o = jnp.split(x @ w + state @ u * 0.1, 4, -1)
                memory = nn.sigmoid(f + 1) * memory + nn.sigmoid(i) * jnp.tanh(g)
                state = (nn.sigmoid(o) * jnp.tanh(memory)).astype(x.dtype)
            else:
                r, z, c, _ = jnp.split(x @ w, 4, -1)
                rh, zh, ch, _ = jnp.split(state @ u * 0.1, 4, -1)
                z = nn.sigmoid(z + zh)
                state = (1 - z) * jnp.tanh(c + nn.sigmoid(r + rh) * ch) + z * state
            return (state, memory), state
        return one

    def run(x, *weights):
        x, weights = x.swapaxes(0, 1), list(weights)
        zero = jnp.zeros((b, h), x.dtype)
        for _ in range(layers):
            ways = [lax.scan(cell(weights.pop(0), weights.pop(0)), (zero, zero), x, reverse=way)[1]
                    for way in ([False, True] if both else [False])]
            x = jnp.concatenate(ways, -1)
        return x.swapaxes(0, 1)
    ways = 2 if both else 1
    first = [[e, 4 * h], [h, 4 * h]] * ways
    return run, [[b, n, e], *first, *[[ways * h, 4 * h], [h, 4 * h]] * ways * (layers - 1)]


ONCE = [decode_step, decode_step, decode_scan, decode_scan, generate, sampling, sampling, beams, speculation]
TRAINED = [experts, experts, selective_scan, selective_scan, retention, retention, vision, u_net, stack, stack]


def decoders(d):
    kinds, gradients = (ONCE, 0.0) if d.likely(0.45) else (TRAINED, 0.35)
    return drawn_layer(d, kinds, [np.float32] * 3 + [jnp.bfloat16], gradients)
