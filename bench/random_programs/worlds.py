"""Worlds that act by rules: environments under random actions, boards, joints, splines as flows, particles in a box."""

import jax
import jax.numpy as jnp
from jax import lax, nn

from random_programs.draw import drawn_layer

TURNS = [(0, 1), (1, 0), (1, 1), (1, -1)]


def rollout(d):
    """A batch of worlds under random actions; one that ends begins anew at once, counters and all"""
    batch, steps, kind = d.size(1, 200), d.size(2, 60), d.choice(["pole", "pendulum", "walk"])

    def begin(key):
        return jax.random.uniform(key, (4,), minval=-0.05, maxval=0.05), jnp.int32(0)

    def move(x, a):
        if kind == "walk":
            return jnp.clip(x.at[a].add(jnp.where(a > 1, 0.4, -0.4)), -1, 1)
        if kind == "pendulum":
            v = jnp.clip(x[1] + 0.05 * (15 * jnp.sin(x[0]) + 3.0 * (a - 1)), -8, 8)
            return x.at[0].set((x[0] + 0.05 * v + jnp.pi) % (2 * jnp.pi) - jnp.pi).at[1].set(v)
        force, sin, cos = 10.0 * (a % 2) - 5, jnp.sin(x[2]), jnp.cos(x[2])
        push = (force + 0.05 * x[3] ** 2 * sin) / 1.1
        turn = (9.8 * sin - cos * push) / (0.5 * (4 / 3 - 0.1 * cos ** 2 / 1.1))
        return x + 0.02 * jnp.stack([x[1], push - 0.05 * turn * cos / 1.1, x[3], turn])

    def one(key, state):
        k1, k2 = jax.random.split(key)
        x, t = state
        x, t = move(x, jax.random.randint(k1, (), 0, 4)), t + 1
        done = (jnp.abs(x[0]) > 0.9) | (jnp.abs(x[2]) > 0.21) | (t >= 20)
        fresh = begin(k2)
        return jax.tree.map(lambda a, b: jnp.where(done, a, b), fresh, (x, t)), (x[0], done)

    def run(seed):
        first, key = jax.random.split(jax.random.key(seed))

        def step(state, key):
            return jax.vmap(one)(jax.random.split(key, batch), state)
        return lax.scan(step, jax.vmap(begin)(jax.random.split(first, batch)), jax.random.split(key, steps))
    return run, [([], 99)]


def board(d):
    """Stones set by turns on a batch of boards: legal places, a draw among them, rows in four directions"""
    batch, n, steps = d.size(1, 64), d.randint(3, 9), d.size(2, 16)
    need = 3

    def won(mine):
        wide = jnp.pad(mine, need)
        ends = [sum(jnp.roll(wide, (-k * a, -k * b), (0, 1)).astype(jnp.int32) for k in range(need)) == need
                for a, b in TURNS]
        return jnp.any(jnp.stack(ends))

    def one(key, state):
        cells, player, over = state
        scores = jnp.where(cells.reshape(-1) == 0, 0.0, -1e9)
        at = jax.random.categorical(key, scores)
        put = cells.reshape(-1).at[at].set(player).reshape(n, n)
        cells = jnp.where(over, cells, put)
        over = over | won(cells == player) | jnp.all(cells != 0)
        return (cells, -player, over), jnp.where(over, player, 0)

    def run(seed):
        state = jnp.zeros((batch, n, n), jnp.int32), jnp.ones(batch, jnp.int32), jnp.zeros(batch, bool)
        return lax.scan(lambda s, k: jax.vmap(one)(jax.random.split(k, batch), s), state,
                        jax.random.split(jax.random.key(seed), steps))
    return run, [([], 99)]


def slid(d):
    """Numbers pushed to one side on a batch of boards and merged, the side known at run time"""
    batch, n = d.size(1, 300), d.randint(3, 6)

    def push(row):
        def join(carry, x):
            out, at, open_ = carry
            same = open_ & (x > 0) & (out[jnp.maximum(at - 1, 0)] == x)
            out = jnp.where(x == 0, out, jnp.where(same, out.at[at - 1].add(1), out.at[at].set(x)))
            at = at + ((x > 0) & ~same)
            return (out, at, jnp.where(x > 0, ~same, open_)), None
        return lax.scan(join, (jnp.zeros_like(row), 0, False), row)[0][0]

    def one(cells, side):
        turned = lax.switch(side, [lambda c, k=k: jnp.rot90(c, k) for k in range(4)], cells)
        pushed = jax.vmap(push)(turned)
        return lax.switch(side, [lambda c, k=k: jnp.rot90(c, -k) for k in range(4)], pushed)
    return jax.vmap(one), [([batch, n, n], 4), ([batch], 4)]


