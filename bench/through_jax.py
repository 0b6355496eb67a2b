"""What JAX costs on the backend it finds: tiny calls, and a transformer's train step compiled and run. Where hlojit is
installed, beside it what the calls cost without JAX's runtime, by hlojit.jit.

    python bench/through_jax.py                                        # XLA:CPU
    HLOJIT_AS_CPU=1 JAX_PLATFORMS=cpu python bench/through_jax.py      # hlojit, with hlojit[jax] installed

One process a backend; each figure is the best of many.
"""

import time

import jax
import jax.numpy as jnp
import numpy as np

try:
    import hlojit
except ImportError:
    hlojit = None

LAYERS, WIDTH, HEADS, LENGTH, WORDS, BATCH = 4, 128, 4, 32, 64, 8


def best(times, f):
    fastest = float("inf")
    for _ in range(times):
        start = time.perf_counter()
        f()
        fastest = min(fastest, time.perf_counter() - start)
    return fastest


def parameters(key):
    sizes = dict(q=(WIDTH, WIDTH), k=(WIDTH, WIDTH), v=(WIDTH, WIDTH), o=(WIDTH, WIDTH), up=(WIDTH, 4 * WIDTH), down=(4 * WIDTH, WIDTH))
    keys = iter(jax.random.split(key, len(sizes) * LAYERS + 1))
    layers = [{n: 0.02 * jax.random.normal(next(keys), s) for n, s in sizes.items()} for _ in range(LAYERS)]
    return {"layers": layers, "words": 0.02 * jax.random.normal(next(keys), (WORDS, WIDTH))}


def norm(x):
    mean = x.mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-5)


def logits(p, words):
    x = p["words"][words]
    for layer in p["layers"]:
        h = norm(x)

        def heads(w):
            return (h @ w).reshape(*h.shape[:2], HEADS, WIDTH // HEADS).transpose(0, 2, 1, 3)

        scores = heads(layer["q"]) @ heads(layer["k"]).swapaxes(-1, -2) / (WIDTH // HEADS) ** 0.5
        scores = jnp.where(jnp.tril(jnp.ones((LENGTH, LENGTH), bool)), scores, -1e9)
        seen = (jax.nn.softmax(scores) @ heads(layer["v"])).transpose(0, 2, 1, 3).reshape(h.shape)
        x = x + seen @ layer["o"]
        x = x + jax.nn.gelu(norm(x) @ layer["up"]) @ layer["down"]
    return norm(x) @ p["words"].T


def loss(p, words):
    chance = jax.nn.log_softmax(logits(p, words)[:, :-1])
    return -jnp.take_along_axis(chance, words[:, 1:, None], -1).mean()


def train_step(p, m, v, words):
    value, g = jax.value_and_grad(loss)(p, words)
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
    v = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, v, g)
    return jax.tree.map(lambda p, m, v: p - 1e-3 * m / (jnp.sqrt(v) + 1e-8), p, m, v), m, v, value


def tiny_calls():
    def one(x):
        return x + 1

    def many(xs):
        return [x + 1 for x in xs]

    def show(what, f, argument):
        jax.block_until_ready(f(argument))

        def calls():
            for _ in range(200):
                f(argument)

        print(f"{what:26} {best(60, calls) / 200 * 1e6:8.1f} us")

    x, host = jnp.zeros((8,)), np.zeros((8,), np.float32)
    tiny = jax.jit(one)
    show("dispatch of x + 1", tiny, x)
    print(f"x + 1, waited for          {best(2000, lambda: tiny(x).block_until_ready()) * 1e6:8.1f} us")
    show("NumPy's x + 1", tiny, host)
    show("32 times x + 1", jax.jit(many), [x] * 32)
    show("32 times NumPy's x + 1", jax.jit(many), [host] * 32)
    if hlojit:
        show("hlojit.jit, NumPy's x + 1", hlojit.jit(one), host)
        show("hlojit.jit, 32 times", hlojit.jit(many), [host] * 32)


def main():
    tiny_calls()
    p = parameters(jax.random.key(0))
    zeros = jax.tree.map(jnp.zeros_like, p)
    words = jax.random.randint(jax.random.key(1), (BATCH, LENGTH), 0, WORDS)
    lowered = []
    for _ in range(4):  # each its own, so that no cache answers
        jax.clear_caches()
        lowered.append(jax.jit(train_step).lower(p, zeros, zeros, words))
    print(f"train step, compiled       {best(4, lambda: lowered.pop().compile()) * 1e3:8.0f} ms")
    step = jax.jit(train_step)
    print(f"train step, run            {best(30, lambda: jax.block_until_ready(step(p, zeros, zeros, words))) * 1e3:8.1f} ms")
    print(f"its loss                   {float(step(p, zeros, zeros, words)[3]):8.4f}")


if __name__ == "__main__":
    main()
