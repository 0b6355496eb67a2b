"""A small causal transformer on characters: the text of Python's own help."""

from __future__ import annotations

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax

from training import Task

LENGTH, WIDTH, HEADS, BLOCKS, CHARACTERS = 128, 128, 4, 4, 128


class Block(nn.Module):
    @nn.compact
    def __call__(self, x):
        y = nn.LayerNorm()(x)
        split = nn.DenseGeneral((3, HEADS, WIDTH // HEADS), use_bias=False)(y)
        q, k, v = split[:, :, 0], split[:, :, 1], split[:, :, 2]
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(WIDTH // HEADS)
        causal = jnp.tril(jnp.ones((LENGTH, LENGTH), bool))
        attention = jax.nn.softmax(jnp.where(causal, scores, -1e9))
        y = jnp.einsum("bhqk,bkhd->bqhd", attention, v)
        x = x + nn.DenseGeneral(WIDTH, axis=(-2, -1), use_bias=False)(y)
        return x + nn.Dense(WIDTH)(nn.gelu(nn.Dense(4 * WIDTH)(nn.LayerNorm()(x))))


class Transformer(nn.Module):
    @nn.compact
    def __call__(self, text):
        x = nn.Embed(CHARACTERS, WIDTH)(text) + self.param("place", nn.initializers.normal(0.02), (LENGTH, WIDTH))
        for _ in range(BLOCKS):
            x = Block()(x)
        return nn.Dense(CHARACTERS)(nn.LayerNorm()(x))


def batches(size: int = 8):
    """Pieces of the text, s32[size, LENGTH + 1]."""
    from pydoc_data.topics import topics

    text = np.frombuffer("\n".join(topics[k] for k in sorted(topics)).encode("ascii", "replace"), np.uint8)
    rng = np.random.default_rng(0)
    while True:
        starts = rng.integers(0, len(text) - LENGTH - 1, size)
        yield text[starts[:, None] + np.arange(LENGTH + 1)].astype(np.int32)


def task() -> Task:
    model = Transformer()
    parameters = jax.jit(model.init)(jax.random.key(0), jnp.zeros((1, LENGTH), jnp.int32))

    def loss(parameters, state, batch):
        logits = model.apply(parameters, batch[:, :-1])
        return optax.softmax_cross_entropy_with_integer_labels(logits, batch[:, 1:]).mean(), state

    schedule = optax.warmup_cosine_decay_schedule(0, 1e-3, 20, 200)
    return Task(parameters, {}, loss, batches(), optax.adamw(schedule), 200)
