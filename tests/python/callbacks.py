"""Python called from programs: values, order, prints, errors; on both names of the platform."""

import os
import subprocess
import sys
import threading

if len(sys.argv) == 1:
    for platform, as_cpu in (("hlojit", "0"), ("cpu", "1")):
        environment = {**os.environ, "JAX_PLATFORMS": platform, "HLOJIT_AS_CPU": as_cpu}
        subprocess.run([sys.executable, __file__, platform], env=environment, check=True)
    sys.exit()

import jax
import jax.extend
import jax.interpreters.mlir
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


seen.clear()


@jax.jit
def small_loop(v):
    def turn(k, v):
        jax.debug.callback(note, v[k], ordered=True)
        return jnp.sort(v)[::-1]

    return jax.lax.fori_loop(0, v[0].astype(int) + 3, turn, v)


small_loop(x)
assert seen == [0.0, 1.0, 0.0], seen  # without a barrier: little work runs before the call returns


# A thread that the function starts has programs of its own run, and the function waits for them.
def on_a_thread(v):
    answers = []
    other = threading.Thread(target=lambda: answers.append(np.asarray(jax.jit(jnp.linalg.norm)(np.asarray(v)))))
    other.start()
    other.join(timeout=60)
    return answers[0]


@jax.jit
def waits_for_another(v):
    far = jax.lax.fori_loop(0, 20, lambda k, m: m @ m, v)
    return jax.pure_callback(on_a_thread, jax.ShapeDtypeStruct((), np.float32), far)


assert float(waits_for_another(jnp.eye(200))) == np.float32(200**0.5)


def by_its_own_lowering(ctx, v):
    from jax.interpreters import mlir

    called = lambda a: (np.cos(a),)
    results, _, keep = mlir.emit_python_callback(
        ctx, called, None, [v], ctx.avals_in, ctx.avals_out, has_side_effect=False)
    ctx.module_context.add_keepalive(keep)
    return results


cosine = jax.extend.core.Primitive("cosine_of_numpy")
cosine.def_abstract_eval(lambda v: v)
jax.interpreters.mlir.register_lowering(cosine, by_its_own_lowering)
np.testing.assert_allclose(jax.jit(cosine.bind)(x), np.cos(np.arange(3.0)), rtol=1e-6)


def fail(v):
    raise KeyError("the callback's own words")


try:
    jax.block_until_ready(jax.jit(lambda v: jax.pure_callback(fail, out, v))(x))
    raise AssertionError("a failing callback went unseen")
except jax.errors.JaxRuntimeError as e:
    assert "the callback's own words" in str(e), e
try:
    jax.jit(lambda v: jax.pure_callback(fail, out, v))(x)
    raise AssertionError("a small program that failed, failed unseen until somebody waits")
except jax.errors.JaxRuntimeError as e:
    assert "the callback's own words" in str(e), e
assert jax.jit(lambda v: v + 1)(x).tolist() == [1, 2, 3]  # life goes on
