"""Programs of many kinds, as people write them: the same results on hlojit as on XLA:CPU.

    programs.py                  runs itself on both, and compares
    programs.py FILE [NAME...]   runs here, keeps the results in FILE, and prints for each program the processor
                                 milliseconds of compiling and of a call
"""

import os
import subprocess
import sys
import tempfile

if len(sys.argv) == 1:
    import numpy as np

    with tempfile.TemporaryDirectory() as folder:
        results = []
        for as_cpu in ("0", "1"):
            environment = {**os.environ, "JAX_PLATFORMS": "cpu", "HLOJIT_AS_CPU": as_cpu}
            file = f"{folder}/{as_cpu}.npz"
            subprocess.run([sys.executable, __file__, file], env=environment, check=True)
            results.append(np.load(file))
        theirs, ours = results
        assert set(theirs.files) == set(ours.files)
        for name in theirs.files:
            a, b = theirs[name], ours[name]
            assert (a.shape, a.dtype) == (b.shape, b.dtype), name
            exact = a.dtype.kind not in "fc"
            tolerance = (2e-2 if name.startswith("mixer") else 1e-4) * np.abs(a).max(initial=1e-30)
            np.testing.assert_allclose(b, a, rtol=0, atol=0 if exact else tolerance, err_msg=name)
    sys.exit()

import time

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, random
from jax.experimental import sparse
from jax.experimental.ode import odeint

jax.config.update("jax_num_cpu_devices", 4)
PROGRAMS = {}
numbers = np.random.default_rng(0)


def program(f):
    """f() gives a function and its arguments."""
    PROGRAMS[f.__name__] = f
    return f


def normal(*shape, scale=1.0):
    return (scale * numbers.standard_normal(shape)).astype(np.float32)


def conv(x, kernel, stride=1):
    return lax.conv_general_dilated(x, kernel, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def cross_entropy(logits, labels):
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1).mean()


def descend(loss):
    """One step of gradient descent: the loss and the new parameters."""

    def step(parameters, *data):
        value, gradients = jax.value_and_grad(loss)(parameters, *data)
        return value, jax.tree.map(lambda p, g: p - 0.1 * g, parameters, gradients)

    return step


@program
def decode():
    """A transformer writes 12 tokens greedily, with its keys and values kept in place."""
    layers, heads, depth, room, words = 2, 4, 16, 32, 300
    width = heads * depth
    table = normal(words, width, scale=0.3)
    weights = {"qkv": normal(layers, width, 3 * width, scale=0.1), "out": normal(layers, width, width, scale=0.1),
               "up": normal(layers, width, 4 * width, scale=0.1), "down": normal(layers, 4 * width, width, scale=0.1)}

    def norm(x):
        return x * lax.rsqrt((x * x).mean() + 1e-6)

    def turn(x, place):
        angle = place / 100 ** (jnp.arange(0, depth, 2) / depth)
        a, b = x[:, ::2], x[:, 1::2]
        c, s = jnp.cos(angle), jnp.sin(angle)
        return jnp.stack([a * c - b * s, a * s + b * c], -1).reshape(x.shape)

    def write(weights, table, token):
        def step(state, place):
            token, keys, values = state

            def layer(x, of):
                w, keys, values = of
                q, k, v = (p.reshape(heads, depth) for p in jnp.split(norm(x) @ w["qkv"], 3))
                keys = lax.dynamic_update_slice(keys, turn(k, place)[None], (place, 0, 0))
                values = lax.dynamic_update_slice(values, v[None], (place, 0, 0))
                scores = jnp.einsum("hd,thd->ht", turn(q, place), keys) / np.sqrt(depth)
                scores = jnp.where(jnp.arange(room) <= place, scores, -1e30)
                x = x + jnp.einsum("ht,thd->hd", jax.nn.softmax(scores), values).reshape(width) @ w["out"]
                return x + jax.nn.gelu(norm(x) @ w["up"]) @ w["down"], (keys, values)

            x, (keys, values) = lax.scan(layer, table[token], (weights, keys, values))
            logits = norm(x) @ table.T
            token = jnp.argmax(logits)
            return (token, keys, values), (token, logits.max())

        empty = jnp.zeros((layers, room, heads, depth))
        return lax.scan(step, (token, empty, empty), jnp.arange(12))[1]

    return write, (weights, table, np.int32(5))


