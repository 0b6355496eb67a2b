"""Several devices: arrays in parts, shard_map and its collectives, sums that are left to do."""

import os

os.environ.update(HLOJIT_AS_CPU="1", JAX_PLATFORMS="cpu")

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 4)
mesh = jax.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
whole = np.arange(32.0, dtype=np.float32).reshape(4, 8)
cut = jax.device_put(whole, NamedSharding(mesh, P("x", "y")))
assert cut.addressable_shards[3].data.shape == (2, 4)

# Results are cut as what they are made of.
y = jax.jit(lambda a: jnp.sin(a).T)(cut)
assert y.sharding.is_equivalent_to(NamedSharding(mesh, P("y", "x")), 2), y.sharding
np.testing.assert_allclose(y, np.sin(whole).T, rtol=1e-6)

rows = jax.jit(jax.shard_map(lambda a: jax.lax.psum(a.sum(1), "y"), mesh=mesh, in_specs=P("x", "y"),
                             out_specs=P("x")))(cut)
assert rows.sharding.is_equivalent_to(NamedSharding(mesh, P("x")), 1), rows.sharding
np.testing.assert_array_equal(rows, whole.sum(1))

turned = jax.shard_map(lambda a: jax.lax.ppermute(a, "x", [(0, 1), (1, 0)]), mesh=mesh, in_specs=P("x", "y"),
                       out_specs=P("x", "y"))(cut)
np.testing.assert_array_equal(turned, np.roll(whole, 2, 0))

# Collectives that are begun and awaited, which StableHLO has only of late.
from jax._src.lax import parallel

begun = jax.shard_map(lambda a: parallel.psum_start(a, "x").done(), mesh=mesh, in_specs=P("x", "y"), out_specs=P(None, "y"))
np.testing.assert_array_equal(jax.jit(begun)(cut), whole[:2] + whole[2:])

# What is donated is taken if a result has its size, as on XLA:CPU.
for f, taken in ((lambda a: a @ a.T, False), (lambda a: a.reshape(8, 4), True)):
    halves = NamedSharding(mesh, P("x"))
    given = jax.device_put(whole, halves)
    jax.block_until_ready(jax.jit(f, donate_argnums=0, out_shardings=halves)(given))
    assert given.is_deleted() == taken, taken

seen = []
jax.jit(lambda a: jax.debug.inspect_array_sharding(a + 1, callback=seen.append))(cut)
assert seen[0].is_equivalent_to(NamedSharding(mesh, P("x", "y")), 2), seen

# A callback that is to see parts is called with each device's, one that is not once with all.
seen = []
note = lambda a: seen.append(np.asarray(a).tolist())
for partitioned in (True, False):
    jax.jit(lambda a: jax.debug.callback(note, a * 2, partitioned=partitioned))(cut)
jax.effects_barrier()
parts = [(2 * s.data).tolist() for s in cut.addressable_shards]
assert sorted(seen[:4]) == sorted(parts) and seen[4:] == [(2 * whole).tolist()], seen

# A function with a rule of its own for parts is itself on whole arrays.
from jax.experimental.custom_partitioning import custom_partitioning


@custom_partitioning
def norm(a):
    return a / jnp.sqrt((a * a).sum(-1, keepdims=True))


def in_parts(mesh, arguments, result):
    raise AssertionError("nothing is run in parts here")


norm.def_partition(in_parts, sharding_rule="i j -> i j")
np.testing.assert_allclose(jax.jit(norm)(cut + 1), (whole + 1) / np.linalg.norm(whole + 1, axis=-1, keepdims=True),
                           rtol=1e-6)
