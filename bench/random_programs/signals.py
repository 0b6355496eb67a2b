"""Images, signals and grids: what resizes, filters, warps, transforms and steps through them."""

import jax
import jax.numpy as jnp
import jax.scipy as jsp
import numpy as np
from jax import lax

from random_programs.draw import Drawn, argument, described, gradient

BATCHES = [1, 1, 2, 3, 8]
CHANNELS = [1, 3, 3, 4, 16]


# ---- images: float32[batch, height, width, channels]; (a draw, shape) -> (text, function of the image) --------------
def resize(d, x):
    shape = (x[0], d.size(4, 300), d.size(4, 300), x[3])
    method = d.choice(["nearest", "linear", "cubic", "lanczos3"])
    return f"resize to {list(shape)} {method}", lambda a: jax.image.resize(a, shape, method)


def warp(d, x):
    angle, scale, mode = d.uniform(-1, 1), d.uniform(0.5, 2), d.choice(["constant", "nearest", "wrap", "reflect"])
    order = d.randint(0, 1)

    def one(a):
        i, j = jnp.meshgrid(jnp.arange(x[1], dtype=a.dtype), jnp.arange(x[2], dtype=a.dtype), indexing="ij")
        at = [scale * (i * np.cos(angle) - j * np.sin(angle)), scale * (i * np.sin(angle) + j * np.cos(angle))]
        return jsp.ndimage.map_coordinates(a, at, order, mode=mode)
    return f"warp {mode} {order}", jax.vmap(jax.vmap(one, -1, -1))


def blur(d, x):
    radius = d.randint(1, 4)
    taps = np.exp(-np.arange(-radius, radius + 1) ** 2 / radius).astype(np.float32)
    taps /= taps.sum()

    def along(a, k):
        n, wide = a.shape[k], jnp.pad(a, [(radius, radius) if j == k else (0, 0) for j in range(4)], mode="edge")
        return sum(t * lax.slice_in_dim(wide, i, i + n, axis=k) for i, t in enumerate(taps))
    return f"blur {radius}", lambda a: along(along(a, 1), 2)


def sobel(d, x):
    def run(a):
        p = jnp.pad(a, [(0, 0), (1, 1), (1, 1), (0, 0)], mode="reflect")
        dx = p[:, :, 2:] - p[:, :, :-2]
        dy = p[:, 2:] - p[:, :-2]
        gx = dx[:, :-2] + 2 * dx[:, 1:-1] + dx[:, 2:]
        gy = dy[:, :, :-2] + 2 * dy[:, :, 1:-1] + dy[:, :, 2:]
        return jnp.sqrt(gx * gx + gy * gy + 1e-6)
    return "sobel", run


def dilate(d, x):
    n = d.randint(2, 5)
    return f"dilate {n}", lambda a: lax.reduce_window(a, -jnp.inf, lax.max, (1, n, n, 1), (1, 1, 1, 1), "SAME")


