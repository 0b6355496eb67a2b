"""Small programs at odd sizes, of every family of ops: hlojit against XLA:CPU, worst first.

    build/venv/bin/python bench/small.py [REGEX...] [--threads N] [--rounds N] [--json FILE]
    build/venv/bin/python bench/small.py --random-shapes 1 --rounds 2     # at sizes that nobody chose

The scoreboard shows a hundred programs that people run; this one looks for what nobody looked at: one op or
idiom each, at sizes that are no multiple of anything, small enough that fixed costs and tails count. Both
sides get the same HLO text and the same inputs, answers are compared first, then rounds of timing are taken
in turns; figures are the least of all calls. Python's call into XLA costs some microseconds: those of a program
that does nothing are taken off XLA's times.
Programs that take less than a microsecond on one side are listed but not counted. The exit code is 1 if an
answer was wrong.
"""

import argparse
import json
import math
import pathlib
import re
import statistics
import sys
import tempfile
import types
import zlib

import xla_peer

# Below this neither side's clock is good enough.
COUNTED_US = 1.0
ROOT = pathlib.Path(__file__).resolve().parent.parent


def options_of():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("patterns", nargs="*", metavar="REGEX", help="whole names; all programs if none")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--min-ms", type=float, default=8)
    parser.add_argument("--write-hlo", metavar="DIR", help="only write DIR/NAME.hlo")
    parser.add_argument("--random-shapes", type=int, metavar="SEED",
                        help="other sizes of the arguments; what does not take them is left out")
    parser.add_argument("--scale", type=float, nargs=2, default=(0.3, 2.5), metavar=("LOW", "HIGH"),
                        help="of what random sizes are the given ones times (default 0.3 2.5)")
    parser.add_argument("--hlojit", default=str(ROOT / "build/release/bin/hlojit"))
    parser.add_argument("--json", metavar="FILE", help="figures: {name: [hlojit us, XLA us, ratio, compile ms of both]}")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error("--rounds: at least one")
    return options


def resized(case, options):
    """The case at sizes drawn for it, the same for the same size; None if its function does not take them."""
    import dataclasses
    import random
    import jax
    generator, sizes = random.Random(f"{options.random_shapes} {case.name}"), {}

    def other(n):
        if n is not None and n > 4 and n not in sizes:
            sizes[n] = max(2, int(n * generator.uniform(*options.scale)))
        return sizes.get(n, n)
    shapes = [tuple(other(n) for n in a.shape) for a in case.arguments]
    arguments = [dataclasses.replace(a, shape=shape, high=sizes.get(a.high, a.high))
                 for a, shape in zip(case.arguments, shapes)]
    # Sums grow with their length, and what cancels in them does.
    made = dataclasses.replace(case, arguments=arguments, loose=max(64.0, 4 * case.loose))
    try:
        with jax.enable_x64(case.x64):
            jax.eval_shape(case.function, *[jax.ShapeDtypeStruct(a.shape, a.dtype) for a in arguments])
    except Exception:  # noqa: BLE001 - sizes that stand in the function differ from these
        return None
    return made if sizes else None


def text_of(case):
    import jax
    with jax.enable_x64(case.x64):
        shapes = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in case.arguments]
        lowered = jax.jit(case.function, keep_unused=True).lower(*shapes)
        return lowered.compiler_ir("hlo").as_hlo_text(print_large_constants=True)


def drawn(case):
    """Inputs as NumPy arrays, a function of the case's name."""
    import numpy as np
    generator = np.random.default_rng(zlib.crc32(case.name.encode()))
    arrays = []
    for a in case.arguments:
        dtype = np.dtype(a.dtype)
        if a.high is not None:
            values = generator.integers(0, a.high, a.shape)
        elif dtype == bool:
            values = generator.integers(0, 2, a.shape)
        elif dtype.kind in "iu":
            values = generator.integers(1 if dtype.kind == "u" else -9, 10, a.shape)
        elif dtype.kind == "c":
            values = generator.uniform(-1, 1, a.shape) + 1j * generator.uniform(-1, 1, a.shape)
        elif a.positive:
            values = generator.uniform(0.1, 2, a.shape)
        else:
            values = generator.uniform(-2, 2, a.shape)
        arrays.append(np.asarray(values).astype(dtype))
    return arrays


def save(path, array):
    import numpy as np
    import npyio
    if array.dtype.kind == "c":
        np.save(path, array)
    else:
        npyio.save(path, array)


def wrong(case, got, expected):
    """None, or what is wrong with one result."""
    import numpy as np
    import tolerances
    kind = expected.dtype.kind
    if kind == "c":
        parts = [(got.real, expected.real), (got.imag, expected.imag)]
        dtype = "f32" if expected.dtype.itemsize == 8 else "f64"
        return next((w for g, e in parts if (w := tolerances.difference(dtype, g, e, case.loose))), None)
    import npyio
    return tolerances.difference(npyio.name_of(expected.dtype), got, np.asarray(expected), case.loose)