def joints(d):
    """A chain of rotations as quaternions with offsets, its end's pose as a logarithm, perhaps by the angles"""
    batch, links, slope = d.size(1, 300), d.randint(2, 7), d.likely(0.5)

    def times(a, b):
        return jnp.concatenate([a[:1] * b[:1] - a[1:] @ b[1:], a[0] * b[1:] + b[0] * a[1:] + jnp.cross(a[1:], b[1:])])

    def turned(q, v):
        t = 2 * jnp.cross(q[1:], v)
        return v + q[0] * t + jnp.cross(q[1:], t)

    def end(angles, offsets):
        q, at = jnp.eye(1, 4, dtype=angles.dtype)[0], jnp.zeros(3, angles.dtype)
        for k in range(links):
            half = angles[k] / 2
            part = jnp.zeros(4, angles.dtype).at[0].set(jnp.cos(half)).at[1 + k % 3].set(jnp.sin(half))
            at, q = at + turned(q, offsets[k]), times(q, part)
        square = q[1:] @ q[1:]
        small = square < 1e-6
        size = jnp.sqrt(jnp.where(small, 1.0, square))
        factor = jnp.where(small, 2 / q[0], 2 * jnp.arctan2(size, q[0]) / size)
        return jnp.concatenate([at, factor * q[1:]])
    one = jax.jacfwd(end) if slope else end
    return lambda a, o: jax.vmap(one, (0, None))(a, o), [[batch, links], [links, 3]]


def spline(d):
    """A rational-quadratic spline with bins of its own for every value, and the logarithm of its slope"""
    batch, f, bins = d.size(1, 500), d.randint(1, 8), d.randint(3, 10)

    def one(x, w, h, s):
        def knots(z):
            z = 0.01 + (1 - 0.01 * bins) * nn.softmax(z)
            return jnp.pad(jnp.cumsum(z), (1, 0)) * 4 - 2
        xs, ys, slopes = knots(w), knots(h), nn.softplus(s) + 0.01
        k = jnp.clip(jnp.searchsorted(xs, x) - 1, 0, bins - 1)
        wide, high = xs[k + 1] - xs[k], ys[k + 1] - ys[k]
        t, mean = (jnp.clip(x, -2, 2) - xs[k]) / wide, high / wide
        u = t * (1 - t)
        below = mean + (slopes[k + 1] + slopes[k] - 2 * mean) * u
        y = ys[k] + high * (mean * t * t + slopes[k] * u) / below
        slope = mean ** 2 * (slopes[k + 1] * t * t + 2 * mean * u + slopes[k] * (1 - t) ** 2) / below ** 2
        inside = jnp.abs(x) < 2
        return jnp.where(inside, y, x), jnp.where(inside, jnp.log(slope), 0)
    each = jax.vmap(jax.vmap(one))
    return lambda x, w, h, s: each(x, w, h, s), [[batch, f], [batch, f, bins], [batch, f, bins], [batch, f, bins + 1]]


def pairs(d):
    """Particles in a periodic box: forces as the gradient of a smoothed pair energy, some steps of their motion"""
    n, dim, steps = d.size(4, 200), d.randint(2, 3), d.randint(1, 5)

    def energy(x):
        r = x[:, None] - x[None]
        r = r - 4 * jnp.round(r / 4)
        square = (r * r).sum(-1)
        apart = jnp.where(jnp.eye(n, dtype=bool), 1.0, square) + 0.5
        close = (square < 2.25) & ~jnp.eye(n, dtype=bool)
        sixth = 1 / apart ** 3
        return 0.5 * jnp.where(close, (sixth * sixth - sixth) * (1 - square / 2.25) ** 2, 0).sum()

    def run(x, v):
        def step(_, state):
            x, v, force = state
            v = v + 0.005 * force
            x = jnp.mod(x + 0.01 * v, 4)
            force = -jax.grad(energy)(x)
            return x, v + 0.005 * force, force
        return lax.fori_loop(0, steps, step, (x, v, -jax.grad(energy)(x)))
    return run, [[n, dim], [n, dim]]


def worlds(d):
    kinds = [rollout, board, slid, joints, joints, spline, spline, pairs]
    return drawn_layer(d, kinds, [jnp.float32] * 6 + [jnp.float64], gradients=0.2)
