"""Graphs as lists of edges and as matrices: messages, paths, ranks, components, sparse products, walks."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, nn

from random_programs.draw import drawn_layer


def edges(d):
    """(nodes, edges, the arguments from and to)"""
    n = d.size(4, 2000)
    e = min(30_000, n * d.randint(1, 12))
    return n, e, [([e], n), ([e], n)]


def segments(d):
    n, e, (_, to) = edges(d)
    f, kind = d.choice([1, 3, 8, 16, d.size(2, 40)]), d.choice(["sum", "max", "min", "mean", "prod", "std"])
    ordered = d.likely(0.3)

    def run(x, to):
        to = jnp.sort(to) if ordered else to
        reduce = {"max": jax.ops.segment_max, "min": jax.ops.segment_min, "prod": jax.ops.segment_prod}.get(
            kind, jax.ops.segment_sum)
        y = reduce(x, to, n, indices_are_sorted=ordered)
        if kind in ("mean", "std"):
            count = jnp.maximum(jax.ops.segment_sum(jnp.ones(e, x.dtype), to, n), 1)[:, None]
            y = y / count
        if kind == "std":
            y = jnp.sqrt(jax.ops.segment_sum((x - y[to]) ** 2, to, n) / count + 1e-3)
        return y
    return run, [[e, f], to]


def edge_softmax(d):
    """Attention over a node's edges, some heads"""
    n, e, ends = edges(d)
    h, f = d.choice([1, 2, 4]), d.choice([4, 8, 16])

    def run(x, a, b, source, to):
        y = x.reshape(n, h, f)
        score = nn.leaky_relu((y * a).sum(-1)[source] + (y * b).sum(-1)[to], 0.2)
        top = jax.ops.segment_max(score, to, n)
        weight = jnp.exp(score - lax.stop_gradient(top)[to])
        total = jax.ops.segment_sum(weight, to, n)
        weight = weight / (total[to] + 1e-6)
        return jax.ops.segment_sum(weight[..., None] * y[source], to, n).reshape(n, -1)
    return run, [[n, h * f], [h, f], [h, f], *ends]


def messages(d):
    """Layers of: gather both ends, a small network an edge, sum at the nodes, another network"""
    n, e, ends = edges(d)
    n, e = min(n, 500), min(e, 4000)
    f, h, layers = d.size(3, 32), d.size(4, 48), d.randint(1, 3)
    ends = [([e], n), ([e], n)]

    def run(x, w, v, u, source, to):
        for _ in range(layers):
            m = nn.silu(jnp.concatenate([x[source], x[to]], -1) @ w) @ v
            x = x + jnp.tanh(jnp.zeros((n, h), x.dtype).at[to].add(m) @ u)
        return x
    return run, [[n, f], [2 * f, h], [h, h], [h, f], *ends]


def convolved(d):
    """x <- D^-1/2 A D^-1/2 x W, with edges or a matrix"""
    n, e, ends = edges(d)
    f, g, dense = d.size(3, 40), d.size(3, 40), d.likely(0.3)
    n = min(n, 300) if dense else n
    ends = [([e], n), ([e], n)]

    def run(x, w, source, to):
        if dense:
            a = jnp.zeros((n, n), x.dtype).at[to, source].add(1.0) + jnp.eye(n, dtype=x.dtype)
            scale = lax.rsqrt(a.sum(1))
            return nn.relu((a * scale[:, None] * scale) @ (x @ w))
        degree = jnp.bincount(to, length=n).astype(x.dtype) + 1
        scale = lax.rsqrt(degree)
        y = x @ w
        return nn.relu(jnp.zeros_like(y).at[to].add(y[source] * (scale[source] * scale[to])[:, None])
                       + y / degree[:, None])
    return run, [[n, f], [f, g], *ends]


