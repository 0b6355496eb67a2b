"""hlojit against XLA:CPU on the programs of bench/hlo/big: the same HLO text, one run, one table.

    build/venv/bin/python bench/scoreboard.py [REGEX...] [options]

For every program: inputs are drawn; both sides compute and the answers are compared (tolerances.py);
then both are timed in turns, the order swapped each round, so that what disturbs the machine disturbs
both. A figure is the median over rounds of a round's median call. Roofs come from build/release/bin's
`roofline` in the same run, at the program's own size and mix of reads and writes. With --write the
table replaces the one in bench/README.md. The exit code is 1 if a program failed or gave a wrong answer.
"""

import argparse
import json
import math
import os
import pathlib
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time

import hlo_signature
import work
import worker
import xla_peer

ROOT = pathlib.Path(__file__).resolve().parent.parent
BIG = ROOT / "bench" / "hlo" / "big"
README = ROOT / "bench" / "README.md"
MARKERS = "<!-- {}: begin -->", "<!-- {}: end -->"
# Nearer than this is called equal.
CLEAR = 1.25
# Below this Python's share of XLA's call shows.
SMALL_US = 20.0


def cases(patterns):
    """[(name, program, untiled text path, path for hlojit)] of what the patterns select."""
    from programs import PROGRAMS
    wanted = [re.compile(p) for p in patterns]
    for program in PROGRAMS.values():
        for suffix in program.timing:
            for tiles in ["", "_tiled"] if program.tiled else [""]:
                name = f"{program.name}{suffix}{tiles}"
                if not wanted or any(p.fullmatch(name) for p in wanted):
                    yield name, program, BIG / f"{program.name}{suffix}.hlo", BIG / f"{name}.hlo", suffix


def random_sizes(program, suffix, generator):
    """Timing sizes with every size that may vary scaled by 0.6 to 1.4."""
    return {key: size if key in program.fixed else max(1, round(size * generator.uniform(0.6, 1.4)))
            for key, size in program.timing[suffix].items()}


def roof_rates(options):
    """Measured rates: {type: GFLOP/s}."""
    table = json.loads(subprocess.run([options.roofline, "--flops", "--threads", str(options.threads)],
                                      capture_output=True, check=True).stdout)
    return {row["type"]: row["rate"] for row in table["flops"]}


def roof_us(options, rates, text):
    """(us at the roof, bytes, operations)"""
    read, written = work.traffic(text)
    count, dtype = work.operations(text)
    answer = subprocess.run([options.roofline, "--read", str(read), "--write", str(written),
                             "--threads", str(options.threads)], capture_output=True, check=True).stdout
    moved = (read + written) / (json.loads(answer)["gb_per_s"] * 1e3)
    computed = count / (rates.get(dtype, rates["f32"]) * 1e3)
    return max(moved, computed), read + written, count


class Row:
    """One line of the table; `problem` says why there are no figures, if so."""

    def __init__(self, name, group, note=""):
        self.name, self.group, self.note, self.problem = name, group, note, None
        self.ours, self.xla, self.our_compile, self.xla_compile = [], [], [], []
        self.roof = self.bytes = self.operations = 0

    def us(self):
        return statistics.median(self.ours)

    def xla_us(self):
        return statistics.median(self.xla)

    def ratio(self):
        return self.xla_us() / self.us()

    def verdict(self):
        if self.problem:
            return self.problem
        if not self.ours:
            return "agrees"
        small = " (small)" if min(self.us(), self.xla_us()) < SMALL_US else ""
        if self.ratio() >= CLEAR:
            return "faster" + small
        return ("equal" if self.ratio() > 1 / CLEAR else "**slower**") + small

    def cells(self):
        label = self.name + (f" `{self.note}`" if self.note else "")
        if not self.ours or self.problem:
            return [label] + ["–"] * 10 + [self.verdict()]
        us = self.us()
        spread = lambda times: f"{100 * (max(times) - min(times)) / statistics.median(times):.0f}"
        return [label, figure(us), spread(self.ours), figure(self.xla_us()), spread(self.xla),
                f"{self.ratio():.2f}", f"{self.bytes / us / 1e3:.1f}", f"{100 * self.roof / us:.0f}",
                f"{self.operations / us / 1e3:.0f}" if self.operations else "–",
                figure(statistics.median(self.our_compile)), figure(statistics.median(self.xla_compile)),
                self.verdict()]

    def record(self):
        keep = ("name", "group", "note", "problem", "ours", "xla", "our_compile", "xla_compile", "roof",
                "bytes", "operations")
        return {key: getattr(self, key) for key in keep}


