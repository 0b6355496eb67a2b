"""Arrays of many small dims: states of qubits and what acts on some of them, butterflies, transposes of twos."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from random_programs.draw import Drawn, argument, gradient, is_float

SQUARE = 0.5 ** 0.5


def applied(state, gate, places):
    """A gate [2]*2k on k of the state's dims, which stay where they are."""
    k = len(places)
    return jnp.moveaxis(jnp.tensordot(gate, state, (list(range(k, 2 * k)), places)), range(k), places)


def by_letters(state, gate, places):
    """The same, as one einsum."""
    n, k = state.ndim, len(places)
    old = [chr(97 + j) for j in range(n)]
    new = [chr(65 + places.index(j)) if j in places else c for j, c in enumerate(old)]
    of_gate = [chr(65 + j) for j in range(k)] + [old[p] for p in places]
    return jnp.einsum(f"{''.join(of_gate)},{''.join(old)}->{''.join(new)}", gate, state)


def by_parts(state, gate, place):
    """The same for one dim, from its two slices."""
    zero, one = jnp.take(state, 0, axis=place), jnp.take(state, 1, axis=place)
    return jnp.stack([gate[0, 0] * zero + gate[0, 1] * one, gate[1, 0] * zero + gate[1, 1] * one], place)


def at(n, fixed):
    return tuple(fixed.get(j, slice(None)) for j in range(n))


def controlled(state, gate, control, place):
    """On one dim, where the other is 1."""
    where = at(state.ndim, {control: 1})
    return state.at[where].set(applied(state[where], gate, [place - (control < place)]))


def swapped(state, p, q):
    return jnp.swapaxes(state, p, q)