def rank(d):
    n, e, ends = edges(d)
    turns, until = d.randint(2, 30), d.likely(0.4)

    def run(damping, source, to):
        out = jnp.maximum(jnp.zeros(n, damping.dtype).at[source].add(1.0), 1)

        def turn(r):
            return (0.15 / n + 0.85 * jnp.zeros_like(r).at[to].add((r / out)[source])).astype(r.dtype)
        first = jnp.full(n, 1 / n, damping.dtype)
        if not until:
            return lax.fori_loop(0, turns, lambda k, r: turn(r), first)

        def more(s):
            return (s[0] < turns) & (jnp.abs(s[1] - s[2]).sum() > 1e-4)
        return lax.while_loop(more, lambda s: (s[0] + 1, turn(s[1]), s[1]), (0, first, jnp.zeros_like(first)))[1]
    return run, [[], *ends]


def powers(d):
    n, k = d.size(4, 300), d.randint(2, 6)
    kind = d.choice(["reach", "count", "closure"])

    def run(a):
        if kind == "count":
            m = (a > 1).astype(jnp.int32)
            for _ in range(k):
                m = jnp.minimum(m @ m, 1000)
            return m
        if kind == "reach":
            m = (a > 1.9) | jnp.eye(n, dtype=bool)
            for _ in range(k):
                m = m | ((m.astype(a.dtype) @ m.astype(a.dtype)) > 0)
            return m.sum(1)

        def via(j, m):
            return m | (m[:, j, None] & m[None, j])
        return lax.fori_loop(0, n, via, a > 1.8)
    return run, [[n, n]]


def nearest(d):
    """Shortest paths: all pairs one node after the other, by min-plus products, or over edges until nothing changes"""
    n, kind = d.size(4, 120), d.choice(["via", "product", "edges", "path"])
    e = n * d.randint(2, 8)

    def run(w, source, to):
        w = jnp.abs(w) + 0.1
        if kind == "edges":
            def turn(s):
                k, dist, _ = s
                new = jnp.minimum(dist, jnp.full_like(dist, jnp.inf).at[to].min(dist[source] + w.reshape(-1)[:e]))
                return k + 1, new, jnp.any(new < dist)
            first = jnp.full(n, jnp.inf, w.dtype).at[0].set(0)
            return lax.while_loop(lambda s: s[2] & (s[0] < n), turn, (0, first, True))[1]
        if kind == "via":
            return lax.fori_loop(0, n, lambda j, m: jnp.minimum(m, m[:, j, None] + m[None, j]), w)
        if kind == "product":
            for _ in range(3):
                w = jnp.minimum(w, (w[:, :, None] + w[None]).min(1))
            return w
        best = jnp.arange(n)[None] + jnp.zeros((n, 1), jnp.int32)

        def via(j, s):
            m, nxt = s
            other = m[:, j, None] + m[None, j]
            return jnp.where(other < m, other, m), jnp.where(other < m, nxt[:, j, None], nxt)
        return lax.fori_loop(0, n, via, (w, best))
    e = min(e, n * n)
    return run, [[n, n], ([e], n), ([e], n)]


def spread(d):
    """Labels that nodes take from each other until all of a component agree, with shortcuts or not; or levels"""
    n, e, ends = edges(d)
    kind = d.choice(["labels", "pointers", "levels", "frontier"])

    def run(source, to):
        if kind in ("labels", "pointers"):
            def turn(s):
                label = s[0].at[to].min(s[0][source]).at[source].min(s[0][to])
                label = label[label] if kind == "pointers" else label
                return label, jnp.any(label != s[0]), s[2] + 1
            return lax.while_loop(lambda s: s[1] & (s[2] < 50), turn, (jnp.arange(n), True, 0))[0]
        level = jnp.full(n, -1).at[0].set(0)
        if kind == "levels":
            def deeper(k, level):
                hit = jnp.zeros(n, bool).at[to].max(level[source] == k)
                return jnp.where((level < 0) & hit, k + 1, level)
            return lax.fori_loop(0, 8, deeper, level)

        def deeper(s):
            seen, front, k = s
            front = jnp.zeros(n, jnp.int32).at[to].add(front[source].astype(jnp.int32)) > 0
            return seen | front, front & ~seen, k + 1
        return lax.while_loop(lambda s: s[1].any() & (s[2] < 30), deeper, (level == 0, level == 0, 0))[::2]
    return run, ends


