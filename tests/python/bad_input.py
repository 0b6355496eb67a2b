"""What cannot be done is a Python exception that says why, and the next call works."""

import ctypes
import os
import subprocess
import sys
import tempfile
import textwrap

os.environ.update(HLOJIT_AS_CPU="1", JAX_PLATFORMS="cpu")

import jax
import jax.numpy as jnp
import numpy as np


def refused(f, kind, *words: str) -> None:
    try:
        jax.block_until_ready(f())
    except kind as e:
        missing = [w for w in words if w not in str(e)]
        assert not missing, (missing, str(e))
    else:
        raise AssertionError(f"taken, where {words} was expected")
    assert float(jax.jit(lambda v: v + 1)(jnp.float32(1))) == 2


Failure = jax.errors.JaxRuntimeError
ones = jnp.ones(3)

# Shapes, types and numbers of arguments.
double = jax.jit(lambda x: x * 2).lower(ones).compile()
refused(lambda: double(jnp.ones(4)), TypeError, "float32[3]", "float32[4]")
refused(lambda: double(jnp.ones(3, jnp.int32)), TypeError, "float32[3]", "int32[3]")
refused(lambda: double(ones, ones), TypeError)

# Donated arrays.
step = jax.jit(lambda v: v + 1, donate_argnums=0)


def use_after_donation():
    a = jnp.ones(10_000)
    step(a)
    return a + 1


def donate_twice():
    a = jnp.ones(10_000)
    return jax.jit(lambda x, y: (x + y, x - y), donate_argnums=(0, 1))(a, a)


refused(use_after_donation, RuntimeError, "deleted")
refused(donate_twice, Failure, "INVALID_ARGUMENT", "donated as argument 0", "also argument 1")

# Memory: of a result, of a temporary, of an array from the host.
scalar = jnp.float32(1)
square = jax.jit(lambda x: jnp.sort(jnp.broadcast_to(x, (1 << 20, 1 << 20)))[3, 3])
endless = np.lib.stride_tricks.as_strided(np.zeros(1, np.float32), (1 << 40,), (0,))
for f in (lambda: jnp.zeros((1 << 40,), jnp.float32), lambda: square(scalar), lambda: jax.device_put(endless)):
    refused(f, Failure, "RESOURCE_EXHAUSTED", "out of memory", "bytes asked for")

# What is not there.
nothing = jax.ffi.ffi_call("no_such_target", jax.ShapeDtypeStruct((3,), np.float32))
refused(lambda: nothing(ones), Failure, "UNIMPLEMENTED", 'custom call "no_such_target"')
refused(lambda: jax.jit(lambda x: x).lower(ones).compile(compiler_options={"nonsense": 1}), Failure, "nonsense")


# A callback that fails, or gives what was not promised; and what depends on the results.
def fail(v):
    raise ValueError("the callback's own words")


def called(f):
    return jax.jit(lambda v: jax.pure_callback(f, jax.ShapeDtypeStruct((3,), np.float32), v))(ones)


refused(lambda: called(fail), Failure, "the callback's own words")
refused(lambda: called(lambda v: np.zeros(4, np.float32)), Failure, "(3,)", "(4,)")
refused(lambda: jax.jit(lambda v: v + 1)(called(fail)), Failure, "the callback's own words")


# A custom call that fails: a handler of XLA's foreign function interface, built as a user builds one.
HANDLER = """
#include "xla/ffi/api/ffi.h"
namespace ffi = xla::ffi;
static ffi::Error twice(ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> y) {
  if (x.typed_data()[0] < 0) return ffi::Error::InvalidArgument("the handler's own words");
  for (size_t k = 0; k < x.element_count(); ++k) y->typed_data()[k] = 2 * x.typed_data()[k];
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(bad_input_twice, twice,
                              ffi::Ffi::Bind().Arg<ffi::Buffer<ffi::F32>>().Ret<ffi::Buffer<ffi::F32>>());
"""
with tempfile.TemporaryDirectory() as folder:
    library = f"{folder}/twice.so"
    subprocess.run(["clang++-19", "-std=c++17", "-O1", "-shared", "-fPIC", "-isystem", jax.ffi.include_dir(), "-x", "c++",
                    "-", "-o", library], input=HANDLER, text=True, check=True)
    handler = jax.ffi.pycapsule(ctypes.CDLL(library).bad_input_twice)
jax.ffi.register_ffi_target("bad_input_twice", handler, platform="cpu")
twice = jax.jit(lambda v: jax.ffi.ffi_call("bad_input_twice", jax.ShapeDtypeStruct((3,), np.float32))(v))
assert twice(ones).tolist() == [2, 2, 2]
refused(lambda: twice(-ones), Failure, "bad_input_twice", "the handler's own words")
refused(lambda: twice(-ones) + 1, Failure, "the handler's own words")


def run(program: str, **more) -> str:
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", textwrap.dedent(program)], env={**os.environ, **more},
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
    assert done.returncode == 0, (done.returncode, done.stdout)
    return done.stdout


# A forked child has none of the parent's threads: it is told so where it would wait for them for ever.
out = run("""
    import os, jax, jax.numpy as jnp
    work = jax.jit(lambda x: jnp.tanh(x @ x).sum())
    z = jnp.eye(300)
    before = float(work(z))
    child = os.fork()
    if child == 0:
        for f in (lambda: work(z), lambda: jax.jit(lambda v: v * 3)(z)):
            try:
                print("child:", float(f()), flush=True)
            except (ValueError, RuntimeError) as e:
                print("child:", e, flush=True)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert float(work(z)) == before
""")
assert out.count("child: ") == 2 and out.count("was forked off") == 2 and out.count("spawn") == 2, out

# Another version of JAX than the tested is named; one whose insides differ goes on without hlojit.
out = run("""
    import jax
    jax.__version__ = "0.99.0"
    print(float(jax.numpy.float32(1) + 1), jax.devices()[0].client.platform_version)
""")
assert "tested with jax 0.10.2, this is 0.99.0" in out and "2.0" in out and "hlojit" in out, out
out = run("""
    import jax
    from jax._src import xla_bridge
    del xla_bridge.make_pjrt_c_api_client
    original = xla_bridge.register_backend_factory
    def changed(name, factory, *, priority): original(name, factory, priority=priority)
    xla_bridge.register_backend_factory = changed
    print(float(jax.numpy.float32(1) + 1))
""")
assert "cannot register with this version of JAX (tested: 0.10.2)" in out and "2.0" in out, out
