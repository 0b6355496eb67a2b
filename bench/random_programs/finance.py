"""Paths, trees, options, windows and statistics of prices."""

import jax
import jax.numpy as jnp
import jax.scipy as jsp
import numpy as np
from jax import lax, random

from random_programs.draw import Drawn, argument, described, gradient, is_float

TYPES = [np.float32] * 4 + [np.float64]


def black_scholes(spot, strike, years):
    root = 0.2 * jnp.sqrt(years)
    d1 = (jnp.log(spot / strike) + (0.03 + 0.02) * years) / root
    call = spot * jsp.stats.norm.cdf(d1) - strike * jnp.exp(-0.03 * years) * jsp.stats.norm.cdf(d1 - root)
    return call, call - spot + strike * jnp.exp(-0.03 * years)


def implied(price, spot, strike):
    """The volatility that gives a price: some steps of Newton's."""
    def step(_, v):
        root = jnp.sqrt(v * v + 0.01)
        d1 = jnp.log(spot / strike) / root + 0.5 * root
        value = spot * jsp.stats.norm.cdf(d1) - strike * jsp.stats.norm.cdf(d1 - root)
        return jnp.clip(v - 0.3 * (value - price) / (spot * jsp.stats.norm.pdf(d1) + 0.1), 0.01, 3.0)
    return lax.fori_loop(0, 6, step, jnp.full_like(price, 0.3))


def greeks(spot, strike, years):
    return jax.vmap(jax.value_and_grad(lambda s, k, y: black_scholes(s, k, y)[0], (0, 1, 2)))(spot, strike, years)


def tree(spot, strike, years, steps):
    """American options on a binomial tree, from its leaves to the root."""
    up = jnp.exp(0.2 * jnp.sqrt(years / steps))[..., None]
    chance = (jnp.exp(0.03 * years / steps)[..., None] - 1 / up) / (up - 1 / up)
    k = jnp.arange(steps + 1, dtype=spot.dtype)
    prices = spot[..., None] * up ** (2 * k - steps)
    values = jnp.maximum(strike[..., None] - prices, 0)

    def back(_, s):
        p, v = s
        p = p * up
        held = 0.999 * (chance * jnp.roll(v, -1, -1) + (1 - chance) * v)
        return p, jnp.maximum(held, strike[..., None] - p)
    return lax.fori_loop(0, steps, back, (prices, values))[1][..., 0]


def asian(a, k):
    paths = jnp.exp(jnp.cumsum(a * 0.05, axis=k))
    return jnp.maximum(paths.mean(k) - 1, 0).mean()


def barrier(a, k):
    paths = jnp.cumprod(1 + a * 0.02, axis=k)
    alive = jnp.max(paths, axis=k) < 1.3
    return jnp.where(alive, jnp.maximum(lax.index_in_dim(paths, -1, k, keepdims=False) - 1, 0), 0).mean(), alive


def heston(a, k):
    """Two processes step by step, one of which drives the other."""
    def step(s, z):
        price, var = s
        root = jnp.sqrt(jnp.maximum(var, 0) * 0.01)
        price = price * jnp.exp(-0.005 * var + root * z)
        return (price, var + 0.02 * (0.04 - var) + 0.3 * root * jnp.roll(z, 1, -1)), price
    z = jnp.moveaxis(a, k, 0)
    ones = jnp.ones_like(z[0])
    return lax.scan(step, (ones, 0.04 * ones), z)[1].max(0)


def garch(a, k):
    z = jnp.moveaxis(a, k, 0)
    return lax.scan(lambda v, r: ((0.01 + 0.1 * r * r + 0.8 * v),) * 2, jnp.ones_like(z[0]), z)[1]


def exponential(a, k):
    weights = 0.94 ** jnp.arange(a.shape[k], dtype=a.dtype)[::-1]
    shape = [-1 if j == k else 1 for j in range(a.ndim)]
    return (a * a * weights.reshape(shape)).sum(k) / weights.sum()


def average(a, k, n):
    """Moving, by differences of running sums."""
    sums = jnp.cumsum(a, axis=k)
    m = a.shape[k]
    return (lax.slice_in_dim(sums, n, m, axis=k) - lax.slice_in_dim(sums, 0, m - n, axis=k)) / n


def windows(a, k, n):
    dims = [n if j == k else 1 for j in range(a.ndim)]
    ones = [1] * a.ndim

    def mean(v):
        return lax.reduce_window(v, np.zeros((), v.dtype), lax.add, dims, ones, "VALID") / n
    low = lax.reduce_window(a, np.array(np.inf, a.dtype), lax.min, dims, ones, "VALID")
    return jnp.sqrt(jnp.maximum(mean(a * a) - mean(a) ** 2, 0) + 1e-3), mean(a) - low


def drawdown(a, k):
    value = jnp.cumsum(a, axis=k)
    top = lax.cummax(value, axis=k)
    return (top - value).max(k), jnp.argmax(top - value, k).astype(jnp.int32)


def portfolio(a, w):
    centred = a - a.mean(0)
    cov = centred.T @ centred / a.shape[0]
    w = jax.nn.softmax(w)
    return jnp.sqrt(w @ cov @ w + 1e-3), a @ w, cov @ w / jnp.sqrt(jnp.diagonal(cov) + 1e-3)


def correlations(a):
    z = (a - a.mean(0)) / (a.std(0) + 1e-3)
    return jnp.clip(z.T @ z / a.shape[0], -1, 1)


def bootstrap(a, places):
    """Means of rows that are drawn again and again."""
    return a[places].mean(1)