@program
def vae():
    weights = {"in": normal(100, 64, scale=0.1), "code": normal(64, 16, scale=0.1), "back": normal(8, 64, scale=0.3),
               "out": normal(64, 100, scale=0.1)}

    def loss(w, key, x):
        mean, logarithm = jnp.split(jax.nn.relu(x @ w["in"]) @ w["code"], 2, 1)
        z = mean + jnp.exp(logarithm / 2) * random.normal(key, mean.shape)
        y = jax.nn.relu(z @ w["back"]) @ w["out"]
        missed = (jnp.maximum(y, 0) - y * x + jnp.log1p(jnp.exp(-jnp.abs(y)))).sum(1)
        return (missed - (1 + logarithm - mean**2 - jnp.exp(logarithm)).sum(1) / 2).mean()

    return descend(loss), (weights, random.key(0), (numbers.random((32, 100)) < 0.3).astype(np.float32))


@program
def graph_network():
    nodes, edges, width = 100, 600, 16
    start, end = numbers.integers(0, nodes, (2, edges))
    weights = [normal(width, width, scale=0.3) for _ in range(4)]

    def loss(w, x, labels):
        degree = jnp.maximum(jax.ops.segment_sum(jnp.ones(edges), end, nodes), 1)
        for send, keep in zip(w[::2], w[1::2]):
            mail = jax.nn.relu(x @ send)[start]
            loudest = jax.ops.segment_max(mail.sum(1), end, nodes)
            gate = jax.nn.sigmoid(jnp.where(jnp.isfinite(loudest), loudest, 0))
            x = jax.nn.elu(x @ keep + jax.ops.segment_sum(mail, end, nodes) / degree[:, None]) * gate[:, None]
        return cross_entropy(x, labels)

    return descend(loss), (weights, normal(nodes, width), numbers.integers(0, 10, nodes))


@program
def convolutions():
    """A residual network with batch norm and pooling, one step."""
    weights = [normal(3, 3, 3, 8, scale=0.2), normal(3, 3, 8, 8, scale=0.1), normal(3, 3, 8, 8, scale=0.1),
               normal(8, 10, scale=0.3)]

    def norm(x):
        return (x - x.mean((0, 1, 2))) * lax.rsqrt(x.var((0, 1, 2)) + 1e-5)

    def loss(w, x, labels):
        x = jax.nn.relu(norm(conv(x, w[0])))
        x = jax.nn.relu(x + norm(conv(jax.nn.relu(norm(conv(x, w[1]))), w[2])))
        x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        return cross_entropy(x.mean((1, 2)) @ w[3], labels)

    return descend(loss), (weights, normal(4, 12, 12, 3), numbers.integers(0, 10, 4))


@program
def lstm():
    width, batch = 24, 6
    weights = {"x": normal(8, 4 * width, scale=0.2), "h": normal(width, 4 * width, scale=0.2), "o": normal(width)}

    def loss(w, xs, y):
        def cell(state, x):
            h, c = state
            i, f, g, o = jnp.split(x @ w["x"] + h @ w["h"], 4, -1)
            c = jax.nn.sigmoid(f + 1) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            return (jax.nn.sigmoid(o) * jnp.tanh(c), c), None

        start = jnp.zeros((batch, width))
        (h, _), _ = lax.scan(cell, (start, start), xs)
        return ((h @ w["o"] - y) ** 2).mean()

    return descend(loss), (weights, normal(15, batch, 8), normal(batch))