def prepared(case, peer, ours, folder):
    """The case with its inputs in files of the folder, compiled by both sides."""
    text, arrays = text_of(case), drawn(case)
    module, files = folder / "module.hlo", []
    module.write_text(text)
    for k, array in enumerate(arrays):
        files.append(str(folder / f"in_{k}.npy"))
        save(files[-1], array)
    request = {"module": str(module), "inputs": files}
    executable = peer.compile(text)
    # Now, as kernels that have been compiled are kept.
    compile_ms = ours.ask(cmd="bench", min_ms=1, **request).get("compile_ms", math.nan)
    return types.SimpleNamespace(case=case, arrays=arrays, folder=folder, request=request, executable=executable,
                                 compile_ms=compile_ms)


def compared(made, ours):
    """None if both sides answer the same, or a sentence."""
    import numpy as np
    import npyio
    golden = made.executable.run(made.arrays)
    answer = ours.ask(cmd="run", output_dir=str(made.folder / "out"), **made.request)
    if answer["rc"] != 0:
        return f"fails: {answer.get('msg', answer['rc'])}"
    for k, expected in enumerate(golden):
        path = made.folder / "out" / f"out_{k}.npy"
        got = np.load(path) if expected.dtype.kind == "c" else npyio.load(path, npyio.name_of(expected.dtype))
        if problem := wrong(made.case, got, expected):
            return f"WRONG: result {k}: {problem}"
    return None


def timed(made, options, ours, nothing):
    """[our us, XLA's us, ratio, our compile ms, XLA's]"""
    import numpy as np
    us, xla = [], []

    def time_ours():
        us.append(ours.ask(cmd="bench", min_ms=options.min_ms, **made.request)["us"][0])

    def time_xla():
        nothing.us = min(nothing.us, *nothing.time([np.zeros(1, np.float32)], options.min_ms / 4))
        xla.append(min(made.executable.time(made.arrays, options.min_ms)))

    for turn in range(options.rounds):
        for side in (time_ours, time_xla) if turn % 2 == 0 else (time_xla, time_ours):
            side()
    xla_us = max(min(xla) - nothing.us, 0.01)
    return [min(us), xla_us, xla_us / min(us), made.compile_ms, made.executable.compile_ms]


def sides(options):
    """(XLA:CPU, hlojit, a program of XLA:CPU's that does nothing)"""
    import numpy as np
    import worker
    peer, ours = xla_peer.Peer(), worker.Worker(options.hlojit, options.threads, 120)
    nothing = peer.compile("HloModule n\nENTRY e {\n  p = f32[1] parameter(0)\n  ROOT r = f32[1] negate(p)\n}\n")
    nothing.us = min(nothing.time([np.zeros(1, np.float32)], 50))
    return peer, ours, nothing


def summary(figures):
    """Of rows as `timed` makes them, those that count."""
    rows = [r for r in figures if min(r[:2]) >= COUNTED_US]
    mean = math.exp(statistics.fmean(math.log(r[2]) for r in rows)) if rows else math.nan
    return (f"{len(rows)} programs counted: geometric mean of XLA's time over ours {mean:.2f}, "
            f"{sum(r[2] < 0.95 for r in rows)} below 0.95")


def main():
    options = options_of()
    xla_peer.restart_with_kept_memory(options.threads)
    from small_programs import CASES
    wanted = [re.compile(p) for p in options.patterns]
    cases = [c for c in CASES.values() if not wanted or any(p.fullmatch(c.name) for p in wanted)]
    if not cases:
        sys.exit("small.py: no program has such a name (small_programs.py lists them)")
    if options.random_shapes is not None:
        cases = [c for c in (resized(c, options) for c in cases) if c]
    if options.write_hlo:
        folder = pathlib.Path(options.write_hlo)
        folder.mkdir(parents=True, exist_ok=True)
        for case in cases:
            (folder / f"{case.name}.hlo").write_text(text_of(case))
        return 0
    peer, ours, nothing = sides(options)
    table, problems = {}, []
    for case in cases:
        with tempfile.TemporaryDirectory() as folder:
            try:
                made = prepared(case, peer, ours, pathlib.Path(folder))
                found = compared(made, ours) or timed(made, options, ours, nothing)
            except Exception as error:  # noqa: BLE001 - a peer that cannot run one program goes on with the next
                found = f"XLA:CPU fails: {str(error)[:120]}"
        if isinstance(found, str):
            problems.append(f"{case.name}: {found}")
            print(problems[-1], flush=True)
        else:
            table[case.name] = found
    ours.close()
    print(f"\n{'program':28} {'hlojit us':>10} {'XLA us':>10} {'XLA/hlojit':>10} {'compile ms':>10} {'XLA':>6}")
    for name, (us, xla, ratio, compiled, xla_compiled) in sorted(table.items(), key=lambda row: row[1][2]):
        print(f"{name:28} {us:10.1f} {xla:10.1f} {ratio:10.2f} {compiled:10.1f} {xla_compiled:6.1f}")
    print(f"\n{summary(table.values())}; {len(problems)} problems; {options.threads} threads")
    for problem in problems:
        print(problem)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(table, indent=1))
    return 1 if any("WRONG" in p for p in problems) else 0


if __name__ == "__main__":
    sys.exit(main())
