"""The scoreboard's rows, its Markdown table, and where the table is kept."""

import dataclasses
import math
import os
import pathlib
import platform
import statistics
import time

import plot

BENCH = pathlib.Path(__file__).resolve().parent
README = BENCH / "README.md"
MARKERS = "<!-- {}: begin -->", "<!-- {}: end -->"
# Nearer than this is called equal.
CLEAR = 1.25
# Below this Python's share of a peer's call shows.
SMALL_US = 20.0
XLA = "XLA:CPU"


def median(values):
    return statistics.median(values)


@dataclasses.dataclass
class Figures:
    """What was measured of one side: us of each round, compile times in ms, bytes of a call."""

    rounds: list
    compile_ms: list
    memory_bytes: int | None

    def us(self):
        return median(self.rounds)

    def spread(self):
        return f"{100 * (max(self.rounds) - min(self.rounds)) / self.us():.0f}"

    def compiled(self):
        return figure(median(self.compile_ms)) if self.compile_ms else "–"

    def megabytes(self):
        return figure(self.memory_bytes / 1e6) if self.memory_bytes is not None else "–"


def figure(value):
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


class Row:
    """One line of the table; `problem` says why there are no figures, `peers` the same of some peers."""

    def __init__(self, name, group, note, tiled):
        self.name, self.group, self.note, self.tiled = name, group, note, tiled
        self.problem, self.ours, self.figures, self.peers = None, None, {}, {}
        self.roof_us = self.bytes = self.operations = 0

    def best(self):
        """(name, us) of the fastest peer, or None."""
        return min(((name, f.us()) for name, f in self.figures.items()), key=lambda p: p[1], default=None)

    def ratio(self, peer=XLA):
        """A peer's time over ours, or None."""
        return self.figures[peer].us() / self.ours.us() if self.ours and peer in self.figures else None

    def best_ratio(self):
        best = self.best()
        return best[1] / self.ours.us() if self.ours and best else None

    def verdict(self):
        if self.problem or not self.ours:
            return self.problem or "agrees"
        name, us = self.best() or ("", math.inf)
        small = " (small)" if min(self.ours.us(), us) < SMALL_US else ""
        ratio = self.best_ratio() or math.inf
        if ratio >= CLEAR:
            return "fastest" + small
        return (f"equal to {name}" if ratio > 1 / CLEAR else f"**slower** than {name}") + small

    def cells(self, names):
        label = self.name + (f" `{self.note}`" if self.note else "")
        if not self.ours:
            return [label, *["–"] * (len(names) + 11), self.verdict()]
        us, xla = self.ours.us(), self.figures.get(XLA)
        ratio = lambda value: f"{value:.2f}" if value is not None else "–"
        return [label, figure(us), self.ours.spread(),
                *[figure(self.figures[name].us()) if name in self.figures else self.peers.get(name, "–")[:4].strip(": ")
                  for name in names],
                ratio(self.ratio()), ratio(self.best_ratio()), f"{self.bytes / us / 1e3:.1f}",
                f"{100 * self.roof_us / us:.0f}", f"{self.operations / us / 1e3:.0f}" if self.operations else "–",
                self.ours.compiled(), xla.compiled() if xla else "–", self.ours.megabytes(),
                xla.megabytes() if xla else "–", self.verdict()]

    def line(self, names):
        """For the terminal: only what is known, and the peers that failed."""
        told = [f"{h} {c}" for h, c in zip(["", *headings(names)[1:]], self.cells(names)) if c != "–"]
        return "  ".join(told + [f"[{name} {why}]" for name, why in self.peers.items() if not self.tiled])

    def record(self):
        figures = {"hlojit": self.ours, **self.figures}
        return {"name": self.name, "group": self.group, "note": self.note, "problem": self.problem,
                "roof_us": self.roof_us, "bytes": self.bytes, "operations": self.operations,
                "sides": {name: dataclasses.asdict(f) for name, f in figures.items() if f}, "peers": self.peers}


def headings(names):
    return ["program", "hlojit µs", "± %", *[f"{name} µs" for name in names], "XLA/hlojit", "best/hlojit", "GB/s",
            "% of roof", "GFLOP/s", "compile ms", "XLA's", "peak MB", "XLA's", "verdict"]


