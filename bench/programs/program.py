"""What a program of the corpus is, and how one is registered.

A program is a function of some named sizes: it returns the JAX function and a description of its
arguments. `golden` sizes are small and odd on purpose (what is not a multiple of a vector, of a tile
or of a block is where compilers break); `timing` sizes are what the scoreboard measures, one HLO file
per suffix. generate.py turns both into HLO text. The scoreboard also draws timing sizes at random,
except those a program declares `fixed`, so no size may be tuned for.
"""

import dataclasses
from typing import Callable

import jax.numpy as jnp

BF16 = jnp.bfloat16
F16 = jnp.float16
F32 = jnp.float32
F64 = jnp.float64
S8 = jnp.int8
S16 = jnp.int16
S32 = jnp.int32
S64 = jnp.int64
U8 = jnp.uint8
U32 = jnp.uint32
PRED = jnp.bool_


@dataclasses.dataclass(frozen=True)
class Arg:
    """One argument: how to draw it. `kind` is normal, uniform (in [lo, hi)), int (in [lo, hi)) or fair."""

    shape: tuple
    dtype: object = F32
    kind: str = "normal"
    lo: float = 0.0
    hi: float = 1.0
    scale: float = 1.0
    # Rounded to bf16 values: keeps the big weights of a golden program small in a packed repository.
    coarse: bool = False


@dataclasses.dataclass(frozen=True)
class Program:
    name: str
    build: Callable
    golden: dict
    timing: dict
    donate: tuple = ()
    x64: bool = False
    tiled: bool = False
    fixed: tuple = ()  # sizes that a random draw leaves alone
    # Tolerances grow by this at timing sizes: for sums of so many terms that XLA's own error shows.
    loose: float = 1.0
    alone: tuple = ()  # suffixes at which the scoreboard asks no peer
    # "tpu" keeps HLO's own factorisations, for which JAX calls LAPACK on the CPU.
    lowered_for: str = "cpu"
    group: str = ""


PROGRAMS: dict[str, Program] = {}
_group = ""


def section(name):
    """The programs that follow belong to this group, for which the scoreboard prints a mean."""
    global _group
    _group = name


def program(golden, timing, **options):
    """Registers build(**sizes) -> (function, [Arg, ...]) under its own name."""

    def register(build):
        name = build.__name__
        cases = timing if all(isinstance(v, dict) for v in timing.values()) else {"": timing}
        PROGRAMS[name] = Program(name, build, golden, cases, group=_group, **options)
        return build

    return register


def f32(*shape, **options):
    return Arg(shape, F32, **options)


def bf16(*shape, **options):
    return Arg(shape, BF16, **options)


def ints(*shape, dtype=S32, lo=-1000, hi=1000):
    return Arg(shape, dtype, "int", lo, hi)
