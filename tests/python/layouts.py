"""Layouts and memories that JAX programs ask for: of parameters and results, on one device and cut among several."""

import os

os.environ |= {"HLOJIT_AS_CPU": "1", "JAX_PLATFORMS": "cpu"}

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.layout import Format, Layout
from jax.sharding import AxisType, NamedSharding, PartitionSpec

jax.config.update("jax_num_cpu_devices", 4)
one = jax.sharding.SingleDeviceSharding(jax.devices()[0])
grid = NamedSharding(jax.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2), PartitionSpec("x", "y"))
columns = Layout(major_to_minor=(1, 0))
x = np.arange(32, dtype=np.float32).reshape(4, 8)

for sharding in (one, grid):
    # Left to the compiler, a transposed result lies as its operand does.
    compiled = jax.jit(lambda a: a.T, in_shardings=sharding, out_shardings=Format(Layout.AUTO)).lower(x).compile()
    assert compiled.output_formats.layout.major_to_minor == (1, 0)
    np.testing.assert_array_equal(compiled(jax.device_put(x, sharding)), x.T)

    # Chosen, on the way in and on the way out.
    a = jax.device_put(x, Format(columns, sharding))
    assert a.format.layout.major_to_minor == (1, 0)
    np.testing.assert_array_equal(a, x)
    f = jax.jit(lambda a: a @ a.T, in_shardings=Format(columns, sharding), out_shardings=Format(columns, sharding))
    y = f(a)
    assert y.format.layout.major_to_minor == (1, 0)
    np.testing.assert_array_equal(y, x @ x.T)
    np.testing.assert_array_equal(y + 1, x @ x.T + 1)

    # A layout within a program says where its result lies.
    g = jax.jit(lambda a: jax.lax.with_sharding_constraint(a.T, Format(Layout(major_to_minor=(0, 1)), sharding)))
    y = g(jax.device_put(x, sharding))
    assert y.format.layout.major_to_minor == (0, 1)
    np.testing.assert_array_equal(y, x.T)

# Donated memory becomes a result's of the same layout.
a = jax.device_put(x, Format(columns, one))
at = a.unsafe_buffer_pointer()
b = jax.jit(lambda a: a * 2, in_shardings=Format(columns, one), out_shardings=Format(columns, one), donate_argnums=0)(a)
assert a.is_deleted() and b.unsafe_buffer_pointer() == at
np.testing.assert_array_equal(b, 2 * x)

# A scalar has one layout, which programs that keep arrays in place name.
ref = jax.new_ref(jnp.float32(1))
jax.jit(lambda: ref.__setitem__(..., ref[...] + 2))()
assert ref[...] == 3

# A result in another of a device's memories, and one computed from it.
host = NamedSharding(grid.mesh, PartitionSpec("x", "y"), memory_kind="pinned_host")
there, here = jax.jit(lambda a: (a + 1, a * 2), out_shardings=(host, grid))(jax.device_put(x, grid))
assert (there.sharding.memory_kind, here.sharding.memory_kind) == ("pinned_host", "device")
np.testing.assert_array_equal(there, x + 1)
back = jax.jit(lambda a: a * 2, out_shardings=grid)(there)
np.testing.assert_array_equal(back, 2 * (x + 1))