def machine():
    with open("/proc/cpuinfo") as file:
        lines = file.read().split("\n")
    field = lambda name: next((line.split(":")[1].strip() for line in lines if line.startswith(name)), "")
    widest = "AVX-512" if "avx512f" in field("flags") else "AVX2" if "avx2" in field("flags") else "neither AVX2 nor more"
    return field("model name") or platform.machine(), widest


def heading(options, sides, missing):
    """What was compared, on what."""
    model, widest = machine()
    isa = "AVX2" + (f" (of {widest})" if widest != "AVX2" else "") if options.isa == "avx2" else widest
    drawn = "" if options.random_shapes is None else f"; sizes drawn with seed {options.random_shapes}"
    lines = [f"{model}, {isa}, {options.threads} threads; {', '.join(side.version() for side in sides)}; "
             f"{options.rounds} rounds of {1e3 * options.seconds:g} ms{drawn}; "
             f"{time.strftime('%Y-%m-%d', time.gmtime())}."]
    lines += [f"Left out is {sentence}." for sentence in missing]
    return "\n".join(lines)


def mean(values):
    values = [v for v in values if v is not None]
    return f"{math.exp(statistics.fmean(map(math.log, values))):.2f}" if values else "–"


def render(rows, names, heading):
    titles = headings(names)
    lines = [heading, "", "| " + " | ".join(titles) + " |", "|---|" + "--:|" * (len(titles) - 2) + "---|"]
    lines += ["| " + " | ".join(row.cells(names)) + " |" for row in rows]
    good = [row for row in rows if row.ours]
    lines += ["", "| geometric mean over | programs | XLA/hlojit | best/hlojit | time over roof | XLA's compile/ours |",
              "|---|--:|--:|--:|--:|--:|"]
    for group in [*dict.fromkeys(row.group for row in good), "all"]:
        some = [row for row in good if group in (row.group, "all")]
        compiled = [median(r.figures[XLA].compile_ms) / median(r.ours.compile_ms) for r in some if XLA in r.figures]
        lines.append(f"| {group} | {len(some)} | {mean(r.ratio() for r in some)} | {mean(r.best_ratio() for r in some)} | "
                     f"{mean(r.ours.us() / r.roof_us for r in some if r.roof_us)} | {mean(compiled)} |")
    ratios = [r.best_ratio() for r in good if r.best_ratio()]
    lines += ["", f"{len(good)} of {len(rows)} programs run and agree; {sum(r >= CLEAR for r in ratios)} are clearly faster "
                  f"than the best peer, {sum(r <= 1 / CLEAR for r in ratios)} clearly slower."]
    losing = sorted((r for r in good if (r.best_ratio() or 2) < 1 / 1.05), key=Row.best_ratio)
    if losing:
        lines += ["", f"Behind the best peer by more than 5 %: " + ", ".join(
            f"{r.name} {r.best_ratio():.2f} ({r.best()[0]})" for r in losing) + "."]
    return "\n".join(lines) + "\n"


def replace_file(path, text):
    """Writes a file at once: who is stopped in between leaves the old one."""
    beside = path.with_name(path.name + ".new")
    beside.write_text(text)
    os.replace(beside, path)


def write(text, rows, options):
    """Replaces the plot, and what stands in the README between the markers of this kind of table."""
    kind = "random shapes" if options.random_shapes is not None else "scoreboard"
    if options.random_shapes is None:
        name = f"scoreboard_{table_isa(options)}.svg"
        replace_file(BENCH / name, plot.svg(rows))
        text += f"\n![hlojit and its peers over the machine's roof]({name})\n"
        kind = f"scoreboard {table_isa(options)}"
    readme = README.read_text()
    opening, closing = (marker.format(kind) for marker in MARKERS)
    begin, end = readme.index(opening) + len(opening), readme.index(closing)
    replace_file(README, readme[:begin] + "\n" + text + readme[end:])


def table_isa(options):
    """Which of the two tables of record a run makes."""
    return "avx2" if options.isa == "avx2" or machine()[1] != "AVX-512" else "avx512"
