#!/usr/bin/env python3
"""Holds the programs of bench/hlo to what XLA:CPU answers, and to the same bits at any thread count.

usage: run.py --hlojit BINARY [--isa ISA] [--against-eval] [--threads] [NAME...]

Every program of bench/golden/manifest.json (or those named) runs compiled on its golden inputs, and
its results are compared with XLA:CPU's within the tolerances of the manifest. With --against-eval
each is also compared with the evaluator. With --threads each runs on 1, 2, 3 and 7 threads instead,
also the larger ones of bench/hlo/big, whose sizes lie beyond the thresholds where work is split; the
result files must be equal byte for byte.
"""

import argparse
import hashlib
import json
import math
import pathlib
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(SOURCE / "tools"), str(SOURCE / "bench")]
import compare  # noqa: E402
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


def golden(worker, program, folder, options):
    """Sentences about what is wrong with one program."""
    request = {"cmd": "run", "module": str(compare.BENCH / program["hlo"]), "output_dir": str(folder),
               "inputs": [str(compare.BENCH / i["file"]) for i in program["inputs"]]}
    request |= {"device_isa": options.isa} if options.isa else {}
    answer = worker.ask(request)
    if answer["rc"]:
        return [f"rc {answer['rc']}: {answer.get('msg')}"]
    found = [compare.difference(output, folder / f"out_{i}.npy")
             for i, output in enumerate(program["outputs"])]
    wrong = [line for fits, line in found if not fits]
    if options.against_eval:
        answer = worker.ask(request | {"cmd": "check", "against_eval": True})
        if answer["rc"]:
            wrong.append(f"against the evaluator: rc {answer['rc']}: {answer.get('msg')}")
    return wrong


def same_bits(worker, request, folder):
    """Sentences about thread counts that give other bytes than one thread."""
    digests = {}
    for threads in THREADS:
        target = folder / str(threads)
        answer = worker.ask(request | {"cmd": "run", "output_dir": str(target), "threads": threads})
        if answer["rc"]:
            return [f"{threads} threads: rc {answer['rc']}: {answer.get('msg')}"]
        digests[threads] = [hashlib.sha256(file.read_bytes()).hexdigest()
                            for file in sorted(target.glob("out_*.npy"))]
        if len(digests[threads]) == 0:
            return ["no result file"]
    return [f"{threads} threads give other bits than 1"
            for threads in THREADS if digests[threads] != digests[1]]


def result_bytes(module):
    """What the result files of a module will take, about: every element counts 8 bytes."""
    _, results = hlo_signature.signature(module.read_text())
    return sum(8 * math.prod(dims) for _, dims in results)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hlojit", required=True)
    parser.add_argument("--isa", default="")
    parser.add_argument("--against-eval", action="store_true")
    parser.add_argument("--threads", action="store_true")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()

    worker = Worker(options.hlojit)
    programs = compare.programs()
    if options.names:
        programs = {name: programs[name] for name in options.names}
    cases = {name: (lambda folder, p=p: golden(worker, p, folder, options))
             for name, p in programs.items()}
    if options.threads:
        requests = {name: {"module": str(compare.BENCH / p["hlo"]),
                           "inputs": [str(compare.BENCH / i["file"]) for i in p["inputs"]]}
                    for name, p in programs.items()}
        for module in sorted((compare.BENCH / "hlo/big").glob("*.hlo")):
            if not options.names and result_bytes(module) <= LARGEST_RESULT:
                requests[f"big/{module.stem}"] = {"module": str(module), "random": 1}
        cases = {name: (lambda folder, r=r: same_bits(worker, r, folder))
                 for name, r in requests.items()}

    failed = 0
    for name, case in cases.items():
        with tempfile.TemporaryDirectory(prefix="hlojit-golden-") as folder:
            wrong = case(pathlib.Path(folder))
        if wrong:
            failed += 1
            print("\n  ".join([f"FAILED  {name}"] + wrong), flush=True)
    print(f"{len(cases) - failed} of {len(cases)} programs hold")
    sys.exit(1 if failed or not cases else 0)


if __name__ == "__main__":
    main()
