"""JAX in the cpu's place: a training step, its gradients, donation, loops, factorisations, random numbers."""

import os

os.environ.update(HLOJIT_AS_CPU="1", JAX_PLATFORMS="cpu")

import jax
import jax.numpy as jnp
import numpy as np

import hlojit

assert "hlojit" in jax.devices()[0].client.platform_version


def loss(w, x, y):
    h = jnp.tanh(x @ w["a"])
    return jnp.mean((h @ w["b"] - y) ** 2)


@jax.jit
def step(w, x, y):
    value, g = jax.value_and_grad(loss)(w, x, y)
    return jax.tree.map(lambda p, d: p - 0.1 * d, w, g), value


keys = jax.random.split(jax.random.key(0), 4)
w = {"a": jax.random.normal(keys[0], (8, 16)) / 3, "b": jax.random.normal(keys[1], (16, 1)) / 4}
x, y = jax.random.normal(keys[2], (64, 8)), jax.random.normal(keys[3], (64, 1))
losses = []
for _ in range(50):
    w, value = step(w, x, y)
    losses.append(float(value))
assert losses[-1] < 0.6 * losses[0], losses

# The gradient is the slope.
g = jax.grad(loss)(w, x, y)["a"]
d = np.zeros((8, 16), np.float32)
d[2, 3] = 1e-2
up, down = (loss({**w, "a": w["a"] + s * d}, x, y) for s in (1, -1))
np.testing.assert_allclose(g[2, 3], (up - down) / 2e-2, rtol=2e-2, atol=1e-4)

# A donated array is gone.
a = jnp.ones(1000)
b = jax.jit(lambda v: v + 1, donate_argnums=0)(a)
assert a.is_deleted() and float(b[0]) == 2

# Loops and branches, whose number of turns is known only there.
collatz = jax.jit(lambda n: jax.lax.while_loop(
    lambda s: s[0] != 1, lambda s: (jnp.where(s[0] % 2 == 0, s[0] // 2, 3 * s[0] + 1), s[1] + 1), (n, 0))[1])
assert int(collatz(27)) == 111
total, every = jax.lax.scan(lambda c, v: (c + v, c * v), 0.0, jnp.arange(5.0))
assert float(total) == 10 and every.tolist() == [0, 0, 2, 9, 24]

# LAPACK's work.
m = np.random.default_rng(0).normal(size=(6, 6)).astype(np.float32)
u, s, vt = jnp.linalg.svd(m)
np.testing.assert_allclose(u * s @ vt, m, atol=1e-5)
np.testing.assert_allclose(jnp.linalg.solve(m, m @ np.ones(6, np.float32)), np.ones(6), atol=1e-3)

# programs tell what they cost, before and after they are compiled.
lowered = step.lower(w, x, y)
assert lowered.cost_analysis()["flops"] > 0
compiled = lowered.compile()
assert compiled.cost_analysis()["flops"] > 0 and "HloModule" in compiled.as_text()
assert compiled.memory_analysis().argument_size_in_bytes > 0
hlojit.parse(jax.jit(jnp.tanh).lower(x).compile().as_text())  # their text is a program again

# DLPack hands over a view, or a copy where that is asked for.
given = np.zeros(16, np.float32)
view, copied = jnp.from_dlpack(given), jnp.from_dlpack(given, copy=True)
given[0] = 1
assert view[0] == 1 and copied[0] == 0
