"""Costs of JAX programs before they are compiled: jax.jit(f).lower(x).cost_analysis().

The estimate is of the program as it is written, so that it is the same for every backend, but jaxlib makes it only for
clients that are no plugins. flax's summaries of models show 0 operations without it.
"""

from __future__ import annotations

import functools


@functools.cache
def _estimator():
    """A client of jaxlib's own, which is asked for nothing else."""
    from jaxlib import xla_client

    return xla_client.make_cpu_client()


def install() -> None:
    from jax._src.interpreters import pxla
    from jax._src.lib import _jax

    original = pxla.MeshComputation.cost_analysis

    def cost_analysis(self):
        if "hlojit" not in self.compile_args["backend"].platform_version:
            return original(self)
        return _jax.hlo_module_cost_analysis(_estimator(), self.hlo().as_hlo_module())

    pxla.MeshComputation.cost_analysis = cost_analysis
