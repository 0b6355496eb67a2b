"""Statistics and optimisation: filters, hidden states, processes, mixtures, iterations, steps of optimisers."""

import math

import jax
import jax.numpy as jnp
import jax.scipy as jsp
import numpy as np
from jax import lax, nn

from random_programs.draw import drawn_layer


def kalman(d):
    """A filter over steps, for one or a batch; with Joseph's form, and a smoother behind"""
    n, m, steps, b = d.randint(1, 8), d.randint(1, 4), d.size(3, 60), d.choice([1, 1, d.size(2, 60)])
    smooth = d.likely(0.3)

    def one(ys, a, c):
        a, eye = jnp.eye(n, dtype=a.dtype) * 0.9 + a * 0.05, jnp.eye(n, dtype=a.dtype)

        def step(carry, y):
            x, p = carry
            x, p = a @ x, a @ p @ a.T + 0.1 * eye
            s = c @ p @ c.T + jnp.eye(m, dtype=a.dtype)
            gain = jnp.linalg.solve(s, c @ p).T
            x2, p2 = x + gain @ (y - c @ x), (eye - gain @ c) @ p
            return (x2, p2), (x2, p2, x, p)
        _, kept = lax.scan(step, (jnp.zeros(n, a.dtype), eye), ys)
        if not smooth:
            return kept[0], kept[1][-1]

        def back(later, k):
            x2, p2, x, p = k
            gain = jnp.linalg.solve(p, a @ p2).T
            return x2 + gain @ (later - x), x2
        return lax.scan(back, kept[0][-1], kept, reverse=True)[1]

    def run(ys, a, c):
        return one(ys, a, c) if b == 1 else jax.vmap(one, (0, None, None))(ys, a, c)
    return run, [[steps, m] if b == 1 else [b, steps, m], [n, n], [m, n]]


def hidden(d):
    """Hidden Markov models: forward in logs or scaled, the best path, posteriors"""
    b, steps, s, kind = d.size(1, 16), d.size(3, 100), d.size(2, 48), d.choice(["logs", "scaled", "best", "both"])

    def run(emit, move):
        logs, move = nn.log_softmax(emit, -1), nn.log_softmax(move, -1)
        xs = logs.swapaxes(0, 1)
        if kind == "best":
            def up(v, x):
                scores = v[:, :, None] + move
                return scores.max(1) + x, scores.argmax(1)
            last, back = lax.scan(up, xs[0], xs[1:])
            end = last.argmax(-1)

            def down(at, pointers):
                at = jnp.take_along_axis(pointers, at[:, None], 1)[:, 0]
                return at, at
            return lax.scan(down, end, back, reverse=True)[1], last.max(-1)
        if kind == "scaled":
            p = jnp.exp(move)

            def step(v, x):
                v = (v @ p) * jnp.exp(x)
                total = v.sum(-1, keepdims=True)
                return v / total, jnp.log(total[:, 0])
            return lax.scan(step, jnp.full((b, s), 1 / s, emit.dtype), xs)[1].sum(0)

        def forward(v, x):
            v = jsp.special.logsumexp(v[:, :, None] + move, axis=1) + x
            return v, v

        def backward(v, x):
            return jsp.special.logsumexp(move + (v + x)[:, None], axis=2), v
        last, alpha = lax.scan(forward, xs[0], xs[1:])
        if kind == "logs":
            return jsp.special.logsumexp(last, -1)
        beta = lax.scan(backward, jnp.zeros_like(last), xs[1:], reverse=True)[1]
        return nn.softmax(alpha + beta, -1)
    return run, [[b, steps, s], [s, s]]


def particles(d):
    """Particles: moved, weighted, drawn again by the cumulated weights"""
    n, steps, dim = d.size(8, 2000), d.randint(1, 12), d.randint(1, 4)

    def run(ys, seed):
        def step(carry, y):
            x, key = carry
            key, k1, k2 = jax.random.split(key, 3)
            x = 0.9 * x + 0.3 * jax.random.normal(k1, x.shape)
            w = nn.softmax(-((x - y) ** 2).sum(-1))
            at = (jnp.arange(n) + jax.random.uniform(k2)) / n
            pick = jnp.clip(jnp.searchsorted(jnp.cumsum(w), at), 0, n - 1)
            return (x[pick], key), (w @ x, 1 / (w * w).sum())
        return lax.scan(step, (jnp.zeros((n, dim)), jax.random.key(seed)), ys.astype(jnp.float32))[1]
    return run, [[steps, dim], ([], 99)]


