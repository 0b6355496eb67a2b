#!/usr/bin/env python3
"""Asks for the same bits of our own output fed back.

usage: feedback.py --hlojit BINARY [--share N/M] [NAME...]

What a pass prints is HLO, so it must mean what it meant before, and compiling it must give the same
machine code or at least the same bits. Every program of bench/hlo and every module of tests/hlo/run
that compiles (or those whose names contain NAME) is printed after each pass; each different text is
compiled and run on the same random values as the original. --share 1/4 takes every fourth text, others
for each program, which bounds the time.
"""

import argparse
import hashlib
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


class Worker:
    """`hlojit batch`, which answers requests in order; a new one if it ends."""

    def __init__(self, hlojit):
        self.hlojit = hlojit
        self.start()

    def start(self):
        self.process = subprocess.Popen([self.hlojit, "batch"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def ask(self, request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            code = self.process.wait()
            self.start()
            return {"rc": code, "msg": "the process ended"}
        return json.loads(answer)


def modules(folder):
    """(name, text) of all programs that may be compiled."""
    for path in sorted((ROOT / "bench" / "hlo").glob("*.hlo")):
        yield path.stem, path.read_text()
    for path in sorted((ROOT / "tests" / "hlo" / "run").glob("*.hlo")):
        for k, section in enumerate(path.read_text().split("// -----\n")):
            if "<=" in section:
                continue  # dynamic sizes become results of their own
            if "UNSUPPORTED:" not in section and "ERROR:" not in section and "OPTION:" not in section:
                yield f"{path.stem}.{k}", section


def bits(worker, module, folder):
    """A digest of the results on random inputs, or the error."""
    for old in folder.glob("*"):
        old.unlink()
    answer = worker.ask({"cmd": "run", "module": str(module), "random": 1, "output_dir": str(folder)})
    if answer["rc"]:
        return None, f"rc {answer['rc']}: {answer.get('msg')}"
    digest = hashlib.sha256()
    for file in sorted(folder.iterdir()):
        digest.update(file.name.encode() + file.read_bytes())
    return digest.digest(), ""


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--hlojit", required=True)
    options.add_argument("--share", default="1/1")
    options.add_argument("names", nargs="*")
    options = options.parse_args()
    part, parts = map(int, options.share.split("/"))
    worker = Worker(options.hlojit)
    programs = texts = wrong = 0
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        results = scratch / "results"
        results.mkdir()
        for number, (name, text) in enumerate(modules(scratch)):
            if options.names and not any(n in name for n in options.names):
                continue
            module = scratch / "module.hlo"
            module.write_text(text)
            want, why = bits(worker, module, results)
            if want is None:
                continue  # what does not compile has tests of its own
            programs += 1
            dump = scratch / "dump"
            answer = worker.ask({"cmd": "opt", "module": str(module), "dump_to": str(dump)})
            if not dump.is_dir():
                sys.exit(f"{name}: no dump: {answer}")
            seen = {text}
            for step, printed in enumerate(sorted(dump.glob("*.hlo"))):
                again = printed.read_text()
                if again in seen or (step + number) % parts != part % parts:
                    continue
                seen.add(again)
                texts += 1
                got, why = bits(worker, printed, results)
                if got != want:
                    wrong += 1
                    print(f"{name} after {printed.stem}: {why or 'other bits'}")
            for file in dump.iterdir():
                file.unlink()
            dump.rmdir()
    print(f"{programs} programs, {texts} texts fed back: {wrong} wrong")
    return 1 if wrong or not texts else 0


if __name__ == "__main__":
    sys.exit(main())
