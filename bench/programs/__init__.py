"""The corpus: the programs that hlojit is tested and timed on, written in JAX, a file a group.

program.py says what a program is; importing a group's file registers its programs.
"""

from programs import (  # noqa: F401
    elementwise, movement, reductions, order, contractions, convolutions, models, vision, loops, random_numbers,
    science)
from programs.program import PROGRAMS, Program

__all__ = ["PROGRAMS", "Program"]
