"""What outlives what: the persistent cache, processes that end or fork with work under way."""

import os
import subprocess
import sys
import tempfile
import textwrap

environment = {**os.environ, "HLOJIT_AS_CPU": "1", "JAX_PLATFORMS": "cpu"}


def run(program: str, **more) -> str:
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], env={**environment, **more}, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
    assert done.returncode == 0, (done.returncode, done.stdout)
    return done.stdout


# JAX's cache holds compiled programs: the second process compiles none.
with tempfile.TemporaryDirectory() as folder:
    cached = """
        import jax, jax.numpy as jnp
        events = []
        jax.monitoring.register_event_listener(lambda name, **_: events.append(name))
        f = jax.jit(lambda x: jnp.tanh(x @ x).sum() + jax.nn.softmax(x).sum())
        print(float(f(jnp.ones((32, 32)))), events.count("/jax/compilation_cache/cache_hits") > 0)
    """
    settings = {"JAX_COMPILATION_CACHE_DIR": folder, "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
                "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1"}
    first, second = run(cached, **settings).split(), run(cached, **settings).split()
    assert first[0] == second[0] and second[1] == "True", (first, second)

# What JAX compiles, for people: a folder a program.
with tempfile.TemporaryDirectory() as folder:
    run("""
        import jax, jax.numpy as jnp
        jax.jit(lambda x: jnp.tanh(x) + 1).lower(jnp.ones(3)).compile()
    """, HLOJIT_DUMP_DIR=folder)
    last = max(os.listdir(folder))
    assert "lambda" in last and "module.s" in os.listdir(os.path.join(folder, last)), last

# As on XLA:CPU subnormal numbers are zeros to arithmetic, unless they are wanted.
small = """
    import jax, jax.numpy as jnp
    print(float(jax.jit(lambda x: x * 0.5)(jnp.float32(2e-38))))
"""
assert float(run(small)) == 0
assert float(run(small, HLOJIT_KEEP_SUBNORMALS="1")) > 0

# The interpreter ends while a program runs.
run("""
    import jax, jax.numpy as jnp
    f = jax.jit(lambda x: jax.lax.fori_loop(0, 300, lambda i, v: jnp.tanh(v @ v), x))
    jax.block_until_ready(f(jnp.eye(200)))
    for _ in range(20):
        out = f(jnp.eye(200))
""")

# A child of fork that leaves JAX alone ends well, and the parent goes on.
print(run("""
    import os, warnings
    warnings.simplefilter("ignore")
    import jax, jax.numpy as jnp
    f = jax.jit(lambda x: jnp.sin(x).sum())
    f(jnp.ones(100000))
    child = os.fork()
    if child == 0:
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert abs(float(f(jnp.ones(100000))) - 84147.1) < 10
"""))
