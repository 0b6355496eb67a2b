"""A small multilayer perceptron: which of two spirals a point lies on."""

from __future__ import annotations

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax

from training import Task


class Mlp(nn.Module):
    @nn.compact
    def __call__(self, x):
        for width in (256, 256, 256):
            x = nn.gelu(nn.LayerNorm()(nn.Dense(width)(x)))
        return nn.Dense(2)(x)


def batches(size: int = 512):
    """Points with noise on two spirals, each a turn and a half, and which they are on."""
    rng = np.random.default_rng(0)
    while True:
        which = rng.integers(0, 2, size)
        t = np.sqrt(rng.random(size)) * 3 * np.pi
        angle = t + which * np.pi
        points = np.stack([t * np.cos(angle), t * np.sin(angle)], 1) / 9 + rng.normal(0, 0.01, (size, 2))
        yield points.astype(np.float32), which.astype(np.int32)


def task() -> Task:
    model = Mlp()
    parameters = jax.jit(model.init)(jax.random.key(0), jnp.zeros((1, 2)))

    def loss(parameters, state, batch):
        points, which = batch
        logits = model.apply(parameters, points)
        return optax.softmax_cross_entropy_with_integer_labels(logits, which).mean(), state

    return Task(parameters, {}, loss, batches(), optax.adam(1e-3), 500)
