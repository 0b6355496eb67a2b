#!/usr/bin/env python3
"""Compares the results of a run with those that XLA:CPU gave, without NumPy.

usage: compare.py PROGRAM FOLDER

PROGRAM is a name in bench/golden/manifest.json, which holds the golden files and how far a result
may be from them: |got - golden| <= rtol * |golden| + atol. FOLDER holds out_0.npy, ...
"""

import ast
import json
import pathlib
import struct
import sys

BENCH = pathlib.Path(__file__).resolve().parent.parent / "bench"
# Arrays in files by their header, and how Python unpacks them.
CODES = {"|b1": "?", "|i1": "b", "|u1": "B", "<i2": "h", "<u2": "H", "<i4": "i", "<u4": "I",
         "<i8": "q", "<u8": "Q", "<f2": "e", "<f4": "f", "<f8": "d"}


def programs():
    """The programs of the manifest, by name."""
    manifest = json.loads((BENCH / "golden/manifest.json").read_text())
    return {program["name"]: program for program in manifest["programs"]}


def read(path, dtype):
    """(descr, dims, values) of a .npy file in C order; bf16 lies in it as raw bits."""
    raw = path.read_bytes()
    (length,) = struct.unpack_from("<H", raw, 8)
    header = ast.literal_eval(raw[10 : 10 + length].decode())
    data, code = raw[10 + length :], CODES[header["descr"]]
    count = len(data) // struct.calcsize(code)
    values = struct.unpack(f"<{count}{code}", data)
    if dtype == "bf16":
        values = struct.unpack(f"<{count}f", struct.pack(f"<{count}I", *(v << 16 for v in values)))
    return header["descr"], header["shape"], values


def difference(output, result_path):
    """(agrees, a line about it) for an output of the manifest."""
    dtype = output["dtype"]
    *kind, golden = read(BENCH / output["file"], dtype)
    if not result_path.is_file():
        return False, f"{result_path.name} is missing"
    *result_kind, result = read(result_path, dtype)
    if result_kind != kind:
        return False, f"{result_path.name}: {result_kind} instead of {kind}"
    rtol, atol = output["rtol"], output["atol"]
    wrong, largest = 0, 0.0
    for want, got in zip(golden, result):
        if want == got or (want != want and got != got):
            continue
        largest = max(largest, abs(want - got))
        wrong += not abs(want - got) <= rtol * abs(want) + atol
    verdict = f"{wrong:,} are WRONG" if wrong else "agrees"
    return not wrong, (f"{result_path.name}: {len(golden):,} values of {dtype}, "
                       f"largest difference {largest:.2g}: {verdict}")


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: compare.py PROGRAM FOLDER")
    name, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    program = programs().get(name) or sys.exit(f"compare.py: there is no program {name} in {BENCH / 'golden'}")
    agree = True
    for i, output in enumerate(program["outputs"]):
        fits, line = difference(output, folder / f"out_{i}.npy")
        print(f"  {line}")
        agree = agree and fits
    sys.exit(0 if agree else 1)


if __name__ == "__main__":
    main()