def process(d):
    """Gaussian process: kernel matrix, its root, mean and variance at new places, or the likelihood"""
    n, m, dim, kind = d.size(3, 150), d.size(1, 100), d.randint(1, 6), d.choice(["rbf", "matern", "periodic"])
    likely = d.likely(0.4)

    def run(x, z, y, scale):
        def k(a, b):
            if kind == "periodic":
                return jnp.exp(-2 * jnp.sin(a[:, None] - b[None]) ** 2).prod(-1)
            r = ((a[:, None] - b[None]) ** 2 * jnp.exp(scale)).sum(-1)
            if kind == "rbf":
                return jnp.exp(-0.5 * r)
            r = jnp.sqrt(3 * r + 1e-6)
            return (1 + r) * jnp.exp(-r)
        root = jnp.linalg.cholesky(k(x, x) + 0.5 * jnp.eye(n, dtype=x.dtype))
        alpha = jsp.linalg.cho_solve((root, True), y)
        if likely:
            return -0.5 * y @ alpha - jnp.log(jnp.diagonal(root)).sum()
        cross = k(x, z)
        v = jsp.linalg.solve_triangular(root, cross, lower=True)
        return cross.T @ alpha, 1 - (v * v).sum(0)
    return run, [[n, dim], [m, dim], [n], [dim]]


def chain(d):
    """Markov chains: random walks, Langevin, Hamiltonian, Gibbs on a grid"""
    b, n, steps, kind = d.size(1, 200), d.randint(1, 12), d.randint(2, 40), d.choice(["walk", "langevin", "leap", "grid"])

    def run(x, seed):
        def log_density(x):
            return -(x ** 2).sum(-1) / 2 - jnp.cos(2 * x).sum(-1)

        def step(carry, k):
            x, kept = carry
            k1, k2 = jax.random.split(jax.random.fold_in(jax.random.key(seed), k))
            noise = jax.random.normal(k1, x.shape, x.dtype)
            if kind == "grid":
                side = sum(jnp.roll(x, s, a) for a in (0, 1) for s in (1, -1))
                return (jnp.where(jax.random.uniform(k2, x.shape) < nn.sigmoid(side), 1, -1).astype(x.dtype), kept), None
            slope = jax.grad(lambda x: log_density(x).sum())
            if kind == "leap":
                y, p = x, noise + 0.05 * slope(x)
                for _ in range(3):
                    y = y + 0.1 * p
                    p = p + 0.1 * slope(y)
                gain = log_density(y) - log_density(x) - ((p * p).sum(-1) - (noise * noise).sum(-1)) / 2
            else:
                y = x + 0.3 * noise + (0.05 * slope(x) if kind == "langevin" else 0)
                gain = log_density(y) - log_density(x)
            accept = jnp.log(jax.random.uniform(k2, gain.shape) + 1e-9) < gain
            return (jnp.where(accept[:, None], y, x), kept + accept), None
        return lax.scan(step, (x, jnp.zeros(b, jnp.int32)), jnp.arange(steps))[0]
    return run, [[b, n], ([], 99)]


def mixture(d):
    """Turns of expectation and maximisation; diagonal or full covariances"""
    n, k, dim, turns, full = d.size(8, 1500), d.randint(2, 12), d.randint(1, 10), d.randint(1, 6), d.likely(0.3)

    def run(x, means):
        def turn(_, s):
            mu, cov, pi = s
            off = x[:, None] - mu
            if full:
                root = jnp.linalg.cholesky(cov)
                z = jax.vmap(lambda r, o: jsp.linalg.solve_triangular(r, o.T, lower=True).T, (0, 1), 1)(root, off)
                logs = -0.5 * (z ** 2).sum(-1) - jnp.log(jnp.diagonal(root, axis1=1, axis2=2)).sum(-1)
            else:
                logs = -0.5 * (off ** 2 / cov + jnp.log(cov)).sum(-1)
            r = nn.softmax(logs + jnp.log(pi), -1)
            total = r.sum(0) + 1e-3
            mu = (r.T @ x) / total[:, None]
            off = x[:, None] - mu
            if full:
                cov = jnp.einsum("nk,nkd,nke->kde", r, off, off) / total[:, None, None] + jnp.eye(dim, dtype=x.dtype)
            else:
                cov = jnp.einsum("nk,nkd->kd", r, off ** 2) / total[:, None] + 0.1
            return mu.astype(x.dtype), cov.astype(x.dtype), (total / n).astype(x.dtype)
        cov = jnp.ones((k, dim), x.dtype) if not full else jnp.tile(jnp.eye(dim, dtype=x.dtype), (k, 1, 1))
        return lax.fori_loop(0, turns, turn, (means, cov, jnp.full(k, 1 / k, x.dtype)))
    return run, [[n, dim], [k, dim]]