def blocks(d, x):
    q = d.randint(2, 4)
    h, w = x[1] // q * q, x[2] // q * q

    def run(a):
        a = a[:, :h, :w].reshape(x[0], h // q, q, w // q, q, x[3])
        return a.transpose(0, 1, 3, 2, 4, 5).reshape(x[0], h // q, w // q, -1)
    return f"space to depth {q}", run


def patches(d, x):
    q = d.randint(2, 5)
    return f"patches {q}", lambda a: lax.conv_general_dilated_patches(
        a, (q, q), (q, q), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def colour(d, x):
    mix = np.array([[0.3, 0.6, 0.1], [-0.2, -0.3, 0.5], [0.5, -0.4, -0.1]], np.float32)

    def run(a):
        rgb = a[..., :3] if x[3] >= 3 else jnp.repeat(a[..., :1], 3, -1)
        yuv = rgb @ mix.T
        return jnp.clip(jnp.concatenate([yuv, a.max(-1, keepdims=True)], -1) * 128 + 128, 0, 255).astype(jnp.uint8)
    return "colour", run


def equalise(d, x):
    def one(a):
        bins = jnp.clip((jax.nn.sigmoid(a) * 64).astype(jnp.int32), 0, 63)
        counts = jnp.zeros(64).at[bins.ravel()].add(1.0)
        return jnp.cumsum(counts)[bins] / a.size
    return "equalise", jax.vmap(jax.vmap(one, -1, -1))


def crop(d, x):
    h, w = max(1, x[1] // d.randint(1, 3)), max(1, x[2] // d.randint(1, 3))
    return f"crop {h} {w} flipped", lambda a: jnp.where(a.mean() > 0, a[:, -h:, ::-1][:, :, :w], a[:, :h, :w])


def shuffle(d, x):
    q = d.randint(2, 3)

    def run(a):
        a = jnp.concatenate([a * i for i in range(1, q * q + 1)], -1).reshape(x[0], x[1], x[2], q, q, x[3])
        return a.transpose(0, 1, 3, 2, 4, 5).reshape(x[0], x[1] * q, x[2] * q, x[3])
    return f"depth to space {q}", run


IMAGES = [resize, resize, warp, blur, sobel, dilate, blocks, patches, colour, equalise, crop, shuffle]


def image(d):
    places = d.elements(200, 120_000)
    height = max(6, round(places ** 0.5 * d.uniform(0.6, 1.6)))
    x = (d.choice(BATCHES), height, max(6, places // height), d.choice(CHANNELS))
    text, function = d.choice(IMAGES)(d, x)
    drawn = Drawn(f"{text} {list(x)}", function, [argument(x)])
    return gradient(drawn) if d.likely(0.25) else drawn


# ---- signals: float32[batch, length] --------------------------------------------------------------------------------
def frames(a, size, hop):
    starts = jnp.arange(0, a.shape[-1] - size + 1, hop)
    return jax.vmap(lambda s: lax.dynamic_slice_in_dim(a, s, size, -1), out_axes=-2)(starts)


def window_of(n):
    return jnp.asarray(0.5 - 0.5 * np.cos(2 * np.pi * np.arange(n) / n), jnp.float32)


def filtered(a, n):
    """A recursive filter of two taps, sample by sample."""
    def step(carry, v):
        y = v + 0.5 * carry[0] - 0.2 * carry[1]
        return (y, carry[0]), y
    zero = jnp.zeros(a.shape[0], a.dtype)
    return lax.scan(step, (zero, zero), a.T)[1].T


SIGNALS = {
    "spectrum": lambda a, n: jnp.abs(jnp.fft.rfft(a)), "ifft": lambda a, n: jnp.fft.ifft(a * (1 + 0.5j)),
    "low pass": lambda a, n: (
        jnp.fft.irfft(jnp.fft.rfft(a) * (jnp.arange(a.shape[-1] // 2 + 1) < a.shape[-1] // 8), a.shape[-1])),
    "stft": lambda a, n: jnp.abs(jnp.fft.rfft(frames(a, 16 * n, 8 * n) * window_of(16 * n))),
    "frames": lambda a, n: (frames(a, 8 * n, 3 * n) * window_of(8 * n)).sum(-1),
    "overlapped": lambda a, n: (
        jnp.zeros_like(a).at[:, (jnp.arange(a.shape[-1] // n)[:, None] * n // 2 + jnp.arange(n)).ravel()].add( a[:,
        :a.shape[-1] // n * n])),
    "autocorrelation": lambda a, n: jnp.stack([(a[:, k:] * a[:, :a.shape[-1] - k]).mean(-1) for k in range(n)], -1),
    "moving average": lambda a, n: lax.reduce_window(a, 0.0, lax.add, (1, 4 * n), (1, 1), "VALID") / (4 * n),
    "moving median": lambda a, n: jnp.median(jnp.stack([jnp.roll(a, i, -1) for i in range(n | 1)]), axis=0),
    "correlate": lambda a, n: jax.vmap(lambda v: jnp.correlate(v, v[:4 * n], mode="valid"))(a), "filter": filtered,
    "envelope": lambda a, n: lax.cummax(jnp.abs(a), axis=1) - lax.cummin(a, axis=1),
    "mu law": lambda a, n: (
        (jnp.sign(a) * jnp.log1p(255 * jnp.abs(jnp.tanh(a))) / np.log(256.0) * 127).astype(jnp.int8)),
    "haar": lambda a, n: (
        jnp.concatenate([a[:, 0::2][:, :a.shape[1] // 2] + a[:, 1::2], a[:, 0::2][:, :a.shape[1] // 2] - a[:, 1::2]],
        -1)),
    "phase": lambda a, n: jnp.unwrap(jnp.angle(jnp.fft.rfft(a)))[:, :1],
    "cosine transform": lambda a, n: jsp.fft.dct(a),
    "upsampled": lambda a, n: jnp.zeros((a.shape[0], a.shape[1] * n), a.dtype).at[:, ::n].set(a),
    "crossings": lambda a, n: jnp.sum(a[:, 1:] * a[:, :-1] < 0, -1, dtype=jnp.int32),
}


def signal(d):
    name, n = d.choice(list(SIGNALS)), d.randint(2, 9)
    batch = d.choice([1, 1, 2, 5, 16])
    a = argument([batch, max(200, d.elements(300, 200_000) // batch)])
    return Drawn(f"{name} {n} {described([a])}", lambda a: SIGNALS[name](a, n), [a])


# ---- grids: steps of what is computed from neighbours ----------------------------------------------------------------
def neighbours(a, border):
    modes = {"wrapped": "wrap", "held": "edge", "zero": "constant", "mirrored": "reflect"}
    p = jnp.pad(a, 1, mode=modes[border])

    def at(*offsets):
        return p[tuple(slice(1 + o, 1 + o + n) for o, n in zip(offsets, a.shape))]
    return at


def axis_offsets(rank):
    return [tuple(s if j == k else 0 for j in range(rank)) for k in range(rank) for s in (-1, 1)]


def heat(a, v, border):
    at = neighbours(a, border)
    return a + 0.1 * (sum(at(*o) for o in axis_offsets(a.ndim)) - 2 * a.ndim * a), v


def wave(a, v, border):
    at = neighbours(a, border)
    v = v + 0.1 * (sum(at(*o) for o in axis_offsets(a.ndim)) - 2 * a.ndim * a)
    return a + 0.1 * v, v * 0.999


def life(a, v, border):
    at = neighbours((a > 0).astype(jnp.float32), border)
    offsets = [o for o in np.ndindex(*[3] * a.ndim) if o != (1,) * a.ndim]
    count = sum(at(*(k - 1 for k in o)) for o in offsets)
    return jnp.where((count == 3) | ((a > 0) & (count == 2)), 1.0, -1.0), v


def reaction(a, v, border):
    at, bt = neighbours(a, border), neighbours(v, border)
    diffused = [sum(f(*o) for o in axis_offsets(a.ndim)) - 2 * a.ndim * x for f, x in ((at, a), (bt, v))]
    uvv = jnp.tanh(a) * jnp.tanh(v) ** 2
    return a + 0.1 * diffused[0] - uvv + 0.05 * (1 - a), v + 0.05 * diffused[1] + uvv - 0.1 * v


def upwind(a, v, border):
    at = neighbours(a, border)
    first, last = axis_offsets(a.ndim)[:2]
    return a - 0.1 * jnp.where(v > 0, a - at(*first), at(*last) - a), v


def red_and_black(a, v, border):
    at = neighbours(a, border)
    red = sum(lax.broadcasted_iota(jnp.int32, a.shape, k) for k in range(a.ndim)) % 2 == 0
    a = jnp.where(red, sum(at(*o) for o in axis_offsets(a.ndim)) / (2 * a.ndim), a)
    at = neighbours(a, border)
    return jnp.where(red, a, sum(at(*o) for o in axis_offsets(a.ndim)) / (2 * a.ndim) + 0.01 * v), v


GRIDS = {"heat": heat, "wave": wave, "life": life, "reaction": reaction, "upwind": upwind,
         "red and black": red_and_black}


def grid(d):
    rank, name = d.choice([1, 2, 2, 2, 3]), d.choice(list(GRIDS))
    border, steps = d.choice(["wrapped", "held", "zero", "mirrored"]), d.choice([1, 1, 2, 5, 20])
    x = [max(3, n) for n in d.sizes(rank, d.elements(200, 100_000))]
    dtype = d.choice([np.float32] * 4 + [np.float64])

    def run(a, v):
        if steps < 3:
            for _ in range(steps):
                a, v = GRIDS[name](a, v, border)
            return a, v
        return lax.fori_loop(0, steps, lambda _, s: tuple(q.astype(dtype) for q in GRIDS[name](*s, border)), (a, v))
    arguments = [argument(x, dtype), argument(x, dtype)]
    drawn = Drawn(f"{name} {border}, {steps} steps {described(arguments[:1])}", run, arguments)
    return gradient(drawn) if steps < 3 and d.likely(0.2) else drawn