@program
def kalman():
    """A filter's means as an associative scan of affine maps."""
    step = (0.9 * np.eye(3) + normal(3, 3, scale=0.05)).astype(np.float32)
    look = normal(2, 3)

    def run(ys):
        covariance = look @ look.T + jnp.eye(2)
        gain = jnp.linalg.solve(covariance, look).T
        maps = jnp.broadcast_to((jnp.eye(3) - gain @ look) @ step, (len(ys), 3, 3))

        def after(first, second):
            return second[0] @ first[0], jnp.einsum("...ij,...j->...i", second[0], first[1]) + second[1]

        return lax.associative_scan(after, (maps, ys @ gain.T))[1]

    return run, (normal(64, 2),)


@program
def gaussian_process():
    def run(p, x, y, z):
        def kernel(a, b):
            return jnp.exp(p[1] - ((a[:, None] - b[None]) ** 2).sum(-1) / jnp.exp(p[0]) / 2)

        def loss(p):
            factor = jnp.linalg.cholesky(jnp.exp(p[1]) * kernel(x, x) + (jnp.exp(p[2]) + 1e-2) * jnp.eye(len(x)))
            return y @ jax.scipy.linalg.cho_solve((factor, True), y) / 2 + jnp.log(jnp.diag(factor)).sum()

        factor = jnp.linalg.cholesky(kernel(x, x) + jnp.eye(len(x)))
        seen = jax.scipy.linalg.solve_triangular(factor, kernel(x, z), lower=True)
        return jax.value_and_grad(loss)(p), jnp.exp(p[1]) - (seen**2).sum(0)

    x = normal(40, 3)
    return run, (np.array([0.3, 0.1, -1], np.float32), x, np.sin(x.sum(1)), normal(9, 3))


@program
def hamiltonian():
    """Four chains of hybrid Monte Carlo on a Gaussian."""
    a = normal(5, 5)
    precision = (a @ a.T / 5 + np.eye(5)).astype(np.float32)

    def energy(x):
        return x @ precision @ x / 2

    def sample(x, key):
        of_speed, of_choice = random.split(key)
        speed = random.normal(of_speed, x.shape)

        def leap(_, state):
            x, v = state
            v = v - 0.05 * jax.grad(energy)(x)
            x = x + 0.1 * v
            return x, v - 0.05 * jax.grad(energy)(x)

        y, v = lax.fori_loop(0, 8, leap, (x, speed))
        gain = energy(x) + speed @ speed / 2 - energy(y) - v @ v / 2
        x = jnp.where(jnp.log(random.uniform(of_choice)) < gain, y, x)
        return x, x

    run = jax.vmap(lambda key, x: lax.scan(sample, x, random.split(key, 20))[1])
    return lambda key, x: run(random.split(key, 4), x), (random.key(3), normal(4, 5))


@program
def mixer():
    """An MLP-mixer's gradient in bf16."""
    weights = [jnp.asarray(normal(*s, scale=0.2), jnp.bfloat16) for s in ((16, 32), (32, 16), (24, 48), (48, 24))]

    def norm(x):
        wide = x.astype(jnp.float32)
        return ((wide - wide.mean(-1, keepdims=True)) * lax.rsqrt(wide.var(-1, keepdims=True) + 1e-6)).astype(x.dtype)

    def loss(w, x):
        x = x + jnp.swapaxes(jax.nn.gelu(jnp.swapaxes(norm(x), 1, 2) @ w[0]) @ w[1], 1, 2)
        x = x + jax.nn.gelu(norm(x) @ w[2]) @ w[3]
        return (x.astype(jnp.float32) ** 2).mean()

    return jax.value_and_grad(loss), (weights, jnp.asarray(normal(4, 16, 24), jnp.bfloat16))


@program
def differential_equation():
    def loss(w, y):
        path = odeint(lambda y, t, w: jnp.tanh(y @ w) - y * jnp.cos(t), y, jnp.linspace(0.0, 1.0, 4), w, rtol=1e-5)
        return (path[-1] ** 2).sum()

    return jax.value_and_grad(loss), (normal(6, 6, scale=0.4), normal(3, 6))


