"""Random bits and numbers from keys."""

import jax
import jax.numpy as jnp
from jax import lax

from programs.program import U32, f32, ints, program, section

section("random numbers")


@program(golden=dict(n=5001), timing=dict(n=1_000_000))
def uniform(n):
    return (lambda key: jax.random.uniform(jax.random.wrap_key_data(key), (n,))), [
        ints(2, dtype=U32, lo=0, hi=2**32)]


@program(golden=dict(rows=40, cols=100), timing=dict(rows=1024, cols=1024))
def dropout(rows, cols):
    def f(key, x):
        keep = jax.random.bernoulli(jax.random.wrap_key_data(key), 0.9, x.shape)
        return jnp.where(keep, x / 0.9, 0.0)
    return f, [ints(2, dtype=U32, lo=0, hi=2**32), f32(rows, cols)]


@program(golden=dict(n=5001), timing=dict(n=1_000_000))
def normal(n):
    return (lambda key: jax.random.normal(jax.random.wrap_key_data(key), (n,))), [
        ints(2, dtype=U32, lo=0, hi=2**32)]


@program(golden=dict(n=3000), timing=dict(n=1_000_000), x64=True)
def rng_bits(n):
    def f(state):
        return lax.rng_bit_generator(state, (n,), dtype=U32, algorithm=lax.RandomAlgorithm.RNG_THREE_FRY)
    return f, [ints(2, dtype=jnp.uint64, lo=0, hi=2**63)]
