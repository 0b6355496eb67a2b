"""hlojit against its peers on the programs of bench/hlo/big: the same programs, one run, one table.

    build/venv/bin/python bench/scoreboard.py [REGEX...] [options]

For every program: inputs are drawn; all sides compute, twice, and their second answers are compared with XLA:CPU's
(tolerances.py); then all are timed in turns, the order turned round each round, so that what disturbs the machine
disturbs all. The tiled form of a program is timed in the same rounds as the plain one. A figure is the median over
rounds of a round's median call. Roofs come from build/release/bin's `roofline` in the same run, at the program's own
size and mix of reads and writes. A wrong answer of hlojit ends the run. With --write the table and the plot replace
those of bench/README.md, at the end and at once.
"""

import argparse
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time

import peers
import peers.base
import table
import work
import xla_peer

ROOT = pathlib.Path(__file__).resolve().parent.parent
BIG = ROOT / "bench" / "hlo" / "big"
# A peer that takes more liberties with rounding than hlojit may is still a peer.
PEER_LOOSE = 100
PAUSE_S = 0.05  # the threads of the other sides stop spinning
LONG_S = 1.0  # a side whose call takes longer is timed in the first round only


class WrongAnswer(Exception):
    pass


def chosen(patterns):
    """[(name, program, suffix)] of what the patterns select."""
    from programs import PROGRAMS
    wanted = [re.compile(p) for p in patterns]
    for program in PROGRAMS.values():
        for suffix in program.timing:
            name = f"{program.name}{suffix}"
            if not wanted or any(p.fullmatch(name) for p in wanted):
                yield name, program, suffix


def random_sizes(program, suffix, generator):
    """Timing sizes with every size that may vary scaled by 0.6 to 1.4."""
    return {key: size if key in program.fixed else max(1, round(size * generator.uniform(0.6, 1.4)))
            for key, size in program.timing[suffix].items()}


def case_of(name, program, suffix, options, folder):
    """The program with its arguments drawn, which are also files of `folder`."""
    import npyio
    from generate import draw_all, lower, tiled
    sizes = program.timing[suffix]
    if options.random_shapes is not None:
        sizes = random_sizes(program, suffix, random.Random(f"{options.random_shapes} {name}"))
        text, arguments = lower(program, sizes)
    else:
        text, arguments = (BIG / f"{name}.hlo").read_text(), program.build(**sizes)[1]
    arrays = draw_all(program.name, arguments)
    for k, array in enumerate(arrays):
        npyio.save(folder / f"in_{k}.npy", array)
    return peers.base.Case(name, program, sizes, text, tiled(text) if program.tiled else None, arrays, folder)


def difference(got, expected, loose):
    """None, or what is wrong with the first result that is."""
    import npyio
    import tolerances
    for k, (g, e) in enumerate(zip(got, expected)):
        if wrong := tolerances.difference(npyio.name_of(e.dtype), g, e, loose):
            return f"result {k}: {wrong}"
    return None


def answers(ready):
    """Of a second call: a side that writes over its arguments is wrong by then. (IREE's scatters may.)"""
    ready.results()
    return ready.results()


def ready_sides(case, ours, others, rows):
    """{side: Ready} of all that compute the right answer; says in the rows what does not."""
    from peers.hlojit import Failed
    sides, expected = {}, None
    for peer in others:
        try:
            ready = peer.prepare(case)
            got = answers(ready) if ready else None
        except Exception as error:  # noqa: BLE001 - whatever a peer throws, the others go on
            rows[0].peers[peer.name] = f"fails: {str(error).splitlines()[0][:80]}"
            continue
        if got is None:
            continue
        expected = expected or got
        if wrong := difference(got, expected, PEER_LOOSE * case.program.loose):
            rows[0].peers[peer.name] = f"off: {wrong}"
        else:
            sides[peer.name] = ready
    for row in rows:
        try:
            ready = ours.prepare(case, tiled=row.tiled)
            got = answers(ready)
        except Failed as error:
            row.problem = f"fails: {error}"
            continue
        if expected and (wrong := difference(got, expected, case.program.loose)):
            raise WrongAnswer(f"{row.name}: {wrong}")
        sides[row] = ready
    return sides