@program
def beam_search():
    words, width, beams = 50, 12, 4

    def run(table, w, out):
        def step(state, _):
            h, scores, token = state
            h = jnp.tanh(h @ w + table[token])
            scores, best = lax.top_k((scores[:, None] + jax.nn.log_softmax(h @ out)).reshape(-1), beams)
            parent, token = best // words, best % words
            return (h[parent], scores, token), (parent, token, scores)

        first = jnp.where(jnp.arange(beams) == 0, 0.0, -1e9)
        return lax.scan(step, (jnp.zeros((beams, width)), first, jnp.ones(beams, int)), None, length=10)[1]

    return run, (normal(words, width), normal(width, width), normal(width, words))


@program
def sparse_products():
    dense = np.where(numbers.random((40, 30)) < 0.1, normal(40, 30), 0)
    matrix = sparse.BCOO.fromdense(dense)

    def run(entries, x):
        def loss(entries, x):
            m = sparse.BCOO((entries, matrix.indices), shape=matrix.shape)
            return (jnp.tanh(m.T @ (m @ x)) ** 2).sum()

        return jax.value_and_grad(loss, argnums=(0, 1))(entries, x)

    return run, (matrix.data, normal(30, 4))


@program
def linear_solves():
    def run(a, b):
        x = jax.vmap(jnp.linalg.solve)(a, b)
        values = jnp.linalg.eigvalsh(a @ jnp.swapaxes(a, 1, 2))
        return x, values, jnp.linalg.slogdet(a), jax.jacobian(lambda b: jnp.linalg.lstsq(a[0], b)[0])(b[0])

    return run, ((normal(8, 6, 6) + 4 * np.eye(6)).astype(np.float32), normal(8, 6))


@program
def filtering():
    """Convolution by Fourier transforms, its gradient, and a spectrogram."""

    def run(x, k):
        def filtered(k):
            return jnp.fft.irfft(jnp.fft.rfft(x, 360) * jnp.fft.rfft(k, 360), 360)

        spectrum = jnp.abs(jax.scipy.signal.stft(x[0], nperseg=32)[2])
        return filtered(k), jax.grad(lambda k: (filtered(k) ** 2).mean())(k), spectrum

    return run, (normal(3, 300), normal(3, 61))


@program
def data_parallel():
    mesh = jax.make_mesh((4,), ("data",))
    P = jax.sharding.PartitionSpec

    def step(w, x, labels):
        value, gradients = jax.value_and_grad(lambda w: cross_entropy(jax.nn.relu(x @ w[0]) @ w[1], labels))(w)
        gradients = jax.tree.map(lambda g: lax.pmean(g, "data"), gradients)
        return lax.pmean(value, "data"), jax.tree.map(lambda p, g: p - 0.1 * g, w, gradients)

    run = jax.shard_map(step, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=(P(), P()), check_vma=False)
    cut = jax.sharding.NamedSharding(mesh, P("data"))
    w = (normal(12, 32, scale=0.3), normal(32, 10, scale=0.3))
    return run, (w, jax.device_put(normal(16, 12), cut), jax.device_put(numbers.integers(0, 10, 16), cut))


kept = {}
for name in sys.argv[2:] or PROGRAMS:
    numbers = np.random.default_rng(0)
    function, arguments = PROGRAMS[name]()
    lowered = jax.jit(function).lower(*arguments)
    before = time.process_time()
    compiled = lowered.compile()
    compiling = time.process_time() - before
    calls = []
    for _ in range(20):
        before = time.process_time()
        result = jax.block_until_ready(compiled(*arguments))
        calls.append(time.process_time() - before)
    print(f"{name:24} {1e3 * compiling:8.0f} {1e3 * min(calls):8.3f}", flush=True)
    for k, leaf in enumerate(jax.tree.leaves(result)):
        kept[f"{name}/{k}"] = np.asarray(leaf.astype(jnp.float32) if leaf.dtype == jnp.bfloat16 else leaf)
np.savez(sys.argv[1], **kept)