def k_means(d):
    n, k, dim, turns, kind = d.size(8, 3000), d.size(2, 40), d.size(1, 24), d.randint(1, 8), d.choice(
        ["one hot", "segments", "until"])

    def run(x, centres):
        def turn(c):
            far = (x ** 2).sum(-1)[:, None] - 2 * x @ c.T + (c ** 2).sum(-1)
            at = far.argmin(-1)
            if kind == "one hot":
                chosen = nn.one_hot(at, k, dtype=x.dtype)
                return (chosen.T @ x) / (chosen.sum(0)[:, None] + 1e-3), at
            total = jax.ops.segment_sum(x, at, k)
            return total / (jax.ops.segment_sum(jnp.ones(n, x.dtype), at, k)[:, None] + 1e-3), at
        if kind != "until":
            for _ in range(min(turns, 3)):
                centres, at = turn(centres)
            return centres, at

        def body(s):
            c = turn(s[0])[0].astype(x.dtype)
            return c, jnp.abs(c - s[0]).max(), s[2] + 1
        return lax.while_loop(lambda s: (s[1] > 1e-3) & (s[2] < turns), body, (centres, jnp.array(1, x.dtype), 0))[0]
    return run, [[n, dim], [k, dim]]


def components(d):
    """Leading directions by powers of the covariance, orthogonal by QR or one by one"""
    n, dim, k, turns, kind = d.size(8, 1000), d.size(2, 60), d.randint(1, 5), d.randint(2, 20), d.choice(["qr", "deflate"])
    k = min(k, dim)

    def run(x, start):
        x = x - x.mean(0)
        c = x.T @ x / n
        if kind == "qr":
            return lax.fori_loop(0, turns, lambda _, q: jnp.linalg.qr(c @ q)[0], start)
        found = []
        for j in range(k):
            v = lax.fori_loop(0, turns, lambda _, v: (lambda u: u / jnp.linalg.norm(u))(c @ v), start[:, j])
            c = c - (v @ c @ v) * jnp.outer(v, v)
            found.append(v)
        return jnp.stack(found, 1)
    return run, [[n, dim], [dim, k]]


def newton(d):
    n, dim, turns, batch = d.size(8, 1000), d.randint(2, 24), d.randint(1, 6), d.choice([1, 1, d.size(2, 30)])

    def one(x, y):
        def turn(_, w):
            p = nn.sigmoid(x @ w)
            h = (x * (p * (1 - p))[:, None]).T @ x + jnp.eye(dim, dtype=x.dtype)
            return w - jnp.linalg.solve(h, x.T @ (p - nn.sigmoid(y)) + w)
        return lax.fori_loop(0, turns, turn, jnp.zeros(dim, x.dtype))
    if batch == 1:
        return one, [[n, dim], [n]]
    n = min(n, 200)
    return jax.vmap(one), [[batch, n, dim], [batch, n]]


def transport(d):
    n, m, turns, logs = d.size(2, 250), d.size(2, 250), d.randint(2, 30), d.likely(0.5)

    def run(x, y):
        cost = ((x[:, None] - y[None]) ** 2).sum(-1)
        if not logs:
            k = jnp.exp(-cost)
            u = lax.fori_loop(0, turns, lambda _, u: 1 / (n * (k @ (1 / (m * (k.T @ u) + 1e-6))) + 1e-6),
                              jnp.ones(n, x.dtype))
            return u[:, None] * k

        def turn(_, f):
            g = -jsp.special.logsumexp(f[:, None] - cost, 0) - math.log(m)
            return (-jsp.special.logsumexp(g[None] - cost, 1) - math.log(n)).astype(f.dtype)
        return lax.fori_loop(0, turns, turn, jnp.zeros(n, x.dtype))
    dim = d.randint(1, 5)
    return run, [[n, dim], [m, dim]]


