"""What a peer is: something else that computes what a program computes, timed beside hlojit.

A peer is a class in a file of its own: `name`, `Peer(threads, isa)`, which raises Missing if it cannot be used
here, `version()`, and `prepare(case)`, which gives a Ready, or None for a program that the peer does not run.
"""

import dataclasses
import pathlib
import time

import numpy as np


class Missing(Exception):
    """A peer that cannot be used on this machine or with these options; the text says why."""


@dataclasses.dataclass
class Case:
    """One program at one size, with drawn arguments."""

    name: str  # of the program and its size: the row of the table
    program: object  # programs.Program
    sizes: dict
    text: str  # HLO, untiled
    tiled: str | None  # the same with tiled layouts, or None
    arrays: list  # arguments, NumPy
    folder: pathlib.Path  # for files, removed afterwards


class Ready:
    """A program that a peer is ready to run, again and again on the same arguments."""

    def __init__(self, call, results, compile_ms=None, memory_bytes=None):
        """call(): one call that has ended when it returns, its value dropped by whoever times it; results(): what it
        gives, NumPy arrays a result leaf in HLO's order."""
        self.call, self.results = call, results
        self.compile_ms = [] if compile_ms is None else [compile_ms]
        self.memory_bytes = memory_bytes

    def time(self, seconds, least=3):
        """us of single calls for `seconds`; at least `least`, but no second one beyond ten times `seconds`."""
        times, spent = [], 0.0
        while spent < seconds or (len(times) < least and spent < 10 * seconds):
            start = time.perf_counter()
            result = self.call()
            elapsed = time.perf_counter() - start
            del result  # freed outside the time, as a caller may
            times.append(elapsed * 1e6)
            spent += elapsed
        return times


def as_list(results):
    """One array or several, as a list."""
    return [np.asarray(r) for r in results] if isinstance(results, (tuple, list)) else [np.asarray(results)]