def sparse(d):
    """Products of a sparse matrix by coordinates or by rows of equal length, and sampled dense ones"""
    n, e, (rows, columns) = edges(d)
    f, kind = d.choice([1, 4, 16, d.size(2, 64)]), d.choice(["coordinates", "transposed", "rows", "sampled", "sorted"])
    f = min(f, 500_000 // e)
    k = max(1, e // n)

    def run(x, y, value, i, j):
        if kind == "sampled":
            return (x[i] * y[j]).sum(-1) * value
        if kind == "rows":
            return (value[:n * k].reshape(n, k, 1) * x[j[:n * k].reshape(n, k)]).sum(1)
        i, j = (j, i) if kind == "transposed" else (i, j)
        i = jnp.sort(i) if kind == "sorted" else i
        return jax.ops.segment_sum(value[:, None] * x[j], i, n, indices_are_sorted=kind == "sorted")
    return run, [[n, f], [n, f], [e], rows, columns]


def walks(d):
    n, k, walkers, steps = d.size(4, 1000), d.choice([2, 4, 7]), d.size(1, 500), d.randint(2, 30)

    def run(neighbours, start, seed):
        def step(carry, _):
            at, key = carry
            key, sub = jax.random.split(key)
            at = neighbours[at, jax.random.randint(sub, (walkers,), 0, k)]
            return (at, key), at
        (_, _), path = lax.scan(step, (start, jax.random.key(seed)), None, length=steps)
        return path, jnp.zeros(n, jnp.int32).at[path.reshape(-1)].add(1)
    return run, [([n, k], n), ([walkers], n), ([], 99)]


def triangles(d):
    n, e, ends = edges(d)
    n, e = min(n, 250), min(e, 2500)
    kind = d.choice(["trace", "edges", "clustering"])
    ends = [([e], n), ([e], n)]

    def run(source, to):
        a = jnp.zeros((n, n), jnp.float32).at[source, to].set(1.0)
        a = jnp.maximum(a, a.T) * (1 - jnp.eye(n))
        if kind == "trace":
            return jnp.trace(a @ a @ a) / 6
        if kind == "edges":
            return (a[source] * a[to]).sum(-1)
        degree = a.sum(1)
        return (a @ a * a).sum(1) / jnp.maximum(degree * (degree - 1), 1)
    return run, ends


def pooled(d):
    """Graphs of a batch side by side: features of each, the best nodes of each, a readout"""
    graphs, n, f, k = d.size(2, 60), d.size(8, 2000), d.size(3, 40), d.randint(1, 4)

    def run(x, w, which):
        score = jnp.tanh(x @ w)
        mean = jax.ops.segment_sum(x * score[:, None], which, graphs) / (
            jax.ops.segment_sum(jnp.ones(n, x.dtype), which, graphs)[:, None] + 1)
        top = jax.ops.segment_max(x, which, graphs)
        best = lax.top_k(score, k)[1]
        return jnp.concatenate([mean, jnp.where(jnp.isfinite(top), top, 0)], -1), x[best]
    return run, [[n, f], [f], ([n], graphs)]


SMOOTH = [segments, segments, edge_softmax, edge_softmax, messages, messages, convolved, sparse, sparse, pooled]
WHOLE = [rank, rank, powers, nearest, nearest, spread, spread, walks, triangles]


def graphs(d):
    types = [np.float32] * 4 + [np.float64, jnp.bfloat16]
    return drawn_layer(d, SMOOTH, types, 0.3) if d.likely(0.55) else drawn_layer(d, WHOLE, types[:5], 0)
