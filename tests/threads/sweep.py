#!/usr/bin/env python3
"""Asks for identical bits at any thread count, of programs large enough that work is split.

usage: sweep.py --hlojit BINARY [NAME...]

Every program of bench/hlo and bench/hlo/big (or those named, as `softmax` or `big/softmax`) runs on
random inputs with 1, 2, 3 and 7 threads; the result files must be equal byte for byte. Both folders
hold the same programs, on this side and that of the sizes at which loops are split and results bypass
the cache.
"""

import argparse
import hashlib
import json
import math
import pathlib
import subprocess
import sys
import tempfile

BENCH = pathlib.Path(__file__).resolve().parent.parent.parent / "bench"
sys.path.insert(0, str(BENCH))
import hlo_signature  # noqa: E402

THREADS = (1, 2, 3, 7)
# Result files are written for each thread count: keep to what a disk does in seconds.
LARGEST_RESULT = 32 << 20


class Worker:
    """`hlojit batch`, which answers requests in order."""

    def __init__(self, hlojit):
        self.process = subprocess.Popen([hlojit, "batch"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def ask(self, request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            sys.exit(f"the worker ended with code {self.process.wait()} at {request}")
        return json.loads(answer)


def result_bytes(module):
    """What the result files of a module will take, about: every element counts 8 bytes."""
    _, results = hlo_signature.signature(module.read_text())
    return sum(8 * math.prod(dims) for _, dims in results)


def wrong(worker, module, folder):
    """A sentence about the first thread count that fails or gives other bytes; None if all agree."""
    first = None
    for threads in THREADS:
        target = folder / str(threads)
        answer = worker.ask({"cmd": "run", "module": str(module), "random": 1, "threads": threads,
                             "output_dir": str(target)})
        if answer["rc"]:
            return f"{threads} threads: rc {answer['rc']}: {answer.get('msg')}"
        digests = [hashlib.sha256(file.read_bytes()).digest()
                   for file in sorted(target.glob("out_*.npy"))]
        if not digests:
            return "no result file"
        first = first or digests
        if digests != first:
            return f"{threads} threads give other bits than 1"
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hlojit", required=True)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()

    hlo = BENCH / "hlo"
    modules = {m.relative_to(hlo).with_suffix("").as_posix(): m for m in sorted(hlo.rglob("*.hlo"))}
    if options.names:
        modules = {name: modules[name] for name in options.names}
    modules = {name: m for name, m in modules.items() if result_bytes(m) <= LARGEST_RESULT}
    worker, failed = Worker(options.hlojit), 0
    for name, module in modules.items():
        with tempfile.TemporaryDirectory(prefix="hlojit-threads-") as folder:
            sentence = wrong(worker, module, pathlib.Path(folder))
        if sentence:
            failed += 1
            print(f"FAILED  {name}: {sentence}", flush=True)
    print(f"{len(modules) - failed} of {len(modules)} programs give the same bits")
    sys.exit(1 if failed or not modules else 0)


if __name__ == "__main__":
    main()
