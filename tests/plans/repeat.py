#!/usr/bin/env python3
"""Asks for the same plan and the same code each time a program is compiled.

usage: repeat.py --hlojit BINARY [--repeats N] [NAME...]

A plan may depend on the program, the machine and the options, and on nothing else: not on where the
heap lies (fresh processes have it elsewhere), not on the thread count, not on where the output goes.
Every program of bench/hlo (or those named) is compiled N times in processes of its own, by turns with
other thread counts, allocators and outputs; HLO after all passes and LLVM IR must be equal texts.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

BENCH = pathlib.Path(__file__).resolve().parent.parent.parent / "bench" / "hlo"


def compiled(hlojit, module, emit, turn, folder):
    """What one process makes of the module."""
    command = [hlojit, "compile", str(module), f"--emit={emit}", "--threads", str(1 + turn % 3)]
    environment = dict(os.environ, MALLOC_PERTURB_=str(turn % 256), PADDING="x" * (turn * 333 % 5000))
    if turn % 2:
        # Another break between mapped and heap memory: blocks come in another order.
        environment["MALLOC_TOP_PAD_"] = str(turn * 12_345)
        environment["MALLOC_ARENA_MAX"] = "1"
    target = folder / "out.txt"
    if turn % 2:
        command += ["-o", str(target)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        return f"exit {done.returncode}: {done.stderr}"
    return target.read_text() if turn % 2 else done.stdout


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--hlojit", required=True)
    options.add_argument("--repeats", type=int, default=3)
    options.add_argument("names", nargs="*")
    options = options.parse_args()
    modules = [BENCH / f"{n}.hlo" for n in options.names] or sorted(BENCH.glob("*.hlo"))
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for module in modules:
            for emit in ("hlo", "llvm"):
                texts = {compiled(options.hlojit, module, emit, turn, pathlib.Path(folder))
                         for turn in range(options.repeats)}
                if len(texts) > 1:
                    wrong += 1
                    print(f"{module.stem}: {len(texts)} different texts of --emit={emit}")
    print(f"{len(modules)} programs, {options.repeats} times each: {wrong} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
