"""Functions of jax.numpy, jax.scipy and jax.random, each of arrays of random sizes."""

import jax
import jax.numpy as jnp
import jax.scipy as jsp
import numpy as np
from jax import lax, random

from random_programs.draw import Drawn, argument, described, gradient

TYPES = [np.float32] * 4 + [np.float64]
WHOLE = [np.int32, np.int32, np.uint32, np.int16, np.int8, np.uint8, np.int64]


def along(a, k, part):
    """The index that takes `part` of dim k."""
    return tuple(part if j == k else slice(None) for j in range(a.ndim))


# Of an array of floats: (array, dim, a number from 1 to 9) -> result
OF_ONE = {
    "cov": lambda a, k, n: jnp.cov(a.reshape(a.shape[0], -1)),
    "corrcoef": lambda a, k, n: jnp.corrcoef(a.reshape(a.shape[0], -1)),
    "gradient": lambda a, k, n: jnp.gradient(a, axis=k),
    "gradient of all": lambda a, k, n: jnp.stack(jnp.gradient(a)) if a.ndim > 1 else jnp.gradient(a),
    "trapezoid": lambda a, k, n: jnp.trapezoid(a, dx=0.1, axis=k),
    "unwrap": lambda a, k, n: jnp.unwrap(a * 3, axis=k),
    "diff": lambda a, k, n: jnp.diff(a, n=min(n % 3 + 1, a.shape[k] - 1), axis=k),
    "reflect": lambda a, k, n: jnp.pad(a, [(min(n, s - 1), min(n // 2, s - 1)) for s in a.shape], mode="reflect"),
    "symmetric": lambda a, k, n: jnp.pad(a, [(min(n, s), min(n // 2, s)) for s in a.shape], mode="symmetric"),
    "wrap": lambda a, k, n: jnp.pad(a, [(min(n, s), min(n // 2, s)) for s in a.shape], mode="wrap"),
    "edge": lambda a, k, n: jnp.pad(a, n, mode="edge"), "ramp": lambda a, k, n: jnp.pad(a, n, mode="linear_ramp"),
    "tril": lambda a, k, n: jnp.tril(a, n - 5) if a.ndim > 1 else a,
    "rot90": lambda a, k, n: jnp.rot90(a, n) if a.ndim > 1 else a,
    "trace": lambda a, k, n: jnp.trace(a) if a.ndim > 1 else a,
    "diagonal": lambda a, k, n: jnp.diagonal(a, axis1=-2, axis2=-1) * 2 if a.ndim > 1 else a,
    "nanmean": lambda a, k, n: jnp.nanmean(jnp.where(a > 1, jnp.nan, a), axis=k),
    "nanmax": lambda a, k, n: jnp.nanmax(jnp.where(a > 1, jnp.nan, a), axis=k),
    "ptp": lambda a, k, n: jnp.ptp(a, axis=k),
    "average": lambda a, k, n: jnp.average(a, axis=k, weights=jnp.arange(1.0, a.shape[k] + 1, dtype=a.dtype)),
    "any and all": lambda a, k, n: (jnp.any(a > 1, axis=k), jnp.all(a > -3, axis=k)),
    "count": lambda a, k, n: jnp.count_nonzero(a > 0, axis=k).astype(jnp.int32),
    "where it is": lambda a, k, n: (
        jnp.nonzero(a.ravel() > 1, size=max(1, a.size // 4), fill_value=0)[0].astype(jnp.int32)),
    "percentile": lambda a, k, n: jnp.percentile(a, 10.0 * n, axis=k),
    "softmax of what is largest": lambda a, k, n: (
        jax.nn.softmax(jnp.where(a < a.mean(k, keepdims=True), -jnp.inf, a), axis=k)),
    "one hot": lambda a, k, n: jax.nn.one_hot(jnp.clip(a.ravel()[:4000] * 3, 0, n), n + 1, dtype=a.dtype),
    "vander": lambda a, k, n: jnp.vander(a.ravel()[:5000], n),
    "norm": lambda a, k, n: jnp.linalg.norm(a, ord=n % 4 + 1 if a.ndim == 1 else None, axis=k),
    "sliding": lambda a, k, n: jnp.stack([jnp.roll(a, i, axis=k) for i in range(n)]).max(0),
    "shifted": lambda a, k, n: a.at[along(a, k, slice(1, None))].add(0.5 * a[along(a, k, slice(None, -1))]),
    "every second": lambda a, k, n: jnp.flip(a)[along(a, k, slice(None, None, 2))] + 1,
    "split": lambda a, k, n: tuple(x.sum(k) for x in jnp.array_split(a, min(n, a.shape[k]), axis=k)),
    "tile": lambda a, k, n: jnp.tile(a[:200], [n if j == k else 1 for j in range(a.ndim)]) if n < 4 else a * n,
    "repeat": lambda a, k, n: jnp.repeat(a[:1000 // n], n, axis=0) + 1,
    "polyval": lambda a, k, n: jnp.polyval(jnp.arange(1.0, n + 1, dtype=a.dtype), a * 0.5),
    "logsumexp": lambda a, k, n: jsp.special.logsumexp(a, axis=k),
    "entropy": lambda a, k, n: jsp.special.entr(jax.nn.softmax(a, axis=k)).sum(k),
    "masked mean": lambda a, k, n: jnp.mean(a, axis=k, where=a > 0),
    "standardize": lambda a, k, n: jax.nn.standardize(a, axis=k), "fftshift": lambda a, k, n: jnp.fft.fftshift(a) * 2,
    "frexp": lambda a, k, n: jnp.frexp(a)[0], "modf": lambda a, k, n: jnp.modf(a * n),
    "divmod": lambda a, k, n: jnp.divmod(a, 0.1 * n),
    "rounding": lambda a, k, n: (jnp.round(a * n), jnp.floor(a * n), jnp.trunc(a * n), jnp.rint(a)),
    "nextafter": lambda a, k, n: jnp.nextafter(a, a + 1),
    "signs": lambda a, k, n: jnp.copysign(a, -a) * jnp.signbit(a),
}

# Of two arrays that broadcast: (array, another, a number) -> result
OF_TWO = {
    "outer": lambda a, b, n: jnp.outer(a.ravel()[:500], b.ravel()[:500]),
    "kron": lambda a, b, n: jnp.kron(a.ravel()[:300], b.ravel()[:300]),
    "cross": lambda a, b, n: (
        jnp.cross(a.ravel()[:a.size // 3 * 3].reshape(-1, 3), b.ravel()[:a.size // 3 * 3].reshape(-1, 3)) if b.size
        == a.size and a.size >= 3 else a * b),
    "logaddexp": lambda a, b, n: jnp.logaddexp(a, b), "hypot": lambda a, b, n: jnp.hypot(a, b),
    "arctan2": lambda a, b, n: jnp.arctan2(a, b), "power": lambda a, b, n: jnp.power(jnp.abs(a) + 0.1, b),
    "fmod": lambda a, b, n: jnp.fmod(a * 5, jnp.abs(b) + 0.5),
    "remainder": lambda a, b, n: jnp.remainder(a * 5, jnp.abs(b) + 0.5),
    "floor divide": lambda a, b, n: jnp.floor_divide(a * 5, jnp.abs(b) + 0.5),
    "heaviside": lambda a, b, n: jnp.heaviside(a, b), "isclose": lambda a, b, n: jnp.isclose(a, b, rtol=0.3),
    "select": lambda a, b, n: jnp.select([a > 1, b > 1, a < b], [a, b * 2, a * b], 0.5),
    "piecewise": lambda a, b, n: jnp.where(a < 0, jnp.expm1(a), jnp.where(a < b, a, jnp.log1p(jnp.abs(b)))),
    "distances": lambda a, b, n: (
        jnp.sqrt(((a.reshape(-1)[:300, None] - b.reshape(-1)[None, :300]) ** 2) + 1e-3).sum(1)),
    "nearest": lambda a, b, n: (
        jnp.argmin(jnp.abs(a.reshape(-1)[:2000, None] - b.reshape(-1)[None, :100]), axis=1).astype(jnp.int32)),
    "huber": lambda a, b, n: jnp.where(jnp.abs(a - b) < 1, 0.5 * (a - b) ** 2, jnp.abs(a - b) - 0.5).mean(),
    "cosine": lambda a, b, n: (a * b).sum(-1) / (jnp.linalg.norm(a, axis=-1) * jnp.linalg.norm(b, axis=-1) + 1e-3),
    "convolve": lambda a, b, n: (
        jnp.convolve(a.ravel()[:5000], b.ravel()[:n + 2], mode=["full", "same", "valid"][n % 3])),
    "complex": lambda a, b, n: lax.complex(a, b) * lax.complex(b, a) + lax.complex(b, b),
    "complex abs": lambda a, b, n: jnp.abs(jnp.exp(lax.complex(a * 0.3, b))),
    "meshgrid": lambda a, b, n: sum(jnp.meshgrid(a.ravel()[:400], b.ravel()[:200], indexing="ij" if n % 2 else "xy")),
    "lerp": lambda a, b, n: a + 0.1 * n * (b - a),
    "max of both": lambda a, b, n: (jnp.maximum(a, b), jnp.minimum(a, b), a > b),
}

# Of whole numbers: (array, another, a number) -> result
OF_WHOLE = {
    "popcount": lambda a, b, n: lax.population_count(a), "clz": lambda a, b, n: lax.clz(a),
    "xor": lambda a, b, n: a ^ (b >> 1), "hash": lambda a, b, n: (a ^ (a >> 3)) * 40 + b,
    "mod": lambda a, b, n: a % n, "div": lambda a, b, n: a // n,
    "divmod": lambda a, b, n: jnp.divmod(a, jnp.maximum(b, 1)),
    "gcd": lambda a, b, n: jnp.gcd(a.ravel()[:300], b.ravel()[:300]) if b.size == a.size else a + b,
    "shifts": lambda a, b, n: (a << (n % 5)) | (a >> (n % 3)),
    "bits": lambda a, b, n: (a[..., None] >> jnp.arange(7, dtype=a.dtype)) & 1,
    "sum": lambda a, b, n: a.sum(-1, dtype=a.dtype) + b.max().astype(a.dtype),
    "parity": lambda a, b, n: lax.reduce_xor(a, (a.ndim - 1,)),
    "bincount": lambda a, b, n: (
        jnp.bincount(jnp.clip(a.ravel(), 0, 50).astype(jnp.int32), length=51).astype(jnp.int32)),
    "cumsum": lambda a, b, n: jnp.cumsum(a, axis=-1, dtype=a.dtype),
    "scaled": lambda a, b, n: (a.astype(jnp.float32) * 0.01 * n).astype(a.dtype),
    "saturated": lambda a, b, n: jnp.clip(a.astype(jnp.int32) + b.astype(jnp.int32), -100, 100).astype(jnp.int8),
    "dequantised": lambda a, b, n: (a.astype(jnp.float32) - 3) * b.astype(jnp.float32).mean(),
    "equal": lambda a, b, n: (a == b).sum(0, dtype=jnp.int32),
    "interleave": lambda a, b, n: jnp.stack([a, a + 1], -1).reshape(*a.shape[:-1], -1),
    "power": lambda a, b, n: a ** (n % 4), "packed": lambda a, b, n: jnp.packbits(a > b),
    "unpacked": lambda a, b, n: jnp.unpackbits(a.astype(jnp.uint8), axis=-1),
}

# Of floats from what a function takes: (positive array, any array) -> result
SPECIAL = {
    "gammaln": lambda p, a: jsp.special.gammaln(p), "digamma": lambda p, a: jsp.special.digamma(p),
    "erf": lambda p, a: jsp.special.erf(a), "erfc": lambda p, a: jsp.special.erfc(a),
    "erfinv": lambda p, a: jsp.special.erfinv(jnp.tanh(a)), "ndtr": lambda p, a: jsp.special.ndtr(a),
    "log_ndtr": lambda p, a: jsp.special.log_ndtr(a), "ndtri": lambda p, a: jsp.special.ndtri(jax.nn.sigmoid(a)),
    "i0e": lambda p, a: jsp.special.i0e(a), "i1": lambda p, a: jsp.special.i1(a),
    "xlogy": lambda p, a: jsp.special.xlogy(p, p + 1),
    "gammainc": lambda p, a: jsp.special.gammainc(p[:2000], p[:2000] + 0.5),
    "betainc": lambda p, a: jsp.special.betainc(p[:1000] + 0.5, p[:1000] + 1, jax.nn.sigmoid(a[:1000])),
    "zeta": lambda p, a: jsp.special.zeta(p + 1.1, 1.0), "polygamma": lambda p, a: jsp.special.polygamma(1, p + 0.5),
    "expit": lambda p, a: jsp.special.expit(a), "normal": lambda p, a: jsp.stats.norm.logpdf(a, 0.1, 1.2).sum(),
    "beta": lambda p, a: jsp.stats.beta.logpdf(jax.nn.sigmoid(a), p + 0.5, 2.0),
    "gamma": lambda p, a: jsp.stats.gamma.logpdf(p + 0.1, 2.5), "student": lambda p, a: jsp.stats.t.logpdf(a, p + 1),
    "poisson": lambda p, a: jsp.stats.poisson.logpmf(jnp.floor(p * 4), 2.0),
    "laplace": lambda p, a: jsp.stats.laplace.cdf(a), "cauchy": lambda p, a: jsp.stats.cauchy.logpdf(a),
    "logistic": lambda p, a: jsp.stats.logistic.logpdf(a),
    "arcs": lambda p, a: jnp.arcsin(jnp.tanh(a)) + jnp.arccos(jnp.tanh(a) * 0.9) + jnp.arctan(a),
    "hyperbolic": lambda p, a: jnp.sinh(a) + jnp.cosh(a) * jnp.arcsinh(a), "arccosh": lambda p, a: jnp.arccosh(p + 1),
    "arctanh": lambda p, a: jnp.arctanh(jnp.tanh(a) * 0.99), "tan": lambda p, a: jnp.tan(a * 0.4),
    "cbrt": lambda p, a: jnp.cbrt(a), "exp2": lambda p, a: jnp.exp2(a) + jnp.log2(p + 0.1) + jnp.log10(p + 0.1),
    "sinc": lambda p, a: jnp.sinc(a), "softplus": lambda p, a: jax.nn.softplus(a),
    "mish": lambda p, a: jax.nn.mish(a), "celu": lambda p, a: jax.nn.celu(a), "selu": lambda p, a: jax.nn.selu(a),
    "log_sigmoid": lambda p, a: jax.nn.log_sigmoid(a), "glu": lambda p, a: jax.nn.glu(jnp.stack([a, p], 0), 0),
    "hard_swish": lambda p, a: jax.nn.hard_swish(a),
}

SAMPLES = {
    "uniform": lambda r, s: random.uniform(r, s), "normal": lambda r, s: random.normal(r, s),
    "randint": lambda r, s: random.randint(r, s, -5, 117), "bernoulli": lambda r, s: random.bernoulli(r, 0.3, s),
    "categorical": lambda r, s: random.categorical(r, jnp.arange(7.0), shape=s).astype(jnp.int32),
    "exponential": lambda r, s: random.exponential(r, s), "gumbel": lambda r, s: random.gumbel(r, s),
    "laplace": lambda r, s: random.laplace(r, s), "truncated": lambda r, s: random.truncated_normal(r, -1.0, 2.0, s),
    "permutation": lambda r, s: random.permutation(r, int(np.prod(s))).astype(jnp.int32),
    "dropout": lambda r, s: jnp.where(random.bernoulli(r, 0.9, s), 1 / 0.9, 0.0),
    "bits": lambda r, s: random.bits(r, s), "rademacher": lambda r, s: random.rademacher(r, s),
    "split": lambda r, s: random.split(r, int(np.prod(s)) // 4 + 1), "cauchy": lambda r, s: random.cauchy(r, s),
    "bytes": lambda r, s: random.bits(r, s, jnp.uint8), "halves": lambda r, s: random.normal(r, s, jnp.bfloat16),
    "half uniform": lambda r, s: random.uniform(r, s, jnp.float16),
    "ball": lambda r, s: random.ball(r, 3, shape=(int(np.prod(s)) // 3 + 1,)),
}


def numpy_of_whole(d, x):
    a = argument(x, d.choice(WHOLE), high=200 if d.likely(0.5) else 100)
    b = argument([n if d.likely(0.7) else 1 for n in x], a.dtype, high=a.high)
    name, n = d.choice(list(OF_WHOLE)), d.randint(1, 9)
    return Drawn(f"{name} {n} {described([a, b])}", lambda a, b: OF_WHOLE[name](a, b, n), [a, b])


def numpy(d):
    x = d.sizes(d.randint(1, 4), d.elements(100, 200_000))
    kind = d.choice(["one", "one", "two", "whole"])
    if kind == "whole":
        return numpy_of_whole(d, x)
    a, n = argument(x, d.choice(TYPES)), d.randint(1, 9)
    if kind == "one":
        name, k = d.choice(list(OF_ONE)), d.randrange(len(x))
        drawn = Drawn(f"{name} {n} [{k}] {described([a])}", lambda a: OF_ONE[name](a, k, n), [a])
    else:
        name, b = d.choice(list(OF_TWO)), argument([s if d.likely(0.7) else 1 for s in x], a.dtype)
        drawn = Drawn(f"{name} {n} {described([a, b])}", lambda a, b: OF_TWO[name](a, b, n), [a, b])
    return gradient(drawn) if d.likely(0.2) else drawn


def special(d):
    name, n, dtype = d.choice(list(SPECIAL)), d.elements(50, 50_000), d.choice(TYPES)
    arguments = [argument([n], dtype, positive=True), argument([n], dtype)]
    drawn = Drawn(f"{name} {described(arguments)}", SPECIAL[name], arguments)
    return gradient(drawn) if d.likely(0.25) else drawn


def samples(d):
    name, shape = d.choice(list(SAMPLES)), tuple(d.sizes(d.randint(1, 3), d.elements(10, 200_000)))
    key = argument([2], np.uint32, high=2**31)
    return Drawn(f"{name} {list(shape)}", lambda key: SAMPLES[name](random.wrap_key_data(key), shape), [key])
