"""Writes bench/hlo, bench/golden and its manifest from the programs in programs/.

    build/venv/bin/python bench/generate.py [REGEX]

- bench/hlo/NAME.hlo: what JAX prints for the golden sizes, large constants included;
- bench/hlo/big/NAME.hlo: the same program at the sizes that the scoreboard times;
- NAME_tiled.hlo: the same text with T(8,128), for bf16 T(8,128)(2,1), on the entry's parameters and
  results; its golden arrays are those of NAME, since .npy files hold logical order;
- bench/golden/NAME/in_K.npy, out_K.npy: drawn inputs, and what XLA:CPU makes of them;
- bench/golden/manifest.json: the contract with the tests, see bench/README.md.

Everything is a function of programs/ and of the versions in requirements.txt: inputs are seeded by
the program's name. REGEX limits the work to the programs it matches; the manifest keeps the others.
"""

import json
import pathlib
import re
import sys
import zlib

import jax
import ml_dtypes
import numpy as np

import npyio
import xla_peer
from programs import PROGRAMS
from tolerances import TOLERANCES, limits

BENCH = pathlib.Path(__file__).resolve().parent

def lower(program, sizes):
    """(HLO text, arguments) of a program at given sizes."""
    function, arguments = program.build(**sizes)
    with jax.enable_x64(program.x64):
        shapes = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in arguments]
        jitted = jax.jit(function, donate_argnums=program.donate, keep_unused=True)
        lowered = jitted.trace(*shapes).lower(lowering_platforms=(program.lowered_for,))
        text = lowered.compiler_ir("hlo").as_hlo_text(print_large_constants=True)
    return text.rstrip("\n") + "\n", arguments


def draw(argument, generator):
    """An array as an Arg of programs/program.py describes it."""
    dtype = np.dtype(argument.dtype)
    if argument.kind == "fair":
        return generator.integers(0, 2, argument.shape).astype(dtype)
    if argument.kind == "int":
        wide = np.uint64 if dtype.kind == "u" else np.int64
        return generator.integers(argument.lo, argument.hi, argument.shape, dtype=wide).astype(dtype)
    if argument.kind == "uniform":
        values = generator.uniform(argument.lo, argument.hi, argument.shape)
    else:
        values = generator.standard_normal(argument.shape) * argument.scale
    if argument.coarse:
        values = np.asarray(values).astype(ml_dtypes.bfloat16)
    return np.asarray(values).astype(dtype)


def draw_all(name, arguments):
    generator = np.random.default_rng(zlib.crc32(name.encode()))
    return [draw(a, generator) for a in arguments]


def tiled(text):
    """The text with tiles on the entry's arrays of two or more dimensions, nothing else changed."""

    def tile(line):
        line = re.sub(r"(f32\[\d+,[\d,]+\]\{[\d,]+)\}", r"\1:T(8,128)}", line)
        return re.sub(r"(bf16\[\d+,[\d,]+\]\{[\d,]+)\}", r"\1:T(8,128)(2,1)}", line)

    lines = text.split("\n")
    entry = next(i for i, line in enumerate(lines) if line.startswith("ENTRY"))
    root = next(line for line in lines[entry:] if line.startswith("  ROOT"))
    results = []
    if " tuple(" in root:
        results = re.search(r" tuple\((.*?)\)", root)[1].split(", ")
    lines[0] = tile(lines[0])
    for i in range(entry + 1, len(lines)):
        name = lines[i].strip().removeprefix("ROOT ").split(" ")[0]
        if " parameter(" in lines[i] or lines[i] == root or name in results:
            lines[i] = tile(lines[i])
    return "\n".join(lines)


def describe_output(path, array):
    dtype = npyio.name_of(array.dtype)
    rtol, atol = limits(dtype, array)
    return {"file": path, "dtype": dtype, "rtol": rtol, "atol": atol}


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def golden(program, peer):
    """Writes the small files of a program; returns its manifest entries."""
    text, arguments = lower(program, program.golden)
    write(BENCH / "hlo" / f"{program.name}.hlo", text)
    folder = BENCH / "golden" / program.name
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.npy"):
        old.unlink()

    arrays = draw_all(program.name, arguments)
    inputs, outputs = [], []
    for k, array in enumerate(arrays):
        npyio.save(folder / f"in_{k}.npy", array)
        inputs.append({"file": f"golden/{program.name}/in_{k}.npy", "dtype": npyio.name_of(array.dtype)})
    for k, array in enumerate(peer.compile(text).run(arrays)):
        npyio.save(folder / f"out_{k}.npy", array)
        outputs.append(describe_output(f"golden/{program.name}/out_{k}.npy", array))

    entry = {"name": program.name, "hlo": f"hlo/{program.name}.hlo", "inputs": inputs, "outputs": outputs}
    if not program.tiled:
        return [entry]
    name = f"{program.name}_tiled"
    write(BENCH / "hlo" / f"{name}.hlo", tiled(text))
    return [entry, {**entry, "name": name, "hlo": f"hlo/{name}.hlo"}]


def timing(program):
    for suffix, sizes in program.timing.items():
        text, _ = lower(program, sizes)
        write(BENCH / "hlo" / "big" / f"{program.name}{suffix}.hlo", text)
        if program.tiled:
            write(BENCH / "hlo" / "big" / f"{program.name}{suffix}_tiled.hlo", tiled(text))


def main():
    wanted = re.compile(sys.argv[1] if len(sys.argv) > 1 else "")
    path = BENCH / "golden" / "manifest.json"
    kept = json.loads(path.read_text())["programs"] if path.exists() and len(sys.argv) > 1 else []
    entries = {entry["name"]: entry for entry in kept}
    peer = xla_peer.Peer()
    for program in PROGRAMS.values():
        if wanted.search(program.name):
            for entry in golden(program, peer):
                entries[entry["name"]] = entry
            timing(program)
    manifest = {"jaxlib": xla_peer.version(), "tolerances": {k: list(v) for k, v in TOLERANCES.items()},
                "programs": sorted(entries.values(), key=lambda e: e["name"])}
    write(path, json.dumps(manifest, indent=1) + "\n")
    print(f"{len(entries)} programs in {path.relative_to(BENCH.parent)}")


if __name__ == "__main__":
    main()
