"""Programs drawn at random: a family a function, the same program for the same family, seed and number."""

import dataclasses
import math

import jax
import numpy as np

from random_programs.accesses import gather, indexing, scatter
from random_programs.bits import bits
from random_programs.chains import mix
from random_programs.decoders import decoders
from random_programs.draw import MOST, Draw, Drawn, gradient
from random_programs.filters import filters
from random_programs.finance import finance
from random_programs.functions import numpy, samples, special
from random_programs.geometry import geometry
from random_programs.graphs import graphs
from random_programs.joined import cat, ein
from random_programs.layers import network
from random_programs.loops import control
from random_programs.matrices import linalg
from random_programs.ordering import order
from random_programs.quantised import quantised
from random_programs.quantum import quantum
from random_programs.signals import grid, image, signal
from random_programs.windowed import conv, pool
from random_programs.worlds import worlds
from small_programs import Case


def grad(d):
    return gradient(d.choice([mix, mix, mix, ein, conv, control])(d))


def vmapped(d):
    """Over a dim of each argument, wherever it is; some arguments are the same for all."""
    batch = d.size(2, 64)
    d.share /= batch
    inner = d.choice([mix, ein, cat, gather, scatter, indexing, control, order, linalg, pool])(d)
    places = [d.randint(0, len(a.shape)) if k == 0 or d.likely(0.75) else None
              for k, a in enumerate(inner.arguments)]
    out = d.choice([0, 0, -1])
    arguments = [a if p is None else dataclasses.replace(a, shape=(*a.shape[:p], batch, *a.shape[p:]))
                 for a, p in zip(inner.arguments, places)]
    return Drawn(f"vmap {batch} at {places} to {out} of {inner.text}",
                 jax.vmap(inner.function, in_axes=tuple(places), out_axes=out), arguments)


FAMILIES = {"mix": mix, "grad": grad, "ein": ein, "cat": cat, "scatter": scatter, "gather": gather,
            "indexing": indexing, "conv": conv, "pool": pool, "control": control, "order": order, "linalg": linalg,
            "vmapped": vmapped, "nn": network, "numpy": numpy, "special": special, "samples": samples, "image": image,
            "signal": signal, "grid": grid, "geometry": geometry, "quantum": quantum, "bits": bits, "finance": finance,
            "decoders": decoders, "quantised": quantised, "graphs": graphs, "filters": filters,
            "worlds": worlds}
# Errors grow along a chain of steps, and sums cancel; a program that is wrong is off by more.
LOOSE = 256.0


def is_wide(argument):
    return np.dtype(argument.dtype).itemsize == 8


def program(family, seed, number):
    """(the case, its description). What JAX refuses or is too large is drawn again, in the same way everywhere."""
    for attempt in range(100):
        draw = Draw(f"{family} {seed} {number} {attempt}")
        try:
            drawn = FAMILIES[family](draw)
            wide = any(is_wide(a) for a in drawn.arguments)
            with jax.enable_x64(wide):
                results = drawn.results()
        except Exception:  # noqa: BLE001 - a function without a gradient, or without a batch rule
            continue
        sizes = [math.prod(a.shape) for a in [*drawn.arguments, *results]]
        if all(0 < n <= 2 * MOST for n in sizes):
            return Case(f"{family}_{seed}_{number}", drawn.function, drawn.arguments, wide, LOOSE), drawn.text
    raise ValueError(f"{family} {seed} {number}: nothing to run in 100 draws")
