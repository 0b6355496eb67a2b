"""Factorisations and what is solved with them, of single matrices and of batches."""

import jax.numpy as jnp
import jax.scipy.linalg as scipy
import numpy as np

from random_programs.draw import Drawn, argument, described, gradient


def shifted(a):
    """Well conditioned: the eigenvalues of random elements are within 1.2 sqrt(n)."""
    n = a.shape[-1]
    return a + 4 * n ** 0.5 * jnp.eye(n, dtype=a.dtype)


def definite(a):
    return shifted((a + a.mT) / 2)


def rebuilt(a):
    """Eigenvectors have no sign, so what they rebuild is compared."""
    values, vectors = jnp.linalg.eigh(definite(a))
    return values, (vectors * jnp.sqrt(values)[..., None, :]) @ vectors.mT


# (matrices, right sides) -> result
KINDS = {
    "cholesky": lambda a, b: jnp.linalg.cholesky(definite(a)), "solve": lambda a, b: jnp.linalg.solve(shifted(a), b),
    "lower solve": lambda a, b: scipy.solve_triangular(shifted(a), b, lower=True),
    "upper solve": lambda a, b: scipy.solve_triangular(shifted(a), b), "inverse": lambda a, b: jnp.linalg.inv(shifted(a)),
    "transposed solve": lambda a, b: scipy.solve_triangular(shifted(a), b, lower=True, trans=1),
    "cholesky solve": lambda a, b: scipy.cho_solve((jnp.linalg.cholesky(definite(a)), True), b),
    "qr": lambda a, b: jnp.linalg.qr(shifted(a)), "r": lambda a, b: jnp.linalg.qr(b, mode="r"),
    "lu": lambda a, b: scipy.lu_factor(shifted(a)), "eigenvalues": lambda a, b: jnp.linalg.eigvalsh(a + a.mT),
    "square root": lambda a, b: rebuilt(a), "singular values": lambda a, b: jnp.linalg.svd(a, compute_uv=False),
    "det": lambda a, b: jnp.linalg.det(shifted(a) / a.shape[-1]), "slogdet": lambda a, b: jnp.linalg.slogdet(shifted(a)),
    "expm": lambda a, b: scipy.expm(a / a.shape[-1]), "power": lambda a, b: jnp.linalg.matrix_power(a / a.shape[-1], 5),
    "gaussian": lambda a, b: (lambda c: jnp.sum(scipy.solve_triangular(c, b, lower=True) ** 2, axis=-2)
                              + jnp.log(jnp.diagonal(c, axis1=-2, axis2=-1)).sum(-1)[..., None])(
                                  jnp.linalg.cholesky(definite(a))),
    "kalman gain": lambda a, b: jnp.linalg.solve(definite(a) + b @ b.mT / b.shape[-1], b),
    "gram": lambda a, b: b.mT @ b, "norm": lambda a, b: jnp.linalg.norm(a, axis=(-2, -1)),
    "trace": lambda a, b: jnp.trace(a, axis1=-2, axis2=-1), "lower": lambda a, b: jnp.tril(a) @ b,
}


def linalg(d):
    name = d.choice(list(KINDS))
    n = d.randint(2, 8) if d.likely(0.5) else d.size(8, 150)
    room = max(1, int(d.elements(500, 100_000) / n ** 2))
    batch = [] if d.likely(0.25) else d.sizes(d.randint(1, 2), room)
    columns = d.randint(1, 3) if d.likely(0.4) else d.size(1, 2 * n)
    dtype = d.choice([np.float32] * 4 + [np.float64])
    arguments = [argument([*batch, n, n], dtype), argument([*batch, n, columns], dtype)]
    made = Drawn(f"{name} {described(arguments)}", KINDS[name], arguments)
    differentiable = name not in ("lu", "r", "qr", "singular values", "eigenvalues", "square root")
    return gradient(made) if differentiable and d.likely(0.2) else made
