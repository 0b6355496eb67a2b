"""Numerical programs: transforms, factorisations, particles, grids and solvers."""

import math

import jax.numpy as jnp
from jax import lax

from programs.program import f32, program, section

section("science")


def on_parts(transform):
    # Complex numbers inside only: entry arrays hold the parts.
    def f(re, im):
        y = transform(lax.complex(re, im))
        return y.real, y.imag
    return f


@program(golden=dict(rows=7, n=60), timing={"": dict(rows=1, n=1 << 20), "_odd": dict(rows=64, n=1009)})
def fft_1d(rows, n):
    return on_parts(jnp.fft.fft), [f32(rows, n), f32(rows, n)]


@program(golden=dict(rows=18, cols=15), timing=dict(rows=512, cols=512))
def fft_2d(rows, cols):
    return on_parts(jnp.fft.fft2), [f32(rows, cols), f32(rows, cols)]


@program(golden=dict(rows=9, n=50), timing=dict(rows=256, n=1000))
def fft_real(rows, n):
    # A filter: to frequencies, weighted, and back.
    def f(x, gain):
        return jnp.fft.irfft(jnp.fft.rfft(x) * gain, n=n)
    return f, [f32(rows, n), f32(n // 2 + 1)]


def definite(x):
    """A symmetric matrix whose eigenvalues lie clearly above zero."""
    n = x.shape[-1]
    return 0.5 * (x + x.T) + 3 * math.sqrt(n) * jnp.eye(n, dtype=x.dtype)


@program(golden=dict(n=37), timing={"": dict(n=256), "_odd": dict(n=509)}, lowered_for="tpu")
def cholesky(n):
    return (lambda x: lax.linalg.cholesky(definite(x), symmetrize_input=False)), [f32(n, n)]


@program(golden=dict(n=37, columns=11), timing={"": dict(n=256, columns=256), "_odd": dict(n=255, columns=33)},
         lowered_for="tpu")
def triangular_solve(n, columns):
    def f(x, b):
        return lax.linalg.triangular_solve(definite(x), b, left_side=True, lower=True)
    return f, [f32(n, n), f32(n, columns)]


@program(golden=dict(n=45), timing=dict(n=1000), loose=4)
def n_body(n):
    # All pairs: a sum over j of a function of i and j, which is never stored.
    def f(x, v, mass):
        away = x[None, :, :] - x[:, None, :]
        near = lax.rsqrt(jnp.sum(away * away, axis=-1) + 1e-2)
        pull = jnp.sum(away * (mass[None, :] * near * near * near)[:, :, None], axis=1)
        v = v + 1e-3 * pull
        return x + 1e-3 * v, v
    return f, [f32(n, 3), f32(n, 3), f32(n, kind="uniform", lo=0.5, hi=1.5)]


@program(golden=dict(rows=23, cols=31, steps=6), timing=dict(rows=512, cols=511, steps=100))
def jacobi(rows, cols, steps):
    # Relaxation with a fixed border: a loop whose state is swapped.
    def f(x, source):
        def body(_, x):
            inside = 0.25 * (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:] + source[1:-1, 1:-1])
            return x.at[1:-1, 1:-1].set(inside)
        return lax.fori_loop(0, steps, body, x)
    return f, [f32(rows, cols), f32(rows, cols)]


@program(golden=dict(n=13), timing=dict(n=160))
def stencil_3d(n):
    # Seven points of a periodic cube.
    def f(x):
        around = sum(jnp.roll(x, step, axis) for axis in range(3) for step in (-1, 1))
        return x + 0.1 * (around - 6 * x)
    return f, [f32(n, n, n)]


@program(golden=dict(n=40, steps=5), timing=dict(n=1000, steps=8), fixed=("steps",), loose=4)
def conjugate_gradient(n, steps):
    def f(x, b):
        a = definite(x)

        def body(_, state):
            solution, residual, direction, size = state
            image = a @ direction
            step = size / jnp.sum(direction * image)
            solution, residual = solution + step * direction, residual - step * image
            after = jnp.sum(residual * residual)
            return solution, residual, residual + after / size * direction, after
        return lax.fori_loop(0, steps, body, (jnp.zeros_like(b), b, b, jnp.sum(b * b)))[0]
    return f, [f32(n, n), f32(n)]


@program(golden=dict(n=51, steps=7), timing=dict(n=1000, steps=100))
def runge_kutta(n, steps):
    # A ring of coupled oscillators.
    def slope(x, v):
        return v, jnp.roll(x, 1) + jnp.roll(x, -1) - 2 * x - 0.1 * v

    def f(x, v):
        h = 0.01

        def body(_, state):
            x, v = state
            a, b = slope(x, v)
            c, d = slope(x + 0.5 * h * a, v + 0.5 * h * b)
            e, g = slope(x + 0.5 * h * c, v + 0.5 * h * d)
            k, m = slope(x + h * e, v + h * g)
            return x + h / 6 * (a + 2 * c + 2 * e + k), v + h / 6 * (b + 2 * d + 2 * g + m)
        return lax.fori_loop(0, steps, body, (x, v))
    return f, [f32(n), f32(n)]