def butterflies(a):
    """Walsh-Hadamard along the last dim, whose size is a power of two."""
    n, shape, h = a.shape[-1], a.shape, 1
    while h < n:
        a = a.reshape(-1, n // (2 * h), 2, h)
        a = jnp.stack([a[:, :, 0] + a[:, :, 1], a[:, :, 0] - a[:, :, 1]], 2) * jnp.asarray(SQUARE, a.dtype)
        h *= 2
    return a.reshape(shape)


def fft(a):
    """Cooley and Tukey over the last dim, in time, as reshapes."""
    n = a.shape[-1]
    if n == 1:
        return a
    even, odd = fft(a[..., ::2]), fft(a[..., 1::2])
    odd = odd * jnp.asarray(np.exp(-2j * np.pi * np.arange(n // 2) / n), a.dtype)
    return jnp.concatenate([even + odd, even - odd], -1)


def phases(state, angles):
    """A diagonal gate: the sum of the angles of the dims that are 1."""
    n = state.ndim
    bits = [lax.broadcasted_iota(angles.dtype, state.shape, j) for j in range(n)]
    angle = sum(b * angles[j] for j, b in enumerate(bits))
    return state * lax.complex(jnp.cos(angle), jnp.sin(angle)).astype(state.dtype)


# ---- (a draw, the number of dims) -> (text, function of (state, a gate of [2,2], one of [2,2,2,2])) ------------------
def one_gate(d, n):
    way, p = d.choice([applied, by_letters, by_parts]), d.randrange(n)
    return f"gate {p} {way.__name__}", lambda s, g, h: way(s, g, p if way is by_parts else [p])


def two_gate(d, n):
    way, places = d.choice([applied, by_letters]), d.sample(range(n), 2)
    return f"gate {places} {way.__name__}", lambda s, g, h: way(s, h, places)


def control(d, n):
    c, p = d.sample(range(n), 2)
    return f"controlled {c} {p}", lambda s, g, h: controlled(s, g, c, p)


def swap(d, n):
    p, q = d.sample(range(n), 2)
    return f"swap {p} {q}", lambda s, g, h: swapped(s, p, q)


def flip(d, n):
    p = d.randrange(n)
    return f"flip {p}", lambda s, g, h: jnp.flip(s, p)


def sign(d, n):
    p, q = d.sample(range(n), 2)
    return f"sign {p} {q}", lambda s, g, h: s.at[at(n, {p: 1, q: 1})].multiply(-1)


def reorder(d, n):
    order = d.sample(range(n), n)
    return f"reorder {order}", lambda s, g, h: jnp.transpose(s, order)


def circuit(d, n):
    steps = [d.choice([one_gate, one_gate, two_gate, control, control, swap, flip, sign])(d, n)
             for _ in range(d.choice([1, 1, 2, 3, 6]))]

    def run(s, g, h):
        for _, step in steps:
            s = step(s, g, h)
        return s
    return ", ".join(text for text, _ in steps), run


def layers(d, n):
    """The same gates on all dims, in a loop."""
    count = d.randint(2, 5)

    def layer(_, s, g):
        for p in range(n):
            s = applied(s, g * 0.7, [p])
        for p in range(n - 1):
            s = s.at[at(n, {p: 1, p + 1: 1})].multiply(-1)
        return s
    return f"{count} layers", lambda s, g, h: lax.fori_loop(0, count, lambda k, s: layer(k, s, g), s)


def expectation(d, n):
    places = sorted(d.sample(range(n), d.randint(1, 2)))

    def run(s, g, h):
        p = jnp.real(s * jnp.conj(s)) if jnp.iscomplexobj(s) else s * s
        one = p.sum(tuple(j for j in range(n) if j not in places))
        signs = [lax.broadcasted_iota(p.dtype, p.shape, j) for j in range(n)]
        return one, (p * (n - 2 * sum(signs))).sum()
    return f"expectation {places}", run


def density(d, n):
    kept = sorted(d.sample(range(n), min(n - 1, d.randint(1, 4))))
    rest = [j for j in range(n) if j not in kept]
    return f"density {kept}", lambda s, g, h: jnp.tensordot(s, jnp.conj(s), (rest, rest))


def overlap(d, n):
    p = d.randrange(n)
    return f"overlap {p}", lambda s, g, h: jnp.vdot(s, applied(s, g, [p]))


def measured(d, n):
    p = d.randrange(n)

    def run(s, g, h):
        chance = (jnp.abs(s) ** 2).sum(tuple(j for j in range(n) if j != p))
        shape = [2 if j == p else 1 for j in range(n)]
        kept = (chance == chance.max()).reshape(shape)
        return jnp.where(kept, s, 0) * lax.rsqrt(chance.max()).astype(s.dtype)
    return f"measured {p}", run


def phase(d, n):
    return "phases", lambda s, g, h: phases(s, jnp.real(g).ravel()[jnp.arange(n) % 4])


def pair(d, n):
    """A state as two real arrays, turned by an angle about each of three axes."""
    p, kind = d.randrange(n), d.choice("xyz")

    def run(s, g, h):
        re, im = jnp.real(s), jnp.roll(jnp.real(s), 1, 0)
        c, t = jnp.cos(jnp.real(g[0, 0])), jnp.sin(jnp.real(g[0, 0]))
        other_re, other_im = jnp.flip(re, p), jnp.flip(im, p)
        sgn = 1 - 2 * lax.broadcasted_iota(re.dtype, re.shape, p)
        if kind == "x":
            return c * re + t * other_im, c * im - t * other_re
        if kind == "y":
            return c * re - sgn * t * other_re, c * im - sgn * t * other_im
        return c * re + sgn * t * im, c * im - sgn * t * re
    return f"pair {kind} {p}", run


ON_STATES = [one_gate, one_gate, two_gate, two_gate, control, circuit, circuit, circuit, layers, expectation, density,
             overlap, measured, phase, pair, reorder]


def state(d):
    n = max(4, round(np.log2(d.elements(16, 260_000))))
    dtype = d.choice([np.complex64] * 3 + [np.float32] * 2 + [np.float64])
    text, run = d.choice(ON_STATES)(d, n)
    arguments = [argument([2] * n, dtype), argument([2, 2], dtype), argument([2] * 4, dtype)]
    return Drawn(f"{text} {np.dtype(dtype).name}[2]*{n}", run, arguments)


def mixed(d):
    """Dims of 2, 3 and 4: transposes, and sums and reversals of some."""
    x, most = [], d.elements(200, 260_000)
    while np.prod(x) < most:
        x.append(d.choice([2, 2, 3, 4]))
    n = len(x)
    order, some = d.sample(range(n), n), tuple(sorted(d.sample(range(n), d.randint(1, min(n, 4)))))
    kind = d.choice(["transpose", "transpose", "transpose and add", "sum", "flip", "largest", "merge", "outer", "roll"])
    dtype = d.choice([np.float32] * 3 + [np.float64, np.int8, np.int16, np.complex64, jnp.bfloat16])
    run = {"transpose": lambda a: jnp.transpose(a, order), "sum": lambda a: a.sum(some, dtype=a.dtype),
           "transpose and add": lambda a: jnp.transpose(a, order) + jnp.transpose(a * 2, order),
           "flip": lambda a: jnp.flip(a, some), "largest": lambda a: jnp.real(a).max(some),
           "merge": lambda a: jnp.transpose(a, order).reshape(-1, x[order[-1]]).cumsum(-1, dtype=a.dtype),
           "outer": lambda a: jnp.expand_dims(a.sum(some, dtype=a.dtype), some) * a,
           "roll": lambda a: jnp.roll(a, 1, some)}[kind]
    return Drawn(f"{kind} {order} {some} {np.dtype(dtype).name}{x}", run, [argument(x, dtype)])


def transform(d):
    n, rows = 2 ** d.randint(3, 12), d.choice([1, 3, 16, 50])
    kind = d.choice(["butterflies", "fft", "digits reversed"])
    dtype = np.complex64 if kind == "fft" else d.choice([np.float32, np.float64, np.int32])

    def reversed_digits(a):
        bits = [2] * (a.shape[-1].bit_length() - 1)
        return a.reshape(-1, *bits).transpose(0, *range(len(bits), 0, -1)).reshape(a.shape)
    run = {"butterflies": butterflies, "fft": fft, "digits reversed": reversed_digits}[kind]
    return Drawn(f"{kind} {np.dtype(dtype).name}[{rows},{n}]", run, [argument([rows, n], dtype)])


def quantum(d):
    drawn = d.choice([state] * 5 + [mixed] * 3 + [transform])(d)
    return gradient(drawn) if is_float(drawn.arguments[0].dtype) and d.likely(0.2) else drawn
