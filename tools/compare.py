#!/usr/bin/env python3
"""Compares the results of a run with those that XLA:CPU gave, without NumPy.

usage: compare.py PROGRAM FOLDER

PROGRAM is a name in bench/golden/manifest.json, which holds the golden files and how far a result
may be from them: |got - golden| <= rtol * |golden| + atol. FOLDER holds out_0.npy, ...
"""

import array
import ast
import json
import pathlib
import struct
import sys

BENCH = pathlib.Path(__file__).resolve().parent.parent / "bench"
CODES = {"<f4": "f", "<f8": "d", "<i4": "i", "<u4": "I", "<i8": "q", "|i1": "b", "|b1": "B"}


def read(path):
    """(descr, dims, values) of a .npy file in C order."""
    raw = path.read_bytes()
    (length,) = struct.unpack_from("<H", raw, 8)
    header = ast.literal_eval(raw[10 : 10 + length].decode())
    return header["descr"], header["shape"], array.array(CODES[header["descr"]], raw[10 + length :])


def agrees(output, result_path):
    """Prints one line about an output of the manifest."""
    *kind, golden = read(BENCH / output["file"])
    *result_kind, result = read(result_path)
    if result_kind != kind:
        print(f"  {result_path.name}: {result_kind} instead of {kind}")
        return False
    wrong, largest = 0, 0.0
    for want, got in zip(golden, result):
        if want == got or (want != want and got != got):
            continue
        largest = max(largest, abs(want - got))
        wrong += not abs(want - got) <= output["rtol"] * abs(want) + output["atol"]
    print(f"  {result_path.name}: {len(golden):,} values of {output['dtype']}, "
          f"largest difference {largest:.2g}: " + (f"{wrong:,} are WRONG" if wrong else "agrees"))
    return wrong == 0


def main():
    name, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    programs = json.loads((BENCH / "golden/manifest.json").read_text())["programs"]
    (program,) = [p for p in programs if p["name"] == name]
    found = [agrees(output, folder / f"out_{i}.npy") for i, output in enumerate(program["outputs"])]
    sys.exit(0 if all(found) else 1)


if __name__ == "__main__":
    main()
