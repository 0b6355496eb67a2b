"""hlojit.jit: JAX functions that run on hlojit alone, NumPy arrays in and out in the function's own structure."""

import os

os.environ.pop("HLOJIT_AS_CPU", None)
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np

import hlojit

traced = []


@hlojit.jit
def step(parameters, x, *, rate=0.5):
    traced.append(x.shape)
    loss, slopes = jax.value_and_grad(lambda p: jnp.mean((x @ p["w"] + p["b"]) ** 2))(parameters)
    return {"loss": loss, "next": jax.tree.map(lambda p, s: p - rate * s, parameters, slopes)}


rng = np.random.default_rng(0)
parameters = {"w": rng.normal(size=(3, 2)).astype(np.float32), "b": np.zeros(2, np.float32)}
x = rng.normal(size=(5, 3)).astype(np.float32)
first = step(parameters, x)
assert isinstance(first["loss"], np.ndarray) and first["next"]["w"].shape == (3, 2)
want = jax.jit(step.__wrapped__)(parameters, x)
jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), first, want)

# A signature is compiled once: its structure, shapes and types.
traced.clear()
later = step(first["next"], x)
assert later["loss"] < first["loss"] and not traced
step(parameters, x[:4])
step(parameters, x, rate=0.1)
assert len(traced) == 2, traced

# One array, several, none; numbers of Python; bf16; options of the compiler.
assert hlojit.jit(lambda a: a * 2)(3.0) == 6
assert hlojit.jit(lambda a: (a, -a))(np.int32(4)) == (4, -4)
assert hlojit.jit(lambda a: ())(1) == ()
half = hlojit.jit(lambda a: a / 2, strict=True, threads=1)(np.arange(4).astype(ml_dtypes.bfloat16))
assert half.dtype == ml_dtypes.bfloat16 and half.astype(float).tolist() == [0, 0.5, 1, 1.5]


@hlojit.jit(effort=0)
def sorted_rows(a):
    return jnp.sort(a, axis=1)


np.testing.assert_array_equal(sorted_rows(x), np.sort(x, axis=1))

# What is not supported is named.
try:
    hlojit.jit(lambda a: jax.pure_callback(np.sin, jax.ShapeDtypeStruct((3,), np.float32), a))(np.ones(3, np.float32))
    raise AssertionError("a call back into Python was taken")
except hlojit.Error as e:
    assert e.kind == "unsupported" and "callback" in str(e), e