def histogram(a, k, n):
    at = jnp.clip(((a + 2) * 4 * n).astype(jnp.int32), 0, 16 * n - 1)
    counts = jnp.zeros(16 * n, jnp.int32).at[at.ravel()].add(1)
    return counts, jnp.cumsum(counts)


def simulated(key, n, steps, k):
    shape = (steps, n) if k == 0 else (n, steps)
    z = random.normal(random.wrap_key_data(key), shape)
    return asian(z, k)


def strength(a, k, n):
    change = jnp.diff(a, axis=k)
    up, down = average(jnp.maximum(change, 0), k, n), average(jnp.maximum(-change, 0), k, n)
    return 100 - 100 / (1 + (up + 0.1) / (down + 0.1))


# Of an array of prices: (array, the dim of time, a number from 2 to 9) -> results
OF_PATHS = {
    "asian": lambda a, k, n: asian(a, k), "barrier": lambda a, k, n: barrier(a, k),
    "heston": lambda a, k, n: heston(a, k), "garch": lambda a, k, n: garch(a, k),
    "exponential": lambda a, k, n: exponential(a, k), "average": average,
    "windows": windows, "drawdown": lambda a, k, n: drawdown(a, k), "histogram": histogram, "strength": strength,
    "returns": lambda a, k, n: jnp.diff(jnp.log(jnp.abs(a) + 1), axis=k),
    "value at risk": lambda a, k, n: jnp.quantile(a, 0.01 * n, axis=k),
    "shortfall": lambda a, k, n: lax.slice_in_dim(jnp.sort(a, k), 0, max(1, a.shape[k] // 20), axis=k).mean(k),
    "quantiles": lambda a, k, n: jnp.quantile(a, jnp.linspace(0.05, 0.95, n, dtype=a.dtype), axis=k),
    "moments": lambda a, k, n: (lambda z: ((z ** 3).mean(k), (z ** 4).mean(k)))(
        (a - a.mean(k, keepdims=True)) / (a.std(k, keepdims=True) + 1e-2)),
    "ranks": lambda a, k, n: jnp.argsort(jnp.argsort(a, axis=k), axis=k).astype(jnp.int32),
    "crossed": lambda a, k, n: jnp.where(
        jnp.cumsum(a, axis=k) > 1, jnp.arange(a.size, dtype=jnp.int32).reshape(a.shape), 2**30).min(k),
    "smoothed": lambda a, k, n: lax.associative_scan(
        lambda p, q: (p[0] * q[0], q[0] * p[1] + q[1]), (jnp.full_like(a, 0.9), a * 0.1), axis=k)[1],
    "discounted": lambda a, k, n: lax.scan(lambda v, c: ((c + 0.97 * v),) * 2, jnp.zeros_like(lax.index_in_dim(
        a, 0, k, keepdims=False)), jnp.moveaxis(a, k, 0), reverse=True)[1],
    "running least squares": lambda a, k, n: jnp.cumsum(a * jnp.roll(a, 1, k), k) / (jnp.cumsum(a * a, k) + 1),
    "antithetic": lambda a, k, n: jnp.maximum(jnp.exp(jnp.concatenate([a, -a], 1 - k) * 0.1).prod(k) - 1, 0).mean(),
    "bars": lambda a, k, n: (lambda b: (b.max(-1), b.min(-1), b[..., 0], b[..., -1]))(
        jnp.moveaxis(a, k, -1)[..., :a.shape[k] // n * n].reshape(a.shape[1 - k], -1, n)),
}


def paths(d):
    x, n, k = d.sizes(2, d.elements(300, 200_000)), d.randint(2, 9), d.randint(0, 1)
    x[k] = max(x[k], 12)
    name, a = d.choice(list(OF_PATHS)), argument(x, d.choice(TYPES))
    return Drawn(f"{name} {n} [{k}] {described([a])}", lambda a: OF_PATHS[name](a, k, n), [a])


def options(d):
    kind, n, dtype = d.choice(["price", "implied", "greeks", "tree"]), d.elements(30, 50_000), d.choice(TYPES)
    arguments = [argument([n], dtype, positive=True) for _ in range(3)]
    if kind != "tree":
        run = {"price": black_scholes, "implied": implied, "greeks": greeks}[kind]
        return Drawn(f"{kind} {described(arguments)}", run, arguments)
    n, steps = max(1, min(n, 2000) // 20), d.size(10, 200)
    return Drawn(f"tree of {steps} steps, {n} options", lambda *a: tree(*a, steps),
                 [argument([n], dtype, positive=True) for _ in range(3)])


def portfolios(d):
    n, assets, dtype = d.size(10, 2000), d.size(2, 200), d.choice(TYPES)
    kind = d.choice(["portfolio", "correlations", "bootstrap"])
    a = argument([n, assets], dtype)
    if kind == "bootstrap":
        places = argument([d.size(2, 60), d.size(10, 200)], np.int32, high=n)
        return Drawn(f"bootstrap {described([a, places])}", bootstrap, [a, places])
    arguments = [a, argument([assets], dtype)][:2 if kind == "portfolio" else 1]
    run = {"portfolio": portfolio, "correlations": correlations}[kind]
    return Drawn(f"{kind} {described(arguments)}", run, arguments)


def simulation(d):
    n, steps, k = d.size(20, 3000), d.size(3, 60), d.randint(0, 1)
    return Drawn(f"simulation {n} {steps} [{k}]", lambda key: simulated(key, n, steps, k),
                 [argument([2], np.uint32, high=2**31)])


def finance(d):
    drawn = d.choice([paths] * 8 + [options] * 3 + [portfolios] * 2 + [simulation])(d)
    return gradient(drawn) if is_float(drawn.arguments[0].dtype) and d.likely(0.2) else drawn