def flow(d):
    """Runge-Kutta over a batch: a network, Lorenz, predators and prey, pendulums; all steps or the last"""
    b, steps, kind = d.size(1, 2000), d.randint(2, 60), d.choice(["network", "lorenz", "prey", "pendulum"])
    dim = {"lorenz": 3, "prey": 2, "pendulum": 4}.get(kind) or d.size(2, 40)
    b, kept = min(b, 20_000 // dim // 4), d.likely(0.4)

    def slope(s, w):
        if kind == "network":
            return jnp.tanh(s @ w) @ w.T - s
        x = [s[:, k] for k in range(dim)]
        if kind == "lorenz":
            return jnp.stack([10 * (x[1] - x[0]), x[0] * (28 - x[2]) - x[1], x[0] * x[1] - 8 / 3 * x[2]], -1) * 0.01
        if kind == "prey":
            return jnp.stack([x[0] * (1.1 - 0.4 * x[1]), x[1] * (0.1 * x[0] - 0.4)], -1) * 0.1
        return jnp.stack([x[2], x[3], -jnp.sin(x[0]) + 0.1 * x[1], -jnp.sin(x[1]) + 0.1 * x[0]], -1)

    def run(s, w):
        def step(s, _):
            k1 = slope(s, w)
            k2 = slope(s + 0.05 * k1, w)
            k3 = slope(s + 0.05 * k2, w)
            k4 = slope(s + 0.1 * k3, w)
            s = s + 0.1 / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
            return s, s if kept else None
        return lax.scan(step, s, None, length=steps)
    if kept:
        steps = max(2, min(steps, 400_000 // (b * dim)))
    return run, [[b, dim], [dim, dim]]


def optimiser(d):
    """A step over a tree of parameters: clipped by the norm of all, decayed, averaged"""
    count, kind = d.size(5, 60), d.choice(["adam", "lion", "adafactor", "momentum", "lamb"])
    shapes = [d.choice([[d.size(2, 150), d.size(2, 150)], [d.size(2, 300)], [3, 3, d.size(2, 16), d.size(2, 16)]])
              for _ in range(d.randint(3, 8))]
    parts, clip, ema = [shapes[k % len(shapes)] for k in range(count)], d.likely(0.6), d.likely(0.3)

    def one(p, g, m, v):
        if kind == "lion":
            return p - 0.01 * (jnp.sign(0.9 * m + 0.1 * g) + 0.1 * p), 0.99 * m + 0.01 * g, v
        if kind == "momentum":
            m = 0.9 * m + g
            return p - 0.01 * (g + 0.9 * m), m, v
        if kind == "adafactor" and p.ndim == 2:
            s = g * g + 1e-6
            r, c = s.mean(1), s.mean(0)
            u = g * lax.rsqrt(r / r.mean())[:, None] * lax.rsqrt(c)
            return p - 0.01 * u / jnp.maximum(1, jnp.sqrt((u * u).mean())), m, v
        m, v = 0.9 * m + 0.1 * g, 0.99 * jnp.abs(v) + 0.01 * g * g
        u = m / (jnp.sqrt(v) + 1e-3) + 0.01 * p
        if kind == "lamb":
            u = u * jnp.linalg.norm(p) / (jnp.linalg.norm(u) + 1e-3)
        return p - 0.01 * u, m, v

    def run(*flat):
        trees = [flat[k * count:(k + 1) * count] for k in range(3)]
        ps, gs, ms = trees
        if clip:
            scale = jnp.minimum(1, lax.rsqrt(sum((g * g).sum() for g in gs) + 1e-3))
            gs = [g * scale for g in gs]
        made = [one(p, g, m, jnp.abs(m)) for p, g, m in zip(ps, gs, ms)]
        return made, [0.9 * p + 0.1 * q[0] for p, q in zip(ps, made)] if ema else None
    return run, parts * 3


SMOOTH = [kalman, kalman, hidden, hidden, process, process, newton, transport, flow]
WHOLE = [particles, chain, chain, mixture, mixture, k_means, k_means, components, optimiser, optimiser, optimiser, flow]


def filters(d):
    types = [np.float32] * 5 + [np.float64]
    return drawn_layer(d, SMOOTH, types, 0.25) if d.likely(0.45) else drawn_layer(d, WHOLE, types, 0)