HEADINGS = ["program", "hlojit µs", "± %", "XLA µs", "± %", "XLA/hlojit", "GB/s", "% of roof", "GFLOP/s",
            "compile ms", "XLA's", "verdict"]


def figure(value):
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def measure(row, case, options, peer, ours, rates, folder):
    """Fills a row: answers, roof, then rounds of timing in turns."""
    import npyio
    import tolerances
    from generate import draw_all
    name, program, text, module, arguments = case
    arrays = draw_all(program.name, arguments)
    files = []
    for k, array in enumerate(arrays):
        files.append(str(folder / f"in_{k}.npy"))
        npyio.save(files[-1], array)

    executable = peer.compile(text)
    golden = executable.run(arrays)
    answer = ours.ask(cmd="run", module=str(module), inputs=files, output_dir=str(folder / "out"))
    if answer["rc"] != 0:
        row.problem = f"fails: {answer.get('msg', answer['rc'])}"
        return
    for k, expected in enumerate(golden):
        dtype = npyio.name_of(expected.dtype)
        got = npyio.load(folder / "out" / f"out_{k}.npy", dtype)
        wrong = tolerances.difference(dtype, got, expected, program.loose)
        if wrong:
            row.problem = f"**wrong**: result {k}: {wrong}"
            return
    del golden
    if options.answers:
        return

    row.roof, row.bytes, row.operations = roof_us(options, rates, text)

    def time_xla():
        row.xla_compile.append(peer.compile(text).compile_ms)
        row.xla.append(statistics.median(executable.time(arrays, options.min_ms)))

    def time_ours():
        answer = ours.ask(cmd="bench", module=str(module), inputs=files, min_ms=options.min_ms)
        if answer["rc"] != 0:
            row.problem = f"fails: bench: {answer.get('msg', answer['rc'])}"
            return
        row.ours.append(answer["us"][1])
        row.our_compile.append(answer["compile_ms"])

    for turn in range(options.rounds):
        for side in (time_ours, time_xla) if turn % 2 == 0 else (time_xla, time_ours):
            if not row.problem:
                side()
                time.sleep(0.02)  # the other side's threads stop spinning


def mean(values):
    return math.exp(statistics.fmean(math.log(v) for v in values)) if values else float("nan")


def render(rows, options):
    drawn = "" if options.random_shapes is None else f"; sizes drawn with seed {options.random_shapes}"
    lines = [f"{machine()}, {options.threads} threads; {options.versions}; {options.rounds} rounds of "
             f"{options.min_ms:g} ms{drawn}; {time.strftime('%Y-%m-%d', time.gmtime())}.", "",
             "| " + " | ".join(HEADINGS) + " |", "|---|" + "--:|" * (len(HEADINGS) - 2) + "---|"]
    lines += ["| " + " | ".join(row.cells()) + " |" for row in rows]
    good = [row for row in rows if not row.problem]
    lines += ["", "| geometric mean over | programs | XLA/hlojit | % of roof | XLA's compile/ours |",
              "|---|--:|--:|--:|--:|"]
    groups = list(dict.fromkeys(row.group for row in good))
    for group in [*groups, "all"]:
        some = [row for row in good if group in (row.group, "all")]
        compile_ratio = mean([statistics.median(r.xla_compile) / statistics.median(r.our_compile) for r in some])
        lines.append(f"| {group} | {len(some)} | {mean([r.ratio() for r in some]):.2f} | "
                     f"{100 * mean([r.roof / r.us() for r in some]):.0f} | {compile_ratio:.1f} |")
    losing = sum(row.ratio() <= 1 / CLEAR for row in good)
    lines += ["", f"{len(good)} of {len(rows)} programs run and agree; {losing} are clearly slower than "
                  f"XLA:CPU, {sum(row.ratio() >= CLEAR for row in good)} clearly faster."]
    return "\n".join(lines) + "\n"


