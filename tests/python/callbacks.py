"""Python called from programs: values, order, prints, errors; on both names of the platform."""

import os
import subprocess
import sys

if len(sys.argv) == 1:
    for platform, as_cpu in (("hlojit", "0"), ("cpu", "1")):
        environment = {**os.environ, "JAX_PLATFORMS": platform, "HLOJIT_AS_CPU": as_cpu}
        subprocess.run([sys.executable, __file__, platform], env=environment, check=True)
    sys.exit()

import jax
import jax.numpy as jnp
import numpy as np

assert jax.devices()[0].platform == sys.argv[1]
x = jnp.arange(3.0)
out = jax.ShapeDtypeStruct((3,), np.float32)

got = jax.jit(lambda v: jax.pure_callback(np.sin, out, v) + 1)(x)
np.testing.assert_allclose(got, np.sin(np.arange(3.0)) + 1, rtol=1e-6)

seen = []
note = lambda v: seen.append(v.tolist())


@jax.jit
def ordered(v):
    for k in range(3):
        jax.debug.callback(note, v + k, ordered=True)
    return v * 2


assert ordered(x).tolist() == [0, 2, 4]
jax.effects_barrier()
assert seen == [[0, 1, 2], [1, 2, 3], [2, 3, 4]], seen


def fail(v):
    raise KeyError("the callback's own words")


try:
    jax.block_until_ready(jax.jit(lambda v: jax.pure_callback(fail, out, v))(x))
    raise AssertionError("a failing callback went unseen")
except jax.errors.JaxRuntimeError as e:
    assert "the callback's own words" in str(e), e
assert jax.jit(lambda v: v + 1)(x).tolist() == [1, 2, 3]  # life goes on
