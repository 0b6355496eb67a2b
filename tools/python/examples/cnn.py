"""A small convolutional network: circle, square or cross, drawn anywhere with noise."""

from __future__ import annotations

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax

from training import Task

SIZE = 28


class Cnn(nn.Module):
    @nn.compact
    def __call__(self, x):
        for channels in (32, 64):
            x = nn.Conv(channels, (3, 3), use_bias=False)(x)
            x = nn.relu(nn.BatchNorm(use_running_average=False, momentum=0.9)(x))
            x = nn.max_pool(x, (2, 2), (2, 2))
        x = nn.relu(nn.Dense(128)(x.reshape(x.shape[0], -1)))
        return nn.Dense(3)(x)


def batches(size: int = 64):
    """Images f32[size, 28, 28, 1] and the number of what is drawn."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:SIZE, :SIZE]
    while True:
        what = rng.integers(0, 3, size)
        centre, radius = rng.uniform(9, 19, (size, 2, 1, 1)), rng.uniform(4, 8, (size, 1, 1))
        dy, dx = np.abs(y - centre[:, 0]), np.abs(x - centre[:, 1])
        distance = np.stack([np.hypot(dy, dx), np.maximum(dy, dx), np.minimum(dy, dx) * 9 + np.maximum(dy, dx)])
        inside = np.take_along_axis(distance, what[None, :, None, None], 0)[0] < radius
        images = inside + rng.normal(0, 0.4, inside.shape)
        yield images[..., None].astype(np.float32), what.astype(np.int32)


def task() -> Task:
    model = Cnn()
    variables = jax.jit(model.init)(jax.random.key(0), jnp.zeros((1, SIZE, SIZE, 1)))

    def loss(parameters, state, batch):
        images, what = batch
        logits, updated = model.apply({"params": parameters, **state}, images, mutable=["batch_stats"])
        return optax.softmax_cross_entropy_with_integer_labels(logits, what).mean(), updated

    state = {"batch_stats": variables["batch_stats"]}
    return Task(variables["params"], state, loss, batches(), optax.sgd(0.02, momentum=0.9), 200)