def machine():
    with open("/proc/cpuinfo") as file:
        model = next((line.split(":")[1].strip() for line in file if line.startswith("model name")),
                     platform.machine())
    return model


def write_readme(table, section):
    """Replaces what stands between the markers of a section ("scoreboard", "random shapes")."""
    text = README.read_text()
    opening, closing = (marker.format(section) for marker in MARKERS)
    begin, end = text.index(opening) + len(opening), text.index(closing)
    README.write_text(text[:begin] + "\n" + table + text[end:])


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("patterns", nargs="*", metavar="REGEX", help="whole names; all programs if none")
    parser.add_argument("--quick", action="store_true", help="3 rounds of 20 ms instead of 7 of 60")
    parser.add_argument("--random-shapes", type=int, metavar="SEED",
                        help="instead of the stated sizes, sizes drawn around them")
    parser.add_argument("--answers", action="store_true", help="compare the answers, time nothing")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--write", action="store_true", help="put the table into bench/README.md")
    parser.add_argument("--hlojit", default=str(ROOT / "build/release/bin/hlojit"))
    parser.add_argument("--roofline", default=str(ROOT / "build/release/bin/roofline"))
    parser.add_argument("--json", default=str(ROOT / "build/scoreboard.json"), help="raw figures")
    parser.add_argument("--timeout-s", type=float, default=120)
    options = parser.parse_args()
    options.rounds, options.min_ms = (3, 20) if options.quick else (7, 60)
    return options


def main():
    options = arguments()
    xla_peer.restart_with_kept_memory(options.threads)
    import random
    from generate import lower, tiled
    peer, rates = xla_peer.Peer(), {} if options.answers else roof_rates(options)
    ours = worker.Worker(options.hlojit, options.threads, options.timeout_s)
    options.versions = f"{worker.version(options.hlojit)}, jaxlib {xla_peer.version()}"
    rows = []
    for name, program, plain, module, suffix in cases(options.patterns):
        note, sizes = "", program.timing[suffix]
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            if options.random_shapes is not None:
                # The tiled and the plain form of a program get the same sizes.
                generator = random.Random(f"{options.random_shapes} {program.name} {suffix}")
                sizes = random_sizes(program, suffix, generator)
                note = " ".join(f"{key}={size}" for key, size in sizes.items())
                text, args = lower(program, sizes)
                module = folder / "module.hlo"
                module.write_text(tiled(text) if name.endswith("_tiled") else text)
            else:
                text, args = plain.read_text(), program.build(**sizes)[1]
            row = Row(name, "tiled" if name.endswith("_tiled") else program.group, note)
            measure(row, (name, program, text, module, args), options, peer, ours, rates, folder)
        rows.append(row)
        print("  ".join(f"{h} {c}" for h, c in zip(["", *HEADINGS[1:]], row.cells()) if c != "–"), flush=True)
    ours.close()
    if options.answers:
        return 1 if any(row.problem for row in rows) else 0
    table = render(rows, options)
    print("\n" + table)
    pathlib.Path(options.json).write_text(json.dumps([row.record() for row in rows], indent=1) + "\n")
    if options.write:
        write_readme(table, "scoreboard" if options.random_shapes is None else "random shapes")
    return 1 if any(row.problem for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