def measure(case, ours, others, roof, options):
    """The rows of one case: one, or two if it has a tiled form."""
    from peers.hlojit import Failed
    note = "" if options.random_shapes is None else " ".join(f"{k}={v}" for k, v in case.sizes.items())
    rows = [table.Row(case.name, case.program.group, note, False)]
    if case.tiled:
        rows.append(table.Row(f"{case.name}_tiled", "tiled", note, True))
    sides = ready_sides(case, ours, others, rows)
    if options.answers:
        return rows
    least_us, moved, operations = roof.of(case.text)
    times = {side: [] for side in sides}
    for turn in range(options.rounds):
        for side in list(times) if turn % 2 == 0 else reversed(list(times)):
            if any(us > 1e6 * LONG_S for us in times[side]):
                continue
            try:
                times[side].append(table.median(sides[side].time(options.seconds)))
            except Failed as error:
                side.problem = f"fails: {error}"
            time.sleep(PAUSE_S)
    for row in rows:
        row.roof_us, row.bytes, row.operations = least_us, moved, operations
        row.figures = {side: table.Figures(times[side], sides[side].compile_ms, sides[side].memory_bytes)
                       for side in times if isinstance(side, str)}
        row.peers = rows[0].peers
        if row in times and not row.problem:
            row.ours = table.Figures(times[row], sides[row].compile_ms, sides[row].memory_bytes)
    return rows


class Roof:
    """The least time that this machine allows, measured by `roofline`."""

    def __init__(self, options):
        self.command = [options.roofline, "--threads", str(options.threads), "--isa", options.isa]
        self.rates = {row["type"]: row["rate"] for row in self._ask("--flops")["flops"]}

    def _ask(self, *arguments):
        return json.loads(subprocess.run([*self.command, *arguments], capture_output=True, check=True).stdout)

    def of(self, text):
        """(us at the roof, bytes, operations of contractions) of HLO text."""
        read, written = work.traffic(text)
        contractions, elements = work.operations(text)
        moved = (read + written) / (self._ask("--read", str(read), "--write", str(written))["gb_per_s"] * 1e3)
        computed = sum(count / (self.rates.get(dtype, self.rates["f32"]) * 1e3)
                       for counts in (contractions, elements) for dtype, count in counts.items())
        return max(moved, computed), read + written, sum(contractions.values())


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("patterns", nargs="*", metavar="REGEX", help="whole names; all programs if none")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.04, help="of each side in each round")
    parser.add_argument("--isa", choices=["native", "avx2"], default="native",
                        help="avx2: all sides are limited to it, on a machine that has more")
    parser.add_argument("--peers", nargs="+", choices=peers.MODULES, default=peers.MODULES, help="these alone")
    parser.add_argument("--random-shapes", type=int, metavar="SEED",
                        help="instead of the stated sizes, sizes drawn around them")
    parser.add_argument("--answers", action="store_true", help="compare the answers, time nothing")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--write", action="store_true", help="put the table and the plot into bench/")
    parser.add_argument("--hlojit", default=str(ROOT / "build/release/bin/hlojit"))
    parser.add_argument("--roofline", default=str(ROOT / "build/release/bin/roofline"))
    parser.add_argument("--json", default=str(ROOT / "build/scoreboard.json"), help="raw figures")
    parser.add_argument("--timeout-s", type=float, default=120)
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error("--rounds: at least one")
    return options


def main():
    options = arguments()
    xla_peer.restart_with_kept_memory(options.threads, peers.environment(options.threads, options.isa))
    programs = list(chosen(options.patterns))
    if not programs:
        sys.exit("scoreboard.py: no program has such a name (bench/hlo/big has them)")
    from peers.hlojit import Program
    ours = Program(options.hlojit, options.threads, options.isa, options.timeout_s)
    others, missing = peers.available(options.threads, options.isa, options.peers)
    roof = None if options.answers else Roof(options)
    heading = table.heading(options, [ours, *others], missing)
    print(heading + "\n", flush=True)
    rows = []
    for name, program, suffix in programs:
        with tempfile.TemporaryDirectory() as folder:
            case = case_of(name, program, suffix, options, pathlib.Path(folder))
            try:
                rows += measure(case, ours, [] if suffix in program.alone else others, roof, options)
            except WrongAnswer as wrong:
                print(f"\n**wrong answer**: {wrong}")
                return 1
        for row in rows[-2 if case.tiled else -1:]:
            print(row.line([peer.name for peer in others]), flush=True)
    ours.close()
    failed = any(row.problem for row in rows)
    if options.answers:
        return 1 if failed else 0
    text = table.render(rows, [peer.name for peer in others], heading)
    print("\n" + text)
    table.replace_file(pathlib.Path(options.json), json.dumps([row.record() for row in rows], indent=1) + "\n")
    if options.write:
        table.write(text, rows, options)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
